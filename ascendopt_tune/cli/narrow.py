"""Help that fits the terminal: paragraphs flow, and where it is narrow there are no boxes side by side."""

from __future__ import annotations

import inspect
import sys
from typing import Any

from rich.text import Text

from ..report.lines import columns

_BOXES = 60  # columns that help in boxes needs
_NAMES = 14  # of these the names of options and commands may take before what is said of them


def fitting(command: Any) -> Any:
    """``command``, whose help fits the terminal; those below it, too."""
    _flow(command)
    if (width := columns(sys.stdout)) < _BOXES:
        command.rich_markup_mode = None
        command.epilog = Text.from_markup(command.epilog or "").plain
        command.context_settings = {**command.context_settings, "terminal_width": width - 1}
        command.context_class = _context(command.context_class)
        for inner in getattr(command, "commands", {}).values():
            fitting(inner)
    return command


def _flow(command: Any) -> None:
    """Lines of a docstring end where the source's do; left so, they break twice where the terminal is narrower."""
    if command.help:
        paragraphs = inspect.cleandoc(command.help).split("\n\n")
        command.help = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
    for inner in getattr(command, "commands", {}).values():
        _flow(inner)


def _context(above: Any) -> Any:
    """A command's context whose help has long names on lines of their own."""

    class Formatter(above.formatter_class):  # type: ignore[misc]
        def write_dl(self, rows: Any, col_max: int = _NAMES, col_spacing: int = 2) -> None:
            super().write_dl(rows, min(col_max, _NAMES), col_spacing)

    return type("Context", (above,), {"formatter_class": Formatter})
