"""Elementwise vector calls against numpy: every call form, masks, strides, dtypes, overlap, documented rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from api_kernel import ApiKernel
from hypothesis import given
from hypothesis import strategies as st
from vector_calls import (
    BITS,
    COUNT,
    COUNTER_INSIDE,
    COUNTER_REGISTER,
    FEW,
    FLOATS,
    FORMS,
    MASK,
    NUMBERS,
    OUTPUT,
    REGISTER,
    SECOND_SOURCE,
    Call,
    bits_of,
    calls,
    same,
    two_sources,
    values,
    whole,
    working,
)

from ascendopt_tune.errors import DeviceError

Array = npt.NDArray[Any]


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("elementwise")


def check(kernel: ApiKernel, number: int, call: Call, dtype: str, f: Callable[..., Array], sources: list[Array], *,
          scalar: float = 0, reads_dst: bool = False, ulps: int = 0, mode: int = 0) -> None:  # fmt: skip
    """Runs the call and f(lanes of the sources...) in numpy; every other element must be untouched."""
    raw = two_sources(sources[0], sources[1] if len(sources) > 1 else sources[0][:0])
    before = values(dtype, OUTPUT // np.dtype(dtype).itemsize * 2, 77)
    after = kernel.run(call.params(number, dtype, scalar=bits_of(scalar, dtype), mode=mode), raw, before)
    lanes = [working(x[call.lanes(1 + i, x.itemsize)]) for i, x in enumerate(sources)]
    at = call.lanes(0, before.itemsize)
    expected = before.copy()
    with np.errstate(all="ignore"):
        expected[at] = (f(working(before[at]), *lanes) if reads_dst else f(*lanes)).astype(dtype)
    same(after, expected, ulps)


# ---- one source ----

UNARY: dict[str, tuple[int, Callable[[Array], Array], tuple[str, ...], int]] = {
    "Exp": (0, lambda x: np.exp(x.astype(np.float64)), FLOATS, 1),
    "Ln": (1, lambda x: np.log(x.astype(np.float64)), FLOATS, 1),
    "Abs": (2, np.abs, FLOATS, 0),
    "Sqrt": (5, np.sqrt, FLOATS, 0),
    "Relu": (6, lambda x: np.where(x < 0, 0, x), ("float32", "float16", "int32"), 0),
    "Not": (7, np.invert, ("int16", "uint16"), 0),
}


def source_bytes(dtype: str) -> int:
    return SECOND_SOURCE // np.dtype(dtype).itemsize


@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n, (_, _, ds, _) in UNARY.items() for d in ds])
@given(st.data())
@FEW
def test_unary(kernel: ApiKernel, name: str, dtype: str, data: st.DataObject) -> None:
    number, f, _, ulps = UNARY[name]
    call = data.draw(calls(256 // np.dtype(dtype).itemsize))
    x = values(dtype, source_bytes(dtype), data.draw(st.integers(0, 999)), positive=name in ("Ln", "Sqrt"))
    check(kernel, number, call, dtype, f, [x], ulps=ulps)


@pytest.mark.parametrize(("number", "f"), [(3, lambda x: 1 / x), (4, lambda x: 1 / np.sqrt(x))])
@pytest.mark.parametrize(("dtype", "error"), [("float32", 2.0**-12), ("float16", 2.0**-9)])
def test_coarse_reciprocals(
    kernel: ApiKernel, number: int, f: Callable[[Array], Array], dtype: str, error: float
) -> None:
    """Reciprocal and Rsqrt are near, worse than the documented bounds 1e-4 and 1e-3, and exact for powers of four."""
    x = np.exp(np.random.default_rng(0).uniform(-5, 5, 2000)).astype(dtype)
    y = kernel.run(whole(2000).params(number, dtype), x, np.zeros(2000, dtype)).astype(np.float64)
    relative = np.abs(y * (1 / f(x.astype(np.float64))) - 1)
    assert relative.max() <= error * 1.2
    assert relative.max() > (1e-4 if dtype == "float32" else 1e-3)
    powers = np.array([4.0**k for k in range(-5, 6)]).astype(dtype)
    y = kernel.run(whole(powers.size).params(number, dtype), powers, np.zeros_like(powers))
    same(y, f(powers.astype(np.float32)).astype(dtype))


# ---- a scalar ----


def wrap(f: Callable[[Array, Any], Array]) -> Callable[[Array, Any], Array]:
    """Integer arithmetic that wraps around."""

    def wrapped(x: Array, v: Any) -> Array:
        return f(x.astype(np.int64), v) if x.dtype.kind in "iu" else f(x, np.float32(v))

    return wrapped


SCALAR: dict[str, tuple[int, Callable[[Array, Any], Array], tuple[str, ...]]] = {
    "Adds": (10, wrap(lambda x, v: x + v), NUMBERS),
    "Muls": (11, wrap(lambda x, v: x * v), NUMBERS),
    "Maxs": (12, wrap(np.maximum), NUMBERS),
    "Mins": (13, wrap(np.minimum), NUMBERS),
    "LeakyRelu": (14, lambda x, v: np.where(x >= 0, x, x * np.float32(v)), FLOATS),
}


@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n, (_, _, ds) in SCALAR.items() for d in ds])
@given(st.data())
@FEW
def test_scalar(kernel: ApiKernel, name: str, dtype: str, data: st.DataObject) -> None:
    number, f, _ = SCALAR[name]
    call = data.draw(calls(256 // np.dtype(dtype).itemsize))
    v = data.draw(
        st.sampled_from([0, 1, -3, 7]) if np.dtype(dtype).kind == "i" else st.sampled_from([0.0, 0.5, -1.75, 300.0])
    )
    x = values(dtype, source_bytes(dtype), data.draw(st.integers(0, 999)))
    check(kernel, number, call, dtype, lambda x: f(x, v), [x], scalar=v)


@pytest.mark.parametrize("dtype", ["int16", "uint16", "int32", "uint32"])
@pytest.mark.parametrize("number", [15, 16, 18])
@given(st.data())
@FEW
def test_shift(kernel: ApiKernel, number: int, dtype: str, data: st.DataObject) -> None:
    width = np.dtype(dtype).itemsize * 8
    v = data.draw(st.sampled_from([0, 1, 5, width - 1, width]))
    forms = (MASK,) if number == 18 else FORMS
    call = data.draw(calls(256 // np.dtype(dtype).itemsize, forms))
    x = values(dtype, source_bytes(dtype), data.draw(st.integers(0, 999)))

    def f(x: Array) -> Array:
        x = x.astype(np.int64)
        if number == 15:
            return x << v
        # AscendC reference, ShiftRight: roundEn has an effect on int16_t and int32_t only.
        return (x + (1 << v >> 1 if number == 18 and dtype.startswith("int") else 0)) >> v

    check(kernel, number, call, dtype, f, [x], scalar=v)


@pytest.mark.parametrize("dtype", FLOATS)
@given(st.data())
@FEW
def test_axpy(kernel: ApiKernel, dtype: str, data: st.DataObject) -> None:
    call = data.draw(calls(256 // np.dtype(dtype).itemsize))
    x = values(dtype, source_bytes(dtype), data.draw(st.integers(0, 999)))
    check(kernel, 17, call, dtype, lambda d, x: x * np.float32(0.75) + d, [x], scalar=0.75, reads_dst=True)


# ---- two sources ----


def exact(f: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda x, y: f(x.astype(np.int64), y.astype(np.int64)) if x.dtype.kind in "iu" else f(x, y)


def relu(x: Array) -> Array:
    return np.where(x < 0, np.zeros_like(x), x)


BINARY: dict[str, tuple[int, Callable[[Array, Array], Array], tuple[str, ...]]] = {
    "Add": (20, exact(np.add), NUMBERS),
    "Sub": (21, exact(np.subtract), NUMBERS),
    "Mul": (22, exact(np.multiply), NUMBERS),
    "Div": (23, np.divide, FLOATS),
    "Max": (24, np.maximum, NUMBERS),
    "Min": (25, np.minimum, NUMBERS),
    "And": (26, np.bitwise_and, ("int16", "uint16")),
    "Or": (27, np.bitwise_or, ("int16", "uint16")),
    "AddRelu": (28, lambda x, y: relu(x + y), ("float32", "float16", "int16")),
    "SubRelu": (29, lambda x, y: relu(x - y), ("float32", "float16", "int16")),
}
TERNARY: dict[str, tuple[int, Callable[[Array, Array, Array], Array]]] = {
    "FusedMulAdd": (30, lambda d, x, y: x * d + y),
    "MulAddRelu": (31, lambda d, x, y: relu(x * d + y)),
    "MulAddDst": (32, lambda d, x, y: x * y + d),
}


@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n, (_, _, ds) in BINARY.items() for d in ds])
@given(st.data())
@FEW
def test_binary(kernel: ApiKernel, name: str, dtype: str, data: st.DataObject) -> None:
    number, f, _ = BINARY[name]
    call = data.draw(calls(256 // np.dtype(dtype).itemsize))
    seed = data.draw(st.integers(0, 999))
    sources = [values(dtype, source_bytes(dtype), seed), values(dtype, source_bytes(dtype), seed + 1)]
    check(kernel, number, call, dtype, f, sources)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", TERNARY)
@given(st.data())
@FEW
def test_ternary(kernel: ApiKernel, name: str, dtype: str, data: st.DataObject) -> None:
    number, f = TERNARY[name]
    call = data.draw(calls(256 // np.dtype(dtype).itemsize))
    seed = data.draw(st.integers(0, 999))
    sources = [values(dtype, source_bytes(dtype), seed), values(dtype, source_bytes(dtype), seed + 1)]
    check(kernel, number, call, dtype, f, sources, reads_dst=True)


def test_functions_as_template_arguments(kernel: ApiKernel) -> None:
    x, y = (np.random.default_rng(i).uniform(-2, 2, 300).astype(np.float32) for i in range(2))
    check(kernel, 33, whole(300), "float32", lambda x: np.exp(x.astype(np.float64)), [x], ulps=1)
    check(kernel, 34, whole(300), "float32", lambda x: x * np.float32(3), [x], scalar=3)
    check(kernel, 35, whole(300), "float32", np.add, [x, y])


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("blocks", [0, 1, 3, 8, -2])
def test_overlap(kernel: ApiKernel, dtype: str, blocks: int) -> None:
    """A destination over its own source: a repeat reads all of its lanes before it writes any."""
    size = np.dtype(dtype).itemsize
    n, per, shift = 900, 256 // size, blocks * 32 // size
    area = values(dtype, 4096, 5)
    source, destination = 1024, 1024 + shift
    params = whole(n).params(10, dtype, scalar=bits_of(3, dtype), offset=destination * size, shifted=source * size + 1)
    after = kernel.run(params, area[:8], area)
    expected = area.copy()
    for i in range(0, n, per):
        m = min(per, n - i)
        with np.errstate(all="ignore"):
            row = working(expected[source + i : source + i + m]) + working(np.array([3], dtype))
        expected[destination + i : destination + i + m] = row.astype(dtype)
    same(after, expected)


# ---- filling ----

FILLED = ("float32", "float16", "int32", "int16", "uint16", "uint32")


@pytest.mark.parametrize("dtype", FILLED)
@given(st.data())
@FEW
def test_duplicate(kernel: ApiKernel, dtype: str, data: st.DataObject) -> None:
    call = data.draw(calls(256 // np.dtype(dtype).itemsize, (COUNT, MASK, BITS)))
    check(kernel, 40, call, dtype, lambda x: np.full_like(x, 5), [values(dtype, source_bytes(dtype), 0)], scalar=5)


@pytest.mark.parametrize("dtype", FILLED)
@pytest.mark.parametrize(("repeat", "blk", "rep"), [(1, 1, 8), (5, 1, 8), (3, 2, 16), (4, 1, 11), (0, 1, 8)])
def test_brcb(kernel: ApiKernel, dtype: str, repeat: int, blk: int, rep: int) -> None:
    x, before = values(dtype, 64, 1), values(dtype, 4096, 2)
    call = Call(MASK, 0, repeat, (blk, 1, 1), (rep, 8, 8), 0)
    expected = before.copy()
    per = 32 // x.itemsize
    for i in range(8 * repeat):
        start = (i // 8 * rep + i % 8 * blk) * per
        expected[start : start + per] = x[i]
    same(kernel.run(call.params(41, dtype), x, before), expected)


@pytest.mark.parametrize("dtype", NUMBERS)
@given(st.data())
@FEW
def test_index(kernel: ApiKernel, dtype: str, data: st.DataObject) -> None:
    """CreateVecIndex numbers lanes from the first value on, masked ones too; ArithProgression has a step."""
    lanes = 256 // np.dtype(dtype).itemsize
    call = data.draw(calls(lanes, (COUNT, MASK, BITS)))
    call = replace(call, n=max(call.n, lanes // 8)) if call.form == MASK else call
    n = 2048
    every = Call(BITS, 0, call.repeat, (1, 1, 1), (8, 8, 8), call.bits if call.form == BITS else (1 << call.n) - 1)
    numbers = (np.arange(call.n) if call.form == COUNT else every.lanes(0, np.dtype(dtype).itemsize)).astype(np.float32)
    source = values(dtype, source_bytes(dtype), 0)
    check(kernel, 42, call, dtype, lambda x: numbers - 3, [source], scalar=-3)
    if call.form == COUNT:
        padded = call if call.n <= lanes // 8 else replace(call, n=-(-call.n // (lanes // 8)) * (lanes // 8))
        numbers = np.arange(padded.n, dtype=np.float32)
        check(kernel, 43, padded, dtype, lambda x: numbers * 4 - 3, [source], scalar=-3, mode=4)
    assert numbers.max() <= n


@pytest.mark.parametrize("dtype", FILLED)
@given(st.data())
@FEW
def test_copy(kernel: ApiKernel, dtype: str, data: st.DataObject) -> None:
    call = data.draw(calls(256 // np.dtype(dtype).itemsize, (MASK, BITS, REGISTER)))
    check(kernel, 44, call, dtype, lambda x: x, [values(dtype, source_bytes(dtype), 3)])


@pytest.mark.parametrize("form", [COUNTER_REGISTER, COUNTER_INSIDE])
@pytest.mark.parametrize("n", [5, 64, 100])
def test_copy_counts_per_repeat(kernel: ApiKernel, form: int, n: int) -> None:
    """In counter mode the mask is the number of elements of every repeat, and repeats count."""
    x, before = values("float32", 2048, 1), values("float32", 2048, 2)
    call = Call(form, n, 3, (1, 1, 1), (20, 16, 8), 0)
    expected = before.copy()
    for r in range(3):
        expected[r * 160 : r * 160 + n] = x[r * 128 : r * 128 + n]
    same(kernel.run(call.params(44, "float32"), x, before), expected)


# ---- masks ----


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_mask_state(kernel: ApiKernel, mode: int) -> None:
    """The mask register: a number of lanes; as a masked call left it; reset by a count form; under a count form."""
    x, before = values("float32", 128, 1), np.full(128, 9, np.float32)
    bits = 0xF0F00F0F12345678
    call = Call(BITS, 10, 1, (1, 1, 1), (8, 8, 8), bits)
    after = kernel.run(call.params(62, "float32", mode=mode, scalar=bits_of(1.5, "float32")), x, before)
    on = np.array([bits >> i & 1 for i in range(64)], bool)
    if mode == 0:
        on = np.arange(64) < 10
    if mode >= 2:
        on = np.ones(64, bool)
    expected = before.copy()
    expected[:64][on] = x[:64][on] + np.float32(1.5)
    if mode == 3:
        on = np.array([bits >> i & 1 for i in range(64)], bool)
        expected[:64][on] = x[:64][on] * 2
    same(after, expected)


#: Calls of kernels/elementwise.cpp, and the lanes that they leave enabled (asc-devkit, impl/basic_api/dav_c220: what
#: they hand to SetMask last). The mask form of ReduceSum leaves the number of its repeats, 5, as it stands.
LEFT = [(4, range(10)), (5, range(2)), (6, range(64)), (7, range(1)), (8, range(6)), (9, (0, 2)), (10, range(10)),
        (11, range(12))]  # fmt: skip


@pytest.mark.parametrize(("which", "lanes"), LEFT)
def test_the_mask_that_other_calls_leave(kernel: ApiKernel, which: int, lanes: tuple[int, ...] | range) -> None:
    x, before = values("float32", 512, 1), np.full(128, 9, np.float32)
    call = Call(BITS, 10, 1, (1, 1, 1), (8, 8, 8), 0)
    expected = before.copy()
    expected[list(lanes)] = x[list(lanes)] + np.float32(1.5)
    same(kernel.run(call.params(62, "float32", mode=which, scalar=bits_of(1.5, "float32")), x, before), expected)


# ---- rules ----


def test_count_zero_and_mask_zero_do_nothing(kernel: ApiKernel) -> None:
    x, before = values("float32", 64, 1), values("float32", 64, 2)
    same(kernel.run(whole(0).params(10, "float32"), x, before), before)
    for form in (BITS, COUNTER_REGISTER, COUNTER_INSIDE):
        call = Call(form, 0, 1, (1, 1, 1), (8, 8, 8), 0)
        same(kernel.run(call.params(10, "float32"), x, before), before)


@pytest.mark.parametrize("n", [1, 8, 9, 63, 64, 65, 130, 2000])
def test_a_progression_fills_whole_blocks(kernel: ApiKernel, n: int) -> None:
    """Beyond one block the last one is filled (asc-devkit, arithprogression_common_impl.h)."""
    before = np.full(2048, 7, np.int32)
    after = kernel.run(whole(n).params(43, "int32", scalar=5, mode=3), before[:8], before)
    filled = n if n <= 8 else -(-n // 8) * 8
    same(after, np.concatenate([5 + 3 * np.arange(filled, dtype=np.int32), before[filled:]]))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (whole(64).params(10, "float32", offset=4), "not aligned to 32 B"),
        (Call(MASK, 5, 1, (1, 1, 1), (8, 8, 8), 0).params(42, "float32"), "less than a block of 8"),
        (Call(MASK, 64, 255, (1, 1, 1), (8, 255, 8), 0).params(10, "float32"), "past the end"),
        (whole(64).params(2, "int32"), "Abs does not take int32_t"),
        (whole(64).params(7, "float32"), "Not does not take float"),
        (whole(64).params(23, "int32"), "Div does not take int32_t"),
        (whole(64).params(28, "int32"), "AddRelu does not take int32_t"),
        (whole(64).params(10, "uint16"), "Adds does not take uint16_t"),
        (whole(64).params(14, "int16"), "LeakyRelu does not take int16_t"),
        (whole(64).params(15, "int16", scalar=17), r"outside \[0, 16\]"),
        (whole(64).params(16, "int32", scalar=-1), r"outside \[0, 32\]"),
        (whole(64).params(42, "uint32"), "CreateVecIndex does not take uint32_t"),
        (Call(MASK, 64, 1, (0, 1, 1), (8, 8, 8), 0).params(41, "float32"), "dstBlkStride 0"),
        (Call(MASK, 64, 2, (1, 1, 1), (8, 4096, 8), 0).params(44, "float32"), r"\[0, 4095\]"),
    ],
)
def test_rules(kernel: ApiKernel, params: list[int], message: str) -> None:
    x = np.zeros(64, np.float32)
    with pytest.raises(DeviceError, match=message):
        kernel.run(params, x, x)


def test_bitwise_count_of_32_bit_integers_is_in_half_words(kernel: ApiKernel) -> None:
    x, y = values("int32", 64, 1), values("int32", 64, 2)
    after = kernel.run(whole(64).params(26, "int32"), two_sources(x, y), np.zeros(64, np.int32))
    same(after, np.where(np.arange(64) < 32, x & y, 0).astype(np.int32))
