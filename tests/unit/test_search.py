"""Algorithm 1's record keeping, on a cost function that reads the numbers of the tiling text (no build, no device)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ascendopt_tune.errors import CacheError, CaseError, NoWorkingCandidate
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.nouns.operator import Candidate, Operator, Pair
from ascendopt_tune.nouns.outcome import CompileFailed, LaunchFailed, Outcome, Timed
from ascendopt_tune.nouns.profile import Profile
from ascendopt_tune.nouns.trial import Proposal
from ascendopt_tune.search.budget import Budget, Limits, Usage
from ascendopt_tune.search.engine import Progress, Search, SearchOptions, SearchResult, one_by_one, run_header
from ascendopt_tune.search.journal import Journal, read_journal
from ascendopt_tune.search.proposer import JOINT, Proposer, SearchState
from ascendopt_tune.search.tiling.rules import TilingRules

TEXT = (Path(__file__).parent / "data" / "tiling" / "fixed.cpp").read_text()
SPEC = TensorSpec("float16", (64, 4096))
CHIP = load_chip("ascend910b4")


def operator(text: str = TEXT) -> Operator:
    return Operator("op", Path(), "k", "k.cpp", Pair({"op_host/t.cpp": text}, {"k.cpp": "kernel"}))


def cost(pair: Pair) -> Outcome:
    """Launch cost a core, a fixed cost a tile, less overlap with one buffer; too large tiles overflow."""
    text = pair.tiling["op_host/t.cpp"]
    cores, tile, buffers = (
        int(re.findall(rf"\b{n}\b\D+(\d+)", text)[0]) for n in ("BLOCK_DIM", "TILE_LENGTH", "BUFFER_NUM")
    )
    if cores > 40 or tile * 2 * 2 * buffers > 196352:
        return LaunchFailed(f"UB overflow: {tile * 4 * buffers} bytes")
    tiles = -(-SPEC.numel // (cores * tile))
    return Timed(Profile(0.1 * cores + tiles * (0.5 + tile / 1000) * (1.0 if buffers > 1 else 1.6)))


class Scripted:
    """Proposes given texts, one a call; remembers the states it saw."""

    def __init__(self, texts: Sequence[str], stage: int = 1, name: str = "scripted") -> None:
        self.name, self.stage = name, stage
        self._left = list(texts)
        self.states: list[SearchState] = []

    def propose(self, state: SearchState, n: int) -> list[Proposal]:
        self.states.append(state)
        texts, self._left = self._left[:n], self._left[n:]
        best = state.incumbent.candidate
        if self.stage == 1:
            return [Proposal(replace(best.pair, tiling={"op_host/t.cpp": t}), t, best.id) for t in texts]
        return [Proposal(replace(best.pair, kernel={"k.cpp": t}), t, best.id) for t in texts]


def by_text(pair: Pair) -> Outcome:
    """Scripted texts end in their time: ``"b 90"``; ``"b fail"`` fails."""
    words = (pair.tiling["op_host/t.cpp"] + " " + pair.kernel["k.cpp"]).split()
    numbers = [float(w) for w in words if re.fullmatch(r"[\d.]+", w)]
    return LaunchFailed("asked to fail") if "fail" in words else Timed(Profile(min(numbers)))


def search(proposers: Sequence[Proposer], text: str = "a 100", **more: object) -> Search:
    evaluate = more.pop("evaluate", lambda c: by_text(c.pair))
    run = Search(operator(text), Case((SPEC,), (SPEC,)), CHIP, proposers, one_by_one(evaluate))  # type: ignore[arg-type]
    return replace(run, **more)  # type: ignore[arg-type]


def rules(**more: object) -> Search:
    return search([TilingRules()], TEXT, evaluate=lambda c: cost(c.pair), **more)


def trace(result: SearchResult) -> list[tuple[int, str, str]]:
    return [(t.candidate.id, t.candidate.change, type(t.outcome).__name__) for t in result.history]


@pytest.mark.parametrize("budget", [1, 2, 10, 40])
@pytest.mark.parametrize("parallel", [1, 3])
def test_budget_is_spent_exactly(budget: int, parallel: int) -> None:
    calls: list[str] = []

    def evaluate(c: Candidate) -> Outcome:
        calls.append(c.pair.hash)
        return cost(c.pair)

    run = search(
        [TilingRules()], TEXT, evaluate=evaluate,
        options=SearchOptions(budget=budget, parallel=parallel),
    )  # fmt: skip
    result = run.run()
    assert len(calls) == len(set(calls)) == result.evaluations == budget
    assert result.stop == "budget"
    assert sum(result.outcomes.values()) == budget
    assert [t.candidate.id for t in result.history] == list(range(budget))


def test_rules_find_most_of_what_there_is() -> None:
    for seed in range(3):
        result = rules(options=SearchOptions(seed=seed)).run()
        assert result.speedup > 3, "8 cores of 40 and short tiles leave much"
        assert result.best.time_us == min(t.time_us for t in result.history if t.time_us is not None)


def test_same_seed_same_run_whatever_order_a_batch_ends_in() -> None:
    def backwards(candidates: Sequence[Candidate]) -> Iterator[tuple[int, Outcome]]:
        for c in reversed(candidates):
            yield c.id, cost(c.pair)

    options = SearchOptions(budget=25, parallel=4, seed=3)
    one, two = rules(options=options).run(), rules(options=options, evaluate_many=backwards).run()
    assert trace(one) == trace(two)
    assert trace(one) != trace(rules(options=replace(options, seed=4)).run())


def test_only_strictly_faster_is_kept() -> None:
    result = search([Scripted(["b 100", "c fail", "d 90", "e 90", "f 95"])]).run()
    assert result.best.candidate.change == "d 90"
    assert result.stop == "exhausted"
    assert result.speedup == pytest.approx(100 / 90)
    assert [t.candidate.parent for t in result.history] == [None, 0, 0, 0, 3, 3]
    assert [t.candidate.change for t in result.lineage] == ["as written", "d 90"]


def test_a_tie_inside_a_batch_goes_to_the_smaller_id() -> None:
    result = search([Scripted(["b 90", "c 90"])], options=SearchOptions(parallel=2)).run()
    assert result.best.candidate.change == "b 90"


def test_gain_below_the_minimum_is_no_win() -> None:
    result = search([Scripted(["b 99", "c 90"])], options=SearchOptions(min_gain=0.05)).run()
    assert result.best.candidate.change == "c 90"
    assert [t.candidate.parent for t in result.history] == [None, 0, 0]


def test_stages_alternate_and_inherit_the_best_pair() -> None:
    one = Scripted([f"t{i} {99 - i}" for i in range(9)], stage=1, name="one")
    two = Scripted([f"k{i} {80 - i}" for i in range(9)], stage=2, name="two")
    options = SearchOptions(11, stage1_steps=3, stage2_steps=2, schedule="paper")
    result = search([one, two], options=options).run()
    assert [t.stage for t in result.history] == [0, 1, 1, 1, 2, 2, 1, 1, 1, 2, 2]
    assert [t.round for t in result.history] == [0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2]
    assert result.history[4].candidate.pair.tiling["op_host/t.cpp"] == "t2 97"
    assert result.best.candidate.pair.kernel["k.cpp"] == "k3 77"


@pytest.mark.parametrize(("steps", "stages"), [((3, 0), [1] * 6), ((0, 3), [2] * 6), ((1, 2), [1, 2, 2, 1, 2, 2])])
@pytest.mark.parametrize("schedule", ["paper", "adaptive", "opening"])
def test_a_stage_may_be_left_out(schedule: str, steps: tuple[int, int], stages: list[int]) -> None:
    one = Scripted([f"t{i} 99" for i in range(9)], stage=1)
    two = Scripted([f"k{i} 99" for i in range(9)], stage=2)
    options = SearchOptions(budget=7, stage1_steps=steps[0], stage2_steps=steps[1], schedule=schedule)
    result = search([one, two], options=options).run()
    found = [t.stage for t in result.history[1:]]
    assert found == stages or (schedule != "paper" and 0 not in steps)


@pytest.mark.parametrize(("steps", "stages"), [((2, 2), [3, 3, 1, 1, 2, 2, 3, 3, 1]), ((2, 0), [1] * 9)])
def test_joint_moves_come_first_where_both_programs_may_change(steps: tuple[int, int], stages: list[int]) -> None:
    proposers = [Scripted([f"{n}{i} 99" for i in range(9)], stage=n) for n in (1, 2, JOINT)]
    options = SearchOptions(10, stage1_steps=steps[0], stage2_steps=steps[1], joint_steps=2, schedule="paper")
    assert [t.stage for t in search(proposers, options=options).run().history[1:]] == stages


def test_a_stage_without_ideas_gives_its_steps_away() -> None:
    one, two = Scripted(["b 90"], stage=1), Scripted([f"k{i} {80 - i}" for i in range(9)], stage=2)
    result = search([one, two], options=SearchOptions(8, stage1_steps=3, stage2_steps=3, schedule="paper")).run()
    assert [t.stage for t in result.history] == [0, 1] + [2] * 6
    assert result.stop == "budget"


def test_proposers_of_a_stage_take_turns() -> None:
    result = search([Scripted(["b 99", "c 98"], name="x"), Scripted(["d 97", "e 96"], name="y")]).run()
    assert [t.candidate.proposer for t in result.history] == ["baseline", "x", "y", "x", "y"]


def test_the_proposer_sees_history_with_reasons() -> None:
    proposer = Scripted(["b fail", "c 90"])
    search([proposer]).run()
    last = proposer.states[-1]
    assert [type(t.outcome).__name__ for t in last.history] == ["Timed", "LaunchFailed", "Timed"]
    assert last.history[1].outcome == LaunchFailed("asked to fail")
    assert last.incumbent.candidate.change == "c 90"
    assert len(last.seen) == 3


def test_repeated_text_and_repeated_launch_cost_nothing() -> None:
    calls: list[int] = []

    def evaluate(c: Candidate) -> Outcome:
        calls.append(c.id)
        return by_text(c.pair)

    proposer = Scripted(["b 90", "b 90", "b  90", "c 80"])
    run = search(
        [proposer], evaluate=evaluate,
        fingerprint=lambda c: " ".join(c.pair.tiling["op_host/t.cpp"].split()),
    )  # fmt: skip
    result = run.run()
    assert [(t.candidate.change, t.duplicate_of) for t in result.history] == [
        ("as written", None), ("b 90", None), ("b  90", 1), ("c 80", None)
    ]  # fmt: skip
    assert calls == [0, 1, 3]
    assert result.evaluations == 3
    assert result.history[2].outcome == result.history[1].outcome


def test_what_will_be_named_is_heard_of_together_and_once(tmp_path: Path) -> None:
    heard: list[list[str]] = []
    named: list[str] = []

    def name(c: Candidate) -> str:
        named.append(c.pair.hash)
        return c.pair.hash

    def run() -> None:
        heard.clear()
        with Journal(tmp_path / "run.jsonl", HEADER) as journal:
            rules(
                options=SearchOptions(budget=9, parallel=3), journal=journal, fingerprint=name,
                prepare=lambda pairs: heard.append([p.hash for p in pairs]),
            ).run()  # fmt: skip

    run()
    assert max(map(len, heard)) == 3
    assert [h for batch in heard for h in batch] == named[1:], "all but the baseline, in that order"
    run()
    assert not any(heard), "a journal has their names"


def test_endless_duplicates_end_the_run() -> None:
    result = rules(fingerprint=lambda c: "always the same", options=SearchOptions(budget=3)).run()
    assert result.stop == "exhausted"
    assert result.evaluations == 1


def test_a_broken_baseline_is_reported_with_its_reason() -> None:
    with pytest.raises(NoWorkingCandidate, match="1 x CompileFailed: no such header"):
        search([], evaluate=lambda c: CompileFailed("no such header")).run()


def test_no_proposer_keeps_the_baseline() -> None:
    result = search([]).run()
    assert result.best == result.baseline
    assert result.speedup == 1.0
    assert result.stop == "exhausted"


def test_interrupt_keeps_what_was_found() -> None:
    def evaluate(c: Candidate) -> Outcome:
        if c.id == 3:
            raise KeyboardInterrupt
        return by_text(c.pair)

    result = search([Scripted(["b 90", "c 95", "d 10"])], evaluate=evaluate, options=SearchOptions(parallel=3)).run()
    assert result.stop == "interrupted"
    assert result.best.candidate.change == "b 90"
    assert len(result.history) == 3
    with pytest.raises(KeyboardInterrupt):
        search([], evaluate=lambda c: (_ for _ in ()).throw(KeyboardInterrupt)).run()


@dataclass
class Asking:
    """Has the other's ideas as long as a model may be asked."""

    ideas: Scripted
    budget: Budget
    name: str = "asking"
    stage: int = 1

    def propose(self, state: SearchState, n: int) -> list[Proposal]:
        return [] if self.budget.unasked() else self.ideas.propose(state, n)


@pytest.mark.parametrize(
    ("limits", "best"),
    [
        (Limits(seconds=3), "c 80"),  # the clock of the test goes on by one second a trial
        (Limits(tokens=20), "c 80"),
        (Limits(money=0.05), "b 90"),
        (Limits(seconds=100, tokens=10, money=9), "b 90"),
        (Limits(seconds=0, tokens=0), "as written"),
    ],
)
def test_whichever_limit_ends_first_keeps_the_best_so_far(limits: Limits, best: str) -> None:
    now, usage = [0.0], Usage()

    def evaluate(c: Candidate) -> Outcome:
        now[0] += 1.0
        if c.id:
            usage.add(10, 0.05)
        return by_text(c.pair)

    budget = Budget(limits, usage, clock=lambda: now[0])
    asking = Asking(Scripted(["b 90", "c 80", "d 70"]), budget)
    result = search([asking], evaluate=evaluate, limits=budget).run()
    assert result.best.candidate.change == best
    assert getattr(limits, result.stop) is not None
    assert result.stop == ("tokens" if limits.tokens == 10 else result.stop)


def test_a_limit_on_tokens_ends_the_asking_and_not_the_search() -> None:
    usage = Usage()

    def evaluate(c: Candidate) -> Outcome:
        usage.add(10)
        return by_text(c.pair)

    budget = Budget(Limits(tokens=20), usage)
    asking = Asking(Scripted(["b 90", "c 80", "d 70"]), budget)
    result = search([asking, Scripted(["e 60", "f 50"])], evaluate=evaluate, limits=budget).run()
    assert {t.candidate.change for t in result.history} == {"as written", "b 90", "e 60", "f 50"}
    assert result.best.candidate.change == "f 50"


def test_a_resumed_run_counts_what_was_spent_before(tmp_path: Path) -> None:
    """Three trials cost 30 tokens; the rest of a limit of 50 allows two more, and none of them is evaluated twice."""
    calls: list[int] = []

    def run(limit: int) -> SearchResult:
        usage = Usage()

        def evaluate(c: Candidate) -> Outcome:
            calls.append(c.id)
            usage.add(10)
            return by_text(c.pair)

        texts = [f"{name} {99 - i}" for i, name in enumerate("bcdefghi")]
        with Journal(tmp_path / "run.jsonl", HEADER) as journal:
            limits = Budget(Limits(tokens=limit), usage)
            return search([Asking(Scripted(texts), limits)], evaluate=evaluate, limits=limits, journal=journal).run()

    first, second = run(30), run(50)
    assert (first.stop, second.stop) == ("tokens", "tokens")
    assert trace(second)[: len(first.history)] == trace(first)
    assert len(second.history) == 5
    assert calls == list(range(5))


def test_a_fact_is_told_again_as_it_was(tmp_path: Path) -> None:
    with Journal(tmp_path / "run.jsonl", HEADER) as journal:
        assert journal.fact("start", lambda: {"a": (1, 2)}) == {"a": [1, 2]}
    with Journal(tmp_path / "run.jsonl", HEADER) as journal:
        assert journal.fact("start", lambda: "changed meanwhile") == {"a": [1, 2]}


def test_one_process_writes_a_journal(tmp_path: Path) -> None:
    with (
        Journal(tmp_path / "run.jsonl", HEADER),
        pytest.raises(CacheError, match="another process is in the same run"),
    ):
        Journal(tmp_path / "run.jsonl", HEADER)


def test_the_adaptive_schedule_goes_where_something_is_earned() -> None:
    def run(schedule: str) -> SearchResult:
        idle = Scripted([f"t{i} 100" for i in range(40)], stage=1, name="idle")
        earning = Scripted([f"k{i} {99 - i}" for i in range(40)], stage=2, name="earning")
        return search([idle, earning], options=SearchOptions(budget=41, schedule=schedule)).run()

    paper, adaptive = run("paper"), run("adaptive")
    stages = [t.stage for t in adaptive.history]
    assert stages[1:9] == [1] * 4 + [2] * 4, "both begin with the same share"
    assert stages[9:17] == [2] * 7 + [1], "one step a round is left to the stage that earns nothing"
    assert [sum(t.stage == 2 for t in r.history) for r in (paper, adaptive)] == [20, 32]
    assert adaptive.best.time_us is not None
    assert paper.best.time_us is not None
    assert adaptive.best.time_us < paper.best.time_us


def test_the_opening_has_the_likeliest_of_both_stages_and_takes_no_step_from_either() -> None:
    def stages(budget: int, schedule: str, steps: tuple[int, int] = (10, 10)) -> list[int]:
        proposers = [Scripted([f"{n}{i} 99" for i in range(40)], stage=n) for n in (1, 2)]
        options = SearchOptions(budget, stage1_steps=steps[0], stage2_steps=steps[1], schedule=schedule)
        return [t.stage for t in search(proposers, options=options).run().history[1:]]

    assert stages(21, "opening") == [2, 1, 2, 1, 1, 1] + 2 * [2, 2, 2, 1, 1, 1] + [2, 2]
    assert stages(41, "opening")[20:] == stages(41, "paper")[20:], "rounds behind the first are the paper's"
    assert stages(5, "opening", (1, 1)) == [2, 1, 1, 2]


@pytest.mark.parametrize("schedule", ["adaptive", "opening"])
def test_a_run_by_another_schedule_is_resumed_exactly(schedule: str, tmp_path: Path) -> None:
    options, file = SearchOptions(budget=20, schedule=schedule), tmp_path / "run.jsonl"

    def proposers() -> list[Proposer]:
        return [Scripted([f"t{i} {99 - i}" for i in range(20)]), Scripted([f"k{i} {90 - i}" for i in range(20)], 2)]

    with Journal(file, HEADER) as journal:
        whole = search(proposers(), journal=journal, options=options).run()
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:14]))
    with Journal(file, HEADER) as journal:
        resumed = search(proposers(), journal=journal, options=options).run()
    assert trace(resumed) == trace(whole)


def test_an_unknown_schedule_is_refused() -> None:
    with pytest.raises(CaseError, match="opening, paper, adaptive"):
        SearchOptions(schedule="random")


def test_progress_after_every_trial() -> None:
    events: list[Progress] = []
    search([Scripted(["b 90", "c fail"])], progress=events.append, options=SearchOptions(budget=10)).run()
    assert [(e.n, e.improved, e.incumbent_us) for e in events] == [(1, False, 100.0), (2, True, 90.0), (3, False, 90.0)]
    assert events[-1].outcomes == {"Timed": 2, "LaunchFailed": 1}
    assert events[-1].eta_s >= 0.0


HEADER = {"operator": "op", "seed": 0, "budget": 12}


def test_journal_has_every_trial(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "run.jsonl"
    with Journal(file, HEADER) as journal:
        result = rules(journal=journal, options=SearchOptions(budget=12)).run()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines[0] == {"schema": 2, **HEADER}
    assert [d["id"] for d in lines[1:]] == list(range(12))
    best = lines[1 + result.best.candidate.id]
    assert best["tiling"] == dict(result.best.candidate.pair.tiling)
    assert best["kernel"] == {}
    assert best["outcome"]["outcome"] == "Timed"
    assert best["moves"]


@pytest.mark.parametrize("torn", [0, 25])
@pytest.mark.parametrize("parallel", [1, 3])
def test_a_killed_run_continues_where_it_was(tmp_path: Path, torn: int, parallel: int) -> None:
    options, file = SearchOptions(budget=12, parallel=parallel), tmp_path / "run.jsonl"

    def launch(c: Candidate) -> str:  # buffer counts above one lead to the same launch here
        text = re.sub(
            r"BUFFER_NUM \d+", lambda m: "BUFFER_NUM 2" if m[0][-1] != "1" else m[0], c.pair.tiling["op_host/t.cpp"]
        )
        return Pair._digest({"t": text})

    with Journal(file, HEADER) as journal:
        whole = rules(journal=journal, options=options, fingerprint=launch).run()
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:7]) + lines[7][:torn])
    calls: list[int] = []

    def evaluate(candidates: Sequence[Candidate]) -> Iterator[tuple[int, Outcome]]:
        for c in candidates:
            calls.append(c.id)
            yield c.id, cost(c.pair)

    with Journal(file, HEADER) as journal:
        resumed = rules(journal=journal, options=options, evaluate_many=evaluate, fingerprint=launch).run()
    assert trace(resumed) == trace(whole)
    assert min(calls) >= 6
    assert [json.loads(x)["id"] for x in file.read_text().splitlines()[1:]] == list(range(len(whole.history)))


def test_a_resumed_run_may_have_a_larger_budget(tmp_path: Path) -> None:
    file, results = tmp_path / "run.jsonl", []
    for budget in (5, 9):
        options = SearchOptions(budget=budget)
        header = run_header("key", options, [TilingRules()])
        with Journal(file, header) as journal:
            results.append(rules(journal=journal, options=options).run())
    assert trace(results[1])[:5] == trace(results[0])
    assert results[1].evaluations == 9
    assert trace(results[1]) == trace(rules(options=SearchOptions(budget=9)).run())


def test_a_journal_of_another_run_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    Journal(file, HEADER).close()
    with pytest.raises(CacheError, match=r"another run.*seed"):
        Journal(file, {**HEADER, "seed": 1})
    file.write_text("{}\n")
    with pytest.raises(CacheError, match="line 1"):
        read_journal(file)


def test_a_full_disk_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheError, match="can't write the journal"):
        Journal(tmp_path / "file" / "run.jsonl", HEADER)


def test_what_the_journal_could_not_keep_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a run that ends with its disk full only what is in the journal was told: it is what a resumed run has."""
    file, told = tmp_path / "run.jsonl", list[Progress]()
    options = SearchOptions(budget=6, parallel=2)
    with Journal(file, HEADER) as journal:
        append = journal._log.append

        def until_two_are_told(*lines: str | bytes) -> None:
            if len(told) >= 2:
                raise OSError(28, "No space left on device")
            append(*lines)

        monkeypatch.setattr(journal._log, "append", until_two_are_told)
        with pytest.raises(CacheError, match="No space left"):
            rules(journal=journal, options=options, progress=told.append).run()
    assert {event.trial.candidate.pair.hash for event in told} == set(read_journal(file).outcomes)
