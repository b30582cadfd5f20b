"""The innermost axis is kept: tiles run along it. Elementwise modules, and reductions over axes before it.

Every core takes pieces: a row of the outer axes and a chunk of the lanes. A reduction adds (or compares) tiles, one
step of the reduced axes after the other; nothing crosses lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..axes import Axis, Normalized
from ..graph import Graph, product
from ..program import Draft, ProgramKnob
from ..text import Writer
from . import tall
from .common import CORES, name_axes, passes, reductions, share_of, unravel


def fits(graph: Graph, normalized: Normalized) -> bool:
    if not normalized.axes:
        return False
    return not any(normalized.axes[-1] in r for r in normalized.reduced.values())


def drafts(graph: Graph, normalized: Normalized) -> Iterator[Draft]:
    if tall.fits(graph, normalized):
        yield tall.draft(graph, normalized)
    yield draft(graph, normalized)


def draft(graph: Graph, normalized: Normalized) -> Draft:
    """Tiles of one axis."""
    lane = normalized.axes[-1]
    inner = reductions(graph)
    reduced = [a for a in normalized.axes if any(a in r for r in normalized.reduced.values())]
    kept = [a for a in normalized.axes if a not in reduced and a is not lane]
    name_axes(normalized, kept, reduced, "count" if not kept and not reduced else "cols")
    writer = Writer(graph, normalized, lane)
    writer.add("core, cores = tl.program_id(0), tl.num_programs(0)")
    within = [i for i, p in enumerate(normalized.outputs) if any(a in p.names for a in reduced)]
    across = [i for i in range(len(graph.outputs)) if i not in within]
    if not kept and not reduced:
        return _flat(graph, writer, lane)
    outer = writer.size(product([a.size for a in kept]), "rows")
    lanes = writer.axis(lane)

    pieces = f"{outer} * chunks" if outer != "1" else "chunks"
    writer.add(f"chunks = tl.ceil_div({lanes}, tile)")
    with writer.block(f"for piece in tl.split({pieces}, core, cores):"):
        writer.lane_scope = writer.here
        if outer != "1":
            writer.add("row = piece // chunks")
        unravel(writer, kept)
        writer.add(f"at = piece {'% chunks ' if outer != '1' else ''}* tile", f"n = min(tile, {lanes} - at)")
        passes(writer, graph, inner, within, _loops(writer, reduced))
        for i in across:
            writer.store(i)
    wanted = _tile(graph, lane, kept)
    knob = ProgramKnob("tile", "TILE_LENGTH", wanted, "lanes of a piece: every core gets some", f"tl.align({lanes}, 8)")
    what = "reduces over a middle axis" if reduced else "elementwise with broadcasting"
    text = f"{outer} * tl.ceil_div({lanes}, tile)" if outer != "1" else f"tl.ceil_div({lanes}, tile)"
    return Draft("middle" if reduced else "map", writer, [knob], f"tl.cores({text})", f"{graph.name}: {what}.")


def _loops(writer: Writer, reduced: Sequence[Axis]) -> Callable[[Callable[[], None]], None]:
    """Writes the loops over reduced axes around a body, the first one outermost."""

    def loop(body: Callable[[], None], left: Sequence[Axis] = reduced) -> None:
        if not left:
            body()
            return
        variable = writer.name("r" if len(reduced) == 1 else "i")
        size = writer.axis(left[0])
        with writer.block(f"for {variable} in range(0, {size}):"):
            writer.index[left[0]] = variable, writer.here
            loop(body, left[1:])

    return loop


def _tile(graph: Graph, lane: Axis, kept: Sequence[Axis]) -> int:
    """Lanes of a piece: as many as still give every core one, at least 64."""
    wanted = 8192
    rows = graph.number(product([a.size for a in kept]))
    while wanted > 64 and rows * -(-graph.number(lane.size) // wanted) < CORES:
        wanted //= 2
    return wanted


def _flat(graph: Graph, writer: Writer, lane: Axis) -> Draft:
    """One axis: an even share for every core."""
    count = writer.axis(lane)
    writer.add(f"first, last = tl.split({count}, core, cores, unit=8)")
    with writer.block("for at in range(first, last, tile):"):
        writer.lane_scope = writer.here
        writer.add("n = min(tile, last - at)")
        for i in range(len(graph.outputs)):
            writer.store(i)
    knobs = [
        ProgramKnob("tile", "TILE_LENGTH", 8192, "tiles of inputs, results and what is between them"),
        ProgramKnob("share", "CORE_ELEMENTS", share_of(graph, lane.size), "what a core is worth starting for"),
    ]
    return Draft("map", writer, knobs, f"tl.cores(tl.ceil_div({count}, share))", f"{graph.name}: elementwise.")
