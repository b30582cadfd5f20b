"""The first evaluations of a search: what goes together, and what is blamed when that fails."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_kernel_rules import TEXT, baseline, operator, profile, state, tried

from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.history import History
from ascendopt_tune.nouns.operator import Candidate, Pair
from ascendopt_tune.nouns.outcome import Failure, Hazard, OutOfBounds, Timed, WrongResult
from ascendopt_tune.nouns.run_options import Schedule
from ascendopt_tune.nouns.trial import Trial
from ascendopt_tune.search.kernel.motifs import MOTIFS, find
from ascendopt_tune.search.kernel.rules import KernelRules
from ascendopt_tune.search.proposer import JOINT, SearchState
from ascendopt_tune.search.schedule import plan
from ascendopt_tune.search.tried import prior
from ascendopt_tune.sources.registry import load_operator

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
    assert steps[:5] == [(JOINT, 2), (2, 1), (1, 1), (2, 1), (1, 3)]
    assert {stage: sum(n for s, n in steps if s == stage) for stage in (1, 2, JOINT)} == {1: 10, 2: 10, JOINT: 4}
    assert plan(Schedule.PAPER, {1: 10, 2: 10}, baseline(), joint=4) == [(JOINT, 4), (1, 10), (2, 10)]
    short = [(2, 3), (1, 3), (2, 3), (1, 3), (2, 2)]
    assert plan(Schedule.OPENING, {1: 10, 2: 10}, baseline()) == [(2, 1), (1, 1), (2, 1), (1, 3), *short]


RINGS = {"rings-for-queues", "shared-buffers"}


def registered() -> SearchState:
    """A search for the registry's add that has evaluated its baseline."""
    op = load_operator("add")
    spec = TensorSpec("float16", (64, 1024))
    first = Trial(Candidate(0, op.baseline, None, "baseline", "as written"), Timed(profile(100.0)))
    return replace(state([first], op=op), case=Case((spec, spec), (spec,)))


def test_what_changes_the_whole_kernel_goes_behind_the_rest() -> None:
    """Queues are made rings, and these parts of one buffer, in the kernel that the other motifs leave."""
    (everything,) = KernelRules().propose(registered(), 1)
    families = [m.family for m in everything.moves]
    assert set(families) > RINGS
    assert families[-2:] == ["rings-for-queues", "shared-buffers"]
    (text,) = (t for p, t in everything.pair.kernel.items() if p.endswith("add.cpp"))
    assert "DeQue" in text
    assert "TQue<" not in text.partition("class KernelAdd")[2]


def test_what_goes_behind_is_blamed_last() -> None:
    at = registered()
    (everything,) = KernelRules().propose(at, 1)
    history = tried(list(at.history), everything, OutOfBounds("past its end"))
    (second,) = KernelRules().propose(replace(at, history=History.of(history)), 1)
    assert {m.family for m in second.moves} >= RINGS
    assert not {"copies", "vectors"} & {find(m.family).kind for m in second.moves}
    history = tried(history, second, OutOfBounds("past its end"))
    later = KernelRules().propose(replace(at, history=History.of(history)), 1)
    assert not any({m.family for m in p.moves} >= RINGS for p in later)


def test_inputs_are_read_past_l2_where_it_cannot_hold_them() -> None:
    small = registered()
    wide = TensorSpec("float16", (1 << 15, 1 << 10))
    large = replace(small, case=Case((wide, wide), (wide,)))
    offered = [{m.family for p in KernelRules().propose(at, 60) for m in p.moves} for at in (small, large)]
    assert ["cache-hint" in names for names in offered] == [False, True]


def test_a_motif_that_seldom_helped_anywhere_comes_later() -> None:
    assert prior("double-buffer") == (0.0, 8.0)
    assert prior("never tried") == (0.0, 0.0)
    wins, trials = prior("rings-for-queues")
    assert 4.0 < wins < trials == 8.0


def test_what_is_not_blamed_is_offered_whole_after_a_failure() -> None:
    """All queues as rings, not one of them: the hazard of everything together is not theirs."""
    at = registered()
    (everything,) = KernelRules().propose(at, 1)
    history = tried(list(at.history), everything, Hazard("nothing orders them"))
    later = KernelRules().propose(replace(at, history=History.of(history)), 40)
    alone = [p.change for p in later if {m.family for m in p.moves} == {"rings-for-queues"}]
    assert alone[0].endswith("3 queues made rings with flags of their own")
