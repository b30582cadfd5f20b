"""``ascendopt-tune run``: build, run and profile the baseline pair, no tuning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from .. import arguments
from ..build.toolkit import find
from ..evaluate.evaluator import Evaluator
from ..evaluate.gate import Gate
from ..outcome import Timed, outcome_to_json
from ..report.text import failure_text, profile_table
from ..settings import settings
from . import options


def run(
    op: options.Op = None,
    kernel: options.Kernel = None,
    entry: options.Entry = None,
    block_dim: options.BlockDim = None,
    define: options.Define = [],  # noqa: B006
    input: options.Input = [],  # noqa: B006
    inputs: options.Inputs = None,
    output: options.Output = [],  # noqa: B006
    attr: options.Attr = [],  # noqa: B006
    outputs: Annotated[Path | None, typer.Option("--outputs", help="Save the results: .npz or .safetensors.")] = None,
    chip: options.ChipName = None,
    target: options.Target = None,
    seed: options.Seed = 0,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Build, run, check and profile OP as it is written. Exit code 1 when it doesn't pass the checks."""
    now = settings()
    chip = chip or now.chip
    operator = options.find_operator(op, kernel, entry, block_dim, define)
    with Evaluator(find(target or now.target), chip, workers=1) as evaluator:
        subject = options.make_subject(operator, evaluator, input=input, inputs=inputs, output=output, attr=attr)
        gate = Gate(operator, subject.case, evaluator, seed=seed, signature=subject.signature, arrays=subject.arrays)
        result = gate.evaluate(operator.baseline)
    if outputs is not None and result.outputs:
        arguments.save_arrays(outputs, result.outputs)
    passed = isinstance(result.outcome, Timed)
    document: dict[str, Any] = {
        "operator": operator.name,
        "case": subject.case.to_json(),
        "chip": chip,
        "target": evaluator.toolkit.target,
        **outcome_to_json(result.outcome),
        "checks": result.checks,
        "hazards": list(result.hazards),
        "profile": result.profile.to_json() if result.profile else None,
        "block_dim": result.tiling.block_dim if result.tiling else None,
        "tiling_key": result.tiling.tiling_key if result.tiling else None,
        "timings_s": dict(result.timings_s),
    }
    if json:
        options.print_json(document)
    else:
        console = Console()
        console.print(f"{operator.name}  {subject.case}", markup=False, highlight=False)
        if isinstance(result.outcome, Timed):
            console.print(profile_table(evaluator.toolkit.target, {"baseline": result.outcome.profile}))
            console.print(f"{result.outcome.checks} output comparisons passed, no hazard")
        else:
            console.print(failure_text(result.outcome), markup=False, highlight=False)
    if not passed:
        raise typer.Exit(1)
