"""One pair for several cases: the objective, the gate of gates, and what each case keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ascendopt_tune.cli.subject import make_subjects
from ascendopt_tune.errors import CaseError, NoWorkingCandidate
from ascendopt_tune.evaluate.gate import Checked
from ascendopt_tune.evaluate.joint import JointGate, baseline_profiles, heaviest
from ascendopt_tune.evaluate.protocol import EvaluationResult
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.operator import Candidate, Operator, Pair
from ascendopt_tune.nouns.outcome import Hazard, Outcome, Timed
from ascendopt_tune.nouns.profile import Profile
from ascendopt_tune.nouns.trial import Trial
from ascendopt_tune.search.engine import SearchResult
from ascendopt_tune.search.keep import confirm, what_to_keep
from ascendopt_tune.store.entry import FRAGILE, NO_WIN, WIN

BASE = Pair({"t": "base"}, {})
OPERATOR = Operator("op", Path(), "k", "k.cpp", BASE)


@dataclass
class FakeGate:
    """Times by pair's text in us; a text that is not listed is a hazard. Counts what it is asked.

    ``over_clocks``: speedups under plausible clocks, by text.
    """

    rows: int
    times: dict[str, float]
    asked: list[str] = field(default_factory=list)
    over_clocks: dict[str, tuple[float, ...]] = field(default_factory=dict)
    operator: Operator = OPERATOR

    @property
    def case(self) -> Case:
        spec = TensorSpec("float16", (self.rows, 64))
        return Case((spec,), (spec,))

    def evaluate(self, pair: Pair) -> Checked:
        text = pair.tiling["t"]
        self.asked.append(text)
        time = self.times.get(text)
        outcome: Outcome = Hazard("race") if time is None else Timed(Profile(time, block_dim=self.rows), 3)
        return Checked(EvaluationResult(outcome, checks=3, timings_s={"execute": 1.0}), {})

    def speedups(self, pair: Pair) -> tuple[float, ...]:
        return self.over_clocks.get(pair.tiling["t"], ())

    confirm = evaluate

    def evaluate_many(self, pairs: Mapping[int, Pair]) -> Iterator[tuple[int, Checked]]:
        for number in reversed(pairs):  # in any order
            yield number, self.evaluate(pairs[number])

    def fingerprint(self, pair: Pair) -> str | None:
        return None if pair.tiling["t"] == "?" else f"{self.rows}{pair.tiling['t'].strip()}"


def gates(*times: dict[str, float]) -> list[Any]:
    return [FakeGate(rows, {"base": 10.0**rows, **t}) for rows, t in enumerate(times, start=1)]


def joint(weights: list[float], *times: dict[str, float]) -> JointGate:
    made = gates(*times)
    return JointGate(made, weights, baseline_profiles(made))


def pair(text: str) -> Pair:
    return Pair({"t": text}, {})


@pytest.mark.parametrize(
    ("weights", "times", "wanted"),
    [
        ([1.0, 1.0], (10.0, 100.0), 10.0),  # as the baselines: the heaviest case's (the first of equals) own time
        ([1.0, 1.0], (5.0, 50.0), 5.0),  # both halved: halved
        ([1.0, 1.0], (5.0, 100.0), 7.5),  # the smaller case counts as much as the larger
        ([3.0, 1.0], (5.0, 100.0), 6.25),
        ([1.0, 3.0], (5.0, 100.0), 87.5),  # told on the scale of the heavier case
        ([1.0, 1.0], (5.0, 200.0), 12.5),  # one gains, the other loses more
    ],
)
def test_the_objective_is_the_weighted_mean_of_relative_times(
    weights: list[float], times: tuple[float, float], wanted: float
) -> None:
    gate = joint(weights, {"x": times[0]}, {"x": times[1]})
    checked = gate.evaluate(pair("x"))
    assert checked.profile is not None
    assert checked.profile.task_duration_us == pytest.approx(wanted)
    assert checked.profile.block_dim == heaviest(weights) + 1, "the other figures are the heaviest case's"
    assert checked.checks == 6
    assert checked.timings_s == {"execute": 2.0}


def test_a_pair_that_fails_one_case_is_not_tried_on_the_next() -> None:
    gate = joint([1, 1, 1], {"good": 5, "bad": 5}, {"good": 50}, {"good": 500, "bad": 500})
    found = dict(gate.evaluate_many({7: pair("good"), 8: pair("bad")}))
    assert isinstance(found[7].outcome, Timed)
    assert found[8].outcome == Hazard("case 2 of 3 (float16[2,64] -> float16[2,64]): race")
    third: Any = gate.gates[2]
    assert third.asked == ["base", "good"]


def test_a_launch_is_named_by_all_cases() -> None:
    gate = joint([1, 1], {}, {})
    assert gate.fingerprint(pair("x")) == gate.fingerprint(pair("x "))
    assert gate.fingerprint(pair("x")) != gate.fingerprint(pair("y"))
    assert gate.fingerprint(pair("?")) is None


def test_a_baseline_that_fails_is_named_with_its_case() -> None:
    broken: Any = FakeGate(2, {})
    with pytest.raises(NoWorkingCandidate, match=r"float16\[2,64\].*Hazard: race"):
        baseline_profiles([*gates({}), broken])


def test_a_case_in_which_the_common_pair_is_slower_keeps_the_baseline() -> None:
    gate = joint([1, 1], {"x": 4.0}, {"x": 120.0})
    history = tuple(
        Trial(Candidate(i, pair(text), 0 if i else None, "r", text), Timed(Profile(us)))
        for i, (text, us) in enumerate([("base", 10.0), ("x", 8.0)])
    )
    result = SearchResult(history[0], history[1], history, "budget", 1.0)
    confirmed = confirm(gate, result, "virtual")
    kept = what_to_keep(gate, result, confirmed)
    assert confirmed.trial is history[1]
    assert [k.trial.candidate.change for k in kept] == ["x", "base"]
    assert [k.decision for k in kept] == [WIN, NO_WIN]
    assert [k.baseline.task_duration_us for k in kept] == [10.0, 100.0]
    assert [k.confirmed.profile.task_duration_us for k in kept if k.confirmed.profile] == [4.0, 100.0]


def test_the_interval_of_several_cases_is_that_of_their_weighted_geometric_mean() -> None:
    gate = joint([3, 1], {"x": 4.0}, {"x": 50.0})
    first, second = gates_of(gate)
    first.over_clocks, second.over_clocks = {"x": (2.0, 1.0)}, {"x": (1.0, 16.0)}
    assert gate.speedups(pair("x")) == pytest.approx((2**0.75, 2.0))
    second.over_clocks = {}
    assert gate.speedups(pair("x")) == (), "not all cases tell"


def test_a_case_in_which_the_win_does_not_survive_keeps_the_baseline() -> None:
    gate = joint([1, 1], {"x": 4.0}, {"x": 90.0})
    first, second = gates_of(gate)
    first.over_clocks, second.over_clocks = {"x": (2.5, 2.4)}, {"x": (1.1, 0.9)}
    history = tuple(
        Trial(Candidate(i, pair(text), 0 if i else None, "r", text), Timed(Profile(us)))
        for i, (text, us) in enumerate([("base", 10.0), ("x", 6.5)])
    )
    result = SearchResult(history[0], history[1], history, "budget", 1.0)
    confirmed = confirm(gate, result, "virtual")
    kept = what_to_keep(gate, result, confirmed)
    assert [(k.trial.candidate.change, k.decision) for k in kept] == [("x", WIN), ("base", FRAGILE)]


def gates_of(gate: JointGate) -> Any:
    return gate.gates


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no"),
        ("[[case]", "can't be read"),
        ("[[case]]\ninputs = { x = 'float16[4]' }\nweight = 0\n", "case 1 of .* weight 0"),
        ("[[case]]\ninput = { x = 'float16[4]' }\n", "case 1 of .* unknown name 'input'"),
    ],
)
def test_a_file_of_cases_that_can_not_be_used_is_refused(text: str, message: str, tmp_path: Path) -> None:
    file, nothing = tmp_path / "cases.toml", object()
    file.write_text(text)
    with pytest.raises(CaseError, match=message):
        make_subjects(OPERATOR, nothing, file)  # type: ignore[arg-type]
