"""Modelled against measured: rows with their errors, limits, and rankings within a family."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from ..errors import CaseError
from ..files import replacing
from .runner import Modelled
from .table import Measured, reason_of, scenario_of

#: What is promised, in per cent. Other metrics are shown without a limit.
LIMITS = {
    "aiv_vec_time_us": 3.0,
    "system_counter_ticks_per_1000_add": 3.0,
    "time_us_per_100_loops": 3.0,
    "aiv_mte2_time_us": 8.0,
    "task_duration_us": 10.0,
    "head_overhead_us_min": 10.0,
    "head_overhead_us_max": 10.0,
}
#: By which metrics the scenarios of a family are ranked, the first that two scenarios share.
RANKED = ("task_duration_us", "system_counter_ticks_per_1000_add", "time_us_per_100_loops")
_EQUAL = 0.02  # measured values closer than this, relatively, are not ranked: repeated measurements differ as much


@dataclass(frozen=True)
class Row:
    """A published row beside its modelled value; ``modelled`` is None where the metric isn't modelled."""

    measured: Measured
    modelled: float | None
    scenario: str
    chip: str
    note: str = ""  # why the row doesn't count, or which mechanism is missing
    left_out: bool = False  # its value means nothing here

    @property
    def error_percent(self) -> float | None:
        """(modelled - measured) / measured in per cent; None where there is nothing to divide."""
        if self.modelled is None or self.measured.value == 0:
            return None
        return 100 * (self.modelled / self.measured.value - 1)

    @property
    def verdict(self) -> str:
        """``held``, ``missed``, or "" for a row without a limit."""
        limit, error = LIMITS.get(self.measured.metric), self.error_percent
        if limit is None or error is None or self.left_out:
            return ""
        return "held" if abs(error) <= limit else "missed"


@dataclass(frozen=True)
class Inversion:
    """Two scenarios of a family that the model puts in the wrong order."""

    metric: str
    faster: str  # as measured
    slower: str


def rows_of(modelled: Sequence[Modelled], measured: Iterable[Measured]) -> list[Row]:
    """The published rows of the scenarios that were run, in the order of the table."""
    by_name = {m.scenario.name: m for m in modelled}
    rows = []
    for row in measured:
        scenario = scenario_of(row)
        if scenario is None or scenario.name not in by_name:
            continue
        found = by_name[scenario.name]
        reason = scenario.left_out.get(row.metric, "")
        rows.append(
            Row(row, found.value(row.metric), scenario.name, found.chip, reason or scenario.missing, bool(reason))
        )
    return rows


def inversions(rows: Sequence[Row]) -> list[Inversion]:
    """Pairs of scenarios of one family whose measured order the modelled values turn around."""
    found: dict[tuple[str, str, str], Inversion] = {}
    for metric in RANKED:
        ranked = [r for r in rows if r.measured.metric == metric and r.modelled is not None]
        for a in ranked:
            for b in ranked:
                if a.scenario.split("/")[0] != b.scenario.split("/")[0]:
                    continue
                if a.measured.value < b.measured.value * (1 - _EQUAL) and (a.modelled or 0) > (b.modelled or 0):
                    found[metric, a.scenario, b.scenario] = Inversion(metric, a.scenario, b.scenario)
    return list(found.values())


def not_repeated(measured: Iterable[Measured]) -> dict[str, int]:
    """Why rows of a table have no scenario, with the number of rows; "" counts those nothing is known about."""
    reasons: dict[str, int] = {}
    for row in measured:
        if scenario_of(row) is None:
            reason = reason_of(row)
            reasons[reason] = reasons.get(reason, 0) + 1
    return reasons


def write_csv(rows: Sequence[Row], file: TextIO) -> None:
    """One line per row: id, scenario, chip, metric, unit, measured, modelled, error_percent, verdict, note."""
    out = csv.writer(file, lineterminator="\n")
    out.writerow(
        ("id", "scenario", "chip", "metric", "unit", "measured", "modelled", "error_percent", "verdict", "note")
    )
    for r in rows:
        m, error = r.measured, r.error_percent
        modelled = "" if r.modelled is None else f"{r.modelled:.6g}"
        percent = "" if error is None else f"{error:.2f}"
        out.writerow((m.id, r.scenario, r.chip, m.metric, m.unit, m.value, modelled, percent, r.verdict, r.note))


def markdown(row: Row) -> str:
    """The row as a line of the docs' table; modelled values to three digits, so that it doesn't change for nothing."""
    m, error, limit = row.measured, row.error_percent, LIMITS.get(row.measured.metric)
    cells = (
        *(m.id, row.scenario, f"{m.metric} ({m.unit})", f"{m.value:g}"),
        *("-" if row.modelled is None else f"{row.modelled:.3g}", "-" if error is None else f"{error:+.1f}"),
        f"{limit:g}" if limit and row.verdict else "",
        row.verdict,
    )
    return f"| {' | '.join(cells)} |"


def plot(rows: Sequence[Row], path: Path) -> None:
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
                text=[f"{r.measured.id} {r.scenario}: {r.error_percent:+.1f} %" for r in shown],
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
