"""tiles-first on the virtual NPU: a matrix of the registry's operators that is made tiles once, in the workspace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.operator import Pair
from ascendopt_tune.nouns.outcome import Hazard, Outcome, Timed
from ascendopt_tune.search.kernel.rules import applied, rewrites_of
from ascendopt_tune.sources.arguments import build_case, parse_tensor
from ascendopt_tune.sources.registry import load_operator


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(virtual(), workers=1) as opened:
        yield opened


def gate_of(name: str, inputs: list[str], evaluator: Evaluator) -> Gate:
    operator = load_operator(name)
    signature = evaluator.describe(operator).signature
    shapes = dict(map(parse_tensor, inputs))
    case = build_case(signature, shapes, {}, {}, lambda i, a: evaluator.infer_outputs(operator, i, a))
    return Gate(operator, case, evaluator, signature=signature)


def with_tiles(gate: Gate, matrix: str) -> Pair:
    pair = gate.operator.baseline
    found = rewrites_of(pair, gate.operator.auto_sync)["tiles-first"]
    (rewrite,) = (r for r in found if r.change.startswith(matrix))
    changed = applied(pair, (rewrite,))
    assert changed is not None
    return changed


def time_of(outcome: Outcome) -> float:
    assert isinstance(outcome, Timed), outcome
    return outcome.profile.task_duration_us


@pytest.mark.parametrize(("columns", "faster"), [(1000, True), (1024, False)])
def test_it_pays_where_rows_begin_anywhere(columns: int, faster: bool, evaluator: Evaluator) -> None:
    """Rows of 2000 bytes, and of 2048, which begin at multiples of 512."""
    gate = gate_of("matmul", ["a=float16[512,512]", f"b=float16[512,{columns}]"], evaluator)
    rows, tiles = (time_of(gate.evaluate(p).outcome) for p in (gate.operator.baseline, with_tiles(gate, "bGm")))
    assert (tiles < rows) is faster


def test_without_the_meeting_a_core_reads_what_another_one_has_not_written(evaluator: Evaluator) -> None:
    gate = gate_of("matmul", ["a=float16[256,200]", "b=float16[200,1000]"], evaluator)
    tiles = with_tiles(gate, "bGm")
    alone = {p: text.replace("CrossCoreWaitFlag(0);", "") for p, text in tiles.kernel.items()}
    assert alone != tiles.kernel
    outcome = gate.evaluate(replace(tiles, kernel=alone)).outcome
    assert isinstance(outcome, Hazard)
    assert "CopyTilesOfbGm" in outcome.reason
