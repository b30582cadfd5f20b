"""Evaluator: the tuner's side of the evaluation server. Thread-safe; starts the server on first use.

Whatever a candidate does, an evaluation ends with an outcome; when the server itself is killed, what it was working on
becomes Crashed and the next request starts a new one.
"""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from .. import paths
from ..build.host import HostDescription, TilingResult
from ..build.toolkit import Toolkit
from ..case import Argument, AttrValue
from ..chip import DEFAULT_CHIP, load_chip
from ..errors import DeviceError, HostProgramError
from ..operator import Operator, Pair
from ..outcome import Crashed
from . import protocol
from .limits import Limits
from .protocol import EvaluateRequest, EvaluationResult, Trial

__all__ = ["EvaluateRequest", "EvaluationResult", "Evaluator", "Limits", "Trial"]

_CLOSE_S = 5.0


class Evaluator:
    """Compiles, runs and checks pairs for one toolkit and chip, ``workers`` of them at the same time.

    Use it as a context manager: its temporary files (outputs, tiling bytes) go when it is closed.

    Args:
        chip: name of the chip that is modelled, or tuned for.
        workers: evaluations at the same time; default: one per processor core.
        build_dir: where compiled programs are kept; default: ``build`` in the writable cache.

    Raises:
        CaseError: no such chip.
    """

    def __init__(
        self,
        toolkit: Toolkit,
        chip: str = DEFAULT_CHIP,
        limits: Limits | None = None,
        *,
        workers: int | None = None,
        build_dir: Path | None = None,
    ) -> None:
        self.toolkit = toolkit
        self.chip = load_chip(chip).name
        self.limits = limits or Limits()
        self.workers = workers or os.cpu_count() or 1
        self.build_dir = build_dir or paths.cache_dir() / "build"
        #: A folder of this evaluator's own, for input and output files.
        self.folder = Path(tempfile.mkdtemp(prefix="ascendopt-"))
        self._ids = itertools.count()
        self._lock = threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None
        self._pending: dict[int, Future[Any]] = {}
        self._descriptions: dict[tuple[str, str], HostDescription] = {}
        atexit.register(self.close)

    # -- what can be asked --------------------------------------------------------------------------------------------

    def describe(self, operator: Operator, pair: Pair | None = None) -> HostDescription:
        """The operator definition and tiling structs of ``pair`` (default: the baseline).

        Raises:
            HostProgramError: it doesn't compile or crashes; the text has the user's file and line.
        """
        pair = pair or operator.baseline
        key = (operator.name, pair.tiling_hash)
        if key not in self._descriptions:
            self._descriptions[key] = self._ask("describe", operator, pair, self.chip).result()
        return self._descriptions[key]

    def infer_outputs(
        self, operator: Operator, inputs: tuple[Argument, ...], attrs: Sequence[tuple[str, AttrValue]]
    ) -> tuple[Argument, ...]:
        """The outputs for these inputs, by the operator's own shape function.

        Raises:
            HostProgramError: it has none, or refuses the inputs.
            CaseError: an unknown attribute, or dtypes that no column has.
        """
        outputs: tuple[Argument, ...] = self._ask("infer_outputs", operator, inputs, tuple(attrs)).result()
        return outputs

    def tile(self, request: EvaluateRequest) -> TilingResult:
        """What the pair's tiling function decides. Raises HostProgramError when it doesn't compile, or refuses."""
        result: TilingResult = self._ask("tile", request).result()
        return result

    def submit(self, request: EvaluateRequest) -> Future[EvaluationResult]:
        """Starts an evaluation. The future raises CaseError when the case doesn't fit the operator's baseline."""
        return self._ask("evaluate", request)

    def evaluate(self, request: EvaluateRequest) -> EvaluationResult:
        """One evaluation, to its end. Raises CaseError when the case doesn't fit the operator's baseline."""
        return self.submit(request).result()

    def evaluate_many(self, requests: Iterable[EvaluateRequest]) -> Iterator[tuple[int, EvaluationResult]]:
        """(position, result) as evaluations end. What is left undone when the caller stops is cancelled."""
        futures = {self.submit(r): i for i, r in enumerate(requests)}
        for future in as_completed(futures):
            yield futures[future], future.result()

    # -- life ---------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends the server, all it started, and the evaluator's files. Harmless when repeated."""
        atexit.unregister(self.close)
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            _end(server)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- the pipe -----------------------------------------------------------------------------------------------------

    def _ask(self, op: str, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        number = next(self._ids)
        line = protocol.dumps({"id": number, "op": op, "args": [protocol.encode(a) for a in args]}) + b"\n"
        with self._lock:
            server = self._server
            if server is None or server.poll() is not None:
                server = self._server = self._start()
            self._pending[number] = future
            try:
                assert server.stdin is not None
                server.stdin.write(line)
                server.stdin.flush()
            except OSError as error:
                del self._pending[number]
                raise DeviceError(f"the evaluation server ended: {error}.", _server_log(self.folder)) from None
        future.op = op  # type: ignore[attr-defined]  # what a lost answer becomes depends on it
        return future

    def _start(self) -> subprocess.Popen[bytes]:
        self.folder.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=self.folder, prefix="server-"))
        with open(self.folder / "server.log", "ab") as log:
            server = subprocess.Popen(
                [sys.executable, "-m", "ascendopt_tune.evaluate.server"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=_environment(),
                cwd=work,
                start_new_session=True,  # Ctrl-C reaches the tuner alone, which then closes the server
            )
        config = {
            "kind": self.toolkit.kind,
            "prefix": str(self.toolkit.prefix),
            "version": self.toolkit.version,
            "limits": asdict(self.limits),
            "build_dir": str(self.build_dir),
            "work": str(work),
            "workers": self.workers,
        }
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(protocol.dumps(config) + b"\n")
        server.stdin.flush()
        hello = server.stdout.readline()
        if not hello:
            raise DeviceError("the evaluation server does not start.", _server_log(self.folder))
        protocol.value_or_raise(protocol.loads(hello))
        threading.Thread(target=self._listen, args=(server,), daemon=True).start()
        return server

    def _listen(self, server: subprocess.Popen[bytes]) -> None:
        """Hands answers to their futures until the server ends; then whatever it owes is lost."""
        assert server.stdout is not None
        for line in server.stdout:
            answer = protocol.loads(line)
            with self._lock:
                future = self._pending.pop(answer["id"], None)
            if future is not None:
                _settle(future, answer)
        server.stdout.close()
        server.wait()
        with self._lock:
            lost, self._pending = self._pending, {}
        for future in lost.values():
            _settle(future, {"died": f"the evaluation server ended (exit code {server.returncode})"})


def _settle(future: Future[Any], answer: dict[str, Any]) -> None:
    if "died" in answer:
        if getattr(future, "op", "evaluate") == "evaluate":
            future.set_result(EvaluationResult(Crashed(answer["died"])))
        else:
            future.set_exception(HostProgramError(answer["died"]))
        return
    try:
        future.set_result(protocol.value_or_raise(answer))
    except Exception as error:  # noqa: BLE001  raised again by whoever waits for the result
        future.set_exception(error)


def _end(server: subprocess.Popen[bytes]) -> None:
    assert server.stdin is not None
    try:
        server.stdin.close()  # the server ends at the end of its input
    except OSError:
        pass
    try:
        server.wait(_CLOSE_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _environment() -> dict[str, str]:
    """What compilers and the toolkit need of the environment, and nothing else: candidates run below the server."""
    kept = {k: v for k, v in os.environ.items() if k in protocol.TOOL_VARIABLES or k.startswith("ASCEND")}
    package = str(Path(__file__).resolve().parent.parent.parent)
    # One thread: numpy's linear algebra must not start any before a fork.
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    # Launches allocate and free the same megabytes again and again: let the allocator keep them.
    memory = {"MALLOC_MMAP_THRESHOLD_": str(1 << 28), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}
    return {**kept, **threads, **memory, "PYTHONPATH": package, "PYTHONDONTWRITEBYTECODE": "1"}


def _server_log(folder: Path) -> str:
    try:
        return (folder / "server.log").read_text(errors="replace")[-1500:].strip()
    except OSError:
        return ""
