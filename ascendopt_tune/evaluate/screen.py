"""Screening: what is about to run on a real NPU runs on the virtual one first.

A device's events give a time and no pipes, and nothing on a device tells a hazard from a right result, or an access out
of bounds from a device that hangs. So each of the two judges what it can judge:

* the virtual NPU how a pair accesses memory and orders its pipes and cores. What it refuses never touches the device;
  its profile of what passes goes along with the device's time (``Profile.modelled``), for diagnosis, niches and motifs;
* the device the values and the time.

Whether the virtual NPU has a say is decided by the original: where it refuses the baseline itself (an API it doesn't
cover, cube cores, an input too large to simulate in time), that is said once, and the device decides alone.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from ..build.toolkit import Toolkit, virtual
from ..errors import ToolchainError
from ..nouns.chip import DEFAULT_CHIP
from ..nouns.operator import Pair
from ..nouns.outcome import Timed
from ..settings import settings
from .evaluator import EvaluateRequest, EvaluationResult, Evaluator, ProcessLimits
from .inputs import STRESS

A = TypeVar("A")
B = TypeVar("B")
Say = Callable[[str], None]

OFF = "off"
#: Ends the reason of every outcome that the virtual NPU found.
FOUND = "(found on the virtual NPU; it did not run on the device)"


def open_evaluator(
    toolkit: Toolkit, chip: str = DEFAULT_CHIP, *, workers: int | None = None, say: Say = lambda text: None
) -> Evaluator:
    """An evaluator for ``toolkit``: for a real NPU one that screens, unless ``ASCENDOPT_SCREEN`` is ``off``.

    Args:
        say: told once what can't be screened, and why.

    Raises:
        CaseError: no such chip.
    """
    wanted = settings().screen
    if toolkit.kind == "virtual" or wanted == OFF:
        return Evaluator(toolkit, chip, workers=workers)
    try:
        model = virtual()
    except ToolchainError as error:
        say(f"candidates are not checked on the virtual NPU before they run on the device: {error}")
        return Evaluator(toolkit, chip, workers=workers)
    return Screened(toolkit, chip, model=model, modelled_chip=wanted or chip, workers=workers, say=say)


_lent: ContextVar[dict[tuple[Toolkit, str, int | None], Evaluator] | None] = ContextVar("_lent", default=None)


@contextlib.contextmanager
def sharing_evaluators() -> Iterator[None]:
    """Within it, :func:`borrowed` gives all who ask for the same one evaluator, and so one server."""
    lent: dict[tuple[Toolkit, str, int | None], Evaluator] = {}
    token = _lent.set(lent)
    try:
        yield
    finally:
        _lent.reset(token)
        for evaluator in lent.values():
            evaluator.close()


@contextlib.contextmanager
def borrowed(toolkit: Toolkit, chip: str, workers: int | None = None) -> Iterator[Evaluator]:
    """As :func:`open_evaluator`; who shares closes it, else the end of the ``with`` block does."""
    lent = _lent.get()
    if lent is None:
        with open_evaluator(toolkit, chip, workers=workers) as evaluator:
            yield evaluator
        return
    key = (toolkit, chip, workers)
    if key not in lent:
        lent[key] = open_evaluator(toolkit, chip, workers=workers)
    yield lent[key]


class Screened(Evaluator):
    """An evaluator for a device with one for the virtual NPU before it.

    Args:
        toolkit: the device's.
        chip: the chip that is tuned for.
        model: the virtual NPU's toolkit.
        modelled_chip: the chip that the virtual NPU models: ``chip``, or what was calibrated on the device.
        say: told once per reason what can't be screened.
    """

    def __init__(
        self,
        toolkit: Toolkit,
        chip: str,
        limits: ProcessLimits | None = None,
        *,
        model: Toolkit,
        modelled_chip: str,
        workers: int | None = None,
        build_dir: Path | None = None,
        say: Say = lambda text: None,
    ) -> None:
        super().__init__(toolkit, chip, limits, workers=workers, build_dir=build_dir)
        self._model = Evaluator(model, modelled_chip, limits, workers=workers, build_dir=build_dir)
        self.modelled_chip = self._model.chip
        self._say = say
        self._said: set[str] = set()
        self._asking = threading.Lock()
        self._verdicts: dict[tuple[object, ...], Future[EvaluationResult]] = {}

    def fresh(self) -> Screened:
        made = Screened(
            self.toolkit,
            self.chip,
            self.limits,
            model=self._model.toolkit,
            modelled_chip=self.modelled_chip,
            workers=1,
            build_dir=self.build_dir,
            say=self._say,
        )
        made._said = self._said
        return made

    def submit(self, request: EvaluateRequest) -> Future[EvaluationResult]:
        if not request.trials:  # nothing is launched
            return super().submit(request)
        device = super().submit
        baseline = request.operator.baseline
        own = request.pair.hash == baseline.hash

        def judge(original: EvaluationResult) -> Future[EvaluationResult]:
            if not isinstance(original.outcome, Timed):
                # The gate is making its trials: a stress trial that the original fails is left out.
                if own and not request.measure and any(t.distribution in STRESS for t in request.trials):
                    return _done(_refused(original))
                self._tell(request, original.outcome.reason)
                return device(request)
            return _then(_done(original) if own else self._verdict(request, request.pair), run)

        def run(seen: EvaluationResult) -> Future[EvaluationResult]:
            if not isinstance(seen.outcome, Timed):
                return _done(_refused(seen))
            return _then(device(request), lambda timed: _done(_with_model(timed, seen, request.measure)))

        return _then(self._verdict(request, baseline), judge)

    def close(self) -> None:
        self._model.close()
        super().close()

    def _verdict(self, request: EvaluateRequest, pair: Pair) -> Future[EvaluationResult]:
        """What the virtual NPU says of ``pair`` on the request's trials; asked once. Values are not compared."""
        allowed = None if pair is request.operator.baseline else request.allowed
        asked = replace(
            request,
            pair=pair,
            chip=self.modelled_chip,
            target="virtual",
            trials=tuple(replace(t, expected=None, leeway=None, limits=()) for t in request.trials),
            keep_outputs=False,
            incumbent=None,
            trace=False,
            tiled=self.tiled(replace(request, pair=pair)),
            allowed=allowed,
        )
        habits = (allowed.relies_on, tuple(sorted(allowed.slack.items())), allowed.variables) if allowed else None
        key = (str(request.operator.root), pair.hash, request.case, asked.trials, request.measure, habits)
        with self._asking:
            if key not in self._verdicts:
                self._verdicts[key] = self._model.submit(asked)
            return self._verdicts[key]

    def _tell(self, request: EvaluateRequest, reason: str) -> None:
        name = request.operator.name
        if name not in self._said:
            self._said.add(name)
            self._say(
                f"{name} can't be checked on the virtual NPU, so candidates run on the device without a check for "
                f"hazards and without a modelled profile: {reason}"
            )


def _refused(seen: EvaluationResult) -> EvaluationResult:
    """A refusal of the virtual NPU as the evaluation's own result; what was built for the model is not the device's."""
    assert not isinstance(seen.outcome, Timed)
    outcome = replace(seen.outcome, reason=f"{seen.outcome.reason} {FOUND}")
    return replace(seen, outcome=outcome, outputs=(), binary_path=None, tiling_path=None, trace_path=None)


def _with_model(timed: EvaluationResult, seen: EvaluationResult, measured: bool) -> EvaluationResult:
    """The device's result with what only the virtual NPU can tell: profile and habits of memory and order."""
    outcome = timed.outcome
    if measured and isinstance(outcome, Timed) and isinstance(seen.outcome, Timed):
        outcome = replace(outcome, profile=replace(outcome.profile, modelled=seen.outcome.profile))
    habits = replace(seen.habits, drift=timed.habits.drift)
    seconds = sum(seen.timings_s.get(stage, 0.0) for stage in ("compile", "tiling", "execute", "check"))
    return replace(timed, outcome=outcome, habits=habits, timings_s={**timed.timings_s, "screen": seconds})


def _done(value: A) -> Future[A]:
    future: Future[A] = Future()
    future.set_result(value)
    return future


def _then(first: Future[A], step: Callable[[A], Future[B]]) -> Future[B]:
    """What the future of ``step`` comes to, which is asked with the result of ``first``; errors of either go on."""
    answer: Future[B] = Future()

    def settle(done: Future[B]) -> None:
        error = done.exception()
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(done.result())

    def go_on(done: Future[A]) -> None:
        try:
            step(done.result()).add_done_callback(settle)
        except Exception as error:  # raised again by whoever waits for the answer
            answer.set_exception(error)

    first.add_done_callback(go_on)
    return answer
