"""Ctrl-C in the wrong moment leaves no server behind, nor does the end of a process whose pipes another one holds.

``make survival-battery`` interrupts 200 times.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from killing import marked

_PATIENCE_S = 120.0  # a machine may be busy

# Starts an evaluator, asks it something, closes it; interrupted or not, it goes on when it is told to. The last time a
# process forked from it shares the pipes to the server, and it waits to be killed. Whoever is started by a shell in the
# background inherits that interrupts are ignored.
_PROGRAM = """
import contextlib, os, signal, sys, time
from ascendopt_tune.build import toolkit
from ascendopt_tune.errors import AscendOptError
from ascendopt_tune.evaluate.evaluator import Evaluator

def asked(evaluator):
    with contextlib.suppress(AscendOptError):
        evaluator._ask("nothing").result()

signal.signal(signal.SIGINT, signal.default_int_handler)
virtual = toolkit.virtual()
for line in sys.stdin:
    evaluator = None
    if line == "fork\\n":
        evaluator = Evaluator(virtual)
        asked(evaluator)
        if os.fork() == 0:
            sys.stdin.read()
            os._exit(0)
        print("ready", flush=True)
        time.sleep(1000)
    try:
        print("ready", flush=True)
        with Evaluator(virtual) as evaluator:
            asked(evaluator)
        print("closed", flush=True)
        time.sleep(1000)
    except KeyboardInterrupt:
        if evaluator is not None:
            evaluator.close()
    print("over", flush=True)
"""


@pytest.fixture
def program(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    yield process
    process.kill()
    process.communicate()


def told(process: subprocess.Popen[str], line: str, answer: str) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    if line:
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
    for said in process.stdout:
        if said == f"{answer}\n":
            return
    pytest.fail("the program has ended")


def nobody_left(root: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while left := marked(root):
        assert time.monotonic() < deadline, [Path(f"/proc/{p}/cmdline").read_bytes() for p in left]
        time.sleep(0.02)


@pytest.mark.parametrize("times", [3, pytest.param(200, marks=pytest.mark.battery)])
def test_interrupted_or_killed_it_leaves_no_server(program: subprocess.Popen[str], tmp_path: Path, times: int) -> None:
    rng = random.Random(times)
    told(program, "once", "ready")
    began = time.monotonic()
    told(program, "", "closed")
    usual = time.monotonic() - began
    program.send_signal(signal.SIGINT)
    told(program, "", "over")
    for _ in range(times):
        told(program, "again", "ready")
        time.sleep(rng.uniform(0.0, usual))
        program.send_signal(signal.SIGINT)
        told(program, "", "over")
        nobody_left(tmp_path)
    told(program, "fork", "ready")
    assert marked(tmp_path)
    program.kill()
    program.wait()
    nobody_left(tmp_path)
