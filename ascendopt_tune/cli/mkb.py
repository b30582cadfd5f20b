"""``ascendopt-tune import`` and ``export``: operators from and to solutions of MultiKernelBench."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..build.toolkit import virtual
from ..errors import OperatorError, need
from ..evaluate.evaluator import Evaluator
from ..files import write_whole
from ..report.text import json_text
from ..sources import arguments
from . import options
from .subject import find_operator, make_subject

IMPORT_EXAMPLES = """[bold]Examples[/]

ascendopt-tune import layer_norm.py --task MultiKernelBench/reference/normalization/layer_norm.py --out my_layer_norm
--inputs draw.npz

ascendopt-tune run my_layer_norm

ascendopt-tune run my_layer_norm --inputs draw.npz
"""

EXPORT_EXAMPLES = """[bold]Examples[/]

ascendopt-tune export my_layer_norm --out layer_norm.py

ascendopt-tune export rms_norm --out rms_norm.py --task rms_norm_task.py
"""


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The solution: six strings of language ascendc.")],
    out: Annotated[Path, typer.Option("--out", help="The operator's folder; it may not exist, or be empty.")],
    task: Annotated[
        Path | None,
        typer.Option(
            "--task", help="The task (Model, get_inputs, get_init_inputs): it is executed, and says what is right."
        ),
    ] = None,
    inputs: Annotated[
        Path | None, typer.Option("--inputs", help="Save the task's draw, for run --inputs: .npz or .safetensors.")
    ] = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """MultiKernelBench: make an operator folder of one of its solutions. The solution is read, never executed."""
    need("torch", "torch", "Following the tensors of a solution", kind=OperatorError)
    from ..mkb.folder import import_solution

    options.check_file(inputs, "--inputs")
    if inputs is not None and task is None:
        raise OperatorError("--inputs saves what the task draws, and no task is given.", "Name it with --task.")
    found = import_solution(file, task, out)
    if inputs is not None:
        arguments.save_arrays(inputs, found.arrays)
    if json:
        print(json_text({"name": found.name, "folder": str(out), "files": sorted(found.files), "notes": found.notes}))
        return
    print(f"{out}: {', '.join(sorted(found.files))}")
    for note in found.notes:
        print(f"note: {note}", file=sys.stderr)
    print(f"Next: ascendopt-tune run {out}", file=sys.stderr)


def export(
    op: Annotated[
        str,
        typer.Argument(metavar="OP", help="A folder with op_host/ and op_kernel/ in it, or a name of the registry."),
    ],
    out: Annotated[Path, typer.Option("--out", help="The file of the solution.")],
    task: Annotated[
        Path | None, typer.Option("--task", help="Also write a task: the reference as Model, inputs of the first case.")
    ] = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """MultiKernelBench: write an operator as one of its solutions, a file with six strings."""
    need("torch", "torch", "A solution", kind=OperatorError)
    from ..mkb.write import Export, kept_texts

    options.check_file(out, "--out")
    options.check_file(task, "--task")
    operator = find_operator(options.OperatorFlags(op))
    kept = kept_texts(operator.root)
    if kept is not None and task is None:
        write_whole(out, Export(operator, kept=kept).text())
    else:
        options.check_cache_folder()
        print(f"reading the definition of {operator.name} (compiled on first use) ...", file=sys.stderr)
        with Evaluator(virtual()) as evaluator:
            subject = make_subject(operator, evaluator, options.CaseFlags())
            made = Export(
                operator,
                subject.signature,
                subject.case,
                lambda inputs, attrs: evaluator.infer_outputs(operator, inputs, attrs),
                kept,
            )
            write_whole(out, made.text())
            if task is not None:
                write_whole(task, made.task())
    if json:
        print(json_text({"solution": str(out), "task": str(task) if task is not None else None}))
        return
    print(f"wrote {out}" + (f" and {task}" if task is not None else ""))
