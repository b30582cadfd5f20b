"""``ascendopt-tune run``: build, run and profile the baseline pair, no tuning."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ..build.toolkit import find
from ..errors import CaseError, HostProgramError
from ..evaluate.bound import bound_of
from ..evaluate.cores import waves_json, waves_note
from ..evaluate.diagnosis import diagnose
from ..evaluate.evaluator import EvaluationResult, Evaluator
from ..evaluate.gate import Checked, Gate
from ..evaluate.screen import open_evaluator
from ..nouns.chip import WARM, load_chip
from ..nouns.operator import Operator, Signature
from ..nouns.outcome import CompileFailed, Deadlock, LaunchFailed, Timed, reason_of
from ..nouns.run_options import RunOptions
from ..report.text import (
    ITSELF_ONLY,
    failure_text,
    json_text,
    print_case,
    print_profile,
    profile_table,
    skipped_lines,
)
from ..report.trace import SavedTrace, save_trace
from ..sources import arguments
from . import failure, options
from .flags import Only, grouped
from .subject import CommandSubject, find_operator, make_subject

EXAMPLES = """[bold]Examples[/]

ascendopt-tune run rms_norm

ascendopt-tune run add --input x=float16\\[8,2048] --input y=float16\\[8,2048] --json

ascendopt-tune run softmax --profile --trace softmax.json

ascendopt-tune run softmax --state flushed

ascendopt-tune run path/to/my_op --inputs arrays.npz --attr dim=-1 --outputs results.npz

ascendopt-tune run --kernel k.cpp --entry my_kernel --block-dim 8 -D N=4096 --input x=float32\\[4096]
--output y=float32\\[4096]
"""

_CHANGED = re.compile(r"changed bytes that are not its output: the input (\w+)")
_ADDED = re.compile(r"gets GM bytes [^;]*?kernel parameter (\d+), which nobody has written")
_DOMAIN = (
    "your own arrays passed, random ones didn't: if the operator isn't defined for those, say which values an input "
    "may have, with --domain NAME=LOW:HIGH or a [domain.NAME] in op.toml (docs/operators.md)"
)


@grouped
def run(
    named: options.OperatorFlags,
    flags: options.CaseFlags,
    how: Annotated[RunOptions, Only("seed", "chip", "target")],
    trace: Annotated[
        Path | None,
        typer.Option("--trace", help="Write the modelled timeline to this file; open it in https://ui.perfetto.dev."),
    ] = None,
    profile: Annotated[
        bool, typer.Option("--profile", help="Also tell what the pipes waited for, the bandwidth, and a diagnosis.")
    ] = False,
    state: options.State = WARM,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Build, run, check and profile an operator as it is written, without tuning.

    Without inputs, the first case of its op.toml is run. Exit code 1 when it runs but doesn't pass the checks.
    """
    options.check_cache_folder()
    options.check_file(trace, "--trace")
    operator = find_operator(named)
    toolkit = find(how.target)
    if trace is not None and toolkit.target != "virtual":
        raise CaseError(
            f"--trace shows what the virtual NPU models, and the target is {toolkit.target}.",
            "Add --target virtual, or use msprof for a timeline of the device.",
        )
    options.check_state(state, toolkit.target)
    with open_evaluator(toolkit, how.chip, say=lambda text: print(text, file=sys.stderr)) as evaluator:
        if not json:
            print(f"building, running and checking {operator.name} ...", file=sys.stderr)
        subject = make_subject(operator, evaluator, flags)
        operator = subject.operator
        gate = Gate(
            *(operator, subject.case, evaluator),
            seed=how.seed,
            signature=subject.signature,
            arrays=subject.arrays,
            state=state,
        )
        try:
            result = gate.evaluate(operator.baseline, trace=trace is not None)
        except HostProgramError as error:
            result = Checked(EvaluationResult(LaunchFailed(error.message)), {})
        if flags.outputs is not None and result.outputs:
            arguments.save_arrays(flags.outputs, result.outputs)
        saved = None
        if trace is not None and result.result.trace_path is not None:
            saved = save_trace(Path(result.result.trace_path), trace)
        if json:
            print(json_text(_document(subject, gate, evaluator, how.seed, result, saved)))
    outcome = result.outcome
    # The user's own arrays are the first trial's inputs.
    reason = reason_of(outcome)
    if subject.arrays and "[trial " in reason and "[trial 1 of" not in reason:
        print(_DOMAIN, file=sys.stderr)
    if not json and result.result.printed:
        print(f"the kernel printed, in the first trial:\n{_visible(result.result.printed)}")
    if isinstance(outcome, (CompileFailed, Deadlock, LaunchFailed)):
        raise typer.Exit(failure.tell_unbuilt(outcome, debug=debug))
    if not json:
        _print(subject, gate, evaluator, result, flags.outputs)
        if profile and result.profile is not None:
            model = load_chip(evaluator.modelled_chip)
            print_profile(Console(highlight=False), toolkit.target, result.profile, model, subject.case)
        if saved is not None:
            _print_trace(saved)
    if not isinstance(outcome, Timed):
        raise typer.Exit(1)


def _visible(text: str) -> str:
    """The text without what would steer a terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text).rstrip("\n")


def _document(
    subject: CommandSubject,
    gate: Gate,
    evaluator: Evaluator,
    seed: int,
    result: Checked,
    trace: SavedTrace | None,
) -> dict[str, Any]:
    outcome, tiling = result.outcome, result.tiling
    return {
        "operator": subject.operator.name,
        "case": subject.case.to_json(),
        "chip": evaluator.chip,
        "target": evaluator.toolkit.target,
        "state": gate.state,
        "seed": seed,
        "outcome": type(outcome).__name__,
        "reason": reason_of(outcome) or None,
        "log": outcome.log if isinstance(outcome, CompileFailed) else None,
        "reference": subject.reference,
        "checks": result.checks,
        "skipped": gate.skipped,
        "unwritten": {name: left for name, (left, _) in gate.unwritten.items()},
        "slack": dict(result.result.habits.slack),
        "hazards": list(result.hazards),
        "profile": result.profile.to_json() if result.profile else None,
        "diagnosis": diagnose(result.profile, load_chip(evaluator.modelled_chip)).paragraph if result.profile else None,
        "bound_us": bound_of(subject.case, [result.profile], load_chip(evaluator.modelled_chip))
        if result.profile
        else None,
        "block_dim": tiling.block_dim if tiling else None,
        **(waves_json(result.profile, load_chip(evaluator.chip)) if result.profile else {}),
        "tiling_key": tiling.tiling_key if tiling else None,
        "printed": result.result.printed,
        "trace": {"file": str(trace.path), "left_out": trace.left_out} if trace is not None else None,
        "timings_s": {"compile": 0.0, "tiling": 0.0, "execute": 0.0, **result.timings_s},
    }


def _print(subject: CommandSubject, gate: Gate, evaluator: Evaluator, result: Checked, outputs: Path | None) -> None:
    console = Console(highlight=False)
    print_case(console, subject.operator.name, evaluator.chip, evaluator.toolkit.target, subject.case)
    if isinstance(result.outcome, Timed):
        column = "as written" if gate.state == WARM else f"as written, {gate.state}"
        console.print(profile_table(evaluator.toolkit.target, {column: result.outcome.profile}))
        if subject.reference == "baseline":
            print(f"{result.checks} outputs, {ITSELF_ONLY}; no hazard")
        else:
            print(f"{result.checks} outputs compared with {subject.reference}, no hazard")
        if note := waves_note(result.outcome.profile, load_chip(evaluator.chip)):
            print(note)
    else:
        print(failure_text(result.outcome))
        if changed := _CHANGED.search(getattr(result.outcome, "reason", "")):
            print(f"where the operator is meant to change {changed[1]}, say so: --in-place {changed[1]}")
        if hint := initial_hint(
            getattr(result.outcome, "reason", ""), subject.signature, settings_file(subject.operator)
        ):
            print(hint)
    for place, count in result.result.habits.slack.items():
        print(f"the operator as written {place}, up to byte {count} past its end: a neighbour's, in a larger tensor")
    for text in gate.unwritten_notes:
        print(text)
    for text in skipped_lines(gate.skipped, failed=not isinstance(result.outcome, Timed)):
        print(text)
    if outputs is not None and result.outputs:
        print(f"results: {outputs}")


def settings_file(operator: Operator) -> str:
    """The name of the operator's op.toml: another one where it is one of several in a folder."""
    one_of_several = operator.name == operator.entry != operator.root.name
    return f"op_{operator.entry}.toml" if one_of_several else "op.toml"


def initial_hint(reason: str, signature: Signature, file: str = "op.toml") -> str:
    """What to say where a kernel reads its own output: adds to it, mostly, and its caller clears it. ``file``: of the
    operator's settings."""
    read = _ADDED.search(reason)
    place = int(read[1]) - len(signature.inputs) if read else -1
    if not 0 <= place < len(signature.outputs):
        return ""
    name = signature.outputs[place].name
    return (
        f"where the operator adds to {name}, or its caller fills it, say with what: [initial] {name} = 0.0 in an "
        f"{file} in the operator's folder (docs/operators.md)"
    )


def _print_trace(trace: SavedTrace) -> None:
    print(f"timeline (modelled): {trace.path}, to be opened in https://ui.perfetto.dev or MindStudio Insight")
    if trace.left_out:
        print(f"the timeline leaves out {trace.left_out}; a smaller case shows everything")
