"""A manifest of the batteries: an adding operator with so many rows, and few evaluations.

No case begins from what others found: which of them are there first depends on what was killed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_TEXT = """
budget = {budget}
target = "virtual"
warm_start = false
[[operator]]
source = "{operator}"
[[operator.case]]
inputs = {{ x = "float32[{{rows}},32]", y = "float32[{{rows}},32]" }}
grid = {{ rows = {rows} }}
"""


def write_manifest(path: Path, operator: Path, rows: Sequence[int], budget: int) -> Path:
    """The manifest's path again. ``rows``: a case for each."""
    path.write_text(_TEXT.format(operator=operator, rows=list(rows), budget=budget))
    return path
