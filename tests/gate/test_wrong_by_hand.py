"""No wrong variant that was made by hand passes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from wrong_by_hand import Fault, faults

from ascendopt_tune.arguments import build_case, parse_tensor
from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator, Limits
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.operator import Pair
from ascendopt_tune.outcome import CompileFailed, Timed
from ascendopt_tune.registry import load_operator

ALL = list(faults())


class Bench:
    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.gate = cache(self._gate)

    def _gate(self, name: str, inputs: str) -> Gate:
        operator = load_operator(name)
        case = build_case(
            self.evaluator.describe(operator).signature, dict(map(parse_tensor, inputs.split())), {}, {},
            lambda given, attrs: self.evaluator.infer_outputs(operator, given, attrs),
        )  # fmt: skip
        gate = Gate(operator, case, self.evaluator)
        baseline = gate.evaluate(operator.baseline).outcome
        assert isinstance(baseline, Timed), baseline
        return gate

    @staticmethod
    def pair(gate: Gate, fault: Fault) -> Pair:
        operator = gate.operator
        pair = operator.baseline
        for part, old, new in fault.edits:
            path = operator.kernel_main if part == "kernel" else f"op_host/{operator.name}.cpp"
            text = (pair.kernel if part == "kernel" else pair.tiling)[path]
            assert text.count(old) == 1, (str(fault), old, text.count(old))
            text = text.replace(old, new)
            pair = pair.with_kernel(path, text) if part == "kernel" else pair.with_tiling(path, text)
        return pair


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("build")
    with Evaluator(toolkit.virtual(), limits=Limits(run_s=20), workers=2, build_dir=folder) as evaluator:
        yield Bench(evaluator)


@pytest.mark.parametrize("fault", ALL, ids=str)
def test_it_is_refused(bench: Bench, fault: Fault) -> None:
    gate = bench.gate(fault.operator, fault.inputs)
    outcome = gate.evaluate(bench.pair(gate, fault)).outcome
    assert not isinstance(outcome, Timed), outcome
    assert not isinstance(outcome, CompileFailed) or "what no header of AscendC offers" in outcome.reason, outcome
