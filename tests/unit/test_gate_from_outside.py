"""What the gate's inputs and limits learned from variants on cube cores, without launching anything."""

from __future__ import annotations

import numpy as np
import pytest

from ascendopt_tune.device.launch import SYSTEM_WORKSPACE, users_part
from ascendopt_tune.evaluate.accuracy import differences, free
from ascendopt_tune.evaluate.inputs import make_inputs, schedule
from ascendopt_tune.evaluate.reference import _as_usual
from ascendopt_tune.evaluate.shares import may_share, shares
from ascendopt_tune.nouns.case import Case, TensorSpec

A, B, COUNTS = TensorSpec("float16", (97, 300)), TensorSpec("float16", (5, 300, 77)), TensorSpec("int64", (5,))
GROUPED = Case((A, B, COUNTS), (TensorSpec("float16", (97, 77)),))
SETTINGS = {"domain": {"counts": {"low": 0, "high": 32}}}


@pytest.mark.parametrize(
    ("asked", "bare", "part"),
    [
        (SYSTEM_WORKSPACE + 96, True, 96),
        (SYSTEM_WORKSPACE, True, 0),
        (96, True, 96),
        (96, False, 0),
        (SYSTEM_WORKSPACE + 96, False, 96),
    ],
)
def test_the_kernels_part_of_a_workspace(asked: int, bare: bool, part: int) -> None:
    assert users_part(asked, bare) == part


def test_counts_add_up_to_an_axis_or_about_as_much() -> None:
    lengths = may_share(COUNTS, (0, 32), [A, B])
    assert lengths == [97, 77, 5]
    made = [shares(COUNTS, (0, 32), lengths, seed, np.random.default_rng(seed)) for seed in range(1, 60, 2)]
    assert all(((m >= 0) & (m <= 32)).all() for m in made)
    sums = {int(m.sum()) for m in made}
    assert all(min(abs(s - n) for n in lengths) <= 1 for s in sums)
    assert {96, 97, 98} <= sums
    assert any((m == 1).any() for m in made)
    assert all((m == 0).any() for m in made[::3])


def test_what_can_not_share_is_not_asked_to() -> None:
    assert may_share(COUNTS, (None, 32), [A, B]) == []
    assert may_share(COUNTS, (-3, 32), [A, B]) == []
    assert may_share(TensorSpec("float16", (5,)), (0, 32), [A, B]) == []
    assert may_share(TensorSpec("int64", (5,)), (0, 2), [A]) == []


def test_counts_share_the_rows_in_every_other_trial() -> None:
    sums = [
        int(make_inputs(GROUPED, ("a", "b", "counts"), SETTINGS, kind, seed)[2].sum())  # type: ignore[union-attr]
        for seed, kind in ((1, "lines"), (3, "columns"), (7, "negative"))
    ]
    assert all(min(abs(s - n) for n in (97, 77, 5)) <= 1 for s in sums)


def test_the_smaller_factor_of_a_product_has_patterns_of_its_own() -> None:
    a, b = TensorSpec("float32", (64, 96)), TensorSpec("float32", (96, 300))
    case = Case((a, b), (TensorSpec("float32", (64, 300)),))
    order = ("lines others", "columns others", "tiny all", "sparse all", "balanced all", "far others")
    assert schedule(case, ("a", "b"), {}, 27)[-6:] == order
    made = make_inputs(case, ("a", "b"), {}, "lines others", 3)
    assert np.abs(np.asarray(made[0])).max() > 100
    assert np.abs(np.asarray(made[1])).max() < 8


def test_first_lines_of_a_tile_are_nothing_in_some_tiles() -> None:
    case = Case((TensorSpec("float32", (512, 40)),), ())
    found = 0
    for seed in range(20):
        (x,) = make_inputs(case, ("x",), {}, "lines", seed, (64,))
        lines = ~np.asarray(x).any(1)
        found += sum(
            bool(lines[t] and lines[t + 32] and lines[t + 63] and not lines[t + 10]) for t in range(0, 512, 64)
        )
    assert found > 20


def test_a_sum_that_cancels_is_held_to_less() -> None:
    expected = np.array([1.0, 1.0], np.float16)
    unit = 2.0**-10
    leeway = np.array([unit / 64, unit / 8], np.float32)
    assert free(expected, leeway).tolist() == [unit / 64, 2 * unit]
    errors = differences((expected + np.float16(2 * unit)).astype(np.float16), expected, leeway)
    assert errors is not None
    assert errors[0] > 1.9
    assert errors[1] == 0
    # Of 32 bits, by how much of the two numbers that it is what is left of.
    leeway = np.array([2.0**-18, 2.0**-16], np.float32)
    assert free(expected.astype(np.float32), leeway).tolist() == [2.0**-18, 2.0**-14]


def test_a_leeway_that_is_small_by_chance_is_that_of_its_like() -> None:
    expected = np.full(100, 1.5, np.float16)
    expected[50:] = 100.0
    leeway = np.concatenate([np.full(50, 1e-3), np.full(50, 1e-6)]).astype(np.float32)
    leeway[3], leeway[60] = 0.0, np.inf
    _as_usual(expected, leeway)
    assert leeway[3] == np.float32(1e-3)
    assert leeway[60] == np.inf
    assert (leeway[70:] == np.float32(1e-6)).all()
