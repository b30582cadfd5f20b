"""Instructions of cube cores against formulas of numpy: tiles, products, and results on their way out."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendopt_tune.build import toolkit
from ascendopt_tune.device.acl import Acl, Binary
from ascendopt_tune.device.options import LaunchOptions
from ascendopt_tune.errors import DeviceError, KernelCompileError

SOURCE = Path(__file__).resolve().parent / "kernels" / "cube.cpp"
Array = np.ndarray[Any, Any]
NAMES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "int8": np.int8,
         "int32": np.int32}  # fmt: skip
MAGIC = 7.0  # what the kernel fills L1 with


@cache
def device() -> Acl:
    return Acl(toolkit.virtual())


@cache
def kernels() -> Binary:
    acl = device()
    return acl.load(acl.compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    yield
    device().options = LaunchOptions()


class ProductCase(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint32) for n in ("m", "n", "k", "a_columns", "b_columns", "start", "out", "relu",
                                               "stride", "quant")] + [("word", ctypes.c_uint64)]  # fmt: skip


class TilesCase(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint32) for n in ("matrices", "rows", "columns", "matrix_stride", "row_stride",
                                               "c0_stride", "n_stride", "tiled_stride", "bytes")]  # fmt: skip


def launch(
    name: str, arrays: Sequence[Array], out: Array, *scalars: Any, blocks: int = 1, binary: Binary | None = None
) -> dict[str, Any]:
    """Runs a kernel on the arrays, ``out`` and the scalars, in this order; ``out`` gets what it wrote."""
    acl = device()
    pointers = [acl.malloc(max(32, x.nbytes)) for x in (*arrays, out)]
    try:
        for p, x in zip(pointers, (*arrays, out), strict=True):
            acl.memcpy_h2d(p, x.view(np.uint8))
        acl.launch((binary or kernels()).function(name), blocks, [*pointers, *scalars])
        acl.synchronize()
        acl.memcpy_d2h(out.view(np.uint8), pointers[-1])
        return acl.report()
    finally:
        for p in pointers:
            acl.free(p)


def clean(report: dict[str, Any]) -> None:
    assert not report["hazards"]
    assert not report["unwritten"]


def up(n: int, to: int) -> int:
    return -(-n // to) * to


def tiled(x: Array, width: int, rows: int) -> Array:
    """The columns of tiles of a matrix, one after another: ``rows`` rows of ``width`` elements each."""
    r, c = x.shape
    padded = np.zeros((rows, up(c, width)), x.dtype)
    padded[:r, :c] = x
    return padded.reshape(rows, -1, width).transpose(1, 0, 2)


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize(
    ("matrices", "rows", "columns", "row_stride", "extra", "n_stride"),
    [(1, 16, 32, 32, 0, 1), (1, 5, 37, 41, 3, 1), (3, 7, 9, 11, 0, 1), (2, 4, 70, 70, 1, 2), (1, 1, 100, 100, 0, 1)],
)
def test_rows_become_tiles(
    size: int, matrices: int, rows: int, columns: int, row_stride: int, extra: int, n_stride: int
) -> None:
    """Rows behind the last one stay as they were; columns behind the last one become 0."""
    dtype, c0 = {1: np.int8, 2: np.float16, 4: np.float32}[size], 32 // size
    rng = np.random.default_rng(columns)
    x = rng.integers(-100, 100, (matrices, rows, row_stride)).astype(dtype)
    high = up(rows, 16) * n_stride + extra
    one = high * up(columns, c0)  # elements of a matrix in L1
    out = np.zeros(up(matrices * one * size, 32) // 2, np.float16)
    case = TilesCase(matrices, rows, columns, rows * row_stride, row_stride, high, n_stride, one, out.nbytes)
    clean(launch(f"tiles_b{8 * size}", [x], out, case))
    expected = np.full(out.size, MAGIC, np.float16).view(dtype)
    for i, matrix in enumerate(x):
        for j, column in enumerate(tiled(matrix[:, :columns], c0, rows)):
            for r in range(rows):
                at = i * one + (j * high + r * n_stride) * c0
                expected[at : at + c0] = column[r]
    np.testing.assert_array_equal(out.view(dtype), expected)


def operands(dtype: str, m: int, n: int, k: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(m * 10007 + n * 101 + k)
    if dtype == "int8":
        a, b = (rng.integers(-128, 128, s).astype(np.int8) for s in ((m, k), (k, n)))
        return a, b, rng.integers(-1000, 1000, n).astype(np.int32)
    a, b = (rng.standard_normal(s).astype(NAMES[dtype]) for s in ((m, k), (k, n)))
    return a, b, rng.standard_normal(n).astype(np.float32)


def product(
    dtype: str, out: str, m: int, n: int, k: int, a_columns: int = 0, b_columns: int = 0, start: int = 0, **more: int
) -> tuple[Array, Array]:
    """(what the kernel makes of random operands, the exact sums). Float sums stay within k roundings of the largest."""
    a, b, bias = operands(dtype, m, n, k)
    way = more.pop("way", 0)
    width = {0: n, 1: 32 if out == "int8" else 16, 2: 8}[way]
    shape = (up(n, width) // width, m, width) if way else (m, n)
    result = np.zeros(shape, NAMES[out])
    stride = n if way == 0 else m * width * result.itemsize // 32
    case = ProductCase(m, n, k, a_columns, b_columns, start, way, more.get("relu", 0), stride, more.get("quant", 0),
                       more.get("word", 0))  # fmt: skip
    in_a = np.ascontiguousarray(a.T) if a_columns else a
    in_b = np.ascontiguousarray(b.T) if b_columns else b
    bias = bias.astype(np.float16) if start == 3 else bias
    clean(launch(f"{dtype}_{out}", [in_a, in_b, bias], result, case))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    return result, exact * (2 if start == 1 else 1) + (bias.astype(np.float64) if start >= 2 else 0)


def near(got: Array, exact: Array, k: int, step: float = 0.0) -> None:
    """``step``: the relative rounding of the result's type."""
    scale = np.abs(exact).max() + 8 * np.sqrt(k)
    np.testing.assert_allclose(got.astype(np.float64), exact, rtol=step, atol=scale * (k + 4) * 2.0**-24)


SHAPES = [(16, 16, 16), (32, 48, 64), (17, 33, 40), (1, 24, 70), (100, 7, 3)]


@pytest.mark.parametrize("n", [16, 33, 100])
def test_a_bias_that_becomes_wider(n: int) -> None:
    """Its copy counts blocks of half: those that lie in L1."""
    got, exact = product("float16", "float32", 16, n, 32, b_columns=1, start=3)
    near(got, exact, 32)


@pytest.mark.parametrize("start", [0, 1, 2], ids=["zero", "added", "bias"])
@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8"])
def test_products(dtype: str, m: int, n: int, k: int, start: int) -> None:
    """In every type, with tails, from zero, from what was there and from a bias. B as columns, as all types can."""
    out = "int32" if dtype == "int8" else "float32"
    got, exact = product(dtype, out, m, n, k, b_columns=1, start=start)
    if dtype == "int8":
        np.testing.assert_array_equal(got, exact.astype(np.int64))
    else:
        near(got, exact, k)


@pytest.mark.parametrize(("a_columns", "b_columns"), [(0, 0), (1, 0), (1, 1)])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_operands_that_are_turned(dtype: str, a_columns: int, b_columns: int) -> None:
    """LoadData with ifTranspose, and LoadDataWithTranspose for bytes, of which 32 x 32 are turned at once."""
    m, n, k = (64, 64, 96) if dtype == "int8" else (40, 56, 72)
    out = "int32" if dtype == "int8" else "float32"
    got, exact = product(dtype, out, m, n, k, a_columns, b_columns)
    if dtype == "int8":
        np.testing.assert_array_equal(got, exact.astype(np.int64))
    else:
        near(got, exact, k)


@settings(max_examples=12, deadline=None)
@given(st.integers(2, 130), st.integers(1, 130), st.integers(1, 200), st.booleans(), st.booleans())
def test_products_of_any_shape(m: int, n: int, k: int, a_columns: bool, b_columns: bool) -> None:
    near(*product("float16", "float32", m, n, k, int(a_columns), int(b_columns)), k)


@pytest.mark.parametrize("relu", [0, 1])
@pytest.mark.parametrize(
    ("dtype", "out", "quant", "step"),
    [("float16", "float32", 0, 0.0), ("float16", "float16", 1, 2.0**-11), ("bfloat16", "bfloat16", 2, 2.0**-8)],
)
@pytest.mark.parametrize("way", [0, 1], ids=["rows", "tiles"])
def test_results_are_cast_on_their_way_out(dtype: str, out: str, quant: int, step: float, relu: int, way: int) -> None:
    m, n, k = 24, 48, 32
    got, exact = product(dtype, out, m, n, k, b_columns=1, quant=quant, relu=relu, way=way)
    expected = np.maximum(exact, 0) if relu else exact
    near(got, tiled(expected, 16, m) if way else expected, k, step)


def test_float_results_may_leave_in_columns_of_8() -> None:
    got, exact = product("float16", "float32", 24, 32, 48, b_columns=1, way=2)
    near(got, tiled(exact, 8, 24), 48)


def word(scale: float, offset: int = 0, signed: bool = True) -> int:
    """A quantization word: a factor (of its fraction 10 bits count), an offset of 9 bits, the result's sign."""
    return int(np.float32(scale).view(np.uint32)) | (offset & 0x1FF) << 37 | int(signed) << 46


def factor(scale: float) -> np.float32:
    return np.array(np.float32(scale).view(np.uint32) & 0xFFFFE000, np.uint32).view(np.float32)[()]


@pytest.mark.parametrize("relu", [0, 1])
@pytest.mark.parametrize(
    ("dtype", "out", "quant", "offset"),
    [("int8", "float16", 3, 0), ("float16", "int8", 5, 0), ("int8", "int8", 7, 3), ("int8", "int8", 7, -9)],
)
def test_results_are_requantized(dtype: str, out: str, quant: int, offset: int, relu: int) -> None:
    scale = 0.0123 if out == "float16" else 0.0017 if dtype == "int8" else 3.7
    m, n, k = 32, 64, 32
    got, exact = product(dtype, out, m, n, k, b_columns=1, quant=quant, relu=relu, word=word(scale, offset))
    scaled = exact.astype(np.float32) * factor(scale)
    scaled = np.maximum(scaled, 0) if relu else scaled
    if out == "float16":
        np.testing.assert_array_equal(got, np.clip(scaled, -65504, 65504).astype(np.float16))
    else:
        expected = np.clip(np.clip(np.rint(scaled), -256, 255) + offset, -128, 127)
        assert np.abs(got - expected).max() <= (0 if dtype == "int8" else 1)  # a float sum may round the other way


def test_8_bit_results_leave_in_columns_of_32() -> None:
    got, exact = product("int8", "int8", 32, 64, 32, b_columns=1, quant=7, word=word(0.0017), way=1)
    expected = np.clip(np.rint(exact.astype(np.float32) * factor(0.0017)), -128, 127)
    np.testing.assert_array_equal(got, tiled(expected, 32, 32))


@pytest.mark.parametrize("by", [0, 1, 2], ids=["the call", "the register", "one for all"])
def test_a_word_for_each_column(by: int) -> None:
    m, n, k = 20, 48, 64
    a, b, _ = operands("int8", m, n, k)
    scales = np.linspace(0.001, 0.03, 256).astype(np.float32)
    words = np.array([word(float(s)) for s in scales], np.uint64)
    out = np.zeros((m, n), np.float16)
    case = ProductCase(m, n, k, 0, 1, 0, 0, 0, n, 4, word(0.01))
    clean(launch("dequantized", [a, np.ascontiguousarray(b.T), words], out, ctypes.c_uint32(by), case))
    exact = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.float32)
    factors = np.array([factor(0.01 if by == 2 else float(s)) for s in scales[:n]], np.float32)
    np.testing.assert_array_equal(out, (exact * factors).astype(np.float16))


def test_words_that_no_quantization_asks_for_keep_the_result_back() -> None:
    """Fixpipe with a tensor of words, and a way of quantization that takes one for all (asc-devkit, Fixpipe v2)."""
    a, b, _ = operands("int8", 20, 48, 64)
    words = np.full(256, word(0.01), np.uint64)
    out = np.full((20, 48), 7, np.float16)
    case = ProductCase(20, 48, 64, 0, 1, 0, 0, 0, 48, 4, word(0.01))
    clean(launch("dequantized", [a, np.ascontiguousarray(b.T), words], out, ctypes.c_uint32(3), case))
    assert (out == 7).all()


def test_a_result_may_be_the_next_products_operand() -> None:
    m, n = 48, 32
    a, b, bias = operands("float16", m, n, n)
    out = np.zeros((m, n), np.float32)
    case = ProductCase(m, n, n, 0, 1, 0, 0, 0, n, 0, 0)
    clean(launch("twice", [a, np.ascontiguousarray(b.T), bias], out, case))
    first = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float16)
    np.testing.assert_allclose(out, first.astype(np.float64) @ b.astype(np.float64), atol=0.05)


def test_blocks_add_to_one_result() -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-8, 8, (5, 16, 16)).astype(np.float16) for _ in range(2))
    out = np.zeros((16, 16), np.float32)
    clean(launch("split_k", [a, b], out, blocks=5))
    np.testing.assert_array_equal(out, np.einsum("bmk,bnk->mn", a.astype(np.float64), b.astype(np.float64)))


def test_infinities_and_nan_go_through_a_product() -> None:
    a, b, bias = (np.zeros(s, np.float16) for s in ((16, 16), (16, 16), (16,)))
    a[0, 0], a[1, 1], a[2, 2], b[:] = np.inf, np.nan, 60000, 1
    b[0, 3] = 0  # inf * 0
    out = np.zeros((16, 16), np.float32)
    launch("float16_float32", [a, np.ascontiguousarray(b.T), bias.astype(np.float32)], out,
           ProductCase(16, 16, 16, 0, 1, 0, 0, 0, 16, 0, 0))  # fmt: skip
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32))


def shortened(x: Array, ties_to_zero: bool) -> Array:
    """Rounded to 11 bits of fraction."""
    fraction, exponent = np.frexp(x.astype(np.float64))
    scaled = np.abs(fraction) * 2**12
    whole = np.ceil(scaled - 0.5) if ties_to_zero else np.rint(scaled)
    return np.ldexp(np.sign(fraction) * whole, exponent - 12)


@pytest.mark.parametrize("mode", [1, 2, 3])
def test_floats_are_rounded_before_they_are_multiplied(mode: int) -> None:
    rng = np.random.default_rng(mode)
    a = (rng.integers(-(2**14), 2**14, (16, 16)) / 2**10).astype(np.float32)  # of 14 bits: many lie halfway
    eye, bias, out = np.eye(16, dtype=np.float32), np.zeros(16, np.float32), np.zeros((16, 16), np.float32)
    case = ProductCase(16, 16, 16, 0, 1, 0, 0, 0, 16, 0, 0)
    clean(launch("rounded_first", [a, eye, bias], out, ctypes.c_uint32(mode), case))
    np.testing.assert_array_equal(out, a if mode == 3 else shortened(a, mode == 2))


KERNEL = (
    '#include "kernel_operator.h"\nusing namespace AscendC;\nextern "C" __global__ __aicore__ void k(GM_ADDR x) {%s}\n'
)
TENSORS = (
    "LocalTensor<%s> a(TPosition::A2, 0, 64), b(TPosition::B2, 0, 64); LocalTensor<float> c(TPosition::CO1, 0, 64);"
)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (TENSORS % "half" + "LoadData(a, b, LoadData3DParamsV1<half>());", "LoadData3DParamsV1 does not exist on"),
        (TENSORS % "int16_t" + "Mmad(c, a, b, MmadParams());", "AscendC::Mmad of these types is not covered"),
        (TENSORS % "half" + "MmadWithSparse(c, a, b, MmadParams());", "AscendC::MmadWithSparse takes int8_t"),
        (TENSORS % "half" + "LoadDataWithSparse(b, a, a, LoadData2DParams());", "LoadDataWithSparse takes int8_t"),
        ("LocalTensor<half> a; LoadImageToLocal(a, 1);", "AscendC::LoadImageToLocal: not covered"),
    ],
)
def test_what_is_missing_is_refused_by_name_when_a_kernel_is_built(body: str, message: str) -> None:
    with pytest.raises(KernelCompileError) as error:
        device().compile(KERNEL % body, "k.cpp")
    assert message in error.value.log


def test_a_kernel_says_itself_which_cores_it_is_for() -> None:
    """By its declaration, by KERNEL_TASK_TYPE, or where it says nothing by its positions; macros tell the pass."""
    body = """%s TBuf<TPosition::%s> b; bool cube = false; if ASCEND_IS_AIC { cube = true; }
    #ifdef __DAV_C220_CUBE__
    static_assert(g_coreType == AIC);
    #else
    static_assert(g_coreType == AIV && __DAV_C220_VEC__);
    #endif
    if (cube != (g_coreType == AIC)) b.Get<half>().SetValue(0, 0);
    """
    multiplies = "LocalTensor<half> a(TPosition::A2, 0, 256); if (x) Mmad(LocalTensor<float>(), a, a, MmadParams());"
    compiled = {}
    types = "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);", "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);"
    for said, position in ((types[0], "VECCALC"), ("", "A1"), ("", "VECCALC"), (types[1], "A1"),
                           (multiplies, "VECCALC")):  # fmt: skip
        text = KERNEL % (body % (said, position))
        acl = device()
        acl.launch(acl.load(acl.compile(text, "k.cpp")).function("k"), 1, [0])
        acl.synchronize()
        compiled[said[-14:-2], position] = "aic_time_us" in acl.report()["profile"]
    assert list(compiled.values()) == [True, True, False, False, True]
    both = device().load(device().compile(KERNEL % "" + "__global__ __cube__ void other(GM_ADDR x) {}", "k.cpp"))
    for name, cube in (("k", False), ("other", True)):  # of one file
        device().launch(both.function(name), 1, [0])
        device().synchronize()
        assert ("aic_time_us" in device().report()["profile"]) is cube


def test_a_product_on_a_vector_core_ends_the_launch() -> None:
    text = KERNEL % ("KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);" + TENSORS % "half" +
                     "MmadParams p; p.m = p.n = p.k = 16; Mmad(c, a, b, p);")  # fmt: skip
    acl = device()
    acl.launch(acl.load(acl.compile(text, "k.cpp")).function("k"), 1, [0])
    with pytest.raises(DeviceError, match="Mmad needs a cube core"):
        acl.synchronize()


FLAGS = "for (int i = 0; i < 3; i++) %sFlag<HardEvent::M_MTE1>(i);"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (FLAGS % "Wait" + FLAGS % "Set" + "if (pipe.FetchEventID(HardEvent::M_MTE1) != 3) *(volatile int*)0 = 0;", ""),
        (FLAGS % "Set" + "PipeBarrier<PIPE_ALL>();", "twice with no WaitFlag"),
        (FLAGS % "Wait" + "pipe.Destroy();", "nobody has raised it again"),
        (FLAGS % "Wait", "nobody has raised it again"),
        ("pipe.Destroy();" + FLAGS % "Wait", "has no SetFlag"),
        ("pipe.Destroy(); pipe.Init();" + FLAGS % "Wait" + FLAGS % "Set", ""),
        ("pipe.Destroy();" + FLAGS % "Set" + "PipeBarrier<PIPE_ALL>();" + FLAGS % "Wait", ""),
    ],
)
def test_a_pipe_on_a_cube_core_raises_the_first_flags_of_the_matrix_unit(body: str, message: str) -> None:
    """Ids 0 to 2 of M_MTE1, from its begin to its end (asc-devkit, kernel_tpipe_impl.h)."""
    acl = device()
    text = KERNEL % ("KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY); TPipe pipe;" + body)
    acl.launch(acl.load(acl.compile(text, "k.cpp")).function("k"), 1, [0])
    if not message:
        acl.synchronize()
        assert acl.report()["errors"] == []
        return
    with pytest.raises(DeviceError, match=message):
        acl.synchronize()


def test_a_cube_core_fills_no_global_memory() -> None:
    """It has no Unified Buffer to copy from, and the call returns (asc-devkit, init_global_memory_v220_impl.h)."""
    text = KERNEL % ("TPipe pipe; GlobalTensor<float> y; y.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x));"
                     "%s Fill(y, 8, 2.0f); InitGlobalMemory(y, 8, 2.0f); InitOutput(y, 8, 2.0f);")  # fmt: skip
    acl = device()
    for kernel_type, expected in (("AIC_ONLY", 1.0), ("AIV_ONLY", 2.0)):
        binary = acl.load(acl.compile(text % f"KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_{kernel_type});", "k.cpp"))
        x = np.ones(8, np.float32)
        at = acl.malloc(x.nbytes)
        acl.memcpy_h2d(at, x)
        acl.launch(binary.function("k"), 1, [at])
        acl.synchronize()
        acl.memcpy_d2h(x, at)
        acl.free(at)
        assert (x == expected).all()
