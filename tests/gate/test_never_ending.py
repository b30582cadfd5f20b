"""An operator that doesn't end is told after a wait or two: nobody tries it on every kind of inputs. A candidate that
doesn't is told by what its baseline takes, not by the evaluator's limit alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hostile import DATA, HEADERS, HOST, KERNEL, SPEC

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator, ProcessLimits
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.evaluate.protocol import EvaluateRequest
from ascendopt_tune.nouns.case import Case
from ascendopt_tune.nouns.operator import Operator
from ascendopt_tune.nouns.outcome import Timed, TimedOut
from ascendopt_tune.sources.project import load_project

_LOOP = "for (volatile int i = 0;; i = i + 1) {}"


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    build = tmp_path_factory.mktemp("build")
    with Evaluator(toolkit.virtual(), limits=ProcessLimits(run_s=1), build_dir=build) as opened:
        yield opened


def _endless_kernel(operator: Operator) -> Operator:
    text = operator.baseline.kernel[KERNEL].replace("  TPipe pipe;\n", f"  {_LOOP}\n  TPipe pipe;\n")
    return replace(operator, baseline=operator.baseline.with_kernel(KERNEL, text))


def _endless_tiling(operator: Operator) -> Operator:
    line = "  TwiceTilingData tiling;\n"
    text = HEADERS + operator.baseline.tiling[HOST].replace(line, f"  {_LOOP}\n{line}")
    return replace(operator, baseline=operator.baseline.with_tiling(HOST, text))


@pytest.mark.parametrize(("change", "waits"), [(_endless_kernel, 2), (_endless_tiling, 0)])
def test_few_waits(change: object, waits: int, evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[EvaluateRequest] = []
    submit = evaluator.submit
    monkeypatch.setattr(evaluator, "submit", lambda request: (asked.append(request), submit(request))[1])
    assert callable(change)
    operator = change(load_project(DATA / "twice", ["--cce-auto-sync=off"]))
    gate = Gate(operator, Case((SPEC,), (SPEC,)), evaluator)
    outcome = gate.evaluate(operator.baseline).outcome
    assert isinstance(outcome, TimedOut), outcome
    assert "did not end" in outcome.reason or "processor time" in outcome.reason
    assert len(asked) == waits  # all inputs together, and the first ones alone
    [(number, checked)] = gate.evaluate_many({7: operator.baseline})
    assert number == 7
    assert checked.outcome == outcome
    assert len(asked) == waits
    assert gate.skipped == []


def test_a_candidate_may_take_as_long_as_its_baseline_times_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ascendopt_tune.evaluate.gate._LEAST_RUN_S", 0.5)
    operator = load_project(DATA / "twice", ["--cce-auto-sync=off"])
    endless = _endless_kernel(operator).baseline
    with Evaluator(toolkit.virtual(), limits=ProcessLimits(run_s=500), build_dir=tmp_path) as evaluator:
        asked: list[EvaluateRequest] = []
        submit = evaluator.submit
        monkeypatch.setattr(evaluator, "submit", lambda request: (asked.append(request), submit(request))[1])
        gate = Gate(operator, Case((SPEC,), (SPEC,)), evaluator)
        assert isinstance(gate.evaluate(operator.baseline).outcome, Timed)
        assert [request.run_s for request in asked] == [None] * len(asked)  # the baseline has the evaluator's
        outcome = gate.evaluate(endless).outcome
        assert isinstance(outcome, TimedOut), outcome
        assert asked[-1].run_s is not None
        assert 0.5 < asked[-1].run_s < 100
        assert gate.replay(operator.baseline, [{}])  # under other clocks no such limit
        assert asked[-1].run_s is None
