"""Writes the tables of docs/settings.md and docs/options.md anew; tests/unit/test_docs.py compares."""

from __future__ import annotations

from pathlib import Path

from ascendopt_tune import settings
from ascendopt_tune.nouns import run_options

FOLDER = Path(__file__).parent

if __name__ == "__main__":
    for name, first, table in (
        ("settings.md", "| variable |", settings.table()),
        ("options.md", "| option |", run_options.table()),
    ):
        page = FOLDER / name
        text = page.read_text()
        page.write_text(text[: text.index(first)] + table)
