"""The story of a run: a page and a picture, made from the record alone."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import cache_examples as example
import pytest

from ascendopt_tune.errors import CacheError
from ascendopt_tune.nouns.operator import Candidate, Pair
from ascendopt_tune.nouns.outcome import Hazard, Outcome, Timed
from ascendopt_tune.nouns.profile import Profile
from ascendopt_tune.nouns.trial import Move, Trial
from ascendopt_tune.report.charts import trajectory
from ascendopt_tune.report.story import steps, write_story
from ascendopt_tune.tuner import TuneRecord

BASE = example.PAIR


def pair(tile: int, kernel: str = "// kernel\n") -> Pair:
    return Pair({**BASE.tiling, "op_host/add.cpp": f"int tile = {tile};\n"}, {"op_kernel/add.cpp": kernel})


def trial(
    number: int,
    of: Pair,
    outcome: float | str,
    parent: int | None,
    stage: int,
    change: str,
    family: str = "tile_length",
) -> Trial:
    counters = {"mte2_copies": 8.0, "mte2_bytes": 4096.0}
    made: Outcome = Hazard(outcome) if isinstance(outcome, str) else Timed(Profile(outcome, 9.0, counters=counters))
    candidate = Candidate(number, of, parent, "tiling-rules", change)
    return Trial(candidate, made, (Move("s", family, "up", 1.0),) if number else (), 1 if number else 0, stage)


def record() -> TuneRecord:
    history = (
        trial(0, BASE, 10.0, None, 0, "as written"),
        trial(1, pair(2), 9.0, 0, 1, "tile 1 -> 2"),
        replace(trial(2, pair(3), 9.0, 1, 1, "again"), duplicate_of=1),
        trial(3, pair(4), "V reads before MTE2 wrote", 1, 1, "tile 2 -> 4"),
        trial(4, pair(5), 8.0, 0, 1, "tile 1 -> 5"),
        trial(5, pair(2, "// fused\n"), 5.0, 1, 2, "fuse <two> instructions", "fusion"),
    )
    entry = replace(example.entry(best_us=5.0), pair=history[5].candidate.pair)
    return TuneRecord(entry.key, example.case(), entry, False, history, "budget")


def test_steps_are_the_changes_of_the_incumbent() -> None:
    found = steps(record())
    assert [(s.n, s.trial.candidate.id, s.before.candidate.id, s.parent.candidate.id) for s in found] == [
        (2, 1, 0, 0), (4, 4, 1, 0), (5, 5, 4, 1)
    ]  # fmt: skip


def test_the_page_tells_stages_changes_reasons_and_what_was_tried(tmp_path: Path) -> None:
    write_story(tmp_path / "story.md", example.operator(), record())
    text = (tmp_path / "story.md").read_text()
    assert "| 1 | Stage I | 2 to 4 | 2 | 8.00 us | 1.25x |" in text
    assert "| 1 | Stage II | 5 | 1 | 5.00 us | 2.00x |" in text
    assert "### Evaluation 5, Stage II: fuse <two> instructions" in text
    assert "It changes candidate 1 (9.00 us), not the best then." in text
    assert text.count("not part of the result") == 1, "tile 1 -> 5 led nowhere"
    assert "-// kernel" not in text.split("### Evaluation 2")[0]
    assert "+// fused" in text
    assert "-int tiling = 1;" in text
    assert text.count("*Why.*") == 3
    assert "8 of 512 bytes" in text
    assert "| Stage I | tile_length | 2 | 0 | 0 | 1 |" in text
    assert "| Stage II | fusion | 1 | 0 | 0 | 0 |" in text
    assert "all times are modelled" in text
    assert (tmp_path / "story.svg").exists()
    write_story(tmp_path / "story.md", example.operator(), record(), diffs=False)
    assert "+// fused" not in (tmp_path / "story.md").read_text()


def test_the_picture_is_well_formed_and_has_every_evaluation() -> None:
    root = ElementTree.fromstring(trajectory(record().history.evaluated, "modelled", "white"))
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f"{space}circle")) == 4
    assert "fuse <two> instructions" in "".join(root.itertext())
    assert "modelled" in "".join(root.itertext())


def test_a_cached_answer_has_no_story(tmp_path: Path) -> None:
    with pytest.raises(CacheError, match="--retune"):
        write_story(tmp_path / "story.md", example.operator(), replace(record(), history=()))
    assert not list(tmp_path.iterdir())
