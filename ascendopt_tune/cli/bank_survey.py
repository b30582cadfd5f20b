"""``ascendopt-tune bank survey``: how many real kernels each motif meets, and how many it makes faster."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import paths
from ..errors import AscendOptError, SettingsError
from ..files import replacing
from ..report.text import json_text
from . import failure, options

if TYPE_CHECKING:
    from ..bench.survey import Survey
    from ..bench.table import BenchOperator

EXAMPLES = """[bold]Examples[/]

ascendopt-tune bank survey path/to/cann-ops/src

ascendopt-tune bank survey path/to/cann-ops/src --measure --every 4 --docs docs/motifs.md

ascendopt-tune bank survey --measure --list development --sizes decode,medium --worth worth.csv

ascendopt-tune bank survey --measure --motifs cache-hint --sizes large
"""


def survey(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FOLDER", help="Folders with operators at or below them; the registry is added."),
    ] = None,
    measured: Annotated[
        bool,
        typer.Option("--measure", help="Also run each motif on the benchmark's operators; resumable."),
    ] = False,
    of_list: Annotated[str, typer.Option("--list", help="Which of them: test, extended or development.")] = "extended",
    every: Annotated[int, typer.Option("--every", min=1, help="Measure on each n-th of these operators only.")] = 1,
    sizes: Annotated[
        str, typer.Option("--sizes", help="To measure at: of decode, medium and large, separated by commas.")
    ] = "medium",
    motifs: Annotated[
        str, typer.Option("--motifs", help="Measure and show these only, separated by commas. Default: all.")
    ] = "",
    chip: Annotated[str, typer.Option("--chip", help="The chip that is modelled.")] = "ascend910b4",
    results: Annotated[
        Path | None, typer.Option("--results", help="Where evaluations are kept. Default: below the cache.")
    ] = None,
    docs: Annotated[
        Path | None,
        typer.Option("--docs", help="Write the table into this page (docs/motifs.md); with --motifs their rows."),
    ] = None,
    worth: Annotated[
        Path | None, typer.Option("--worth", help="Write what was measured to this file, as a bank's folder has it.")
    ] = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Count for each motif the operators it matches; with --measure, those it makes faster (modelled)."""
    from ..bank.worth import write
    from ..bench import survey as work
    from ..bench import table
    from ..bench.sizes import SIZES

    if worth is not None and not measured:
        raise SettingsError("--worth writes what was measured, and nothing is.", "Add --measure.")
    if motifs and worth is not None:
        raise SettingsError("--motifs leaves motifs out, and --worth writes all.", "Leave one of them out.")
    options.check_file(worth, "--worth")
    found = work.Survey()
    found.motifs = options.words_of(motifs, found.motifs, "motifs") or found.motifs
    found.kernels = list(work.registry(found.motifs))
    sources = [f"registry, {len(found.kernels)} operators"]
    interrupted = False
    try:
        for folder in folders or ():
            fresh = []
            for one in work.survey(folder, found.motifs):
                fresh.append(one)
                print(f"{one.source}/{one.name}: {len(one.matches)} motifs", file=sys.stderr)
            found.kernels += fresh
            sources.append(f"{work.source_of(folder)}, {len(fresh)} operators")
        if measured:
            cases = table.chosen(table.read(), (), of_list, options.words_of(sizes, SIZES, "sizes"))
            _measure(found, table.each_nth(cases, every), chip, results)
    except KeyboardInterrupt:
        interrupted = True
        print("interrupted; evaluations are kept, the same command goes on there.", file=sys.stderr)
    if worth is not None and not interrupted:
        with replacing(worth) as whole:
            write(whole, found.gains)
    if docs is not None and not interrupted:
        today = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
        if motifs:
            work.write(docs, work.renewed(work.written(docs), found, sources, today, every))
        else:
            work.write(docs, work.section(found, sources, today, every))
    if json:
        print(json_text(_document(found)))
    else:
        print(work.table(found), end="")
        for path, why in found.left_out.items():
            print(f"not measured: {path}: {why}")
    if interrupted:
        raise typer.Exit(failure.INTERRUPTED)


def _measure(found: Survey, operators: Sequence[BenchOperator], chip: str, results: Path | None) -> None:
    """Fills in ``gains`` and ``left_out``, an operator after the other."""
    from ..bench import survey as work
    from ..bench import table
    from ..bench.subject import Subject

    options.check_cache_folder()
    table.check_sources(operators)
    results = results or paths.cache_dir() / "survey"
    for entry in operators:
        try:
            operator = entry.load()
            if not work.has_place(operator.baseline, operator.auto_sync, found.motifs):
                continue  # before anything is built
            with Subject(entry, results, chip) as subject:
                for gain in work.measure(subject, found.motifs):
                    found.gains.append(gain)
                    says = f"{gain.speedup:.3f}x modelled" if gain.speedup is not None else "not let through the gate"
                    print(f"{entry.name}: {gain.motif}: {says}", file=sys.stderr)
        except AscendOptError as error:
            found.left_out[entry.path] = str(error)


def _document(found: Survey) -> dict[str, object]:
    return {
        "kernels": [{"source": k.source, "operator": k.name, "places": k.matches} for k in found.kernels],
        "time": "modelled",
        "gains": [vars(g) for g in found.gains],
        "left_out": found.left_out,
    }
