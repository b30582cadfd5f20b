"""What happened so far: ``aot.status()`` for people and programs, ``aot.stats()`` as plain data, ``aot.rollback()``."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ...settings import DISABLE, disabled
from .calls import Served
from .registered import interceptions, registered

if TYPE_CHECKING:
    from .cases import CaseStatus

_CASES, _LINES = 20, 10  # cases, and other things, that are written out


@dataclass(frozen=True)
class QueuedCase:
    """A case the background process was asked for. ``state``: queued, tuning, reusing, elsewhere, waiting, done or
    failed (lazy.py)."""

    operator: str
    case: str
    state: str
    calls: int
    reason: str = ""


@dataclass(frozen=True)
class Status:
    """``operators`` by their source (several with the same one are added up), ``queue``: cases asked for in the
    background, ``not_modelled``: calls by operator that torch's CPU kernels served on the virtual NPU, ``hits_by``:
    what serves hits of intercepted operators from now on, ``C++`` or ``Python``, and then why. ``cases``: by what their
    calls so far would take by the originals, most first. ``off``: what has switched all of it off, if anything has."""

    operators: Mapping[str, Served]
    queue: tuple[QueuedCase, ...]
    not_modelled: Mapping[str, int]
    target: str
    hits_by: str
    cases: tuple[CaseStatus, ...] = ()
    off: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain data, every case included."""
        return asdict(self)

    def __str__(self) -> str:
        lines = []
        for name, row in self.operators.items():
            counts = ", ".join(f"{getattr(row, k)} {k}" for k in ("hits", "kept", "misses", "tuned"))
            counts = counts.replace("hits", f"hits ({row.fast} in C++)", 1) if row.fast else counts
            lines.append(f"{name}: {counts}, {sum(row.fallbacks.values())} fallbacks")
            if row.saved_us:
                kind = "modelled" if self.target == "virtual" else "estimated"
                lines.append(f"  {kind} time saved: {row.saved_us:.1f} us")
            reasons = sorted(row.fallbacks.items(), key=lambda item: -item[1])
            lines += _shown([f"  {number} x {reason}" for reason, number in reasons], "reasons")
            captured = [f"  captured untuned: {case} ({number} calls)" for case, number in row.captured.items()]
            lines += _shown(captured, "cases captured untuned")
        lines = [*lines, f"hits are served in {self.hits_by}"] if lines else ["no tuned operators"]
        if self.off:
            lines.insert(0, f"{self.off}: the originals serve everything")
        word = "modelled" if self.target == "virtual" else "measured"
        if self.cases:
            lines.append(f"cases, in order of what their calls take by the originals (speedups are {word}):")
            lines += [f"  {case}" for case in self.cases[:_CASES]]
            if rest := self.cases[_CASES:]:
                sources = Counter(case.source for case in rest)
                text = ", ".join(f"{number} {source}" for source, number in sources.most_common())
                hits, misses = sum(c.hits for c in rest), sum(c.misses for c in rest)
                lines.append(f"  and {len(rest)} more: {text}; {hits} hits, {misses} misses (as_dict() has them)")
        waiting = [
            f"background, {item.state}: {item.operator} {item.case} ({item.calls} calls)"
            + (f": {item.reason}" if item.reason else "")
            for item in self.queue
        ]
        lines += _shown(waiting, "cases asked for in the background")
        if calls := self.not_modelled:
            lines.append(f"on the CPU, not modelled: {sum(calls.values())} calls of {len(calls)} torch operators")
        return "\n".join(lines)


def _shown(lines: list[str], what: str) -> list[str]:
    """The first lines, and how many more there are."""
    more = len(lines) - _LINES
    return lines if more <= 0 else [*lines[:_LINES], f"  and {more} more {what}"]


def status() -> Status:
    """Operators, cases, hits, misses, fallbacks with reasons, time saved, the background's queue. Print or read it."""
    from ..device.runtime import is_virtual

    rows: dict[str, Served] = {}
    for op in registered:
        rows.setdefault(op.name, Served(op.name)).add(op.served)
    target = "virtual" if is_virtual() else "npu"
    if disabled():
        off = f"{DISABLE}={os.environ[DISABLE]}"
    else:
        off = "rolled back (aot.restore() undoes it)" if registered and all(op.off for op in registered) else ""
    return Status(rows, _queue(), not_modelled(), target, _hits_by(), _cases(), off)


def _hits_by() -> str:
    from . import fast_path

    remark = fast_path.remark()
    if registered and not interceptions and remark.startswith("Python"):
        return "Python, as hits of decorated functions are"
    return remark


def _cases() -> tuple[CaseStatus, ...]:
    """Every case by falling weight. Why one is missing is looked into for those that are shown."""
    from .cases import why_missing
    from .resolve import store

    found = [pair for op in registered for pair in op.table.cases()]
    found.sort(key=lambda pair: -pair[0].weight_us)
    shown = [
        case if key is None else replace(case, why=f"{case.why}: {why_missing(store(), key)}")
        for case, key in found[:_CASES]
    ]
    return (*shown, *(case for case, _ in found[_CASES:]))


def stats() -> dict[str, dict[str, Any]]:
    """Calls of every tuned operator so far: ``hits, kept, misses, tuned, fallbacks {reason: count}`` by its source.

    Operators with the same source are added up.
    """
    names = ("hits", "kept", "misses", "tuned", "fallbacks")
    return {name: {k: getattr(row, k) for k in names} for name, row in status().operators.items()}


def not_modelled() -> dict[str, int]:
    """Calls by operator that torch's CPU kernels served on the virtual NPU: no modelled time stands for them."""
    served = sys.modules.get("ascendopt_tune.torch_ops.device.cpu_call")  # loaded with the virtual NPU's torch_npu
    return dict(served.calls) if served is not None else {}


def _queue() -> tuple[QueuedCase, ...]:
    lazy = sys.modules.get("ascendopt_tune.service.lazy")
    if lazy is None:
        return ()
    lazy.background.poll()
    jobs = list(lazy.background.jobs.values())
    return tuple(QueuedCase(j.operator, j.text, j.state, j.calls, j.reason) for j in jobs)


def rollback() -> int:
    """Back to stock, at once and in this process: every tuned operator is served by its original alone, interceptions
    are taken out of torch's dispatcher, nothing is tuned. Returns how many operators that concerned. :func:`restore`
    undoes it; so does decorating or intercepting anew, for what is new."""
    for op in registered:
        op.off = True
    for interception in interceptions:
        interception.suspend()
    lazy = sys.modules.get("ascendopt_tune.service.lazy")
    if lazy is not None:
        lazy.background.close()
    return len(registered)


def restore() -> None:
    """Undoes :func:`rollback`; every case is looked up anew."""
    for op in registered:
        op.off = False
        op.forget()
    for interception in interceptions:
        interception.resume()
    if interceptions:
        from .intercept import speed_up

        speed_up()
