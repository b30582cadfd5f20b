"""One kill costs no candidate: whatever process of an evaluation it hits, the evaluation is made once more."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile import attack

from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.outcome import Outcome, Timed

# Long enough to be met, with nothing in it that is modelled.
_SLOW = "for (volatile int i = 0; i < 2000000; i = i + 1) {}"
_PATIENCE_S = 120.0


def children(pid: int) -> list[int]:
    return [int(word) for path in Path(f"/proc/{pid}/task").glob("*/children") for word in path.read_text().split()]


def running(server: int) -> dict[str, int]:
    """The processes of an evaluation whose kernel runs: its ``hand``, the ``first`` of that one's namespace, and the
    one that runs the ``kernel``; nothing while there is none."""
    for hand in children(server):
        at = {p: os.readlink(f"/proc/{p}/cwd") for p in children(hand)}
        first, kernel = [p for p, cwd in at.items() if cwd == "/"], [p for p, cwd in at.items() if "launches" in cwd]
        if kernel:
            return {"server": server, "hand": hand, "kernel": kernel[0], **({"first": first[0]} if first else {})}
    return {}


@pytest.fixture(scope="module")
def patient(gate: Gate) -> Iterator[Gate]:
    with Evaluator(gate._evaluator.toolkit, build_dir=gate._evaluator.build_dir) as evaluator:
        yield Gate(gate.operator, gate.case, evaluator)


@pytest.mark.parametrize("victim", ["server", "hand", "first", "kernel"])
def test_the_evaluation_is_made_again(patient: Gate, victim: str) -> None:
    assert isinstance(attack(patient, _SLOW), Timed)  # it is compiled now
    connection = patient._evaluator._connection
    assert connection is not None
    server = connection.process.pid
    found: list[Outcome] = []
    deadline, seen = time.monotonic() + _PATIENCE_S, dict[str, int]()
    while not seen and time.monotonic() < deadline:  # a busy machine may not let us look while the kernel runs
        evaluation = threading.Thread(target=lambda: found.append(attack(patient, _SLOW)))
        evaluation.start()
        while not seen and evaluation.is_alive():
            with contextlib.suppress(OSError):  # one of them ended meanwhile
                now = running(server)
                if now:
                    os.kill(now["kernel"], signal.SIGSTOP)  # it ends before none of the others
                    seen = now
            time.sleep(0.005)
        if not seen:
            evaluation.join()
            found.clear()
    if victim not in seen:
        os.kill(seen["kernel"], signal.SIGCONT)
        evaluation.join()
        pytest.skip("no namespaces here")
    os.kill(seen[victim], signal.SIGKILL)
    evaluation.join()
    assert isinstance(found[0], Timed), found
