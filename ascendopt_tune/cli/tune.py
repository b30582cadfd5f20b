"""``ascendopt-tune tune``: the main job."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ..build.toolkit import Toolkit, find
from ..errors import CacheError, CaseError
from ..evaluate.cluster import on_cluster
from ..evaluate.evaluator import Evaluator
from ..evaluate.gate import Gate
from ..evaluate.joint import WeightedCase
from ..evaluate.screen import Say, open_evaluator
from ..files import write_whole
from ..nouns.operator import Operator
from ..nouns.run_options import CASE, RunOptions
from ..report.html import write_run
from ..report.lines import print_lines
from ..report.run_record import run_document
from ..report.story import write_story
from ..report.text import (
    json_text,
    print_tuned,
    print_tuned_together,
    shorter_search,
    time_word,
    together_json,
)
from ..report.timeline import first_cores
from ..sources import arguments
from ..tuner import TuneRecord, tune_cases
from . import failure, options
from .flags import grouped
from .progress import Display
from .subject import CommandSubject, find_operator, make_subject, make_subjects

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
_GOES_ON = "The same command goes on there."
_RESUMED = "The same command with --resume goes on there."  # --retune alone begins anew


@grouped
def tune(
    named: options.OperatorFlags,
    flags: options.CaseFlags,
    run: RunOptions,
    cases: Annotated[
        Path | None,
        typer.Option(
            "--cases",
            help="One pair for several cases: a TOML file with \\[\\[case]] tables as in op.toml, each with a weight.",
            rich_help_panel=CASE,
        ),
    ] = None,
    record: Annotated[Path | None, typer.Option("--record", help="Write the JSON record to this file.")] = None,
    report: Annotated[Path | None, typer.Option("--report", help="Write an HTML report to this file.")] = None,
    story: Annotated[
        Path | None,
        typer.Option("--story", help="Write the run's story to this file: Markdown, and a picture (.svg) beside it."),
    ] = None,
    diffs: Annotated[
        bool, typer.Option("--diffs/--no-diffs", help="In the story: the sources' lines that each change touched.")
    ] = True,
    ray: options.Ray = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Tune an operator for one case: search, check, measure, confirm, and keep the best pair in the cache.

    Without inputs, the first case of its op.toml is tuned; with --cases one pair for all cases of a file. A case that
    the cache has is answered from it; a search that Ctrl-C or a limit ended goes on.
    """
    options.check_cache_folder()
    options.check_file(record, "--record")
    options.check_file(report, "--report")
    options.check_file(story, "--story")
    if cases is not None and (flags != options.CaseFlags() or report or story):
        raise CaseError(
            "--cases goes with no other option about a case, and not with --outputs, --report and --story.",
            "The file names inputs, outputs and attributes; --record and --json have all cases.",
        )
    operator = find_operator(named)
    toolkit = find(run.target)
    results: list[TuneRecord] = []
    try:
        with (
            Display(time_word(toolkit.target)) as display,
            _open(toolkit, run, ray, display.say) as evaluator,
        ):
            display.say(f"reading the definition of {operator.name}")
            if cases is not None:
                subjects, weights = make_subjects(operator, evaluator, cases)
            else:
                subjects, weights = [make_subject(operator, evaluator, flags)], [1.0]
            subject = subjects[0]
            operator = subject.operator
            results = tune_cases(
                operator,
                [WeightedCase(s.case, w) for s, w in zip(subjects, weights, strict=True)],
                run,
                evaluator=evaluator,
                signature=subject.signature,
                arrays=subject.arrays,
                progress=display.update,
                say=display.say,
            )
            if flags.outputs is not None:
                display.say("running the best pair for its results")
                _save_results(flags.outputs, subject, results[0], evaluator, run.seed)
            timelines: dict[str, Any] = {}
            if (record or report) and cases is None and not results[0].cached and toolkit.target == "virtual":
                display.say("taking the timelines of the baseline and the best pair")
                with contextlib.suppress(KeyboardInterrupt):  # the result is kept: the page goes without them
                    timelines = _timelines(subject, results[0], evaluator, run.seed)
    except KeyboardInterrupt:
        what = "interrupted; the cache is unchanged, and trials that ended are on disk."
        next_step = _GOES_ON if run.resume or not run.retune else _RESUMED
        if results:
            what, next_step = "interrupted; the result is in the cache.", "The same command without --retune shows it."
        print(f"{what} {next_step}", file=sys.stderr)
        if json:
            failure.print_document("Interrupted", what, next_step)
        raise typer.Exit(failure.INTERRUPTED) from None
    result = results[0]
    if cases is not None:
        document = together_json(results, weights)
    else:
        document = run_document(result, subject.operator, timelines)
    _write_files(document, record, report)
    if story is not None:
        _write_story(story, operator, result, diffs)
    if json:
        print(json_text(document))
        return
    if cases is not None:
        print_tuned_together(Console(highlight=False), operator, results, weights)
    else:
        print_tuned(Console(highlight=False), operator, result)
        if (note := shorter_search(result, run.budget)) is not None:
            print_lines(Console(highlight=False), note)
    for what, file in (("results", flags.outputs), ("JSON record", record), ("HTML report", report), ("story", story)):
        if file is not None:
            print(f"{what}: {file}")


def _open(toolkit: Toolkit, run: RunOptions, ray: str | None, say: Say) -> AbstractContextManager[Evaluator]:
    if ray is None:
        return open_evaluator(toolkit, run.chip, workers=run.workers, say=say)
    return on_cluster(ray, toolkit, run.chip, workers=run.workers, say=say)


def _save_results(path: Path, subject: CommandSubject, result: TuneRecord, evaluator: Evaluator, seed: int) -> None:
    gate = Gate(
        subject.operator, subject.case, evaluator, seed=seed, signature=subject.signature, arrays=subject.arrays
    )
    arguments.save_arrays(path, gate.evaluate(result.entry.pair).outputs)


def _timelines(subject: CommandSubject, result: TuneRecord, evaluator: Evaluator, seed: int) -> dict[str, Any]:
    """What the first cores did, modelled, of the pair as written and of the best one."""
    gate = Gate(
        subject.operator, subject.case, evaluator, seed=seed, signature=subject.signature, arrays=subject.arrays
    )
    found = {}
    for name, pair in (("baseline", subject.operator.baseline), ("best", result.entry.pair)):
        trace = gate.evaluate(pair, trace=True).result.trace_path
        if trace is not None:
            found[name] = first_cores(Path(trace))
    return found


def _write_files(document: Mapping[str, Any], record: Path | None, report: Path | None) -> None:
    try:
        if record is not None:
            write_whole(record, json_text(document) + "\n")
        if report is not None:
            write_run(report, document)
    except OSError as e:
        raise CacheError(
            f"can't write {e.filename}: {e.strerror}.", "The result is in the cache; run again with another file name."
        ) from e


def _write_story(path: Path, operator: Operator, result: TuneRecord, diffs: bool) -> None:
    try:
        write_story(path, operator, result, diffs=diffs)
    except OSError as e:
        raise CacheError(f"can't write {e.filename}: {e.strerror}.", "Name another file, and --retune.") from e
