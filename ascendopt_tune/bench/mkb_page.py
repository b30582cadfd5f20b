"""The page of MultiKernelBench's tasks (docs/ascendcraft.md), and the lines a terminal shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..files import write_between
from .mkb import CATEGORIES, Record
from .stand_ins import Baseline

_BEGIN, _END = "<!-- results -->", "<!-- end of results -->"
_SLOW = 1.5  # times baseline R


def line(record: Record) -> str:
    """A task in a line."""
    parts = [f"{record.task}: {record.schedule or 'not lowered'}"]
    if record.time_us is not None:
        parts.append(f"{record.time_us:g} us modelled, R {record.roofline_us:g} us")
    if record.mkb:
        parts.append("MultiKernelBench " + " ".join(f"{k} {'yes' if v else 'no'}" for k, v in record.mkb.items()))
    parts.append(f"gate {record.gate or '-'}, odd shapes {sum(v == 'passed' for v in record.odd.values())}"
                 f" of {len(record.odd)}")  # fmt: skip
    if record.trivial:
        parts.append(f"would pass: {', '.join(record.trivial)}")
    return "; ".join(parts) + f"; {record.seconds:g} s" + (f" ({record.reason})" if record.reason else "")


def summary(records: Sequence[Record]) -> list[str]:
    """Counts, a line per category and one for all."""
    names = [c for c in CATEGORIES if any(r.category == c for r in records)]
    names += sorted({r.category for r in records} - set(names))
    rows = [[c, *_counts([r for r in records if r.category == c])] for c in names]
    rows.append(["all", *_counts(records)])
    return _table(
        ["category", "tasks", "lowered", "compiled", "MKB 1e-2", "MKB 1e-4", "gate", "gate, odd shapes too",
         "at most 1.5 R"], rows,
    )  # fmt: skip


def _counts(of: Sequence[Record]) -> list[str]:
    best = [(r.tuned_us or r.time_us, r.roofline_us) for r in of]
    near = sum(t is not None and b is not None and t <= _SLOW * b for t, b in best)
    counts = [
        len(of), sum(r.lowered for r in of), sum(r.compiled for r in of), sum(r.mkb.get("1e-2", False) for r in of),
        sum(r.mkb.get("1e-4", False) for r in of), sum(r.gate == "passed" for r in of), sum(r.passed for r in of), near,
    ]  # fmt: skip
    return [str(c) for c in counts]


def baseline_line(of: Baseline) -> str:
    """A task's baseline S or C in a line."""
    if of.us is None:
        return f"{of.task}: none ({of.missing})"
    return f"{of.task}: {of.kind} {of.us:g} us modelled ({', '.join(of.operators) or 'launches alone'})"


def tasks_table(records: Sequence[Record], baselines: Iterable[Baseline] = ()) -> list[str]:
    """A row per task; ``baselines``: S or C, where measured."""
    rows, others = [], {b.task: b for b in baselines}
    for r in records:
        best = r.tuned_us or r.time_us
        ratio = f"{best / r.roofline_us:.2f}" if best and r.roofline_us else ""
        shapes = r.shapes if len(r.shapes) < 60 else r.shapes[:57] + "..."
        odd = f"{sum(v == 'passed' for v in r.odd.values())}/{len(r.odd)}"
        other = others.get(r.task)
        rows.append(
            [
                r.task, r.schedule, shapes, " ".join(k for k, v in r.mkb.items() if v), r.gate, odd,
                _us(r.time_us), _us(r.tuned_us), _us(r.roofline_us), ratio,
                "" if other is None or other.us is None else f"{other.kind} {other.us:.1f}", f"{r.seconds:.0f}",
            ]
        )  # fmt: skip
    heads = ["task", "schedule", "inputs", "MKB's check passes at", "gate", "odd", "as generated (us)", "tuned (us)",
             "R (us)", "best / R", "S or C (us)", "s"]  # fmt: skip
    return _table(heads, rows)


def write(path: Path, records: Sequence[Record], chip: str, baselines: Iterable[Baseline] = ()) -> None:
    """Puts the results between the page's marks; a new page gets only them. Raises OSError."""
    failed = [f"* `{r.task}`: {r.reason}" for r in records if r.reason]
    trivial = [f"* `{r.task}`: {', '.join(r.trivial)}" for r in records if r.trivial]
    skipped = [f"* `{r.task}`: {len(r.skipped)}, the first: {r.skipped[0]}" for r in records if r.skipped]
    large = [r.task for r in records if r.mkb_trials == 1]
    text = [
        f"Modelled for {chip}, shapes of MultiKernelBench's 667f7ec.", "", *summary(records), "",
        *tasks_table(records, baselines), "",
        "What failed, first reason:" if failed else "Nothing failed.", "", *failed, "",
        "Outputs without work that all trials of the gate would let pass:" if trivial else
        "Zeros, a copy of the first input, a constant and another trial's result are refused for every task that the"
        " gate passes.", "", *trivial, "",
        "Stress trials that the gate left out, because the operator as generated isn't right on them or the reference"
        " gives no number:" if skipped else "No stress trial was left out.", "", *skipped, "",
    ]  # fmt: skip
    if large:
        text += [
            "For their size one trial of MultiKernelBench's check instead of five, and beyond 256 MiB two of the gate's"
            f" at the task's shapes: {', '.join(large)}.",
            "",
        ]
    body = re.sub(r"\n{3,}", "\n\n", "\n".join(text)).strip()
    write_between(path, _BEGIN, _END, "results", body, "# AscendCraft's tasks")


def _us(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    out = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return out + ["| " + " | ".join(r) + " |" for r in rows]
