"""The HTML report: small, alone, well-formed; what it shows of a run."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import cache_examples as example
import pytest
import test_story

from ascendopt_tune.report.charts import bars, trajectory
from ascendopt_tune.report.html import write_report
from ascendopt_tune.report.repeat import command

MOST_BYTES = 400_000
VOID = {"meta", "input", "br", "rect", "path", "circle"}
CHROMIUM = next((p for name in ("chromium", "chromium-browser") if (p := shutil.which(name))), None)


class Balanced(HTMLParser):
    """Raises where a tag is closed that isn't open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.fixture
def page(tmp_path: Path) -> Path:
    write_report(tmp_path / "report.html", example.operator(), test_story.record())
    return tmp_path / "report.html"


def test_it_is_small_alone_and_well_formed(page: Path) -> None:
    text = page.read_text()
    assert page.stat().st_size < MOST_BYTES / 4, "a run of a few candidates"
    links = re.findall(r"(?:src|href|url)\s*[=(]\s*[\"']?([^\"')\s]+)", text)
    assert links == [], "nothing is asked of a network, or of another file"
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    assert len(set(parser.ids)) == len(parser.ids)


def test_it_shows_candidates_changes_and_where_they_come_from(page: Path) -> None:
    text, record = page.read_text(), test_story.record()
    assert text.count("<tr data-outcome=") == len(record.history)
    for trial in record.history:
        assert escape(trial.candidate.change) in text
    assert 'class="tree"' in text
    assert text.count('<table class="diff">') >= 1
    assert "How to repeat it" in text
    assert "modelled" in text


def test_pictures_are_xml_and_label_what_was_accepted() -> None:
    trials = test_story.record().history.evaluated
    root = ElementTree.fromstring(trajectory(trials, "modelled"))
    texts = [e.text or "" for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any("speedup over the pair as written (modelled)" in t for t in texts)
    ElementTree.fromstring(bars([("task <1>", (2.0, 1.0))], ("baseline", "best"), "modelled time (us)"))


def test_the_command_repeats_the_case() -> None:
    record = test_story.record()
    words = shlex.split(command(example.operator(), record))
    assert words[:3] == ["ascendopt-tune", "tune", "add"]
    assert "x=float16[1024,64]" in words
    assert words[words.index("--seed") + 1] == str(record.entry.provenance.seed)
    assert words[words.index("--budget") + 1] == str(record.entry.provenance.budget)


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")
@pytest.mark.parametrize("width", [1200, 400])
def test_a_browser_finds_nothing_to_complain_of(page: Path, width: int, tmp_path: Path) -> None:
    """Headless Chromium: no message on the console, and no request but for the page."""
    picture, profile = tmp_path / "page.png", tmp_path / "profile"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", f"--user-data-dir={profile}"]
    found = subprocess.run(
        [str(CHROMIUM), *options, f"--window-size={width},1600", f"--screenshot={picture}", page.as_uri()],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert picture.stat().st_size > 10_000
    assert "CONSOLE" not in found.stderr
