"""Rewinds of the registry's kernels go through the whole gate: they cost time, not results.

A sample: each motif once, on the first operator of the list that has something of it to take away, so that the set
stays the same and short.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.operator import Operator, Pair
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.search.kernel.motifs import MOTIFS
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram
from ascendopt_tune.search.kernel.rules import applied, grouped, rewrites_of
from ascendopt_tune.sources.arguments import build_case, parse_tensor
from ascendopt_tune.sources.registry import load_operator

CASES = {
    "silu": ["x=float32[64,1000]"],
    "dynamic_quant": ["x=float16[48,1024]"],
}


def _program(operator: Operator) -> KernelProgram:
    return KernelProgram(operator.baseline.kernel, operator.baseline.tiling, None, operator.auto_sync)


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(virtual(), workers=1) as opened:
        yield opened


@pytest.mark.parametrize("name", CASES)
def test_rewinds_pass_the_gate(name: str, evaluator: Evaluator) -> None:
    sample: dict[str, Pair] = {}
    earlier = [_program(load_operator(n)) for n in list(CASES)[: list(CASES).index(name)]]
    operator = load_operator(name)
    program = _program(operator)
    for motif in MOTIFS:
        if any(next(motif.rewind(p), None) for p in earlier):
            continue
        rewrite = next(motif.rewind(program), None)
        if rewrite is not None:
            sample[motif.name] = Pair(rewrite.tiling(program), rewrite.kernel(program))
    assert sample
    signature = evaluator.describe(operator).signature
    inputs = dict(map(parse_tensor, CASES[name]))
    case = build_case(signature, inputs, {}, {}, lambda i, a: evaluator.infer_outputs(operator, i, a))
    gate = Gate(operator, case, evaluator, signature=signature)
    names = list(sample)
    outcomes = {names[i]: c.outcome for i, c in gate.evaluate_many({i: sample[n] for i, n in enumerate(names)})}
    refused = {n: o.reason for n, o in outcomes.items() if not isinstance(o, Timed)}
    assert not refused


ON_CUBES = [
    (
        "flash_attention",
        ("deferred-answer", "merged-loads", "rings-for-queues"),
        ["q=float16[2,1,64]", "k=float16[2,256,64]", "v=float16[2,256,64]"],
        {"scale": 0.125, "causal": True},
    ),
    (
        "matmul",
        ("merged-loads", "rings-for-queues"),
        ["a=float16[40,200]", "b=float16[200,300]", "bias=float16[300]"],
        {},
    ),
    ("matmul_gelu", ("groups-first", "rings-for-queues"), ["a=float16[40,64]", "b=float16[64,300]"], {}),
]


@pytest.mark.parametrize(("name", "motifs", "inputs", "attrs"), ON_CUBES, ids=[row[0] for row in ON_CUBES])
def test_motifs_of_cube_cores_pass_the_gate(
    name: str, motifs: tuple[str, ...], inputs: list[str], attrs: dict[str, bool | float], evaluator: Evaluator
) -> None:
    """All at once, in kernels of cube cores alone and of both kinds."""
    operator = load_operator(name)
    pair = operator.baseline
    for motif in motifs:
        changed = applied(pair, grouped(rewrites_of(pair, operator.auto_sync)[motif])[0])
        assert changed is not None
        assert changed != pair
        pair = changed
    signature = evaluator.describe(operator).signature
    shapes = dict(map(parse_tensor, inputs))
    case = build_case(signature, shapes, attrs, {}, lambda i, a: evaluator.infer_outputs(operator, i, a))
    gate = Gate(operator, case, evaluator, signature=signature)
    ((_, checked),) = gate.evaluate_many({0: pair})
    assert isinstance(checked.outcome, Timed), checked.outcome
