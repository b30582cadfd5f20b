"""Gather, Gatherb and GatherMask against numpy."""

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
FEW = settings(max_examples=40, deadline=None)
SECOND = 32768  # bytes from the first operand to the second
COUNT_AT = 16384 // 4
WIDTH = st.sampled_from([4, 2])


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("gather")


def params(call: int, width: int, *, first: int = 0, repeat: int = 1, p4: int = 0, p5: int = 1, p6: int = 8,
           p7: int = 8, n: int = 0, bits: int = 0) -> list[int]:  # fmt: skip
    words = [bits >> 32 * i & 0xFFFFFFFF for i in range(4)]
    return [call, int(width == 2), first, repeat, p4, p5, p6, p7, n, *(w - (1 << 32) if w >> 31 else w for w in words)]


def uint(width: int) -> Any:
    return {2: np.uint16, 4: np.uint32}[width]


def operands(first: Array, second: Array) -> Array:
    """Both operands as one block of bytes, the second at SECOND."""
    raw = np.zeros(SECOND + second.nbytes, np.uint8)
    raw[: first.nbytes] = first.view(np.uint8)
    raw[SECOND:] = second.reshape(-1).view(np.uint8)
    return raw


@FEW
@given(width=WIDTH, n=st.integers(1, 4000), base=st.integers(0, 63), seed=st.integers(0, 999))
def test_gather_count(kernel: ApiKernel, width: int, n: int, base: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 1 << 15, SECOND // width).astype(uint(width))
    index = rng.integers(0, x.size - 64, n)
    raw = operands(x, (index * width).astype(np.uint32))
    out = np.full(n + 16, 7, uint(width))
    got = kernel.run(params(0, width, first=base * width, n=n), raw, out)
    np.testing.assert_array_equal(got[:n], x[index + base])
    assert (got[n:] == 7).all()


@pytest.mark.parametrize("width", [4, 2])
def test_gather_swaps_pairs_in_place(kernel: ApiKernel, width: int) -> None:
    x = np.arange(512).astype(uint(width))
    raw = operands(x, ((np.arange(512) ^ 1) * width).astype(np.uint32))
    got = kernel.run(params(7, width, n=512), raw, np.zeros(8192, uint(width)))
    np.testing.assert_array_equal(got[:512], x ^ 1)


@FEW
@given(width=WIDTH, by_bits=st.booleans(), n=st.integers(1, 64), bits=st.integers(1, (1 << 64) - 1),
       repeat=st.integers(1, 8), stride=st.integers(8, 10), seed=st.integers(0, 999))  # fmt: skip
def test_gather_mask_forms(
    kernel: ApiKernel, width: int, by_bits: bool, n: int, bits: int, repeat: int, stride: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    lanes = 256 // width
    x = rng.integers(0, 1 << 15, SECOND // width).astype(uint(width))
    index = rng.integers(0, x.size, (repeat, lanes))
    mask = bits if by_bits else (1 << n) - 1
    on = np.array([mask >> i & 1 for i in range(lanes)], bool)
    out = np.full(repeat * stride * 32 // width, 7, uint(width))
    call = params(2 if by_bits else 1, width, repeat=repeat, p4=stride, n=n, bits=bits)
    got = kernel.run(call, operands(x, (index * width).astype(np.uint32)), out)
    want = out.copy()
    for r in range(repeat):
        start = r * stride * 32 // width
        want[start : start + lanes][on] = x[index[r]][on]
    np.testing.assert_array_equal(got, want)


@FEW
@given(width=WIDTH, repeat=st.integers(1, 16), blk=st.sampled_from([0, 1, 2]), seed=st.integers(0, 999))
def test_gatherb(kernel: ApiKernel, width: int, repeat: int, blk: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 1 << 15, SECOND // width).astype(uint(width))
    blocks = x.reshape(-1, 32 // width)
    index = rng.integers(0, len(blocks), repeat * 8)
    step = max(blk, 1)
    out = np.full((repeat * 8 * step, 32 // width), 7, uint(width))
    got = kernel.run(
        params(3, width, repeat=repeat, p4=8 * step, p5=blk), operands(x, (index * 32).astype(np.uint32)), out
    )
    want = out.copy()
    want[::step] = blocks[index]
    np.testing.assert_array_equal(got, want)


def kept_lanes(pattern: int, n: int) -> Array:
    i = np.arange(n)
    if pattern == 7:
        return i >= 0
    keep: Array = i % 2 == pattern - 1 if pattern <= 2 else i % 4 == pattern - 3
    return keep


@FEW
@given(width=WIDTH, pattern=st.integers(1, 7), repeat=st.integers(0, 12), counter=st.booleans(), n=st.integers(1, 200),
       blk=st.sampled_from([1, 2]), rep=st.integers(1, 20), seed=st.integers(0, 999))  # fmt: skip
def test_gather_mask_fixed(
    kernel: ApiKernel, width: int, pattern: int, repeat: int, counter: bool, n: int, blk: int, rep: int, seed: int
) -> None:
    x = np.random.default_rng(seed).integers(0, 1 << 15, 65536 // width).astype(uint(width))
    per_block = 32 // width
    lanes = n if counter else 256 // width
    out = np.full(32768 // width, 7, uint(width))
    got = kernel.run(params(4, width, first=pattern, repeat=repeat, p4=int(counter), p5=blk, p6=rep, n=n), x, out)
    i = np.arange(lanes)
    rows = [x[r * rep * per_block + i // per_block * blk * per_block + i % per_block] for r in range(repeat)]
    want = np.concatenate([row[kept_lanes(pattern, lanes)] for row in rows]) if rows else x[:0]
    limit = min(want.size, COUNT_AT * 4 // width)
    np.testing.assert_array_equal(got[:limit], want[:limit])
    assert got.view(np.uint32)[COUNT_AT] == want.size


@FEW
@given(width=WIDTH, repeat=st.integers(1, 12), counter=st.booleans(), n=st.integers(1, 200), stride=st.integers(0, 2),
       seed=st.integers(0, 999))  # fmt: skip
def test_gather_mask_tensor(
    kernel: ApiKernel, width: int, repeat: int, counter: bool, n: int, stride: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    lanes = n if counter else 256 // width
    x = rng.integers(0, 1 << 15, SECOND // width).astype(uint(width))
    pattern = rng.integers(0, 256, repeat * 64 + 64, dtype=np.uint8)
    out = np.full(32768 // width, 7, uint(width))
    call = params(5, width, repeat=repeat, p4=int(counter), p6=8, p7=stride, n=n)
    got = kernel.run(call, operands(x, pattern), out)
    want = []
    for r in range(repeat):
        row = x[r * 256 // width :][:lanes]
        bits = np.unpackbits(pattern[r * stride * 32 :], bitorder="little")[:lanes]
        want.append(row[bits == 1])
    flat = np.concatenate(want)
    np.testing.assert_array_equal(got[: flat.size], flat)
    assert got.view(np.uint32)[COUNT_AT] == flat.size


def test_gather_mask_in_place(kernel: ApiKernel) -> None:
    x = np.arange(256, dtype=np.float32)
    got = kernel.run(params(6, 4, first=2, repeat=4, p7=0), x, np.zeros(8192, np.float32))
    np.testing.assert_array_equal(got[:128], x[1::2])


@pytest.mark.parametrize(
    ("call", "offset", "rule"),
    [
        (params(0, 4, n=8), 2, "multiple of the element's"),
        (params(0, 4, n=16384), 0, "more than 255 repeats"),
        (params(0, 4, n=8), 1 << 20, "leads out of the Unified Buffer"),
        (params(3, 4, repeat=1), 48, "isn't aligned to 32 B"),
        (params(4, 4, first=0, repeat=1), 0, "is not in 1..7"),
        (params(4, 4, first=1, repeat=1, p4=1, n=0), 0, "at least 1"),
    ],
)
def test_rules(kernel: ApiKernel, call: list[int], offset: int, rule: str) -> None:
    raw = operands(np.zeros(8, np.float32), np.full(8, offset, np.uint32))
    with pytest.raises(DeviceError, match=rule):
        kernel.run(call, raw, np.zeros(8, np.float32))
