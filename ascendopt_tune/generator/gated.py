"""A generated operator in the gate."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from ..evaluate.evaluator import Evaluator
from ..evaluate.gate import Gate
from ..nouns.case import Case, TensorSpec
from ..nouns.operator import Operator
from ..nouns.outcome import CompileFailed, Timed
from ..nouns.profile import Profile
from ..sources.arguments import build_case, parse_tensor
from ..sources.registry import load_folder
from .generated import Generated


def judged(generated: Generated, evaluator: Evaluator) -> Profile | str:
    """The operator's profile at the example's shapes, where it passes; else the outcome and its reason."""
    with tempfile.TemporaryDirectory(prefix="ascendopt-generated-") as name:
        folder = Path(name).resolve() / generated.name
        generated.write(folder)
        operator = load_folder(folder)
        case = example_case(operator, evaluator, generated)
        outcome = Gate(operator, case, evaluator).evaluate(operator.baseline).outcome
        if isinstance(outcome, Timed):
            return outcome.profile
        text = f"{type(outcome).__name__}: {outcome.reason}"
        if isinstance(outcome, CompileFailed) and outcome.log:
            text += f"\n{outcome.log}"
        return text.replace(f"{folder}/", "")  # the same text wherever the folder is


def example_case(
    operator: Operator,
    evaluator: Evaluator,
    generated: Generated,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> Case:
    """The example's case, or with other shapes of the inputs.

    Raises:
        HostProgramError, CaseError: the operator doesn't take it.
    """
    signature = evaluator.describe(operator).signature
    tensors: dict[str, TensorSpec] = {}
    for i in generated.graph.inputs:
        if i.shape is not None:
            shape = i.example if shapes is None else shapes[i.name]
            name, spec = parse_tensor(f"{i.name}={i.dtype}[{','.join(map(str, shape))}]")
            tensors[name] = spec
    given = {a.name: a.default for a in signature.attrs if a.default is not None}
    given |= generated.attributes
    return build_case(signature, tensors, given, {}, lambda i, a: evaluator.infer_outputs(operator, i, a))
