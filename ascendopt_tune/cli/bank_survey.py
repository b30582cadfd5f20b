"""``ascendopt-tune bank survey``: how many real kernels each motif meets, and how many it makes faster."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import paths
from ..errors import AscendOptError
from ..report.text import json_text
from . import options

if TYPE_CHECKING:
    from ..bench.survey import Survey

EXAMPLES = """[bold]Examples[/]

ascendopt-tune bank survey path/to/cann-ops/src

ascendopt-tune bank survey path/to/cann-ops/src --measure --every 4 --docs docs/motifs.md
"""
_INTERRUPTED = 130


def survey(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FOLDER]...", help="Folders with operators at or below them; the registry is added."),
    ] = None,
    measured: Annotated[
        bool,
        typer.Option("--measure", help="Also run each motif on the benchmark's operators (extended list); resumable."),
    ] = False,
    every: Annotated[int, typer.Option("--every", min=1, help="Measure on each n-th of these operators only.")] = 1,
    size: Annotated[str, typer.Option("--size", help="The size to measure at: decode, medium or large.")] = "medium",
    chip: Annotated[str, typer.Option("--chip", help="The chip that is modelled.")] = "ascend910b4",
    results: Annotated[
        Path | None, typer.Option("--results", help="Where evaluations are kept. Default: below the cache.")
    ] = None,
    docs: Annotated[
        Path | None, typer.Option("--docs", help="Write the table into this page (docs/motifs.md).")
    ] = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Count for each motif the operators it matches; with --measure, those it makes faster (modelled)."""
    from ..bench import survey as work

    found = work.Survey(kernels=list(work.registry()))
    sources = [f"registry, {len(found.kernels)} operators"]
    interrupted = False
    try:
        for folder in folders or ():
            fresh = []
            for one in work.survey(folder):
                fresh.append(one)
                print(f"{one.source}/{one.name}: {len(one.matches)} motifs", file=sys.stderr)
            found.kernels += fresh
            sources.append(f"{work.source_of(folder)}, {len(fresh)} operators")
        if measured:
            _measure(found, every, size, chip, results or paths.cache_dir() / "survey")
    except KeyboardInterrupt:
        interrupted = True
        print("interrupted; evaluations are kept, the same command goes on there.", file=sys.stderr)
    if docs is not None and not interrupted:
        today = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
        work.write(docs, work.section(found, sources, today))
    if json:
        print(json_text(_document(found)))
    else:
        print(work.table(found), end="")
        for path, why in found.left_out.items():
            print(f"not measured: {path}: {why}")
    if interrupted:
        raise typer.Exit(_INTERRUPTED)


def _measure(found: Survey, every: int, size: str, chip: str, results: Path) -> None:
    """Fills in ``gains`` and ``left_out``, an operator after the other."""
    from ..bench import survey as work
    from ..bench import table
    from ..bench.subject import Subject

    options.check_cache_folder()
    operators = table.chosen(table.read(), (), table.EXTENDED, (size,))[::every]
    table.check_sources(operators)
    for entry in operators:
        try:
            with Subject(entry, results, chip) as subject:
                for gain in work.measure(subject):
                    found.gains.append(gain)
                    worth = f"{gain.speedup:.3f}x modelled" if gain.speedup is not None else "not let through the gate"
                    print(f"{entry.name}: {gain.motif}: {worth}", file=sys.stderr)
        except AscendOptError as error:
            found.left_out[entry.path] = str(error)


def _document(found: Survey) -> dict[str, object]:
    return {
        "kernels": [{"source": k.source, "operator": k.name, "places": k.matches} for k in found.kernels],
        "time": "modelled",
        "gains": [{"motif": g.motif, "operator": g.operator, "speedup": g.speedup} for g in found.gains],
        "left_out": found.left_out,
    }
