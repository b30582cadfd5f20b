"""Compare, Select and the compare mask register against numpy."""

from __future__ import annotations

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
    FEW,
    FLOATS,
    MASK,
    SECOND_SOURCE,
    SELECTION,
    Call,
    bits_of,
    calls,
    same,
    two_sources,
    values,
    whole,
)

from ascendopt_tune.errors import DeviceError

Array = npt.NDArray[Any]

COMPARE, COMPARE_SCALAR, TO_REGISTER, SELECT, SELECT_SCALAR, SELECT_REGISTERS, SELECT_BYTES = range(50, 57)
MODES = [np.less, np.greater, np.equal, np.less_equal, np.greater_equal, np.not_equal]


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("elementwise")


def few_values(dtype: str, n: int, seed: int) -> Array:
    """Values that are often equal, with NaN."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 4, n).astype(np.float64)
    if np.dtype(dtype).kind == "f":
        x[rng.random(n) < 0.1] = np.nan
    return x.astype(dtype)


def all_lanes(call: Call, itemsize: int) -> Call:
    """The call without its mask: comparisons ignore it."""
    if call.form == COUNT:
        lanes = 256 // itemsize
        return Call(COUNT, call.n // lanes * lanes, 0, call.blk, call.rep, 0)
    return Call(BITS, 0, call.repeat, call.blk, call.rep, (1 << 256 // itemsize) - 1)


@pytest.mark.parametrize("scalar", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@given(st.data())
@FEW
def test_compare(kernel: ApiKernel, dtype: str, scalar: bool, data: st.DataObject) -> None:
    """Bits follow each other, one a lane of whole repeats."""
    size = np.dtype(dtype).itemsize
    call = data.draw(calls(256 // size, (COUNT, MASK, BITS)))
    mode = 2 if dtype == "int32" else data.draw(st.integers(0, 5))
    seed = data.draw(st.integers(0, 999))
    x, y = few_values(dtype, 8000, seed), few_values(dtype, 6000, seed + 1)
    whole_call = all_lanes(call, size)
    left = x[whole_call.lanes(1, size)]
    right = np.array([2], dtype) if scalar else y[whole_call.lanes(2, size)]
    before = np.full(1024, 0x5A, np.uint8)
    params = call.params(COMPARE_SCALAR if scalar else COMPARE, dtype, mode=mode, scalar=bits_of(2, dtype))
    after = kernel.run(params, two_sources(x, y), before)
    expected = before.copy()
    bits = np.packbits(MODES[mode](left, right), bitorder="little")
    expected[: bits.size] = bits
    same(after, expected)


@pytest.mark.parametrize("dtype", FLOATS)
@given(st.data())
@FEW
def test_compare_to_register(kernel: ApiKernel, dtype: str, data: st.DataObject) -> None:
    size = np.dtype(dtype).itemsize
    call = data.draw(calls(256 // size, (MASK, BITS)))
    call = Call(call.form, call.n, 1, call.blk, call.rep, call.bits)
    mode = data.draw(st.integers(0, 5))
    x, y = few_values(dtype, 4000, 1), few_values(dtype, 4000, 2)
    after = kernel.run(call.params(TO_REGISTER, dtype, mode=mode), two_sources(x, y), np.zeros(128, np.uint8))
    lanes = np.zeros(128, bool)
    lane = Call(call.form, call.n, 1, (1, 1, 1), (8, 8, 8), call.bits).lanes(0, size)
    lanes[lane] = MODES[mode](x[call.lanes(1, size)], y[call.lanes(2, size)])
    same(after[:16], np.packbits(lanes, bitorder="little"))


def selection_source(x: Array, y: Array, selection: Array) -> Array:
    raw = two_sources(x, y)
    raw[SELECTION:] = np.resize(selection, 65536 - SELECTION)
    return raw


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("dtype", FLOATS)
@given(st.data())
@FEW
def test_select(kernel: ApiKernel, dtype: str, mode: int, data: st.DataObject) -> None:
    """Mode 0 uses the same bits every repeat, modes 1 (scalar) and 2 consume them; the mask filters what is written."""
    size = np.dtype(dtype).itemsize
    lanes = 256 // size
    call = data.draw(calls(lanes, (COUNT, MASK, BITS)))
    seed = data.draw(st.integers(0, 999))
    x, y = values(dtype, 8000, seed), values(dtype, 6000, seed + 1)
    selection = np.random.default_rng(seed).integers(0, 256, 4096).astype(np.uint8)
    before = values(dtype, 8000, 7)
    params = call.params(SELECT_SCALAR if mode == 1 else SELECT, dtype, mode=mode, scalar=bits_of(0.5, dtype))
    after = kernel.run(params, selection_source(x, y, selection), before)
    number = Call(call.form, call.n, call.repeat, (1, 1, 1), (8, 8, 8), call.bits).lanes(0, size)
    chosen = np.unpackbits(selection, bitorder="little")[number % lanes if mode == 0 else number].astype(bool)
    other = np.array([0.5], dtype) if mode == 1 else y[call.lanes(2, size)]
    expected = before.copy()
    expected[call.lanes(0, size)] = np.where(chosen, x[call.lanes(1, size)], other)
    same(after, expected)


def test_select_from_registers(kernel: ApiKernel) -> None:
    x, y = values("float32", 256, 1), values("float32", 256, 2)
    selection = np.random.default_rng(1).integers(0, 256, 64).astype(np.uint8)
    bits = 0x0F0F0F0FFFFF0000
    call = Call(BITS, 0, 2, (1, 1, 1), (8, 8, 8), bits)
    before = np.zeros(128, np.float32)
    after = kernel.run(call.params(SELECT_REGISTERS, "float32"), selection_source(x, y, selection), before)
    chosen = np.tile(np.unpackbits(selection[:8], bitorder="little").astype(bool), 2)
    at = call.lanes(0, 4)
    expected = before.copy()
    expected[at] = np.where(chosen, x[:128], y[:128])[at]
    same(after, expected)


@pytest.mark.parametrize("scalar_where_zero", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_select_with_bytes_mask(kernel: ApiKernel, dtype: str, scalar_where_zero: bool) -> None:
    rows, last, mask_last = 5, 48, 64
    x = values(dtype, rows * last, 1)
    mask = np.random.default_rng(2).integers(0, 2, (rows, mask_last)).astype(np.uint8)
    call = Call(COUNT, last, rows, (mask_last, 1, 1), (8, 8, 8), 0)
    params = call.params(SELECT_BYTES, dtype, mode=int(scalar_where_zero), scalar=bits_of(-100, dtype))
    after = kernel.run(params, two_sources(x, mask.reshape(-1)), np.zeros_like(x))
    scalar = (mask[:, :last] == 0) == scalar_where_zero
    same(after, np.where(scalar.reshape(-1), np.array(-100, dtype), x))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (whole(64).params(COMPARE, "int32", mode=0), "CMPMODE::EQ only"),
        (whole(64).params(COMPARE_SCALAR, "int32", mode=4), "CMPMODE::EQ only"),
        (whole(64).params(COMPARE, "float32", offset=16), "not aligned to 32 B"),
        (whole(64).params(SELECT, "int32", mode=2), "Select does not take int32_t"),
        (whole(64).params(SELECT, "float32", mode=1), "takes a scalar"),
        (Call(COUNT, 20, 2, (32, 1, 1), (8, 8, 8), 0).params(SELECT_BYTES, "float32"), "multiple of 32 bytes"),
    ],
)
def test_rules(kernel: ApiKernel, params: list[int], message: str) -> None:
    x = np.zeros(SECOND_SOURCE, np.float16)
    with pytest.raises(DeviceError, match=message):
        kernel.run(params, x, np.zeros(1024, np.uint8))
