"""Sort32, MrgSort, Sort, Extract against numpy."""

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
FLOATS = st.sampled_from(["float32", "float16"])
SECOND = 32768
TAKEN_AT = 61440
SORT32, MERGE, MERGE_ADVANCED, SORT, EXTRACT = range(5)


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("sort")


def records(scores: Array, indices: Array) -> Array:
    """The 8-byte records (score, index) as uint64."""
    bits = scores.view(np.uint16 if scores.dtype == np.float16 else np.uint32).astype(np.uint64)
    return bits | indices.astype(np.uint64) << np.uint64(32)


def descending(scores: Array) -> Array:
    return np.argsort(-scores.astype(np.float64), kind="stable")


def scores_of(rng: np.random.Generator, n: int, dtype: str) -> Array:
    return rng.integers(-20, 20, n).astype(dtype)  # many ties


def with_indices(scores: Array, indices: Array) -> Array:
    raw = np.zeros(SECOND + indices.nbytes, np.uint8)
    raw[: scores.nbytes] = scores.view(np.uint8)
    raw[SECOND:] = indices.view(np.uint8)
    return raw


@FEW
@given(dtype=FLOATS, repeat=st.integers(1, 60), seed=st.integers(0, 999))
def test_sort32(kernel: ApiKernel, dtype: str, repeat: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, index = scores_of(rng, repeat * 32, dtype), rng.permutation(repeat * 32).astype(np.uint32)
    out = np.zeros(repeat * 32, np.uint64)
    got = kernel.run([SORT32, int(dtype == "float16"), repeat], with_indices(x, index), out)
    want = []
    for r in range(repeat):
        part = slice(r * 32, r * 32 + 32)
        order = descending(x[part])
        want.append(records(x[part][order], index[part][order]))
    np.testing.assert_array_equal(got, np.concatenate(want))


def lists_of(rng: np.random.Generator, lengths: list[int], dtype: str) -> tuple[list[Array], list[int]]:
    """Sorted lists of records and where each starts."""
    lists, starts, at = [], [], 0
    for i, n in enumerate(lengths):
        x = np.sort(scores_of(rng, n, dtype))[::-1].copy()
        lists.append(records(x, np.arange(n) + 1000 * i))
        starts.append(at)
        at += n + 1  # lists needn't follow each other
    return lists, starts


def score_of(record: int, dtype: str) -> float:
    low = np.uint64(record) & np.uint64(0xFFFFFFFF)
    return float(
        low.astype(np.uint16).view(np.float16) if dtype == "float16" else low.astype(np.uint32).view(np.float32)
    )


def merge(lists: list[Array], dtype: str, stop: bool) -> tuple[list[int], list[int]]:
    at, out = [0] * len(lists), []
    while any(at[i] < len(x) for i, x in enumerate(lists)):
        if stop and any(at[i] >= len(x) for i, x in enumerate(lists)):
            break
        heads = [(score_of(int(x[at[i]]), dtype), -i) for i, x in enumerate(lists) if at[i] < len(x)]
        i = -max(heads)[1]
        out.append(int(lists[i][at[i]]))
        at[i] += 1
    return out, at


@FEW
@given(dtype=FLOATS, lengths=st.lists(st.integers(1, 300), min_size=2, max_size=4), stop=st.booleans(),
       advanced=st.booleans(), seed=st.integers(0, 999))  # fmt: skip
def test_merge(kernel: ApiKernel, dtype: str, lengths: list[int], stop: bool, advanced: bool, seed: int) -> None:
    lists, starts = lists_of(np.random.default_rng(seed), lengths, dtype)
    raw = np.zeros(starts[-1] + lengths[-1], np.uint64)
    for x, start in zip(lists, starts, strict=True):
        raw[start : start + x.size] = x
    four = [*lengths, 0, 0][:4], [*starts, 0, 0][:4]
    call = [
        MERGE_ADVANCED if advanced else MERGE,
        int(dtype == "float16"),
        1,
        (1 << len(lists)) - 1,
        int(stop),
        *four[0],
        *four[1],
    ]
    got = kernel.run(call, raw, np.zeros(8192, np.uint64))
    want, taken = merge(lists, dtype, stop)
    np.testing.assert_array_equal(got[: len(want)], np.array(want, np.uint64))
    if advanced and stop:
        np.testing.assert_array_equal(got.view(np.uint32)[TAKEN_AT // 4 :][: len(taken)], taken)


@FEW
@given(dtype=FLOATS, length=st.integers(1, 64), repeat=st.integers(2, 10), seed=st.integers(0, 999))
def test_merge_repeats(kernel: ApiKernel, dtype: str, length: int, repeat: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = [lists_of(rng, [length] * 4, dtype)[0] for _ in range(repeat)]
    raw = np.concatenate([x for lists in groups for x in lists])
    call = [MERGE, int(dtype == "float16"), repeat, 15, 0, *[length] * 4, *(i * length for i in range(4))]
    got = kernel.run(call, raw, np.zeros(raw.size, np.uint64))
    want = np.array([r for lists in groups for r in merge(lists, dtype, False)[0]], np.uint64)
    np.testing.assert_array_equal(got, want)


@FEW
@given(dtype=FLOATS, repeat=st.integers(1, 60), seed=st.integers(0, 999))
def test_sort_and_extract(kernel: ApiKernel, dtype: str, repeat: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = repeat * 32
    x, index = scores_of(rng, n, dtype), np.arange(n, dtype=np.uint32)
    raw = with_indices(x, index)
    got = kernel.run([SORT, int(dtype == "float16"), repeat], raw, np.zeros(n, np.uint64))
    order = descending(x)
    np.testing.assert_array_equal(got, records(x[order], index[order]))
    apart = kernel.run([EXTRACT, int(dtype == "float16"), repeat], raw, np.zeros(65536, np.uint8))
    np.testing.assert_array_equal(apart.view(dtype)[:n], x[order])
    np.testing.assert_array_equal(apart[SECOND:].view(np.uint32)[:n], order)


def test_nan_and_inf(kernel: ApiKernel) -> None:
    x = np.zeros(32, np.float32)
    x[[3, 5, 7]] = np.nan, np.inf, -np.inf
    got = kernel.run([SORT32, 0, 1], with_indices(x, np.arange(32, dtype=np.uint32)), np.zeros(32, np.uint64))
    index = (got >> np.uint64(32)).astype(int)
    assert list(index[:2]) == [3, 5]
    assert index[-1] == 7


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        ([SORT32, 0, 256], "repeatTime 256 is above 255"),
        ([MERGE, 0, 1, 5, 0, 1, 1, 1, 1], "is not 3, 7 or 15"),
        ([MERGE, 0, 1, 3, 0, 5000, 1], "is above 4095"),
    ],
)
def test_rules(kernel: ApiKernel, call: list[int], rule: str) -> None:
    with pytest.raises(DeviceError, match=rule):
        kernel.run(call, np.zeros(64, np.float32), np.zeros(8, np.uint64))
