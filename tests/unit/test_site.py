"""The documentation site builds without a warning, asks nothing of a network, and leaves no page out."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from page_checks import CHROMIUM, browsed

ROOT = Path(__file__).resolve().parents[2]
needs_mkdocs = pytest.mark.skipif(
    importlib.util.find_spec("material") is None, reason="mkdocs-material is not installed"
)


def build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1", "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=root, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@needs_mkdocs
def test_the_site(tmp_path: Path) -> None:
    """One test, so that it is built once however many workers there are."""
    site = tmp_path / "site"
    done = build(ROOT, site)
    assert done.returncode == 0, done.stdout + done.stderr
    asks_for_what_is_beside_it(site)
    references_have_what_there_is(site)
    if CHROMIUM is not None:
        browsed(site / "docs/concepts.html", 390, tmp_path)
        is_searched_from_a_folder(site, tmp_path)


class Asked(HTMLParser):
    """What a page asks for when it is opened: not where its links lead."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag != "a":
            self.found += [
                named[key] or "" for key in ("src", "href") if key in named and named.get("rel") != "canonical"
            ]


def asks_for_what_is_beside_it(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        if page.name == "404.html":
            continue  # for servers: its addresses begin at their root
        asked = Asked()
        asked.feed(page.read_text())
        for address in asked.found:
            assert "//" not in address, f"{page.name}: {address}"
            assert (page.parent / address.split("?")[0].split("#")[0]).exists(), f"{page.name}: {address}"


def references_have_what_there_is(site: Path) -> None:
    import ascendopt_tune
    from ascendopt_tune.cli import _COMMANDS

    commands = (site / "reference/command_line.html").read_text()
    assert [name for name in _COMMANDS if f'<h2 id="{name}"' not in commands] == []
    python = (site / "reference/python.html").read_text()
    assert [name for name in ascendopt_tune.__all__ if f">aot.{name}<" not in python] == []
    assert (site / "docs/walks.html").read_text().count('class="chart"') == 3, "drawn, without a script"


def is_searched_from_a_folder(site: Path, folder: Path) -> None:
    """Without a server: what the search finds is in the page."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'search'}"]
    address = (site / "docs/gate.html").as_uri() + "?q=survival"
    done = subprocess.run(
        [str(CHROMIUM), *options, "--virtual-time-budget=20000", "--dump-dom", address],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    found = re.findall(r'<li class="md-search-result__item"><a href="([^"]*)"', done.stdout)
    assert any("CONTRIBUTING.html" in link for link in found), found


@needs_mkdocs
def test_broken_links_and_pages_without_a_place_are_found(tmp_path: Path) -> None:
    """A copy of little, with one page more, which nothing leads to and which leads nowhere."""
    shutil.copytree(ROOT / "docs/site", tmp_path / "docs/site", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "docs/tour.md", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    (tmp_path / "docs/lost.md").write_text("# Lost\n\n[nowhere](nothing.md), [no such part](tour.md#no-such-part)\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    told = done.stdout + done.stderr
    assert re.search(r"not included in the \"nav\".*\n.*docs/lost\.md", told), told
    assert "'nothing.md'" in told
    assert "no-such-part" in told
