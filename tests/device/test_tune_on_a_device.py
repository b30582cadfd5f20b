"""Tuning on a device that tells times and no more: the search sees by the virtual NPU's profile, and says so."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from events_device import EventsDevice, events_device

from ascendopt_tune.build.toolkit import find
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.evaluate.screen import FOUND, open_evaluator
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.nouns.operator import Candidate
from ascendopt_tune.nouns.outcome import Hazard, Timed
from ascendopt_tune.nouns.profile import Profile
from ascendopt_tune.nouns.trial import Trial
from ascendopt_tune.search.kernel.rules import KernelRules
from ascendopt_tune.search.population import niche_of
from ascendopt_tune.search.proposer import SearchState
from ascendopt_tune.sources.registry import load_operator

CHIP = load_chip("ascend910b2")
SPEC = TensorSpec("float16", (256, 1024))
CASE = Case((SPEC,), (SPEC,))
ENQUEUE = "inQueueX.EnQue(xLocal);"


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EventsDevice]:
    """Found as a CANN is found: by its variable."""
    with events_device(tmp_path / "cann") as made:
        monkeypatch.setenv("ASCEND_HOME_PATH", str(made.prefix))
        monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")  # torch_npu needs more of a CANN than this
        yield made


def first_ideas(operator: Any, profile: Profile) -> list[str]:
    """What Stage II's rules try first on a kernel with this profile."""
    trial = Trial(Candidate(0, operator.baseline, None, "baseline", "as written"), Timed(profile))
    seen = frozenset([operator.baseline.hash])
    state = SearchState(operator, CASE, CHIP, None, trial, trial, (trial,), 0, seen, 2)
    return [p.change for p in KernelRules().propose(state, 4)]


def test_the_search_keeps_its_eyes_and_a_hazard_never_reaches_the_device(device: EventsDevice) -> None:
    operator = replace(load_operator("silu"), reference=None)  # no torch in this process
    path = "op_kernel/silu.cpp"
    text = operator.baseline.kernel[path]
    unordered = operator.baseline.with_kernel(path, text.replace(ENQUEUE, f"{ENQUEUE} DataCopy(xLocal, xGm, 64);"))
    assert unordered.kernel != operator.baseline.kernel
    with open_evaluator(find("auto"), CHIP.name, workers=1) as evaluator:
        assert evaluator.toolkit.target == "npu"
        gate = Gate(operator, CASE, evaluator)
        timed = gate.evaluate(operator.baseline).profile
        before = device.loads()
        assert before > 0
        refused = gate.evaluate(unordered).outcome
    assert isinstance(refused, Hazard), refused
    assert refused.reason.endswith(FOUND)
    assert device.loads() == before
    assert timed is not None
    assert timed.modelled is not None
    assert first_ideas(operator, timed) == first_ideas(operator, timed.modelled)
    assert niche_of(timed, 48) == niche_of(timed.modelled, 48)
    blind = Profile(timed.task_duration_us, block_dim=timed.block_dim)
    assert niche_of(timed, 48) != niche_of(blind, 48)


def test_a_run_on_a_device(device: EventsDevice, tmp_path: Path) -> None:
    report, story = tmp_path / "report.html", tmp_path / "story.md"
    command = ["tune", "silu", "--input", "x=float16[64,1024]", "--budget", "4", "--cold", "--proposer", "rules"]
    more = ["--report", str(report), "--story", str(story), "--record", str(tmp_path / "record.json")]
    done = subprocess.run(
        [sys.executable, "-m", "ascendopt_tune", *command, *more], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "task duration, modelled" in done.stdout
    assert "By the virtual NPU's model, not measured: " in done.stdout
    document = json.loads((tmp_path / "record.json").read_text())
    assert document["target"] == "npu"
    assert not {"speedup_low", "speedup_high", "wins"} & document.keys(), "a measured speedup has no plausible clocks"
    assert "plausible" not in done.stdout + report.read_text()
    for which in ("baseline", "best"):
        assert document[which]["aiv_time_us"] == 0
        assert document[which]["modelled"]["aiv_time_us"] > 0
    assert all("modelled" in t["profile"] for t in document["history"] if t["outcome"] == "Timed")
    assert "vector, modelled" in report.read_text()
    assert story.exists()


def test_without_screening_the_time_is_all_that_is_known(device: EventsDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCENDOPT_SCREEN", "off")
    done = subprocess.run(
        [sys.executable, "-m", "ascendopt_tune", "run", "silu", "--input", "x=float16[64,1024]", "--profile"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "modelled" not in done.stdout
    assert "Only the task's duration is known" in done.stdout
