"""DataCopy and DataCopyPad between GM and UB, in every form, and atomics on the way out, against numpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from api_kernel import DTYPES, ApiKernel
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendopt_tune.errors import DeviceError

Array = npt.NDArray[Any]
FEW = settings(max_examples=40, deadline=None)
COUNT_IN, BLOCKS_IN, PAD_IN, PAD_IN_OLD, COUNT_OUT, BLOCKS_OUT, PAD_OUT, PAD_OUT_OLD, WITHIN = range(9)
IN, OUT = (COUNT_IN, BLOCKS_IN, PAD_IN, PAD_IN_OLD), (COUNT_OUT, BLOCKS_OUT, PAD_OUT, PAD_OUT_OLD)
COPIED = ("float32", "float16", "int32", "int16", "int8", "bfloat16")
ATOMICS = {1: np.add, 2: np.maximum, 3: np.minimum}
SIZE = 24576  # bytes of either side
ALL_BITS = -1  # what the model pads with where the device pads with a random value


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("copy")


def dtype_of(name: str) -> Any:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


@dataclass(frozen=True)
class Copy:
    """A copy as its parameters say it: lengths and gaps in the unit that the API has on that side."""

    call: int
    dtype: str
    count: int
    length: int
    src_gap: int
    dst_gap: int
    pad: bool
    left: int
    right: int
    value: int
    offset: int  # elements, of the GM side

    @property
    def itemsize(self) -> int:
        return int(dtype_of(self.dtype).itemsize)

    def params(self, atomic: int = 0) -> list[int]:
        length = self.length * self.itemsize if self.call in (PAD_IN, PAD_IN_OLD, PAD_OUT, PAD_OUT_OLD) else self.length
        return [self.call, DTYPES[self.dtype], self.count, length, self.src_gap, self.dst_gap, self.pad, self.left,
                self.right, self.value, self.offset, atomic]  # fmt: skip

    def pieces(self) -> list[tuple[int, int, int]]:
        """(source, destination, bytes) of each piece without padding; positions in bytes from the tensors' starts."""
        if self.call in (COUNT_IN, COUNT_OUT):
            return [(0, 0, self.count * self.itemsize // 32 * 32)]
        if self.call in (BLOCKS_IN, BLOCKS_OUT, WITHIN):
            size = self.length * 32
            return [(i * (size + 32 * self.src_gap), i * (size + 32 * self.dst_gap), size) for i in range(self.count)]
        size = self.length * self.itemsize
        on_ub = -(-(size + (self.left + self.right) * self.itemsize) // 32) * 32
        gm, ub = (self.src_gap, self.dst_gap) if self.call in IN else (self.dst_gap, self.src_gap)
        both = [(i * (size + gm), i * (on_ub + 32 * ub)) for i in range(self.count)]
        return [(g, u, size) if self.call in IN else (u, g, size) for g, u in both]

    def expected(self, source: Array, destination: Array) -> Array:
        """The destination's bytes after the copy."""
        result = destination.copy()
        shift = self.offset * self.itemsize
        for src, dst, size in self.pieces():
            src, dst = (src + shift, dst) if self.call in IN else (src, dst + shift)
            piece = source[src : src + size]
            if self.call in (PAD_IN, PAD_IN_OLD):
                padding = np.array([self.value if self.pad else ALL_BITS], np.int32).view(np.uint8)[: self.itemsize]
                rest = -(size + (self.left + self.right) * self.itemsize) % 32 // self.itemsize
                last = padding if self.left or self.right else piece[: self.itemsize]
                parts = [np.tile(padding, self.left), piece, np.tile(padding, self.right), np.tile(last, rest)]
                piece = np.concatenate(parts)
            result[dst : dst + piece.size] = piece
        return result


@st.composite
def copies(draw: st.DrawFn, calls: tuple[int, ...]) -> Copy:
    call = draw(st.sampled_from(calls))
    dtype = draw(st.sampled_from(COPIED))
    itemsize = dtype_of(dtype).itemsize
    per_block = 32 // itemsize
    count, length = draw(st.integers(1, 12)), draw(st.integers(1, 20))
    gaps = [draw(st.integers(0, 5)), draw(st.integers(0, 5))]
    offset, pad, left, right, value = 0, False, 0, 0, 0
    if call in (COUNT_IN, COUNT_OUT):
        count, offset = draw(st.integers(1, 300)) * per_block, draw(st.integers(0, 50))
    elif call in (PAD_IN, PAD_IN_OLD, PAD_OUT, PAD_OUT_OLD):
        length = draw(st.integers(1, 300 // itemsize))
        on_gm = 0 if call in (PAD_IN, PAD_IN_OLD) else 1
        gaps[on_gm] = draw(st.integers(0, 20)) * itemsize
        offset = draw(st.integers(0, 50))
        if call in (PAD_IN, PAD_IN_OLD) and draw(st.booleans()):
            pad, value = draw(st.booleans()), draw(st.integers(-(2**31), 2**31 - 1))
            left, right = draw(st.integers(0, per_block)), draw(st.integers(0, per_block))
    elif call != WITHIN:
        offset = draw(st.integers(0, 50))
    return Copy(call, dtype, count, length, *gaps, pad, left, right, value, offset)


def sides(seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, SIZE, np.uint8), rng.integers(0, 256, SIZE, np.uint8)


@FEW
@given(copy=copies((*IN, WITHIN)), seed=st.integers(0, 2**32))
def test_into_local_memory(kernel: ApiKernel, copy: Copy, seed: int) -> None:
    source, destination = sides(seed)
    got = kernel.run(copy.params(), source, destination)
    np.testing.assert_array_equal(got, copy.expected(source, destination))


@FEW
@given(copy=copies(OUT), seed=st.integers(0, 2**32))
def test_out_of_local_memory(kernel: ApiKernel, copy: Copy, seed: int) -> None:
    source, destination = sides(seed)
    got = kernel.run(copy.params(), source, destination)
    np.testing.assert_array_equal(got, copy.expected(source, destination))


@FEW
@given(copy=copies(OUT), operation=st.sampled_from(sorted(ATOMICS)), seed=st.integers(0, 2**32))
def test_atomics(kernel: ApiKernel, copy: Copy, operation: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = dtype_of(copy.dtype)
    values = [rng.integers(-60, 60, SIZE // dtype.itemsize).astype(dtype) for _ in range(2)]
    source, destination = (v.view(np.uint8) for v in values)
    got = kernel.run(copy.params(operation), source, destination)
    written = copy.expected(np.full(SIZE, 1, np.uint8), np.zeros(SIZE, np.uint8)).view(bool)
    moved = copy.expected(source, destination).view(dtype)
    with np.errstate(over="ignore"):
        combined = ATOMICS[operation](moved, values[1]).astype(dtype)
    expected = np.where(written.reshape(-1, dtype.itemsize).all(1), combined, values[1])
    np.testing.assert_array_equal(got.view(dtype), expected)


@pytest.mark.parametrize(("left", "right"), [(9, 0), (0, 9)])
def test_more_than_a_block_of_padding_is_refused(kernel: ApiKernel, left: int, right: int) -> None:
    copy = Copy(PAD_IN, "float32", 1, 5, 0, 0, True, left, right, 0, 0)
    with pytest.raises(DeviceError, match="padding of more than 32 bytes on one side"):
        kernel.run(copy.params(), *sides(0))
