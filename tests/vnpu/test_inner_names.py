"""What operators of others say and no page documents: names that CANN keeps for itself, and its compiler's own ways."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from test_cube import clean, default_options, device, launch

from ascendopt_tune.device.acl import Binary

__all__ = ["default_options"]
SOURCE = Path(__file__).resolve().parent / "kernels" / "inner_names.cpp"


@cache
def kernels() -> Binary:
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, []))


def test_an_array_of_the_kernels_own_is_copied() -> None:
    x, y = np.zeros(8, np.uint32), np.full(20, 9, np.uint32)
    clean(launch("copied", [x], y, binary=kernels()))
    assert y.tolist() == [*(7 * i + 1 for i in range(19)), 0]


@pytest.mark.parametrize(("rows", "columns", "basic", "alone"), [(16, 512, 0, 0), (64, 128, 1, 0), (24, 200, 0, 1)])
def test_a_tiling_by_its_inner_name_is_the_one_by_its_own(rows: int, columns: int, basic: int, alone: int) -> None:
    x, y = np.zeros(8, np.uint32), np.zeros(10, np.uint32)
    numbers = map(ctypes.c_uint32, (rows, columns, 64 * 1024, basic, alone))
    clean(launch("tiled", [x], y, *numbers, binary=kernels()))
    assert y[0] == rows
    assert y[1] > 0
    assert y[:5].tolist() == y[5:].tolist()


def test_constants_without_a_value_have_their_members_values_and_words_their_bits() -> None:
    x, y = np.zeros(8, np.uint32), np.zeros(5, np.uint32)
    clean(launch("constants", [x], y, binary=kernels()))
    assert y.tolist() == [5, 6, 3, 24, 1 + (2 << 4) + (13 << 8)]
