"""Long lines on a terminal: broken between words, not in them. In a file or a pipe a line stays one line."""

from __future__ import annotations

import os
import textwrap
from typing import IO

from rich.console import Console


def folded(text: str, file: IO[str], hang: int | None = None) -> str:
    """``text`` as it fits the terminal that ``file`` is; as it is where it is none.

    ``hang``: how far the rest of a long line stands in; default: as far as its beginning.
    """
    if not file.isatty():
        return text
    width = columns(file)
    return "\n".join(_fold(line, width, hang) for line in text.splitlines())


def columns(file: IO[str]) -> int:
    """How wide the terminal is; 80 where nobody knows."""
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said):
        return int(said)
    try:
        return os.get_terminal_size(file.fileno()).columns or 80
    except (OSError, ValueError, AttributeError):
        return 80


def print_lines(console: Console, text: str) -> None:
    """Prints plain lines, folded on a terminal."""
    console.print(folded(text, console.file), markup=False, soft_wrap=True)


def _fold(line: str, width: int, hang: int | None) -> str:
    if len(line) <= width:
        return line
    begin = len(line) - len(line.lstrip())
    rest = " " * min(begin if hang is None else hang, width // 2)
    # Names and options have hyphens; a path that is longer than the terminal is left to it.
    return textwrap.fill(
        line, width, subsequent_indent=rest, drop_whitespace=True, break_long_words=False, break_on_hyphens=False,
        replace_whitespace=False, expand_tabs=False,
    )  # fmt: skip
