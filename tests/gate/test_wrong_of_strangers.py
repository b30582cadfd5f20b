"""Faults that the gate accepted in operators of strangers, as faults of the registry's operators; and right twins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator, ProcessLimits
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.operator import Operator
from ascendopt_tune.nouns.outcome import Timed, WrongResult
from ascendopt_tune.sources.arguments import build_case, parse_tensor
from ascendopt_tune.sources.registry import load_operator


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(toolkit.virtual(), limits=ProcessLimits(run_s=20), workers=1) as made:
        yield made


def _gate(operator: Operator, inputs: str, evaluator: Evaluator) -> Gate:
    signature = evaluator.describe(operator).signature
    case = build_case(
        signature, dict(map(parse_tensor, inputs.split())), {}, {},
        lambda inputs, attrs: evaluator.infer_outputs(operator, inputs, attrs),
    )  # fmt: skip
    return Gate(operator, case, evaluator)


def _changed(operator: Operator, *edits: tuple[str, str]) -> Operator:
    text = operator.baseline.kernel[operator.kernel_main]
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return replace(operator, baseline=operator.baseline.with_kernel(operator.kernel_main, text))


def _biased(x: Any, gamma: Any, epsilon: float = 1e-6) -> Any:
    """(x + gamma) / sqrt(mean((x + gamma)^2) + epsilon)"""
    both = x + gamma
    return both / (both.float().square().mean(-1, keepdim=True) + epsilon).sqrt()


_ADDED = (
    "        ToFloat(xFloat, xLocal[i * tileCols], rowLength);\n",
    "        ToFloat(xFloat, xLocal[i * tileCols], rowLength);\n"
    "        Add(xFloat, xFloat, gammaFloat, rowLength);\n        PipeBarrier<PIPE_V>();\n",
)
_NO_GAIN = ("      Mul(xFloat, xFloat, gammaFloat, count);\n      PipeBarrier<PIPE_V>();\n", "")
_EPSILON = "    Adds(sum, sum, epsilon, 1);\n"


@pytest.mark.parametrize(
    ("instead", "passes"),
    [
        pytest.param("    Adds(sum, sum, 2.0f * epsilon, 1);\n", False, id="doubled"),
        pytest.param("    Adds(sum, sum, epsilon * averageFactor, 1);\n", False, id="before the mean"),
        pytest.param("    Maxs(sum, sum, epsilon, 1);\n", False, id="as a lower bound"),
        pytest.param("    Adds(sum, sum, 0.5f * epsilon, 1);\n    PipeBarrier<PIPE_V>();\n"
                     "    Adds(sum, sum, 0.5f * epsilon, 1);\n", True, id="in halves"),
    ],
)  # fmt: skip
def test_an_epsilon_beside_a_sum_of_two_inputs(evaluator: Evaluator, instead: str, passes: bool) -> None:
    operator = replace(_changed(load_operator("rms_norm"), _ADDED, _NO_GAIN), reference=_biased)
    gate = _gate(operator, "x=float16[150,133] gamma=float16[133]", evaluator)
    assert isinstance(gate.evaluate(operator.baseline).outcome, Timed)
    outcome = gate.evaluate(_changed(operator, (_EPSILON, instead)).baseline).outcome
    assert isinstance(outcome, Timed if passes else WrongResult), outcome
