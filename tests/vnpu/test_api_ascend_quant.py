"""AscendQuant, ReduceMean, ReduceAny, ReduceAll, ReduceXorSum and Digamma against numpy and torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from api_kernel import ApiKernel
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendopt_tune.errors import DeviceError

Array = npt.NDArray[Any]
SCALES, OFFSETS = 40960, 45056  # bytes into the input
QUANT, ROWS, COLUMNS, XOR_SUM, DIGAMMA, NEXT = range(6)
MEAN, ANY, ALL = range(3)


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("ascend_quant")


def bits(x: float) -> int:
    return int(np.float32(x).view(np.int32))


def packed(parts: dict[int, Array]) -> Array:
    """Arrays at bytes of one input."""
    out = np.zeros(max(at + x.nbytes for at, x in parts.items()), np.uint8)
    for at, x in parts.items():
        out[at : at + x.nbytes] = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
    return out


def quantized(x: Array, scale: Array, offset: Array) -> Array:
    """As documented: half from the begin on, every step rounded, to nearest at the end."""
    product = x.astype(np.float16) * scale.astype(np.float16)
    return np.clip(np.rint((product + offset.astype(np.float16)).astype(np.float32)), -128, 127).astype(np.int8)


@settings(max_examples=80, deadline=None)
@given(half=st.booleans(), form=st.integers(0, 5), rows=st.integers(1, 5), blocks=st.integers(1, 4),
       room=st.sampled_from([0, 64, 512, 4096]), part=st.integers(0, 20), seed=st.integers(0, 99))  # fmt: skip
def test_ascend_quant(
    kernel: ApiKernel, half: bool, form: int, rows: int, blocks: int, room: int, part: int, seed: int
) -> None:
    dtype, columns = np.dtype(np.float16 if half else np.float32), 32 * blocks
    rng = np.random.default_rng(seed)
    x = rng.uniform(-60, 60, (rows, columns)).astype(dtype)
    scale, offset = rng.uniform(0.1, 3, columns).astype(dtype), rng.uniform(-9, 9, columns).astype(dtype)
    a, b = float(np.float32(scale[0])), float(np.float32(offset[0]))
    count = x.size - part if form == 0 else x.size
    given = packed({0: x, SCALES: scale, OFFSETS: offset})
    got = kernel.run(
        [QUANT, half, form, columns, count, room, x.size, bits(a), bits(b)], given, np.full(x.shape, 77, np.int8)
    )
    by_column = np.full(columns, a) if form < 2 else scale
    moved = offset if form >= 4 else np.full(columns, b)
    want = quantized(x, by_column.astype(dtype), moved.astype(dtype)).reshape(-1)
    np.testing.assert_array_equal(got.reshape(-1)[:count], want[:count])
    assert (got.reshape(-1)[count:] == 77).all()


def test_ascend_quant_with_numbers_of_the_configuration(kernel: ApiKernel) -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(-60, 60, (2, 32)).astype(np.float16)
    scale, offset = rng.uniform(0.1, 3, 32).astype(np.float16), rng.uniform(-9, 9, 32).astype(np.float16)
    given = packed({0: x, SCALES: scale, OFFSETS: offset})
    got = kernel.run([QUANT, 1, 6, 32, 64, 128, 64, 0, 0], given, np.zeros((2, 32), np.int8))
    np.testing.assert_array_equal(got, quantized(x, scale, offset))


@pytest.mark.parametrize(
    ("form", "scales", "count", "room", "size", "message"),
    [
        (0, 32, 65, 64, 64, "calCount is more than srcTensor has"),
        (0, 32, 64, 32, 64, "sharedTmpBuffer has to hold 32 halves at least"),
        (2, 24, 48, 64, 64, "calCount has to be a multiple of scaleCount, and that of 32"),
        (2, 64, 96, 64, 96, "calCount has to be a multiple of scaleCount"),
        (7, 32, 64, 64, 64, "scaleCount and offsetCount have to be the same"),
    ],
)
def test_what_ascend_quant_refuses(
    kernel: ApiKernel, form: int, scales: int, count: int, room: int, size: int, message: str
) -> None:
    given = np.zeros(OFFSETS + 512, np.uint8)
    with pytest.raises(DeviceError, match=f"AscendQuant: {message}"):
        kernel.run([QUANT, 1, form, scales, count, room, size, 0, 0], given, np.zeros(128, np.int8))


def padded(x: Array) -> Array:
    block = 32 // x.itemsize
    out = np.full((x.shape[0], -(-x.shape[1] // block) * block), 5, x.dtype)
    out[:, : x.shape[1]] = x
    return out


@settings(max_examples=60, deadline=None)
@given(axis=st.integers(0, 1), rows=st.integers(1, 20), columns=st.integers(1, 200), room=st.integers(0, 2))
def test_reduce_mean(kernel: ApiKernel, axis: int, rows: int, columns: int, room: int) -> None:
    x = np.random.default_rng(rows).uniform(-9, 9, (rows, columns)).astype(np.float32)
    n = columns if axis == 0 else rows
    got = kernel.run(
        [ROWS + axis, 0, MEAN, rows, columns, room, 65536], padded(x), np.zeros(max(rows, columns), np.float32)
    )
    want = x.astype(np.float64).mean(axis=1 - axis)
    assert np.abs(got[: len(want)] - want).max() <= 9 * (n + 1) * 2.0**-24


@settings(max_examples=120, deadline=None)
@given(axis=st.integers(0, 1), byte=st.booleans(), which=st.sampled_from([ANY, ALL]), rows=st.integers(1, 300),
       columns=st.integers(1, 200), room=st.integers(0, 2), share=st.sampled_from([0.02, 0.5, 0.98]))  # fmt: skip
def test_reduce_any_and_all(
    kernel: ApiKernel, axis: int, byte: bool, which: int, rows: int, columns: int, room: int, share: float
) -> None:
    if byte and axis == 0 and 16 < columns < 32:
        columns += 16  # refused, see below
    if not byte:
        rows = min(rows, 60)
    rows = min(rows, 65536 // (-(-columns // 32) * 32))
    x = (np.random.default_rng(rows).uniform(size=(rows, columns)) < share).astype(np.uint8 if byte else np.float32)
    if x.nbytes > 49152:
        return
    before = np.full(max(rows, -(-columns // 2) * 2), 9, x.dtype)
    got = kernel.run([ROWS + axis, byte, which, rows, columns, room, 65536], padded(x), before)
    want = (x.any if which == ANY else x.all)(axis=1 - axis)
    np.testing.assert_array_equal(got[: len(want)], want)


def test_what_reductions_refuse(kernel: ApiKernel) -> None:
    x = np.ones((4, 64), np.uint8)
    with pytest.raises(DeviceError, match="of 17 to 31 columns of uint8_t CANN's own body takes the first 16 alone"):
        kernel.run([ROWS, 1, ANY, 4, 20, 1, 65536], x, np.zeros(32, np.uint8))
    for which, name in ((ANY, "ReduceAny"), (ALL, "ReduceAll")):
        with pytest.raises(DeviceError, match=f"{name}: sharedTmpBuffer is too small"):
            kernel.run([ROWS, 1, which, 4, 64, 1, 128], x, np.zeros(32, np.uint8))
        with pytest.raises(DeviceError, match=f"{name}: srcInnerPad has to be true"):
            kernel.run([COLUMNS, 1, which, 4, 64, 1, 65536, 1], x, np.zeros(64, np.uint8))
    with pytest.raises(DeviceError, match="ReduceMean: srcInnerPad has to be true"):
        kernel.run([ROWS, 0, MEAN, 4, 8, 1, 65536, 1], np.ones((4, 8), np.float32), np.zeros(8, np.float32))


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("which", ["Sum", "Max", "Prod", "Mean"])
def test_how_reductions_along_an_axis_end(kernel: ApiKernel, which: str, last: int) -> None:
    """With a barrier, but for maxima and products along the last axis; and with the whole mask."""
    x = np.random.default_rng(1).uniform(0.5, 2, (8, 8)).astype(np.float32)
    params = [NEXT, ["Sum", "Max", "Prod", "Mean"].index(which), last]
    before = np.zeros(64, np.float32)
    if last and which in ("Max", "Prod"):
        with pytest.raises(AssertionError, match="PipeBarrier<PIPE_V>"):
            kernel.run(params, x, before)
        return
    got = kernel.run(params, x, before)
    fold = {"Sum": np.sum, "Max": np.max, "Prod": np.prod, "Mean": np.mean}[which]
    np.testing.assert_allclose(got[:8], fold(x.astype(np.float64), axis=last) + 1, rtol=1e-6)
    assert (got[8:] == 1).all()


@settings(max_examples=40, deadline=None)
@given(count=st.integers(1, 2000), room=st.integers(0, 2), large=st.booleans(), seed=st.integers(0, 99))
def test_reduce_xor_sum(kernel: ApiKernel, count: int, room: int, large: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    most = 32000 if large else 12
    a, b = rng.integers(-most, most, (2, count)).astype(np.int16)
    got = kernel.run([XOR_SUM, 0, count, room, 3 * 4096], packed({0: a, SCALES: b}), np.zeros(16, np.int16))
    want = np.clip((a ^ b).astype(np.int64).sum(), -32768, 32767)
    assert got[0] == want
    with pytest.raises(DeviceError, match="ReduceXorSum: sharedTmpBuffer is too small"):
        kernel.run([XOR_SUM, 0, count, 1, 3 * 2 * count - 2], packed({0: a, SCALES: b}), np.zeros(16, np.int16))


@pytest.mark.parametrize("room", [0, 1])
@pytest.mark.parametrize("half", [False, True])
def test_digamma(kernel: ApiKernel, half: bool, room: int) -> None:
    dtype = np.float16 if half else np.float32
    x = np.concatenate([np.linspace(-20.3, 30, 1500), [1e-3, 0.5, 1, 2, 1000, -0.5, np.inf, np.nan, 0.0, -3, -1e7]])
    with np.errstate(over="ignore"):
        x = x.astype(dtype)
    got = kernel.run([DIGAMMA, half, len(x), room], x, np.zeros_like(x))
    with np.errstate(all="ignore"):
        want = torch.digamma(torch.from_numpy(x.astype(np.float64))).numpy()
        want[(x < 0) & ((x == np.floor(x)) | (x <= -8388608))] = np.nan
        error = np.abs(got.astype(np.float64) - want)
        allowed = (2.0**-10 if half else 2.0**-22) * np.maximum(np.abs(want), 1)
    known = np.isfinite(want) & (np.abs(want) < 60000)
    assert (error[known] <= allowed[known]).all()
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got[~known]), np.isinf(want[~known]) | (np.abs(want[~known]) > 65519))
