"""What people read of a tuned case: intervals, why the baseline is kept, waves; in text, HTML, story and JSON."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import cache_examples as example
from rich.console import Console

from ascendopt_tune.nouns.clocks import Interval
from ascendopt_tune.nouns.profile import Profile
from ascendopt_tune.report.html import write_report
from ascendopt_tune.report.story import write_story
from ascendopt_tune.report.text import print_tuned, print_tuned_together
from ascendopt_tune.store.entry import FRAGILE, WIN
from ascendopt_tune.tuner import TuneRecord

TEXT = "2.00x (1.80 to 2.30 over plausible clocks)"


def record(improved: bool = True, decision: str = WIN, blocks: int = 40) -> TuneRecord:
    made = example.entry()
    entry = replace(
        made,
        pair=made.pair if improved else example.PAIR,
        best=Profile(5.0, 4.0, block_dim=blocks),
        provenance=replace(made.provenance, decision=decision),
        interval=Interval(1.8, 2.3, 0.975) if improved else None,
    )
    return TuneRecord(entry.key, example.case(), entry, cached=True)


def texts(told: TuneRecord, folder: Path) -> tuple[str, str]:
    """The text and the HTML of a record."""
    out = io.StringIO()
    print_tuned(Console(file=out, width=200), example.operator(), told)
    write_report(folder / "report.html", example.operator(), told)
    return out.getvalue(), (folder / "report.html").read_text()


def test_a_speedup_is_told_with_its_interval(tmp_path: Path) -> None:
    text, html = texts(record(), tmp_path)
    assert f"speedup {TEXT}, modelled" in text
    assert "1.80 to 2.30 over plausible clocks" in html
    assert "waves" not in text + html
    found = record().to_json()
    assert (found["speedup_low"], found["speedup_high"], found["wins"], found["waves"]) == (1.8, 2.3, 0.975, 1)
    assert "note" not in found
    out = io.StringIO()
    print_tuned_together(Console(file=out, width=200), example.operator(), [record(), record()], [1.0, 1.0])
    assert out.getvalue().count(TEXT) == 2


def test_a_measured_speedup_has_no_interval(tmp_path: Path) -> None:
    told = record()
    told = replace(told, entry=replace(told.entry, interval=None))
    text, html = texts(told, tmp_path)
    assert "speedup 2.00x, " in text
    assert "plausible" not in text + html
    assert not {"speedup_low", "speedup_high", "wins"} & told.to_json().keys()


def test_the_reason_for_keeping_the_baseline_is_told(tmp_path: Path) -> None:
    text, html = texts(record(improved=False, decision=FRAGILE), tmp_path)
    assert f"{FRAGILE}: the baseline is kept" in text
    assert "survives the clock&#39;s uncertainty: the baseline is kept" in html
    text, html = texts(record(improved=False, decision=""), tmp_path)
    assert "no significant win: the baseline is kept" in text, "an old entry doesn't say why"
    assert "No faster pair was found: the baseline is kept" in html


def test_more_blocks_than_cores_are_marked(tmp_path: Path) -> None:
    note = "best pair: 64 blocks on 48 cores: they run in 2 waves"
    told = record(blocks=64)
    text, html = texts(told, tmp_path)
    assert note in text
    assert note in html
    assert (told.to_json()["waves"], told.to_json()["note"]) == (2, note.removeprefix("best pair: "))


def test_the_story_tells_both(tmp_path: Path) -> None:
    import test_story

    told = test_story.record()
    best = replace(told.entry.best, block_dim=64)
    told = replace(told, entry=replace(told.entry, best=best, interval=Interval(1.8, 2.3, 1.0)))
    write_story(tmp_path / "story.md", example.operator(), told)
    text = (tmp_path / "story.md").read_text()
    assert f"| best | 5.00 us, {TEXT} |" in text
    assert "64 blocks on 48 cores" in text
