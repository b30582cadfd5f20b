"""``ascendopt-tune fidelity --operators``: unmodified operators at shapes whose times on silicon are published."""

from __future__ import annotations

import csv as csv_files
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ..fidelity import operators
from ..fidelity.operators import ModelledOperator
from ..files import replacing, write_between
from ..report.text import json_text

BEGIN, END = "<!-- operators: written by `ascendopt-tune fidelity --operators --docs` -->", "<!-- end of operators -->"


def compare_operators(names: Sequence[str], chip: str | None, csv: Path | None, docs: Path | None, json: bool) -> None:
    """Models the published rows of these names (default: all but those on cube cores), and writes what was asked for.

    Raises:
        SettingsError: no such row, or no checkout of ops-nn.
        CacheError: ``docs`` can't be written, or has no place for the tables.
    """
    found = []
    for one in operators.run(operators.chosen(names, operators.known(names)), chip):
        found.append(one)
        if not json:
            Console(stderr=True).print(f"[dim]{_progress(one)}[/dim]", highlight=False)
    if csv:
        with replacing(csv) as whole, whole.open("w", newline="", encoding="utf-8") as file:
            out = csv_files.writer(file, lineterminator="\n")
            out.writerow(("id", "operator", "case", "state", "published_us", "modelled_us", "reason"))
            out.writerows(_rows(found))
    if docs:
        write_between(docs, BEGIN, END, "the operators", operators.page(found))
    if json:
        print(json_text({"time": "modelled", "summary": _summary(found), "rows": [_document(one) for one in found]}))
        return
    _show(found)


def _progress(one: ModelledOperator) -> str:
    us = one.published.task_duration_us
    if not one.profiles:
        return f"{one.published.id}: {one.reason:.150}"
    times = (f"modelled {p.task_duration_us:.1f} us {state}" for state, p in one.profiles.items())
    return f"{one.published.id}: {', '.join(times)}; published {us:g} us"


def _rows(found: Sequence[ModelledOperator]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for one in found:
        row = one.published
        head = (row.id, row.operator, str(row.case))
        rows += [
            (*head, state, row.task_duration_us, f"{profile.task_duration_us:.3f}", "")
            for state, profile in one.profiles.items()
        ] or [(*head, "", row.task_duration_us, "", one.reason)]
    return rows


def _summary(found: Sequence[ModelledOperator]) -> dict[str, list[dict[str, object]]]:
    return {state: [asdict(e) for e in operators.summary(found, state)] for state in operators.STATES}


def _document(one: ModelledOperator) -> dict[str, object]:
    row = one.published
    return {
        "id": row.id,
        "operator": row.operator,
        "case": row.case.to_json(),
        "published_us": row.task_duration_us,
        "modelled": {state: profile.to_json() for state, profile in one.profiles.items()},
        "reason": one.reason or None,
    }


def _show(found: Sequence[ModelledOperator]) -> None:
    out = Table("operator", "state", title="unmodified operators, modelled against published")
    for column in ("rows", "median error %", "of its size %", "worst %", "in the interval %", "in order %"):
        out.add_column(column, justify="right")
    for state in operators.STATES:
        for e in operators.summary(found, state):
            ordered = "" if e.ordered is None else f"{100 * e.ordered:.0f}"
            figures = (f"{e.bias:+.1f}", f"{e.median:.1f}", f"{e.worst:+.1f}", f"{100 * e.inside:.0f}", ordered)
            out.add_row(e.family, state, str(e.rows), *figures)
    Console(width=120).print(out)
    refused = sum(not one.profiles for one in found)
    if refused:
        print(f"{refused} of {len(found)} rows can't be modelled; --csv FILE or --json says why")
