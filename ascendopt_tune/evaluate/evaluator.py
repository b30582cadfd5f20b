"""Evaluator: the tuner's side of the evaluation server. Thread-safe; starts the server on first use.

Whatever a candidate does, an evaluation ends with an outcome. What a process was working on that is killed from outside
(the server, one it forked, a candidate's) is asked once more, of a new server if need be; then it has crashed.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from .. import paths
from ..build.blocks import BlockId, digest_of_run
from ..build.host import HostDescription, TilingResult
from ..build.toolkit import Toolkit
from ..errors import CacheError, DeviceError, HostProgramError, Lost
from ..files import check_space
from ..nouns.case import Argument, AttrValue
from ..nouns.chip import DEFAULT_CHIP, load_chip
from ..nouns.operator import Operator, Pair
from ..nouns.outcome import CompileFailed, Crashed, Timed
from ..store.scratch import Scratch
from .connection import Connection
from .limits import ProcessLimits
from .protocol import EvaluateRequest, EvaluationResult, GateTrial, Tiled

__all__ = ["EvaluateRequest", "EvaluationResult", "Evaluator", "GateTrial", "ProcessLimits"]

_FREE_BYTES = 16 << 20  # an evaluation writes a few megabytes
_RUNS = 16  # ways through a tiling program that are compared with; the latest


class Evaluator:
    """Compiles, runs and checks pairs for one toolkit and chip, ``workers`` of them at the same time.

    Use it as a context manager: its temporary files (outputs, tiling bytes) go when it is closed.

    Args:
        chip: name of the chip that is modelled, or tuned for.
        workers: evaluations at the same time; default: one per processor core.
        build_dir: where compiled programs are kept; default: ``paths.build_dir()``.

    Raises:
        CaseError: no such chip.
    """

    def __init__(
        self,
        toolkit: Toolkit,
        chip: str = DEFAULT_CHIP,
        limits: ProcessLimits | None = None,
        *,
        workers: int | None = None,
        build_dir: Path | None = None,
    ) -> None:
        self.toolkit = toolkit
        self.chip = load_chip(chip).name
        #: The chip of the profiles that tell pipes (see screen.py).
        self.modelled_chip = self.chip
        self.limits = limits or ProcessLimits()
        self.workers = workers or os.cpu_count() or 1
        self.build_dir = build_dir or paths.build_dir()
        #: A folder of this evaluator's own, for input and output files.
        self._scratch = Scratch(prefix="ascendopt-evaluation-")
        self.folder = self._scratch.folder
        self._closed = False
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._descriptions: dict[tuple[str, str], HostDescription] = {}
        self._tiled: dict[tuple[object, ...], Tiled] = {}
        self._tiling: dict[tuple[object, ...], Future[Tiled]] = {}  # started, and not asked for yet
        #: case -> blocks that a program ran -> what they were -> what was decided
        self._runs: dict[tuple[object, ...], dict[frozenset[BlockId], dict[str, Tiled]]] = {}
        atexit.register(self.close)

    # -- what can be asked --------------------------------------------------------------------------------------------

    def describe(self, operator: Operator, pair: Pair | None = None) -> HostDescription:
        """The operator definition and tiling structs of ``pair`` (default: the baseline).

        Raises:
            HostProgramError: it doesn't compile or crashes; the text has the user's file and line.
        """
        pair = pair or operator.baseline
        _check_size(operator, pair)
        key = (str(operator.root), pair.tiling_hash)
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

    def start_tiling(self, requests: Iterable[EvaluateRequest]) -> None:
        """Starts what :meth:`tile` will be asked for; several run at the same time."""
        for request in requests:
            key = _tiling_key(request)
            known = key in self._tiled or key in self._tiling or request.pair.oversize() is not None
            if not known and self._like_another(request) is None:
                self._tiling[key] = self._ask("tile", request)

    def tile(self, request: EvaluateRequest) -> TilingResult:
        """What the pair's tiling function decides.

        A program that differs from another one only in blocks which that one never entered isn't compiled.

        Raises:
            HostProgramError: it doesn't compile, or refuses.
        """
        _check_size(request.operator, request.pair)
        key = _tiling_key(request)
        if key not in self._tiled:
            self._tiled[key] = self._like_another(request) or self._run(request)
        return self._tiled[key].result

    def _like_another(self, request: EvaluateRequest) -> Tiled | None:
        runs = self._runs.get(_case_key(request), {})
        for ran in list(runs)[-_RUNS:]:
            tiled = runs[ran].get(digest_of_run(request.pair.tiling, ran))
            if tiled is not None:
                return tiled
        return None

    def _run(self, request: EvaluateRequest) -> Tiled:
        started = self._tiling.pop(_tiling_key(request), None)
        tiled: Tiled = (started or self._ask("tile", request)).result()
        if tiled.ran is not None:
            ran = frozenset(tiled.ran)
            runs = self._runs.setdefault(_case_key(request), {})
            runs.setdefault(ran, {})[digest_of_run(request.pair.tiling, ran)] = tiled = replace(tiled, ran=None)
        return tiled

    def tiled(self, request: EvaluateRequest) -> Tiled | None:
        """What :meth:`tile` found out, where it was asked; compiles and runs nothing."""
        return self._tiled.get(_tiling_key(request))

    def fresh(self) -> Evaluator:
        """Another evaluator of the same kind, with a server of its own and one worker."""
        return Evaluator(self.toolkit, self.chip, self.limits, workers=1, build_dir=self.build_dir)

    def submit(self, request: EvaluateRequest) -> Future[EvaluationResult]:
        """Starts an evaluation. The future raises CaseError when the case doesn't fit the operator's baseline."""
        too_large = request.pair.oversize()
        if too_large is not None:  # nobody has to read it to know
            answer: Future[EvaluationResult] = Future()
            answer.set_result(EvaluationResult(CompileFailed(too_large)))
            return answer
        return self._ask("evaluate", replace(request, tiled=self.tiled(request)))

    def evaluate(self, request: EvaluateRequest) -> EvaluationResult:
        """One evaluation, to its end. Raises CaseError when the case doesn't fit the operator's baseline."""
        return self.submit(request).result()

    def evaluate_many(self, requests: Iterable[EvaluateRequest]) -> Iterator[tuple[int, EvaluationResult]]:
        """(position, result) as evaluations end; several run at the same time."""
        futures = {self.submit(r): i for i, r in enumerate(requests)}
        for future in as_completed(futures):
            yield futures[future], future.result()

    @property
    def server_pid(self) -> int | None:
        """Process id of the evaluation server, where one runs."""
        process = self._connection.process if self._connection is not None else None
        return process.pid if process is not None else None

    # -- life ---------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends the server, all it started, and the evaluator's files. Harmless when repeated."""
        with self._lock:
            self._closed = True
            connection = self._connection
        if connection is not None:
            connection.close()
        self._connection = None  # not before: who is interrupted closes it again
        self._scratch.close()
        atexit.unregister(self.close)

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, op: str, *args: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        self._forward(answer, op, args, again=True)
        return answer

    def _forward(self, answer: Future[Any], op: str, args: tuple[Any, ...], again: bool) -> None:
        """Sends a request, ``again`` if it is lost, and hands what comes of it to ``answer``."""

        def settle(done: Future[Any]) -> None:
            try:
                result = done.result()
                if isinstance(result, EvaluationResult) and not isinstance(result.outcome, Timed):
                    self._check_space()
                answer.set_result(result)
            except Lost as lost:
                if again and not self._closed:
                    try:
                        self._forward(answer, op, args, again=False)
                    except Exception as error:  # raised again by whoever waits for the result
                        answer.set_exception(error)
                elif op == "evaluate":
                    answer.set_result(EvaluationResult(Crashed(lost.message)))
                else:
                    answer.set_exception(HostProgramError(lost.message))
            except Exception as error:
                try:
                    self._check_space()
                    answer.set_exception(error)
                except CacheError as full:
                    answer.set_exception(full)

        self._send(op, args).add_done_callback(settle)

    def _check_space(self) -> None:
        """After a failure: on a full disk it is nobody's whose program was compiled. Raises CacheError."""
        for folder in (self.build_dir, self.folder):
            with contextlib.suppress(OSError):  # gone, which is another matter
                check_space(folder, _FREE_BYTES)

    def _send(self, op: str, args: tuple[Any, ...]) -> Future[Any]:
        why: Exception | None = None
        with self._lock:
            for _ in range(2):  # a server that was killed is noticed when it is used
                try:
                    if self._connection is None or not self._connection.alive:
                        self._connection = self._connection_to_start()
                        self._connection.start()
                    return self._connection.ask(op, *args)
                except (OSError, DeviceError) as error:
                    self._connection, why = None, error
        raise DeviceError(f"the evaluation server ends as soon as it is started: {why}") from why

    def _connection_to_start(self) -> Connection:
        self.folder.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=self.folder, prefix="server-"))
        config = {
            "kind": self.toolkit.kind,
            "prefix": str(self.toolkit.prefix),
            "version": self.toolkit.version,
            "chip": self.chip,
            "limits": asdict(self.limits),
            "build_dir": str(self.build_dir),
            "folder": str(self.folder),
            "work": str(work),
            "workers": self.workers,
        }
        return Connection(config, self.folder)


def _check_size(operator: Operator, pair: Pair) -> None:
    """Raises HostProgramError for sources that are too large to be read."""
    too_large = pair.oversize()
    if too_large is not None:
        raise HostProgramError(f"{operator.name}: {too_large}")


def _tiling_key(request: EvaluateRequest) -> tuple[object, ...]:
    """What a tiling function's answer depends on."""
    return request.pair.tiling_hash, *_case_key(request)


def _case_key(request: EvaluateRequest) -> tuple[object, ...]:
    values = request.trials[0].inputs if request.trials else ()
    return str(request.operator.root), request.case, request.chip, values
