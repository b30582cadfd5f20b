"""The evaluation server: ``python -m ascendopt_tune.evaluate.server``. Forks the processes that serve requests.

A fresh process with one thread that never imports torch, so that forking is cheap and safe. A process it forks serves
one request at a time, and after some a fresh one takes over; what runs a candidate's own code is forked from those
(limits.py). The server reads requests as JSON lines from its input (the first line configures it) and writes
``{"id": ..., "value"|"error"|"died": ...}`` as they end. End of input, a signal, or the end of the process that started
it (which another one may share the pipe with, forked from it) ends the server and everything it started.

The argument is the number of the process that starts it.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import platform
import select
import selectors
import shutil
import signal
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from ..build.host import compiler_version
from ..build.toolkit import Toolkit, host_compiler
from ..device.acl import load_library
from ..errors import AscendOptError, DeviceError, Lost
from ..nouns.chip import load_chip
from . import protocol, sandbox
from .limits import ProcessLimits
from .worker import Worker

_GRACE_S = 1.0  # for a process to clean up after itself before it is killed
_READ = 1 << 16
_SERVES = 64  # requests, then a fresh process takes over
_AGAIN, _LAST = b"+", b"-"  # before an answer: whether its process serves another request


@dataclass
class _Hand:
    """A forked process that serves requests. ``job``: the one it is at, which has to end by ``deadline``."""

    pid: int
    requests: int  # its pipes, our ends
    answers: int
    job: int | None = None
    deadline: float = 0.0
    served: int = 0
    answer: bytearray = field(default_factory=bytearray)


class Server:
    """The loop; ``config`` is the first line the tuner sends (see Evaluator).

    ``tuner``: of that process, readable when it has ended; None where the system doesn't tell.
    """

    def __init__(self, config: dict[str, Any], out: int, tuner: int | None) -> None:
        self._tuner = tuner
        self._toolkit = Toolkit(config["kind"], Path(config["prefix"]), config["version"])
        self._limits = ProcessLimits(**config["limits"])
        self._build_dir = Path(config["build_dir"])
        self._folder = Path(config["folder"])
        self._work = Path(config["work"])
        self._workers = int(config["workers"])
        self._out = out
        self._queue: deque[bytes] = deque()
        self._hands: dict[int, _Hand] = {}  # by the pipe their answers come through
        self._selector = selectors.DefaultSelector()
        self._input = bytearray()
        for name in ("libascendcl.so", "libacl_rtc.so"):  # warm: forked processes find them loaded
            load_library(name, self._toolkit.lib64)
        compiler_version(host_compiler())  # and this asked
        load_chip(config["chip"])  # and read
        platform.machine()
        gc.collect()
        gc.freeze()  # what is there stays; collecting it in every forked process would copy its pages

    def run(self) -> None:
        self._selector.register(0, selectors.EVENT_READ)
        if self._tuner is not None:
            self._selector.register(self._tuner, selectors.EVENT_READ)
        self._send(_line({"id": -1, "value": {"pid": os.getpid(), "torch": "torch" in sys.modules}}))
        try:
            while True:
                for key, _ in self._selector.select(self._wait_s()):
                    if key.fd not in (0, self._tuner):
                        self._collect(key.fd)
                    elif key.fd == self._tuner or not self._read_requests():
                        self._work = self._folder  # the tuner has closed, or is no more: nobody needs its files
                        return
                self._end_overdue()
                while self._queue and (hand := self._idle()) is not None:
                    self._give(hand, self._queue.popleft())
        finally:
            self._stop_all()
            shutil.rmtree(self._work, ignore_errors=True)

    def _send(self, line: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):
            _write(self._out, line)

    def _read_requests(self) -> bool:
        """False at the end of input."""
        data = os.read(0, _READ)
        self._input += data
        *lines, rest = bytes(self._input).split(b"\n") if b"\n" in data else [bytes(self._input)]
        self._input = bytearray(rest)
        self._queue.extend(line for line in lines if line)
        return bool(data)

    def _wait_s(self) -> float | None:
        deadlines = [h.deadline for h in self._hands.values() if h.job is not None]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    # -- the server's side of a hand ----------------------------------------------------------------------------------

    def _idle(self) -> _Hand | None:
        """A process without work, forked if need be; None when all are busy."""
        for hand in self._hands.values():
            if hand.job is None:
                return hand
        return self._fork() if len(self._hands) < self._workers else None

    def _fork(self) -> _Hand:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        server, pid = os.getpid(), os.fork()
        if pid == 0:
            self._work_through(theirs_in, theirs_out, (ours_out, ours_in), server)
        os.close(theirs_in)
        os.close(theirs_out)
        hand = self._hands[ours_in] = _Hand(pid, ours_out, ours_in)
        self._selector.register(ours_in, selectors.EVENT_READ)
        return hand

    def _give(self, hand: _Hand, request: bytes) -> None:
        # Every stage ends by itself in time; this is for a stage that doesn't.
        allowed = 20 * self._limits.compile_s + 2 * self._limits.run_s + 600.0
        hand.job, hand.deadline = int(protocol.loads(request)["id"]), time.monotonic() + allowed
        with contextlib.suppress(BrokenPipeError):  # it has died: the end of its answers tells
            _write(hand.requests, request + b"\n")

    def _collect(self, pipe: int) -> None:
        hand = self._hands[pipe]
        data = os.read(pipe, 1 << 20)
        hand.answer += data
        if not data:
            job = hand.job
            self._end(hand)
            if job is not None:
                self._send(_line({"id": job, "died": "the evaluation process ended without an answer"}))
        elif data.endswith(b"\n"):
            self._send(bytes(hand.answer[1:]))
            hand.served += 1
            last = hand.answer[:1] == _LAST or hand.served == _SERVES
            hand.job, hand.answer = None, bytearray()
            if last:
                self._end(hand)

    def _end(self, hand: _Hand) -> None:
        """Takes a process that has nothing to do, or is to end now, from the process table."""
        self._selector.unregister(hand.answers)
        os.close(hand.answers)
        os.close(hand.requests)
        del self._hands[hand.answers]
        deadline = time.monotonic() + _GRACE_S
        while os.waitpid(hand.pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                for kill in (os.killpg, os.kill):  # which may be no group yet
                    with contextlib.suppress(OSError):
                        kill(hand.pid, signal.SIGKILL)
                os.waitpid(hand.pid, 0)
                return
            time.sleep(0.001)

    def _end_overdue(self) -> None:
        now = time.monotonic()
        for hand in [h for h in self._hands.values() if h.job is not None and h.deadline <= now]:
            os.kill(hand.pid, signal.SIGTERM)
            self._end(hand)
            self._send(_line({"id": hand.job, "died": "the evaluation process did not end in time"}))

    def _stop_all(self) -> None:
        for hand in self._hands.values():
            with contextlib.suppress(OSError):
                os.kill(hand.pid, signal.SIGTERM)
        for hand in list(self._hands.values()):
            self._end(hand)

    # -- the hand itself ----------------------------------------------------------------------------------------------

    def _work_through(self, requests: int, answers: int, others: tuple[int, int], server: int) -> NoReturn:
        """Serves requests until there are no more; ``others``: the other ends of its pipes."""
        code, job = 1, -1
        try:
            for fd in (*others, *(fd for h in self._hands.values() for fd in (h.requests, h.answers))):
                os.close(fd)
            os.setsid()
            sandbox.die_with_parent(signal.SIGTERM)
            if os.getppid() != server:  # it ended before that was asked for
                raise SystemExit
            signal.signal(signal.SIGTERM, _exit_cleanly)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            os.close(self._out)
            if self._tuner is not None:
                os.close(self._tuner)
            self._selector.close()
            if self._toolkit.kind == "virtual":  # a device's driver is told of processes by their numbers
                sandbox.isolate()
            with open(requests, "rb") as lines:
                for line in lines:
                    request = protocol.loads(line)
                    job = request["id"]
                    document, again = self._serve(request)
                    _write(answers, (_AGAIN if again else _LAST) + _line({"id": job, **document}))
                    if not again:
                        break
            code = 0
        except SystemExit:
            pass
        except BaseException as error:  # told to the tuner, which can act
            if isinstance(error, OSError) and error.errno == errno.ENOMEM:
                # The first process of its namespace was killed, so nothing can be forked there any more (or the machine
                # has no memory left): without an answer the request is asked once more, of another process.
                os._exit(code)
            told = protocol.encode_error(DeviceError(f"{type(error).__name__}: {error}"))
            _write(answers, _LAST + _line({"id": job, "error": told}))
        finally:
            os._exit(code)

    def _serve(self, request: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """The answer, and whether this process may serve another request."""
        work = self._work / f"job-{request['id']}"
        work.mkdir(parents=True)
        worker = Worker(self._toolkit, self._limits, self._build_dir, work)
        keep = False
        try:
            arguments = protocol.decode(request["args"])
            value = getattr(worker, request["op"])(*arguments)
            keep = isinstance(value, protocol.EvaluationResult) and bool(
                value.tiling_path or value.trace_path or value.outputs
            )
            return {"value": protocol.encode(value)}, not worker.knows_expected
        except AscendOptError as error:
            # What was killed may have been the first process of the namespace, without which nothing starts in it.
            again = not worker.knows_expected and not isinstance(error, Lost)
            return {"error": protocol.encode_error(error)}, again
        finally:
            if keep:  # outputs and tiling bytes stay, what was needed to make them goes
                for name in ("kernel", "host"):
                    shutil.rmtree(work / name, ignore_errors=True)
            else:
                shutil.rmtree(work, ignore_errors=True)


def _line(document: dict[str, Any]) -> bytes:
    return protocol.dumps(document) + b"\n"


def _write(fd: int, message: bytes) -> None:
    while message:
        message = message[os.write(fd, message) :]


def _exit_cleanly(*_: object) -> NoReturn:
    """So that ``finally`` blocks end what the process has started."""
    sys.exit(1)


def _watch(tuner: int) -> int | None:
    """A descriptor that is readable when the process has ended that started this one; None where there is none.

    Raises SystemExit when it has ended already.
    """
    try:
        watched = os.pidfd_open(tuner)
    except (OSError, AttributeError):  # Linux before 5.3; or it has ended
        watched = None
    if os.getppid() != tuner:
        sys.exit(0)
    return watched


def _first_line(tuner: int | None) -> bytes:
    """The configuration; empty when nobody sends one any more."""
    line = bytearray()
    waited_for = [0] if tuner is None else [0, tuner]
    while not line.endswith(b"\n"):
        ready, _, _ = select.select(waited_for, [], [])
        byte = os.read(0, 1) if tuner not in ready else b""
        if not byte:
            return b""
        line += byte
    return bytes(line)


def main(tuner: int) -> None:
    out = os.dup(1)
    os.dup2(2, 1)  # what a library prints must not look like an answer
    os.set_inheritable(out, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the tuner's; it closes our input
    signal.signal(signal.SIGTERM, _exit_cleanly)
    watched = _watch(tuner)
    first = _first_line(watched)
    if not first:
        return
    try:
        server = Server(protocol.loads(first), out, watched)
    except AscendOptError as error:
        os.write(out, protocol.dumps({"id": -1, "error": protocol.encode_error(error)}) + b"\n")
        return
    server.run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
