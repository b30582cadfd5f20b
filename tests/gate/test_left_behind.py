"""What a kernel may not leave behind for the next one on its cores, unless the original does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator, ProcessLimits
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.operator import Pair
from ascendopt_tune.nouns.outcome import Hazard, Timed
from ascendopt_tune.sources.registry import load_operator

_END, _CUBE_END = "  op.Process();\n", "    CopyOut(m, n, rows, columns);\n  }\n\n  // Rows of global"
_VECTOR_END = "      if (mine > 0) {\n        CopyOut(begin);\n      }\n    }\n"


def _half(*shape: int) -> TensorSpec:
    return TensorSpec("float16", shape)


_ADD = Case((TensorSpec("float32", (40, 133)),) * 2, (TensorSpec("float32", (40, 133)),))
_MATMUL = Case((_half(40, 64), _half(64, 48), None), (_half(40, 48),))
_ATTENTION = Case(
    (_half(1, 40, 32), _half(1, 70, 32), _half(1, 70, 32)), (_half(1, 40, 32),), (("causal", False), ("scale", 0.2))
)


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(toolkit.virtual(), limits=ProcessLimits(run_s=20), workers=1) as made:
        yield made


@pytest.mark.parametrize(
    ("name", "case", "place", "left", "undone", "told"),
    [
        pytest.param("add", _ADD, _END, f"{_END}  SetMaskCount();\n", "  SetMaskNorm();\n",
                     "counter mode that stays switched on", id="counter mode"),
        pytest.param("matmul", _MATMUL, _CUBE_END,
                     _CUBE_END.replace("columns);\n", "columns);\n    SetHF32Mode(true);\n", 1),
                     "    SetHF32Mode(false);\n", "float32 that stays shortened in products", id="HF32"),
        pytest.param("flash_attention", _ATTENTION, _VECTOR_END,
                     f"{_VECTOR_END}    CrossCoreSetFlag<1, PIPE_MTE3>(5);\n", "    CrossCoreWaitFlag(5);\n",
                     "a flag between cores that nobody has waited for", id="a flag between cores"),
    ],
)  # fmt: skip
def test_nothing_is_left_for_the_next_kernel(
    evaluator: Evaluator, name: str, case: Case, place: str, left: str, undone: str, told: str
) -> None:
    operator = load_operator(name)
    text = operator.baseline.kernel[operator.kernel_main]
    assert text.count(place) == 1
    last = next(line for line in left.splitlines(True) if line not in place.splitlines(True))

    def pair(instead: str) -> Pair:
        return operator.baseline.with_kernel(operator.kernel_main, text.replace(place, instead))

    wrong, right = pair(left), pair(left.replace(last, last + undone))
    gate = Gate(operator, case, evaluator)
    outcome = gate.evaluate(wrong).outcome
    assert isinstance(outcome, Hazard), outcome
    assert told in outcome.reason
    outcome = gate.evaluate(right).outcome
    assert isinstance(outcome, Timed), outcome
    own = Gate(replace(operator, baseline=wrong), case, evaluator)
    outcome = own.evaluate(wrong).outcome  # the original's own
    assert isinstance(outcome, Timed), outcome
