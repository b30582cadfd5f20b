"""The HTML report of a tuning run: one file that needs no network."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import plotly.graph_objects as go

from ..evaluate.diagnosis import diagnose
from ..files import write_whole
from ..nouns.chip import load_chip
from ..nouns.operator import Operator
from ..nouns.outcome import Timed
from ..nouns.trial import Trial
from ..tuner import TuneRecord
from .text import counts_text, pipe_rows, time_word, waves_notes

_TEMPLATES = Path(__file__).resolve().parent / "templates"
_GREY, _GREEN, _RED = "#8a94a6", "#1a7f5a", "#c2410c"


def write_report(path: Path, operator: Operator, record: TuneRecord) -> None:
    """Writes the report to ``path``, whole or not at all. Raises OSError if it can't."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    figures = {"pipes": _pipes(record)}
    if record.history:
        figures["trajectory"] = _trajectory(record)
    html = environment.get_template("tune.html").render(
        record=record,
        entry=record.entry,
        provenance=record.entry.provenance,
        operator=operator,
        word=time_word(record.key.target),
        pipes=list(pipe_rows([record.baseline, record.best])),
        diagnoses=_diagnoses(record),
        waves=waves_notes(record),
        counts=counts_text(record.entry.provenance.outcomes),
        figures={
            name: figure.to_html(full_html=False, include_plotlyjs=i == 0, config={"displaylogo": False})
            for i, (name, figure) in enumerate(figures.items())
        },
        trials=[_row(t) for t in record.history],
        diff=_diff(operator.baseline.tiling, record.entry.pair.tiling)
        + _diff(operator.baseline.kernel, record.entry.pair.kernel),
    )
    write_whole(path, html)


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


def _trajectory(record: TuneRecord) -> Any:
    """Every evaluated candidate by id; those that don't count stand at the baseline's height, marked as such."""
    evaluated = record.history.evaluated
    timed = [t for t in evaluated if t.time_us is not None]
    failed = [t for t in evaluated if t.time_us is None]
    best, steps = float("inf"), []
    for trial in timed:
        best = min(best, trial.time_us or best)
        steps.append(best)
    figure = go.Figure()
    figure.add_scatter(
        x=[t.candidate.id for t in timed],
        y=steps,
        mode="lines",
        line={"shape": "hv", "color": _GREEN},
        name="best so far",
    )
    figure.add_scatter(
        x=[t.candidate.id for t in timed],
        y=[t.time_us for t in timed],
        text=[t.candidate.change for t in timed],
        mode="markers",
        marker={"color": _GREY, "size": 8},
        name="passed every check",
    )
    if failed:
        figure.add_scatter(
            x=[t.candidate.id for t in failed],
            y=[record.baseline.task_duration_us] * len(failed),
            text=[f"{type(t.outcome).__name__}: {t.candidate.change}" for t in failed],
            hoverinfo="x+text",
            mode="markers",
            marker={"color": _RED, "size": 9, "symbol": "x"},
            name="does not count (no time; drawn at the baseline's height)",
        )
    return _laid_out(figure, "candidate", f"{time_word(record.key.target)} task duration (us)")


def _pipes(record: TuneRecord) -> Any:
    figure = go.Figure()
    rows = list(pipe_rows([record.baseline, record.best]))
    names = [title for title, _ in rows]
    for i, (name, colour) in enumerate((("baseline", _GREY), ("best", _GREEN))):
        times = [us[i] for _, us in rows]
        figure.add_bar(
            name=name,
            x=names,
            y=times,
            marker={"color": colour},
            text=[f"{t:.2f}" for t in times],
            textposition="outside",
        )
    figure.update_layout(barmode="group")
    return _laid_out(figure, "", f"{time_word(record.key.target)} time (us)")


def _diagnoses(record: TuneRecord) -> list[tuple[str, str]]:
    """(which pair, what bounds it)."""
    chip = load_chip(record.key.chip)
    profiles = [("baseline", record.baseline), ("best", record.best)]
    return [(name, diagnose(profile, chip).paragraph) for name, profile in profiles]


def _laid_out(figure: Any, x: str, y: str) -> Any:
    figure.update_layout(
        template="plotly_white",
        height=380,
        margin={"l": 60, "r": 20, "t": 30, "b": 50},
        legend={"orientation": "h", "y": 1.12},
        xaxis_title=x,
        yaxis={"title": y, "rangemode": "tozero"},
    )
    return figure


def _diff(old: Mapping[str, str], new: Mapping[str, str]) -> list[tuple[str, str]]:
    """(class, line) of the unified diff: ``add``, ``del``, ``at`` or empty."""
    lines = []
    for path in sorted({*old, *new}):
        before, after = old.get(path, "").splitlines(), new.get(path, "").splitlines()
        for line in difflib.unified_diff(before, after, f"baseline/{path}", f"best/{path}", n=3, lineterm=""):
            head = line.startswith(("---", "+++", "@@"))
            lines.append(("at" if head else {"+": "add", "-": "del"}.get(line[:1], ""), line))
    return lines
