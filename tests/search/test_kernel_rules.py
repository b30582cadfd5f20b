"""Stage II's rules on a made-up kernel: what they offer, in what order, and what they never offer again."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.nouns.operator import Candidate, Operator, Pair
from ascendopt_tune.nouns.outcome import Outcome, Timed, WrongResult
from ascendopt_tune.nouns.profile import Profile
from ascendopt_tune.nouns.trial import Proposal, Trial
from ascendopt_tune.search.engine import Search, SearchOptions, SearchResult, one_by_one
from ascendopt_tune.search.kernel.motifs import MOTIFS
from ascendopt_tune.search.kernel.rules import KernelRules
from ascendopt_tune.search.proposer import SearchState

CHIP = load_chip("ascend910b2")
SPEC = TensorSpec("float32", (64, 1024))
TEXT = """
class Kernel {
  __aicore__ inline void Init(GM_ADDR x, TPipe* pipe) {
    pipe->InitBuffer(inQueue, 1, 4096);
    pipe->InitBuffer(outQueue, 1, 4096);
  }
  __aicore__ inline void Process() {
    for (uint32_t i = 0; i < tiles; i++) {
      Compute(i);
      PipeBarrier<PIPE_ALL>();
    }
  }
  __aicore__ inline void Compute(uint32_t i) {
    LocalTensor<float> x = inQueue.DeQue<float>();
    LocalTensor<float> y = outQueue.AllocTensor<float>();
    Muls(t, x, 2.0f, n);
    PipeBarrier<PIPE_V>();
    Add(y, y, t, n);
    PipeBarrier<PIPE_V>();
    outQueue.EnQue(y);
    inQueue.FreeTensor(x);
  }
};
extern "C" __global__ __aicore__ void k(GM_ADDR x) { Kernel op; op.Init(x, &pipe); op.Process(); }
"""
EXTRA = "    pipe->InitBuffer(thirdQueue, 1, 4096);"


def operator(*options: str) -> Operator:
    return Operator("op", Path(), "k", "k.cpp", Pair({"t.cpp": "host"}, {"k.cpp": TEXT}), kernel_options=options)


def profile(us: float, **counters: float) -> Profile:
    """Busy little and waiting much, so that "no overlap" is what the diagnosis says."""
    waits = {"stall_vec_on_mte2_us": 40.0, "stall_mte2_on_vec_us": 40.0, **counters}
    core = {"cores_active_us": us, "block_time_max_us": us, "block_time_min_us": us, "core_start_us": 0.0}
    return Profile(us, us, us * 0.3, us * 0.1, us * 0.3, us * 0.1, 48, {**core, **waits})


def by_text(pair: Pair) -> Outcome:
    """Barriers and single buffers cost; a kernel without any full barrier is wrong."""
    text = pair.kernel["k.cpp"]
    if "PIPE_ALL" not in text:
        return WrongResult("needs its barrier")
    singles = len(re.findall(r"InitBuffer\(\w+, 1,", text))
    return Timed(profile(100.0 + 5 * text.count("PIPE_V") + 10 * singles + 3 * ("Axpy" not in text)))


def state(history: list[Trial], incumbent: int = 0, op: Operator | None = None) -> SearchState:
    op = op or operator()
    seen = frozenset(t.candidate.pair.hash for t in history)
    return SearchState(
        op, Case((SPEC,), (SPEC,)), CHIP, None, history[0], history[incumbent], tuple(history), 0, seen, 2
    )


def baseline(op: Operator | None = None) -> list[Trial]:
    pair = (op or operator()).baseline
    return [Trial(Candidate(0, pair, None, "baseline", "as written"), by_text(pair))]


def tried(history: list[Trial], proposal: Proposal, outcome: Outcome) -> list[Trial]:
    candidate = Candidate(len(history), proposal.pair, proposal.parent, "kernel-rules", proposal.change)
    return [*history, Trial(candidate, outcome, proposal.moves, 1, 2)]


def only(history: list[Trial], motif: str) -> Proposal:
    """The first proposal of this motif alone."""
    return next(p for p in KernelRules().propose(state(history), 20) if {m.family for m in p.moves} == {motif})


def run(budget: int = 30) -> SearchResult:
    return Search(
        operator(),
        Case((SPEC,), (SPEC,)),
        CHIP,
        [KernelRules()],
        one_by_one(lambda c: by_text(c.pair)),
        SearchOptions(budget=budget, parallel=2),
    ).run()


def test_moves_name_motif_and_place_and_only_the_kernel_changes() -> None:
    proposals = KernelRules().propose(state(baseline()), 20)
    names = {m.name for m in MOTIFS}
    assert len(proposals) >= 5
    for p in proposals:
        assert p.moves
        assert {m.family for m in p.moves} <= names
        assert all(m.site.startswith(f"{m.family}@") for m in p.moves)
        assert p.pair.tiling == operator().baseline.tiling
        assert all(f"{m.family}: " in p.change for m in p.moves)


def test_everything_at_once_comes_first_then_one_motif_each() -> None:
    everything, *others = KernelRules().propose(state(baseline()), 5)
    assert {"full-barrier", "vector-barrier", "buffer-lifetime"} & {m.family for m in everything.moves}
    assert len({m.family for m in everything.moves}) > 1
    assert len({p.moves[0].family for p in others}) == len(others)
    assert others[0].moves[0].family in ("full-barrier", "double-buffer", "buffer-lifetime", "early-fetch")


def test_barriers_are_not_dropped_wholesale_without_automatic_synchronization() -> None:
    op = operator("--cce-auto-sync=off")
    families = [{m.family for m in p.moves} for p in KernelRules().propose(state(baseline(op), op=op), 1)]
    assert not any("full-barrier" in f for f in families if len(f) > 1)


def test_the_same_state_gives_the_same_proposals() -> None:
    rules, at = KernelRules(), state(baseline())
    first = rules.propose(at, 6)
    rules.propose(at, 2)
    assert first == rules.propose(at, 6) == KernelRules().propose(at, 6)
    seen = {p.pair.hash for p in first}
    assert not seen & {p.pair.hash for p in rules.propose(replace(at, seen=frozenset(seen)), 6)}


@pytest.mark.parametrize("outcome", [WrongResult("no"), Timed(profile(200.0))], ids=["failed", "slower"])
def test_what_failed_is_not_tried_again_on_another_parent(outcome: Outcome) -> None:
    history = baseline()
    wrong = only(history, "full-barrier")
    history = tried(history, wrong, outcome)
    other = only(history, "double-buffer")
    history = tried(history, other, Timed(profile(50.0)))
    sites = {m.site for p in KernelRules().propose(state(history, incumbent=2), 50) for m in p.moves}
    assert sites
    assert not {m.site for m in wrong.moves} & sites


def test_parts_of_what_did_nothing_are_not_tried() -> None:
    history = baseline()
    both = only(history, "vector-barrier")
    history = tried(history, both, history[0].outcome)
    later = KernelRules().propose(state(history), 50)
    assert not any({m.site for m in p.moves} <= {m.site for m in both.moves} for p in later)


def test_the_search_gets_what_the_motifs_can_give_and_ends() -> None:
    result = run()
    text = result.best.candidate.pair.kernel["k.cpp"]
    assert "PIPE_V" not in text
    assert "InitBuffer(inQueue, 2" in text
    assert "PIPE_ALL" in text
    assert result.stop == "exhausted"
    assert [t.candidate.change for t in result.history] == [t.candidate.change for t in run().history]


@dataclass(frozen=True)
class Found:
    motif: str


def one_book(state: SearchState, k: int) -> list[Found]:
    return [Found("buffer-lifetime"), Found("kept-value")][:k]


def test_experience_moves_a_motif_to_the_front() -> None:
    def order(rules: KernelRules) -> list[str]:
        return [p.moves[0].family for p in rules.propose(state(baseline()), 9)[1:]]

    with_bank = order(KernelRules(one_book))
    assert with_bank.index("buffer-lifetime") < order(KernelRules()).index("buffer-lifetime")


def test_a_devices_time_is_ranked_by_the_modelled_profile_beside_it() -> None:
    blind = Profile(100.0, block_dim=48, counters={"candidate_spread_us": 1.0})

    def ideas(outcome: Outcome) -> list[str]:
        return [p.change for p in KernelRules().propose(state([replace(baseline()[0], outcome=outcome)]), 12)]

    seen = ideas(Timed(replace(blind, modelled=profile(90.0))))
    assert seen == ideas(Timed(profile(100.0)))
    assert seen != ideas(Timed(blind))


def test_what_a_neutral_change_made_possible_is_offered_on_it() -> None:
    """The neutral kernel has a single buffer more to double; the incumbent's other ideas were all tried before."""
    history = baseline()
    pair = history[0].candidate.pair
    extra = "    pipe->InitBuffer(outQueue, 1, 4096);"
    enabling = replace(pair, kernel={"k.cpp": pair.kernel["k.cpp"].replace(extra, f"{extra}\n{EXTRA}")})
    change = Candidate(1, enabling, 0, "somebody", "a third queue")
    history.append(Trial(change, history[0].outcome, (), 1, 3))
    proposals = KernelRules().propose(state(history), 200)
    on_it = [p for p in proposals if p.parent == 1]
    assert any("thirdQueue" in p.change for p in on_it)
    assert all(EXTRA.split("(")[0] in p.pair.kernel["k.cpp"] for p in on_it)
    assert [p.parent for p in proposals].index(1) > 0  # the incumbent's come first
