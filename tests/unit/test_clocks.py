"""Plausible clocks: draws from the intervals of a chip file, and the interval of a speedup over them."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendopt_tune.nouns.chip import Chip, Constant, chip_names, load_chip
from ascendopt_tune.nouns.clocks import SCALE, Interval, interval, mean, plausible, speedup_text, speedups

widths = st.floats(0.1, 1e3)
ratios = st.lists(st.floats(0.1, 10.0), min_size=1, max_size=60)


@st.composite
def constants(draw: st.DrawFn) -> Constant:
    value = draw(st.floats(-100, 1e3))
    return Constant(value, value - draw(st.just(0.0) | widths), value + draw(st.just(0.0) | widths), "")


def chip(**of: Constant) -> Chip:
    return Chip("x", {key: c.value for key, c in of.items()}, of)


@settings(max_examples=200, deadline=None)
@given(constants(), st.integers(1, 60), st.integers(0, 1 << 30))
def test_a_draw_stays_near_its_interval(c: Constant, n: int, seed: int) -> None:
    drawn = [clock["k"] for clock in plausible(chip(k=c), n, seed)]
    assert len(drawn) == n
    slack = 1e-9 * max(1.0, abs(c.low), abs(c.high))
    for value in drawn:
        assert value <= c.value + 1.3 * SCALE * (c.high - c.value) + slack
        assert value >= c.value - 1.3 * SCALE * (c.value - c.low) - slack
        assert c.low <= 0 or value > 0
        assert c.low < 0 or value >= 0


@settings(max_examples=50, deadline=None)
@given(constants(), st.integers(1, 60))
def test_one_draw_of_twenty_lies_beyond_each_scaled_end(c: Constant, n: int) -> None:
    drawn = [clock["k"] for clock in plausible(chip(k=c), n)]
    slack = 1e-9 * max(1.0, abs(c.low), abs(c.high))
    if c.low < c.value < c.high:
        high, low = (c.value + SCALE * (end - c.value) for end in (c.high, c.low))
        assert abs(sum(v > high + slack for v in drawn) / n - 0.05) <= 2 / n
        assert abs(sum(v > c.value for v in drawn) / n - 0.5) <= 2 / n
        assert low <= c.low / 2 or abs(sum(v < low - slack for v in drawn) / n - 0.05) <= 2 / n


def test_an_interval_without_a_zero_is_never_left_through_it() -> None:
    clocks = plausible(chip(far=Constant(100.0, 1.0, 101.0, ""), zero=Constant(1.0, 0.0, 2.0, "")), 200)
    assert min(c["far"] for c in clocks) == 0.5
    assert min(c["zero"] for c in clocks) == 0.0


def test_draws_are_fixed_and_no_constant_changes_another_s() -> None:
    one, two = Constant(10.0, 5.0, 20.0, ""), Constant(1.0, 0.5, 2.0, "")
    both = plausible(chip(a=one, b=two))
    assert both == plausible(chip(b=two, a=one))
    assert [c["a"] for c in both] == [c["a"] for c in plausible(chip(a=one))]
    assert both != plausible(chip(a=one, b=two), seed=1)
    moved = plausible(chip(a=replace(one, value=11.0), b=two))
    higher = [(x["a"] > 11.0) == (y["a"] > 10.0) for x, y in zip(moved, both, strict=True)]
    assert all(higher), "the same chance, whatever the value"


def test_constants_are_drawn_independently() -> None:
    c = Constant(0.0, -1.0, 1.0, "")
    clocks = plausible(chip(**{f"k{i}": c for i in range(10)}), 400)
    columns = [[clock[f"k{i}"] for clock in clocks] for i in range(10)]
    for i in range(10):
        for k in range(i):
            assert abs(statistics.correlation(columns[i], columns[k])) < 0.2


@pytest.mark.parametrize("name", chip_names())
def test_every_constant_of_every_chip_has_an_interval_that_holds_it(name: str) -> None:
    found = load_chip(name)
    for key, c in found.constants.items():
        assert c.low <= c.value <= c.high, key
        assert math.isfinite(c.low), key
        assert math.isfinite(c.high), key
        assert c.source, key
    assert found.constants.keys() == plausible(found, 1)[0].keys()


@settings(deadline=None)
@given(ratios)
def test_the_interval_lies_within_what_was_found(of: list[float]) -> None:
    found = interval(of)
    assert found is not None
    assert min(of) * (1 - 1e-12) <= found.low <= found.high <= max(of) * (1 + 1e-12)
    assert found.wins == sum(s > 1 for s in of) / len(of)
    assert interval(list(reversed(of))) == found


@settings(deadline=None)
@given(ratios, st.floats(0.5, 2.0))
def test_a_common_factor_of_both_times_cancels(times: list[float], factor: float) -> None:
    best = [1.0 + t for t in times]
    found = speedups([factor * t for t in times], [factor * b for b in best])
    assert found == pytest.approx(speedups(times, best))
    assert all(s < 1 for s in found)


def test_an_interval_by_hand() -> None:
    of = [1.0 + i / 100 for i in range(101)]
    found = interval(of)
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(1.05), pytest.approx(1.95))
    assert found.wins == 100 / 101
    assert found.survives
    assert interval([]) is None
    assert speedup_text(1.5, found) == "1.50x (1.05 to 1.95 over plausible clocks)"
    assert speedup_text(1.5, None) == "1.50x"
    assert interval([1.0] * 40) == Interval(1.0, 1.0, 0.0), "as fast is not faster"


def test_json_of_an_interval() -> None:
    found = Interval(1.1, 1.2, 0.975)
    assert Interval.from_json(json.loads(json.dumps({"speedup": 1.15, **found.to_json()}))) == found
    assert Interval.from_json({"speedup": 1.15}) is None


@settings(deadline=None)
@given(st.lists(st.floats(0.1, 10.0), min_size=3, max_size=3), st.floats(0.1, 5.0))
def test_the_mean_of_cases_is_geometric_and_weighted(of: list[float], weight: float) -> None:
    assert mean([of, of], [1.0, weight]) == pytest.approx(tuple(of))
    inverse = [1 / s for s in of]
    assert mean([of, inverse]) == pytest.approx((1.0, 1.0, 1.0))
    assert mean([of, ()]) == ()
