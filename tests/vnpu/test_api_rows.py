"""Reductions along an axis, LogSoftMax, RmsNorm and CumSum against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from api_kernel import DTYPES, ApiKernel
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendopt_tune.errors import DeviceError

Array = npt.NDArray[Any]
FEW = settings(max_examples=30, deadline=None)
FLOATS = st.sampled_from(["float32", "float16"])
LAST_AXIS, FIRST_AXIS, LOG_SOFTMAX, RMS_NORM, CUM_SUM = range(5)
MAX, MIN, PROD, SUM = range(4)
ROOM = st.integers(0, 2)


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("rows")


def values(seed: int, shape: Any, dtype: str, scale: float = 6.0) -> Array:
    x: Array = (np.random.default_rng(seed).standard_normal(shape) * scale).astype(dtype)
    return x


def padded(x: Array) -> Array:
    """Rows of whole blocks; what is between them may not matter."""
    per_block = 32 // x.itemsize
    out = np.full((x.shape[0], -(-x.shape[1] // per_block) * per_block), 999, x.dtype)
    out[:, : x.shape[1]] = x
    return out


@FEW
@given(
    dtype=FLOATS, rows=st.integers(1, 20), columns=st.integers(1, 300), operation=st.sampled_from([MAX, MIN]),
    first=st.booleans(), room=ROOM, seed=st.integers(0, 99),
)  # fmt: skip
def test_extremes_along_an_axis(
    kernel: ApiKernel, dtype: str, rows: int, columns: int, operation: int, first: bool, room: int, seed: int
) -> None:
    x = values(seed, (rows, columns), dtype)
    out = np.full(1024, 7, dtype)
    call = [FIRST_AXIS if first else LAST_AXIS, DTYPES[dtype], rows, columns, operation, room]
    got = kernel.run(call, padded(x), out)
    want = (x.max if operation == MAX else x.min)(0 if first else 1)
    np.testing.assert_array_equal(got[: want.size], want)
    assert (got[-(-want.size * x.itemsize // 32) * 32 // x.itemsize :] == 7).all()


@FEW
@given(rows=st.integers(1, 20), columns=st.integers(1, 200), first=st.booleans(), room=ROOM, seed=st.integers(0, 99))
def test_products_along_an_axis(kernel: ApiKernel, rows: int, columns: int, first: bool, room: int, seed: int) -> None:
    x = np.exp2(values(seed, (rows, columns), "float32", 0.3))
    got = kernel.run([FIRST_AXIS if first else LAST_AXIS, 0, rows, columns, PROD, room], padded(x), np.zeros(512, "f"))
    want = x.astype(np.float64).prod(0 if first else 1)
    np.testing.assert_allclose(got[: want.size], want, rtol=3e-6)


@FEW
@given(rows=st.integers(1, 20), columns=st.integers(1, 300), first=st.booleans(), room=ROOM, seed=st.integers(0, 99))
def test_sums_along_an_axis(kernel: ApiKernel, rows: int, columns: int, first: bool, room: int, seed: int) -> None:
    x = np.abs(values(seed, (rows, columns), "float32"))
    got = kernel.run([FIRST_AXIS if first else LAST_AXIS, 0, rows, columns, SUM, room], padded(x), np.zeros(512, "f"))
    want = x.astype(np.float64).sum(0 if first else 1)
    np.testing.assert_allclose(got[: want.size], want, rtol=2e-6)


@FEW
@given(dtype=FLOATS, rows=st.integers(1, 12), n=st.integers(1, 300), seed=st.integers(0, 99))
def test_log_softmax_is_decimal(kernel: ApiKernel, dtype: str, rows: int, n: int, seed: int) -> None:
    x = values(seed, (rows, -(-n // 16) * 16), dtype, 2.0)
    got = kernel.run([LOG_SOFTMAX, DTYPES[dtype], *x.shape, n], x, np.zeros(65536 // x.itemsize, dtype))
    wide = x[:, :n].astype(np.float64)
    peak = wide.max(1, keepdims=True)
    exp = np.exp(wide - peak)
    want = np.log10(exp / exp.sum(1, keepdims=True))
    tolerance = 2e-3 if dtype == "float16" else 3e-6
    np.testing.assert_allclose(got[: x.size].reshape(x.shape)[:, :n].astype(np.float64), want, tolerance, tolerance)
    per_block = 32 // x.itemsize
    sums, peaks = got[49152 // x.itemsize :], got[57344 // x.itemsize :]
    np.testing.assert_allclose(sums[: rows * per_block : per_block].astype(np.float64), exp.sum(1), rtol=tolerance)
    np.testing.assert_array_equal(peaks[: rows * per_block : per_block], peak[:, 0].astype(dtype))


@FEW
@given(dtype=FLOATS, rows=st.integers(1, 12), blocks=st.integers(1, 30), room=st.booleans(), seed=st.integers(0, 99))
def test_rms_norm(kernel: ApiKernel, dtype: str, rows: int, blocks: int, room: bool, seed: int) -> None:
    columns = blocks * 16
    x, gamma = values(seed, (rows, columns), dtype, 2.0), values(seed + 1, columns, dtype, 1.0)
    source = np.zeros(32768 // x.itemsize + columns, dtype)
    source[: x.size], source[32768 // x.itemsize :] = x.reshape(-1), gamma
    got = kernel.run([RMS_NORM, DTYPES[dtype], rows, columns, int(room), 1], source, np.zeros(x.size, dtype))
    wide = x.astype(np.float64)
    epsilon = float(np.dtype(dtype).type(1e-5))
    want = wide / np.sqrt((wide * wide).mean(1, keepdims=True) + epsilon) * gamma
    tolerance = 2e-3 if dtype == "float16" else 3e-6
    np.testing.assert_allclose(got.reshape(x.shape).astype(np.float64), want, tolerance, 1e-6)


@FEW
@given(dtype=FLOATS, outer=st.integers(1, 20), blocks=st.integers(1, 12), which=st.integers(0, 2),
       seed=st.integers(0, 99))  # fmt: skip
def test_cum_sum(kernel: ApiKernel, dtype: str, outer: int, blocks: int, which: int, seed: int) -> None:
    x = values(seed, (outer, blocks * 16), dtype)
    out = np.full(65536 // x.itemsize, 7, dtype)
    got = kernel.run([CUM_SUM, DTYPES[dtype], *x.shape, which], x, out)
    axis = 1 if which == 1 else 0
    want = x.astype(np.float32).cumsum(axis, dtype=np.float32).astype(dtype)
    np.testing.assert_array_equal(got[: x.size].reshape(x.shape), want)
    last = got[49152 // x.itemsize :]
    if which == 2:
        assert (last == 7).all()
    else:
        ends = want[:, -1] if axis else want[-1]
        np.testing.assert_array_equal(last[: ends.size], ends)


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        ([LAST_AXIS, 0, 0, 8, MAX, 0], "at least 1"),
        ([FIRST_AXIS, 0, 2, 8, MIN, 0, 1], "srcInnerPad"),
        ([RMS_NORM, 0, 1, 9, 0, 1], "multiple of 32 B"),
        ([RMS_NORM, 0, 1, 8, 0, 0], "GetRmsNormTilingInfo"),
        ([CUM_SUM, 0, 1, 9, 0], "multiple of 32 B"),
        ([CUM_SUM, 0, 0, 8, 0], "above 0"),
    ],
)
def test_rules_of_rows(kernel: ApiKernel, call: list[int], rule: str) -> None:
    with pytest.raises(DeviceError, match=rule):
        kernel.run(call, np.zeros(64, np.float32), np.zeros(64, np.float32))
