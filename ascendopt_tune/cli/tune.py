"""``ascendopt-tune tune``: the main job."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ..build.toolkit import find
from ..errors import CacheError
from ..evaluate.evaluator import Evaluator
from ..report.html import write_report
from ..report.text import tune_summary
from ..settings import settings
from ..tune import tune_case
from . import options
from .progress import show_progress


def tune(
    op: options.Op = None,
    kernel: options.Kernel = None,
    entry: options.Entry = None,
    block_dim: options.BlockDim = None,
    define: options.Define = [],  # noqa: B006
    input: options.Input = [],  # noqa: B006
    inputs: options.Inputs = None,
    output: options.Output = [],  # noqa: B006
    attr: options.Attr = [],  # noqa: B006
    chip: options.ChipName = None,
    target: options.Target = None,
    seed: options.Seed = 0,
    budget: Annotated[int | None, typer.Option("--budget", min=1, help="Evaluations to spend (default 40).")] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Evaluations at the same time.")] = None,
    retune: Annotated[bool, typer.Option("--retune", help="Search although the cache has an answer.")] = False,
    record: Annotated[Path | None, typer.Option("--record", help="Write the JSON record to this file.")] = None,
    report: Annotated[Path | None, typer.Option("--report", help="Write an HTML report to this file.")] = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Tune OP for one case: search, check, measure, confirm, cache. Without inputs: the first case of its op.toml."""
    now = settings()
    target, chip = target or now.target, chip or now.chip
    operator = options.find_operator(op, kernel, entry, block_dim, define)
    with Evaluator(find(target), chip, workers=1) as evaluator:
        subject = options.make_subject(operator, evaluator, input=input, inputs=inputs, output=output, attr=attr)
    with show_progress(quiet=json) as progress:
        result = tune_case(
            operator,
            subject.case,
            chip=chip,
            target=target,
            budget=budget or now.budget,
            seed=seed,
            workers=workers or now.workers,
            retune=retune,
            progress=progress,
        )
    document = result.to_json()
    try:
        if record is not None:
            record.parent.mkdir(parents=True, exist_ok=True)
            record.write_text(json_module.dumps(document, indent=2) + "\n")
        if report is not None:
            report.parent.mkdir(parents=True, exist_ok=True)
            write_report(report, operator, result)
    except OSError as e:
        raise CacheError(f"can't write {e.filename}: {e.strerror}.", "The result is in the cache; name another file.") from e
    if json:
        options.print_json(document)
        return
    console = Console()
    console.print(tune_summary(operator, result))
    for what, file in (("JSON record", record), ("HTML report", report)):
        if file is not None:
            console.print(f"{what}: {file}")
