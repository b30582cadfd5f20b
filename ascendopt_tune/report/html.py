"""The page of a tuning run: one file that needs no network, read on any width, in light and dark, on paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..evaluate.diagnosis import diagnose, stalls
from ..nouns.case import Case
from ..nouns.chip import load_chip
from ..nouns.clocks import Interval
from ..nouns.history import History
from ..nouns.operator import Candidate, Operator, Pair
from ..nouns.outcome import Timed, outcome_from_json
from ..nouns.places import without_paths
from ..nouns.profile import Profile
from ..nouns.trial import Trial
from ..tuner import TuneRecord
from .charts import bars, trajectory
from .page import write_page
from .roofline import roofline_point, roofline_svg
from .run_record import run_document
from .text import counts_text, pipe_rows, time_word
from .timeline import colours_of, lanes_svg

_DEEP = 40  # changes behind one another that the tree of parents shows
_TRIAL = ("id", "parent", "stage", "proposer", "change", "duplicate_of")
_WAITS = 6  # that are shown
_AGAIN = "same launch"  # what is no evaluation of its own
_REASON = 300  # characters of a candidate's reason


def write_report(
    path: Path, operator: Operator, record: TuneRecord, timelines: Mapping[str, Any] | None = None
) -> None:
    """Writes the page of a run to ``path``, whole or not at all. Raises OSError if it can't."""
    write_run(path, run_document(record, operator, timelines))


def write_run(path: Path, document: Mapping[str, Any]) -> None:
    """Writes the page of a run's JSON record; of a record without ``report`` what there is.

    Raises:
        OSError: it can't be written.
        KeyError, TypeError, ValueError: the document is no run's record.
        CaseError: the chip it names isn't known here.
    """
    history = History.of(_trial(one) for one in document["history"])
    baseline, best = Profile.from_json(document["baseline"]), Profile.from_json(document["best"])
    chip, word = load_chip(document["chip"]), time_word(document["target"])
    rows = list(pipe_rows([baseline, best]))
    about = {**_without_report(document, history), **document.get("report", {})}
    both = {"baseline": baseline, "best": best}
    points = {name: point for name, p in both.items() if (point := roofline_point(p, chip)) is not None}
    timelines = about["timelines"]
    colours = colours_of(timelines.values())
    shown = [_row(t) for t in history]
    numbers = {t.candidate.id: n for n, t in enumerate(history.evaluated, start=1)}
    write_page(
        path,
        "tune.html",
        run=document,
        about=about,
        word=word,
        baseline=baseline,
        best=best,
        speedup=baseline.task_duration_us / best.task_duration_us,
        interval=Interval.from_json(document),
        pipes=rows,
        pipes_svg=bars(rows, ("baseline", "best"), f"{word} time (us)"),
        waits=list(_waits(both)),
        diagnoses=[(name, diagnose(p, chip).paragraph) for name, p in both.items()],
        roofline=points,
        roofline_svg=roofline_svg(points, chip) if points else "",
        counts=counts_text(document["outcomes"]),
        trajectory_svg=trajectory(history.evaluated, word) if history else "",
        trials=[{**row, "evaluation": numbers.get(row["id"], "")} for row in shown],
        outcomes=Counter(row["outcome"] for row in shown).most_common(),
        gains={one["change"]: f"{one['before']:.2f} → {one['after']:.2f} us" for one in about["accepted"]},
        tree=list(_tree(history)),
        timelines=timelines,
        timeline_us=max((t["end_us"] for t in timelines.values()), default=0.0),
        lanes={name: lanes_svg(t, colours, f"first cores of the {name}") for name, t in timelines.items()},
        legend=colours,
    )


def _trial(document: Mapping[str, Any]) -> Trial:
    outcome = outcome_from_json({k: v for k, v in document.items() if k not in _TRIAL})
    c = Candidate(document["id"], Pair({}, {}), document["parent"], document["proposer"], document["change"])
    return Trial(c, outcome, stage=document["stage"], duplicate_of=document["duplicate_of"])


def _without_report(document: Mapping[str, Any], history: History) -> dict[str, Any]:
    """What the page needs of ``report``, as far as the record itself tells."""
    best_us = document["best"]["task_duration_us"]
    fastest = next((t.candidate.id for t in history.timed if t.time_us == best_us), None)
    return {
        "name": document["operator"],
        "case": str(Case.from_json(document["case"])),
        "improved": bool(document["changes"]),
        "search": f"{document['evaluations']} evaluations",
        "best_id": fastest,
        "waves": [],
        "files": [],
        "accepted": [],
        "timelines": {},
        "tools": {},
    }


def _row(trial: Trial) -> dict[str, Any]:
    outcome = trial.outcome
    return {
        "id": trial.candidate.id,
        "parent": "" if trial.candidate.parent is None else trial.candidate.parent,
        "change": trial.candidate.change,
        "outcome": _AGAIN if trial.duplicate_of is not None else type(outcome).__name__,
        "failed": not isinstance(outcome, Timed),
        "time": "" if trial.time_us is None else f"{trial.time_us:.2f}",
        "reason": f"as candidate {trial.duplicate_of}; not evaluated again"
        if trial.duplicate_of is not None
        else ""
        if isinstance(outcome, Timed)
        else _cut(without_paths(outcome.reason)),
    }


def _cut(text: str) -> str:
    return text if len(text) <= _REASON else f"{text[:_REASON]}… (the record has all of it)"


def _waits(profiles: Mapping[str, Profile]) -> Iterator[tuple[str, list[float]]]:
    """(who waits for what, us in every profile), the longest of any first."""
    each = [dict(stalls(p.detail)) for p in profiles.values()]
    names = {name for one in each for name in one}
    longest = sorted(names, key=lambda name: (-max(one.get(name, 0.0) for one in each), name))
    for name in longest[:_WAITS]:
        yield name, [one.get(name, 0.0) for one in each]


def _tree(history: History) -> Iterator[tuple[int, Trial]]:
    """(depth, trial) of every trial that passed the gate, children behind their parent: where the winner comes from."""

    def below(trial: Trial, depth: int) -> Iterator[tuple[int, Trial]]:
        yield depth, trial
        for child in history.children(trial):
            if child.time_us is not None and child.duplicate_of is None and depth < _DEEP:
                yield from below(child, depth + 1)

    if history:
        yield from below(history[0], 0)
