"""The survey of motifs: what is counted where, what a motif is worth to an operator, and the page's section."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from ascendopt_tune.bank.worth import MotifGain
from ascendopt_tune.bench import survey as work
from ascendopt_tune.bench.subject import Subject
from ascendopt_tune.errors import CacheError, OperatorError
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.nouns.operator import Operator, Pair
from ascendopt_tune.nouns.outcome import Outcome, Timed, WrongResult
from ascendopt_tune.nouns.profile import Profile
from ascendopt_tune.search.kernel.motifs import MOTIFS

KERNEL = """
class K {
  void Init() { pipe.InitBuffer(inQueue, 1, 4096); }
  void Process() { for (int i = 0; i < n; i++) { Compute(); PipeBarrier<PIPE_ALL>(); } }
  void Compute() { Muls(t, x, 2.0f, n); Add(y, y, t, n); }
};
extern "C" __global__ void k(GM_ADDR x) { K op; op.Init(); op.Process(); }
"""


def operators(root: Path) -> Path:
    """Two operators that have no host program, and one that others wrote."""
    for name in ("a", "deep/b", "third_party/c"):
        kernel = root / "src" / name / "op_kernel"
        kernel.mkdir(parents=True)
        (kernel / "k.cpp").write_text(KERNEL)
        (kernel / "notes.md").write_text("PipeBarrier<PIPE_ALL>")
    return root / "src"


def test_every_operator_below_a_folder_is_counted_for_each_motif(tmp_path: Path) -> None:
    (tmp_path / "repository").mkdir()
    found = list(work.survey(operators(tmp_path / "repository")))
    assert [(k.source, k.name) for k in found] == [("repository", "a"), ("repository", "deep/b")]
    assert found[0].matches["double-buffer"] == 1
    assert {"full-barrier", "fused-multiply-add"} <= set(found[0].matches)
    with pytest.raises(OperatorError, match="no operator below"):
        list(work.survey(tmp_path / "repository" / "src" / "a" / "op_kernel"))


class MadeUpSubject:
    """Full barriers cost; a kernel with two buffers is wrong."""

    def __init__(self) -> None:
        self.operator = Operator("k", Path(), "k", "k.cpp", Pair({"t.cpp": ""}, {"k.cpp": KERNEL}))
        self.entry: Any = type("Entry", (), {"path": "k", "size": "medium", "name": "k medium"})
        self.chip = load_chip("ascend910b4")
        self.broken = False

    def launch(self, pair: Pair) -> str | None:
        return None

    def outcome(self, pair: Pair) -> Outcome:
        text = pair.kernel["k.cpp"]
        if self.broken or "inQueue, 2" in text:
            return WrongResult("wrong")
        return Timed(Profile(100.0 if "PIPE_ALL" in text else 80.0))


def test_a_motif_is_worth_what_the_gate_lets_through() -> None:
    subject = MadeUpSubject()
    gains = {g.motif: g for g in work.measure(cast(Subject, subject), [m.name for m in MOTIFS])}
    only = list(work.measure(cast(Subject, subject), ["double-buffer"]))
    assert [g.motif for g in only] == ["double-buffer"]
    assert gains["full-barrier"].speedup == 1.25
    assert gains["full-barrier"].faster
    assert gains["double-buffer"].speedup is None
    assert gains["fused-multiply-add"].speedup == 1.0
    assert not gains["fused-multiply-add"].faster
    subject.broken = True
    with pytest.raises(OperatorError, match="does not pass the gate"):
        list(work.measure(cast(Subject, subject), ["full-barrier"]))


def test_the_page_has_a_row_for_every_motif_and_says_what_it_is_of(tmp_path: Path) -> None:
    found = work.Survey(
        [work.Surveyed("cann-ops", "a", {"full-barrier": 2}), work.Surveyed("cann-ops", "b", {"full-barrier": 1})],
        [
            MotifGain("full-barrier", "a", "medium", "Scalar bound", 1.5),
            MotifGain("full-barrier", "a", "large", "Scalar bound", 1.2),
            MotifGain("full-barrier", "b", "medium", "", None),
            MotifGain("full-barrier", "b", "large", "", 1.005),
        ],
    )
    page = tmp_path / "page.md"
    page.write_text(f"before\n{work.BEGIN}\nold\n{work.END}\nbehind\n")
    work.write(page, work.section(found, ["cann-ops, 2 operators"], "2026-01-02"))
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith(f"{work.END}\nbehind\n")
    assert "old" not in text
    assert "2026-01-02: cann-ops, 2 operators." in text
    assert "| `full-barrier` | 2 | 2 | 2 | 1 | 1.23x | 1.50x |" in text
    assert all(f"`{m.name}`" in text for m in MOTIFS)
    found.motifs = ("flag-pair",)
    assert "full-barrier" not in work.table(found)
    page.write_text("no marks")
    with pytest.raises(CacheError, match="no place"):
        work.write(page, "text")


def test_rows_of_some_motifs_are_put_into_a_table_that_is_there(tmp_path: Path) -> None:
    kernels = [work.Surveyed("cann-ops", name, {"full-barrier": 1}) for name in ("a", "b")]
    first = work.Survey(
        kernels, [MotifGain("full-barrier", "a", "medium", "", 1.5)], motifs=("full-barrier", "flag-pair")
    )
    page = tmp_path / "page.md"
    page.write_text(f"before\n{work.BEGIN}\n\n{work.END}\nbehind\n")
    work.write(page, work.section(first, ["cann-ops, 2 operators"], "2026-01-02"))
    more = work.Survey(
        [work.Surveyed("cann-ops", "a", {"flag-pair": 1}), work.Surveyed("cann-ops", "b", {})],
        [MotifGain("flag-pair", "a", "medium", "", 1.25)],
        motifs=("flag-pair", "ping-pong"),
    )
    for _ in range(2):  # again, and nothing is said twice
        work.write(page, work.renewed(work.written(page), more, ["cann-ops, 2 operators"], "2026-03-04", 4))
        text = page.read_text()
        assert text.count("2026-01-02: cann-ops") == 1
        assert text.count("The rows of `flag-pair`, `ping-pong`: 2026-03-04, cann-ops, 2 operators.") == 1
        assert text.count("(medium; asked was one operator in 4)") == 1
        rows = [line for line in text.splitlines() if line.startswith("| `")]
        assert rows == [
            "| `full-barrier` | 2 | 1 | 1 | 1 | 1.50x | 1.50x |",
            "| `flag-pair` | 1 | 1 | 1 | 1 | 1.25x | 1.25x |",
            "| `ping-pong` | 0 | 0 | 0 | 0 |  |  |",
        ]
    with pytest.raises(CacheError, match="other columns"):
        work.renewed(work.written(page), work.Survey(kernels, motifs=("flag-pair",)), [], "2026-03-04")
    with pytest.raises(CacheError, match="can't read"):
        work.written(tmp_path / "none.md")


def test_only_the_motifs_that_are_asked_for_are_counted(tmp_path: Path) -> None:
    found = list(work.survey(operators(tmp_path), ["full-barrier"]))
    assert [set(k.matches) for k in found] == [{"full-barrier"}] * 2
    pair = Pair({}, {"k.cpp": KERNEL})
    assert work.has_place(pair, True, ["ping-pong", "full-barrier"])
    assert not work.has_place(pair, True, ["ping-pong"])
