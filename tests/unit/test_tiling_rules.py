"""The rule proposer of Stage I: what it proposes, that it never repeats itself, and that it learns."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.nouns.operator import Candidate, Operator, Pair
from ascendopt_tune.nouns.outcome import LaunchFailed, Outcome, Timed
from ascendopt_tune.nouns.profile import Profile
from ascendopt_tune.nouns.trial import Move, Proposal, Trial
from ascendopt_tune.search.learning import Boundaries, overflowed
from ascendopt_tune.search.mutation import Mutation
from ascendopt_tune.search.proposer import SearchState
from ascendopt_tune.search.tiling.context import Context
from ascendopt_tune.search.tiling.leaning import Leaning
from ascendopt_tune.search.tiling.merge import merge_text
from ascendopt_tune.search.tiling.rules import TilingRules, mutations
from ascendopt_tune.search.tiling.slice import synthesize
from ascendopt_tune.sources.cpp import apply_edits, breaks_syntax

DATA = Path(__file__).parent / "data" / "tiling"
REGISTRY = Path(__file__).parents[2] / "registry"
KERNEL = {"op_kernel/k.cpp": "if (TILING_KEY_IS(1)) {} else if (TILING_KEY_IS(2)) {}"}


def load(folder: Path) -> dict[str, str]:
    return {f"op_host/{p.name}": p.read_text() for p in sorted(folder.iterdir()) if p.suffix in (".cpp", ".h")}


PROGRAMS = {p.stem: {f"op_host/{p.name}": p.read_text()} for p in sorted(DATA.glob("*.cpp"))}
PROGRAMS |= {p.parent.name: load(p) for p in sorted(REGISTRY.glob("*/op_host"))}


def start(files: dict[str, str], seed: int = 0) -> SearchState:
    pair = Pair(files, KERNEL)
    operator = Operator("op", Path(), "k", "op_kernel/k.cpp", pair)
    spec = TensorSpec("float16", (64, 4096))
    baseline = Trial(Candidate(0, pair, None, "baseline", "as written"), timed(100.0))
    chip = load_chip("ascend910b4")
    return SearchState(
        operator, Case((spec,), (spec,)), chip, None, baseline, baseline, (baseline,), seed, frozenset({pair.hash})
    )


def timed(us: float) -> Outcome:
    return Timed(Profile(us))


def after(state: SearchState, proposal: Proposal, outcome: Outcome) -> SearchState:
    """The state once the proposal was evaluated."""
    candidate = Candidate(len(state.history), proposal.pair, proposal.parent, "rules", proposal.change)
    trial = Trial(candidate, outcome, proposal.moves)
    best, now = state.incumbent.time_us, trial.time_us
    better = best is not None and now is not None and now < best
    return replace(
        state,
        history=(*state.history, trial),
        incumbent=trial if better else state.incumbent,
        seen=state.seen | {proposal.pair.hash},
    )


def with_move(proposals: list[Proposal], family: str, value: float | None = None) -> Proposal:
    return next(p for p in proposals if [m.family for m in p.moves] == [family] and value in (None, p.moves[0].value))


@pytest.mark.parametrize("name", PROGRAMS)
def test_proposals_are_many_distinct_and_sound(name: str) -> None:
    state = start(PROGRAMS[name])
    proposals = TilingRules().propose(state, 40)
    assert len(proposals) >= 8, "too little to try"
    hashes = {p.pair.hash for p in proposals}
    assert len(hashes) == len(proposals)
    assert hashes.isdisjoint(state.seen)
    for p in proposals:
        assert p.pair.kernel == state.incumbent.candidate.pair.kernel, "Stage I leaves the kernel alone"
        assert p.parent == 0
        assert p.moves
        assert p.change
        assert "\n" not in p.change
        assert not breaks_syntax(state.operator.baseline.tiling, p.pair.tiling)
    assert len({m.family for p in proposals for m in p.moves}) >= 3


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_mutation_parses(name: str) -> None:
    files = PROGRAMS[name]
    for m in mutations(synthesize(files), Context.of(start(files))):
        changed = apply_edits(files, m.edits)
        assert changed != files, m.change
        assert not breaks_syntax(files, changed), m.change


@settings(max_examples=15, deadline=None)
@given(name=st.sampled_from(sorted(PROGRAMS)), seed=st.integers(0, 2**16))
def test_chains_of_mutations_parse(name: str, seed: int) -> None:
    rng, files = random.Random(seed), PROGRAMS[name]
    context = Context.of(start(files))
    for _ in range(5):
        m = rng.choice(mutations(synthesize(files), context))
        changed = apply_edits(files, m.edits)
        assert not breaks_syntax(files, changed), m.change
        files = changed


def test_same_seed_same_proposals() -> None:
    files = PROGRAMS["rows"]
    one, two = (TilingRules().propose(start(files, seed=7), 20) for _ in range(2))
    assert one == two
    assert TilingRules().propose(start(files, seed=8), 20) != one


def test_exhausts_and_says_so() -> None:
    state = start({"op_host/a.cpp": "int main() { return 1; }"})
    assert TilingRules().propose(state, 5) == []


def test_core_count_is_capped_where_it_enters_and_not_nested() -> None:
    state = start(PROGRAMS["rows"])
    first = with_move(TilingRules().propose(state, 60), "core_count", 20)
    assert "uint32_t coreNum = (platform.GetCoreNumAiv() < 20 ? platform.GetCoreNumAiv() : 20);" in text_of(first)
    state = after(state, first, timed(90.0))
    second = with_move(TilingRules().propose(state, 60), "core_count", 10)
    assert "uint32_t coreNum = (platform.GetCoreNumAiv() < 10 ? platform.GetCoreNumAiv() : 10);" in text_of(second)


def test_ub_share_is_one_statement_however_often_it_changes() -> None:
    state = start(PROGRAMS["rows"])
    first = with_move(TilingRules().propose(state, 60), "ub_size", 0.5)
    assert text_of(first).count("ubSize = ubSize / ") == 1
    second = with_move(TilingRules().propose(after(state, first, timed(90.0)), 60), "ub_size", 0.25)
    assert text_of(second).count("ubSize = ubSize / ") == 1
    assert "ubSize = ubSize / 4 * 1;" in text_of(second)


def test_rounding_changes_both_numbers() -> None:
    proposals = TilingRules().propose(start(PROGRAMS["members"]), 60)
    assert "localBytes / 6 / 128 * 128" in text_of(with_move(proposals, "alignment", 128))


def test_even_split_of_the_case_is_offered() -> None:
    """64 rows on 40 cores need two rows a core, which 32 cores do as well."""
    context = Context.of(start(PROGRAMS["rows"]))
    assert 32 in context.even_cores
    assert context.tiling_keys == (1, 2)
    assert with_move(TilingRules().propose(start(PROGRAMS["rows"]), 60), "core_count", 32)


def test_coordinated_edits_keep_the_product() -> None:
    proposals = TilingRules().propose(start(PROGRAMS["fixed"]), 60)
    pair = next(p for p in proposals if [m.family for m in p.moves] == ["buffer_num", "tile_length"])
    buffers, length = (m.value for m in pair.moves)
    assert abs(buffers * length - 2 * 1024) <= 8 * buffers


def move(value: float, direction: str = "up", site: str = "s", pressure: int = 0) -> Move:
    return Move(site, "tile_length", direction, value, pressure)


def mutation(*moves: Move) -> Mutation:
    return Mutation((), "", moves, 1.0)


def history(*steps: tuple[Move, Outcome]) -> list[Trial]:
    pair = Pair({}, {})
    out = [Trial(Candidate(0, pair, None, "b", ""), timed(100.0))]
    return out + [Trial(Candidate(i, pair, 0, "r", ""), o, (m,)) for i, (m, o) in enumerate(steps, start=1)]


def test_what_failed_is_not_tried_further_out() -> None:
    failed = Boundaries(history((move(4096), LaunchFailed("alignment"))))
    assert failed.weight(mutation(move(8192))) < 0.1 * failed.weight(mutation(move(2048)))
    assert failed.weight(mutation(move(512, "down"))) > failed.weight(mutation(move(4096)))


def test_what_only_ever_failed_is_hopeless() -> None:
    wrong, overflow = LaunchFailed("refused"), LaunchFailed("UB overflow: 262144 bytes needed")
    thrice = [(move(4096), wrong)] * 3
    assert not Boundaries(history(*thrice[:2])).is_hopeless(mutation(move(4096)))
    found = Boundaries(history(*thrice))
    assert found.is_hopeless(mutation(move(4096)))
    assert found.is_hopeless(mutation(move(2048, site="other"), move(4096)))  # together with what may be right
    assert not found.is_hopeless(mutation(move(2048)))
    assert not Boundaries(history(*thrice, (move(4096), timed(120.0)))).is_hopeless(mutation(move(4096)))
    larger = move(4096, pressure=1)  # another change may make room for it
    assert not Boundaries(history(*[(larger, overflow)] * 3)).is_hopeless(mutation(larger))


def test_what_helped_is_continued() -> None:
    helped = Boundaries(history((move(2048), timed(90.0))))
    assert helped.weight(mutation(move(4096))) > 3 * helped.weight(mutation(move(4096, site="other")))
    assert helped.weight(mutation(move(512, "down"))) < helped.weight(mutation(move(4096)))


def test_between_a_win_and_a_failure_little_is_expected() -> None:
    bounded = Boundaries(history((move(2048), timed(90.0)), (move(8192), LaunchFailed("too large"))))
    assert bounded.weight(mutation(move(16384))) < bounded.weight(mutation(move(4096)))
    open_ended = Boundaries(history((move(2048), timed(90.0))))
    assert bounded.weight(mutation(move(4096))) < 0.5 * open_ended.weight(mutation(move(4096)))


def test_overflow_holds_back_all_that_needs_more_memory() -> None:
    reason = LaunchFailed("UB overflow: 262144 bytes needed, 196352 available")
    past = history((move(4096, pressure=1), reason))
    assert overflowed(past[1])
    assert not overflowed(past[0])
    model = Boundaries(past)
    other = [move(2, "down", "elsewhere", p) for p in (1, 0)]
    assert model.weight(mutation(other[0])) < 0.6 * model.weight(mutation(other[1]))


def test_families_that_never_help_fade() -> None:
    past = history(*((move(i, site=f"s{i}"), timed(100.0)) for i in range(6)))
    assert Boundaries(past).weight(mutation(move(1, site="new"))) < 0.6


def test_functions_that_this_case_does_not_run_are_left_alone() -> None:
    base = history()[0]

    def trial(number: int, site: str, twin: int | None) -> Trial:
        candidate = Candidate(number, base.candidate.pair, 0, "r", "")
        return Trial(candidate, timed(100.0), (move(1, site=site),), 1, 1, twin, f"launch {number}")

    def worth(past: list[Trial], site: str) -> float:
        return Boundaries([base, *past]).weight(mutation(move(1, site=site)))

    silent = [trial(i, f"t.cpp:Other:x#{i}", 0) for i in (1, 2)]
    assert worth(silent, "t.cpp:Other:y#0") < 0.2 * worth(silent, "t.cpp:Run:y#0")
    heard = [*silent, trial(3, "t.cpp:Other:z#0", None)]
    assert worth(heard, "t.cpp:Other:y#0") == worth(heard, "t.cpp:Run:y#0")


def test_disjoint_edits_merge_and_conflicts_do_not() -> None:
    base = "a\nb\nc\nd\ne\n"
    assert merge_text(base, "A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n") == "A\nb\nc\nd\nE\n"
    assert merge_text(base, "A\nb\nc\nd\ne\n", "X\nb\nc\nd\ne\n") is None
    assert merge_text(base, base, base) == base


def test_two_good_parents_are_recombined() -> None:
    state = start(PROGRAMS["rows"])
    proposals = TilingRules().propose(state, 60)
    cores, share = with_move(proposals, "core_count", 20), with_move(proposals, "buffer_num", 1)
    for p, us in ((cores, 90.0), (share, 95.0)):
        state = after(state, p, timed(us))
    child = TilingRules().propose(state, 1)[0]
    assert child.change.startswith("recombined with #2")
    assert child.parent == 1
    assert "< 20 ?" in text_of(child)
    assert "BUFFER_COUNT = 1" in text_of(child)


def text_of(p: Proposal) -> str:
    return "\n".join(p.pair.tiling.values())


def test_parents_come_from_the_population() -> None:
    """A second elite (few cores) gets children of its own, and they are its pair with one change."""
    state = start(PROGRAMS["rows"])
    proposals = TilingRules().propose(state, 60)
    fast, different = with_move(proposals, "ub_size", 0.5), with_move(proposals, "core_count", 5)
    state = after(state, fast, Timed(Profile(50.0, block_dim=40)))
    state = after(state, different, Timed(Profile(60.0, block_dim=5)))
    assert [t.candidate.id for t in state.population.elites] == [1, 2, 0]
    parents = [p.parent for p in TilingRules(others=0.5).propose(state, 20)]
    assert set(parents) == {1, 2}
    children = [p for p in TilingRules(others=1.0).propose(state, 10) if p.parent == 2]
    assert children
    assert all("< 5 ?" in text_of(p) for p in children if not any(m.family == "core_count" for m in p.moves))
    assert {p.parent for p in TilingRules(others=0.0).propose(state, 20)} == {1}


def test_what_bounds_the_launch_leans_the_first_evaluations() -> None:
    """On few cores more of them come first, where launch is the time fewer; half of that later."""
    state = start(PROGRAMS["silu"])
    core = {"core_start_us": 0.0, "cores_active_us": 90.0, "block_time_max_us": 90.0, "block_time_min_us": 90.0}
    few = replace(state.baseline, outcome=Timed(Profile(95.0, 90.0, 60.0, 5.0, 20.0, 5.0, 2, core)))
    launch = {**core, "cores_active_us": 1.0, "block_time_max_us": 1.0, "block_time_min_us": 1.0}
    short = replace(state.baseline, outcome=Timed(Profile(10.0, 1.0, 0.3, 0.3, 0.2, 0.2, 40, launch)))

    def worth(trial: Trial, direction: str, evaluations: int = 1) -> float:
        made = replace(state, history=(trial,) * evaluations)
        return Leaning.of(made, trial).factor(Mutation((), "", (Move("s", "core_count", direction, 4),), 1.0))

    assert worth(few, "up") > 1 > worth(few, "down")
    assert worth(short, "down") > 1 > worth(short, "up")
    assert worth(few, "up") > worth(few, "up", evaluations=6) > 1
    failed = replace(state.baseline, outcome=LaunchFailed("no"))
    assert Leaning.of(state, failed) == Leaning()
