"""The serving process's side of background tuning: starts the process, tells it what missed, hears what became of it.

Nothing here waits: pipes are non-blocking, and what doesn't fit is sent later. There is no thread. A fork of the
serving process starts a background process of its own when it needs one.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import Any

from ..nouns.case import TensorSpec, flatten
from ..nouns.chip import load_chip
from .background import request_to_json
from .described import holds_tensors
from .tuning import Request

log = logging.getLogger("ascendopt_tune")

MAX_OPEN = 64  # cases in the queue: those that are called most, in time
MAX_CLOSED = 1000  # cases that are done or failed, for aot.status()
MAX_STARTS = 3  # a background process that dies this often is not started again
_EXIT_S = 3.0  # how long the interpreter's exit waits for the background process before it is killed
_CALL_US = 5.0  # assumed: what a call takes however few bytes it moves


@dataclass
class Job:
    """A case that missed. ``state``: queued, tuning, reusing, elsewhere (another process tunes it), waiting (the cache
    or its disk refused, for ``reason``; it is tried again), done, failed; crowded: the queue is full of cases that are
    called more, and it will be asked again."""

    id: str
    operator: str
    text: str  # the case, for people
    call_us: float  # a call's duration, estimated from the bytes it moves
    calls: int = 0
    state: str = "queued"
    reason: str = ""
    sent: int = -1  # calls that the background process knows of

    @property
    def open(self) -> bool:
        return self.state not in ("done", "failed", "crowded")

    @property
    def weight(self) -> float:
        """us of all calls so far, estimated."""
        return self.calls * self.call_us


def estimate_us(specs: list[TensorSpec], chip: str) -> float:
    """How long a call takes that moves these tensors once; a basis for priorities."""
    return moving_us(sum(spec.nbytes for spec in specs), chip)


def moving_us(nbytes: int, chip: str) -> float:
    """How long a call takes that moves so much, at the chip's memory bandwidth."""
    bytes_per_us = float(load_chip(chip).values["memory.hbm_gb_per_s"]) * 1e3
    return _CALL_US + nbytes / bytes_per_us


class Background:
    """The background process of this process; started by the first request. Thread-safe."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self._requests: dict[str, Request] = {}
        self._reset()
        os.register_at_fork(after_in_child=self._forked)

    def _reset(self) -> None:
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0
        self._outgoing = b""
        self._incoming = b""

    def _forked(self) -> None:
        """In the child of a fork: the parent's process is none of its business, nor may it be kept from ending."""
        process = self._process
        if process is not None:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            process.returncode = 0  # so that nobody waits for it here
        self.jobs.clear()
        self._requests.clear()
        self._reset()

    def ask(self, name: str, operator: str, request: Request, target: str, calls: int, known: Job | None = None) -> Job:
        """Queues a request, or tells of more calls of it; returns its job as it stands.

        Args:
            known: the job of this request that an earlier call returned.
        """
        with self._lock:
            job = self.jobs.get(name) or known
            if job is None:
                specs = flatten([v for v in request.call.values.values() if holds_tensors(v)])  # type: ignore[misc]
                text = " ".join(str(s) for s in specs)
                job = Job(name, operator, text, estimate_us(specs, request.options.chip))
            job.calls += calls
            self.poll()
            if name not in self.jobs and self._admit(job):
                self.jobs[name] = job
                self._requests[name] = request
            if job.open:
                self._send(job, target)
            return job

    def _admit(self, job: Job) -> bool:
        """Whether a new job has a place in the queue: a free one, or that of the case which is called least."""
        closed = [j for j in self.jobs.values() if not j.open]
        for old in closed[: max(len(closed) - MAX_CLOSED, 0)]:
            del self.jobs[old.id]
        if sum(j.open for j in self.jobs.values()) >= MAX_OPEN:
            least = min((j for j in self.jobs.values() if j.state == "queued"), key=lambda j: j.weight, default=None)
            if least is None or least.weight >= job.weight:
                job.state, job.reason = "crowded", f"{MAX_OPEN} cases that are called more come first"
                return False
            least.state, least.sent = "crowded", -1
            del self.jobs[least.id], self._requests[least.id]
            self._tell({"id": least.id, "drop": True})
        job.state, job.reason, job.sent = "queued", "", -1
        return True

    def poll(self) -> None:
        """Hears what the background process has said since."""
        with self._lock:
            process = self._process
            if process is None:
                return
            assert process.stdout is not None
            with contextlib.suppress(BlockingIOError):
                while data := os.read(process.stdout.fileno(), 1 << 16):
                    self._incoming += data
            *lines, self._incoming = self._incoming.split(b"\n")
            for line in lines:
                answer: dict[str, Any] = json.loads(line)
                job = self.jobs.get(answer["id"])
                if job is None:  # it was begun when it lost its place
                    continue
                job.state, job.reason = answer["state"], answer["reason"]
                if not job.open:
                    self._requests.pop(job.id, None)
            if process.poll() is not None:
                log.warning("the background process ended with code %s", process.returncode)
                self._end(0.0)
                for job in self.jobs.values():
                    if job.open:
                        job.state, job.sent = "queued", -1

    def close(self) -> None:
        """Ends the background process. It is started again when something is asked."""
        with self._lock:
            self._end(_EXIT_S)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    # -- the pipe -----------------------------------------------------------------------------------------------------

    def _send(self, job: Job, target: str) -> None:
        if self._process is None:
            if self._starts >= MAX_STARTS:
                job.state, job.reason = "failed", "the background process ends as soon as it is started."
                return
            self._start(target)
        if job.sent == job.calls:
            return
        message: dict[str, Any] = {"id": job.id, "weight": job.weight}
        if job.sent < 0:
            try:
                message["request"] = request_to_json(self._requests[job.id])
            except TypeError as error:
                job.state, job.reason = "failed", f"it can't be sent to the background process: {error}."
                return
        job.sent = job.calls
        self._tell(message)

    def _tell(self, message: dict[str, Any]) -> None:
        if self._process is not None:
            self._outgoing += json.dumps(message).encode() + b"\n"
            self._flush()

    def _start(self, target: str) -> None:
        self._starts += 1
        environment = {
            **os.environ,
            "ASCENDOPT_TARGET": target,
            "OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "PASSIVE"),  # as __main__.py has it
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ascendopt_tune.service.background", target],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the one who serves
        )
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
        atexit.unregister(self.close)
        atexit.register(self.close)

    def _flush(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            while self._outgoing:
                self._outgoing = self._outgoing[os.write(self._process.stdin.fileno(), self._outgoing) :]
        except BlockingIOError:
            pass  # with the next message
        except OSError:
            self._outgoing = b""  # it has ended, which the next poll finds

    def _end(self, patience_s: float) -> None:
        process, self._process = self._process, None
        self._outgoing = self._incoming = b""
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


background = Background()
