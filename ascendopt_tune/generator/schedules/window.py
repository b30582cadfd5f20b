"""Windows (pooling) line by line, where blocks of lines (planes.py, blocks.py) don't fit: lines under a window are
combined as vectors, then the columns by a strided take.

A piece is one line of the output, or a part of it. Borders come from the load: it puts what changes nothing at the ends
of a line; lines outside are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from ..axes import Axis
from ..graph import Graph, Node, NotGenerated
from ..program import Draft, ProgramKnob
from ..text import Writer, number
from . import blocks, planes
from .pooling import FIRST, MOST, Window, placed


def fits(graph: Graph) -> bool:
    return any(n.op == "window" for n in graph.nodes())


def drafts(graph: Graph) -> Iterator[Draft]:
    windows = [n for n in graph.nodes() if n.op == "window"]
    if len(windows) != 1 or len(graph.outputs) != 1:
        raise NotGenerated("several windows have no schedule together.")
    yield from planes.drafts(graph, windows[0])
    yield from blocks.drafts(graph, windows[0])
    yield draft(graph, windows[0])


def draft(graph: Graph, window: Node) -> Draft:
    """A line, or a part of one, at a time."""
    of = Window(window)
    source, spatial_in, spatial_out = of.source, of.sizes, of.outs
    kernel, stride, padding, dilation = of.kernel, of.stride, of.padding, of.dilation
    if padding[-1] > MOST:
        raise NotGenerated(f"a window with a padding of {padding[-1]} has no schedule; {MOST} is the most.")
    rows = Axis(of.rows, "rows")
    outs = [Axis(s, f"out{k}") for k, s in enumerate(spatial_out)]
    normalized = placed(graph, window, rows, outs)
    lane = outs[-1]
    writer = Writer(graph, normalized, lane)
    kind = window.info["kind"]
    reach = (kernel[-1] - 1) * dilation[-1] + 1
    writer.add("core, cores = tl.program_id(0), tl.num_programs(0)")
    width = writer.size(spatial_in[-1], "width")
    out = writer.axis(lane)
    lines = " * ".join([writer.axis(a) for a in (rows, *outs[:-1])])
    writer.add(f"line = tl.alloc_ub(wide, tl.{'float32'})", f"chunks = tl.ceil_div({out}, tile)")
    with writer.block(f"for piece in tl.split({lines} * chunks, core, cores):"):
        writer.lane_scope = writer.here
        writer.add("at = piece % chunks * tile", f"n = min(tile, {out} - at)")
        writer.add("line_of = piece // chunks")
        rest = "line_of"
        for k in range(len(outs) - 2, -1, -1):
            size = writer.axis(outs[k])
            writer.add(f"o{k} = {rest} % {size}")
            writer.index[outs[k]] = f"o{k}", writer.here
            writer.add(f"above{k} = {rest} // {size}")
            rest = f"above{k}"
        writer.add(f"row = {rest}")
        writer.index[rows] = "row", writer.here
        writer.add(f"begin = at * {stride[-1]} - {padding[-1]}", f"span = min(wide, (n - 1) * {stride[-1]} + {reach})")
        writer.add("first = max(begin, 0)", f"last = min(begin + span, {width})")
        neutral = number(FIRST[kind])
        writer.add(f"lanes = tl.full(span, {neutral})")
        join = "lanes + line" if kind == "sum" else "tl.maximum(lanes, line)"
        load = (
            f"tl.load(x + {{}} * {width} + first + tl.arange(0, last - first), line, before=first - begin, "
            f"after=begin + span - last, other={neutral})"
        ).replace("(x +", f"({source.info['tensor']} +")
        with ExitStack() as stack:
            position = "row"
            for k in range(len(outs) - 1):
                stack.enter_context(writer.block(f"for k{k} in range(0, {kernel[k]}):"))
                size = writer.size(spatial_in[k], f"in{k}")
                writer.add(f"i{k} = o{k} * {stride[k]} - {padding[k]} + k{k} * {dilation[k]}")
                stack.enter_context(writer.block(f"if i{k} >= 0 and i{k} < {size}:"))
                position = f"({position} * {size} + i{k})"
            writer.add(load.format(position), f"lanes = {join}")
        writer.add(f"window = tl.full(n, {neutral})")
        with writer.block(f"for k in range(0, {kernel[-1]}):"):
            taken = f"tl.take(lanes, k * {dilation[-1]}, {stride[-1]}, n)"
            writer.add(f"window = {f'window + {taken}' if kind == 'sum' else f'tl.maximum(window, {taken})'}")
        writer.done[window] = "window", writer.here
        writer.store(0)
    knob = ProgramKnob("tile", "TILE_LENGTH", 2048, "elements of a line of the output", f"tl.align({out}, 8)")
    steps = {"wide": f"tl.align((tile - 1) * {stride[-1]} + {reach}, 8)"}
    cores = f"tl.cores({lines} * tl.ceil_div({out}, tile))"
    return Draft("window", writer, [knob], cores, f"{graph.name}: windows of {kernel}.", steps)
