"""Broadcast, Sum, Mean and SoftMax against numpy."""

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
ROWS, COLUMNS, VECTOR, SUM, MEAN, MEAN_IN_FLOAT, SOFTMAX = range(7)


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("compose")


def values(seed: int, shape: Any, dtype: str) -> Array:
    x: Array = (np.random.default_rng(seed).integers(-50, 50, shape) * np.float32(0.13)).astype(dtype)
    return x


@FEW
@given(dtype=FLOATS, rows=st.integers(1, 20), columns=st.integers(1, 100), seed=st.integers(0, 99))
def test_broadcast(kernel: ApiKernel, dtype: str, rows: int, columns: int, seed: int) -> None:
    x = values(seed, rows, dtype)
    out = np.zeros((rows, columns), dtype)
    got = kernel.run([COLUMNS, DTYPES[dtype], rows, columns, rows, 1], x, out)
    np.testing.assert_array_equal(got, np.broadcast_to(x[:, None], out.shape))
    aligned = -(-columns // 16) * 16
    y = values(seed, aligned, dtype)
    got = kernel.run([ROWS, DTYPES[dtype], rows, aligned, 1, aligned], y, np.zeros((rows, aligned), dtype))
    np.testing.assert_array_equal(got, np.broadcast_to(y, got.shape))
    got = kernel.run([VECTOR, DTYPES[dtype], columns, 1, 1, 1], x, np.zeros(columns, dtype))
    np.testing.assert_array_equal(got, np.full(columns, x[0], dtype))


def tree(row: Array) -> Any:
    while row.size > 1:
        row = row[0::2] + row[1::2]
    return row[0]


def total(row: Array) -> Any:
    """Trees inside repeats of 256 bytes, then over their results."""
    lanes = 256 // row.itemsize
    while True:
        padded = np.zeros(-(-row.size // lanes) * lanes, row.dtype)
        padded[: row.size] = row
        row = np.array([tree(r) for r in padded.reshape(-1, lanes)], row.dtype)
        if row.size == 1:
            return row[0]


@FEW
@given(dtype=FLOATS, outer=st.integers(1, 6), n=st.integers(1, 1500), work=st.booleans(), seed=st.integers(0, 99))
def test_sum_and_mean(kernel: ApiKernel, dtype: str, outer: int, n: int, work: bool, seed: int) -> None:
    inner = -(-n // 16) * 16
    x = values(seed, (outer, inner), dtype)
    out = np.full(16, 7, dtype)
    want = np.array([total(row[:n]) for row in x], dtype)
    shape = [outer, inner, n]
    got = kernel.run([SUM, DTYPES[dtype], *shape, int(work)], x, out)
    np.testing.assert_array_equal(got[:outer], want)
    assert (got[outer:] == 7).all()
    got = kernel.run([MEAN, DTYPES[dtype], *shape], x, out)
    np.testing.assert_array_equal(got[:outer], want * np.dtype(dtype).type(np.float32(1) / np.float32(n)))
    if dtype == "float16":
        got = kernel.run([MEAN_IN_FLOAT, DTYPES[dtype], *shape], x, out)
        exact = np.array([total(row[:n].astype(np.float32)) for row in x]) * (np.float32(1) / np.float32(n))
        np.testing.assert_array_equal(got[:outer], exact.astype(np.float16))


@FEW
@given(dtype=FLOATS, rows=st.integers(1, 12), n=st.integers(1, 300), form=st.integers(0, 2), seed=st.integers(0, 99))
def test_softmax(kernel: ApiKernel, dtype: str, rows: int, n: int, form: int, seed: int) -> None:
    columns = -(-n // 16) * 16
    x = values(seed, (rows, columns), dtype)
    out = np.zeros(65536 // x.itemsize, dtype)
    got = kernel.run([SOFTMAX, DTYPES[dtype], rows, columns, n, form], x, out)
    wide = x[:, :n].astype(np.float64)
    peak = wide.max(1, keepdims=True)
    exp = np.exp(wide - peak)
    tolerance = 1e-3 if dtype == "float16" else 2e-6
    np.testing.assert_allclose(
        got[: x.size].reshape(x.shape)[:, :n].astype(np.float64),
        exp / exp.sum(1, keepdims=True),
        rtol=tolerance,
        atol=1e-7,
    )
    if form == 2:
        per_block = 32 // x.itemsize
        sums, peaks = got[49152 // x.itemsize :], got[57344 // x.itemsize :]
        np.testing.assert_allclose(sums[: rows * per_block : per_block], exp.sum(1), rtol=tolerance)
        np.testing.assert_array_equal(
            peaks[: rows * per_block].reshape(rows, -1), np.repeat(peak, per_block, 1).astype(dtype)
        )


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        ([ROWS, 0, 4, 3, 1, 3], "multiple of 32 B for axis 0"),
        ([COLUMNS, 0, 4, 8, 4, 2], "1 on the broadcast axis"),
        # As many rows as a block has elements: a block for each, and whole blocks for a row that doesn't fill them.
        ([COLUMNS, 0, 4, 10, 4, 1, 767], "768 B are the least"),
        ([COLUMNS, 1, 4, 16, 4, 1, 500], "512 B are the least"),
        ([SUM, 0, 1, 8, 9], "has to be in 1..inner"),
        ([SUM, 0, 1, 9, 9], "multiple of 32 B"),
        ([SOFTMAX, 0, 1, 9, 9, 0], "multiple of 32 B"),
    ],
)
def test_rules(kernel: ApiKernel, call: list[int], rule: str) -> None:
    with pytest.raises(DeviceError, match=rule):
        kernel.run(call, np.zeros(64, np.float32), np.zeros(64, np.float32))
