"""``ascendopt-tune bench``: the search against its peers."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from .. import paths
from ..bench import table
from ..bench.sizes import SIZES
from ..build.toolkit import find
from ..errors import CacheError, SettingsError
from ..files import write_whole
from ..nouns.chip import WARM, load_chip
from ..nouns.run_options import RunOptions
from ..report.text import json_text
from . import bench_mkb, examples, failure, options
from .flags import Only, grouped

if TYPE_CHECKING:
    from ..bench import report, runner, summary

EXAMPLES = """[bold]Examples[/]

ascendopt-tune bench search --list development --budget 20 --seeds 1

ascendopt-tune bench search --list extended --methods full,stage-1,stage-2 --sampled stage-1,stage-2 --seeds 1

ascendopt-tune bench search --sizes large --jobs 8

ascendopt-tune bench search --operators 'foreach/*' --methods full,random --seeds 3

Ctrl-C keeps every finished run and every evaluation; the same command goes on there.
"""
_CHIP = "ascend910b4"  # the paper's
_ALL_SIZES = ",".join(SIZES)

app = typer.Typer(
    help="Benchmarks of the search, and of the generator.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)

_LISTS = "test, extended (test and more), or development (what defaults may be chosen on)."
Sizes = Annotated[str, typer.Option("--sizes", help="Of decode, medium and large, separated by commas.")]
List = Annotated[str, typer.Option("--list", help=_LISTS)]
Operators = Annotated[
    list[str], typer.Option("--operators", metavar="PATTERN", help="Only these, as 'math/*'; repeatable.")
]
Results = Annotated[
    Path | None, typer.Option("--results", help="Where runs and evaluations are kept. Default: below the cache.")
]
Json = options.Json


@app.command("search", epilog=EXAMPLES)
@grouped
def search(
    how: Annotated[RunOptions, Only(chip=_CHIP, budget=40)],
    name: List = table.TEST,
    operators: Operators = [],  # noqa: B006
    every: Annotated[
        int, typer.Option("--every", min=1, help="Only each n-th operator of the list: a sample of all its families.")
    ] = 1,
    sizes: Sizes = _ALL_SIZES,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            help="Which methods, separated by commas. Default: all but full-paper and full-adaptive (the search with "
            "another --schedule) and as-written (the baseline alone).",
            show_default=False,
        ),
    ] = None,
    sampled: Annotated[
        str,
        typer.Option(
            "--sampled",
            metavar="METHODS",
            help="Methods that run only on the sample, which is every third operator of each level.",
        ),
    ] = "",
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many seeds: 0, 1, ...")] = 5,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="How many operators run at the same time.")] = 1,
    run_minutes: Annotated[
        float | None,
        typer.Option(
            "--run-minutes",
            min=0.01,
            help="A run that takes longer is ended: its case is listed with the reason. What it evaluated is kept.",
            show_default=False,
        ),
    ] = None,
    ray: options.Ray = None,
    results: Results = None,
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
    from ..bench import on_ray, report, runner, summary

    wanted = options.words_of(methods, runner.METHODS, "methods") if methods else tuple(runner.COMPARED)
    on_sample = options.words_of(sampled, wanted, "methods")
    if set(on_sample) == set(wanted):
        raise SettingsError("every method is one of the sample.", "One has to run on all operators; or use --every.")
    if how.budget < 2:
        raise SettingsError(f"--budget {how.budget} is the baseline alone.", "Give at least 2 evaluations.")
    options.check_cache_folder()
    plan = runner.BenchPlan(
        operators=table.each_nth(
            table.chosen(table.read(), operators, name, options.words_of(sizes, SIZES, "sizes")), every
        ),
        methods=wanted,
        seeds=seeds,
        budget=how.budget,
        chip=how.chip,
        results=results or paths.cache_dir() / "bench",
        jobs=jobs,
        sampled=on_sample,
        list=name,
        run_minutes=run_minutes,
    )
    ended = 0

    def say(said: runner.Said) -> None:
        nonlocal ended
        if said.run is None:
            print(f"{said.operator} {said.size}: {said.error}", file=sys.stderr)
            return
        ended += 1
        r = said.run
        print(
            f"{ended}/{plan.runs}  {r.operator} {r.size}  {r.method}, seed {r.seed}: {r.speedup:.3f}x "
            f"({r.baseline_us:.2f} -> {r.best_us:.2f} us modelled, {len(r.trace)} evaluations)",
            file=sys.stderr,
        )

    interrupted = False
    if not report_only:
        table.check_sources(plan.operators)
        find("virtual")  # built once, before several processes want it
        try:
            if ray is not None:
                on_ray.execute(plan, ray, say)
            else:
                runner.execute(plan, say)
        except KeyboardInterrupt:
            interrupted = True
            print("interrupted; what ended is kept. The same command goes on there.", file=sys.stderr)
    runs = runner.newest(runner.read_runs(plan.results), plan)
    found = report.Results(plan, runs, (), _left_out(plan))
    without = {(o.path, o.size) for o in plan.operators} - {r.case for r in found.counted}
    failed = [(case, why) for case, why in sorted(runner.read_failures(plan.results).items()) if case in without]
    found = replace(found, failed=failed)
    written = _write(docs, found) if docs is not None else []
    known = summary.best_known(runs)
    lines = {size: summary.lines([r for r in found.counted if r.size == size], found.general, known) for size in SIZES}
    if json:
        document = {
            "time": "modelled",
            "cases": len({r.case for r in found.counted}),
            "seeds": seeds,
            "budget": how.budget,
            "methods": [
                {**vars(one), "size": size, "fast": _by_threshold(one)} for size, of in lines.items() for one in of
            ],
            "failed": [{"operator": path, "size": size, "why": why} for (path, size), why in failed],
            "runs": [r.to_json() for r in runs],
        }
        print(json_text(document))
    else:
        _show(lines, written)
    if interrupted:
        raise typer.Exit(failure.INTERRUPTED)


def _write(page: Path, found: report.Results) -> list[Path]:
    """The Markdown page, and beside it the picture that it shows and the page of figures; what was written."""
    from ..bench import report
    from ..report.suite import anytime_svg, write_results

    report.write(page, found)
    if not found.counted:
        return [page]
    picture, figures = page.with_suffix(".svg"), page.with_suffix(".html")
    try:
        write_whole(picture, anytime_svg(found, "white"))
        write_results(figures, found)
    except OSError as error:
        raise CacheError(f"can't write {error.filename}: {error.strerror}.", "Name another --docs.") from error
    return [page, picture, figures]


def _left_out(plan: runner.BenchPlan) -> list[table.LeftOut]:
    """The sizes that operators of the plan don't have."""
    paths = {o.path for o in plan.operators}
    sizes = {o.size for o in plan.operators}
    return [one for one in table.left_out() if one.path in paths and one.size in sizes]


def _by_threshold(one: summary.Line) -> dict[str, float]:
    from ..bench.summary import THRESHOLDS

    return dict(zip(map(str, THRESHOLDS), one.fast, strict=True))


def _show(lines: Mapping[str, list[summary.Line]], written: list[Path]) -> None:
    from ..bench.summary import THRESHOLDS

    if not any(lines.values()):
        print("no case has every method and seed yet")
        return
    out = Table("size", "method", "operators", title="modelled speedup over the operators as written")
    for column in ("geometric mean", *(f"fast_{p:g}" for p in THRESHOLDS)):
        out.add_column(column, justify="right")
    for size, one in ((size, one) for size, of in lines.items() for one in of):
        shares = (f"{100 * share:.1f} %" for share in one.fast)
        out.add_row(size, one.method, str(one.cases), f"{one.mean:.3f}", *shares)
    Console(width=120).print(out)
    for path in written:
        print(f"written: {path}")


@app.command("sensitivity", epilog=examples.of("bench sensitivity"))
@grouped
def sensitivity(
    how: Annotated[RunOptions, Only(chip=_CHIP)],
    name: List = table.TEST,
    operators: Operators = [],  # noqa: B006
    sizes: Sizes = _ALL_SIZES,
    method: Annotated[str, typer.Option("--method", help="Whose best pairs.")] = "full",
    by_hand: Annotated[
        list[str],
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Also with this constant set, all of them at once; repeatable."
        ),
    ] = [],  # noqa: B006
    results: Results = None,
    state: options.State = WARM,
    docs: Annotated[Path | None, typer.Option("--docs", help="Write the table into this page.")] = None,
    json: Json = False,
    debug: options.Debug = False,
) -> None:
    """Which constant of the clock moves the benchmark most: each halved and doubled, over the best pairs found.

    The traces of these pairs are timed again under the other clock; nothing is searched anew.
    """
    from ..bench import runner
    from ..bench import sensitivity as of_clock

    options.check_cache_folder()
    options.check_state(state, "virtual")
    folder = results or paths.cache_dir() / "bench"
    entries = table.chosen(table.read(), operators, name, options.words_of(sizes, SIZES, "sizes"))
    table.check_sources(entries)
    best = of_clock.best_runs([r for r in runner.read_runs(folder) if r.chip == how.chip], method)

    def tell(case: tuple[str, str], text: str) -> None:
        print(f"{' '.join(case)}: {text}", file=sys.stderr)

    part = load_chip(how.chip)
    together = of_clock.given(part, by_hand)
    of = [*of_clock.changes(part), *together]
    found = of_clock.measure(entries, best, folder, how.chip, of, tell, state)
    if not found:
        raise SettingsError(f"{folder} has no best pair of {method} for these operators.", "Run `bench search` first.")
    nominal, moved = of_clock.effects(of, found)
    if json:
        print(
            json_text(
                {
                    "time": "modelled",
                    "state": state,
                    "cases": len(found),
                    "effects": [asdict(e) for e in (nominal, *moved)],
                }
            )
        )
    lines = list(of_clock.rows(part, nominal, moved, together, len(found), state))
    if docs is not None:
        of_clock.write(docs, lines)
    if not json:
        print("\n".join(lines))


@app.command("operators", epilog=examples.of("bench operators"))
def operators(name: List = table.TEST, json: Json = False) -> None:
    """The benchmark's operators, with their cases."""
    listed = table.listed(table.read(), name)
    if json:
        about = [
            {
                "path": o.path,
                "level": o.level,
                "size": o.size,
                "elements": o.elements,
                "sampled": o.sampled,
                "case": str(o.case),
            }
            for o in listed
        ]
        print(json_text({"operators": about}))
        return
    for o in listed:
        print(f"{o.level}  {o.path}  {o.size}  {o.case}{'  (sample)' if o.sampled else ''}")


app.command("mkb", epilog=bench_mkb.EXAMPLES)(bench_mkb.mkb)
