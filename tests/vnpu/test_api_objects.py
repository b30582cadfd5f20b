"""Tensors, queues, buffers, events, scalar functions and system queries, as a kernel sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from api_kernel import ApiKernel
from hypothesis import given, settings
from hypothesis import strategies as st

Array = npt.NDArray[Any]
FEW = settings(max_examples=40, deadline=None)
TENSORS, QUEUES, SCALARS, SYSTEM, FILL = range(5)
INPUT = np.arange(100, 116, dtype=np.int32)


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("objects")


def ask(kernel: ApiKernel, *params: int, words: int = 32) -> list[int]:
    return [int(w) for w in kernel.run(list(params), INPUT, np.full(words, -1, np.int32))]


def test_tensors(kernel: ApiKernel) -> None:
    two = int(np.float32(2).view(np.int32))
    expected = [33, 32, 512, 1, two, 256, 11, 103, 7, 16, 42, 209, 9, 8, 104, 2]
    assert ask(kernel, TENSORS)[: len(expected) + 1] == [*expected, -1]


def test_queues_buffers_and_events(kernel: ApiKernel) -> None:
    queue = [1, 1, 0, 0, 1, 0, 1, 1, 1, 0]
    events = [1, 1, 1, 1]
    assert ask(kernel, QUEUES)[:18] == [*queue, *events, 1, 128, 1, -1]


@FEW
@given(value=st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**64 - 1, 2**63]))
def test_scalar_functions(kernel: ApiKernel, value: int) -> None:
    bits = f"{value:064b}"
    low = value & 0xFFFF
    words = np.array([value], np.uint64).view(np.int32)
    expected = [64 - value.bit_length(), bits.count("1"), bits.count("0"), bits[::-1].find("1"), bits[::-1].find("0"),
                -(-low // 7), -(-low // 7) * 7, int(INPUT[2]), int(words[0])]  # fmt: skip
    assert ask(kernel, SCALARS, *map(int, words))[:9] == expected


def test_system(kernel: ApiKernel) -> None:
    assert ask(kernel, SYSTEM)[:11] == [0, 1, 0, 1, 1, 32, 0, 1, 1, 1, -1]


@FEW
@given(first=st.integers(0, 3000), value=st.integers(-(2**31), 2**31 - 1), second=st.integers(0, 5000),
       other=st.integers(-(2**15), 2**15 - 1))  # fmt: skip
def test_filling_global_memory(kernel: ApiKernel, first: int, value: int, second: int, other: int) -> None:
    got = kernel.run([FILL, first, value, second, other], INPUT, np.full(6000, 7, np.int32))
    expected = np.full(6000, 7, np.int32)
    expected[:first] = value
    expected.view(np.int16)[2 * first : 2 * first + second] = other
    np.testing.assert_array_equal(got, expected)
