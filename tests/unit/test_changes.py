"""The fragments of the changelog: each of a known kind, one paragraph, and put where it belongs."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOWNCRIER = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["towncrier"]
KINDS = [kind["directory"] for kind in TOWNCRIER["type"]]
FRAGMENTS = sorted((ROOT / TOWNCRIER["directory"]).iterdir())


def test_every_fragment_has_a_known_kind_and_says_something() -> None:
    for fragment in FRAGMENTS:
        if fragment.name == "README.md":
            continue
        assert re.fullmatch(rf"\+[a-z0-9-]+\.({'|'.join(KINDS)})\.md", fragment.name), fragment.name
        text = fragment.read_text().strip()
        assert text.endswith("."), f"{fragment.name} is no sentence"
        assert not re.search(r"\n\s*\n|^[-*#]", text), f"{fragment.name} is not one paragraph"


def test_contributing_names_the_kinds() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert all(f"`{kind}`" in text for kind in KINDS)


@pytest.mark.skipif(importlib.util.find_spec("towncrier") is None, reason="towncrier is not installed")
def test_they_become_a_section_of_the_changelog() -> None:
    assert (ROOT / TOWNCRIER["filename"]).read_text().count(TOWNCRIER["start_string"]) == 1
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "9.9.9", "--date", "2030-01-02"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "## 9.9.9 (2030-01-02)" in done.stdout
    for fragment in FRAGMENTS:
        if fragment.name != "README.md":
            assert fragment.read_text().split("\n")[0] in done.stdout, fragment.name
