"""Stage I with the default budget finds verified improvements on the registry's own operators.

The winner of a run has passed the gate twice, the second time in a fresh process on inputs the search never saw; what
is asserted here is only that the search is able to find one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendopt_tune import Cache, tune_case
from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.sources.arguments import build_case, parse_tensor
from ascendopt_tune.sources.registry import load_operator

CASES = {
    "add": ["x=float16[128,1024]", "y=float16[128,1024]"],
    "silu": ["x=float32[64,1000]"],
    "swiglu": ["x=float16[64,2048]"],
    "rms_norm": ["x=float16[64,1024]", "gamma=float16[1024]"],
    "softmax": ["x=float32[32,1000]"],
    "reduce_sum_last": ["x=float32[64,2000]"],
    "dynamic_quant": ["x=float16[64,1024]"],
}


#: Run by every test run; the others by `make search-battery`.
ALWAYS = {"softmax"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in ALWAYS else [pytest.mark.battery]) for name in CASES]
)
def test_the_default_budget_finds_a_verified_improvement(name: str, tmp_path: Path) -> None:
    operator = load_operator(name)
    with Evaluator(virtual(), workers=1) as evaluator:
        signature = evaluator.describe(operator).signature
        inputs = dict(map(parse_tensor, CASES[name]))
        case = build_case(signature, inputs, {}, {}, lambda i, a: evaluator.infer_outputs(operator, i, a))
    record = tune_case(operator, case, cache=Cache(root=tmp_path / "cache", layers=()))
    assert record.entry.provenance.evaluations <= 40
    assert record.entry.improved
    assert record.best.task_duration_us < 0.99 * record.baseline.task_duration_us
    assert all(isinstance(t.outcome, Timed) or t.outcome.reason for t in record.history)
    again = tune_case(operator, case, cache=Cache(root=tmp_path / "cache", layers=()))
    assert again.cached
    assert again.best == record.best
