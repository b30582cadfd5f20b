"""Finalists are measured again, in turn, and accepted only when they are faster beyond effect and noise."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from ascendopt_tune.errors import DeviceError, NoWorkingCandidate
from ascendopt_tune.evaluate.gate import Checked
from ascendopt_tune.evaluate.protocol import EvaluationResult
from ascendopt_tune.nouns.operator import Candidate, Pair
from ascendopt_tune.nouns.outcome import Outcome, Timed, WrongResult
from ascendopt_tune.nouns.profile import Profile
from ascendopt_tune.nouns.trial import Trial
from ascendopt_tune.search import keep
from ascendopt_tune.search.acceptance import MOST_FRAGILE, Comparison, accept, decide
from ascendopt_tune.search.engine import SearchResult
from ascendopt_tune.store.entry import FRAGILE, NO_WIN, WIN


def trial(number: int, us: float = 90.0) -> Trial:
    pair = Pair({"t": str(number)}, {})
    return Trial(Candidate(number, pair, 0 if number else None, "r", str(number)), Timed(Profile(us)))


def scripted(times: dict[int, list[float | None]], spread: float = 0.0) -> Callable[[Trial], Comparison | None]:
    """Times of each finalist by round against a baseline of 100 us; remembers the order in ``asked``."""
    left = {n: list(values) for n, values in times.items()}

    def measure(t: Trial) -> Comparison | None:
        us = left[t.candidate.id].pop(0)
        return None if us is None else Comparison(us, 100.0, spread, spread)

    return measure


# (times by round, spread within a round, accepted in order)
CASES: list[tuple[dict[int, list[float | None]], float, tuple[int, ...]]] = [
    ({1: [90, 90, 90]}, 0.0, (1,)),
    ({1: [99.5, 99.5, 99.5]}, 0.0, ()),  # below the minimum effect
    ({1: [101, 102, 103]}, 0.0, ()),
    ({1: [80, 100, 120]}, 0.0, ()),  # noise between the rounds
    ({1: [95, 95, 95]}, 2.0, ()),  # noise within a round: 5 % against twice 4 %
    ({1: [90, 90, 90]}, 2.0, (1,)),
    ({1: [80, 90, 91]}, 0.0, (1,)),  # one lucky round is no reason against it
    ({1: [90] * 3, 2: [80] * 3}, 0.0, (2, 1)),
    ({2: [90] * 3, 1: [90.5] * 3}, 0.0, (1, 2)),  # a tie: who was found first
    ({1: [92] * 3, 2: [91.2] * 3, 3: [90.4] * 3}, 0.0, (2, 3, 1)),  # 3 is best, 2 ties with it, 1 doesn't
    ({1: [50, None, 50], 2: [90] * 3}, 0.0, (2,)),  # failed once: out
]


@pytest.mark.parametrize(("times", "spread", "wanted"), CASES)
def test_who_is_accepted(times: dict[int, list[float | None]], spread: float, wanted: tuple[int, ...]) -> None:
    decision = decide([trial(n) for n in times], scripted(times, spread), rounds=3, min_effect=0.01)
    assert decision.order == wanted
    assert decision.outcome == (WIN if wanted else NO_WIN)
    assert decision.to_json()["outcome"] == decision.outcome


def test_rounds_are_interleaved() -> None:
    asked: list[int] = []

    def measure(t: Trial) -> Comparison:
        asked.append(t.candidate.id)
        return Comparison(90.0, 100.0)

    decide([trial(1), trial(2)], measure, rounds=3, min_effect=0.01)
    assert asked == [1, 2, 1, 2, 1, 2]


@pytest.mark.parametrize("real", [0.0, 0.1])
def test_luck_is_told_from_a_gain(real: float) -> None:
    """The fastest three of twenty equal candidates, on a device with 3 % noise that drifts by 20 % meanwhile."""
    rng, drift, wins = random.Random(7), [1.0], 0
    for _ in range(200):
        first = sorted(range(20), key=lambda _: rng.gauss(100, 3))[:3]

        def measure(t: Trial) -> Comparison:
            drift[0] *= rng.uniform(0.98, 1.02)
            one, two = ([rng.gauss(100 * f, 3) * drift[0] for _ in range(9)] for f in (1 - real, 1.0))
            half = [(sorted(v)[6] - sorted(v)[2]) / 2 for v in (one, two)]
            return Comparison(sorted(one)[4], sorted(two)[4], *half)

        wins += decide([trial(n) for n in first], measure, rounds=5, min_effect=0.01).outcome == WIN
    assert wins <= 2 if real == 0.0 else wins >= 190


class FakeGate:
    """Confirms everything but ``wrong``; re-measures with what ``again`` says (by id, in us, the baseline has 100).

    ``over_clocks``: speedups under plausible clocks, by id; ``lost``: those that aren't to be had.
    """

    def __init__(
        self,
        wrong: tuple[str, ...] = (),
        again: dict[str, float] | None = None,
        over_clocks: dict[str, tuple[float, ...]] | None = None,
    ) -> None:
        self.wrong, self.again, self.over_clocks = wrong, again or {}, over_clocks or {}
        self.lost: tuple[str, ...] = ()
        self.incumbent: Checked | None = None
        self.confirmed: list[str] = []

    def confirm(self, pair: Pair) -> Checked:
        self.confirmed.append(pair.tiling["t"])
        bad = pair.tiling["t"] in self.wrong
        return Checked(EvaluationResult(WrongResult("differs") if bad else Timed(Profile(1.0))), {})

    def speedups(self, pair: Pair) -> tuple[float, ...]:
        if pair.tiling["t"] in self.lost:
            raise DeviceError("lost")
        return self.over_clocks.get(pair.tiling["t"], ())

    def evaluate(self, pair: Pair) -> Checked:
        counters = {"incumbent_us": 100.0, "incumbent_spread_us": 0.5, "candidate_spread_us": 0.5}
        outcome: Outcome = Timed(Profile(self.again.get(pair.tiling["t"], 100.0), counters=counters))
        return Checked(EvaluationResult(outcome), {})

    def set_incumbent(self, result: Checked) -> None:
        self.incumbent = result


def confirm(gate: FakeGate, target: str, *times: float) -> tuple[int, str, list[str]]:
    history = tuple(trial(i, us) for i, us in enumerate((100.0, *times)))
    found: Any = gate
    kept = keep.confirm(found, SearchResult(history[0], history[0], history, "budget", 1.0), target)
    return kept.trial.candidate.id, kept.decision.outcome, gate.confirmed


def test_where_times_do_not_vary_the_fastest_is_confirmed() -> None:
    assert confirm(FakeGate(), "virtual", 90, 80, 99.99) == (2, WIN, ["2"])
    assert confirm(FakeGate(), "virtual", 99.99, 101) == (0, NO_WIN, ["0"])
    assert confirm(FakeGate(wrong=("2",)), "virtual", 90, 80) == (1, WIN, ["2", "1"])
    assert confirm(FakeGate(wrong=("1", "2", "3")), "virtual", 70, 80, 85, 90) == (4, WIN, ["1", "2", "3", "4"])
    with pytest.raises(NoWorkingCandidate, match=r"trial 1.*as written"):
        confirm(FakeGate(wrong=("0", "1")), "virtual", 90)


SURE, FRAIL = (1.2,) * 19 + (0.9,), (1.2,) * 18 + (0.9,) * 2


def test_a_win_has_to_survive_the_clock_s_uncertainty() -> None:
    assert confirm(FakeGate(over_clocks={"1": FRAIL, "2": SURE}), "virtual", 90, 80) == (2, WIN, ["2"])
    assert confirm(FakeGate(over_clocks={"1": SURE, "2": FRAIL}), "virtual", 90, 80) == (1, WIN, ["1"])
    gate = FakeGate(over_clocks={"1": FRAIL, "2": FRAIL})
    assert confirm(gate, "virtual", 90, 80) == (0, FRAGILE, ["0"])
    assert confirm(FakeGate(wrong=("2",), over_clocks={"1": FRAIL}), "virtual", 90, 80) == (0, FRAGILE, ["2", "0"])


def test_what_is_tried_after_a_fragile_win_is_bounded() -> None:
    times = [50.0 + i for i in range(MOST_FRAGILE + 1)]
    gate = FakeGate(over_clocks={str(n): FRAIL for n in range(1, MOST_FRAGILE + 1)})
    assert confirm(gate, "virtual", *times) == (0, FRAGILE, ["0"])
    base, *others = (trial(i, us) for i, us in enumerate((100.0, *times)))
    decision = accept(others, base, gate, "virtual").decision.to_json()
    assert [f["id"] for f in decision["fragile"]] == list(range(1, MOST_FRAGILE + 1))
    assert decision["fragile"][0]["wins"] == 0.9
    del gate.over_clocks["3"]
    assert confirm(gate, "virtual", *times)[:2] == (3, WIN)


def test_a_pair_that_can_not_be_timed_again_makes_room() -> None:
    gate = FakeGate()
    gate.lost = ("2",)
    assert confirm(gate, "virtual", 90, 80) == (1, WIN, ["1"])


def test_on_a_device_a_lucky_measurement_is_no_win() -> None:
    gate = FakeGate(again={"1": 100.2, "2": 99.8})
    assert confirm(gate, "npu", 90, 80) == (0, NO_WIN, ["0"])
    assert gate.incumbent is not None, "finalists are measured in turn with the baseline"
    assert confirm(FakeGate(again={"1": 90.0, "2": 99.8}), "npu", 90, 80) == (1, WIN, ["1"])
