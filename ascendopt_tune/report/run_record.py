"""A run as a JSON document that its page can be drawn from, on any machine and at any time.

It is the record of a run (``TuneRecord.to_json``), with what the page shows beside it under ``report``: the case in
words, what changed in which lines and why, the command that repeats the run, and the first cores' timelines where they
were taken.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from ..bank.refinement import led_to
from ..evaluate.diagnosis import diagnose
from ..nouns.chip import load_chip
from ..nouns.operator import Operator, Pair
from ..nouns.outcome import Timed
from ..tuner import TuneRecord
from .charts import STAGES
from .repeat import command
from .story import steps
from .text import waves_notes

FileDiff = dict[str, Any]  # path, lines: [kind, old text or None, new text or None]


def run_document(
    record: TuneRecord, operator: Operator | None, timelines: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The record's JSON with ``report``.

    Args:
        operator: as it was tuned; None where only its result is at hand: then no lines are compared.
        timelines: of the baseline and the best pair (timeline.py).
    """
    made, entry = record.entry.provenance, record.entry
    base = operator.baseline if operator is not None and operator.baseline.hash == entry.key.baseline else None
    kept = (t.candidate.id for t in record.history if t.candidate.pair.hash == entry.pair.hash)
    about: dict[str, Any] = {
        "name": operator.name if operator is not None else record.key.operator,
        "case": str(record.case),
        "improved": entry.improved,
        "search": made.search_text,
        "seed": made.seed,
        "tools": dict(made.tools),
        "created": made.created,
        "best_id": next(kept, None),
        "waves": waves_notes(record),
        "command": command(operator, record),
        "files": both_programs(base, entry.pair) if base is not None else [],
        "accepted": list(_accepted(record)),
        "timelines": dict(timelines or {}),
    }
    return {**record.to_json(), "report": about}


def _accepted(record: TuneRecord) -> Iterator[dict[str, Any]]:
    """Every change of the incumbent: what, when, why that, what it brought, and the lines it touched."""
    chip = load_chip(record.key.chip) if record.history else None
    for step in steps(record) if record.history else ():
        trial, before = step.trial, step.parent.outcome
        yield {
            "n": step.n,
            "id": trial.candidate.id,
            "stage": STAGES[trial.stage],
            "proposer": trial.candidate.proposer,
            "change": trial.candidate.change,
            "before": step.before.time_us,
            "after": trial.time_us,
            "families": list(dict.fromkeys(m.family for m in trial.moves)),
            "why": diagnose(before.profile, chip).paragraph if isinstance(before, Timed) and chip is not None else "",
            "experience": [
                {"id": e.id[:12], "title": e.title, "speedup": e.speedup, "operator": e.operator}
                for e in led_to(record.experience, step.parent, trial)
            ],
            "files": both_programs(step.parent.candidate.pair, trial.candidate.pair),
        }


def both_programs(old: Pair, new: Pair) -> list[FileDiff]:
    """What differs between two pairs: files of the tiling program, then of the kernel."""
    return [*_diff(old.tiling, new.tiling), *_diff(old.kernel, new.kernel)]


def _diff(old: Mapping[str, str], new: Mapping[str, str]) -> list[FileDiff]:
    """Files that differ, old and new text side by side, with two lines around each change.

    A line's kind is ``same``, ``changed`` or ``gap``; where a text has no line there is None.
    """
    out: list[FileDiff] = []
    for path in sorted({*old, *new}):
        before, after = old.get(path, "").splitlines(), new.get(path, "").splitlines()
        lines: list[tuple[str, str | None, str | None]] = []
        for group in difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(2):
            lines += [("gap", None, None)] if lines else []
            for tag, a, b, c, d in group:
                kind = "same" if tag == "equal" else "changed"
                for i in range(max(b - a, d - c)):
                    left = before[a + i] if a + i < b else None
                    lines.append((kind, left, after[c + i] if c + i < d else None))
        if lines:
            out.append({"path": path, "lines": [list(line) for line in lines]})
    return out
