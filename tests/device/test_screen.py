"""On a device that tells times and no more: what the virtual NPU refuses never runs there, what it sees goes along."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from events_device import EventsDevice, events_device

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Checked, Gate
from ascendopt_tune.evaluate.screen import FOUND, Screened
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.operator import Operator, Pair
from ascendopt_tune.nouns.outcome import CompileFailed, Hazard, OutOfBounds, Timed, WrongResult
from ascendopt_tune.sources.project import load_project

DATA = Path(__file__).parents[1] / "vnpu" / "data_evaluate"
KERNEL = "op_kernel/twice.cpp"
CASE = Case((TensorSpec("float16", (5000,)),), (TensorSpec("float16", (5000,)),))
COPY = "DataCopyPad(yGm[at], yLocal, params);"
HAZARD = ("    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);\n    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);\n", "\n\n")
BEHIND = (COPY, f"{COPY} DataCopyPad(yGm[t.total], yLocal, DataCopyExtParams{{1, 4096, 0, 0, 0}});")
WRONG = ("Add(yLocal, xLocal, xLocal, count)", "Mul(yLocal, xLocal, xLocal, count)")


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EventsDevice]:
    with events_device(tmp_path_factory.mktemp("cann") / "cann") as made:
        yield made


@pytest.fixture(scope="module")
def operator() -> Operator:
    # The reference works on anything that can be multiplied, so that no torch is needed here.
    return replace(load_project(DATA / "twice", ["--cce-auto-sync=off"]), reference=None)


@pytest.fixture(scope="module")
def said() -> list[str]:
    return []


@pytest.fixture(scope="module")
def evaluator(device: EventsDevice, said: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    with Screened(
        device.toolkit,
        "ascend910b2",
        model=toolkit.virtual(),
        modelled_chip="ascend910b2",
        workers=2,
        build_dir=tmp_path_factory.mktemp("build"),
        say=said.append,
    ) as opened:
        yield opened


@pytest.fixture(scope="module")
def gate(operator: Operator, evaluator: Evaluator) -> Gate:
    gate = Gate(operator, CASE, evaluator)
    gate.evaluate(operator.baseline)
    return gate


def changed(pair: Pair, old: str, new: str) -> Pair:
    assert old in pair.kernel[KERNEL]
    return pair.with_kernel(KERNEL, pair.kernel[KERNEL].replace(old, new))


def kernel_with(gate: Gate, change: tuple[str, str]) -> Checked:
    return gate.evaluate(changed(gate.operator.baseline, *change))


def test_the_time_is_the_devices_and_the_pipes_are_the_models(gate: Gate, said: list[str]) -> None:
    checked = gate.evaluate(gate.operator.baseline)
    profile = checked.profile
    assert profile is not None, checked.outcome
    assert profile.counters["candidate_spread_us"] > 0
    assert profile.aiv_time_us == 0
    assert "mte2_bytes" not in profile.counters
    model = profile.modelled
    assert model is not None
    assert profile.detail is model
    assert model.counters["mte2_bytes"] >= 10000
    assert model.task_duration_us == pytest.approx(profile.task_duration_us, rel=0.02)
    assert model.task_duration_us != profile.task_duration_us
    assert checked.checks >= 5
    assert not said


@pytest.mark.parametrize(("change", "kind"), [(HAZARD, Hazard), (BEHIND, OutOfBounds)], ids=["hazard", "out of bounds"])
def test_what_the_virtual_npu_refuses_never_runs_on_the_device(
    gate: Gate, device: EventsDevice, change: tuple[str, str], kind: type
) -> None:
    before = device.loads()
    checked = kernel_with(gate, change)
    assert isinstance(checked.outcome, kind), checked.outcome
    assert not isinstance(checked.outcome, Timed)
    assert checked.outcome.reason.endswith(FOUND)
    assert f"{KERNEL}:" in checked.outcome.reason
    assert checked.result.launchable is None
    assert device.loads() == before
    assert checked.hazards or kind is OutOfBounds


def test_a_kernel_cant_ask_which_device_it_is_for(gate: Gate, device: EventsDevice) -> None:
    before = device.loads()
    outcome = kernel_with(gate, (COPY, f"\n#if !defined(__VNPU__)\nPipeBarrier<PIPE_ALL>();\n#endif\n{COPY}")).outcome
    assert isinstance(outcome, CompileFailed), outcome
    assert "poisoned" in outcome.reason
    assert outcome.reason.endswith(FOUND)
    assert device.loads() == before


def test_the_device_judges_values(gate: Gate, device: EventsDevice) -> None:
    before = device.loads()
    outcome = kernel_with(gate, WRONG).outcome
    assert isinstance(outcome, WrongResult), outcome
    assert FOUND not in outcome.reason
    assert device.loads() > before


def test_finalists_are_screened_once(gate: Gate, evaluator: Evaluator) -> None:
    assert isinstance(evaluator, Screened)
    gate.evaluate(gate.operator.baseline)
    asked = len(evaluator._verdicts)
    gate.set_incumbent(gate.evaluate(gate.operator.baseline))
    measured = gate.evaluate(gate.operator.baseline)
    assert measured.profile is not None
    assert measured.profile.counters["incumbent_us"] > 0
    assert len(evaluator._verdicts) == asked


def test_the_winner_is_screened_again_on_unseen_inputs(gate: Gate) -> None:
    confirmed = gate.confirm(gate.operator.baseline)
    assert confirmed.profile is not None, confirmed.outcome
    assert confirmed.profile.modelled is not None


def test_an_original_that_the_virtual_npu_refuses_is_said_once_and_the_device_decides(
    operator: Operator, evaluator: Evaluator, said: list[str], device: EventsDevice
) -> None:
    unordered = replace(operator, name="unordered", baseline=changed(operator.baseline, *HAZARD))
    gate, before = Gate(unordered, CASE, evaluator), device.loads()
    for pair in (unordered.baseline, operator.baseline):
        checked = gate.evaluate(pair)
        assert checked.profile is not None, checked.outcome
        assert checked.profile.modelled is None
    assert device.loads() > before
    assert len(said) == 1
    assert "unordered can't be checked on the virtual NPU" in said[0]
    assert "is not ordered after" in said[0]
