"""The evaluation server: ``python -m ascendopt_tune.evaluate.server``. Forks one process per request.

A fresh process with one thread that never imports torch, so that forking is cheap and safe. It reads requests as JSON
lines from its input (the first line configures it) and writes ``{"id": ..., "value"|"error"|"died": ...}`` as they end.
End of input, or a signal, ends it and everything it started.
"""

from __future__ import annotations

import contextlib
import gc
import os
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
from ..errors import AscendOptError, DeviceError
from . import protocol, sandbox
from .limits import Limits
from .worker import Worker

_GRACE_S = 1.0  # for a job to clean up after itself before it is killed
_READ = 1 << 16


@dataclass
class _Job:
    """A forked process that serves one request."""

    id: int
    pid: int
    pipe: int
    deadline: float
    answer: bytearray = field(default_factory=bytearray)


class Server:
    """The loop; ``config`` is the first line the tuner sends (see Evaluator)."""

    def __init__(self, config: dict[str, Any], out: int) -> None:
        self._toolkit = Toolkit(config["kind"], Path(config["prefix"]), config["version"])
        self._limits = Limits(**config["limits"])
        self._build_dir = Path(config["build_dir"])
        self._folder = Path(config["folder"])
        self._work = Path(config["work"])
        self._workers = int(config["workers"])
        self._out = out
        self._queue: deque[dict[str, Any]] = deque()
        self._jobs: dict[int, _Job] = {}  # by pipe
        self._selector = selectors.DefaultSelector()
        self._input = bytearray()
        for name in ("libascendcl.so", "libacl_rtc.so"):  # warm: forked processes find them loaded
            load_library(name, self._toolkit.lib64)
        compiler_version(host_compiler())  # and this asked
        gc.collect()
        gc.freeze()  # what is there stays; collecting it in every forked process would copy its pages

    def run(self) -> None:
        self._selector.register(0, selectors.EVENT_READ)
        self._send({"id": -1, "value": {"pid": os.getpid(), "torch": "torch" in sys.modules}})
        try:
            while True:
                for key, _ in self._selector.select(self._wait_s()):
                    if key.fd != 0:
                        self._collect(key.fd)
                    elif not self._read_requests():
                        self._work = self._folder  # the tuner has closed, or is no more: nobody needs its files
                        return
                self._end_overdue()
                while self._queue and len(self._jobs) < self._workers:
                    self._start(self._queue.popleft())
        finally:
            self._stop_all()
            shutil.rmtree(self._work, ignore_errors=True)

    def _send(self, document: dict[str, Any]) -> None:
        line = protocol.dumps(document) + b"\n"
        with contextlib.suppress(BrokenPipeError):
            while line:
                line = line[os.write(self._out, line) :]

    def _read_requests(self) -> bool:
        """False at the end of input."""
        data = os.read(0, _READ)
        self._input += data
        *lines, rest = bytes(self._input).split(b"\n") if b"\n" in data else [bytes(self._input)]
        self._input = bytearray(rest)
        self._queue.extend(protocol.loads(line) for line in lines if line)
        return bool(data)

    def _wait_s(self) -> float | None:
        if not self._jobs:
            return None
        return max(0.0, min(j.deadline for j in self._jobs.values()) - time.monotonic())

    # -- jobs ---------------------------------------------------------------------------------------------------------

    def _start(self, request: dict[str, Any]) -> None:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            self._job(request, writer)
        os.close(writer)
        # Every stage ends by itself in time; this is for a stage that doesn't.
        allowed = 2 * self._limits.compile_s + 2 * self._limits.run_s + 600.0
        self._jobs[reader] = _Job(int(request["id"]), pid, reader, time.monotonic() + allowed)
        self._selector.register(reader, selectors.EVENT_READ)

    def _job(self, request: dict[str, Any], writer: int) -> NoReturn:
        code = 1
        try:
            gc.disable()  # it ends soon
            os.setsid()
            sandbox.die_with_parent(signal.SIGTERM)
            signal.signal(signal.SIGTERM, _exit_cleanly)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            os.close(self._out)
            for pipe in self._jobs:
                os.close(pipe)
            document = self._serve(request)
            message = protocol.dumps(document)
            while message:
                message = message[os.write(writer, message) :]
            code = 0
        except SystemExit:
            pass
        except BaseException as error:  # told to the tuner, which can act
            text = protocol.dumps({"error": protocol.encode_error(DeviceError(f"{type(error).__name__}: {error}"))})
            os.write(writer, text)
        finally:
            os._exit(code)

    def _serve(self, request: dict[str, Any]) -> dict[str, Any]:
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
            return {"value": protocol.encode(value)}
        except AscendOptError as error:
            return {"error": protocol.encode_error(error)}
        finally:
            if keep:  # outputs and tiling bytes stay, what was needed to make them goes
                for name in ("kernel", "host"):
                    shutil.rmtree(work / name, ignore_errors=True)
            else:
                shutil.rmtree(work, ignore_errors=True)

    def _collect(self, pipe: int) -> None:
        job = self._jobs[pipe]
        data = os.read(pipe, 1 << 20)
        if data:
            job.answer += data
            return
        self._end(job)
        if job.answer:
            self._send({"id": job.id, **protocol.loads(bytes(job.answer))})
        else:
            self._send({"id": job.id, "died": "the evaluation process ended without an answer"})

    def _end(self, job: _Job) -> None:
        """Takes a job that closed its pipe, or is to end now, from the process table."""
        self._selector.unregister(job.pipe)
        os.close(job.pipe)
        del self._jobs[job.pipe]
        deadline = time.monotonic() + _GRACE_S
        while os.waitpid(job.pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                with contextlib.suppress(OSError):
                    os.killpg(job.pid, signal.SIGKILL)
                os.waitpid(job.pid, 0)
                return
            time.sleep(0.001)

    def _end_overdue(self) -> None:
        now = time.monotonic()
        for job in [j for j in self._jobs.values() if j.deadline <= now]:
            os.kill(job.pid, signal.SIGTERM)
            self._end(job)
            self._send({"id": job.id, "died": "the evaluation process did not end in time"})

    def _stop_all(self) -> None:
        for job in self._jobs.values():
            with contextlib.suppress(OSError):
                os.kill(job.pid, signal.SIGTERM)
        for job in list(self._jobs.values()):
            self._end(job)


def _exit_cleanly(*_: object) -> NoReturn:
    """So that ``finally`` blocks end what the process has started."""
    sys.exit(1)


def main() -> None:
    out = os.dup(1)
    os.dup2(2, 1)  # what a library prints must not look like an answer
    os.set_inheritable(out, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the tuner's; it closes our input
    signal.signal(signal.SIGTERM, _exit_cleanly)
    first = bytearray()
    while not first.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return
        first += byte
    try:
        server = Server(protocol.loads(bytes(first)), out)
    except AscendOptError as error:
        os.write(out, protocol.dumps({"id": -1, "error": protocol.encode_error(error)}) + b"\n")
        return
    server.run()


if __name__ == "__main__":
    main()
