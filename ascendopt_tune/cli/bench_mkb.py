"""``ascendopt-tune bench mkb``: MultiKernelBench's tasks through the generator."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from .. import paths
from ..build.toolkit import find
from ..errors import CaseError
from ..nouns.chip import DEFAULT_CHIP
from ..nouns.run_options import RunOptions
from ..report.text import json_text
from ..settings import settings
from . import options
from .flags import Only, grouped

EXAMPLES = """[bold]Examples[/]

ascendopt-tune bench mkb --tasks ~/MultiKernelBench activation

ascendopt-tune bench mkb --tasks ~/MultiKernelBench softmax gelu --evaluations 20 --jobs 2

ascendopt-tune bench mkb --tasks ~/MultiKernelBench-7134d16 softmax --scaled

A finished task is kept; the same command goes on there.
"""


@grouped
def mkb(
    how: Annotated[RunOptions, Only(chip=DEFAULT_CHIP)],
    names: Annotated[
        list[str] | None, typer.Argument(help="Tasks or categories. Default: AscendCraft's 52.", metavar="TASK")
    ] = None,
    tasks: Annotated[
        Path | None,
        typer.Option("--tasks", help="A checkout of MultiKernelBench. Default: ASCENDOPT_MKB.", show_default=False),
    ] = None,
    evaluations: Annotated[int, typer.Option("--evaluations", min=0, help="Of the tuner per task; 0: none.")] = 0,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Tasks at the same time.")] = 1,
    limit: Annotated[float, typer.Option("--seconds", min=1, help="At most so many per task.")] = 900,
    results: Annotated[
        Path | None, typer.Option("--results", help="The file of records. Default: below the cache.")
    ] = None,
    docs: Annotated[Path | None, typer.Option("--docs", help="Write the table into this page.")] = None,
    baselines: Annotated[
        bool,
        typer.Option("--baselines", help="Time S and C, operators of cann-ops (ASCENDOPT_CANN_OPS), and nothing else."),
    ] = False,
    scaled: Annotated[
        bool,
        typer.Option("--scaled", help="For shapes too large to run: what tiling decides, and a slice's time, scaled."),
    ] = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Generate, compile, check and time an operator for every task; print a line for each. All times are modelled."""
    from ..bench import mkb as runner
    from ..bench import mkb_page as page
    from ..bench import stand_ins

    folder = tasks or settings().mkb
    if folder is None:
        raise CaseError("no tasks are named.", "Give a checkout of MultiKernelBench by --tasks or ASCENDOPT_MKB.")
    options.check_cache_folder()
    files = runner.task_files(folder, names or [])
    find("virtual")  # built once, before several processes want it
    results = results or paths.cache_dir() / "mkb" / "records.jsonl"
    timed = results.with_name(f"{results.stem}.baselines.jsonl")
    if baselines:
        _baselines(files, timed, how.chip, limit, json)
        return
    if scaled:
        _scaled(files, results.with_name(f"{results.stem}.scaled.jsonl"), how.chip, limit, json)
        return

    def say(record: runner.Record) -> None:
        print(page.line(record), file=sys.stderr)

    found = runner.execute(
        files,
        results,
        jobs=jobs,
        evaluations=evaluations,
        chip=how.chip,
        seconds=limit,
        say=say,
    )
    if docs is not None:
        page.write(docs, found, how.chip, stand_ins.baselines(timed))
    if json:
        print(json_text({"time": "modelled", "chip": how.chip, "tasks": [asdict(r) for r in found]}))
    else:
        print("\n".join(page.summary(found)))


def _baselines(files: list[Path], results: Path, chip: str, seconds: float, json: bool) -> None:
    """Prints S or C of each task."""
    from ..bench import mkb_page as page
    from ..bench import stand_ins

    sources = settings().cann_ops
    if sources is None:
        raise CaseError("ASCENDOPT_CANN_OPS is not set.", "Baselines S and C are operators of a checkout of cann-ops.")
    found = []
    for one in stand_ins.measured(files, results, sources, chip, seconds):
        found.append(one)
        if not json:
            print(page.baseline_line(one), flush=True)
    if json:
        print(json_text({"time": "modelled", "chip": chip, "baselines": [asdict(b) for b in found]}))


def _scaled(files: list[Path], results: Path, chip: str, seconds: float, json: bool) -> None:
    """Prints what becomes of each task at shapes that are too large to run."""
    from ..bench import scaled

    found = list(scaled.scaled(files, results, chip, seconds))
    if json:
        print(json_text({"time": "modelled, of a slice", "chip": chip, "tasks": [asdict(s) for s in found]}))
    else:
        print("\n".join(scaled.table(found)))
