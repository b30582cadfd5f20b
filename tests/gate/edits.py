"""Variants of the registry's operators that a few edits of their kernels make, through the gate."""

from __future__ import annotations

from collections.abc import Sequence

from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.outcome import Outcome
from ascendopt_tune.sources.arguments import build_case, parse_tensor
from ascendopt_tune.sources.registry import load_operator


def outcome_of(evaluator: Evaluator, name: str, inputs: str, edits: Sequence[tuple[str, str]]) -> Outcome:
    """What the gate says of operator ``name`` in the case with ``inputs``, each edit's first text in its kernel, which
    has it once, replaced by the second."""
    operator = load_operator(name)
    text = operator.baseline.kernel[operator.kernel_main]
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    case = build_case(
        evaluator.describe(operator).signature, dict(map(parse_tensor, inputs.split())), {}, {},
        lambda inputs, attrs: evaluator.infer_outputs(operator, inputs, attrs),
    )  # fmt: skip
    return Gate(operator, case, evaluator).evaluate(operator.baseline.with_kernel(operator.kernel_main, text)).outcome
