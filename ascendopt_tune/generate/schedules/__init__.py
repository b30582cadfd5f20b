"""The schedules: how a graph's axes become loops, tiles and cores. One file each; ``choose`` takes the first that fits."""

from __future__ import annotations

from ..axes import Normalized
from ..graph import Graph
from ..program import Draft
from . import lanes, rows, shared

#: In the order they are tried.
SCHEDULES = (lanes, shared, rows)


def choose(graph: Graph, normalized: Normalized) -> Draft:
    """Raises NotGenerated."""
    for schedule in SCHEDULES:
        if schedule.fits(graph, normalized):
            return schedule.draft(graph, normalized)
    raise AssertionError("rows fits everything, or says why not")
