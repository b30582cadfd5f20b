"""Writes the table of docs/settings.md anew; tests/unit/test_docs.py compares."""

from __future__ import annotations

from pathlib import Path

from ascendopt_tune.settings import table

PAGE = Path(__file__).with_name("settings.md")

if __name__ == "__main__":
    text = PAGE.read_text()
    PAGE.write_text(text[: text.index("| variable |")] + table())
