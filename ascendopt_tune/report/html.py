"""The HTML report of a tuning run: one file that needs no network, read on any width, in light and dark, on paper."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from ..evaluate.diagnosis import diagnose
from ..files import write_whole
from ..nouns.chip import load_chip
from ..nouns.operator import Operator
from ..nouns.outcome import Timed
from ..nouns.trial import Trial
from ..tuner import TuneRecord
from .charts import STAGES, bars, trajectory
from .repeat import command
from .story import steps
from .text import counts_text, pipe_rows, time_word, waves_notes

_TEMPLATES = Path(__file__).resolve().parent / "templates"
_DEEP = 40  # changes behind one another that the tree of parents shows


def write_report(path: Path, operator: Operator, record: TuneRecord) -> None:
    """Writes the report to ``path``, whole or not at all. Raises OSError if it can't."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    word = time_word(record.key.target)
    rows = list(pipe_rows([record.baseline, record.best]))
    html = environment.get_template("tune.html").render(
        record=record,
        entry=record.entry,
        provenance=record.entry.provenance,
        operator=operator,
        word=word,
        pipes=rows,
        diagnoses=_diagnoses(record),
        waves=waves_notes(record),
        counts=counts_text(record.entry.provenance.outcomes),
        pipes_svg=bars(rows, ("baseline", "best"), f"{word} time (us)"),
        trajectory_svg=trajectory(record.history.evaluated, word) if record.history else "",
        trials=[_row(t) for t in record.history],
        outcomes=Counter(type(t.outcome).__name__ for t in record.history).most_common(),
        tree=list(_tree(record)),
        accepted=list(_accepted(record)),
        diff=[*_diff(operator.baseline.tiling, record.entry.pair.tiling),
              *_diff(operator.baseline.kernel, record.entry.pair.kernel)],
        command=command(operator, record),
    )  # fmt: skip
    write_whole(path, html)


@dataclass(frozen=True)
class DiffLine:
    """A line of both texts side by side; None where one has none. ``kind``: ``same``, ``changed`` or ``gap``."""

    kind: str
    old: str | None
    new: str | None


@dataclass(frozen=True)
class FileDiff:
    """What differs in one file, with a few lines around it."""

    path: str
    lines: tuple[DiffLine, ...]


def _row(trial: Trial) -> dict[str, Any]:
    outcome = trial.outcome
    return {
        "id": trial.candidate.id,
        "parent": "" if trial.candidate.parent is None else trial.candidate.parent,
        "change": trial.candidate.change,
        "outcome": type(outcome).__name__,
        "time": "" if trial.time_us is None else f"{trial.time_us:.2f}",
        "reason": f"same launch as candidate {trial.duplicate_of}, not evaluated again"
        if trial.duplicate_of is not None
        else ""
        if isinstance(outcome, Timed)
        else outcome.reason,
    }


def _diagnoses(record: TuneRecord) -> list[tuple[str, str]]:
    """(which pair, what bounds it)."""
    chip = load_chip(record.key.chip)
    profiles = [("baseline", record.baseline), ("best", record.best)]
    return [(name, diagnose(profile, chip).paragraph) for name, profile in profiles]


def _tree(record: TuneRecord) -> Iterator[tuple[int, Trial]]:
    """(depth, trial) of every trial that passed the gate, children behind their parent: where the winner comes from."""
    history = record.history

    def below(trial: Trial, depth: int) -> Iterator[tuple[int, Trial]]:
        yield depth, trial
        for child in history.children(trial):
            if child.time_us is not None and child.duplicate_of is None and depth < _DEEP:
                yield from below(child, depth + 1)

    if history:
        yield from below(history[0], 0)


def _accepted(record: TuneRecord) -> Iterator[dict[str, Any]]:
    """Every change of the incumbent: what, when, why that, what it brought, and the lines it touched."""
    for step in steps(record) if record.history else ():
        trial, old, new = step.trial, step.parent.candidate.pair, step.trial.candidate.pair
        yield {
            "n": step.n,
            "stage": STAGES[trial.stage],
            "proposer": trial.candidate.proposer,
            "change": trial.candidate.change,
            "before": step.before.time_us,
            "after": trial.time_us,
            "families": ", ".join(dict.fromkeys(m.family for m in trial.moves)),
            "diff": [*_diff(old.tiling, new.tiling), *_diff(old.kernel, new.kernel)],
        }


def _diff(old: Mapping[str, str], new: Mapping[str, str]) -> list[FileDiff]:
    """Files that differ, old and new text side by side."""
    out = []
    for path in sorted({*old, *new}):
        before, after = old.get(path, "").splitlines(), new.get(path, "").splitlines()
        lines: list[DiffLine] = []
        for group in difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(2):
            lines += [DiffLine("gap", None, None)] if lines else []
            for tag, a, b, c, d in group:
                kind = "same" if tag == "equal" else "changed"
                for i in range(max(b - a, d - c)):
                    left = before[a + i] if a + i < b else None
                    right = after[c + i] if c + i < d else None
                    lines.append(DiffLine(kind, left, right))
        if lines:
            out.append(FileDiff(path, tuple(lines)))
    return out
