"""TransDataTo5HD and Transpose against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from api_kernel import ApiKernel
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendopt_tune.errors import DeviceError

Array = npt.NDArray[Any]
FEW = settings(max_examples=30, deadline=None)
UINT = {1: np.uint8, 2: np.uint16, 4: np.uint32}
ROWS, BLOCK, CHANNELS_LAST, CHANNELS_FIRST, REGISTERS = range(5)


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("transpose")


def data(rng: np.random.Generator, size: int, width: int) -> Array:
    return rng.integers(0, 250, size).astype(UINT[width])


@FEW
@given(width=st.sampled_from([2, 4]), repeat=st.integers(2, 8), form=st.integers(0, 2), seed=st.integers(0, 99))
def test_rows(kernel: ApiKernel, width: int, repeat: int, form: int, seed: int) -> None:
    """16 rows of `repeat` blocks become rows of 16 elements."""
    per_block = 32 // width
    x = data(np.random.default_rng(seed), 16 * repeat * per_block, width).reshape(16, -1)
    call = [ROWS, width, repeat, 16, 1, 0, 0, form, 0, 0, 0, 0, repeat * 32, 32]
    got = kernel.run(call, x, np.zeros(x.size, UINT[width]))
    # 16-bit: a block is a column; 32-bit: two blocks are.
    np.testing.assert_array_equal(got.reshape(-1, 16), x.T)


@FEW
@given(width=st.sampled_from([2, 4]), stride=st.integers(0, 2), seed=st.integers(0, 99))
def test_one_repeat_starts_one_stride_later(kernel: ApiKernel, width: int, stride: int, seed: int) -> None:
    per_block = 32 // width
    x = data(np.random.default_rng(seed), 18 * per_block, width)
    call = [ROWS, width, 1, 0, stride, 0, 0, 0, 0, 0, 0, 0, 32, 32]
    got = kernel.run(call, x, np.zeros(16 * per_block, UINT[width]))
    want = x[stride * per_block :][: 16 * per_block].reshape(16, per_block).T
    np.testing.assert_array_equal(got.reshape(want.shape), want)


@pytest.mark.parametrize("dst_high", [0, 1])
@pytest.mark.parametrize("src_high", [0, 1])
def test_bytes(kernel: ApiKernel, dst_high: int, src_high: int) -> None:
    x = data(np.random.default_rng(1), 512, 1)
    out = np.full((16, 2, 16), 255, np.uint8)
    got = kernel.run([ROWS, 1, 1, 0, 0, dst_high, src_high, 0, 0, 0, 0, 0, 32, 32], x, out)
    np.testing.assert_array_equal(got[:, dst_high], x.reshape(16, 2, 16)[:, src_high].T)
    assert (got[:, 1 - dst_high] == 255).all()


def test_by_registers(kernel: ApiKernel) -> None:
    x = data(np.random.default_rng(2), 256, 2)
    got = kernel.run([REGISTERS, 2, 1, 0, 0], x, np.zeros(256, np.uint16))
    np.testing.assert_array_equal(got.reshape(16, 16), x.reshape(16, 16).T)


def test_block(kernel: ApiKernel) -> None:
    x = data(np.random.default_rng(3), 256, 2)
    got = kernel.run([BLOCK, 2], x, np.zeros(256, np.uint16))
    np.testing.assert_array_equal(got.reshape(16, 16), x.reshape(16, 16).T)


@FEW
@given(
    width=st.sampled_from([1, 2, 4]), n=st.integers(1, 3), c=st.integers(1, 20), h=st.integers(1, 4), last=st.booleans()
)
def test_channels(kernel: ApiKernel, width: int, n: int, c: int, h: int, last: bool) -> None:
    w = 32 // width
    x = data(np.random.default_rng(4), n * c * h * w, width)
    call = [CHANNELS_LAST if last else CHANNELS_FIRST, width, 1, 0, 0, 0, 0, 0, n, c, h, w]
    got = kernel.run(call, x, np.zeros(x.size, x.dtype))
    want = x.reshape(n, c, h, w).transpose(0, 2, 3, 1) if last else x.reshape(n, h, w, c).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(got, want.reshape(-1))


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        ([ROWS, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 34, 32], "aligned to 32"),
        ([CHANNELS_LAST, 4, 1, 0, 0, 0, 0, 0, 1, 2, 1, 3], "multiple of 32 B"),
    ],
)
def test_rules(kernel: ApiKernel, call: list[int], rule: str) -> None:
    with pytest.raises(DeviceError, match=rule):
        kernel.run(call, np.zeros(512, np.float32), np.zeros(512, np.float32))
