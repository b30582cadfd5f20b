"""Cube cores: modelled cycles against published ones, which docs/cube_time.md names."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
import pytest
from test_cube import TilesCase, default_options, device, launch

from ascendopt_tune.device.options import LaunchOptions
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


@pytest.mark.parametrize(
    ("kernel", "published", "within"),
    [
        ("loads", 143.0, 0.02),  # matmul_high_performance, case 0: two of LoadData 3D
        ("rows_of_tiles", 351.0, 0.05),  # a profile of 24 cores, family matmul_add: 12 of LoadData 2D, 323 to 376
    ],
)
def test_loads_of_both_operands(kernel: str, published: float, within: float) -> None:
    report = launch(kernel, [], np.zeros(32768, np.float16), ctypes.c_uint32(50))
    assert busy(report, "mte1") / 50 == pytest.approx(published, rel=within)


def test_unit_flags_hand_over_what_is_made() -> None:
    """Row of tiles by row, where products make them so, one product makes all of it and one call takes it."""

    def cycles(how: int) -> float:
        report = launch("handed_over", [], np.zeros((128, 256), np.float16), ctypes.c_uint32(how))
        assert not report["hazards"]
        return float(report["profile"]["task_duration_us"]) * CLOCK

    by_a_flag, by_columns, by_rows, two_made, two_taken = map(cycles, range(5))
    overlap = float(load_chip(DEFAULT_CHIP).values["fixpipe.unit_flag_overlap"])
    assert by_columns == pytest.approx(by_a_flag, abs=60)  # what the flags themselves take
    assert by_columns - by_rows == pytest.approx(overlap * 7 / 8 * 520, rel=0.05)
    assert two_made == pytest.approx(by_columns + 8, abs=2)
    assert two_taken > by_rows + 300


def test_float_takes_twice_as_long_and_tails_round_up() -> None:
    from test_cube import ProductCase, operands

    def mac(dtype: str, m: int, n: int, k: int) -> float:
        a, b, bias = operands(dtype, m, n, k)
        case = ProductCase(m, n, k, 0, 1, 0, 0, 0, n, 0, 0)
        return busy(launch(f"{dtype}_float32", [a, b, bias], np.zeros((m, n), np.float32), case), "mac")

    fixed = mac("float16", 16, 16, 16) - 1
    assert mac("float16", 17, 33, 40) - fixed == pytest.approx(2 * 3 * 3)
    assert mac("float32", 17, 33, 40) - fixed == pytest.approx(2 * 2 * 3 * 5)


# catlass, example 102: what GetBandwidth gives for copies of 128 rows that become tiles, GB/s of a core; by elements
# from row to row (that are a multiple of 256, of 128, of 64, of 16, of nothing), rows of 16 to 512 halves.
BANDWIDTHS = {
    5120: (15.3, 27.2, 43.7, 60.5, 80.0, 80.0),
    5248: (12.2, 21.7, 35.0, 48.4, 66.8, 80.0),
    5184: (7.6, 13.6, 21.9, 30.2, 41.7, 65.2),
    5136: (6.1, 10.9, 17.5, 24.2, 33.4, 52.2),
    5119: (4.6, 8.1, 13.1, 18.1, 25.0, 39.1),
}


def cycles_of_a_row(columns: int, pitch: int) -> float:
    """Of rows in HBM, by the 64 that 128 have more than 64."""
    times = []
    for rows in (64, 128):
        x, out = np.zeros(rows * pitch, np.float16), np.zeros(128 * columns, np.float16)
        case = TilesCase(1, rows, columns, 0, pitch, 128, 1, 0, out.nbytes)
        device().options = LaunchOptions(state="flushed")
        times.append(busy(launch("tiles_b16", [x], out, case), "mte2"))
    return (times[1] - times[0]) / 64


def test_rows_become_tiles_as_fast_as_catlass_says() -> None:
    """Most of them within a quarter; docs/cube_time.md says which aren't."""
    off = []
    for pitch, bandwidths in BANDWIDTHS.items():
        for i, published in enumerate(bandwidths):
            columns = 16 << i
            modelled = columns * 2 / cycles_of_a_row(columns, pitch) * CLOCK / 1000
            print(f"{columns} of {pitch}: published {published} GB/s, modelled {modelled:.1f}")
            off.append(math.log(modelled / published))
    near, spread = sum(abs(x) < math.log(1.25) for x in off), math.exp(math.sqrt(sum(x * x for x in off) / len(off)))
    print(f"{near} of {len(off)} within a quarter, spread {spread:.2f}")
    assert near >= 17
    assert spread < 1.35
