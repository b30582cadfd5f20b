"""Meetings of all cores, and flags in their place, on the virtual NPU: a kernel that was written with meetings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.operator import Pair
from ascendopt_tune.nouns.outcome import Hazard, Outcome, Timed
from ascendopt_tune.search.kernel.rules import applied, rewrites_of
from ascendopt_tune.sources.project import load_project

OPERATOR = Path(__file__).resolve().parent / "operators" / "matmul_meeting"
#: The vector cores of a group take what the cube core of the next group multiplied.
OWN, NEXT = "group = GetBlockIdx() / GetTaskRatio();", "group = (GetBlockIdx() / GetTaskRatio() + 1) % GetBlockNum();"


def exactly(a: Any, b: Any) -> Any:
    product = a.double() @ b.double()
    return product.where(product > 0, product * 0.01)


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    operator = replace(load_project(OPERATOR), reference=exactly)
    m, k, n = 1000, 96, 64  # 32 blocks of rows on 24 groups: in the second round 16 of them have none
    case = Case((TensorSpec("float16", (m, k)), TensorSpec("float16", (k, n))), (TensorSpec("float32", (m, n)),), ())
    folder = tmp_path_factory.mktemp("build")
    with Evaluator(toolkit.virtual(), "ascend910b2", workers=1, build_dir=folder) as evaluator:
        yield Gate(operator, case, evaluator, signature=evaluator.describe(operator).signature)


def with_flags(pair: Pair) -> dict[str, Pair]:
    """What the motif offers, by place and way."""
    out = {}
    for rewrite in rewrites_of(pair, False)["cross-core-flags"]:
        changed = applied(pair, (rewrite,))
        assert changed is not None
        out[rewrite.site] = changed
    return out


def time_of(outcome: Outcome) -> float:
    assert isinstance(outcome, Timed), outcome
    return outcome.profile.task_duration_us


def test_flags_are_right_and_faster_than_meetings(gate: Gate) -> None:
    written = gate.operator.baseline
    found = with_flags(written)
    assert [site.rsplit("/", 1)[-1] for site in found] == ["all", "group", "all", "group", "all"]
    meetings = time_of(gate.evaluate(written).outcome)
    times = [time_of(gate.evaluate(pair).outcome) for pair in found.values()]
    assert min(times) == times[0] < 0.8 * meetings
    assert max(times) < meetings


def test_flags_within_a_group_are_refused_where_another_group_reads(gate: Gate) -> None:
    written = gate.operator.baseline
    crossed = replace(written, kernel={p: text.replace(OWN, NEXT) for p, text in written.kernel.items()})
    meetings = time_of(gate.evaluate(crossed).outcome)
    found = with_flags(crossed)
    ways = {site: site.rsplit("/", 1)[-1] if "/" in site else "group" for site in found}
    for site, pair in found.items():
        outcome = gate.evaluate(pair).outcome
        if ways[site] == "group":
            assert isinstance(outcome, Hazard)
            assert "is not ordered after" in outcome.reason
        else:
            assert time_of(outcome) < meetings


def test_a_direction_that_is_left_out_is_reported(gate: Gate) -> None:
    """Without the flag that a product is read, the next one is written over it."""
    flags = with_flags(gate.operator.baseline)["all"]
    for flag in ("CrossCoreSetFlag<2, PIPE_MTE3>(1);", "CrossCoreWaitFlag(1);"):
        assert all(flag in text for text in flags.kernel.values())
        flags = replace(flags, kernel={p: text.replace(flag, "") for p, text in flags.kernel.items()})
    outcome = gate.evaluate(flags).outcome
    assert isinstance(outcome, Hazard)
    assert "Activate" in outcome.reason
