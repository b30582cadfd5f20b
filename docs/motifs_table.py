"""Writes the table of docs/motifs.md anew; tests/unit/test_docs.py compares."""

from __future__ import annotations

from pathlib import Path

from ascendopt_tune.search.kernel.motifs import table

PAGE = Path(__file__).with_name("motifs.md")

if __name__ == "__main__":
    text = PAGE.read_text()
    PAGE.write_text(text[: text.index("| motif | what it does")] + table())
