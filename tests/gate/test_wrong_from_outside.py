"""Variants written by somebody who had not read the gate, of those that it accepted at first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator, ProcessLimits
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.operator import Operator
from ascendopt_tune.nouns.outcome import Timed, WrongResult
from ascendopt_tune.sources.arguments import build_case, parse_tensor
from ascendopt_tune.sources.registry import load_operator

_ROWS = "    for (uint32_t i = 0; i < rows; i++) {\n      DataCopyPad(local[i * alignedCols],"
_WHOLE_ROWS = "rowLength * sizeof(T) % 32 == 0 && cols == rowLength"
_TALL = "x=float16[40000,64] index=int32[500]"


def _loaded(count: str, seen: str) -> str:
    """Rows of x that are taken for a run are loaded with one copy."""
    return (
        f"    if ({seen} && {_WHOLE_ROWS}) {{\n"
        f"      DataCopyExtParams all{{1, static_cast<uint32_t>({count} * cols * sizeof(T)), 0, 0, 0}};\n"
        "      DataCopyPad(local, xGm[Token(row) * rowLength], all, padParams);\n"
        "      queue.EnQue(local);\n      return;\n    }\n" + _ROWS
    )


_ADD = "    Add(zLocal, xLocal, yLocal, count);\n"


def _sampled(condition: str, shortcut: str) -> str:
    return f"    PipeBarrier<PIPE_ALL>();\n    if ({condition}) {{\n      {shortcut}\n    }} else {{\n  {_ADD}    }}\n"


_EQUAL = "static_cast<float>(xLocal.GetValue({0})) == static_cast<float>(yLocal.GetValue({0}))"
WRONG = {
    "halves away from zero": (
        "dynamic_quant", "x=float16[40,133]", "RoundMode::CAST_RINT, rowLength", "RoundMode::CAST_ROUND, rowLength",
    ),
    "small rows are zero": (
        "dynamic_quant", "x=bfloat16[400,133]", "maximum > 0.0f ?", "maximum > 1e-30f ?",
    ),
    "a run by its ends": (
        "moe_gather_rows", _TALL, _ROWS, _loaded("rows", "rows > 2 && Token(row + rows - 1) - Token(row) == rows - 1"),
    ),
    "alike by two samples": (
        "add", "x=float16[64,1000] y=float16[64,1000]", _ADD,
        _sampled(f"{_EQUAL.format(0)} && {_EQUAL.format('count - 1')}", "Add(zLocal, xLocal, xLocal, count);"),
    ),
    "cancelled by two samples": (
        "add", "x=int32[64,1000] y=int32[64,1000]", _ADD,
        _sampled("xLocal.GetValue(0) + yLocal.GetValue(0) == 0 && xLocal.GetValue(1) + yLocal.GetValue(1) == 0",
                 "Duplicate(zLocal, static_cast<T>(0), count);"),
    ),
}  # fmt: skip
RIGHT = {
    "by the reciprocal": (
        "dynamic_quant", "x=float16[40,133]", "INT8_MAXIMUM / maximum :", "INT8_MAXIMUM * (1.0f / maximum) :",
    ),
    "a run by all its steps": (
        "moe_gather_rows", _TALL, _ROWS,
        "    bool run = true;\n    for (uint32_t i = 1; i < rows; i++) run = run && Token(row + i) == Token(row) + i;\n"
        + _loaded("rows", "run"),
    ),
}  # fmt: skip


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


@pytest.mark.parametrize("what", [*WRONG, *RIGHT])
def test_a_variant(evaluator: Evaluator, what: str) -> None:
    name, inputs, old, new = (WRONG | RIGHT)[what]
    operator = load_operator(name)
    text = operator.baseline.kernel[operator.kernel_main]
    assert text.count(old) == 1
    gate = _gate(operator, inputs, evaluator)
    outcome = gate.evaluate(operator.baseline.with_kernel(operator.kernel_main, text.replace(old, new))).outcome
    assert isinstance(outcome, WrongResult if what in WRONG else Timed), outcome


def test_a_result_that_is_not_finite_hides_only_itself(evaluator: Evaluator) -> None:
    """z = ln(x), without a reference: half of every random line is NaN, whose other half is held all the same."""
    operator = load_operator("add")
    text = operator.baseline.kernel[operator.kernel_main]
    text = text.replace(_ADD, "    Ln(zLocal, xLocal, count);\n    Muls(yLocal, yLocal, static_cast<T>(0), count);\n")
    cut = text.replace("    Ln(", "    Mins(xLocal, xLocal, 1.0e6f, count);\n    PipeBarrier<PIPE_V>();\n    Ln(")
    assert text != cut
    original = operator.baseline.with_kernel(operator.kernel_main, text)
    operator = replace(operator, baseline=original, reference=None)
    gate = _gate(operator, "x=float32[32,128] y=float32[32,128]", evaluator)
    assert isinstance(gate.evaluate(original).outcome, Timed)
    outcome = gate.evaluate(original.with_kernel(operator.kernel_main, cut)).outcome
    assert isinstance(outcome, WrongResult), outcome
    assert "first at" in outcome.reason


def test_a_result_that_only_its_rounding_makes_infinite_is_infinite(evaluator: Evaluator) -> None:
    operator = load_operator("rms_norm")
    text = operator.baseline.kernel[operator.kernel_main]
    product = "      Mul(xFloat, xFloat, gammaFloat, count);\n      PipeBarrier<PIPE_V>();\n"
    bounds = "".join(
        f"      {call}(xFloat, xFloat, {bound}f, count);\n      PipeBarrier<PIPE_V>();\n"
        for call, bound in (("Mins", "65504.0"), ("Maxs", "-65504.0"))
    )
    assert text.count(product) == 1
    gate = _gate(operator, "x=float16[400,133] gamma=float16[133]", evaluator)
    outcome = gate.evaluate(
        operator.baseline.with_kernel(operator.kernel_main, text.replace(product, product + bounds))
    ).outcome
    assert isinstance(outcome, WrongResult), outcome
    assert "inf" in outcome.reason
