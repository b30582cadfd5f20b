"""A confined process: its answer, its errors, and every way of not answering."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ascendopt_tune.errors import CaseError
from ascendopt_tune.evaluate import limits
from ascendopt_tune.evaluate.limits import Confinement, Stopped, run_confined
from ascendopt_tune.evaluate.outputs import shared_arrays
from ascendopt_tune.nouns.case import TensorSpec


def run(task: Callable[[], Any], folder: Path, timeout_s: float = 5.0, **how: Any) -> Any:
    given = {"memory_bytes": 1 << 30, "read": [Path("/usr"), Path("/lib")], **how}
    return run_confined(task, Confinement(folder=folder, timeout_s=timeout_s, **given), "the task")


def test_value_and_error_come_back(tmp_path: Path) -> None:
    assert run(lambda: {"a": (1, 2.5, None)}, tmp_path) == {"a": (1, 2.5, None)}

    def fail() -> None:
        raise CaseError("no", "hint")

    with pytest.raises(CaseError, match="no"):
        run(fail, tmp_path)


def test_large_answer(tmp_path: Path) -> None:
    assert len(run(lambda: "x" * 3_000_000, tmp_path)) == 3_000_000


def test_unexpected_exception_is_told(tmp_path: Path) -> None:
    stopped = run(lambda: 1 // 0, tmp_path)
    assert isinstance(stopped, Stopped)
    assert "ZeroDivisionError" in stopped.reason


def test_exit_signal_timeout(tmp_path: Path) -> None:
    assert "exit(0)" in run(lambda: os._exit(0), tmp_path).reason
    assert "signal 11" in run(lambda: ctypes.string_at(8), tmp_path).reason
    started = time.monotonic()
    stopped = run(lambda: time.sleep(60), tmp_path, timeout_s=0.3)
    assert stopped.kind == "timeout"
    assert time.monotonic() - started < 30


def test_a_compilation_that_waits_goes_on(tmp_path: Path) -> None:
    """On a busy machine compilers wait for a processor most of the time: what counts is what they work."""

    def wait() -> str:
        subprocess.run([sys.executable, "-c", "import time; time.sleep(1)"], check=True)
        return "ended"

    how: dict[str, Any] = {"tools": True, "read": [Path("/")]}
    assert run(wait, tmp_path, timeout_s=0.7, **how) == "ended"

    def work() -> None:
        subprocess.run([sys.executable, "-c", "while True: pass"], check=True)

    stopped = run(work, tmp_path, timeout_s=0.7, **how)
    assert stopped.kind == "timeout"
    assert "processor time" in stopped.reason
    assert "processor time" in run(lambda: time.sleep(60), tmp_path, timeout_s=0.1, **how).reason  # for good


def test_it_ends_with_its_group(tmp_path: Path) -> None:
    def leave_a_child() -> int:
        pid = os.fork()
        if pid == 0:
            time.sleep(60)
        return pid

    started = time.monotonic()
    child = run(leave_a_child, tmp_path, tools=True, read=[Path("/")])
    assert time.monotonic() - started < 30
    assert isinstance(child, int)
    state = Path(f"/proc/{child}/stat")

    def alive() -> bool:
        try:
            return state.read_text().split(")")[1].split()[0] != "Z"
        except OSError:
            return False

    deadline = time.monotonic() + 30  # it was killed; a busy machine may take a while to end it
    while alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive()


def test_memory_is_limited(tmp_path: Path) -> None:
    stopped = run(lambda: len(bytearray(4 << 30)), tmp_path)
    assert isinstance(stopped, Stopped)
    assert "memory" in stopped.reason.lower()


def test_files(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.write_text("secret")

    def touch() -> str:
        Path("mine").write_text("1")
        try:
            return outside.read_text()
        except PermissionError:
            return "refused"

    assert run(touch, inside) == "refused"
    assert (inside / "mine").read_text() == "1"
    stopped = run(lambda: Path("big").write_bytes(bytes(40 << 20)), inside)
    assert isinstance(stopped, Stopped)


def test_what_belongs_to_others_stays_as_it_is(tmp_path: Path) -> None:
    inside, other = tmp_path / "in", tmp_path / "other"
    inside.mkdir()
    other.write_text("x")
    before = other.stat()

    def attempts() -> list[str]:
        done = []
        for name, attempt in (
            ("chmod", lambda: os.chmod(other, 0)),
            ("utime", lambda: os.utime(other, (1, 1))),
            ("unlink", lambda: os.unlink(other)),
            ("rename", lambda: os.rename(other, inside / "mine")),
            ("link", lambda: os.link(other, inside / "mine")),
            ("truncate", lambda: os.truncate(other, 0)),
            ("nice", lambda: os.nice(-5)),
            ("more memory", lambda: resource.setrlimit(resource.RLIMIT_AS, (-1, -1))),
        ):
            try:
                attempt()
                done.append(name)
            except (OSError, ValueError):
                pass
        return done

    assert run(attempts, inside) == ()
    assert other.stat() == before


def test_no_processes_no_sockets_no_signals(tmp_path: Path) -> None:
    def attempts() -> list[str]:
        done = []
        for name, attempt in (
            ("fork", os.fork),
            ("socket", socket.socket),
            ("kill", lambda: os.kill(os.getppid(), 0)),
            ("exec", lambda: os.execv("/bin/true", ["true"])),
        ):
            try:
                attempt()
                done.append(name)
            except OSError:
                pass
        return done

    assert run(attempts, tmp_path) == ()


def test_environment_and_descriptors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    try:
        environment, descriptors = run(lambda: (dict(os.environ), len(os.listdir("/proc/self/fd"))), tmp_path,
                                       read=[Path("/")])  # fmt: skip
    finally:
        os.close(reader)
        os.close(writer)
    assert set(environment) == {"PATH", "LC_ALL", "HOME", "TMPDIR"}
    assert descriptors <= 5  # three, the answer's pipe, the listing itself


def test_a_signal_handler_of_the_caller_is_not_inherited(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        assert run(lambda: signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, tmp_path) is True
    finally:
        signal.signal(signal.SIGTERM, before)


def test_what_is_told_is_heard_in_time(tmp_path: Path) -> None:
    heard: list[Any] = []

    def hear(value: Any) -> None:
        time.sleep(0.8)  # is not counted
        heard.append((value, shared[0]))

    def task(tell: Callable[[Any], None]) -> str:
        for i in range(3):
            shared[0] = i
            tell({"number": i})
        return "done"

    (shared,) = shared_arrays([TensorSpec("uint8", (4,))])
    assert isinstance(shared, np.ndarray)
    how = Confinement(folder=tmp_path, timeout_s=2, memory_bytes=1 << 30)
    assert run_confined(task, how, "the task", hear) == "done"
    assert heard == [({"number": i}, i) for i in range(3)]


def test_what_hearing_raises_ends_the_task(tmp_path: Path) -> None:
    def hear(value: int) -> None:
        raise CaseError(f"told {value}")

    def task(tell: Callable[[Any], None]) -> None:
        tell(os.getpid())
        time.sleep(60)

    started = time.monotonic()
    with pytest.raises(CaseError, match="told") as raised:
        run_confined(task, Confinement(folder=tmp_path, timeout_s=30, memory_bytes=1 << 30), "the task", hear)
    assert time.monotonic() - started < 25
    assert not Path(f"/proc/{str(raised.value).split()[1].rstrip('.')}").exists()


def test_no_call_reaches_another_process(tmp_path: Path) -> None:
    """Without namespaces as well, which a machine may not give."""
    victim = subprocess.Popen(["sleep", "600"])
    calls: dict[str, Callable[[int], object]] = {
        "prlimit": lambda pid: resource.prlimit(pid, resource.RLIMIT_NOFILE, (1, 1)),
        "prlimit, to read": lambda pid: resource.prlimit(pid, resource.RLIMIT_NOFILE),
        "kill": lambda pid: os.kill(pid, 0),
        "affinity": lambda pid: os.sched_setaffinity(pid, {0}),
        "scheduler": lambda pid: os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0)),
        "priority": lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 19),
        "priority of a user": lambda pid: os.setpriority(os.PRIO_USER, 0, 19),
        "group": lambda pid: os.getpgid(pid),
        "pidfd": lambda pid: os.pidfd_open(pid),
        "session": lambda pid: os.setsid(),
    }

    def tried() -> dict[str, str]:
        found = {}
        for name, call in calls.items():
            try:
                call(victim.pid)
                found[name] = "allowed"
            except PermissionError:
                found[name] = "refused"
        return found

    try:
        assert run(tried, tmp_path) == dict.fromkeys(calls, "refused")
        assert run(lambda: os.sched_getaffinity(0) == os.sched_getaffinity(os.getpid()), tmp_path) is True
        assert run(lambda: resource.prlimit(0, resource.RLIMIT_CORE)[0], tmp_path) == 0
        assert victim.poll() is None
        assert resource.prlimit(victim.pid, resource.RLIMIT_NOFILE)[0] > 1
    finally:
        victim.kill()
        victim.wait()


def test_namespaces_hide_other_processes() -> None:
    """Where the machine gives them; told where not."""
    script = """
import os
from ascendopt_tune.evaluate import sandbox
given = sandbox.isolate()
if os.fork() == 0:
    print(*given, os.getppid(), sum(os.path.exists(f"/proc/{pid}") and not os.kill(pid, 0) for pid in (os.getpid(),)))
    os._exit(0)
os.wait()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    *given, parent, itself = done.stdout.split() or ["", "", ""]
    if "process" not in given:
        pytest.skip("this machine gives no process namespace")
    assert (parent, itself) == ("0", "1")  # the parent can't be named from inside


def test_what_a_process_waits_for_a_processor_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told that it waited for so long: so its 0.3 s last longer, and a process that sleeps still ends."""
    monkeypatch.setattr(limits, "_waited_s", lambda pid: 60.0)
    assert run(lambda: time.sleep(0.6), tmp_path, timeout_s=0.3) is None
    monkeypatch.setattr(limits, "_waited_s", lambda pid: 1.0)
    stopped = run(lambda: time.sleep(60), tmp_path, timeout_s=0.3)
    assert stopped.kind == "timeout"


def test_the_system_tells_what_a_process_waited() -> None:
    """Two that want one processor wait for each other; none that sleeps does."""
    processors = os.sched_getaffinity(0)
    script = f"import os; os.sched_setaffinity(0, {{{min(processors)}}})\nwhile True: pass"
    busy = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(2)]
    try:
        deadline = time.monotonic() + 60
        while min(limits._waited_s(p.pid) for p in busy) < 0.2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert min(limits._waited_s(p.pid) for p in busy) >= 0.2
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert limits._waited_s(2**22) == 0.0
