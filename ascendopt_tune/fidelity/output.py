"""Rows as CSV, as lines of a docs table, and as a plot."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from ..errors import CaseError
from ..files import replacing
from .compare import LIMITS, ComparedRow

_COLUMNS = ("id", "scenario", "chip", "metric", "unit", "measured", "modelled", "error_percent")


def limit_text(row: ComparedRow) -> str:
    """The row's limit in per cent of the measured value, "" where there is none."""
    if row.allowed is None or row.modelled is None or not row.verdict:
        return ""
    return f"{100 * (row.allowed - row.measured.half_digit) / row.measured.nearest(row.modelled):.3g}"


def write_csv(rows: Sequence[ComparedRow], file: TextIO) -> None:
    """One line per row: id, scenario, chip, metric, unit, measured, modelled, error_percent, limit_percent, verdict,
    note."""
    out = csv.writer(file, lineterminator="\n")
    out.writerow((*_COLUMNS, "limit_percent", "verdict", "note"))
    for r in rows:
        m, error = r.measured, r.error_percent
        modelled = "" if r.modelled is None else f"{r.modelled:.6g}"
        percent = "" if error is None else f"{error:.2f}"
        out.writerow(
            (m.id, r.scenario, r.chip, m.metric, m.unit, m.text, modelled, percent, limit_text(r), r.verdict, r.note)
        )


def markdown(row: ComparedRow) -> str:
    """The row as a line of the docs' table; modelled values to three digits, so that it doesn't change for nothing."""
    m, error = row.measured, row.error_percent
    cells = (
        *(m.id, row.scenario, f"{m.metric} ({m.unit})", m.text),
        *("-" if row.modelled is None else f"{row.modelled:.3g}", "-" if error is None else f"{error:+.1f}"),
        *(limit_text(row), row.verdict),
    )
    return f"| {' | '.join(cells)} |"


def plot(rows: Sequence[ComparedRow], path: Path) -> None:
    """Modelled over measured times, both axes logarithmic, a colour per metric: ``.html``, or an image with kaleido.

    Raises:
        CaseError: the suffix is not one of a format that can be written here.
    """
    import plotly.graph_objects as go  # half a second, for this alone

    figure: Any = go.Figure()
    for metric, limit in LIMITS.items():
        shown = [r for r in rows if r.measured.metric == metric and r.modelled and not r.left_out]
        if shown:
            figure.add_scatter(
                x=[r.measured.value for r in shown],
                y=[r.modelled for r in shown],
                text=[f"{r.measured.id} {r.scenario}: {r.error_percent or 0:+.1f} %" for r in shown],
                mode="markers",
                hoverinfo="x+y+text",
                name=f"{metric} (limit {limit:.0f} %)",
            )
    ends = [value for r in rows if r.verdict for value in (r.measured.value, r.modelled or r.measured.value)] or [1, 10]
    figure.add_scatter(x=[min(ends), max(ends)], y=[min(ends), max(ends)], mode="lines", name="equal")
    figure.update_layout(template="plotly_white", xaxis_title="measured", yaxis_title="modelled")
    figure.update_xaxes(type="log")
    figure.update_yaxes(type="log")
    if path.suffix == ".html":
        with replacing(path) as whole:
            figure.write_html(whole, include_plotlyjs=True)
        return
    try:
        with replacing(path) as whole:
            figure.write_image(whole)
    except (ValueError, ImportError, RuntimeError) as e:
        raise CaseError(
            f"the plot can't be written to {path}: {str(e).strip().splitlines()[0]}",
            "Give a name that ends in .html; images need the package kaleido.",
        ) from None
