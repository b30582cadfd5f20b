"""``aot.warmup(model, inputs)``: run a model once, tune every case it calls, have everything loaded before serving."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..clocks import Interval, speedup_text
from ..errors import AscendOptError, CaseError
from ..settings import override
from . import intercept
from .policy import policy
from .recording import RecordedCall, Recorder, recording, timer, write_calls

Progress = Callable[[str], None]


@dataclass(frozen=True)
class WarmedCase:
    """One operator and case of the model.

    ``share``: of the model's work before tuning. ``before_us``, ``after_us``: device time of one call of the pair as
    written and of what serves now, modelled on the virtual NPU; None where no result is known. ``source``: ``tuned``
    (now), ``cache``, ``original`` (the pair as written is the best), or why the original serves. ``interval``: of the
    speedup over plausible clocks, where times are modelled.
    """

    operator: str
    case: str
    calls: int
    share: float
    before_us: float | None
    after_us: float | None
    source: str
    interval: Interval | None = None


@dataclass(frozen=True)
class WarmupReport:
    """``cases``: those with the largest share first.

    ``model_us_before``, ``model_us_after``: device time of the model's runs by the originals and as it is served now;
    on the virtual NPU modelled, and without torch's own operators, which have no modelled time there.
    ``shares_of``: what shares are of, ``time``, or ``bytes`` where an original has no modelled time.
    """

    cases: tuple[WarmedCase, ...]
    model_us_before: float
    model_us_after: float
    seconds: float
    shares_of: str
    word: str  # "modelled" or "measured"

    def __str__(self) -> str:
        lines = []
        for c in self.cases:
            times = ""
            if c.before_us is not None and c.after_us is not None:
                speedup = speedup_text(c.before_us / c.after_us, c.interval)
                times = f"{c.before_us:.2f} -> {c.after_us:.2f} us {self.word}, {speedup}  "
            lines.append(f"{c.share:6.1%}  {c.calls:5d} calls  {times}{c.operator} {c.case}  [{c.source}]")
        lines = lines or ["the model calls no tuned operator on device npu"]
        before, after = self.model_us_before, self.model_us_after
        gain = f" ({before / after:.2f}x)" if after > 0 else ""
        lines.append(f"model: {before:.1f} -> {after:.1f} us {self.word}{gain}, warmed up in {self.seconds:.0f} s")
        return "\n".join(lines)


def warmup(
    model: Callable[..., Any],
    example_inputs: Any,
    *,
    shapes: Iterable[Sequence[Sequence[int]]] = (),
    budget: int | None = None,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> WarmupReport:
    """See :func:`ascendopt_tune.warmup`."""
    say = progress or (lambda text: print(text, file=sys.stderr, flush=True))
    started = time.monotonic()
    runs = [*_calls(example_inputs), *(_with_shapes(_first(example_inputs), s) for s in shapes)]
    say(f"running the model on {len(runs)} inputs to see what it calls ...")
    with _serving(model), recording() as recorder:
        for args, kwargs in runs:
            model(*args, **kwargs)
    items, shares, unit = _by_share(recorder)
    done: dict[int, WarmedCase] = {}
    try:
        with policy("blocking"), override(**({"budget": budget} if budget is not None else {})):
            for number, item in enumerate(items):
                spent = time.monotonic() - started
                if seconds is not None and spent >= seconds:
                    break
                eta = f", ETA {spent / number * (len(items) - number):.0f} s" if number else ""
                say(f"{number + 1}/{len(items)}  {shares[number]:.1%} of the model  {item.op.name} {item}{eta}")
                done[number] = _warm(item, shares[number])
        late = seconds is not None and time.monotonic() - started >= seconds
        if intercept.is_slow() and not late:
            say("waiting for the fast path to be compiled (once on a machine; takes half a minute) ...")
        intercept.speed_up(wait=not late)
    except KeyboardInterrupt:
        say("interrupted: what is tuned so far serves")
    rows = [done.get(i) or _left(item, shares[i]) for i, item in enumerate(items)]
    after = _device_us(model, runs)
    from .activate import is_virtual

    word = "modelled" if is_virtual() else "measured"
    seconds_spent = time.monotonic() - started
    return WarmupReport(tuple(rows), recorder.total_us, after, seconds_spent, unit, word)


def record(model: Callable[..., Any], example_inputs: Any, path: Path) -> int:
    """See :func:`ascendopt_tune.record`."""
    with _serving(model), recording() as recorder:
        for args, kwargs in _calls(example_inputs):
            model(*args, **kwargs)
    return write_calls(recorder, path)


def _calls(example_inputs: Any) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Arguments of each run. A tensor, a tuple of arguments and a dict of named ones are one run; other iterables are
    several."""
    if isinstance(example_inputs, (torch.Tensor, tuple, dict)):
        yield _first(example_inputs)
        return
    for one in example_inputs:
        yield _first(one)


def _first(example_inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(example_inputs, torch.Tensor):
        return (example_inputs,), {}
    if isinstance(example_inputs, dict):
        return (), example_inputs
    if isinstance(example_inputs, tuple):
        return example_inputs, {}
    if isinstance(example_inputs, Sequence) and example_inputs:
        return _first(example_inputs[0])
    raise CaseError(
        f"example inputs can't be a {type(example_inputs).__name__}.",
        "Give a tensor, a tuple of arguments, a dict of named ones, or a list of these.",
    )


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
    """Gradients as when the model serves: off, unless it is a module in training mode."""
    return torch.set_grad_enabled(bool(getattr(model, "training", False)))


def _by_share(recorder: Recorder) -> tuple[list[RecordedCall], list[float], str]:
    """The calls by falling share of the model's work: device time, or bytes where an original has no modelled time."""
    items = list(recorder.calls.values())
    timed = all(item.us > 0 for item in items)
    weights = [item.us if timed else float(item.bytes * item.count) for item in items]
    whole = max(recorder.total_us, sum(weights)) if timed else sum(weights)
    order = sorted(range(len(items)), key=lambda i: (-weights[i], i))
    return (
        [items[i] for i in order],
        [weights[i] / whole if whole else 0.0 for i in order],
        "time" if timed else "bytes",
    )


def _warm(item: RecordedCall, share: float) -> WarmedCase:
    """Tunes the case, or looks it up, and loads what serves it."""
    before = item.op.served.tuned
    with torch.set_grad_enabled(any(t.requires_grad for t in pytree.tree_leaves(item.args) if hasattr(t, "grad_fn"))):
        result = item.op.resolve_ahead(item.args, item.kwargs, item.original)
    now = item.op.served.tuned > before
    if result in ("tuned", "original"):
        entry = item.op.entry(item.args, item.kwargs)
        if entry is not None:
            source = result if now or result == "original" else "cache"
            times = entry.baseline.task_duration_us, entry.best.task_duration_us
            return WarmedCase(item.op.name, _case(item), item.count, share, *times, source, entry.interval)
    return WarmedCase(item.op.name, _case(item), item.count, share, None, None, result)


def _left(item: RecordedCall, share: float) -> WarmedCase:
    return WarmedCase(item.op.name, _case(item), item.count, share, None, None, "not tuned: the budget was spent")


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
