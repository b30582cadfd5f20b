"""``ascendopt-tune tune``: the main job."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ..build.toolkit import Toolkit, find
from ..errors import CacheError, CaseError
from ..evaluate.evaluator import Evaluator
from ..evaluate.gate import Gate
from ..evaluate.joint import WeightedCase
from ..files import write_whole
from ..llm.endpoint import Endpoint
from ..nouns.operator import Operator
from ..report.html import write_report
from ..report.story import write_story
from ..report.text import json_text, print_tuned, print_tuned_together, time_word, together_json
from ..search.budget import Limits
from ..search.schedule import Schedule
from ..settings import settings
from ..sources import arguments
from ..tuner import TuneRecord, tune_cases
from . import options
from .progress import Display

EXAMPLES = """[bold]Examples[/]

ascendopt-tune tune rms_norm --input x=float16\\[1024,4096] --input gamma=float16\\[4096] --report report.html

ascendopt-tune tune path/to/my_op --input x=float16\\[8,2048] --attr dim=-1 --budget 80 --json > record.json

ascendopt-tune tune rms_norm --cases serving.toml

ascendopt-tune tune softmax --max-seconds 120 --schedule adaptive

ascendopt-tune tune softmax --max-seconds 600 --schedule adaptive --resume

ascendopt-tune tune --kernel k.cpp --entry my_kernel --block-dim 8 --input x=float32\\[4096] --output y=float32\\[4096]

Ctrl-C ends the search, checks the best pair found so far and keeps it; a second Ctrl-C ends at once. Every trial is on
disk as soon as it ended: the same command goes on where a killed one was.
"""
_LIMITS = "Limits: whichever ends first keeps the best pair so far"
_MODEL = "Language model (docs/llm.md; check it with `ascendopt-tune llm-check`)"
_INTERRUPTED = 130  # what shells give a program that Ctrl-C ended


def tune(
    op: options.Op = None,
    kernel: options.Kernel = None,
    entry: options.Entry = None,
    block_dim: options.BlockDim = None,
    define: options.Define = [],  # noqa: B006
    include: options.IncludeDir = [],  # noqa: B006
    in_place: options.InPlace = [],  # noqa: B006
    input: options.Input = [],  # noqa: B006
    inputs: options.Inputs = None,
    output: options.Output = [],  # noqa: B006
    attr: options.Attr = [],  # noqa: B006
    format: options.Format = [],  # noqa: B006
    domain: options.Domain = [],  # noqa: B006
    outputs: options.Outputs = None,
    cases: Annotated[
        Path | None,
        typer.Option(
            "--cases",
            help="One pair for several cases: a TOML file with [[case]] tables as in op.toml, each with a weight.",
            rich_help_panel="The case",
        ),
    ] = None,
    seed: options.Seed = 0,
    chip: options.ChipName = None,
    target: options.Target = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget", min=1, help="Evaluations. Default: ASCENDOPT_BUDGET, else 40.", rich_help_panel=_LIMITS
        ),
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option("--max-seconds", min=0, help="Of the wall clock.", rich_help_panel=_LIMITS)
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=0, help="To and from LLMs.", rich_help_panel=_LIMITS)
    ] = None,
    max_money: Annotated[
        float | None, typer.Option("--max-money", min=0, help="For LLMs, in US dollars.", rich_help_panel=_LIMITS)
    ] = None,
    schedule: Annotated[
        Schedule,
        typer.Option(
            "--schedule", help="paper: the stages take turns every 10 steps; adaptive: more steps for what still earns."
        ),
    ] = Schedule.PAPER,
    steps: Annotated[
        str,
        typer.Option("--steps", metavar="U,S", help="Steps of Stage I and Stage II in a round; 0 leaves a stage out."),
    ] = "10,10",
    proposer: Annotated[
        str | None,
        typer.Option(
            "--proposer",
            help="rules, llm or both. Default: both if a language model is configured, else rules.",
            rich_help_panel=_MODEL,
            show_default=False,
        ),
    ] = None,
    llm_model: Annotated[
        str | None, typer.Option("--llm-model", help="Default: ASCENDOPT_LLM_MODEL.", rich_help_panel=_MODEL)
    ] = None,
    llm_base_url: Annotated[
        str | None, typer.Option("--llm-base-url", help="Default: ASCENDOPT_LLM_BASE_URL.", rich_help_panel=_MODEL)
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Evaluations at the same time. Default: one per core.")
    ] = None,
    retune: Annotated[bool, typer.Option("--retune", help="Search anew although the cache has an answer.")] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on with a run that was killed, or that Ctrl-C or a limit ended; same options."
        ),
    ] = False,
    accept_unfinished: options.AcceptUnfinished = False,
    invariant: Annotated[
        bool,
        typer.Option("--invariant", help="Only pairs whose results are bit for bit those of the pair as written."),
    ] = False,
    cold: Annotated[
        bool, typer.Option("--cold", help="Don't begin with what the cache has of other shapes, chips and operators.")
    ] = False,
    record: Annotated[Path | None, typer.Option("--record", help="Write the JSON record to this file.")] = None,
    report: Annotated[Path | None, typer.Option("--report", help="Write an HTML report to this file.")] = None,
    story: Annotated[
        Path | None,
        typer.Option("--story", help="Write the run's story to this file: Markdown, and a picture (.svg) beside it."),
    ] = None,
    diffs: Annotated[
        bool, typer.Option("--diffs/--no-diffs", help="In the story: the sources' lines that each change touched.")
    ] = True,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Tune an operator for one case: search, check, measure, confirm, and keep the best pair in the cache.

    Without inputs, the first case of its op.toml is tuned; with --cases one pair for all cases of a file. A case that
    the cache has is answered from it; a search that Ctrl-C or a limit ended goes on.
    """
    now = settings()
    options.check_cache_folder()
    options.check_file(record, "--record")
    options.check_file(report, "--report")
    options.check_file(story, "--story")
    if cases is not None and (input or inputs or output or attr or outputs or report or story):
        raise CaseError(
            "--cases goes with no other option about a case, and not with --outputs, --report and --story.",
            "The file names inputs, outputs and attributes; --record and --json have all cases.",
        )
    operator = options.find_operator(op, kernel, entry, block_dim, define, include, in_place)
    if invariant or now.invariant:
        operator = operator.invariantly()
    toolkit = find(target or now.target)
    chip = chip or now.chip
    try:
        with Display(time_word(toolkit.target)) as display:
            display.say(f"reading the definition of {operator.name}")
            with Evaluator(toolkit, chip, workers=1) as evaluator:
                if cases is not None:
                    subjects, weights = options.make_subjects(operator, evaluator, cases)
                else:
                    subject = options.make_subject(
                        operator, evaluator, input=input, inputs=inputs, output=output, attr=attr, outputs=outputs,
                        format=format, domain=domain,
                    )  # fmt: skip
                    operator = subject.operator
                    subjects, weights = [subject], [1.0]
            subject = subjects[0]
            results = tune_cases(
                operator,
                [WeightedCase(s.case, w) for s, w in zip(subjects, weights, strict=True)],
                chip=chip,
                target=toolkit.target,
                budget=budget or now.budget,
                seed=seed,
                workers=workers or now.workers,
                retune=retune,
                resume=resume,
                accept_unfinished=accept_unfinished or now.accept_unfinished,
                limits=Limits(max_seconds, max_tokens, max_money),
                schedule=schedule.value,
                steps=options.parse_steps(steps),
                proposer=proposer,
                endpoint=Endpoint.of(now, model=llm_model, base_url=llm_base_url),
                warm_start=not cold,
                signature=subject.signature,
                arrays=subject.arrays,
                progress=display.update,
                say=display.say,
            )
            if outputs is not None:
                display.say("running the best pair for its results")
                _save_results(outputs, subject, results[0], toolkit, seed)
    except KeyboardInterrupt:
        print("interrupted; the cache is unchanged. The same command goes on where this one was.", file=sys.stderr)
        raise typer.Exit(_INTERRUPTED) from None
    result = results[0]
    document = together_json(results, weights) if cases is not None else result.to_json()
    _write_files(document, result, subject, record, report)
    if story is not None:
        _write_story(story, operator, result, diffs)
    if json:
        print(json_text(document))
        return
    if cases is not None:
        print_tuned_together(Console(highlight=False), operator, results, weights)
    else:
        print_tuned(Console(highlight=False), operator, result)
    for what, file in (("results", outputs), ("JSON record", record), ("HTML report", report), ("story", story)):
        if file is not None:
            print(f"{what}: {file}")


def _save_results(path: Path, subject: options.CommandSubject, result: TuneRecord, toolkit: Toolkit, seed: int) -> None:
    with Evaluator(toolkit, result.key.chip, workers=1) as evaluator:
        gate = Gate(
            subject.operator, subject.case, evaluator, seed=seed, signature=subject.signature, arrays=subject.arrays
        )
        arguments.save_arrays(path, gate.evaluate(result.entry.pair).outputs)


def _write_files(
    document: Mapping[str, Any],
    result: TuneRecord,
    subject: options.CommandSubject,
    record: Path | None,
    report: Path | None,
) -> None:
    try:
        if record is not None:
            write_whole(record, json_text(document) + "\n")
        if report is not None:
            write_report(report, subject.operator, result)
    except OSError as e:
        raise CacheError(
            f"can't write {e.filename}: {e.strerror}.", "The result is in the cache; run again with another file name."
        ) from e


def _write_story(path: Path, operator: Operator, result: TuneRecord, diffs: bool) -> None:
    try:
        write_story(path, operator, result, diffs=diffs)
    except OSError as e:
        raise CacheError(f"can't write {e.filename}: {e.strerror}.", "Name another file, and --retune.") from e
