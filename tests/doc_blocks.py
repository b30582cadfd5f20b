"""The code blocks of README, docs and example pages, and what the comment above each says of how it is run.

``<!-- tested -->``, ``<!-- tested: NAME -->`` (saved under that name) and ``<!-- tested: with VARIABLE -->`` (where the
variable names a checkout): run as it stands. ``<!-- covered: FILE -->``: a test, or a program that a test runs, does
the same with things of its own. ``<!-- not run: REASON -->``: can't be run here. Blocks of ``text`` and ``mermaid`` are
no code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").glob("*.md"))]
NO_CODE = ("text", "mermaid")
_BLOCK = re.compile(r"(?:^ *<!-- ([^\n]*?) -->\n)?^( *)```(\w*)\n(.*?)^\2```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """``how``: tested, covered or not run (empty: nothing is said); ``what``: what stands behind the colon."""

    page: str
    line: int
    language: str
    text: str
    how: str
    what: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """Every fenced block of a page, in order."""
    text = page.read_text()
    for found in _BLOCK.finditer(text):
        comment, _, language, inside = found.groups()
        how, _, what = (comment or "").partition(":")
        line = text.count("\n", 0, found.start(4))
        yield Block(page.relative_to(ROOT).as_posix(), line, language, inside, how.strip(), what.strip())


def all_blocks() -> list[Block]:
    return [block for page in PAGES for block in blocks(page)]


def run_blocks(page: str) -> list[Block]:
    """The blocks of a page that are run as they stand."""
    return [b for b in blocks(ROOT / page) if b.how == "tested"]
