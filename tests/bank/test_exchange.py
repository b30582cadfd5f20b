"""Import and export: the project's own form, and lists of optimization points with texts of our own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bank_examples import BOTTLENECKS, experience

from ascendopt_tune.bank.bank import Bank
from ascendopt_tune.bank.exchange import points, read_any, write_file
from ascendopt_tune.errors import BankError

POINTS = [
    {
        "title": "Two buffers for the input queue",
        "description": "The next tile is copied in while this one is computed.",
        "bottleneck": "The vector unit waits for each copy to end.",
        "code_diff": "--- slow\n+++ fast\n-  pipe.InitBuffer(q, 1, n);\n+  pipe.InitBuffer(q, 2, n);\n",
    },
    {
        "title": "One block for each core",
        "description": "The rows are spread over all cores.",
        "bottleneck": "One core does all the work.",
        "code_diff": "--- slow\n+++ fast\n-  context->SetBlockDim(1);\n+  context->SetBlockDim(cores);\n",
    },
]


def test_export_and_import_are_inverse(tmp_path: Path) -> None:
    bank = Bank(tmp_path / "a", [tmp_path / "shipped"])
    Bank(tmp_path / "shipped").add([experience(5)])
    bank.add(experience(n) for n in range(3))
    bank.used(experience(1), "trial", True)
    file = tmp_path / "out" / "bank.jsonl"
    assert write_file(file, bank.records()) == 4
    other = Bank(tmp_path / "b")
    other.merge(read_any(file))
    assert other.records().lines() == bank.records().lines()
    assert file.read_text().splitlines() == bank.records().lines()
    assert not other.merge(read_any(tmp_path / "a")).experiences  # a bank's folder is read, too


def test_export_of_a_choice_keeps_its_uses_only(tmp_path: Path) -> None:
    bank = Bank(tmp_path)
    bank.add(experience(n) for n in range(3))
    for n in (0, 1):
        bank.used(experience(n), "trial", True)
    file = tmp_path / "one.jsonl"
    assert write_file(file, bank.records(), [experience(1)]) == 1
    found = read_any(file)
    assert set(found.experiences) == {u.experience for u in found.uses} == {experience(1).id}


def test_optimization_points_are_imported(tmp_path: Path) -> None:
    file = tmp_path / "optimization_points.json"
    file.write_text(json.dumps(POINTS))
    bank = Bank(tmp_path / "bank")
    for _ in range(2):
        bank.merge(read_any(file))
    assert sorted(e.title for e in bank) == sorted(p["title"] for p in POINTS)
    ((first, _), *_) = bank.search("the work is done by one core", 1, kind="positive", one_per_motif=True)
    assert first.title == "One block for each core"
    assert first.diff == POINTS[1]["code_diff"].strip()
    assert (first.motif, first.speedup, first.validated) == ("", None, False)
    assert first.provenance.source == "import of optimization_points.json"


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([{"title": "x"}], "entry 1, is no optimization point"),
        ([POINTS[0], {**POINTS[1], "gain": 2}], "entry 2, is no"),
        ([{**POINTS[0], "title": 3}], "title is no text"),
        (["text"], "entry 1"),
    ],
)
def test_other_lists_are_refused(entries: list[object], reason: str) -> None:
    with pytest.raises(BankError, match=reason):
        points(entries, "file.json")


@pytest.mark.parametrize(("content", "reason"), [("[1, 2", "can't be read"), ("a,b\n1,2\n", "no experience bank")])
def test_other_files_are_refused(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "x").write_text(content)
    with pytest.raises(BankError, match=reason):
        read_any(tmp_path / "x")
    with pytest.raises(BankError, match="no file"):
        read_any(tmp_path / "y")


def test_imports_and_measured_experience_live_together(tmp_path: Path) -> None:
    bank = Bank(tmp_path)
    bank.add(experience(n) for n in range(4))
    bank.merge(points(POINTS, "p.json"))
    assert bank.search(BOTTLENECKS[1], 1)[0][0].motif == "motif_1"
    assert sum(e.validated for e in bank) == 4
