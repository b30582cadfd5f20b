"""How many cores pay, once the same kernel has run on several numbers of them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from test_kernel_rules import operator

from ascendopt_tune.evaluate.cores import turn_us, turns
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.nouns.history import History
from ascendopt_tune.nouns.operator import Candidate, Pair
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.nouns.profile import Profile
from ascendopt_tune.nouns.trial import Move, Trial
from ascendopt_tune.search.proposer import SearchState
from ascendopt_tune.search.tiling.context import Context

CHIP = load_chip("ascend910b4")
SPEC = TensorSpec("float16", (64, 1024))
COUNTERS = {"mte2_bytes": 1e5, "mte3_bytes": 1e5, "vec_instructions": 0.0, "core_start_us": 1.7}


def profile(cores: int, us: float = 9.0) -> Profile:
    return Profile(us, aiv_time_us=4.0, aiv_vec_time_us=0.1, block_dim=cores, counters=COUNTERS)


def trial(number: int, cores: int, us: float, parent: int | None, family: str = "core_count", text: str = "") -> Trial:
    pair = Pair({"t.cpp": f"host {cores}"}, {"k.cpp": f"kernel {text}"})
    moves = (Move("s", family, "down", cores),) if parent is not None else ()
    return Trial(Candidate(number, pair, parent, "x", "change"), Timed(profile(cores, us)), moves, 1, 1)


def context(trials: list[Trial], of: int) -> Context:
    case = Case((SPEC,), (SPEC,))
    state = SearchState(operator(), case, CHIP, None, trials[0], trials[of], History(trials), 0)
    return Context.of(state)


@given(st.floats(0.0, 60.0), st.integers(1, 40), st.integers(1, 40), st.booleans())
def test_two_numbers_of_cores_tell_how_much_is_split(work: float, first: int, second: int, at_second: bool) -> None:
    if first == second:
        return
    turn = turn_us(profile(second if at_second else first), CHIP)

    def us(cores: int) -> float:
        return 2.0 + turn * turns(cores, CHIP) + work / cores

    trials = [trial(0, first, us(first), None), trial(1, second, us(second), 0)]
    costs = context(trials, int(at_second)).core_costs
    lowest = min(us(n) for n in range(1, 41))
    paying = context(trials, int(at_second)).paying_cores
    assert paying is not None
    assert abs(us(paying) - lowest) < 1e-6 * max(1.0, lowest)
    assert all(abs((costs[n - 1] - costs[0]) - (us(n) - us(1))) < 1e-6 * max(1.0, us(1)) for n in (2, 10, 40))


def test_other_changes_and_other_kernels_say_nothing_of_cores() -> None:
    alone = context([trial(0, 40, 9.0, None)], 0).core_costs
    for other in (trial(1, 8, 5.0, 0, family="ub_size"), replace(trial(1, 8, 5.0, None), moves=())):
        assert context([trial(0, 40, 9.0, None), other], 0).core_costs == alone
    assert context([trial(0, 40, 9.0, None), trial(1, 8, 5.0, 0)], 0).core_costs != alone


def test_a_number_that_costs_much_more_is_worth_little() -> None:
    found = context([trial(0, 40, 9.0, None)], 0)
    best = found.paying_cores
    assert best is not None
    assert found.worth_of_cores(best) == 1.0
    assert found.worth_of_cores(1) < found.worth_of_cores(max(2, best // 2)) < 1.0
    assert context([trial(0, 40, 9.0, None)], 0).worth_of_cores(0) == 1.0
