"""``ascendopt-tune bench``: the search against its peers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from .. import paths
from ..bench import table
from ..build.toolkit import find
from ..errors import SettingsError
from ..report.text import json_text
from . import options

if TYPE_CHECKING:
    from ..bench import summary

EXAMPLES = """[bold]Examples[/]

ascendopt-tune bench search --list development --budget 20 --seeds 1

ascendopt-tune bench search --jobs 8 --docs docs/benchmark.md

ascendopt-tune bench search --operators 'foreach/*' --methods full,random --seeds 3

Ctrl-C keeps every finished run and every evaluation; the same command goes on there.
"""
_CHIP = "ascend910b4"  # the paper's
_INTERRUPTED = 130

app = typer.Typer(help="Benchmarks of the search.", no_args_is_help=True, rich_markup_mode="rich")

_LISTS = "test, extended (test and more), or development (what defaults may be chosen on)."
List = Annotated[str, typer.Option("--list", help=_LISTS)]
Json = options.Json


@app.command("search", epilog=EXAMPLES)
def search(
    name: List = table.TEST,
    operators: Annotated[
        list[str], typer.Option("--operators", metavar="PATTERN", help="Only these, as 'math/*'; repeatable.")
    ] = [],  # noqa: B006
    every: Annotated[
        int, typer.Option("--every", min=1, help="Only each n-th operator of the list: a sample of all its families.")
    ] = 1,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            help="Separated by commas. Default: all but full-adaptive, which is the search with --schedule adaptive.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many: 0, 1, ...")] = 5,
    budget: Annotated[int, typer.Option("--budget", min=2, help="Evaluations of a run, the baseline's included.")] = 40,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Operators at the same time.")] = 1,
    chip: Annotated[str, typer.Option("--chip", help="The chip that is modelled.")] = _CHIP,
    results: Annotated[
        Path | None, typer.Option("--results", help="Where runs and evaluations are kept. Default: below the cache.")
    ] = None,
    docs: Annotated[
        Path | None, typer.Option("--docs", help="Write the results into this page, and pictures beside it.")
    ] = None,
    report_only: Annotated[bool, typer.Option("--report-only", help="Run nothing: report what is there.")] = False,
    json: Json = False,
    debug: options.Debug = False,
) -> None:
    """Run this search and its peers on the same operators, with the same evaluator, gate, start and budget.

    All times are modelled: it runs on the virtual NPU, where evaluations don't vary, so an evaluation that one run has
    made is known to the others (it counts in each).
    """
    from ..bench import report, runner, summary

    wanted = tuple(methods.split(",")) if methods else tuple(runner.COMPARED)
    unknown = sorted(set(wanted) - set(runner.METHODS))
    if unknown:
        raise SettingsError(f"unknown methods: {', '.join(unknown)}.", f"Known ones: {', '.join(runner.METHODS)}.")
    options.check_cache_folder()
    plan = runner.Plan(
        operators=table.chosen(table.read(), operators, name)[::every],
        methods=wanted,
        seeds=seeds,
        budget=budget,
        chip=chip,
        results=results or paths.cache_dir() / "bench",
        jobs=jobs,
    )
    ended = 0
    total = len(plan.operators) * len(plan.methods) * plan.seeds

    def say(said: runner.Said) -> None:
        nonlocal ended
        if said.run is None:
            print(f"{said.operator}: {said.error}", file=sys.stderr)
            return
        ended += 1
        r = said.run
        print(
            f"{ended}/{total}  {r.operator}  {r.method}, seed {r.seed}: {r.speedup:.3f}x modelled "
            f"({r.baseline_us:.2f} -> {r.best_us:.2f} us, {len(r.trace)} evaluations)",
            file=sys.stderr,
        )

    interrupted = False
    if not report_only:
        table.check_sources(plan.operators)
        find("virtual")  # built once, before several processes want it
        try:
            runner.execute(plan, say)
        except KeyboardInterrupt:
            interrupted = True
            print("interrupted; what ended is kept. The same command goes on there.", file=sys.stderr)
    runs = runner.newest(runner.read_runs(plan.results), plan)
    general, _ = report.methods_of(plan)
    counted = summary.complete(runs, general, seeds)
    without = {o.path for o in plan.operators} - {r.operator for r in counted}
    failed = [(path, why) for path, why in sorted(runner.read_failures(plan.results).items()) if path in without]
    written = report.write(docs, plan, runs, failed) if docs is not None else []
    found = summary.lines(counted, general, summary.best_known(runs))
    if json:
        document = {
            "time": "modelled",
            "operators": len({r.operator for r in counted}),
            "seeds": seeds,
            "budget": budget,
            "methods": [{**vars(one), "fast": _by_threshold(one)} for one in found],
            "failed": dict(failed),
            "runs": [r.to_json() for r in runs],
        }
        print(json_text(document))
    else:
        _show(found, written)
    if interrupted:
        raise typer.Exit(_INTERRUPTED)


def _by_threshold(one: summary.Line) -> dict[str, float]:
    from ..bench.summary import THRESHOLDS

    return dict(zip(map(str, THRESHOLDS), one.fast, strict=True))


def _show(found: list[summary.Line], written: list[Path]) -> None:
    from ..bench.summary import THRESHOLDS

    if not found:
        print("no operator has every method and seed yet")
        return
    out = Table("method", "operators", title="modelled speedup over the operators as written")
    for column in ("geometric mean", *(f"fast_{p:g}" for p in THRESHOLDS)):
        out.add_column(column, justify="right")
    for one in found:
        shares = (f"{100 * share:.1f} %" for share in one.fast)
        out.add_row(one.method, str(one.operators), f"{one.mean:.3f}", *shares)
    Console(width=120).print(out)
    for path in written:
        print(f"written: {path}")


@app.command("operators")
def operators(name: List = table.TEST, json: Json = False) -> None:
    """The benchmark's operators, with their cases."""
    listed = table.listed(table.read(), name)
    if json:
        print(json_text({"operators": [{"path": o.path, "level": o.level, "case": str(o.case)} for o in listed]}))
        return
    for o in listed:
        print(f"{o.level}  {o.path}  {o.case}")
