"""What `run` says of inputs that are no part of the checks, and of a core's time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ascendopt_tune.report.text import counted, shorter_search, skipped_lines

_SKIPPED = [
    "lines inputs, seed 1: y covers bytes [0, 8) [trial 1 of 1: lines inputs, seed 1]",
    "large inputs, seed 2: y covers bytes [0, 8) [trial 1 of 1: large inputs, seed 2]",
    "lines inputs, seed 8: y covers bytes [0, 8) [trial 1 of 1: lines inputs, seed 8]",
    "tiny inputs, seed 9: 3 elements are wrong: worst 2 times the tolerance",
]


def test_a_failure_is_not_hidden_behind_its_like() -> None:
    [line] = skipped_lines(_SKIPPED, failed=True)
    assert "(lines, large, tiny)" in line
    assert skipped_lines([], failed=True) == []


def test_one_line_for_each_reason() -> None:
    same, other = skipped_lines(_SKIPPED, failed=False)
    assert same.endswith(": lines, large inputs: y covers bytes [0, 8)")
    assert other.endswith(": tiny inputs: 3 elements are wrong: worst 2 times the tolerance")


def test_a_smaller_search_is_said() -> None:
    def record(cached: bool, ended: str) -> Any:
        provenance = SimpleNamespace(ended=ended, budget=3)
        return SimpleNamespace(cached=cached, entry=SimpleNamespace(provenance=provenance))

    note = shorter_search(record(True, "budget"), 40)
    assert note is not None
    assert "3 evaluations" in note
    assert "--retune" in note
    assert shorter_search(record(True, "budget"), 3) is None
    assert shorter_search(record(True, "exhausted"), 40) is None  # there was nothing left to try
    assert shorter_search(record(False, "budget"), 40) is None


def test_counts_have_their_number() -> None:
    assert [counted(n, "file") for n in (0, 1, 2)] == ["0 files", "1 file", "2 files"]
