"""Help for a narrow terminal: boxes side by side would cut the names of options there."""

from __future__ import annotations

import sys
from typing import Any

from rich.text import Text

from ..report.lines import columns

_BOXES = 60  # columns that help in boxes needs
_NAMES = 14  # of these the names of options and commands may take before what is said of them


def fitting(command: Any) -> Any:
    """``command``, with plain help where the terminal is narrow; those below it, too."""
    if (width := columns(sys.stdout)) < _BOXES:
        command.rich_markup_mode = None
        command.epilog = Text.from_markup(command.epilog or "").plain
        command.context_settings = {**command.context_settings, "terminal_width": width - 1}
        command.context_class = _context(command.context_class)
        for inner in getattr(command, "commands", {}).values():
            fitting(inner)
    return command


def _context(above: Any) -> Any:
    """A command's context whose help has long names on lines of their own."""

    class Formatter(above.formatter_class):  # type: ignore[misc]
        def write_dl(self, rows: Any, col_max: int = _NAMES, col_spacing: int = 2) -> None:
            super().write_dl(rows, min(col_max, _NAMES), col_spacing)

    return type("Context", (above,), {"formatter_class": Formatter})
