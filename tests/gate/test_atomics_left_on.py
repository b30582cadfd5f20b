"""A candidate may not end with atomic accumulation switched on, unless the original does."""

from __future__ import annotations

from dataclasses import replace

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator, ProcessLimits
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.operator import Pair
from ascendopt_tune.nouns.outcome import Hazard, Timed
from ascendopt_tune.sources.registry import load_operator

_END = "  op.Process();\n"
_LEFT, _OFF = f"{_END}  SetAtomicAdd<float>();\n", f"{_END}  SetAtomicAdd<float>();\n  SetAtomicNone();\n"


def test_atomic_accumulation_is_switched_off_at_the_end() -> None:
    """What runs next on the core would inherit it, unless it begins with a TPipe."""
    operator = load_operator("add")
    text = operator.baseline.kernel[operator.kernel_main]
    assert text.count(_END) == 1
    spec = TensorSpec("float32", (40, 133))
    case = Case((spec, spec), (spec,))

    def ending(with_: str) -> Pair:
        return operator.baseline.with_kernel(operator.kernel_main, text.replace(_END, with_))

    with Evaluator(toolkit.virtual(), limits=ProcessLimits(run_s=20), workers=1) as evaluator:
        gate = Gate(operator, case, evaluator)
        left = gate.evaluate(ending(_LEFT)).outcome
        assert isinstance(left, Hazard), left
        assert "atomic accumulation that stays switched on" in left.reason
        off = gate.evaluate(ending(_OFF)).outcome
        assert isinstance(off, Timed), off
        own = Gate(replace(operator, baseline=ending(_LEFT)), case, evaluator)
        habit = own.evaluate(ending(_LEFT)).outcome  # the original's own
        assert isinstance(habit, Timed), habit
