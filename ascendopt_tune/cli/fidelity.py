"""``ascendopt-tune fidelity``: how far modelled times are from published measurements, row by row."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..fidelity import compare, runner, table
from ..files import replacing
from ..report.text import json_text
from . import options

EXAMPLES = (
    "Examples: ascendopt-tune fidelity --csv rows.csv --plot rows.html; ascendopt-tune fidelity data_copy add/4; "
    "ascendopt-tune fidelity --measurements mine.csv --all."
)


def fidelity(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[SCENARIO]...", help="Scenarios or families; default: all fast ones.")
    ] = None,
    slow: Annotated[bool, typer.Option("--all", help="The slow scenarios too (about a minute more).")] = False,
    measurements: Annotated[
        Path | None, typer.Option("--measurements", help="A table of your own instead of the one that is shipped.")
    ] = None,
    chip: Annotated[str | None, typer.Option("--chip", help="Instead of the chip each row was measured on.")] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write the rows as CSV.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Modelled over measured, log-log (.html).")] = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Run own kernels that repeat published measurements on the virtual NPU, and compare modelled with measured."""
    measured = table.read(measurements) if measurements else table.read()
    modelled = []
    for one in runner.run(table.chosen(names or [], slow), chip):
        modelled.append(one)
        if not json:
            Console(stderr=True).print(
                f"[dim]{one.scenario.name}: modelled {one.profile.task_duration_us:.1f} us[/dim]"
            )
    rows = compare.rows_of(modelled, measured)
    wrong = compare.inversions(rows)
    if csv:
        with replacing(csv) as whole, whole.open("w", newline="", encoding="utf-8") as file:
            compare.write_csv(rows, file)
    if plot:
        compare.plot(rows, plot)
    if json:
        print(json_text(_document(rows, wrong, modelled, measured)))
        return
    _show(rows, wrong, modelled)
    for reason, n in compare.not_repeated(measured).items():
        print(f"not repeated: {n} rows: {reason or 'nothing is known about them'}")


def _show(rows: list[compare.Row], wrong: list[compare.Inversion], modelled: list[runner.Modelled]) -> None:
    out = Table("row", "scenario", "metric", "unit", title="modelled against measured")
    for column in ("measured", "modelled", "error %", "limit %"):
        out.add_column(column, justify="right")
    out.add_column("")
    for r in rows:
        m, error, limit = r.measured, r.error_percent, compare.LIMITS.get(r.measured.metric)
        out.add_row(
            m.id,
            r.scenario,
            m.metric,
            m.unit,
            f"{m.value:g}",
            "-" if r.modelled is None else f"{r.modelled:.5g}",
            "-" if error is None else f"{error:+.1f}",
            f"{limit:g}" if limit and r.verdict else "",
            {"missed": "[red]missed[/red]"}.get(r.verdict, r.verdict),
        )
    Console(width=140).print(out)
    with_rows = {r.scenario for r in rows}
    for one in modelled:
        if one.scenario.name not in with_rows:
            p = one.profile
            print(
                f"no published row: {one.scenario.name}: modelled task {p.task_duration_us:.5g} us, core "
                f"{p.aiv_time_us:.5g}, vector {p.aiv_vec_time_us:.5g}, MTE2 {p.aiv_mte2_time_us:.5g}, "
                f"MTE3 {p.aiv_mte3_time_us:.5g}"
            )
    held = sum(r.verdict == "held" for r in rows)
    missed = [r for r in rows if r.verdict == "missed"]
    print(f"{held} of {held + len(missed)} rows with a limit are within it")
    for r in missed:
        print(f"missed: {r.measured.id} {r.scenario} {r.measured.metric}: {r.error_percent:+.1f} %; missing: {r.note}")
    for inversion in wrong:
        print(f"wrong order: {inversion.faster} was measured faster than {inversion.slower} ({inversion.metric})")
    if not wrong:
        print("no ranking within a family is inverted")


def _document(
    rows: list[compare.Row],
    wrong: list[compare.Inversion],
    modelled: list[runner.Modelled],
    measured: tuple[table.Measured, ...],
) -> dict[str, object]:
    return {
        "time": "modelled",
        "rows": [
            {
                "id": r.measured.id,
                "scenario": r.scenario,
                "chip": r.chip,
                "metric": r.measured.metric,
                "unit": r.measured.unit,
                "measured": r.measured.value,
                "modelled": r.modelled,
                "error_percent": r.error_percent,
                "limit_percent": compare.LIMITS.get(r.measured.metric),
                "verdict": r.verdict,
                "note": r.note,
            }
            for r in rows
        ],
        "inversions": [{"metric": i.metric, "faster": i.faster, "slower": i.slower} for i in wrong],
        "scenarios": {m.scenario.name: m.profile.to_json() for m in modelled},
        "not_repeated": compare.not_repeated(measured),
    }
