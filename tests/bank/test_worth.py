"""What motifs earned where they were tried, and what that does to retrieval."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from bank_examples import BOTTLENECKS, experience
from test_retrieval import documented

from ascendopt_tune import paths
from ascendopt_tune.bank import worth
from ascendopt_tune.bank.bank import PRIOR, Bank
from ascendopt_tune.bench import table
from ascendopt_tune.errors import BankError
from ascendopt_tune.search.kernel.motifs import MOTIFS

SCALAR, VECTOR = "Scalar bound", "Vector bound"


def two(motif: str, operator: str, bottleneck: str, speedup: float | None) -> list[worth.MotifGain]:
    return [worth.MotifGain(motif, operator, size, bottleneck, speedup) for size in ("decode", "medium")]


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    gains = [*two("b", "op", SCALAR, 1.25), *two("a", "op", VECTOR, None)]
    worth.write(tmp_path / "worth.csv", gains)
    assert sorted(worth.read(tmp_path / "worth.csv"), key=str) == sorted(gains, key=str)
    assert worth.read(tmp_path / "none.csv") == ()
    (tmp_path / "other.csv").write_text("motif,gain\nx,1\n")
    with pytest.raises(BankError, match="no table of what motifs earned"):
        worth.read(tmp_path / "other.csv")


def test_what_is_expected_is_drawn_to_nothing_and_to_the_motif_s_mean() -> None:
    """One operator of two gains: half of it and one that is made up; with its bottleneck half of that way back."""
    found = worth.Worth(two("m", "op", SCALAR, math.e))
    assert found.expected("m", VECTOR) == pytest.approx(1 / 2)
    assert found.expected("m", SCALAR) == pytest.approx((1 + 3 * (1 / 2)) / 4)
    assert found.expected("other", SCALAR) == 0.0
    more = worth.Worth([g for i in range(50) for g in two("m", f"op{i}", SCALAR, math.e)])
    assert more.expected("m", SCALAR) == pytest.approx(1.0, abs=0.03)
    assert 0.9 < more.weight("m", SCALAR) < 1


@pytest.mark.parametrize("speedup", [None, 1.0, 0.5])
def test_what_failed_or_was_slower_is_worth_nothing(speedup: float | None) -> None:
    assert worth.Worth(two("m", "op", SCALAR, speedup)).weight("m", SCALAR) == 0.0


def test_what_earned_with_a_bottleneck_comes_before_what_is_nearer_by_a_little(tmp_path: Path) -> None:
    bank = Bank(tmp_path, gains=two("motif_1", "op", worth.first_bottleneck(BOTTLENECKS[0]), 2.0))
    bank.add(experience(n) for n in range(3))
    plain = {e.motif: score for e, score in bank.search(BOTTLENECKS[0], 3)}
    scores = {e.motif: score for e, score in bank.search(BOTTLENECKS[0], 3, places=("motif_0", "motif_1", "motif_2"))}
    assert 0 < scores["motif_1"] - plain["motif_1"] < PRIOR
    assert {m: scores[m] for m in ("motif_0", "motif_2")} == {m: plain[m] for m in ("motif_0", "motif_2")}


def test_a_motif_without_a_place_is_left_out_and_what_names_no_motif_stays(tmp_path: Path) -> None:
    bank = Bank(tmp_path, gains=())
    known = [m.name for m in MOTIFS[:2]]
    bank.add([experience(0, motif=known[0]), experience(1, motif=known[1]), experience(2, motif="llm-idea")])
    assert {e.motif for e, _ in bank.search(BOTTLENECKS[0], 9)} == {*known, "llm-idea"}
    assert {e.motif for e, _ in bank.search(BOTTLENECKS[0], 9, places=known[1:])} == {known[1], "llm-idea"}


def test_an_operator_counts_once_whatever_sizes_it_was_measured_at() -> None:
    sizes = worth.Worth([*two("m", "a", SCALAR, math.e), worth.MotifGain("m", "b", "large", SCALAR, 1.0)])
    assert sizes.expected("m", VECTOR) == pytest.approx(1 / 3)


def test_the_shipped_table_is_of_the_development_list_alone_and_as_documented() -> None:
    gains = worth.read(paths.shipped("cache") / "bank" / worth.FILE)
    development = {o.path for o in table.listed(table.read(), table.DEVELOPMENT)}
    operators = {g.operator for g in gains}
    assert operators <= development
    assert {g.motif for g in gains} <= {m.name for m in MOTIFS}
    page, found = documented("docs/bank.md"), worth.Worth(gains)
    assert f"{len(gains)} rows of {len(operators)} operators" in page
    for motif in ("constant-tiling", "full-barrier", "rings-for-queues", "deferred-wait", "vector-barrier"):
        assert f"`{motif}` {math.expm1(found.expected(motif, '')):.0%}".replace("%", " %") in page, motif
