"""The schedules: how a graph's axes become loops, tiles and cores. One file each, tried in order."""

from __future__ import annotations

from collections.abc import Iterator

from ..axes import Axis, Normalized, Placed, behind, normalize
from ..graph import Graph, Node, NotGenerated
from ..program import Draft
from . import lanes, resize, rows, scan, scatter, several, shared, window

#: Each has ``fits(graph, normalized)`` and ``drafts(graph, normalized)``, its programs with the best one first.
SCHEDULES = (scan, lanes, shared, rows)


def drafts(graph: Graph) -> Iterator[Draft]:
    """Programs of the first schedule that fits, or of one for each output. Raises NotGenerated."""
    found = _together(graph)
    try:
        first = next(found, None)
    except NotGenerated:
        if len(graph.outputs) == 1:
            raise
        yield from several.drafts(graph, _together)
        return
    if first is not None:
        yield first
        yield from found


def _together(graph: Graph) -> Iterator[Draft]:
    for whole in (window, resize, scatter):
        if whole.fits(graph):
            if any(part.dim is not None for part in graph.parts):
                raise NotGenerated("what is computed line by line has no place beside other pieces.")
            yield from whole.drafts(graph)
            return
    normalized = normalize(graph)
    if len({_space(o, p, normalized) for o, p in zip(graph.outputs, normalized.outputs, strict=True)}) > 1:
        raise NotGenerated("outputs that run over different axes have no schedule together.")
    for schedule in SCHEDULES:
        if schedule.fits(graph, normalized):
            yield from schedule.drafts(graph, normalized)
            return


def _space(output: Node, placed: Placed, normalized: Normalized) -> frozenset[Axis]:
    """The axes that an output is computed over: its own, and those that were reduced on the way."""
    return frozenset(placed.names).union(*(normalized.reduced.get(n, frozenset()) for n in behind(output)))
