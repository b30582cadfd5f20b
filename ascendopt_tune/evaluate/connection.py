"""One evaluation server process and the answers it owes. Evaluator starts another when it ends."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import IO, Any

from ..errors import DeviceError, Lost
from ..settings import SECRETS
from . import protocol

_CLOSE_S = 5.0


class Connection:
    """A server that :meth:`start` starts. Thread-safe.

    Args:
        config: the server's first line, see server.Server.
        folder: an existing folder for the server's log.
    """

    def __init__(self, config: Mapping[str, Any], folder: Path) -> None:
        self._config, self._folder = config, folder
        self._ids = itertools.count()
        self._lock = threading.Lock()
        self._pending: dict[int, Future[Any]] = {}
        self._ended = False
        #: The server's process, once it is started.
        self.process: subprocess.Popen[bytes] | None = None
        #: What the server says of itself: ``pid``, ``torch`` (whether it imported it).
        self.hello: dict[str, Any] = {}

    def start(self) -> None:
        """Starts the server and waits until it is ready.

        Interrupted at any moment it leaves no server behind: whoever may be interrupted holds the connection before.

        Raises:
            ToolchainError: the server can't load the toolkit.
            DeviceError: it doesn't start; the text has what it printed.
        """
        try:
            self._in, self._out = self._launch()
            self._in.write(protocol.dumps(self._config) + b"\n")
            self._in.flush()
            hello = self._out.readline()
            if not hello:
                text = (self._folder / "server.log").read_text(encoding="utf-8", errors="replace")[-1500:].strip()
                raise DeviceError(f"the evaluation server does not start: {text}")
            self.hello = protocol.value_or_raise(protocol.loads(hello))
            threading.Thread(target=self._listen, daemon=True).start()
        except BaseException:
            self.close()
            raise

    def _launch(self) -> tuple[IO[bytes], IO[bytes]]:
        with open(self._folder / "server.log", "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ascendopt_tune.evaluate.server", str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=_environment(),
                cwd=self._folder,
                start_new_session=True,  # Ctrl-C reaches the tuner alone, which then closes the server
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        return self.process.stdin, self.process.stdout

    @property
    def alive(self) -> bool:
        return bool(self.hello) and not self._ended and self.process is not None and self.process.poll() is None

    def ask(self, op: str, *args: Any) -> Future[Any]:
        """Sends a request; the future raises Lost when a process was killed over it.

        Raises OSError when the server is gone.
        """
        future: Future[Any] = Future()
        arguments = [protocol.encode(a) for a in args]
        with self._lock:
            if self._ended:
                raise OSError("the evaluation server has ended")
            number = next(self._ids)
            self._pending[number] = future
            try:
                self._in.write(protocol.dumps({"id": number, "op": op, "args": arguments}) + b"\n")
                self._in.flush()
            except OSError:
                self._pending.pop(number, None)
                raise
        return future

    def close(self) -> None:
        """Ends the server and all it started; what it owes is answered as lost. Harmless when repeated."""
        process = self.process
        if process is None:
            return
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()  # the server ends at the end of its input
        try:
            process.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if not self.hello and process.stdout is not None:  # else the listener does
            process.stdout.close()

    def _listen(self) -> None:
        """Hands answers to their futures until the server ends; then whatever it owes is lost."""
        for line in self._out:
            if not line.endswith(b"\n"):  # it was killed while it wrote this
                break
            answer = protocol.loads(line)
            with self._lock:
                future = self._pending.pop(answer["id"])
            _settle(future, answer)
        assert self.process is not None
        self.process.wait()
        with self._lock:
            self._ended = True
            lost, self._pending = self._pending, {}
            self._out.close()
            try:
                self._in.close()
            except OSError:
                pass
        for future in lost.values():
            _settle(future, {"died": f"the evaluation server ended (exit code {self.process.returncode})"})


def _settle(future: Future[Any], answer: Mapping[str, Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        if "died" in answer:
            raise Lost(answer["died"])
        future.set_result(protocol.value_or_raise(answer))
    except Exception as error:  # raised again by whoever waits for the result
        future.set_exception(error)


def _environment() -> dict[str, str]:
    """What compilers and the toolkit need of the environment, and nothing else: candidates run below the server."""
    wanted = (k for k in os.environ if k in protocol.TOOL_VARIABLES or k.startswith("ASCEND"))
    kept = {k: os.environ[k] for k in wanted if k not in SECRETS}
    package = str(Path(__file__).resolve().parent.parent.parent)
    # One thread: numpy's linear algebra must not start any before a fork.
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    # Launches allocate and free the same megabytes again and again: let the allocator keep them.
    memory = {"MALLOC_MMAP_THRESHOLD_": str(1 << 28), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}
    return {**kept, **threads, **memory, "PYTHONPATH": package, "PYTHONDONTWRITEBYTECODE": "1"}
