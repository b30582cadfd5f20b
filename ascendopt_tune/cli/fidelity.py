"""``ascendopt-tune fidelity``: how far modelled times are from published measurements, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..errors import SettingsError
from ..fidelity import cross_validate, output, runner, table
from ..fidelity import measured as published
from ..fidelity.coverage import coverage
from ..fidelity.measured import PublishedValue
from ..fidelity.runner import Modelled
from ..fidelity.summary import FidelitySummary
from ..files import replacing
from ..nouns.chip import load_chip
from ..nouns.clocks import plausible
from ..report.fidelity import write_fidelity
from ..report.text import json_text
from . import options
from .fidelity_operators import compare_operators


def fidelity(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="SCENARIO", help="Scenarios or families; default: all fast ones.")
    ] = None,
    slow: Annotated[bool, typer.Option("--all", help="The slow scenarios too (about a minute more).")] = False,
    cold: Annotated[
        bool, typer.Option("--cold", help="What was measured at a first launch, instead of steady states.")
    ] = False,
    cross: Annotated[
        bool,
        typer.Option(
            "--cross-validate",
            help="Fit the constants without one scenario, and without one family, and predict those.",
        ),
    ] = False,
    intervals: Annotated[
        bool,
        typer.Option("--intervals", help="How many published values, and ratios of two variants, the intervals hold."),
    ] = False,
    operators: Annotated[
        bool,
        typer.Option(
            "--operators",
            help="Instead of own kernels, unmodified operators of CANN (checkouts of ops-nn and ops-transformer: "
            "ASCENDOPT_OPS_NN, ASCENDOPT_OPS_TRANSFORMER) at shapes whose times cann-bench publishes.",
        ),
    ] = False,
    measurements: Annotated[
        Path | None, typer.Option("--measurements", help="A table of your own instead of asc-devkit's that is shipped.")
    ] = None,
    chip: Annotated[str | None, typer.Option("--chip", help="Instead of the chip each row was measured on.")] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write the rows as CSV.")] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Write a page (HTML): modelled over measured, with intervals.")
    ] = None,
    docs: Annotated[
        Path | None, typer.Option("--docs", help="With --operators: write the tables into this page.")
    ] = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Run own kernels that repeat published measurements on the virtual NPU, and compare modelled with measured."""
    options.check_file(csv, "--csv")
    options.check_file(plot, "--plot")
    if operators:
        other = {
            "--all": slow,
            "--cold": cold,
            "--cross-validate": cross,
            "--intervals": intervals,
            "--measurements": measurements,
            "--plot": plot,
        }
        if given := [name for name, value in other.items() if value]:
            raise SettingsError(f"--operators has no {', '.join(given)}.", "Leave out one or the other.")
        compare_operators(names or [], chip, csv, docs, json)
        return
    if docs:
        raise SettingsError("--docs goes with --operators alone.", "Add --operators, or use --csv or --plot.")
    values = (*published.read(measurements or published.MEASUREMENTS), *published.points())
    modelled = []
    clocks = cross_validate.steps if cross else plausible if intervals or plot else None
    for one in runner.run(table.chosen(names or [], slow, cold), chip, clocks):
        modelled.append(one)
        if not json:
            Console(stderr=True).print(
                f"[dim]{one.scenario.name}: modelled {one.profile.task_duration_us:.1f} us[/dim]"
            )
    if cross or intervals:
        _print_validation(modelled, values, cross, json)
        return
    found = FidelitySummary.of(modelled, values)
    if csv:
        with replacing(csv) as whole, whole.open("w", newline="", encoding="utf-8") as file:
            output.write_csv(found.rows, file)
    if plot:
        write_fidelity(plot, found)
    if json:
        print(json_text(found.to_json()))
        return
    _show(found)


def modelled_and_measured() -> FidelitySummary:
    """All fast scenarios, run under plausible clocks, beside what was published of them; about a minute."""
    values = (*published.read(published.MEASUREMENTS), *published.points())
    return FidelitySummary.of(list(runner.run(table.chosen([], slow=False, cold=False), None, plausible)), values)


def _print_validation(modelled: list[Modelled], values: Sequence[PublishedValue], cross: bool, json: bool) -> None:
    if not cross:
        found = coverage(modelled, values, table.families())
        print(json_text({"time": "modelled", **vars(found)}) if json else "\n".join(found.lines()))
        return
    lines = cross_validate.cross_validate(modelled, values, load_chip)
    if json:
        print(json_text({"time": "modelled", "median_error_percent": [vars(line) for line in lines]}))
        return
    out = Table("family", title="median error of modelled times, %")
    for column in ("rows", "as it is", "fitted to all", "without its scenario", "without its family"):
        out.add_column(column, justify="right")
    for x in lines:
        out.add_row(x.name, str(x.rows), *(f"{e:.1f}" for e in (x.now, x.fitted, x.scenario, x.family)))
    Console(width=100).print(out)


def _show(found: FidelitySummary) -> None:
    out = Table("row", "scenario", "metric", "unit", title="modelled against measured")
    for column in ("measured", "modelled", "error %", "limit %"):
        out.add_column(column, justify="right")
    out.add_column("")
    for r in found.rows:
        m, error = r.measured, r.error_percent
        out.add_row(
            *(m.id, r.scenario, m.metric, m.unit, m.text),
            "-" if r.modelled is None else f"{r.modelled:.5g}",
            "-" if error is None else f"{error:+.1f}",
            output.limit_text(r),
            {"missed": "[red]missed[/red]"}.get(r.verdict, r.verdict),
        )
    Console(width=140).print(out)
    for one in found.without_row:
        p = one.profile
        print(
            f"no published row: {one.scenario.name}: modelled task {p.task_duration_us:.5g} us, core "
            f"{p.aiv_time_us:.5g}, vector {p.aiv_vec_time_us:.5g}, MTE2 {p.aiv_mte2_time_us:.5g}, "
            f"MTE3 {p.aiv_mte3_time_us:.5g}"
        )
    for r in found.missed:
        why = f"; missing: {r.note}" if r.note else ""
        print(f"missed: {r.measured.id} {r.scenario} {r.measured.metric}: {r.error_percent:+.1f} %{why}")
    print("\n".join(found.lines()))
    for reason, n in found.not_repeated.items():
        print(f"not repeated: {n} values: {reason or 'nothing is known about them'}")
