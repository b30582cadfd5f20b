"""Running code that may be hostile: a forked process with limits, whose answer is read through a pipe.

The process may crash, hang, exit, print without end, allocate without end or try to harm others; the caller gets a
value, or in words what happened, and everything that was started is gone afterwards.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import secrets
import select
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from ..errors import AscendOptError, Lost
from ..settings import SECRETS
from . import protocol, sandbox

_LOG_TAIL = 2000  # characters of a candidate's own output that go into a reason
_LOG_BYTES = 16 << 20  # what a candidate may print
_ANSWER_BYTES = 256 << 20
_ENDING_S = 5.0  # from the end of the answers to the end of the process, on a busy machine
_WAITING = 10  # a compilation may take so many times its limit, if it waits for processors
_TOKEN, _HEADER = 16, 24  # an answer is a token, the length of what follows (8 bytes), and JSON


@dataclass(frozen=True)
class ProcessLimits:
    """What one candidate may use.

    ``compile_s``: wall clock of each compilation; on a busy machine the compilers' processor time, within ten times
    that. ``run_s``: wall clock of the tiling function, and of all launches of one evaluation together; what they wait
    for a processor of a busy machine is not counted. ``memory_bytes``: address space beyond what the process has at its
    start and the tensors need. ``open_files``: file descriptors.
    """

    compile_s: float = 120.0
    run_s: float = 60.0
    memory_bytes: int = 8 << 30
    open_files: int = 128


@dataclass(frozen=True)
class Confinement:
    """Where and how one process runs. ``folder`` is its working folder and the only one it may write to, but ``write``;
    with ``read_only`` it may not even write there. It is one thread, unless it has ``tools`` or a ``device``.

    ``tools``: it may start processes (compilers). ``device``: it talks to a real NPU, whose driver maps address space
    freely and uses sockets of its own.
    """

    folder: Path
    timeout_s: float
    memory_bytes: int
    open_files: int = 128
    file_bytes: int = 0
    read: Sequence[Path] = ()
    write: Sequence[Path] = ()
    read_only: bool = False
    tools: bool = False
    device: bool = False


@dataclass(frozen=True)
class Stopped:
    """The process gave no answer. ``kind``: ``timeout`` or ``crash``; ``reason`` ends with what it printed last."""

    kind: str
    reason: str


def run_confined(
    task: Callable[..., Any], how: Confinement, what: str, hear: Callable[[Any], object] | None = None
) -> Any | Stopped:
    """Runs ``task`` in a process of its own and returns its value, or why there is none.

    Args:
        task: its value has to be one that protocol.encode knows.
        what: the subject of the reasons ("the kernel").
        hear: with it, ``task`` gets an argument: a function that hands a value on to ``hear`` and returns when that
            has returned. What ``hear`` raises ends the process and is raised here; the time it takes is not counted.

    Raises:
        AscendOptError: the one that ``task`` raised.
        Lost: somebody killed it, or the system did for want of memory.
    """
    # Only an answer that begins with the token counts: a candidate that guesses the pipe can't answer in its place.
    token = secrets.token_bytes(_TOKEN)
    reader, writer = os.pipe()
    heard, replies = os.pipe()
    log = tempfile.TemporaryFile(dir=how.folder)  # noqa: SIM115  # without a name: nothing can take its place
    pid = os.fork()
    if pid == 0:
        _child(task, how, log.fileno(), _Line(writer, heard if hear is not None else None, token))
    os.close(writer)
    os.close(heard)
    status: int | None = None
    try:
        deadline = _Deadline(pid, time.monotonic() + how.timeout_s, how.timeout_s if how.tools else 0.0)
        while True:
            answer = _read(reader, deadline, token)
            document = _document(answer, token)
            if hear is None or document is None or "told" not in document:
                break
            began = time.monotonic()
            hear(protocol.decode(document["told"]))
            deadline.at += time.monotonic() - began
            with contextlib.suppress(BrokenPipeError):
                os.write(replies, b"+")
        if answer is not None and document is None:
            status = _wait(pid, time.monotonic() + _ENDING_S)
    finally:
        os.close(reader)
        os.close(replies)
        _kill(pid, reaped=status is not None)
        with log:
            tail = _tail(log.fileno())
    if answer is None:
        limit = f"{how.timeout_s:g} s of wall clock"
        if how.tools:
            limit += f", nor of processor time within {_WAITING:d} times that"
        return Stopped("timeout", f"{what} did not end within {limit}.{tail}")
    if document is not None:
        if "error" in document and not how.tools:
            document["error"]["args"][0] += tail
        return protocol.value_or_raise(document)
    return _died(status, how, what, tail)


@dataclass
class _Deadline:
    """``at``: by the wall clock, if the process ``pid`` has always had a processor.

    ``work_s``: of one that has others work for it: the processor time that all of its session may use where the wall
    clock is over, as nobody tells what processes that have ended waited; for ``_WAITING`` times as long.
    """

    pid: int
    at: float
    work_s: float = 0.0

    def left_s(self) -> float:
        """Seconds. It may be too few by what the process is waiting for a processor meanwhile."""
        left = self.at + _waited_s(self.pid) - time.monotonic()
        if left > 0 or not self.work_s:
            return left
        return min(self.work_s - _worked_s(self.pid), left + (_WAITING - 1) * self.work_s)


def _waited_s(pid: int) -> float:
    """Seconds that the process was ready to run and had no processor; 0 where the system doesn't tell."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def _worked_s(session: int) -> float:
    """Processor time, in seconds, of a session's processes, and of those that they started and that have ended."""
    ticks = 0
    for process in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):  # it has ended meanwhile
            fields = process.read_text().rpartition(")")[2].split()  # from the third on: a name may have blanks
            ticks += sum(map(int, fields[11:15])) if int(fields[3]) == session else 0
    return ticks / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class _Line:
    """The confined process's end: ``heard`` has a byte for everything that was told and heard."""

    writer: int
    heard: int | None
    token: bytes

    def send(self, document: dict[str, Any]) -> None:
        payload = protocol.dumps(document)
        message = self.token + len(payload).to_bytes(8, "little") + payload
        while message:
            message = message[os.write(self.writer, message) :]

    def tell(self, value: Any) -> None:
        assert self.heard is not None
        self.send({"told": protocol.encode(value)})
        if not os.read(self.heard, 1):
            os._exit(1)  # nobody is there any more


def _child(task: Callable[..., Any], how: Confinement, log: int, line: _Line) -> NoReturn:
    code = 70
    try:
        gc.disable()  # it ends soon
        os.setsid()
        sandbox.die_with_parent(signal.SIGKILL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _redirect(log, (line.writer, line.heard))
        _environment(how)
        os.chdir(how.folder)
        _rlimits(how)
        more = how.tools or how.device
        read, write = ([*how.read, how.folder], how.write) if how.read_only else (how.read, [how.folder, *how.write])
        sandbox.enter(read, write, processes=how.tools, threads=more, network=how.device)
        try:
            document = {"value": protocol.encode(task() if line.heard is None else task(line.tell))}
        except AscendOptError as error:
            document = {"error": protocol.encode_error(error)}
        line.send(document)
        code = 0
    except MemoryError:
        os.write(2, b"out of memory (limit on address space)\n")
    except BaseException as error:  # the process ends here, whatever it was
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(code)


def _redirect(log: int, keep: Sequence[int | None]) -> None:
    """Input from nowhere, output to ``log``; every other descriptor but those of ``keep`` is closed."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in keep:
            with contextlib.suppress(OSError):
                os.close(int(name))


def _environment(how: Confinement) -> None:
    """Nothing of the tuner's environment is left but what compilers and a real toolkit need."""
    kept = {}
    if how.tools or how.device:
        wanted = (k for k in os.environ if k in protocol.TOOL_VARIABLES or k.startswith("ASCEND"))
        kept = {k: os.environ[k] for k in wanted if k not in SECRETS}
    os.environ.clear()
    os.environ.update({"PATH": os.defpath, "LC_ALL": "C", **kept, "HOME": str(how.folder), "TMPDIR": str(how.folder)})


def _rlimits(how: Confinement) -> None:
    def limit(which: int, value: int) -> None:
        hard = resource.getrlimit(which)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))

    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_CPU, int(how.timeout_s) + 2)
    limit(resource.RLIMIT_FSIZE, max(how.file_bytes, _LOG_BYTES))
    limit(resource.RLIMIT_NOFILE, how.open_files)
    if not how.device:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit(resource.RLIMIT_AS, pages * resource.getpagesize() + how.memory_bytes)
    if not how.tools and os.getuid() != 0:  # counts all processes of the user: none more than there are now
        limit(resource.RLIMIT_NPROC, 1)


def _complete(answer: bytes | bytearray, token: bytes) -> bool:
    return (
        answer[:_TOKEN] == token
        and len(answer) >= _HEADER
        and len(answer) >= _HEADER + int.from_bytes(answer[_TOKEN:_HEADER], "little")
    )


def _document(answer: bytes | None, token: bytes) -> dict[str, Any] | None:
    if answer is None or not _complete(answer, token):
        return None
    end = _HEADER + int.from_bytes(answer[_TOKEN:_HEADER], "little")
    document: dict[str, Any] = protocol.loads(answer[_HEADER:end])
    return document


def _read(fd: int, deadline: _Deadline, token: bytes) -> bytes | None:
    """The answer, or what came before the end of the pipe; None when the deadline passed before either."""
    answer = bytearray()
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while not _complete(answer, token):
        left = deadline.left_s()
        if left <= 0:
            return None
        if not poll.poll(max(1.0, left * 1000)):
            continue
        chunk = os.read(fd, 1 << 20)
        if not chunk:
            break
        if len(answer) < _ANSWER_BYTES:
            answer += chunk
    return bytes(answer)


def _wait(pid: int, deadline: float) -> int | None:
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        if time.monotonic() > deadline:
            return None
        time.sleep(0.001)


def _kill(pid: int, reaped: bool) -> None:
    """Ends the process and its group, and takes it from the process table."""
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    if not reaped:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


def _tail(log: int) -> str:
    """The end of what was printed, as a sentence."""
    data = os.pread(log, _LOG_TAIL, max(0, os.fstat(log).st_size - _LOG_TAIL))
    text = data.decode(errors="replace").strip()
    return f" It printed: {text}" if text else ""


def _died(status: int | None, how: Confinement, what: str, tail: str) -> Stopped:
    if status is None:
        return Stopped("crash", f"{what} closed its answer and went on running.{tail}")
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU:
            return Stopped("timeout", f"{what} used more than {how.timeout_s:g} s of processor time.{tail}")
        if number == signal.SIGXFSZ:
            return Stopped("crash", f"{what} wrote a file or output of more than {_LOG_BYTES >> 20} MiB.{tail}")
        name = signal.strsignal(number) or "unknown signal"
        if number == signal.SIGKILL:
            raise Lost(f"{what} was ended by signal {number} ({name}).{tail}")
        return Stopped("crash", f"{what} was ended by signal {number} ({name}).{tail}")
    code = os.WEXITSTATUS(status)
    if code == 70:
        return Stopped("crash", f"{what} failed.{tail}")
    return Stopped("crash", f"{what} ended its process itself with exit({code}).{tail}")
