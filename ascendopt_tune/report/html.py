"""The HTML report of a tuning run: one file that needs no network."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import plotly.graph_objects as go  # type: ignore[import-untyped]

from ..operator import Operator
from ..outcome import Timed
from ..tune import TuneRecord
from .text import PIPES, time_word

_TEMPLATES = Path(__file__).resolve().parent / "templates"


def write_report(path: Path, operator: Operator, record: TuneRecord) -> None:
    """Writes the report to ``path``. Raises OSError if it can't."""
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True, trim_blocks=True)
    figures = [_pipes(record)]
    if record.history:
        figures.insert(0, _trajectory(record))
    html = environment.get_template("tune.html").render(
        record=record,
        operator=operator,
        word=time_word(record.key.target),
        pipes=PIPES,
        figures=[f.to_html(full_html=False, include_plotlyjs=i == 0) for i, f in enumerate(figures)],
        trials=[_row(t) for t in record.history],
        diff=_diff(operator.baseline.tiling, record.entry.pair.tiling)
        + _diff(operator.baseline.kernel, record.entry.pair.kernel),
    )
    path.write_text(html)


def _row(trial: Any) -> dict[str, Any]:
    timed = isinstance(trial.outcome, Timed)
    return {
        "id": trial.candidate.id,
        "change": trial.candidate.change,
        "outcome": type(trial.outcome).__name__ + (" (repeats an earlier launch)" if trial.duplicate_of is not None else ""),
        "time": f"{trial.time_us:.2f}" if timed else "",
        "reason": "" if timed else trial.outcome.reason,
    }


def _trajectory(record: TuneRecord) -> Any:
    word = time_word(record.key.target)
    timed = [(t.candidate.id, t.time_us) for t in record.history if t.time_us is not None]
    best, line = float("inf"), []
    for number, time in timed:
        best = min(best, time)
        line.append((number, best))
    figure = go.Figure()
    figure.add_scatter(x=[n for n, _ in timed], y=[t for _, t in timed], mode="markers", name="candidate")
    figure.add_scatter(x=[n for n, _ in line], y=[t for _, t in line], mode="lines", line_shape="hv", name="best so far")
    figure.update_layout(title="Search", xaxis_title="candidate", yaxis_title=f"{word} task duration (us)", height=380)
    return figure


def _pipes(record: TuneRecord) -> Any:
    word = time_word(record.key.target)
    figure = go.Figure()
    for name, profile in (("baseline", record.baseline), ("best", record.best)):
        figure.add_bar(name=name, x=list(PIPES.values()), y=[getattr(profile, field) for field in PIPES])
    figure.update_layout(title="Where the time goes", yaxis_title=f"{word} time (us)", barmode="group", height=380)
    return figure


def _diff(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    parts = []
    for path in sorted({*old, *new}):
        before, after = old.get(path, ""), new.get(path, "")
        if before != after:
            lines = difflib.unified_diff(before.splitlines(), after.splitlines(), f"baseline/{path}", f"best/{path}", "", "", 3, "")
            parts.append("\n".join(lines) + "\n")
    return "".join(parts)
