"""Lowers a program and puts it through the gate, as ``ascendopt-tune run`` does with the folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ascendopt_tune.dsl import Program
from ascendopt_tune.dsl.lower import Lowered, lower, write_project
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Checked, Gate
from ascendopt_tune.nouns.case import AttrValue
from ascendopt_tune.nouns.operator import Operator
from ascendopt_tune.sources.arguments import build_case, parse_tensor
from ascendopt_tune.sources.registry import load_folder

PROGRAMS = Path(__file__).resolve().parent / "programs"
Attrs = Mapping[str, AttrValue]


def project(program: Program, folder: Path, changed: Mapping[str, tuple[str, str]] | None = None) -> Operator:
    """The operator in ``folder``; ``changed``: a text in a file of it, and what replaces it once."""
    lowered = lower(program)
    files = dict(lowered.files)
    for path, (old, new) in (changed or {}).items():
        assert files[path].count(old), f"{old!r} isn't in {path}"
        files[path] = files[path].replace(old, new, 1)
    write_project(Lowered(lowered.name, files), folder)
    return load_folder(folder)


def checked(evaluator: Evaluator, operator: Operator, inputs: str, attrs: Attrs | None = None) -> Checked:
    """The gate's verdict on the pair as it was printed; ``inputs`` as ``x=float32[4,8] y=...``."""
    signature = evaluator.describe(operator).signature
    tensors = dict(map(parse_tensor, inputs.split()))
    given = {a.name: a.default for a in signature.attrs} | dict(attrs or {})
    case = build_case(signature, tensors, given, {}, lambda i, a: evaluator.infer_outputs(operator, i, a))
    gate = Gate(operator, case, evaluator, seed=0, signature=signature)
    return gate.evaluate(operator.baseline)
