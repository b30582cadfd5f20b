"""Reductions over a middle axis whose result alone is kept: tiles of several rows, reduced towards their first one."""

from __future__ import annotations

from ..axes import Normalized
from ..graph import Graph, Node, product
from ..program import Draft, ProgramKnob
from ..text import Writer
from .common import CORES, PLACES, WORDS, join, name_axes, reductions, unravel

_ELEMENTS = 8192  # of a tile
_PIECE = 512  # lanes that a row is worth being cut into: a shorter piece of a transfer takes as long


def fits(graph: Graph, normalized: Normalized) -> bool:
    of = reductions(graph)
    lane = normalized.axes[-1]
    reduced = {a for n in of for a in normalized.reduced[n]}
    if len(reduced) != 1 or any(a in reduced for p in normalized.outputs for a in p.names):
        return False
    if any(n.op in PLACES for n in of):
        return False
    (axis,) = reduced
    both = [p for p in normalized.placed.values() if axis in p.names or lane in p.names]
    single = all(not any(r in of for r in _behind(n.args[0])) for n in of)  # no reduction waits for another one
    return single and all(p.names[-1] is lane and axis in p.names for p in both)


def _behind(node: Node) -> list[Node]:
    from ..graph import ordered

    return list(ordered([node]))


def draft(graph: Graph, normalized: Normalized) -> Draft:
    lane = normalized.axes[-1]
    of = reductions(graph)
    (axis,) = {a for n in of for a in normalized.reduced[n]}
    kept = [a for a in normalized.axes if a is not axis and a is not lane]
    name_axes(normalized, kept, [axis], "cols")
    writer = Writer(graph, normalized, lane)
    writer.add("core, cores = tl.program_id(0), tl.num_programs(0)")
    outer = writer.size(product([a.size for a in kept]), "rows")
    lanes, middle = writer.axis(lane), writer.axis(axis)
    writer.add(f"chunks = tl.ceil_div({lanes}, tile)")
    with writer.block(f"for piece in tl.split({outer} * chunks, core, cores):"):
        writer.lane_scope = writer.here
        writer.add("row = piece // chunks")
        unravel(writer, kept)
        writer.add("at = piece % chunks * tile", f"n = min(tile, {lanes} - at)")
        names = {n: writer.name(WORDS[n.op]) for n in of}
        first = {"sum": "0.0", "prod": "1.0", "max": "-tl.inf", "min": "tl.inf"}
        writer.add(*(f"{names[n]} = tl.full(n, {first[n.op]})" for n in of))
        scope = writer.here
        with writer.block(f"for r in range(0, {middle}, height):"):
            writer.add(f"h = min(height, {middle} - r)")
            writer.index[axis] = "r", writer.here
            writer.rows = axis, "r", "h"
            for n in of:
                part = writer.name(f"{names[n]}_part")
                writer.add(f"{part} = tl.reduce_{n.op}({_named(writer, n.args[0])}, axis=0)")
                writer.add(f"{names[n]} = {join(n.op, names[n], part, tiles=True)}")
        writer.rows = None
        for n in of:
            writer.done[n] = names[n], scope
        for i in range(len(graph.outputs)):
            writer.store(i)
    even = f"tl.align(tl.ceil_div({lanes}, tl.ceil_div(tl.num_cores(), {outer})), 8)"
    rows = graph.number(product([a.size for a in kept]))
    wanted = min(2048, max(_PIECE, -(-graph.number(lane.size) // -(-CORES // rows))), graph.number(lane.size))
    height = max(1, min(graph.number(axis.size), _ELEMENTS // wanted))
    knobs = [
        ProgramKnob("height", "TILE_ROWS", height, "rows that are loaded together"),
        ProgramKnob(
            "tile",
            "TILE_LENGTH",
            2048,
            "lanes of a piece",
            f"min(tl.align({lanes}, 8), max({_PIECE}, {even}))",
        ),
    ]
    cores = f"tl.cores({outer} * tl.ceil_div({lanes}, tile))"
    return Draft("middle", writer, knobs, cores, f"{graph.name}: reduces over a middle axis.")


def _named(writer: Writer, node: Node) -> str:
    text = writer.value(node)
    if text.isidentifier():
        return text
    name = writer.name("taken")
    writer.add(f"{name} = {text}")
    return name
