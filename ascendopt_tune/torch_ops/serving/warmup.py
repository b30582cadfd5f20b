"""``aot.warmup(model, inputs)``: run a model once, tune every case it calls, have everything loaded before serving."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ...errors import AscendOptError, CacheError, CaseError
from ...evaluate.screen import sharing_evaluators
from ...files import write_whole
from ...nouns.clocks import Interval, speedup_text
from ...nouns.run_options import RunOptions
from ...service.lazy import moving_us
from ...service.policy import policy
from ...settings import settings
from . import intercept
from .recording import RecordedCall, Recorder, recording, timer, write_calls
from .warming import SPENT, STOPPED, Interrupted, Work, tune_breadth_first

Progress = Callable[[str], None]
_COMPILED_S = 45.0  # what compiling the fast path may take; with less left it isn't waited for


@dataclass(frozen=True)
class WarmedCase:
    """One operator and case of the model.

    ``share``: of the model's device time before tuning; None where the original has no modelled time. ``bytes``: of its
    tensors, in one call. ``before_us``, ``after_us``: device time of one call of the pair as written and of what serves
    now, modelled on the virtual NPU; None where no result is known. ``source``: ``tuned`` (now), ``cache``,
    ``original`` (the pair as written is the best), or why the original serves. ``interval``: of the speedup over
    plausible clocks, where times are modelled. ``search``: how far the search came; ``finished``: whether to its end.
    """

    operator: str
    case: str
    calls: int
    share: float | None
    before_us: float | None
    after_us: float | None
    source: str
    interval: Interval | None = None
    bytes: int = 0
    search: str = ""
    finished: bool = True


@dataclass(frozen=True)
class UntimedCalls:
    """Calls of one of torch's own operators that have no modelled time, and the bytes of all their tensors."""

    operator: str
    calls: int
    bytes: int


@dataclass(frozen=True)
class WarmupReport:
    """``cases``: those with the most device time first.

    ``model_us_before``, ``model_us_after``: device time of the model's runs by the originals and as it is served now.
    On the virtual NPU it is modelled, and what torch's own operators take is no part of it: these are ``untimed``, with
    their calls and bytes, in the runs by the originals. ``shares_of``: what shares are of.
    """

    cases: tuple[WarmedCase, ...]
    model_us_before: float
    model_us_after: float
    seconds: float
    shares_of: str
    word: str  # "modelled" or "measured"
    untimed: tuple[UntimedCalls, ...] = ()

    def __str__(self) -> str:
        lines = [_case_line(case, self.word) for case in self.cases]
        lines = [f"shares are of {self.shares_of}", *lines] if lines else [_NOTHING]
        if self.untimed:
            shown = ", ".join(f"{u.operator} {u.calls} x, {_size(u.bytes)}" for u in self.untimed[:_SHOWN])
            more = f", and {len(self.untimed) - _SHOWN} more operators" if len(self.untimed) > _SHOWN else ""
            calls, size = sum(u.calls for u in self.untimed), sum(u.bytes for u in self.untimed)
            lines.append(
                f"no part of that: {calls} calls of torch's own, {_size(size)}, have no modelled time ({shown}{more})"
            )
        lines.append(f"model: {self._model_text()}, warmed up in {self.seconds:.0f} s")
        return "\n".join(lines)

    def _model_text(self) -> str:
        """Before and after are of the same only where every original has a time."""
        before, after = self.model_us_before, self.model_us_after
        if not self.cases or any(case.share is None for case in self.cases):
            return f"{after:.1f} us {self.word} as it is served now; not all originals have a time to compare it with"
        gain = f" ({before / after:.2f}x)" if after > 0 else ""
        return f"{before:.1f} -> {after:.1f} us {self.word}{gain}"

    def to_json(self) -> dict[str, Any]:
        """The record that ``ascendopt-tune report`` draws a page of; times in us, ``time`` says what they are."""
        document: dict[str, Any] = {**asdict(self), "time": self.word}
        del document["word"]
        for case, told in zip(self.cases, document["cases"], strict=True):
            del told["interval"]
            told.update(case.interval.to_json() if case.interval is not None else {})
        return document

    def save(self, path: str | Path) -> None:
        """Writes the record as JSON, for ``ascendopt-tune report``. Raises CacheError if it can't be written."""
        try:
            write_whole(Path(path), json.dumps(self.to_json(), indent=1) + "\n")
        except OSError as error:
            raise CacheError(f"{path} can't be written: {error.strerror or error}.", "Name another file.") from error


_NOTHING = "the model calls no tuned operator on device npu"
_SHOWN = 5  # operators without a modelled time that are written out


def _case_line(case: WarmedCase, word: str) -> str:
    times = ""
    if case.before_us is not None and case.after_us is not None:
        speedup = speedup_text(case.before_us / case.after_us, case.interval)
        times = f"{case.before_us:.2f} -> {case.after_us:.2f} us {word}, {speedup}  "
    share = f"{case.share:6.1%}" if case.share is not None else f"no time, {_size(case.bytes * case.calls)}"
    search = f", {case.search}" if case.search and not case.finished else ""
    return f"{share}  {case.calls:5d} calls  {times}{case.operator} {case.case}  [{case.source}{search}]"


def _size(count: int) -> str:
    for unit in ("B", "KB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000  # type: ignore[assignment]
    return f"{count:.1f} GB"


def warmup(
    model: Callable[..., Any],
    example_inputs: Any,
    *,
    shapes: Iterable[Sequence[Sequence[int]]] = (),
    seconds: float | None = None,
    progress: Progress | None = None,
    options: Mapping[str, Any],
) -> WarmupReport:
    """See :func:`ascendopt_tune.warmup`."""
    say = progress or (lambda text: print(text, file=sys.stderr, flush=True))
    started = time.monotonic()
    runs = _calls(example_inputs)
    runs += [_with_shapes(runs[0], s) for s in shapes]
    say(f"running the model on {len(runs)} inputs to see what it calls ...")
    if _trains(model):
        say("the model is in training mode: originals serve where gradients are wanted; model.eval() if it is to serve")
    with _serving(model), recording() as recorder:
        for args, kwargs in runs:
            model(*args, **kwargs)
    works = _by_weight(recorder)
    # At the end everything is compared once and the model run once more.
    end = None if seconds is None else started + seconds - 2 * recorder.seconds
    try:
        with sharing_evaluators():
            _tune(works, options, end, recorder.total_us, say)
        _wait_for_cpp(None if seconds is None else started + seconds - time.monotonic(), say)
    except (KeyboardInterrupt, Interrupted):
        say("interrupted: what is tuned so far serves")
        for work in works:
            if work.entry is None and work.reason == SPENT:
                work.reason = STOPPED
    rows = [_served(work, recorder.total_us) for work in works]
    after = _device_us(model, runs)
    from ..device.runtime import is_virtual

    word = "modelled" if is_virtual() else "measured"
    untimed = [UntimedCalls(name, calls, size) for name, (calls, size) in recorder.untimed.items()]
    untimed.sort(key=lambda u: (-u.bytes, u.operator))
    return WarmupReport(
        tuple(rows), recorder.total_us, after, time.monotonic() - started, f"the model's {word} device time", word,
        tuple(untimed),
    )  # fmt: skip


def _tune(works: list[Work], options: Mapping[str, Any], end: float | None, total_us: float, say: Progress) -> None:
    def tell(number: int, work: Work, target: int) -> None:
        place = works.index(work) + 1
        share = f"{work.item.us / total_us:.1%} of the model's device time" if work.item.us and total_us else "no time"
        left = "" if end is None else f", {max(end - time.monotonic(), 0):.0f} s left"
        say(f"{place}/{len(works)}  {share}  {work.item.op.name} {_case(work.item)}  up to {target} evaluations{left}")

    tune_breadth_first(works, RunOptions(**options).budget, end, tell, options)


def _wait_for_cpp(left_s: float | None, say: Progress) -> None:
    """Takes up the library that serves hits in C++; waits for it where there is the time."""
    patient = left_s is None or left_s > _COMPILED_S
    if intercept.is_slow() and patient:
        say("waiting for the fast path to be compiled (once on a machine; takes half a minute) ...")
    intercept.speed_up(wait=patient)


def record(model: Callable[..., Any], example_inputs: Any, path: Path) -> int:
    """See :func:`ascendopt_tune.record`."""
    runs = _calls(example_inputs)
    with _serving(model), recording() as recorder:
        for args, kwargs in runs:
            model(*args, **kwargs)
    return write_calls(recorder, path)


def _calls(example_inputs: Any) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Arguments of each run. A tensor, a tuple of arguments and a mapping of named ones are one run; other iterables
    are several, in which a list with tensors is a tuple, too."""
    one = _call(example_inputs)
    if one is not None:
        return [one]
    if not isinstance(example_inputs, Iterable) or isinstance(example_inputs, (str, bytes)):
        raise _no_call(example_inputs)
    several = []
    for example in example_inputs:
        listed = isinstance(example, list) and any(isinstance(v, torch.Tensor) for v in pytree.tree_leaves(example))
        call = _call(tuple(example) if listed else example)  # what a DataLoader makes of a tuple is a list
        if call is None:
            raise _no_call(example)
        several.append(call)
    if not several:
        raise CaseError("there are no example inputs.", _KINDS)
    return several


def _call(example: Any) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Positional and named arguments of one run; None for what isn't one. A tokenizer's mapping is no dict."""
    if isinstance(example, torch.Tensor):
        return (example,), {}
    if isinstance(example, Mapping):
        return (), dict(example)
    return (example, {}) if isinstance(example, tuple) else None


_KINDS = "Give a tensor, a tuple of arguments, a dict of named ones, or a list of these."


def _no_call(example: Any) -> CaseError:
    return CaseError(f"example inputs can't be a {type(example).__name__}.", _KINDS)


def _with_shapes(call: tuple[tuple[Any, ...], dict[str, Any]], shapes: Sequence[Sequence[int]]) -> Any:
    """The call with its tensors, in their order, in other shapes; their elements are the example's, repeated."""
    flat, structure = pytree.tree_flatten(call)
    places = [i for i, value in enumerate(flat) if isinstance(value, torch.Tensor)]
    if len(places) != len(shapes):
        raise CaseError(
            f"shapes has {len(shapes)} entries for an example with {len(places)} tensors.",
            "Give one shape for each of its tensors, in their order.",
        )
    for i, shape in zip(places, shapes, strict=True):
        tensor = flat[i].detach().reshape(-1)
        count = int(torch.Size(shape).numel())
        if tensor.numel() == 0:
            raise CaseError(f"the example's tensor {places.index(i)} is empty, so it can't be given another shape.")
        index = torch.arange(count, device="cpu") % tensor.numel()
        flat[i] = tensor.cpu()[index].reshape(tuple(shape)).to(flat[i].device)
    return pytree.tree_unflatten(flat, structure)


def _serving(model: Any) -> Any:
    """Gradients as when the model serves: off, unless it is a module in training mode and they aren't off around it."""
    return torch.set_grad_enabled(_trains(model))


def _trains(model: Any) -> bool:
    return torch.is_grad_enabled() and bool(getattr(model, "training", False))


def _by_weight(recorder: Recorder) -> list[Work]:
    """The calls by their device time in the runs; where an original has no modelled one, by what its bytes take."""
    chip = settings().chip
    works = []
    for item in recorder.calls.values():
        estimate = moving_us(item.bytes, chip) * item.count
        works.append(Work(item, item.us if item.us > 0 else estimate, reason=SPENT))
    return sorted(works, key=lambda w: -w.weight_us)


def _served(work: Work, total_us: float) -> WarmedCase:
    """Has what was found serve from now on."""
    item, entry = work.item, work.entry
    share = item.us / total_us if item.us > 0 and total_us > 0 else None
    source = work.reason
    if entry is not None:
        wanted = any(t.requires_grad for t in pytree.tree_leaves(item.args) if hasattr(t, "grad_fn"))
        with torch.set_grad_enabled(wanted), policy("lookup"):
            result = item.op.resolve_ahead(item.args, item.kwargs, item.original, anew=work.tuned)
        source = ("tuned" if work.tuned else "cache") if result == "tuned" else result
    if entry is None or source not in ("tuned", "cache", "original"):
        return WarmedCase(item.op.name, _case(item), item.count, share, None, None, source, bytes=item.bytes)
    made = entry.provenance
    return WarmedCase(
        item.op.name, _case(item), item.count, share, entry.baseline.task_duration_us, entry.best.task_duration_us,
        source, entry.interval, item.bytes, made.search_text, made.finished(made.budget),
    )  # fmt: skip


def _case(item: RecordedCall) -> str:
    try:
        return str(item)
    except AscendOptError as error:
        return f"({error.message})"


def _device_us(model: Callable[..., Any], runs: Sequence[tuple[tuple[Any, ...], dict[str, Any]]]) -> float:
    start, end = timer(), timer()
    with _serving(model):
        start.record()
        for args, kwargs in runs:
            model(*args, **kwargs)
        end.record()
        torch.npu.synchronize()  # type: ignore[attr-defined]
    return float(start.elapsed_time(end) * 1e3)
