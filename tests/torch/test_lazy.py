"""Tuning in the background of a process that serves: on the real torch_npu, with real processes."""

from __future__ import annotations

import errno
import io
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_npu")

import ascendopt_tune as aot  # noqa: E402
from ascendopt_tune.build.toolkit import find  # noqa: E402
from ascendopt_tune.errors import CacheError, CaseError  # noqa: E402
from ascendopt_tune.nouns.case import TensorSpec  # noqa: E402
from ascendopt_tune.nouns.run_options import RunOptions  # noqa: E402
from ascendopt_tune.service import background, lazy  # noqa: E402
from ascendopt_tune.service.background import BackgroundWorker, request_from_json, request_to_json  # noqa: E402
from ascendopt_tune.service.described import CallDescription  # noqa: E402
from ascendopt_tune.service.tuning import Request, fulfil  # noqa: E402
from ascendopt_tune.sources.registry import load_operator  # noqa: E402
from ascendopt_tune.store.cache import Cache  # noqa: E402
from ascendopt_tune.torch_ops.device import fallback  # noqa: E402
from ascendopt_tune.torch_ops.device.runtime import is_virtual  # noqa: E402
from ascendopt_tune.torch_ops.serving import dispatch, resolve  # noqa: E402
from ascendopt_tune.torch_ops.serving.registered import registered  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not is_virtual(), reason="a real CANN serves"),
    pytest.mark.filterwarnings("ignore:Cannot create tensor with internal format:UserWarning"),
]

PATIENCE_S = 240  # a machine that is busy with other things
SPEC = TensorSpec("float16", (8, 256))


@pytest.fixture(scope="module", autouse=True)
def aten() -> None:
    fallback.take_over()


@pytest.fixture(autouse=True)
def own_background(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[lazy.Background]:
    """A background process of the test's own; it ends with the test."""
    registered.clear()
    monkeypatch.setattr(dispatch, "LOOK_AGAIN_S", 0.05)
    monkeypatch.setenv("ASCENDOPT_LAZY_SHARE", "1")
    own = lazy.Background()
    monkeypatch.setattr(lazy, "background", own)
    monkeypatch.setattr(resolve, "background", own)
    yield own
    pid = own.pid
    own.close()
    assert pid is None or not alive(pid)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:  # also when it ends while it is read
        return False


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"not within {PATIENCE_S} s:\n{aot.status()}"
        time.sleep(0.05)


def ones(*shape: int) -> Any:
    return torch.ones(shape, dtype=torch.float16).npu()


def request(**changes: Any) -> Request:
    values = {"x": SPEC, "y": SPEC}
    return Request(load_operator("add"), CallDescription(values), RunOptions(budget=2), {}, **changes)


def test_a_miss_is_served_at_once_and_tuned_behind_it(own_background: lazy.Background) -> None:
    calls = []
    add = aot.tune("add", policy="lazy", budget=2)(lambda x, y: calls.append(1) or x + y)
    x = ones(8, 256)
    assert (add(x, x).cpu() == 2).all()  # by the original, and a process that is only started: the job is queued yet
    assert own_background.pid is not None
    assert own_background.pid != os.getpid()
    assert [(job.operator, job.calls) for job in aot.status().queue] == [("add", 1)]

    def served() -> bool:
        assert (add(x, x).cpu() == 2).all()
        row = aot.stats()["add"]
        return bool(row["hits"] + row["kept"] > 2)

    until(served)
    row = aot.stats()["add"]
    assert row["fallbacks"] == {}
    assert row["misses"] > 0
    until(lambda: [job.state for job in aot.status().queue] == ["done"])  # its process is told after the cache
    (summary,) = Cache().items("add")
    assert summary.key.case.count("8,256") == 3
    if row["hits"]:
        before = len(calls)
        add(x, x)
        assert len(calls) == before


def test_what_cannot_be_tuned_is_said(own_background: lazy.Background) -> None:
    add = aot.tune("add", policy="lazy", budget=2)(lambda x, y: x + y)
    x = torch.ones(8, 8, dtype=torch.float64).npu()  # add has no such dtype

    def refused() -> bool:
        add(x, x)
        return bool(aot.stats()["add"]["fallbacks"])

    until(refused)
    (reason,) = aot.stats()["add"]["fallbacks"]
    assert "float64" in reason
    assert [job.state for job in aot.status().queue] == ["failed"]


def test_the_most_wanted_comes_first() -> None:
    """Calls so far times an estimate of a call's time."""
    lines = [
        json.dumps({"id": name, "weight": weight, "request": request_to_json(request())})
        for name, weight in (("a", 10.0), ("b", 30.0), ("c", 20.0))
    ]
    lines.append(json.dumps({"id": "a", "weight": 25.0}))
    worker = BackgroundWorker(io.StringIO(), io.StringIO(), find("virtual"), Cache(), 1.0)
    worker.take(lines)
    order = []
    for _ in range(3):
        name, _ = worker._next()
        order.append(name)
        worker._finish(name, "done")
    assert order == ["b", "a", "c"]
    spec = TensorSpec("float16", (4096, 4096))
    assert lazy.estimate_us([spec], "ascend910b2") > 2 * lazy.estimate_us([SPEC], "ascend910b2")


def test_the_queue_is_bounded_to_what_is_called_most(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[dict[str, Any]] = []
    queue = lazy.Background()
    monkeypatch.setattr(queue, "_start", lambda target: None)
    monkeypatch.setattr(queue, "_tell", told.append)
    wanted = request()
    for i in range(1500):
        queue.ask(str(i), "add", wanted, "virtual", 1 + (i == 3))
    assert sum(job.open for job in queue.jobs.values()) == len(queue.jobs) == lazy.MAX_OPEN
    late = queue.ask("late", "add", wanted, "virtual", 1)
    assert (late.state, "late" in queue.jobs) == ("crowded", False)
    late = queue.ask("late", "add", wanted, "virtual", 5, late)  # its calls count on
    assert (late.state, late.calls, len(queue.jobs)) == ("queued", 6, lazy.MAX_OPEN)
    assert "3" in queue.jobs, "called twice"
    assert [m["id"] for m in told if m.get("drop")] == ["0"]
    worker = BackgroundWorker(io.StringIO(), io.StringIO(), find("virtual"), Cache(), 1.0)
    worker.take(map(json.dumps, told))
    assert sorted(worker._queue) == sorted(queue.jobs)
    assert worker._next()[0] == "late"


def test_what_the_disk_refused_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = [CacheError("the disk is full."), OSError(errno.ENOSPC, "no space"), CaseError("too many dimensions.")]

    def refuse(*_: object, **__: object) -> None:
        raise outcomes.pop(0)

    monkeypatch.setattr(background, "fulfil", refuse)
    monkeypatch.setattr(background, "_TRY_AGAIN_S", 0.0)
    answers = io.StringIO()
    worker = BackgroundWorker(io.StringIO(), answers, find("virtual"), Cache(), 1.0)
    worker.take([json.dumps({"id": "a", "weight": 1.0, "request": request_to_json(request())})])
    monkeypatch.setattr(worker, "_finish", lambda name, state, reason: stop(worker, name, state, reason))
    with pytest.raises(EOFError):
        worker.run()
    said = [json.loads(line) for line in answers.getvalue().splitlines()]
    assert [x["state"] for x in said] == ["tuning", "waiting", "tuning", "waiting", "tuning", "failed"]
    assert "full" in said[1]["reason"]
    assert "no space" in said[3]["reason"]
    assert lazy.Job("a", "add", "", 1.0, state="waiting").open


def stop(worker: BackgroundWorker, name: str, state: str, reason: str) -> None:
    """In the place of ``BackgroundWorker._finish``: the last answer, and the end of the loop."""
    worker._say(name, state, reason)
    raise EOFError


def test_a_request_crosses_the_pipe() -> None:
    sent = request(search=False)
    got = request_from_json(json.loads(json.dumps(request_to_json(sent))))
    assert got.operator.baseline == sent.operator.baseline
    assert got.operator.reference == sent.operator.reference
    assert (got.call, got.rules, got.search, got.options) == (sent.call, sent.rules, False, sent.options)


def test_the_share_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    now = iter([0.0, 3.0, 10.0, 11.0, 20.0])
    monkeypatch.setattr(background.time, "monotonic", lambda: next(now))
    monkeypatch.setattr(background.time, "sleep", slept.append)
    worker = background.BackgroundWorker(io.StringIO(), io.StringIO(), find("virtual"), Cache(), 0.25)
    with worker._paced():
        worker._pause()
    assert slept == [9.0, 3.0]  # three quarters of the time: 3 s of work, then 1 s


# -- many processes -----


CLIENT = """
import sys, time
from ascendopt_tune.build.toolkit import find
from ascendopt_tune.store.cache import Cache
from ascendopt_tune.sources.registry import load_operator
from ascendopt_tune.nouns.case import TensorSpec
from ascendopt_tune.nouns.run_options import RunOptions
from ascendopt_tune.service.described import CallDescription
from ascendopt_tune.service.tuning import Request, fulfil
wait = sys.argv[1] == "wait"
spec = TensorSpec("float16", (8, 256))
request = Request(load_operator("add"), CallDescription({"x": spec, "y": spec}), RunOptions(budget=2, workers=1), {})
made, entry = False, None
while entry is None:
    entry, made = fulfil(request, Cache(), find("virtual"), wait=wait)
    time.sleep(0.1)
print(made, entry.key.hash)
"""


@pytest.mark.parametrize("count", [3, pytest.param(8, marks=pytest.mark.battery)])
def test_processes_hammer_one_cold_key(count: int, own_cache: Path) -> None:
    """One tunes, all answer: those that wait for it (policy blocking) and those that come again (the background)."""
    clients = [
        subprocess.Popen([sys.executable, "-c", CLIENT, how], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for how in itertools.islice(itertools.cycle(("wait", "again")), count)
    ]
    answers = []
    for client in clients:
        out, err = client.communicate(timeout=2 * PATIENCE_S)
        assert client.returncode == 0, out + err
        answers.append(out.split())
    assert sorted(made for made, _ in answers) == ["False"] * (count - 1) + ["True"]
    assert len({key for _, key in answers}) == 1
    (summary,) = Cache().items("add")
    assert summary.key.hash == answers[0][1]
    assert list(own_cache.glob("quarantine/*")) == []


def test_blocking_tunes_a_case_once(own_cache: Path) -> None:
    """Two servers of one operator, here threads: the one that comes second waits for the first one's result."""
    servers = [aot.tune("add", policy="blocking", budget=2)(lambda x, y: x + y) for _ in range(2)]
    x = ones(8, 256)
    with ThreadPoolExecutor(2) as pool:
        for result in pool.map(lambda add: add(x, x), servers):
            assert (result.cpu() == 2).all()
    assert sorted(op.served.tuned for op in registered) == [0, 1]
    assert len(list(Cache().items("add"))) == 1


# -- ends -----


def test_the_interpreters_exit_is_clean(own_cache: Path) -> None:
    """While a case is tuned: no traceback, no process left behind, in good time."""
    code = (
        "import time\nimport ascendopt_tune as aot\nimport torch\n"
        "add = aot.tune('add', policy='lazy', budget=40)(lambda x, y: x + y)\n"
        "x = torch.ones(8, 256, dtype=torch.float16).npu()\nadd(x, x)\n"
        f"end = time.monotonic() + {PATIENCE_S}\n"
        "while time.monotonic() < end and aot.status().queue[0].state != 'tuning': time.sleep(0.02)\n"
        "from ascendopt_tune.service.lazy import background\n"
        "print(background.pid, aot.status().queue[0].state, flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    pid, state = done.stdout.split()
    assert state == "tuning"
    until(lambda: not alive(int(pid)))


def test_a_background_process_that_is_killed_is_started_again(own_background: lazy.Background) -> None:
    add = aot.tune("add", policy="lazy", budget=2)(lambda x, y: x + y)
    x = ones(8, 256)
    add(x, x)
    first = own_background.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)

    def served() -> bool:
        add(x, x)
        row = aot.stats()["add"]
        return bool(row["hits"] + row["kept"])

    until(served)
    assert aot.stats()["add"]["fallbacks"] == {}


def test_fork_and_a_deleted_cache(layer: Path, own_cache: Path, own_background: lazy.Background) -> None:
    """A fork has no part in its parent's tuning; without its cache a process serves on."""
    add = aot.tune("add")(lambda x, y: x + y)
    x = ones(64, 512)
    for _ in range(2):
        add(x, x)
    own_background._start("virtual")
    pid = os.fork()
    if pid == 0:
        code = 0 if own_background.pid is None and registered[0]._lock.acquire(timeout=1) else 1
        os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    assert own_background.pid is not None
    assert alive(own_background.pid)
    shutil.rmtree(own_cache)
    for _ in range(2):
        assert (add(x, x).cpu() == 2).all()
        assert (add(ones(3, 5), ones(3, 5)).cpu() == 2).all()
    row = aot.stats()["add"]
    assert (row["hits"], row["misses"], row["fallbacks"]) == (4, 2, {})


# -- shapes like a cached one -----


def test_a_neighbours_program_serves_an_unseen_shape(layer: Path, own_background: lazy.Background) -> None:
    """Policy lookup: nothing is searched, but the tuned shape's tiling program is run for the new one, and checked."""
    add = aot.tune("add")(lambda x, y: x + y)
    x, far = ones(60, 512), ones(500, 512)

    def served() -> bool:
        assert (add(x, x).cpu() == 2).all()
        assert (add(far, far).cpu() == 2).all()
        row = aot.stats()["add"]
        return bool(row["hits"] > 1 or row["fallbacks"])

    until(served)
    row = aot.stats()["add"]
    assert (row["fallbacks"], row["tuned"]) == ({}, 0)
    until(lambda: [job.state for job in aot.status().queue] == ["done"])  # its process is told after the cache
    assert [job.operator for job in aot.status().queue] == ["add"]  # the far one isn't like it
    found = {s.key.case: s for s in Cache().items("add")}
    (mine,) = (s for case, s in found.items() if "60,512" in case)
    entry = Cache().get(mine.key)
    assert entry is not None
    assert entry.provenance.evaluations == 2
    assert entry.provenance.changes[-1].startswith("tiling program of ")
    assert entry.best.task_duration_us <= entry.baseline.task_duration_us


def test_reuse_can_be_switched_off(layer: Path, own_background: lazy.Background, monkeypatch: Any) -> None:
    monkeypatch.setenv("ASCENDOPT_REUSE", "0")
    add = aot.tune("add")(lambda x, y: x + y)
    x = ones(60, 512)
    add(x, x)
    assert own_background.pid is None
    assert aot.stats()["add"]["misses"] == 1


def test_nothing_is_reused_where_there_is_no_neighbour(own_cache: Path) -> None:
    entry, ended = fulfil(request(search=False), Cache(), find("virtual"), wait=False)
    assert (entry, ended) == (None, True)
