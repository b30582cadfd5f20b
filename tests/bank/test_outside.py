"""What the bank finds for kernels that nobody mined and no rewind wrote; outside.py says how the figures come about."""

from __future__ import annotations

import json

import hand_written
import outside
import pytest
from test_retrieval import SHIPPED, documented

from ascendopt_tune.bank import bank
from ascendopt_tune.bank.bank import read_records
from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.search.kernel.motifs import MOTIFS
from ascendopt_tune.settings import settings


def test_the_hand_written_kernels_are_outside_of_the_bank() -> None:
    names = hand_written.names()
    assert len(names) >= 30
    assert set(names) == set(hand_written.FORMULAS)
    assert not set(names) & {e.operator for e in read_records(SHIPPED).experiences.values()}


def test_their_classes_are_those_of_the_catalogue() -> None:
    known = outside.met_by()
    assert {hand_written.wanted(name) for name in hand_written.names()} <= set(known)
    assert all(motifs or "nothing" in says or "rule" in says or "joint move" in says for motifs, says in known.values())


def test_the_documents_quote_what_comes_out() -> None:
    page = documented("docs/bank.md")
    for what, score in outside.figures().items():
        assert f"| {what} | {score.right} of {score.of} | {score.constant} |" in page, what


def test_what_was_earned_is_held_against_plain_likeness(monkeypatch: pytest.MonkeyPatch) -> None:
    what = "operators, the motif that gained most, of motifs that have a place"
    both = outside.figures()[what].right
    monkeypatch.setattr(bank, "PRIOR", 0.0)
    alone = outside.figures()[what].right
    assert both > alone
    assert f"gives {both - alone} operators more, {both} for {alone};" in documented("docs/bank.md")
    for page in ("README.md", "docs/claims.md", "docs/trust.md"):
        assert any(
            f"{word} {both}" in documented(page) for word in ("real operators it is in", "gains most in", "motif in")
        )


def test_no_symptom_names_a_motif() -> None:
    document = json.loads(outside.FILE.read_text())
    texts = [row["symptoms"] for kind in ("slow", "operators") for row in document[kind]]
    assert not any(m.name in text or m.title in text for m in MOTIFS for text in texts)


def _kept(kind: str) -> dict[str, object]:
    return {row["name"]: row for row in json.loads(outside.FILE.read_text())[kind]}


def _as_json(shown: outside.Shown) -> object:
    return json.loads(json.dumps(vars(shown)))


@pytest.mark.parametrize("name", ["small_rows"])
def test_a_hand_written_kernel_shows_what_is_kept(name: str) -> None:
    with Evaluator(virtual(), outside.CHIP, workers=1) as evaluator:
        assert _as_json(outside.run_slow(name, evaluator)) == _kept("slow")[name]


@pytest.mark.battery
@pytest.mark.parametrize("name", hand_written.names())
def test_hand_written_kernels_show_what_is_kept(name: str) -> None:
    with Evaluator(virtual(), outside.CHIP, workers=1) as evaluator:
        assert _as_json(outside.run_slow(name, evaluator)) == _kept("slow")[name]


@pytest.mark.battery
def test_operators_show_what_is_kept(tmp_path_factory: pytest.TempPathFactory) -> None:
    if settings().cann_ops is None:
        pytest.skip("ASCENDOPT_CANN_OPS is not set")
    kept, results = _kept("operators"), tmp_path_factory.mktemp("outside")
    for entry in outside.entries():
        if entry.path in kept:
            assert _as_json(outside.run_operator(entry, results)) == kept[entry.path]
