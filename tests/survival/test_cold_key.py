"""Many processes want one result that nobody has: one tunes it, all get it, also when the one that tunes is killed."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.queues import Queue, SimpleQueue
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

import pytest
from manifests import write_manifest

from ascendopt_tune.build.toolkit import find
from ascendopt_tune.deploy import upkeep
from ascendopt_tune.nouns.case import TensorSpec
from ascendopt_tune.nouns.run_options import RunOptions
from ascendopt_tune.search.engine import Progress
from ascendopt_tune.service.described import CallDescription
from ascendopt_tune.service.tuning import Request, fulfil
from ascendopt_tune.sources.project import load_project
from ascendopt_tune.store.cache import Cache
from ascendopt_tune.store.claim import FOLDER

PATIENCE_S = 300.0  # a machine may be busy


def want(folder: Path, waits: bool, fatal: Synchronized[int], victims: SimpleQueue[int], answers: Queue[Any]) -> None:
    """One process: asks until it has the result; ``waits`` for the one that tunes, or comes again.

    Who tunes stops at evaluation ``fatal`` and says so to the ``victims``: it is killed with its search half done,
    however fast or busy the machine is.
    """

    def heard(progress: Progress) -> None:
        if progress.n == fatal.value:
            victims.put(os.getpid())
            signal.pause()

    spec = TensorSpec("float32", (8, 32))
    call = CallDescription({"x": spec, "y": spec})
    request = Request(load_project(folder), call, RunOptions(budget=24, workers=1), rules={})
    store, toolkit = Cache(layers=()), find("virtual")
    while True:
        entry, made = fulfil(request, store, toolkit, wait=waits, progress=heard)
        if entry is not None:
            answers.put((made, entry.key.hash, entry.best.task_duration_us, entry.binary))
            return
        time.sleep(0.2)


@pytest.mark.parametrize(
    ("count", "kills"), [(3, 1), pytest.param(8, 3, marks=pytest.mark.battery)], ids=["three", "eight"]
)
def test_the_one_that_tunes_is_killed(operator: Path, own_cache: Path, count: int, kills: int) -> None:
    context = multiprocessing.get_context("spawn")
    fatal, victims, answers = context.Value("i", 2), context.SimpleQueue(), context.Queue()
    crowd = [
        context.Process(target=want, args=(operator, i % 2 == 0, fatal, victims, answers), daemon=True)
        for i in range(count)
    ]
    for process in crowd:
        process.start()
    told = 0
    for left in reversed(range(kills)):
        until(lambda: not victims.empty(), crowd)
        (journal,) = (own_cache / "journals").glob("*.jsonl")
        lines = len(journal.read_bytes().splitlines())
        assert lines > max(told, fatal.value)  # the first line says which run it is
        victim = victims.get()
        told, fatal.value = lines, fatal.value + 2 if left else 0
        os.kill(victim, signal.SIGKILL)
        (dead,) = (process for process in crowd if process.pid == victim)
        dead.join()
        crowd.remove(dead)
    seen = [answers.get(timeout=PATIENCE_S) for _ in crowd]
    for process in crowd:
        process.join(PATIENCE_S)
        assert process.exitcode == 0
    assert sum(made for made, *_ in seen) == 1
    assert len({tuple(answer) for _, *answer in seen}) == 1
    assert list(upkeep.verify(Cache(layers=()))) == []
    assert list((own_cache / "journals").iterdir()) == list((own_cache / FOLDER).iterdir()) == []


def test_two_prebuilds_at_once_share_the_work(operator: Path, tmp_path: Path) -> None:
    """One of them tunes the case, the other waits for it; both bundles are whole."""
    manifest = write_manifest(tmp_path / "manifest.toml", operator, [8], budget=2)
    commands = [
        [sys.executable, "-m", "ascendopt_tune", "prebuild", str(manifest), "-o", str(tmp_path / name), "--json"]
        for name in ("one", "other")
    ]
    pipe = subprocess.PIPE
    both = [subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) for command in commands]
    said = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    documents = [json.loads(out) for out, _ in said]
    assert sorted(d["entries"][0]["result"] for d in documents) == ["cached", "tuned"]
    assert documents[0]["digest"] == documents[1]["digest"]


def until(true: Callable[[], Any], crowd: list[Any]) -> Any:
    """What ``true`` returns, as soon as it is. Nobody of the crowd may end before."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := true()):
        assert time.monotonic() < deadline
        assert all(process.exitcode is None for process in crowd)
        time.sleep(0.02)
    return found


SERVER = """
import ascendopt_tune as aot
import torch
add = aot.tune("add", policy="blocking", budget=3)(lambda x, y: x + y)
x = torch.ones(8, 256, dtype=torch.float16).npu()
for _ in range(3):
    assert (add(x, x).cpu() == 2).all()
row = aot.stats()["add"]
assert row["hits"] + row["kept"] == 3, row
print(row["tuned"])
"""


@pytest.mark.battery
def test_eight_serving_processes_with_policy_blocking(own_cache: Path) -> None:
    """On the real torch_npu, through the decorator: the first call of each waits, one of them tunes."""
    pytest.importorskip("torch_npu")
    servers = [
        subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    said = [server.communicate(timeout=2 * PATIENCE_S) for server in servers]
    assert [server.returncode for server in servers] == [0] * 8, said
    assert sorted(out.strip() for out, _ in said) == ["0"] * 7 + ["1"]
    assert len(list(Cache().items("add"))) == 1
    assert list((own_cache / FOLDER).iterdir()) == []
