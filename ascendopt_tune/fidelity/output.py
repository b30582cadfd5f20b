"""Rows as CSV, and as lines of a docs table."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import TextIO

from .compare import ComparedRow

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
