"""Windows (pooling) along lines: a block of lines lies in the Unified Buffer, one behind the other, and every element
of a window is gathered by a table of places that is made once a core.

Places outside of a line are those of eight neutral elements in front of the lines.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..axes import Axis
from ..graph import Graph, Node
from ..program import LINES, Draft, ProgramKnob
from ..text import Writer, number
from .common import STARTED
from .pooling import FIRST, MOST, Window, added, placed

_TAPS = 16  # elements of a window; each has a table
_LINES = 64  # of a block
_CYCLES = 15  # to gather 64 elements and to join them


def drafts(graph: Graph, window: Node) -> Iterator[Draft]:
    """None where windows have a plane, or are large."""
    of = Window(window)
    if len(of.kernel) == 1 and of.kernel[0] <= _TAPS:
        yield _draft(graph, window, of)


def _draft(graph: Graph, window: Node, of: Window) -> Draft:
    rows, out = Axis(of.rows, "rows"), Axis(of.outs[0], "out0")
    w = Writer(graph, placed(graph, window, rows, [out]), out)
    (column,), lines = of.sides(w, [out]), w.axis(rows)
    neutral, join = number(FIRST[window.info["kind"]]), "window + {}"
    if window.info["kind"] == "max":
        join = "tl.maximum(window, {})"
    padded = column.padding > 0
    place = "index0" if padded else "index"
    w.add("core, cores = tl.program_id(0), tl.num_programs(0)", "lines = tl.alloc_ub(wide, tl.float32)")
    w.add(f"{place} = tl.iota(count)", f"spot = tl.cast({place}, tl.float32)")
    w.add(f"turn = (spot + 0.5) / float({column.out}) - 0.5")
    w.add(f"{place} = tl.cast(turn, tl.int32)", f"turn = tl.cast({place}, tl.float32)")
    w.add(f"spot = (spot - turn * float({column.out})) * {column.stride}.0")
    w.add(f"base = turn * float({column.size}) + spot{f' + {MOST}.0' if padded else ''}")
    if not padded:
        w.add("index = tl.cast(base, tl.int32)")
    for tap in range(column.kernel) if padded else ():
        right = tap * column.dilation - column.padding
        value = f"base + float({right})"
        before, behind = column.outside(tap)
        if before:
            value = f"tl.where(spot >= {-right}.0, {value}, 0.0)"
        if behind:
            value = f"tl.where(spot <= float({added(f'{column.size} - 1', -right)}), {value}, 0.0)"
        w.add(f"place = {value}", f"index{tap} = tl.cast(place, tl.int32)")
    w.add(f"blocks = tl.ceil_div({lines}, height)")
    with w.block("for piece in tl.split(blocks, core, cores):"):
        w.lane_scope = w.here
        w.add("o = piece % blocks * height", f"h = min(height, {lines} - o)", f"n = h * {column.out}")
        w.lane_count, w.lane_at = "n", "0"
        w.index[rows] = "o", w.here
        w.add(f"span = h * {column.size}")
        ends = f", before={MOST}, after=0, other={neutral}" if padded else ""
        w.add(f"tl.load({of.source.info['tensor']} + o * {column.size} + tl.arange(0, span), lines{ends})")
        for tap in range(column.kernel):
            where, start = (f"index{tap}", "0") if padded else ("index", str(tap * column.dilation))
            value = f"tl.gather(lines, {where}, {start}, n)"
            w.add(f"window = {join.format(value) if tap else value}")
        w.done[window] = "window", w.here
        w.store(0)
    # Few enough lines that cores get some, as many as are worth their start.
    count = graph.number(of.rows)
    cycles = count * graph.number(out.size) / 64 * _CYCLES * column.kernel
    height = max(8, min(_LINES, -(-count // max(1, int((cycles / STARTED) ** 0.5)))))
    knobs = [ProgramKnob("height", LINES, height, "lines of a block", lines)]
    steps = {"wide": f"height * {column.size} + {MOST}", "count": f"height * {column.out}"}
    title = f"{graph.name}: windows of {of.kernel} over blocks of lines."
    return Draft("window", w, knobs, f"tl.cores(tl.ceil_div({lines}, height))", title, steps)
