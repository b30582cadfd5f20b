"""The schedules: how a graph's axes become loops, tiles and cores. One file each, tried in order."""

from __future__ import annotations

from collections.abc import Iterator

from ..axes import normalize
from ..graph import Graph
from ..program import Draft
from . import lanes, resize, rows, scan, scatter, shared, window

#: Each has ``fits(graph, normalized)`` and ``drafts(graph, normalized)``, its programs with the best one first.
SCHEDULES = (scan, lanes, shared, rows)


def drafts(graph: Graph) -> Iterator[Draft]:
    """Programs of the first schedule that fits. Raises NotGenerated."""
    if window.fits(graph):
        yield from window.drafts(graph)
        return
    for whole in (resize, scatter):
        if whole.fits(graph):
            yield from whole.drafts(graph)
            return
    normalized = normalize(graph)
    for schedule in SCHEDULES:
        if schedule.fits(graph, normalized):
            yield from schedule.drafts(graph, normalized)
            return
