"""What counts as an evaluation, what is kept of a run, and that every method keeps to it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from bench_examples import FakeSubject

from ascendopt_tune.bench.methods import OWN
from ascendopt_tune.bench.patience import at_most
from ascendopt_tune.bench.peers import PACKAGES, PEERS, require
from ascendopt_tune.bench.record import RunRecord
from ascendopt_tune.bench.run import Method, Run, Spent, record
from ascendopt_tune.bench.runner import COMPARED, METHODS, VARIANTS
from ascendopt_tune.errors import OutOfTime, SettingsError
from ascendopt_tune.nouns.operator import Candidate, Pair
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.nouns.profile import Profile
from ascendopt_tune.nouns.trial import Trial

ABOUT = {"key": "k", "operator": "add", "method": "m", "code": "c", "list": "test", "level": 1,
         "size": "decode", "elements": 9, "chip": "x", "toolkit": "t"}  # fmt: skip


def test_the_baseline_is_evaluation_one_and_repeats_cost_nothing() -> None:
    subject = FakeSubject()
    run = Run(subject, 0, 3)
    assert run.evaluations == 1
    assert run.attempt(subject.operator.baseline, "again") is run.baseline
    twin = run.attempt(subject.commented("same launch"), "a comment")
    assert twin.duplicate_of == 0
    assert twin.time_us == run.baseline.time_us
    assert run.evaluations == 1
    run.attempt(subject.changed(1), "one")
    run.attempt(subject.changed(2), "two")
    with pytest.raises(Spent):
        run.attempt(subject.changed(3), "three")
    assert run.evaluations == 3
    assert sum(subject.asked.values()) == 3


def test_repeats_are_bounded() -> None:
    subject = FakeSubject()
    run = Run(subject, 0, 2)
    for i in range(8):  # four for an evaluation of the budget
        run.attempt(subject.commented(str(i)), "a comment")
    with pytest.raises(Spent):
        run.attempt(subject.commented("ninth"), "a comment")


PARENT = """
import multiprocessing.pool, time
from ascendopt_tune.bench import runner
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with multiprocessing.pool.Pool(1, runner._begin, (context.Queue(),), context=context) as pool:
        print(pool._pool[0].pid, flush=True)
        time.sleep(100)
"""


def test_processes_of_a_run_end_with_it(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert Path(f"/proc/{child}").exists()
        parent.kill()
    deadline = time.monotonic() + 120  # a machine may be busy
    while alive(child):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def alive(pid: int) -> bool:
    """Not when it has ended and nobody has asked for its exit code: in a container that may be nobody's job."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def timed(times: Sequence[float]) -> tuple[FakeSubject, list[Pair], Method]:
    """A method whose evaluations take these times, the baseline's first."""
    subject = FakeSubject()
    pairs = [subject.operator.baseline, *(subject.changed(i) for i in range(1, len(times)))]

    def method(_: object, seed: int, budget: int) -> list[Trial]:
        return [
            Trial(Candidate(i, pair, i - 1 if i else None, "", f"step {i}"), Timed(Profile(us)), launch=str(i))
            for i, (pair, us) in enumerate(zip(pairs, times, strict=True))
        ]

    return subject, pairs, method


def test_a_record_says_what_was_found() -> None:
    subject, _, method = timed([100.0, 80.0, 50.0])
    found = record(subject, method, 7, 40, **ABOUT)
    assert (found.baseline_us, found.best_us, found.best_at, found.speedup) == (100.0, 50.0, 3, 2.0)
    assert found.changes == ("step 1", "step 2")
    assert [step.task_us for step in found.steps] == [100.0, 80.0, 50.0]
    assert subject.kept == [found.best_pair]
    assert found.trace == (100.0, 80.0, 50.0)
    assert found.outcomes == {"Timed": 3}
    assert RunRecord.from_json(found.to_json()) == found


def test_what_fails_on_unseen_inputs_makes_room() -> None:
    subject, pairs, method = timed([100.0, 80.0, 50.0])
    subject.refused = {pairs[2].hash}
    found = record(subject, method, 0, 40, **ABOUT)
    assert found.best_us == 80.0
    assert found.refused == ("trial 2: on unseen inputs",)
    assert found.wins is None
    subject.refused |= {pairs[1].hash}
    assert record(subject, method, 0, 40, **ABOUT).speedup == 1.0


def test_what_other_clocks_take_away_makes_room() -> None:
    subject, pairs, method = timed([100.0, 80.0, 50.0])
    subject.over_clocks = {pairs[1].hash: (1.3, 1.25, 1.2), pairs[2].hash: (2.0, 0.9, 2.1)}
    found = record(subject, method, 0, 40, **ABOUT)
    assert (found.best_us, found.wins) == (80.0, 1.0)
    assert found.speedup_low is not None
    assert found.speedup_high is not None
    assert 1.2 <= found.speedup_low < found.speedup < found.speedup_high <= 1.3
    assert found.over_clocks == (1.3, 1.25, 1.2)
    assert found.refused == ("trial 2: 1.01 to 2.09 over plausible clocks",)
    subject.over_clocks[pairs[1].hash] = (1.3, 0.99)
    none = record(subject, method, 0, 40, **ABOUT)
    assert (none.speedup, none.speedup_low, none.speedup_high, none.wins) == (1.0, 1.0, 1.0, 0.0)


def test_less_than_the_minimum_effect_is_no_win() -> None:
    subject, _, method = timed([100.0, 99.95])
    assert record(subject, method, 0, 40, **ABOUT).speedup == 1.0


def keeps_to_the_rules(method: Method) -> None:
    subject, budget = FakeSubject(), 9
    history = method(subject, 3, budget)
    evaluated = [t for t in history if t.duplicate_of is None]
    assert evaluated[0].candidate.pair.hash == subject.operator.baseline.hash
    assert 2 <= len(evaluated) <= budget
    assert max(subject.asked.values()) == 1
    launches = [subject.launch(t.candidate.pair) for t in evaluated]
    assert len(set(launches)) == len(launches)


def texts(history: Sequence[Trial]) -> list[str]:
    return [t.candidate.pair.hash for t in history]


@pytest.mark.parametrize("name", OWN)
def test_own_methods(name: str) -> None:
    keeps_to_the_rules(OWN[name])
    assert texts(OWN[name](FakeSubject(), 1, 6)) == texts(OWN[name](FakeSubject(), 1, 6))


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_are_run_only_when_they_are_named(name: str) -> None:
    assert name in METHODS
    assert name not in COMPARED
    if name != "as-written":  # which is the baseline alone
        keeps_to_the_rules(VARIANTS[name])


def test_other_schedules_change_the_stage_before_the_papers_does() -> None:
    assert {t.stage for t in METHODS["full-paper"](FakeSubject(), 0, 10)[1:]} == {1}
    assert {t.stage for t in METHODS["full"](FakeSubject(), 0, 10)[1:]} == {1, 2}
    assert {t.stage for t in METHODS["full-adaptive"](FakeSubject(), 0, 10)[1:]} == {1, 2}


def test_a_stage_alone_keeps_to_its_program() -> None:
    base = FakeSubject().operator.baseline
    assert {t.candidate.pair.kernel_hash for t in OWN["stage-1"](FakeSubject(), 0, 8)} == {base.kernel_hash}
    assert {t.stage for t in OWN["stage-2"](FakeSubject(), 0, 8)[1:]} == {2}


@pytest.mark.parametrize("name", PEERS)
def test_peers(name: str) -> None:
    pytest.importorskip(PACKAGES[name][1])
    keeps_to_the_rules(PEERS[name])


@pytest.mark.parametrize("name", ["optuna-tpe", "kernel-tuner"])
def test_parametric_peers_repeat_a_seed(name: str) -> None:
    pytest.importorskip(PACKAGES[name][1])
    assert texts(PEERS[name](FakeSubject(), 5, 8)) == texts(PEERS[name](FakeSubject(), 5, 8))


def test_a_peer_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PACKAGES, "optuna-tpe", ("optuna", "no_such_module"))
    with pytest.raises(SettingsError, match=r"optuna-tpe.*pip install"):
        require(["full", "optuna-tpe"])
    assert require(["full", "random"]) == {}


def swallowing() -> None:
    """Goes on whatever is raised: an evaluation's guard, a peer's own try."""
    while True:
        try:
            time.sleep(0.001)
        except Exception:
            continue


def test_a_run_that_takes_too_long_is_ended() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with (
        pytest.raises(OutOfTime, match=r"full took longer than 0[.]001 minutes"),
        at_most(0.001, "full"),
    ):
        swallowing()
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_what_ends_in_time_is_left_alone() -> None:
    with at_most(None, "x"), at_most(5, "x"):
        ended = True
    assert ended
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_failure_of_its_own_stays_one() -> None:
    with pytest.raises(KeyError), at_most(5, "x"):
        raise KeyError("own")
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
