"""As exact as the original, by stated factors; what float32 can't keep is asked of nobody."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ascendopt_tune.evaluate.accuracy import (
    FACTORS,
    Errors,
    ErrorsSoFar,
    Limit,
    Sum,
    differences,
    limits,
    too_inaccurate,
    unit,
)
from ascendopt_tune.evaluate.compare import Tolerance, compare, wrong_elements
from ascendopt_tune.evaluate.verdict import least_us
from ascendopt_tune.nouns.chip import load_chip

WIDE, HALF = Tolerance(1e-2, 1e-2, 1e-3), Tolerance(1e-3, 1e-3, 1e-3)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_a_unit_is_the_distance_to_the_next_number(dtype: type) -> None:
    values = np.asarray([1.0, 1.5, 2.0, 0.3, -7.0, 1e-3], dtype)
    step = unit(values)
    assert step is not None
    away = values.astype(np.float64) + np.sign(values.astype(np.float64)) * step
    np.testing.assert_array_equal(away.astype(dtype).astype(np.float64), away)  # a number of the dtype
    halfway = values.astype(np.float64) + np.sign(values.astype(np.float64)) * step * 0.49
    np.testing.assert_array_equal(halfway.astype(dtype), values)  # and nothing between


def test_whole_numbers_count_steps() -> None:
    step = unit(np.array([2, -100], np.int8))
    assert step is not None
    assert step.tolist() == [1.0, 1.0]
    assert unit(np.array([True])) is None


def test_errors_are_counted_beyond_their_leeway() -> None:
    expected = np.ones(1000, np.float32)
    got = expected.copy()
    got[:10] += np.float32(2.0**-20)  # 8 units
    text, errors = compare("y", got, expected, WIDE)
    assert text is None
    assert errors == Errors(8.0, 0.08, (64 * 10 / 1000) ** 0.5)
    leeway = np.zeros(1000, np.float32)
    leeway[:5] = 2.0**-20
    leeway[5:10] = np.inf
    assert compare("y", got, expected, WIDE, leeway=leeway)[1] == Errors()


@pytest.mark.parametrize(("dtype", "little"), [(np.float16, 1e-4), (np.float32, 1e-8), (ml_dtypes.bfloat16, 1e-5)])
def test_a_zero_that_nothing_moves_is_zero(dtype: type, little: float) -> None:
    expected, got = np.zeros(4, dtype), np.array([0.0, little, little, -little], dtype)
    found = differences(got, expected, np.array([0.0, 0.0, little * 1e-3, 0.0], np.float32))
    assert found is not None
    assert found[0] == 0
    assert found[2] < 1  # the sum of what cancels may be off by this
    most = limits(np.dtype(dtype).name, 1000, Errors())
    assert most is not None
    assert found[1] == found[3] > most.largest
    smallest = np.array([1], f"u{got.itemsize}").view(dtype)
    assert differences(smallest, np.zeros(1, dtype), np.zeros(1, np.float32)) == [1.0]


def test_leeway_widens_the_tolerance_and_infinite_leeway_says_nothing() -> None:
    expected, leeway = np.float32([0.0, 1.0, 2.0]), np.float32([0.5, 0.0, np.inf])
    got = np.float32([0.4, 1.0, np.nan])
    assert not wrong_elements(got, expected, Tolerance(1e-5, 1e-5), leeway).any()
    assert wrong_elements(got, expected, Tolerance(1e-5, 1e-5)).tolist() == [True, False, True]


def test_a_rounded_integer_may_lie_on_the_other_side_of_a_half_only() -> None:
    expected, leeway = np.int8([10, 10, 10]), np.float32([1, 1, 0])
    assert wrong_elements(np.int8([11, 12, 11]), expected, Tolerance(), leeway).tolist() == [False, True, True]


def test_a_candidate_may_be_worse_than_the_baseline_by_the_factors() -> None:
    bad = Errors(2000.0, 100.0, 300.0)
    limit = limits("float32", 1 << 20, bad)
    assert limit == Errors(FACTORS[0] * 2000.0, FACTORS[1] * 100.0, FACTORS[2] * 300.0)
    assert too_inaccurate("y", Errors(19000.0, 199.0, 599.0), limit) is None
    text = too_inaccurate("y", Errors(0.0, 201.0, 0.0), limit)
    assert text is not None
    assert "output y is less accurate than the original's: its mean error is 201 units" in text


def test_an_exact_baseline_forbids_no_other_order_of_rounding() -> None:
    for dtype in ("float16", "bfloat16", "float32"):
        limit = limits(dtype, 1 << 20, Errors())
        assert limit is not None
        assert limit.largest >= 2
        few = limits(dtype, 3, Errors())
        assert few is not None
        assert few.mean >= 1  # one of three elements may be off
    assert limits("bool", 3, Errors()) is None


def test_whole_numbers_that_are_off_by_one_too_often_are_less_accurate() -> None:
    """A tolerance of one step for quantized values doesn't hide that all of them are rounded down."""
    rng = np.random.default_rng(1)
    exact = rng.uniform(-100, 100, 4096)
    expected, down = np.rint(exact).astype(np.int8), np.floor(exact).astype(np.int8)
    limit = limits("int8", exact.size, Errors())
    assert limit is not None
    errors = differences(down, expected, np.zeros(exact.size, np.float32))
    assert errors is not None
    total = Sum()
    total.add(errors)
    assert "mean" in (too_inaccurate("y", total.over(exact.size), limit) or "")
    few = expected.copy()
    few[:40] += 1
    errors = differences(few, expected, None)
    assert errors is not None
    total = Sum()
    total.add(errors)
    assert too_inaccurate("y", total.over(exact.size), limit) is None


def test_rounding_once_too_often_shows_in_the_mean() -> None:
    """x * g with the product of two roundings: of a wide tolerance nothing is left."""
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal((2, 100000)).astype(np.float16)
    scale = np.float32(1.7)
    exact = (x.astype(np.float64) * np.float64(scale) * g.astype(np.float64)).astype(np.float16)
    once = (x.astype(np.float32) * scale * g.astype(np.float32)).astype(np.float16)
    twice = (x.astype(np.float32) * scale).astype(np.float16).astype(np.float32) * g.astype(np.float32)
    text, baseline = compare("y", once, exact, WIDE)
    assert text is None
    text, found = compare("y", twice.astype(np.float16), exact, WIDE)
    assert text is None
    limit = limits("float16", exact.size, baseline)
    assert limit is not None
    assert too_inaccurate("y", found, limit) is not None


def test_no_launch_is_faster_than_an_empty_one_that_writes_the_outputs() -> None:
    chip = load_chip("ascend910b2")
    empty, large = least_us(chip, 0), least_us(chip, 1 << 30)
    assert 0 < empty < 2
    assert 100 < large - empty < 1000  # a GB at some TB/s


def test_of_a_single_element_the_wrong_neighbour_every_other_time_shows_over_all_trials() -> None:
    """Rounded down instead of to nearest: no trial of one element tells, twenty of them do."""
    rng = np.random.default_rng(2)
    exact = rng.uniform(1, 100, 20)
    limit = limits("float16", 1, Errors())
    assert limit is not None
    for rounded, wrong in ((exact, False), (exact - np.asarray(unit(exact.astype(np.float16))) / 2, True)):
        seen = ErrorsSoFar()
        for trial, (got, expected) in enumerate(zip(rounded.astype(np.float16), exact.astype(np.float16), strict=True)):
            text, errors = compare("y", got.reshape(1), expected.reshape(1), WIDE)
            assert text is None
            assert too_inaccurate("y", errors, limit) is None
            seen.note("y", (trial, 0), errors, Limit(limit, 1, Errors(), 0.0))
        assert ("over all 20 elements of 20 results" in (seen.together("y", "float16") or "")) is wrong
    assert seen.together("y", "float32") is None
    assert seen.together("other", "float16") is None


def test_a_line_that_is_off_as_a_whole_is_seen_among_many() -> None:
    rng = np.random.default_rng(0)
    exact = rng.standard_normal((401, 133))
    expected, leeway = exact.astype(np.float16), np.zeros(exact.shape, np.float32)
    limit = limits("float16", exact.size, Errors())
    assert limit is not None
    for moved, seen in ((1.0 + 2.0**-13, False), (1.0 + 2.0**-10, True)):
        wide = exact.copy()
        wide[7] *= moved
        why, errors = compare("y", wide.astype(np.float16), expected, HALF, leeway=leeway)
        assert why is None
        assert ("in one line" in (too_inaccurate("y", errors, limit) or "")) is seen
    # Of few different values all may go the same way.
    same = np.full((401, 133), 1.0 + 2.0**-10, np.float16)
    other = same.copy()
    other[7] = np.nextafter(np.float16(1.0), np.float16(2.0)) + np.float16(2.0**-10)
    assert compare("y", other, same, HALF, leeway=leeway)[1].line == 0.0


def _mean_error(expected: np.ndarray, off: np.ndarray) -> float:
    """Of float16 results, ``off`` by so many units."""
    words = (expected.view(np.int16) + off).astype(np.int16)
    return compare("y", words.view(np.float16), expected, WIDE, leeway=np.zeros(expected.shape, np.float32))[1].mean


def test_results_that_are_expected_alike_are_one_rounding() -> None:
    rng = np.random.default_rng(0)
    expected = rng.uniform(1, 2048, (5, 1003)).astype(np.float16)
    expected[1] = 3.0
    eighth, quarter = (np.asarray(rng.random(expected.shape) < share, np.int16) for share in (0.125, 0.3))
    eighth[1] = 1
    assert np.mean(eighth) > 0.25
    assert _mean_error(expected, eighth) < 0.19
    assert _mean_error(expected, quarter) > 0.19  # a rounding too many, as in other lines
    single = np.full(1, 3.0, np.float16)
    assert _mean_error(single, np.ones(1, np.int16)) == 1.0


def test_a_float32_result_that_cancels_is_off_by_more_than_its_leeway() -> None:
    expected, leeway = np.float32([1e-6, 1.0]), np.float32([1e-9, 2.0**-20])
    errors = differences(expected + np.float32([3e-9, 2.0**-19]), expected, leeway)
    assert errors is not None
    assert errors[0] == 0
    assert errors[1] > 7
    errors = differences(expected + np.float32([1e-8, 0.0]), expected, leeway)
    assert errors is not None
    assert errors[0] > 1024
