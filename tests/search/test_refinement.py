"""What a run leaves to the experience bank, and what it is told when it is resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_kernel_rules import CHIP, baseline, by_text, only, operator, state, tried

from ascendopt_tune.bank.bank import Bank
from ascendopt_tune.bank.experience import Experience
from ascendopt_tune.bank.refinement import LearningRun, learned
from ascendopt_tune.bank.retrieval import Retrieval
from ascendopt_tune.errors import BankError
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.outcome import Hazard, Timed
from ascendopt_tune.nouns.trial import Move, Proposal, Trial
from ascendopt_tune.search.journal import Journal

SPEC = TensorSpec("float32", (64, 1024))
HELPS, FAILS = "double-buffer", "full-barrier"


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path / "bank")


def a_run() -> list[Trial]:
    """One motif that helped, one that the gate refused, both tried on the baseline."""
    history = baseline()
    history = tried(history, only(history, HELPS), by_text(only(history, HELPS).pair))
    return tried(history, only(history, FAILS), Hazard("two pipes, one buffer"))


def run(
    history: list[Trial], found: dict[str, tuple[Experience, ...]] | None = None, name: str = "first"
) -> LearningRun:
    return LearningRun(name, operator(), Case((SPEC,), (SPEC,)), CHIP, "virtual", history, found or {}, 3, "1.0", "v1")


def test_what_helped_and_what_failed_are_kept_with_evidence(bank: Bank) -> None:
    history = a_run()
    made = {e.motif: e for e in learned(run(history), bank).experiences.values()}
    assert {m: e.kind for m, e in made.items()} == {HELPS: "positive", FAILS: "negative"}
    helped, failed = made[HELPS], made[FAILS]
    assert isinstance(history[0].outcome, Timed)
    assert helped.before == failed.before == history[0].outcome.profile
    assert helped.after is not None
    assert failed.after is None
    assert failed.reason == "Hazard: two pipes, one buffer"
    assert helped.diff.startswith("--- slow/k.cpp")
    assert (helped.provenance.source, helped.provenance.seed, helped.validated) == ("refinement", 3, False)


def test_the_same_again_teaches_nothing_new(bank: Bank) -> None:
    assert bank.merge(learned(run(a_run()), bank)).experiences
    records = learned(run(a_run()), bank)
    assert not records.experiences
    assert not bank.merge(records).lines()


def test_what_was_retrieved_is_counted(bank: Bank) -> None:
    bank.merge(learned(run(a_run()), bank))
    by_motif = {e.motif: e for e in bank}
    history = a_run()
    found = {history[0].candidate.pair.hash: tuple(by_motif.values())}
    bank.merge(learned(run(history, found), bank))
    bank.merge(learned(run(history, found), bank))  # a run that was resumed tells it twice
    counts = {e.motif: (e.applied, e.helped) for e in bank}
    assert counts == {HELPS: (1, 1), FAILS: (1, 0)}


def test_experience_a_language_model_was_asked_to_apply_is_counted(bank: Bank) -> None:
    bank.merge(learned(run(a_run()), bank))
    experience = next(iter(bank))
    history = baseline()
    helped = only(history, HELPS)
    asked = Proposal(helped.pair, "doubled", 0, (Move(f"experience:{experience.id}", "experience", "set", 0.0),))
    records = learned(run(tried(history, asked, by_text(helped.pair))), bank)
    assert [(u.experience, u.helped) for u in records.uses] == [(experience.id, True)]
    assert not records.experiences  # no motif's: there is nothing to name it by


def test_several_motifs_at_once_teach_nothing_of_each(bank: Bank) -> None:
    history = baseline()
    first, second = only(history, HELPS), only(history, FAILS)
    both = Proposal(first.pair, "both", 0, (*first.moves, *second.moves))
    assert not learned(run(tried(history, both, by_text(first.pair))), bank).lines()


def test_a_resumed_run_is_told_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bank = Bank(tmp_path / "bank")
    bank.merge(learned(run(a_run()), bank))
    monkeypatch.setattr(Bank, "open", staticmethod(lambda apart: Bank(tmp_path / "bank", apart_from=apart)))

    def asked() -> list[str]:
        with Journal(tmp_path / "run.jsonl", {"run": 1}) as log:
            retrieval = Retrieval(lambda text: None)
            retrieval.fact = log.fact
            return [e.id for e in retrieval(state(baseline()), 8)]

    first = asked()
    assert len(first) == 1  # negative experience is no advice
    other = next(e for e in bank if e.kind == "negative")
    found: dict[str, Any] = {**other.to_json(), "kind": "positive", "title": "came later", "applied": 0, "helped": 0}
    del found["id"]
    assert bank.add([Experience.from_json(found)]) == 1
    assert asked() == first
    (tmp_path / "run.jsonl").unlink()
    assert len(asked()) == 2


def test_a_run_is_not_told_what_it_left_itself(bank: Bank) -> None:
    bank.merge(learned(run(a_run()), bank))
    history = a_run()
    found = {history[0].candidate.pair.hash: tuple(bank)}
    bank.merge(learned(run(history, found, "second"), bank))
    apart = {name: Bank(bank.root, apart_from=name) for name in ("first", "second")}
    assert (len(apart["first"]), len(apart["second"])) == (0, 2)
    assert apart["first"].search("any", 3) == []
    assert [e.applied for e in apart["second"]] == [0, 0]
    assert [e.applied for e in bank] == [1, 1]


def test_a_bank_that_cannot_be_used_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(apart_from: str) -> Bank:
        raise BankError("no bank today.")

    monkeypatch.setattr(Bank, "open", staticmethod(broken))
    told: list[str] = []
    retrieval = Retrieval(told.append)
    assert list(retrieval(state(baseline()), 8)) == []
    assert list(retrieval(state(a_run(), 1), 8)) == []
    retrieval.give(lambda bank: pytest.fail("there is no bank"))
    assert told == ["the experience bank can't be used: no bank today."]
