"""The quality-diversity archive: niches by behaviour, the fastest of each, and parents drawn from it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendopt_tune.nouns.operator import Candidate, Pair
from ascendopt_tune.nouns.outcome import LaunchFailed, Timed
from ascendopt_tune.nouns.profile import Profile
from ascendopt_tune.nouns.trial import Trial
from ascendopt_tune.search.population import Population, niche_of

CORES = 40


def profile(us: float, cores: int = CORES, length: int = 4096, busy: str = "vec") -> Profile:
    counters = {"mte2_bytes": float(length * 10), "mte2_copies": 10.0}
    return Profile(us, block_dim=cores, counters=counters, **{f"aiv_{busy}_time_us": 1.0})


def trial(number: int, outcome: Profile | None, duplicate_of: int | None = None) -> Trial:
    candidate = Candidate(number, Pair({"t": str(number)}, {}), 0 if number else None, "r", "")
    made = Timed(outcome) if outcome is not None else LaunchFailed("no")
    return Trial(candidate, made, duplicate_of=duplicate_of)


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        (profile(9), profile(5), True),  # time is no trait
        (profile(9, cores=40), profile(9, cores=10), False),
        (profile(9, cores=40), profile(9, cores=36), True),  # both more than three quarters
        (profile(9, length=4096), profile(9, length=256), False),
        (profile(9, length=4096), profile(9, length=5000), True),
        (profile(9, busy="vec"), profile(9, busy="scalar"), False),
        (Profile(9, block_dim=40), Profile(7, block_dim=39), True),  # a target that tells times alone
    ],
)
def test_niches_are_told_by_what_the_launch_did(one: Profile, two: Profile, same: bool) -> None:
    assert (niche_of(one, CORES) == niche_of(two, CORES)) is same


def test_each_niche_keeps_its_fastest_and_failures_and_repeats_are_no_members() -> None:
    history = [
        trial(0, profile(100)),
        trial(1, profile(90)),
        trial(2, profile(95, cores=8)),
        trial(3, None),
        trial(4, profile(80), duplicate_of=1),
        trial(5, profile(95, cores=8)),
    ]
    assert [t.candidate.id for t in Population.of(history, CORES).elites] == [1, 2]


def test_what_is_much_slower_is_no_parent() -> None:
    history = [trial(0, profile(100)), trial(1, profile(140, cores=8)), trial(2, profile(160, length=64))]
    population = Population.of(history, CORES)
    assert [t.candidate.id for t in population.parents(history[0])] == [1]
    drawn = [population.parent(history[0], random.Random(i), 0.5).candidate.id for i in range(200)]
    assert set(drawn) == {0, 1}
    assert 60 < drawn.count(1) < 140
    assert population.parent(history[0], random.Random(0), 0.0) is history[0]


@given(st.lists(st.tuples(st.integers(1, 200), st.integers(1, 48), st.integers(5, 16)), min_size=1, max_size=30))
def test_the_archive_holds_the_fastest_of_all_and_its_order_is_fixed(rows: list[tuple[int, int, int]]) -> None:
    history = [trial(i, profile(us, cores, 1 << length)) for i, (us, cores, length) in enumerate(rows)]
    elites = Population.of(history, CORES).elites
    times = [t.time_us or 0.0 for t in elites]
    assert times == sorted(times)
    assert times[0] == min(us for us, *_ in rows)
    assert len({niche_of(t.outcome.profile, CORES) for t in elites if isinstance(t.outcome, Timed)}) == len(elites)
    assert Population.of(history, CORES) == Population.of(list(history), CORES)


def test_a_change_that_was_as_fast_stays_a_parent_until_something_is_faster() -> None:
    history = [trial(0, profile(100)), trial(1, profile(100)), trial(2, profile(105))]
    population = Population.of(history, CORES)
    assert [t.candidate.id for t in population.elites] == [0]
    assert [t.candidate.id for t in population.enabling(history[0])] == [1]
    assert [t.candidate.id for t in population.parents(history[0])] == [1]
    faster = trial(3, profile(80))
    assert Population.of([*history, faster], CORES).enabling(faster) == ()
