"""Cube cores: modelled cycles against published ones, which docs/cube.md names."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from test_cube import default_options, launch

from ascendopt_tune.nouns.chip import DEFAULT_CHIP, load_chip

__all__ = ["default_options"]
CLOCK = float(load_chip(DEFAULT_CHIP).values["core.clock_mhz"])


def busy(report: dict[str, Any], pipe: str) -> float:
    return float(report["profile"][f"aic_{pipe}_time_us"]) * CLOCK


def products(count: int, m: int, n: int, k: int, alone: bool) -> float:
    """Cycles that the matrix unit is busy."""
    out = np.zeros(256, np.float32)
    numbers = (count, int(alone), m, n, k)
    return busy(launch("products", [], out, *map(ctypes.c_uint32, numbers)), "mac")


@pytest.mark.parametrize(
    ("shape", "count", "alone", "published"),
    [
        ((64, 64, 64), 20, True, 125.0),  # matmul_high_performance, case 0: not overlapped
        ((128, 256, 64), 200, False, 524.5),  # cases 4, 8 and the basic API: 521 to 528
    ],
)
def test_products_alone_and_well_fed(shape: tuple[int, int, int], count: int, alone: bool, published: float) -> None:
    assert products(count, *shape, alone) / count == pytest.approx(published, rel=0.02)


@pytest.mark.parametrize(("n", "published"), [(256, 4225.0), (128, 2172.0)])
def test_eight_products_in_a_row(n: int, published: float) -> None:
    """The page about unitFlag: 4225 cycles, and 2172 for half the width."""
    assert products(8, 128, n, 64, alone=False) == pytest.approx(published, rel=0.02)


def test_loads_of_both_operands() -> None:
    """matmul_high_performance, case 0: 8 KB to L0A and 8 KB to L0B take 143.0 cycles."""
    out = np.zeros(32768, np.float16)
    report = launch("loads", [], out, *map(ctypes.c_uint32, (50, 16, 16)))
    assert busy(report, "mte1") / 50 == pytest.approx(143.0, rel=0.02)


def test_float_takes_twice_as_long_and_tails_round_up() -> None:
    from test_cube import ProductCase, operands

    def mac(dtype: str, m: int, n: int, k: int) -> float:
        a, b, bias = operands(dtype, m, n, k)
        case = ProductCase(m, n, k, 0, 1, 0, 0, 0, n, 0, 0)
        return busy(launch(f"{dtype}_float32", [a, b, bias], np.zeros((m, n), np.float32), case), "mac")

    fixed = mac("float16", 16, 16, 16) - 1
    assert mac("float16", 17, 33, 40) - fixed == pytest.approx(2 * 3 * 3)
    assert mac("float32", 17, 33, 40) - fixed == pytest.approx(2 * 2 * 3 * 5)
