"""The high-level Matmul on cube cores alone, against products of numpy in float64."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cube_tiling import CubeTiling, choose
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cube import NAMES, default_options, device, factor, shortened, word
from test_cube_int4 import packed

from ascendopt_tune.device.acl import Binary
from ascendopt_tune.errors import DeviceError, KernelCompileError

__all__ = ["default_options"]
SOURCE = Path(__file__).resolve().parent / "kernels" / "matmul.cpp"
Array = np.ndarray[Any, Any]


class MatmulCase(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint32) for n in ("turn_a", "turn_b", "bias", "by_block", "in_sequence", "atomic",
                                               "quant", "kc", "hf32")] + [("word", ctypes.c_uint64)]  # fmt: skip


@cache
def kernels() -> Binary:
    acl = device()
    return acl.load(acl.compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


def launch(
    name: str, arrays: Sequence[Array], *scalars: Any, blocks: int = 1, binary: Binary | None = None
) -> dict[str, Any]:
    """Runs a kernel on the arrays; the last one gets what it wrote."""
    acl = device()
    pointers = [acl.malloc(max(32, x.nbytes)) for x in arrays]
    try:
        for p, x in zip(pointers, arrays, strict=True):
            acl.memcpy_h2d(p, x.view(np.uint8))
        acl.launch((binary or kernels()).function(name), blocks, [*pointers, *scalars])
        acl.synchronize()
        acl.memcpy_d2h(arrays[-1].view(np.uint8), pointers[-1])
        return acl.report()
    finally:
        for p in pointers:
            acl.free(p)


def up(n: int, to: int) -> int:
    return -(-n // to) * to


def tiling(m: int, n: int, k: int, base: tuple[int, int, int], **more: int) -> CubeTiling:
    """One core's; by default blocks one by one, two of either matrix in L1."""
    t = CubeTiling(usedCoreNum=1, M=m, N=n, Ka=k, Kb=k, singleCoreM=m, singleCoreN=n, singleCoreK=k, baseM=base[0],
                   baseN=base[1], baseK=base[2], depthA1=2, depthB1=2, stepM=1, stepN=1, stepKa=1, stepKb=1, dbL0A=2,
                   dbL0B=2, dbL0C=1)  # fmt: skip
    for name, value in more.items():
        setattr(t, name, value)
    return t


def as_tiles(x: Array, rows: int, width: int) -> Array:
    padded = np.zeros((rows, up(x.shape[1], width)), x.dtype)
    padded[: x.shape[0], : x.shape[1]] = x
    return np.ascontiguousarray(padded.reshape(rows, -1, width).transpose(1, 0, 2))


def run(kernel: str, out: str, t: CubeTiling, **how: int) -> tuple[Array, Array]:
    """(what the kernel makes of random matrices, the exact sums)."""
    dtype, way = kernel.split("_")
    dtype = {"half": "float16", "float": "float32"}.get(dtype, dtype)
    m, n, k = t.M, t.N, t.Ka
    rng = np.random.default_rng(m * 10007 + n * 101 + k)
    if dtype in ("int8", "int4"):
        most = 128 if dtype == "int8" else 8
        a, b = (rng.integers(-most, most, s).astype(np.int8) for s in ((m, k), (k, n)))
        bias: Array = rng.integers(-1000, 1000, n).astype(np.int32)
    else:
        a, b = (rng.standard_normal(s).astype(NAMES[dtype]) for s in ((m, k), (k, n)))
        bias = rng.standard_normal(n).astype(np.float16 if kernel == "half_flags" else np.float32)
    words = np.array([word(0.001 * (1 + i % 7)) for i in range(n)], np.uint64)
    lie_a, lie_b = (a.T if how.get("turn_a") else a), (b.T if how.get("turn_b") else b)
    if way == "tiles":
        columns = 64 if dtype == "int4" else 16
        lie_a, lie_b = (as_tiles(x, up(x.shape[0], 16), columns) for x in (lie_a, lie_b))
    if dtype == "int4":
        lie_a, lie_b = (packed(x.reshape(-1, x.shape[-1])) for x in (lie_a, lie_b))
    width = how.get("kc") or n
    shape: tuple[int, ...] = (m, width)
    if way == "aligned":
        shape = m, up(width, 32 // NAMES[out]().itemsize)
    elif way == "split" or kernel == "half_tiles":
        tile = 8 if way == "split" else 16
        shape = up(n, tile) // tile, up(m, 16), tile
    c = np.zeros(shape, NAMES[out])
    if how.get("atomic"):
        c += 1
    how.setdefault("bias", t.isBias)
    blocks = t.usedCoreNum
    arrays = [np.ascontiguousarray(lie_a), np.ascontiguousarray(lie_b), bias, words, c]
    report = launch(kernel, arrays, t, MatmulCase(**how), blocks=blocks)
    assert not report["hazards"], report["hazards"][:1]
    assert not report["unwritten"], report["unwritten"][:1]
    exact = a.astype(np.float64) @ b.astype(np.float64) + (bias.astype(np.float64) if how["bias"] == 1 else 0)
    return c, exact + (1 if how.get("atomic") else 0)


def near(got: Array, exact: Array, k: int, step: float = 0.0) -> None:
    scale = np.abs(exact).max() + 8 * np.sqrt(k)
    np.testing.assert_allclose(got.astype(np.float64), exact, rtol=step, atol=scale * (k + 4) * 2.0**-24)


STEPS = {"float32": 0.0, "int32": 0.0, "float16": 2.0**-10, "bfloat16": 2.0**-7}


@pytest.mark.parametrize("bias", [0, 1])
@pytest.mark.parametrize(("turn_a", "turn_b"), [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize(
    ("kernel", "out"),
    [("half_blocks", "float32"), ("half_packets", "float32"), ("half_flags", "float16"),
     ("bfloat16_blocks", "bfloat16"), ("float_blocks", "float32"), ("float_packets", "float32"),
     ("int8_blocks", "int32"), ("int8_packets", "int32")],
)  # fmt: skip
def test_matrices_with_tails(kernel: str, out: str, turn_a: int, turn_b: int, bias: int) -> None:
    """Several blocks along every axis, the last ones smaller."""
    m, n, k = (77, 90, 150) if kernel != "half_flags" else (96, 80, 150)
    t = tiling(m, n, k, (32, 32, 32), depthA1=4, depthB1=8, stepKa=2, stepKb=4, isBias=bias)
    got, exact = run(kernel, out, t, turn_a=turn_a, turn_b=turn_b)
    near(got, exact, k, STEPS[out])


def at_once(t: CubeTiling) -> CubeTiling:
    """As the packets of MDL want it: steps along m and n only where all of k is there."""
    if -(-t.singleCoreK // t.baseK) > t.stepKa:
        t.stepM = 1
    if -(-t.singleCoreK // t.baseK) > t.stepKb:
        t.stepN = 1
    t.depthA1 = t.stepM * t.stepKa * 2
    t.depthB1 = t.stepN * t.stepKb * 2
    return t


SIZES = st.integers(1, 130)


@settings(max_examples=12, deadline=None)
@given(SIZES, SIZES, SIZES, st.sampled_from([16, 32, 48]), st.sampled_from([16, 64]), st.sampled_from([16, 32]),
       st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(1, 3), st.integers(1, 3)), st.booleans(),
       st.booleans(), st.integers(0, 1), st.integers(0, 1), st.integers(1, 2), st.integers(0, 1))  # fmt: skip
def test_any_shape_and_cut(m: int, n: int, k: int, bm: int, bn: int, bk: int, steps: tuple[int, ...], turn_a: bool,
                           turn_b: bool, bias: int, order: int, buffers: int, packets: int) -> None:  # fmt: skip
    t = tiling(m, n, k, (bm, bn, bk), isBias=bias, iterateOrder=order, dbL0C=buffers, dbL0A=buffers)
    t.stepM, t.stepN, t.stepKa, t.stepKb = steps
    kernel = "half_packets" if packets else "half_blocks"
    got, exact = run(kernel, "float32", at_once(t), turn_a=int(turn_a), turn_b=int(turn_b))
    near(got, exact, k)


@pytest.mark.parametrize("kernel", ["half_blocks", "half_packets"])
def test_blocks_one_by_one(kernel: str) -> None:
    """Iterate and GetTensorC: to their places in C, along m first or n, whose rows may be longer than B's."""
    for order, kc in ((0, 0), (1, 104)):
        t = tiling(70, 90, 40, (32, 32, 16), iterateOrder=order, dbL0C=2)
        got, exact = run(kernel, "float32", t, by_block=1, kc=kc)
        near(got[:, :90], exact, 40)


def test_blocks_in_sequence() -> None:
    """Each block by itself, one behind the other in the order in which they are computed."""
    t = tiling(64, 96, 48, (32, 48, 16))
    got, exact = run("half_blocks", "float32", t, by_block=1, in_sequence=1)
    blocks = exact.reshape(2, 32, 2, 48).transpose(2, 0, 1, 3)
    near(got.reshape(blocks.shape), blocks, 48)


def test_products_of_a_block_one_by_one() -> None:
    """isPartialOutput: each block as often as it has products, whose sum the kernel makes itself."""
    m, n, k = 64, 96, 100
    t, rng = tiling(m, n, k, (32, 48, 32), dbL0C=2, depthA1=8, depthB1=8, stepKa=2, stepKb=4), np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n)))
    out, none = np.zeros((2, 2, 4, 32, 48), np.float32), np.zeros(n, np.float32)
    report = launch("half_partial", [a, b, none, np.zeros(n, np.uint64), out], t, MatmulCase(by_block=1, in_sequence=1))
    assert not report["hazards"]
    for i in range(4):
        part = slice(i * 32, min(k, i * 32 + 32))
        exact = a[:, part].astype(np.float64) @ b[part].astype(np.float64)
        near(out[:, :, i], exact.reshape(2, 32, 2, 48).transpose(2, 0, 1, 3), 32)
    with pytest.raises(DeviceError, match="enSequentialWrite has to be true"):
        run("half_partial", "float32", t, by_block=1)
    t.isBias = 1
    with pytest.raises(DeviceError, match="isPartialOutput is for products without a bias"):
        run("half_partial", "float32", t, by_block=1, in_sequence=1)


@pytest.mark.parametrize("mode", [1, 2])
def test_floats_are_rounded_first(mode: int) -> None:
    """SetHF32: exact here but for the rounding, as the other matrix is the identity."""
    n, rng = 48, np.random.default_rng(mode)
    a = (rng.integers(-(2**14), 2**14, (40, n)) / 2**10).astype(np.float32)  # of 14 bits: many lie halfway
    out, none = np.zeros((40, n), np.float32), np.zeros(n, np.float32)
    launch("float_blocks", [a, np.eye(n, dtype=np.float32), none, np.zeros(n, np.uint64), out],
           tiling(40, n, n, (32, 32, 32)), MatmulCase(hf32=mode))  # fmt: skip
    np.testing.assert_array_equal(out, shortened(a, mode == 2))


@pytest.mark.parametrize("kernel", ["half_basic", "half_special", "half_shared", "half_dual"])
@pytest.mark.parametrize("bias", [1, 2, 3], ids=["bias", "ClearBias", "DisableBias"])
def test_other_schedules(kernel: str, bias: int) -> None:
    got, exact = run(kernel, "float32", tiling(40, 50, 60, (32, 32, 32), isBias=1), bias=bias)
    near(got, exact, 60)


def test_blocks_that_the_kernel_copies() -> None:
    m, n, k = 40, 48, 70
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n)))
    order, c = rng.permutation(m).astype(np.uint32), np.zeros((m, n), np.float32)
    report = launch("half_reordered", [a, b, order, c], tiling(m, n, k, (32, 32, 32)))
    assert not report["hazards"]
    near(c, a[order].astype(np.float64) @ b.astype(np.float64), k)


def test_results_are_added_to_what_is_there() -> None:
    got, exact = run("half_packets", "float32", tiling(40, 50, 60, (32, 32, 32)), atomic=1)
    near(got, exact, 60)


def test_several_cores_share_m_n_and_k() -> None:
    """The shares of k are added up in global memory."""
    t = tiling(100, 120, 128, (32, 32, 32), usedCoreNum=8, singleCoreM=64, singleCoreN=64, singleCoreK=64)
    got, exact = run("half_packets", "float32", t, atomic=1)
    near(got, exact, 128)


def test_matrices_that_lie_as_tiles() -> None:
    m, n, k = 48, 64, 80
    for turn in (0, 1):
        got, exact = run("half_tiles", "float16", tiling(m, n, k, (32, 32, 32)), turn_a=turn, turn_b=turn)
        near(got, as_tiles(exact.astype(np.float64), m, 16), k, STEPS["float16"])


def test_ways_out() -> None:
    """Rows that begin at multiples of 32 bytes; float tiles of 8 columns."""
    got, exact = run("half_aligned", "float16", tiling(40, 50, 30, (32, 32, 32)))
    near(got[:, :50], exact, 30, STEPS["float16"])
    got, exact = run("half_split", "float32", tiling(48, 64, 30, (32, 32, 32)))
    near(got, as_tiles(exact, 48, 8), 30)


@pytest.mark.parametrize("quant", [1, 2], ids=["one word", "a word for each column"])
@pytest.mark.parametrize(("kernel", "out"), [("int8_half", "float16"), ("half_int8", "int8")])
def test_quantization(kernel: str, out: str, quant: int) -> None:
    m, n, k = 40, 64, 64
    got, exact = run(kernel, out, tiling(m, n, k, (32, 32, 32)), quant=quant, word=word(0.002))
    scales = np.array([factor(0.001 * (1 + i % 7)) if quant == 2 else factor(0.002) for i in range(n)])
    scaled = exact * scales
    if out == "float16":
        np.testing.assert_allclose(got.astype(np.float64), scaled, rtol=2.0**-9, atol=1e-4)
    else:
        assert np.abs(got - np.clip(np.rint(scaled), -128, 127)).max() <= 1  # a float sum may round the other way


@pytest.mark.parametrize(
    ("change", "message"),
    [({"baseM": 20}, "multiples of 16"), ({"baseK": 8}, "baseK has to be"), ({"depthA1": 0}, "depthA1"),
     ({"stepKa": 4, "depthA1": 2}, "stepM \\* stepKa"), ({"depthA1": 400, "stepKa": 200}, "past the end of L1"),
     ({"baseM": 0, "baseN": 0, "baseK": 0}, "all zeros")],
)  # fmt: skip
def test_tilings_that_cannot_be(change: dict[str, int], message: str) -> None:
    t = tiling(64, 64, 6400, (32, 32, 32))
    for name, value in change.items():
        setattr(t, name, value)
    with pytest.raises(DeviceError, match=message):
        run("half_packets", "float32", t)


HEAD = """#define ASCENDC_CUBE_ONLY
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
"""


def test_an_object_that_is_not_used_needs_no_tiling() -> None:
    """Kernels of two directions register both, and their host fills one tiling where one direction is enough."""
    matrix = "MatmulType<TPosition::GM, CubeFormat::ND, float>"
    objects = f"  TPipe pipe;\n  Matmul<{matrix}, {matrix}, {matrix}, {matrix}> mm, idle;\n  TCubeTiling none{{}};\n"
    tensors = "".join(
        f"  GlobalTensor<float> t{x};\n  t{x}.SetGlobalBuffer(reinterpret_cast<__gm__ float*>({x}));\n" for x in "abc"
    )
    source = (
        f'{HEAD}extern "C" __global__ __cube__ void one_of_two(GM_ADDR a, GM_ADDR b, GM_ADDR c, TCubeTiling t) {{\n'
        f"{objects}  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t, idle, &none);\n{tensors}"
        "  mm.SetTensorA(ta);\n  mm.SetTensorB(tb);\n  mm.IterateAll(tc);\n  mm.End();\n}\n"
    )
    acl = device()
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((32, 48), np.float32), rng.standard_normal((48, 64), np.float32)
    c = np.zeros((32, 64), np.float32)
    binary = acl.load(acl.compile(source, "one_of_two.cpp", []))
    report = launch("one_of_two", [a, b, c], tiling(32, 64, 48, (32, 64, 48)), binary=binary)
    assert not report["hazards"]
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("matrix", "use", "message"),
    [("MatmulType<TPosition::GM, CubeFormat::ND, int32_t>", "", "types of A and B"),
     ("MatmulType<TPosition::GM, CubeFormat::ND, int4b_t, true>", "", "can't be transposed"),
     ("MatmulType<TPosition::GM, CubeFormat::ND, int4b_t>", "", "int32_t and half"),
     ("MatmulType<TPosition::VECCALC, CubeFormat::NZ, int4b_t>", "", "int4b_t in the Unified Buffer"),
     ("MatmulType<TPosition::GM, CubeFormat::COLUMN_MAJOR, half>", "", "CubeFormat"),
     ("MatmulType<TPosition::GM, CubeFormat::ND, half>", "mm.SetTensorA(half(1));", "with a scalar")],
)  # fmt: skip
def test_what_is_refused_is_named(matrix: str, use: str, message: str) -> None:
    source = HEAD + (
        f"using M = {matrix};\n"
        'extern "C" __global__ __cube__ void refused(GM_ADDR a) {\n'
        "  Matmul<M, M, MatmulType<TPosition::GM, CubeFormat::ND, float>> mm;\n"
        f"  mm.Init(nullptr);\n  {use}\n}}\n"
    )
    with pytest.raises(KernelCompileError) as refused:
        device().compile(source, "refused.cpp", [])
    assert message in refused.value.hint + str(refused.value) + refused.value.log


TYPES = {"float16": 2, "bfloat16": 2, "float32": 4, "int8": 1}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tilings")


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9000), st.integers(1, 9000), st.integers(1, 9000), st.integers(1, 24),
       st.sampled_from(sorted(TYPES)), st.booleans(), st.booleans(), st.booleans(), st.booleans(),
       st.sampled_from([-1, 65536, 262144]))  # fmt: skip
def test_tilings_fit_the_memories(built: Path, m: int, n: int, k: int, cores: int, dtype: str, turn_a: bool,
                                  turn_b: bool, bias: bool, split_k: bool, l1: int) -> None:  # fmt: skip
    """The constraints of asc-devkit's page of TCubeTiling."""
    size, bias = TYPES[dtype], bias and not split_k
    t = choose(built, m, n, k, cores, dtype, "int32" if dtype == "int8" else "float32", turn_a=int(turn_a),
               turn_b=int(turn_b), bias=int(bias), split_k=int(split_k), l1=l1)  # fmt: skip
    assert t is not None
    assert t.of("M", "N", "Ka", "Kb") == (m, n, k, k)
    shares = [-(-a // b) for a, b in zip((m, n, k), t.of("singleCoreM", "singleCoreN", "singleCoreK"), strict=True)]
    assert np.prod(shares) == t.usedCoreNum <= cores
    assert split_k or t.singleCoreK == k
    bm, bn, bk = t.of("baseM", "baseN", "baseK")
    turned = turn_a or not turn_b
    assert bm % 16 == bn % 16 == bk % (max(32 // size, 16) if turned else 32 // size) == 0
    assert bm <= up(t.singleCoreM, 16)
    assert max(bm, bn) * bk * size * t.dbL0A <= 65536
    assert bm * bn * 4 * t.dbL0C <= 131072
    assert not bias or bn * 4 <= 1024
    step_a, step_b = t.stepM * t.stepKa, t.stepN * t.stepKb
    assert t.depthA1 in (step_a, 2 * step_a)
    assert t.depthB1 in (step_b, 2 * step_b)
    # Tiles of 8 bits that have to be turned have 32 rows and columns.
    rows_a, rows_b = (up(x, 32 if size == 1 and turns else 16) for x, turns in ((bm, turn_a), (bn, not turn_b)))
    held = (t.depthA1 * rows_a + t.depthB1 * rows_b) * bk * size
    assert held + (bn * 4 if bias else 0) <= (524288 if l1 == -1 else l1)


@pytest.mark.parametrize(
    ("wish", "fields", "values"),
    [
        ({"m": 8192, "n": 8192, "k": 8192, "cores": 24}, "baseM baseN baseK stepKa depthA1", (128, 256, 64, 4, 8)),
        ({"m": 512, "n": 512, "k": 128, "cores": 2}, "singleCoreM singleCoreN", (256, 512)),
        ({"m": 16, "n": 16, "k": 1024, "cores": 4, "split_k": 1}, "usedCoreNum singleCoreK", (4, 256)),
        ({"m": 1024, "n": 640, "k": 256, "cores": 2, "base_m": 128, "base_n": 128},
         "singleCoreM singleCoreN baseM baseN", (512, 640, 128, 128)),
        ({"m": 64, "n": 64, "k": 64, "cores": 8, "single_m": 32, "single_n": 64}, "usedCoreNum singleCoreM", (2, 32)),
    ],
)  # fmt: skip
def test_tilings_that_are_known(built: Path, wish: dict[str, int], fields: str, values: tuple[int, ...]) -> None:
    """The published base block, and wishes that are kept."""
    t = choose(built, **wish)
    assert t is not None
    assert t.of(*fields.split()) == values


@pytest.mark.parametrize(("n", "cores"), [(1024, 24), (4096, 20), (2048, 24)])
def test_shares_of_rows_end_where_windows_do(built: Path, n: int, cores: int) -> None:
    """A row of a share that begins within a window of 512 bytes and ends in the next costs as much as two."""
    t = choose(built, 512, n, 1024, cores)
    assert t is not None
    assert 512 % (t.singleCoreN * 2) == 0 or t.singleCoreN * 2 % 512 == 0


def test_no_tiling(built: Path) -> None:
    assert choose(built, 64, 64, 64, dtype="int32") is None
    assert choose(built, 64, 64, 65, dtype="int4", turn_b=1) is None  # a row that ends within a byte
    assert choose(built, 64, 65, 64, dtype="int4") is None
    assert choose(built, 64, 64, 64, dtype="int4", turn_a=1) is None
    assert choose(built, 64, 64, 0) is None
    assert choose(built, 64, 64, 64, cores=0) is None
    assert choose(built, 64, 64, 64, base_m=20) is None
    assert choose(built, 64, 64, 64, base_m=64, base_n=64, l1=1024) is None


@pytest.mark.parametrize(("m", "n", "k", "cores", "dtype"), [(300, 200, 500, 4, "float16"), (96, 96, 96, 2, "int8")])
def test_a_chosen_tiling_computes(built: Path, m: int, n: int, k: int, cores: int, dtype: str) -> None:
    out = "int32" if dtype == "int8" else "float32"
    t = choose(built, m, n, k, cores, dtype, out, bias=1)
    assert t is not None
    got, exact = run("int8_packets" if dtype == "int8" else "half_packets", out, t)
    near(got, exact, k)
