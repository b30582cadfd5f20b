"""DataCopy of slices against numpy, copies from constant tables of a kernel, and LocalMemAllocator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from api_kernel import ApiKernel
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendopt_tune.errors import DeviceError

Array = npt.NDArray[Any]
IN, OUT, TABLE, ALLOCATOR = range(4)
BLOCK = 8  # elements of int32


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("slice")


@dataclass(frozen=True)
class Slice:
    """``pieces`` of ``blocks`` blocks each, ``gap`` elements apart, in ``rows`` rows, every ``step``-th one."""

    start: int
    pieces: int
    blocks: int
    gap: int
    first: int
    rows: int
    step: int
    spare: int  # columns right of the last piece

    @property
    def length(self) -> int:
        return (self.pieces - 1) * self.gap + self.pieces * self.blocks * BLOCK

    @property
    def width(self) -> int:
        return self.start + self.length + self.spare

    @property
    def height(self) -> int:
        return self.first + (self.rows - 1) * self.step + 1

    def numbers(self) -> list[int]:
        """SliceInfo of both axes."""
        columns = [self.start, self.start + self.length - 1, self.gap, self.blocks, self.width]
        return [*columns, self.first, self.height - 1, self.step - 1, 1, self.height]

    def packed(self) -> list[int]:
        """SliceInfo of both axes of the same elements without gaps."""
        n = self.pieces * self.blocks * BLOCK
        return [0, n - 1, 0, self.blocks, n, 0, self.rows - 1, 0, 1, self.rows]

    def places(self) -> Array:
        """Flat positions of the elements, in the order they are copied."""
        columns = [
            self.start + piece * (self.blocks * BLOCK + self.gap) + i
            for piece in range(self.pieces)
            for i in range(self.blocks * BLOCK)
        ]
        rows = [self.first + row * self.step for row in range(self.rows)]
        return np.array([row * self.width + column for row in rows for column in columns])


SLICES = st.builds(
    Slice,
    start=st.integers(0, 20),
    pieces=st.integers(1, 4),
    blocks=st.integers(1, 3),
    gap=st.integers(0, 11),
    first=st.integers(0, 3),
    rows=st.integers(1, 4),
    step=st.integers(1, 3),
    spare=st.integers(0, 9),
)


@settings(max_examples=40, deadline=None)
@given(slice_=SLICES, seed=st.integers(0, 999))
def test_from_global_memory(kernel: ApiKernel, slice_: Slice, seed: int) -> None:
    x = np.random.default_rng(seed).integers(-999, 999, slice_.width * slice_.height, np.int32)
    out = np.zeros(slice_.places().size, np.int32)
    got = kernel.run([IN, *slice_.numbers(), *slice_.packed(), 2], x, out)
    np.testing.assert_array_equal(got, x[slice_.places()])


@settings(max_examples=40, deadline=None)
@given(slice_=SLICES, seed=st.integers(0, 999))
def test_to_global_memory(kernel: ApiKernel, slice_: Slice, seed: int) -> None:
    x = np.random.default_rng(seed).integers(-999, 999, slice_.places().size, np.int32)
    out = np.full(slice_.width * slice_.height, 7777, np.int32)
    got = kernel.run([OUT, *slice_.numbers(), *slice_.packed(), 2], x, out)
    want = out.copy()
    want[slice_.places()] = x
    np.testing.assert_array_equal(got, want)


def test_burst_lengths_have_to_agree(kernel: ApiKernel) -> None:
    slice_ = Slice(0, 1, 2, 0, 0, 1, 1, 0)
    packed = slice_.packed()
    packed[3] = 1
    with pytest.raises(DeviceError, match="burstLen of source and destination slice has to be the same"):
        kernel.run([IN, *slice_.numbers(), *packed, 1], np.zeros(16, np.int32), np.zeros(16, np.int32))


def test_a_constant_table_is_global_memory(kernel: ApiKernel) -> None:
    got = kernel.run([TABLE], np.zeros(8, np.int32), np.zeros(16, np.int32))
    assert got.tolist() == [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3]


def test_the_allocator_hands_out_blocks_one_behind_the_other(kernel: ApiKernel) -> None:
    x = np.arange(24, dtype=np.int32)
    got = kernel.run([ALLOCATOR, 24], x, np.zeros(24, np.int32))
    assert got.tolist() == [*range(23), 32 + 96]  # 5 elements take a block of 32 bytes


@pytest.mark.parametrize(
    ("size", "text"),
    [(16, "past the end of its buffer"), (65536, "LocalMemAllocator::Alloc: the Unified Buffer is full")],
)
def test_more_than_was_allocated(kernel: ApiKernel, size: int, text: str) -> None:
    with pytest.raises(DeviceError, match=text):
        kernel.run([ALLOCATOR, size], np.zeros(24, np.int32), np.zeros(24, np.int32))
