"""Batches of products on cube cores alone, against products of numpy in float64."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cube_tiling import CubeTiling, library
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cube import NAMES, default_options, device
from test_cube import launch as launch_any
from test_matmul import STEPS, as_tiles, near, tiling, up

from ascendopt_tune.device.acl import Binary
from ascendopt_tune.errors import DeviceError, KernelCompileError

__all__ = ["default_options"]
SOURCE = Path(__file__).resolve().parent / "kernels" / "matmul_batch.cpp"
Array = np.ndarray[Any, Any]
Axes = tuple[int, int, int]
#: Where the axes B, N, G, S, D of a matrix lie.
ORDERS = {"BSNGD": (0, 3, 1, 2, 4), "SBNGD": (3, 0, 1, 2, 4), "BNGS1S2": (0, 1, 2, 3, 4), "NORMAL": (0, 1, 2, 3, 4)}
LAYOUTS = {"float16_large": ("NORMAL", "NORMAL"), "float16_single": ("NORMAL", "NORMAL"),
           "float16_shared": ("NORMAL", "NORMAL"), "float16_tiles": ("NORMAL", "NORMAL"),
           "float16_to_tiles": ("NORMAL", "NORMAL"), "float16_aligned": ("BSNGD", "BSNGD")}  # fmt: skip
OUT = {"float16_SBNGD_BNGS1S2": "float16", "float16_aligned": "float16", "float16_to_tiles": "float16",
       "bfloat16_NORMAL_NORMAL": "bfloat16"}  # fmt: skip


class BatchCase(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint32) for n in ("turn_a", "turn_b", "bias", "count_a", "count_b", "stride_a", "stride_b",
                                               "atomic", "in_sequence", "partial", "calls", "step_a", "step_b",
                                               "step_c", "step_bias")]  # fmt: skip


@cache
def kernels() -> Binary:
    acl = device()
    return acl.load(acl.compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


def launch(name: str, arrays: list[Array], out: Array, *scalars: Any) -> dict[str, Any]:
    return launch_any(name, arrays, out, *scalars, binary=kernels())


def layouts_of(kernel: str) -> tuple[str, str]:
    return LAYOUTS.get(kernel) or tuple(kernel.split("_")[1:])  # type: ignore[return-value]


def lie(x: Array, layout: str) -> Array:
    return np.ascontiguousarray(x.transpose(ORDERS[layout]))


def random(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if dtype == "int8":
        return rng.integers(-128, 128, shape).astype(np.int8)
    return rng.standard_normal(shape).astype(NAMES[dtype])


def step(axes: Axes, layout: str, s: int, d: int) -> int:
    """Elements from a B to the next; an axis of 1 stays where it is."""
    return 0 if axes[0] == 1 else axes[1] * axes[2] * d * (1 if layout == "SBNGD" else s)


def batches(m: int, n: int, k: int, a: Axes, b: Axes, c: Axes, base: tuple[int, int, int], turn_a: int = 0,
            turn_b: int = 0, **more: int) -> CubeTiling:  # fmt: skip
    t = tiling(m, n, k, base, **more)
    for name, axes, sizes in (("A", a, (k, m) if turn_a else (m, k)), ("B", b, (n, k) if turn_b else (k, n)),
                              ("C", c, (m, n))):  # fmt: skip
        rows, columns = ("S1", "S2") if name == "C" else ("S", "D")
        for axis, value in zip(("B", "N", "G", rows, columns), (*axes, *sizes), strict=True):
            setattr(t, f"{name}LayoutInfo{axis}", value)
    t.BatchNum = more.get("BatchNum", max(int(np.prod(a)), int(np.prod(b))))
    return t


def run(kernel: str, m: int, n: int, k: int, a: Axes, b: Axes, base: tuple[int, int, int] = (32, 32, 32), bias: int = 0,
        sums: bool = False, **how: int) -> tuple[Array, Array, dict[str, Any]]:  # fmt: skip
    """(what the kernel makes of random matrices, the exact sums as they are to lie, what the virtual NPU tells)."""
    dtype, (lies, leaves) = kernel.split("_")[0], layouts_of(kernel)
    out = OUT.get(kernel, "int32" if dtype == "int8" else "float32")
    all_axes: Axes = tuple(max(x, y) for x, y in zip(a, b, strict=True))  # type: ignore[assignment]
    c: Axes = (all_axes[0], all_axes[1], 1) if sums else all_axes
    rng = np.random.default_rng(m * 10007 + n * 101 + k)
    left, right = random(dtype, (*a, m, k), rng), random(dtype, (*b, k, n), rng)
    bias_type = np.int32 if dtype == "int8" else np.float16 if kernel == "float16_SBNGD_BNGS1S2" else np.float32
    shared = kernel == "float16_shared"
    row: Array = (8 * rng.standard_normal((1, 1, 1, n) if shared else (*c, n))).astype(bias_type)
    by_row = "BSNGD" in (lies, leaves)  # then a call stays in one B
    calls = how.pop("calls", all_axes[0] if by_row else 1)
    turn_a, turn_b = how.get("turn_a", 0), how.get("turn_b", 0)
    lie_a, lie_b = (x.swapaxes(3, 4) if turns else x for x, turns in ((left, turn_a), (right, turn_b)))
    t = batches(m, n, k, a, b, c, base, turn_a, turn_b, isBias=int(bias > 0))
    case = BatchCase(bias=bias, calls=calls, step_a=step(a, lies, *lie_a.shape[3:]) if by_row else 0,
                     step_b=step(b, lies, *lie_b.shape[3:]) if by_row else 0, step_bias=c[1] * c[2] * n,
                     step_c=step(c, leaves, m, up(n, 16) if kernel == "float16_aligned" else n))  # fmt: skip
    case.count_a, case.count_b = (int(np.prod(x)) // (x[0] if by_row else 1) for x in (a, b))
    for name, value in how.items():
        setattr(case, name, value)
    if kernel == "float16_tiles":
        given = [np.stack([as_tiles(x, up(x.shape[0], 16), 16) for x in y.reshape(-1, *y.shape[3:])]) for y in
                 (lie_a, lie_b)]  # fmt: skip
    else:
        given = [lie(lie_a, lies), lie(lie_b, lies)]
    exact = left.astype(np.float64) @ right.astype(np.float64)
    if sums:
        exact = exact.sum(2, keepdims=True)
    if bias:
        exact = exact + row.astype(np.float64)[..., None, :]
    exact = lie(exact, leaves)
    if kernel == "float16_to_tiles":
        exact = np.stack([as_tiles(x, m, 16) for x in exact.reshape(-1, m, n)])
    got = np.zeros((*exact.shape[:-1], up(n, 16) if kernel == "float16_aligned" else exact.shape[-1]), NAMES[out])
    report = launch(kernel, [*given, np.ascontiguousarray(row)], got, t, case)
    assert not report["hazards"], report["hazards"][:1]
    assert not report["unwritten"], report["unwritten"][:1]
    return got[..., : exact.shape[-1]], exact, report


def check(kernel: str, m: int, n: int, k: int, a: Axes, b: Axes, **how: Any) -> dict[str, Any]:
    got, exact, report = run(kernel, m, n, k, a, b, **how)
    many = max(a[2], b[2]) if how.get("sums") else 1
    near(got, exact, k * many, STEPS[str(got.dtype)])
    return report


@pytest.mark.parametrize(("turn_a", "turn_b"), [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("kernel", [
    "float16_BSNGD_BSNGD", "float16_BSNGD_BNGS1S2", "float16_SBNGD_SBNGD", "float16_SBNGD_BNGS1S2",
    "float16_BNGS1S2_BNGS1S2", "float16_BNGS1S2_SBNGD", "float16_NORMAL_NORMAL", "float16_large", "float16_single",
    "float32_NORMAL_NORMAL", "float32_BSNGD_SBNGD", "bfloat16_NORMAL_NORMAL", "bfloat16_SBNGD_BSNGD",
    "int8_NORMAL_NORMAL", "int8_BSNGD_BSNGD", "float16_tiles", "float16_aligned"])  # fmt: skip
def test_orders_of_axes(kernel: str, turn_a: int, turn_b: int) -> None:
    """Several blocks along every axis, the last ones smaller; each product has its own bias."""
    axes = (1, 1, 4) if layouts_of(kernel)[0] == "NORMAL" else (2, 2, 3)
    check(kernel, 40, 50, 70, axes, axes, turn_a=turn_a, turn_b=turn_b, bias=1)


@pytest.mark.parametrize(("a", "b"), [((1, 1, 6), (1, 1, 2)), ((1, 1, 2), (1, 1, 6)), ((1, 1, 1), (1, 1, 5))])
@pytest.mark.parametrize("kernel", ["float16_NORMAL_NORMAL", "float16_large", "float16_single", "int8_NORMAL_NORMAL"])
def test_matrices_that_several_products_share(kernel: str, a: Axes, b: Axes) -> None:
    """NORMAL: those of A or B that follow each other."""
    many = max(a[2], b[2])
    repeat = [np.repeat(np.arange(x[2]), many // x[2]) for x in (a, b)]
    m, n, k = 24, 48, 48
    dtype = kernel.split("_")[0]
    rng = np.random.default_rng(1)
    left, right = random(dtype, (a[2], m, k), rng), random(dtype, (b[2], k, n), rng)
    t = batches(m, n, k, a, b, (1, 1, many), (32, 32, 32))
    got = np.zeros((many, m, n), np.int32 if dtype == "int8" else np.float32)
    row = np.zeros((many, n), np.float32)
    report = launch(kernel, [left, right, row], got, t, BatchCase(count_a=a[2], count_b=b[2], calls=1))
    assert not report["hazards"]
    assert not report["unwritten"]
    near(got, left.astype(np.float64)[repeat[0]] @ right.astype(np.float64)[repeat[1]], k)
    if kernel == "float16_NORMAL_NORMAL" and min(a[2], b[2]) == 1:
        assert report["profile"]["counters"]["mte2_bytes"] == left.nbytes + right.nbytes  # each is copied once


@pytest.mark.parametrize(("a", "b"), [((2, 2, 3), (2, 2, 1)), ((2, 2, 1), (2, 2, 3)), ((2, 3, 2), (2, 1, 2)),
                                      ((1, 2, 2), (3, 2, 2))])  # fmt: skip
@pytest.mark.parametrize("kernel", ["float16_BSNGD_BSNGD", "float16_BNGS1S2_BNGS1S2", "float16_SBNGD_BNGS1S2"])
def test_an_axis_of_one_is_shared(kernel: str, a: Axes, b: Axes) -> None:
    check(kernel, 24, 40, 48, a, b, bias=1)


@pytest.mark.parametrize(("a", "b"), [((1, 2, 3), (1, 2, 3)), ((1, 2, 4), (1, 2, 1))])
@pytest.mark.parametrize("kernel", ["float16_BSNGD_BSNGD", "float32_BSNGD_SBNGD", "float16_BNGS1S2_BNGS1S2"])
def test_sums_over_g(kernel: str, a: Axes, b: Axes) -> None:
    """C without the axis G gets the sum of its products, which are added to what is there."""
    check(kernel, 24, 40, 48, a, b, sums=True)


def test_a_sum_has_one_bias() -> None:
    check("float16_BNGS1S2_BNGS1S2", 24, 40, 48, (1, 1, 3), (1, 1, 3), sums=True, bias=1)
    with pytest.raises(DeviceError, match="a bias where several sums"):
        check("float16_BNGS1S2_BNGS1S2", 24, 40, 48, (1, 2, 3), (1, 2, 3), sums=True, bias=1)


def test_all_products_share_a_bias() -> None:
    check("float16_shared", 40, 50, 70, (1, 1, 4), (1, 1, 4), bias=1)


def test_tiles_of_the_result() -> None:
    check("float16_to_tiles", 48, 64, 40, (1, 1, 3), (1, 1, 3), bias=1)


SIZES = st.integers(1, 70)
AXES = st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(1, 3))


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(["float16_BSNGD_BNGS1S2", "float16_SBNGD_SBNGD", "bfloat16_SBNGD_BSNGD", "float32_BSNGD_SBNGD",
                        "float16_BNGS1S2_SBNGD", "int8_BSNGD_BSNGD"]),
       SIZES, SIZES, SIZES, AXES, st.integers(0, 6), st.sampled_from([16, 32, 48]), st.sampled_from([32, 64]),
       st.integers(0, 1), st.integers(0, 1), st.integers(0, 1))  # fmt: skip
def test_any_shape_and_axes(kernel: str, m: int, n: int, k: int, axes: Axes, shares: int, bm: int, bn: int, turn_a: int,
                            turn_b: int, bias: int) -> None:  # fmt: skip
    """``shares``: which axis A or B lacks. Squares of int8 that are turned have 32 rows and columns."""
    bm = 32 if kernel.startswith("int8") else bm
    a, b = list(axes), list(axes)
    if shares > 0:
        (a if shares > 3 else b)[(shares - 1) % 3] = 1
    check(kernel, m, n, k, (a[0], a[1], a[2]), (b[0], b[1], b[2]), base=(bm, bn, 32), turn_a=turn_a, turn_b=turn_b,
          bias=bias)  # fmt: skip


def test_more_than_l1_holds() -> None:
    """BATCH_LARGE_THAN_L1: a part of the batch at once. SINGLE_LARGE_THAN_L1: blocks of one product."""
    big = {"base": (64, 64, 64)}
    check("float16_large", 128, 256, 256, (1, 1, 7), (1, 1, 7), **big)
    with pytest.raises(DeviceError, match=r"take 1376256 bytes of L1, of which \d+ are left: .*BATCH_LARGE_THAN_L1"):
        check("float16_NORMAL_NORMAL", 128, 256, 256, (1, 1, 7), (1, 1, 7), **big)
    check("float16_single", 256, 256, 640, (1, 1, 2), (1, 1, 2), bias=1, **big)
    with pytest.raises(DeviceError, match="SINGLE_LARGE_THAN_L1 is for these"):
        check("float16_large", 256, 256, 640, (1, 1, 2), (1, 1, 2), **big)


def test_matrices_that_lie_apart() -> None:
    """matrixStrideA and B."""
    m, n, k, many, gap_a, gap_b = 24, 40, 48, 3, 24 * 48 + 10, 2 * 48 * 40
    rng = np.random.default_rng(2)
    left, right = random("float16", (many, m, k), rng), random("float16", (many, k, n), rng)
    lie_a, lie_b = np.zeros(many * gap_a, np.float16), np.zeros(many * gap_b, np.float16)
    for i in range(many):
        lie_a[i * gap_a : i * gap_a + m * k], lie_b[i * gap_b : i * gap_b + k * n] = left[i].ravel(), right[i].ravel()
    axes = (1, 1, many)
    got = np.zeros((many, m, n), np.float32)
    case = BatchCase(count_a=many, count_b=many, calls=1, stride_a=gap_a, stride_b=gap_b)
    t = batches(m, n, k, axes, axes, axes, (32, 32, 32))
    report = launch("float16_NORMAL_NORMAL", [lie_a, lie_b, np.zeros(n, np.float32)], got, t, case)
    assert not report["hazards"]
    near(got, left.astype(np.float64) @ right.astype(np.float64), k)
    with pytest.raises(DeviceError, match="matrixStrideA is for rows"):
        run("float16_tiles", 32, 32, 32, axes, axes, stride_a=2000)


def test_results_meet_what_is_there() -> None:
    """Added in global memory, twice; and sums that are kept in L0C from call to call."""
    got, exact, _ = run("float16_NORMAL_NORMAL", 40, 50, 30, (1, 1, 4), (1, 1, 4), atomic=1, calls=2)
    near(got, 2 * exact, 60)
    got, exact, _ = run("float16_NORMAL_NORMAL", 32, 32, 30, (1, 1, 1), (1, 1, 1), partial=1, calls=3)
    near(got, 3 * exact, 90)
    got, exact, _ = run("float16_NORMAL_NORMAL", 32, 20, 30, (1, 1, 3), (1, 1, 3), in_sequence=1)
    near(got, exact, 30)


def test_one_call_copies_many_matrices_at_once() -> None:
    """As one call or as 16: the same bytes and products, but a copy for each half of A and of B."""
    axes, calls = (1, 1, 16), 16
    _, _, once = run("float16_NORMAL_NORMAL", 32, 32, 64, axes, axes)
    t = batches(32, 32, 64, axes, axes, axes, (32, 32, 32))
    one = BatchCase(count_a=1, count_b=1, calls=calls, step_a=32 * 64, step_b=32 * 64, step_c=32 * 32)
    zeros = [np.zeros(16 * 32 * 64, np.float16)] * 2
    many = launch("float16_NORMAL_NORMAL", [*zeros, np.zeros(32, np.float32)], np.zeros(16 * 1024, np.float32), t, one)
    times = [x["profile"] for x in (once, many)]
    print([x["task_duration_us"] for x in times])
    counted = [x["counters"] for x in times]
    assert counted[0]["mte2_bytes"] == counted[1]["mte2_bytes"]
    assert [x["mte2_copies"] for x in counted] == [4, 32]
    assert times[0]["aic_mac_time_us"] == pytest.approx(times[1]["aic_mac_time_us"])


@pytest.mark.parametrize(
    ("kernel", "change", "message"),
    [("float16_NORMAL_NORMAL", {"count_a": 0}, "batchA is 0: at least 1, from SetBatchNum"),
     ("float16_NORMAL_NORMAL", {"count_b": 3}, "batchB is 3, which 4 is no multiple of"),
     ("float16_NORMAL_NORMAL", {"in_sequence": 1}, "enSequentialWrite is for matrices of one block"),
     ("float16_NORMAL_NORMAL", {"partial": 1, "calls": 2}, "enPartialSum with several products"),
     ("float16_BSNGD_BSNGD", {"count_a": 8, "count_b": 8}, "a call stays in one row of C's N and G, which has 4 "),
     ("float16_BNGS1S2_SBNGD", {"in_sequence": 1}, "enSequentialWrite"),
     ("float16_BNGS1S2_BNGS1S2", {"ALayoutInfoG": 5}, "axes of A and B that differ"),
     ("float16_BNGS1S2_BNGS1S2", {"ALayoutInfoG": 0}, "no axes of A: SetALayout"),
     ("float16_NORMAL_NORMAL", {"baseM": 0}, "the tiling that Init was given has zeros|baseM has to be above 0"),
     ("float16_to_tiles", {}, "C of tiles needs whole ones")],
)  # fmt: skip
def test_batches_that_cannot_be(kernel: str, change: dict[str, int], message: str) -> None:
    axes = (1, 1, 4)
    t = batches(40, 50, 30, axes, axes, axes, (32, 32, 32))
    case = BatchCase(count_a=4, count_b=4, calls=1)
    for name, value in change.items():
        setattr(t if hasattr(t, name) else case, name, value)
    with pytest.raises(DeviceError, match=message):
        launch(kernel, [np.zeros(9000, np.float16)] * 2 + [np.zeros(50, np.float32)], np.zeros(9000, np.float32), t,
               case)  # fmt: skip


HEAD = """#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
template <typename T, LayoutMode L> using X = MatmulType<TPosition::GM, CubeFormat::ND, T, false, L>;
constexpr MatmulConfig large = GetNormalConfig(false, false, false, BatchMode::BATCH_LARGE_THAN_L1);
extern "C" __global__ __mix__(1, 2) void refused(GM_ADDR a) {
  constexpr auto N = LayoutMode::NORMAL, S = LayoutMode::SBNGD, none = LayoutMode::NONE;
  GlobalTensor<float> c;
"""
BATCHES = "batches of this LayoutMode, type, position or configuration"


@pytest.mark.parametrize(
    ("types", "use", "message"),
    [("X<half, N>, X<half, S>, X<float, N>", "", BATCHES),
     ("X<half, N>, X<half, N>, X<float, none>", "", BATCHES),
     ("X<half, N>, X<half, N>, X<float, N>, X<float, none>, CFG_MDL", "", BATCHES),
     ("X<half, none>, X<half, N>, X<float, N>", "", BATCHES),
     ("X<half, S>, X<half, S>, X<float, S>, X<float, none>, large", "", BATCHES),
     ("X<int4b_t, N>, X<int4b_t, N>, X<int32_t, N>", "", BATCHES),
     ("X<half, N>, X<half, N>, X<float, N>", "mm.IterateAll(c);", "multiplied by IterateBatch alone"),
     ("X<half, none>, X<half, none>, X<float, none>", "mm.IterateBatch(c, 1, 1, false);", "need a LayoutMode"),
     ("X<half, S>, X<half, S>, X<float, S>", "mm.IterateNBatch(1, 1, 1, false);", "has to have isNBatch")],
)  # fmt: skip
def test_what_is_refused_is_named(types: str, use: str, message: str) -> None:
    source = f"{HEAD}  Matmul<{types}> mm;\n  mm.Init(nullptr);\n  {use}\n}}\n"
    with pytest.raises(KernelCompileError) as refused:
        device().compile(source, "refused.cpp", [])
    assert message in refused.value.hint + str(refused.value) + refused.value.log


def test_without_as_layout_an_mdl_matmul_is_no_batch() -> None:
    """cann-ops' batch_mat_mul_v3 keeps A in L1 and hands on B's type, with its LayoutMode, to such a Matmul."""
    types = "X<half, none>, X<half, N>, X<float, N>, X<float, none>, CFG_MDL"
    device().compile(f"{HEAD}  Matmul<{types}> mm;\n  mm.Init(nullptr);\n  mm.IterateAll(c);\n}}\n", "plain.cpp", [])


def choose(folder: Path, sizes: tuple[int, ...], axes: tuple[int, ...], most: int,
           normal: bool = False) -> tuple[int, CubeTiling, list[int]]:  # fmt: skip
    """What BatchMatmulTiling says, and bytes of the Unified Buffer, L1 and L0C."""
    t, needs = CubeTiling(), (ctypes.c_int32 * 3)()
    wish = (ctypes.c_int32 * 20)(*sizes, *axes, most)
    return library(folder).choose_batch(wish, int(normal), ctypes.byref(t), needs), t, list(needs)


def test_tilings_of_batches(tmp_path: Path) -> None:
    a, b, c = (2, 32, 1, 3, 64), (2, 256, 1, 3, 64), (2, 32, 1, 3, 256)
    code, t, needs = choose(tmp_path, (32, 256, 64, 1), (*a, *b, *c), 3)
    assert code == 0
    assert t.of(*(f"ALayoutInfo{x}" for x in "BSNGD")) == a
    assert t.of(*(f"BLayoutInfo{x}" for x in "BSNGD")) == b
    assert t.of("CLayoutInfoB", "CLayoutInfoS1", "CLayoutInfoN", "CLayoutInfoG", "CLayoutInfoS2") == c
    assert t.of("BatchNum", "singleCoreM", "singleCoreN", "singleCoreK", "isBias") == (3, 32, 256, 64, 1)
    assert needs == [2 * t.transLength, t.shareL1Size, t.shareL0CSize]
    code, t, _ = choose(tmp_path, (32, 256, 64, 0), (6, 0, 0, 0, 0, 2, *(0,) * 9), 6, normal=True)
    assert code == 0
    assert t.of("ALayoutInfoB", "ALayoutInfoS", "ALayoutInfoD") == (6, 32, 64)
    assert t.of("BLayoutInfoB", "BLayoutInfoS", "BLayoutInfoD", "CLayoutInfoB", "CLayoutInfoS2") == (2, 256, 64, 6, 256)
    assert choose(tmp_path, (32, 256, 64, 0), (*a, *b, 2, 32, 0, 3, 256), 3)[0] == -1  # an axis of 0
    assert choose(tmp_path, (32, 256, 64, 0), (*a, *b, *c), 0)[0] == -1
    assert choose(tmp_path, (32, 0, 64, 0), (*a, *b, *c), 3)[0] == -2
