"""Variants on cube cores, of mixed kernels, tiling programs and whole numbers, by somebody who hadn't read its inputs.

CI runs those that one rule alone finds, and the right ones that another rule refused; the battery runs all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from right_from_outside_cube import right_from_outside
from wrong_by_hand import Fault
from wrong_from_outside_cube import wrong_from_outside

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator, ProcessLimits
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.operator import Pair
from ascendopt_tune.nouns.outcome import CompileFailed, Timed
from ascendopt_tune.sources.arguments import build_case, parse_attrs, parse_tensor
from ascendopt_tune.sources.registry import load_operator

_ALWAYS = re.compile(
    r"flash_attention-(workspace (64|without)|three slots in|scores two steps)|no workspace for the library"
    r"|a last group without|first row is 0"
)
# What is known to pass: a mask that only scores below it would tell, which take factors of more than 5,000; and a
# buffer freed early, behind which the virtual NPU's GetTensorC waits for the vector unit and CANN's doesn't.
_PASSES = {"flash_attention-mask of -1e9", "matmul_gelu-sums freed before the division"}


class Bench:
    """The gates of the variants' cases, each made once."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.gate = cache(self._gate)

    def _gate(self, name: str, inputs: str, attrs: str) -> Gate:
        operator = load_operator(name)
        signature = self.evaluator.describe(operator).signature
        case = build_case(
            signature, dict(map(parse_tensor, inputs.split())), parse_attrs(attrs.split(), signature), {},
            lambda inputs, attrs: self.evaluator.infer_outputs(operator, inputs, attrs),
        )  # fmt: skip
        gate = Gate(operator, case, self.evaluator)
        assert isinstance(gate.evaluate(operator.baseline).outcome, Timed)
        return gate

    @staticmethod
    def pair(gate: Gate, fault: Fault) -> Pair:
        operator, pair = gate.operator, gate.operator.baseline
        paths = {"host": f"op_host/{operator.name}.cpp", "fields": f"op_host/{operator.name}_tiling.h"}
        for part, old, new in fault.edits:
            path = paths.get(part, operator.kernel_main)
            text = (pair.tiling if part in paths else pair.kernel)[path]
            assert text.count(old) == 1, (str(fault), old, text.count(old))
            pair = (pair.with_tiling if part in paths else pair.with_kernel)(path, text.replace(old, new))
        return pair


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Evaluator(toolkit.virtual(), limits=ProcessLimits(run_s=20), workers=1) as evaluator:
        yield Bench(evaluator)


def some(faults: Iterator[Fault]) -> list[Any]:
    return [pytest.param(f, id=str(f), marks=[] if _ALWAYS.search(str(f)) else [pytest.mark.battery]) for f in faults]


@pytest.mark.parametrize("fault", some(wrong_from_outside()))
def test_a_wrong_variant_is_refused(bench: Bench, fault: Fault) -> None:
    gate = bench.gate(fault.operator, fault.inputs, fault.attrs)
    pair = bench.pair(gate, fault)
    outcome = gate.evaluate(pair).outcome
    if isinstance(outcome, Timed):
        outcome = gate.confirm(pair).outcome
    assert isinstance(outcome, Timed) == (str(fault) in _PASSES), outcome
    assert not isinstance(outcome, CompileFailed), outcome


@pytest.mark.parametrize("right", some(right_from_outside()))
def test_a_right_variant_is_accepted(bench: Bench, right: Fault) -> None:
    gate = bench.gate(right.operator, right.inputs, right.attrs)
    pair = bench.pair(gate, right)
    for outcome in (gate.evaluate(pair).outcome, gate.confirm(pair).outcome):
        assert isinstance(outcome, Timed), outcome
