"""The story of one run as a Markdown page and a picture: its trajectory by stage, what was accepted and why.

Everything on the page is in the run's record; nothing is written by hand.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import CacheError
from ..evaluate.diagnosis import diagnose
from ..files import write_whole
from ..nouns.chip import load_chip
from ..nouns.operator import Operator
from ..nouns.outcome import Timed
from ..nouns.trial import Trial
from ..search.learning import FAILED, FASTER, SAME, SLOWER, verdict
from ..tuner import TuneRecord
from .charts import STAGES, trajectory
from .text import counts_text, pipe_rows, time_word, waves_notes

_MOST_LINES = 80  # of a diff


@dataclass(frozen=True)
class StoryStep:
    """An accepted change: evaluation ``n`` made ``trial`` the incumbent instead of ``before``."""

    n: int
    trial: Trial
    before: Trial
    parent: Trial


def steps(record: TuneRecord) -> list[StoryStep]:
    """Every change of the incumbent, in order."""
    history = record.history
    out: list[StoryStep] = []
    incumbent: Trial | None = None
    for n, trial in enumerate(history.evaluated, start=1):
        if incumbent is None:
            incumbent = trial
        elif (trial.time_us or float("inf")) < (incumbent.time_us or 0.0):
            out.append(StoryStep(n, trial, incumbent, history.parent(trial) or history[0]))
            incumbent = trial
    return out


def write_story(path: Path, operator: Operator, record: TuneRecord, *, diffs: bool = True) -> None:
    """Writes the page to ``path`` and the picture beside it (``.svg``); without ``diffs`` no line of the sources.

    Raises:
        CacheError: the record has no history, because the cache answered.
        OSError: a file can't be written.
    """
    if not record.history:
        raise CacheError("--story tells a run, and the cache answered.", "Add --retune to search anew.")
    picture = path.with_suffix(".svg")
    write_whole(picture, trajectory(record.history.evaluated, time_word(record.key.target), ground="white"))
    write_whole(path, "\n".join(_page(operator, record, picture.name, diffs)).rstrip() + "\n")


def _page(operator: Operator, record: TuneRecord, picture: str, diffs: bool) -> Iterator[str]:
    word, entry = time_word(record.key.target), record.entry
    yield f"# How {operator.name} was tuned"
    yield ""
    yield f"Made by `ascendopt-tune tune ... --story` from the run's own record; all times are {word}."
    yield ""
    yield "| | |"
    yield "|---|---|"
    yield f"| case | `{record.case}` |"
    yield f"| chip, target | {record.key.chip}, {record.key.target} |"
    yield f"| seed, budget | {entry.provenance.seed}, {entry.provenance.budget} evaluations |"
    yield f"| as written | {record.baseline.task_duration_us:.2f} us |"
    yield f"| best | {record.best.task_duration_us:.2f} us, {entry.speedup_text} |"
    yield from (f"| blocks | {note} |" for note in waves_notes(record))
    yield f"| evaluations | {entry.provenance.evaluations}: {counts_text(entry.provenance.outcomes)} |"
    yield f"| result | {entry.provenance.decision}; {entry.provenance.checks} outputs compared on unseen inputs |"
    yield ""
    yield f"![Speedup by evaluation]({picture})"
    yield ""
    yield "## By stage"
    yield ""
    yield from _by_stage(record)
    yield ""
    yield "## What was accepted, and why"
    found = steps(record)
    if not found:
        yield ""
        yield "No change was faster than the pair as it is written."
    on_the_way = _lineage(record)
    for step in found:
        yield ""
        yield from _step(record, step, step.trial.candidate.id in on_the_way, diffs)
    yield ""
    yield "## What was tried"
    yield ""
    yield "By kind of change; compared with the pair it was applied to."
    yield ""
    yield from _by_family(record)


def _by_stage(record: TuneRecord) -> Iterator[str]:
    """A row for every stretch of evaluations of one stage."""
    yield "| round | stage | evaluations | passed the gate | best after it | speedup |"
    yield "|---|---|---|---|---|---|"
    stretches: list[list[tuple[int, Trial]]] = []
    for n, trial in enumerate(record.history.evaluated, start=1):
        if not stretches or (stretches[-1][-1][1].round, stretches[-1][-1][1].stage) != (trial.round, trial.stage):
            stretches.append([])
        stretches[-1].append((n, trial))
    best, first = float("inf"), record.history.evaluated[0].time_us or 0.0
    for stretch in stretches:
        times = [t.time_us for _, t in stretch if t.time_us is not None]
        best = min([best, *times])
        (begin, trial), (end, _) = stretch[0], stretch[-1]
        name = "warm start" if trial.round == 0 and trial.stage else STAGES[trial.stage]
        span = str(begin) if begin == end else f"{begin} to {end}"
        yield f"| {trial.round} | {name} | {span} | {len(times)} | {best:.2f} us | {first / best:.2f}x |"


def _step(record: TuneRecord, step: StoryStep, kept: bool, diffs: bool) -> Iterator[str]:
    trial, chip = step.trial, load_chip(record.key.chip)
    assert isinstance(trial.outcome, Timed)
    assert isinstance(step.parent.outcome, Timed)
    before, after = step.parent.outcome.profile, trial.outcome.profile
    yield f"### Evaluation {step.n}, {STAGES[trial.stage]}: {trial.candidate.change}"
    yield ""
    share = 100 * (1 - after.task_duration_us / (step.before.time_us or 1.0))
    yield (
        f"Proposed by {trial.candidate.proposer}; {step.before.time_us:.2f} us -> {trial.time_us:.2f} us, "
        f"{share:.1f} % less than the best before."
        + ("" if kept else " A later change started elsewhere, so this one is not part of the result.")
    )
    if step.parent is not step.before:
        yield f"It changes candidate {step.parent.candidate.id} ({step.parent.time_us:.2f} us), not the best then."
    yield ""
    yield f"*Why.* {diagnose(before, chip).paragraph}"
    yield ""
    yield "| us | before | after |"
    yield "|---|---|---|"
    for title, (old_us, new_us) in pipe_rows([before, after]):
        yield f"| {title} | {old_us:.2f} | {new_us:.2f} |"
    yield f"| blocks | {before.block_dim} | {after.block_dim} |"
    for pipe in ("mte2", "mte3"):
        copies = [p.detail.counters.get(f"{pipe}_copies", 0.0) for p in (before, after)]
        if any(copies):
            moved = [p.detail.counters.get(f"{pipe}_bytes", 0.0) for p in (before, after)]
            sizes = [f"{n:.0f} of {b / n:.0f} bytes" if n else "none" for n, b in zip(copies, moved, strict=True)]
            yield f"| {pipe.upper()} copies | {sizes[0]} | {sizes[1]} |"
    if not diffs:
        return
    yield ""
    old, new = step.parent.candidate.pair, trial.candidate.pair
    lines = [*_diff(old.tiling, new.tiling), *_diff(old.kernel, new.kernel)]
    yield "```diff"
    yield from lines[:_MOST_LINES]
    if len(lines) > _MOST_LINES:
        yield f"... {len(lines) - _MOST_LINES} more lines"
    yield "```"


def _diff(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for path in sorted({*old, *new}):
        before, after = old.get(path, "").splitlines(), new.get(path, "").splitlines()
        yield from difflib.unified_diff(before, after, path, path, n=1, lineterm="")


def _lineage(record: TuneRecord) -> set[int]:
    kept = (t for t in record.history if t.candidate.pair.hash == record.entry.pair.hash)
    best = next(kept, record.history[0])
    return {t.candidate.id for t in record.history.lineage(best)}


def _by_family(record: TuneRecord) -> Iterator[str]:
    """How often each family of changes was faster, the same, slower, or failed."""
    counts: dict[tuple[int, str], dict[str, int]] = {}
    for trial in record.history.evaluated[1:]:
        result = verdict(trial, record.history.parent(trial))
        for family in dict.fromkeys(m.family for m in trial.moves) or (trial.candidate.proposer,):
            row = counts.setdefault((trial.stage, family), dict.fromkeys((FASTER, SAME, SLOWER, FAILED), 0))
            row[result] += 1
    yield f"| stage | kind | {FASTER} | {SAME} | {SLOWER} | {FAILED} |"
    yield "|---|---|---|---|---|---|"
    for (stage, family), row in sorted(counts.items(), key=lambda item: (item[0][0], -item[1][FASTER], item[0][1])):
        yield f"| {STAGES[stage]} | {family} | {' | '.join(str(n) for n in row.values())} |"
