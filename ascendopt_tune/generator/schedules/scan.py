"""Scans along an axis: tile after tile, what they add up to is carried on as one number; or lane by lane.

Along the lanes a tile is scanned by the language's cumsum and cumprod; from the other end the tiles come in the other
order. Over an axis before the lanes every lane carries its own number.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..axes import Normalized
from ..graph import Graph, NotGenerated, product
from ..program import Draft, ProgramKnob
from ..text import Writer
from .common import CORES, name_axes, reductions, unravel

_FIRST = {"sum": 0.0, "prod": 1.0}


def fits(graph: Graph, normalized: Normalized) -> bool:
    return any(n.op == "scan" for n in graph.nodes())


def drafts(graph: Graph, normalized: Normalized) -> Iterator[Draft]:
    scans = [n for n in graph.nodes() if n.op == "scan"]
    if len(scans) != 1 or reductions(graph) or len(graph.outputs) != 1:
        raise NotGenerated("several scans, or a scan and a reduction, have no schedule together.")
    (scan,) = scans
    axis = normalized.scanned[scan]
    if axis is normalized.axes[-1]:
        yield _along(graph, normalized)
    else:
        yield _across(graph, normalized)


def _along(graph: Graph, normalized: Normalized) -> Draft:
    lane = normalized.axes[-1]
    scan = next(n for n in graph.nodes() if n.op == "scan")
    kept = [a for a in normalized.axes if a is not lane]
    name_axes(normalized, kept, [], "cols")
    writer = Writer(graph, normalized, lane)
    writer.add("core, cores = tl.program_id(0), tl.num_programs(0)")
    rows = writer.size(product([a.size for a in kept]), "rows")
    cols = writer.axis(lane)
    back, join = scan.info["reverse"], "+" if scan.info["kind"] == "sum" else "*"
    before, first = scan.info.get("before", 0), _FIRST[scan.info["kind"]]
    with writer.block(f"for row in tl.split({rows}, core, cores):"):
        unravel(writer, kept)
        value = scan.info.get("value", first) if before else first
        writer.add(f"carry = {float(value)}")
        if before:  # elements that stand in front of what is scanned
            writer.lane_at = "(-1)"
            pointer = writer.offset(normalized.outputs[0], True)
            writer.lane_at = "at"
            writer.add(f"tl.store({writer.output(0)} + {pointer} + tl.arange(0, 1), tl.full(8, {float(value)}))")
        with writer.block(f"for piece in range(0, tl.ceil_div({cols}, tile)):"):
            writer.lane_scope = writer.here
            writer.add("done = piece * tile", f"n = min(tile, {cols} - done)")
            writer.add(f"at = {cols} - done - n" if back else "at = done")
            source = writer.value(scan.args[0])
            call = f"tl.cum{scan.info['kind']}({source}{', reverse=True' if back else ''})"
            writer.add(f"scanned = {call} {join} carry")
            writer.add(f"carry = tl.extract_scalar(scanned, {'0' if back else 'n - 1'})")
            writer.done[scan] = "scanned", writer.here
            writer.store(0)
    knob = ProgramKnob("tile", "TILE_LENGTH", 4096, "a part of a row and what its scan needs", f"tl.align({cols}, 8)")
    return Draft("scan", writer, [knob], f"tl.cores({rows})", f"{graph.name}: a scan along rows.")


def _across(graph: Graph, normalized: Normalized) -> Draft:
    lane = normalized.axes[-1]
    scan = next(n for n in graph.nodes() if n.op == "scan")
    axis = normalized.scanned[scan]
    if scan.info.get("before"):
        raise NotGenerated("an exclusive scan over an axis before the last has no schedule.")
    kept = [a for a in normalized.axes if a is not lane and a is not axis]
    name_axes(normalized, kept, [axis], "cols")
    writer = Writer(graph, normalized, lane)
    writer.add("core, cores = tl.program_id(0), tl.num_programs(0)")
    rows = writer.size(product([a.size for a in kept]), "rows")
    cols, length = writer.axis(lane), writer.axis(axis)
    writer.add(f"chunks = tl.ceil_div({cols}, tile)")
    with writer.block(f"for piece in tl.split({rows} * chunks, core, cores):"):
        writer.add("row = piece // chunks")
        unravel(writer, kept)
        writer.add("at = piece % chunks * tile", f"n = min(tile, {cols} - at)")
        writer.add(f"scanned = tl.full(n, {_FIRST[scan.info['kind']]})")
        with writer.block(f"for step in range(0, {length}):"):
            writer.lane_scope = writer.here
            writer.add(f"r = {length} - 1 - step" if scan.info["reverse"] else "r = step")
            writer.index[axis] = "r", writer.here
            source = writer.value(scan.args[0])
            writer.add(f"scanned = scanned {'+' if scan.info['kind'] == 'sum' else '*'} {source}")
            writer.done[scan] = "scanned", writer.here
            writer.store(0)
    wanted = 4096
    outer = graph.number(product([a.size for a in kept]))
    while wanted > 64 and outer * -(-graph.number(lane.size) // wanted) < CORES:
        wanted //= 2
    knob = ProgramKnob("tile", "TILE_LENGTH", wanted, "lanes of a piece: every core gets some", f"tl.align({cols}, 8)")
    cores = f"tl.cores({rows} * tl.ceil_div({cols}, tile))"
    return Draft("scan", writer, [knob], cores, f"{graph.name}: a scan over a middle axis.")
