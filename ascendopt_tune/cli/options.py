"""Options that several commands share, and what they lead to: an operator, a case, the user's arrays."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import arguments
from ..case import Argument, AttrValue, Case, TensorSpec
from ..errors import CaseError, OperatorError
from ..evaluate.evaluator import Evaluator
from ..operator import Operator, Signature
from ..project import load_direct, load_project
from ..registry import load_operator, operator_names

Op = Annotated[str | None, typer.Argument(metavar="[OP]", help="A registry name, or an operator folder in CANN's layout.")]
Kernel = Annotated[Path | None, typer.Option("--kernel", help="Kernel file for direct launch (no tiling function).")]
Entry = Annotated[str | None, typer.Option("--entry", help="With --kernel: the __global__ function to launch.")]
BlockDim = Annotated[int | None, typer.Option("--block-dim", help="With --kernel: number of cores.", min=1)]
Define = Annotated[list[str], typer.Option("-D", help="With --kernel: MACRO=VALUE for the compiler; repeatable.")]
Input = Annotated[list[str], typer.Option("--input", help="NAME=DTYPE[d0,d1,...], random and seeded; repeatable.")]
Inputs = Annotated[Path | None, typer.Option("--inputs", help="Arrays by name: .npz or .safetensors.")]
Output = Annotated[list[str], typer.Option("--output", help="NAME=DTYPE[...] where it can't be inferred; repeatable.")]
Attr = Annotated[list[str], typer.Option("--attr", help="NAME=VALUE; repeatable.")]
ChipName = Annotated[str | None, typer.Option("--chip", help="Chip to model or tune for, e.g. ascend910b2.")]
Target = Annotated[str | None, typer.Option("--target", help="auto, virtual or npu.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of inputs and search.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout and nothing else there.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@dataclass(frozen=True)
class Subject:
    """What a command works on; ``arrays`` are the user's own inputs by name (empty: random ones are made)."""

    operator: Operator
    signature: Signature
    case: Case
    arrays: Mapping[str, arguments.Array]


def find_operator(
    op: str | None, kernel: Path | None, entry: str | None, block_dim: int | None, defines: Sequence[str]
) -> Operator:
    """The operator the command line names.

    Raises:
        OperatorError: nothing or two things named, or it can't be found.
    """
    if kernel is not None:
        if op is not None:
            raise OperatorError(f"both an operator ({op}) and --kernel {kernel} are given.", "Give one of them.")
        if entry is None or block_dim is None:
            raise OperatorError("--kernel needs --entry and --block-dim.", "Name the __global__ function and the cores.")
        pairs = tuple((d.partition("=")[0], d.partition("=")[2] or "1") for d in defines)
        return load_direct(kernel, entry, block_dim, pairs)
    if op is None:
        raise OperatorError("no operator is given.", f"Registry: {', '.join(operator_names())}; or a folder, or --kernel.")
    if Path(op).is_dir() and op not in operator_names():
        return load_project(Path(op))
    return load_operator(op)


def make_subject(
    operator: Operator,
    evaluator: Evaluator,
    *,
    input: Sequence[str],
    inputs: Path | None,
    output: Sequence[str],
    attr: Sequence[str],
) -> Subject:
    """Operator and case from what the command line says; without inputs, the first case of ``op.toml``.

    Raises:
        CaseError: a name, dtype, shape or value that doesn't fit the operator.
    """
    arrays = arguments.load_arrays(inputs) if inputs is not None else {}
    specs: dict[str, TensorSpec] = {
        name: TensorSpec(arguments.dtype_name(a.dtype), tuple(a.shape)) for name, a in arrays.items()
    }
    for name, spec in map(arguments.parse_tensor, input):
        if name in arrays:
            raise CaseError(f"{name} is given by --input and in {inputs}.", "Give it once.")
        specs[name] = spec
    outputs = dict(map(arguments.parse_tensor, output))
    if operator.direct is not None:
        attrs = dict(arguments.parse_attr(a, None) for a in attr)
        signature = arguments.direct_signature(operator, specs, outputs, attrs)
        infer = None
    else:
        signature = evaluator.describe(operator, operator.baseline).signature
        if not specs:
            return Subject(operator, signature, example_case(operator, signature, evaluator), {})
        attrs = dict(arguments.parse_attr(a, signature) for a in attr)
        infer = _inference(operator, evaluator)
    return Subject(operator, signature, arguments.build_case(signature, specs, attrs, outputs, infer), arrays)


def _inference(operator: Operator, evaluator: Evaluator) -> arguments.InferOutputs:
    def infer(inputs: tuple[Argument, ...], attrs: tuple[tuple[str, AttrValue], ...]) -> tuple[Argument, ...]:
        return evaluator.infer_outputs(operator, inputs, attrs)

    return infer


def example_case(operator: Operator, signature: Signature, evaluator: Evaluator) -> Case:
    """The first ``[[case]]`` of the operator's ``op.toml``.

    Raises:
        CaseError: there is none.
    """
    examples = operator.settings.get("case", [])
    if not examples:
        raise CaseError(
            f"no inputs are given for {operator.name}.",
            f"Give --input for {', '.join(p.name for p in signature.inputs)}, for example "
            f"--input {signature.inputs[0].name}={signature.inputs[0].dtypes[0]}[1024,1024].",
        )
    first = examples[0]
    inputs = dict(arguments.parse_tensor(f"{name}={text}") for name, text in first.get("inputs", {}).items())
    outputs = dict(arguments.parse_tensor(f"{name}={text}") for name, text in first.get("outputs", {}).items())
    attrs = {k: tuple(v) if isinstance(v, list) else v for k, v in first.get("attrs", {}).items()}
    return arguments.build_case(signature, inputs, attrs, outputs, _inference(operator, evaluator))


def print_json(document: Mapping[str, Any]) -> None:
    """The one document on stdout; NaN and infinities are refused rather than written as what is not JSON."""
    json.dump(document, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")
