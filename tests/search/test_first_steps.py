"""The first evaluations of a search: what goes together, and what is blamed when that fails."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_kernel_rules import TEXT, baseline, operator, state, tried

from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.history import History
from ascendopt_tune.nouns.operator import Pair
from ascendopt_tune.nouns.outcome import Failure, Hazard, OutOfBounds, WrongResult
from ascendopt_tune.nouns.run_options import Schedule
from ascendopt_tune.search.kernel.motifs import MOTIFS, find
from ascendopt_tune.search.kernel.rules import KernelRules
from ascendopt_tune.search.proposer import JOINT, SearchState
from ascendopt_tune.search.schedule import plan

MORE = """  __aicore__ inline void More(uint32_t i) {
    DataCopyExtParams row{1, static_cast<uint32_t>(n * sizeof(float)), 0, 0, 0};
    DataCopyPad(t, xGm[i * n], row, {false, 0, 0, 0});
    Muls(t, t, 3.0f, n);
    Add(z, z, t, n);
  }
"""
FOLDERS = {"buffers", "copies", "cores", "cube", "repeated", "vectors", "waiting"}


def test_a_motifs_kind_is_its_folder() -> None:
    assert {m.kind for m in MOTIFS} == FOLDERS
    assert find("flag-pair").kind == "waiting"


def slow() -> str:
    """Barriers, tensors that are held too long, a copy with padding, a product and its sum."""
    text = TEXT.replace("Compute(i);", "More(i);\n      Compute(i);", 1)
    return text.replace("  __aicore__ inline void Compute", f"{MORE}  __aicore__ inline void Compute", 1)


def start(columns: int = 1024) -> SearchState:
    """A search that has evaluated its baseline, on rows of ``columns`` halves."""
    op = operator()
    op = replace(op, baseline=Pair(op.baseline.tiling, {"k.cpp": slow()}))
    spec = TensorSpec("float16", (1, columns))
    return replace(state(baseline(op), op=op), case=Case((spec,), (spec,)))


@pytest.mark.parametrize(
    ("outcome", "blamed"),
    [
        (Hazard("nothing orders them"), {"waiting"}),
        (WrongResult("no"), {"vectors", "copies", "repeated"}),
        (OutOfBounds("past its end"), {"buffers", "vectors", "copies"}),
    ],
)
def test_when_everything_together_fails_it_is_tried_without_what_is_blamed(outcome: Failure, blamed: set[str]) -> None:
    at = start()
    (everything,) = KernelRules().propose(at, 1)
    assert {"waiting", "vectors", "copies", "buffers"} <= {find(m.family).kind for m in everything.moves}
    history = tried(list(at.history), everything, outcome)
    later = KernelRules().propose(replace(at, history=History.of(history)), 1)[0]
    assert {m.site for m in later.moves} == {m.site for m in everything.moves if find(m.family).kind not in blamed}


def test_copies_without_padding_join_where_tensors_are_whole_blocks() -> None:
    assert find("copy-without-pad").together == "whole-blocks"
    for columns, joined in ((1024, True), (1023, False)):
        (first,) = KernelRules().propose(start(columns), 1)
        assert ("copy-without-pad" in {m.family for m in first.moves}) == joined


def test_the_opening_has_some_of_everything_and_the_rest_behind_it() -> None:
    steps = plan(Schedule.OPENING, {1: 10, 2: 10}, baseline(), joint=4)
    assert steps[:3] == [(JOINT, 2), (2, 2), (1, 4)]
    assert {stage: sum(n for s, n in steps if s == stage) for stage in (1, 2, JOINT)} == {1: 10, 2: 10, JOINT: 4}
    assert plan(Schedule.PAPER, {1: 10, 2: 10}, baseline(), joint=4) == [(JOINT, 4), (1, 10), (2, 10)]
    short = [(2, 3), (1, 3), (2, 3), (1, 3), (2, 2)]
    assert plan(Schedule.OPENING, {1: 10, 2: 10}, baseline()) == [(2, 2), (1, 4), *short]
