"""Windows (pooling) by blocks of lines: the lines under a block of the output lie in the Unified Buffer, one behind the
other, and every element of a window is gathered by a table of places.

Tables are made once a core where they are the same for every block: whole planes, or no padding above. Else every block
makes its own. Places outside of the plane are those of eight neutral elements in front of the lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..axes import Axis
from ..graph import Graph, Node
from ..program import Draft, ProgramKnob
from ..text import Writer, number
from .common import STARTED
from .pooling import FIRST, MOST, Window, placed

_TAPS = 16  # elements of a window in a plane; each has a table
_LINES = 64  # of a block
_CYCLES = 15  # to gather 64 elements and to join them


def drafts(graph: Graph, window: Node) -> Iterator[Draft]:
    """The tables made once, and made for every block; none where windows are large."""
    of = Window(window)
    if len(of.kernel) > 3 or _taps(of) > _TAPS:
        return
    plane = len(of.kernel) > 1
    yield _Blocks(graph, window, of, whole=plane and of.padding[-2] > 0, moving=False).draft()
    if plane and of.padding[-2] > 0:
        yield _Blocks(graph, window, of, whole=False, moving=True).draft()


def _taps(of: Window) -> int:
    return of.kernel[-1] * (of.kernel[-2] if len(of.kernel) > 1 else 1)


@dataclass(frozen=True)
class _Side:
    """One axis of a plane: ``size``, ``out`` as text."""

    size: str
    out: str
    kernel: int = 1
    stride: int = 1
    padding: int = 0
    dilation: int = 1

    @property
    def reach(self) -> int:
        return (self.kernel - 1) * self.dilation + 1

    def outside(self, tap: int) -> tuple[bool, bool]:
        """Whether places of this element of the window may lie before the first, or behind the last."""
        return self.padding > tap * self.dilation, self.padding > (self.kernel - 1 - tap) * self.dilation


class _Blocks:
    """One program. ``whole``: a block is a plane; ``moving``: tables are made for every block."""

    def __init__(self, graph: Graph, window: Node, of: Window, whole: bool, moving: bool) -> None:
        self.graph, self.window, self.of, self.whole, self.moving = graph, window, of, whole, moving
        self.rows = Axis(of.rows, "rows")
        self.outs = [Axis(s, f"out{k}") for k, s in enumerate(of.outs)]
        self.writer = w = Writer(graph, placed(graph, window, self.rows, self.outs), self.outs[-1])
        lists = list(zip(of.kernel, of.stride, of.padding, of.dilation, strict=True))
        sizes = [w.size(s, "width" if k == len(of.sizes) - 1 else f"in{k}") for k, s in enumerate(of.sizes)]
        sides = [_Side(s, w.axis(a), *given) for s, a, given in zip(sizes, self.outs, lists, strict=True)]
        # Lines that no window joins are those of one plane.
        self.column, self.deep = sides[-1], sides[:-2]
        rows = w.axis(self.rows)
        self.line = sides[-2] if len(sides) > 1 else _Side(rows, rows)
        self.padded = self.column.padding > 0 or self.line.padding > 0
        self.kind = window.info["kind"]
        self.planes = " * ".join([rows, *(d.out for d in self.deep)]) if len(sides) > 1 else "1"

    def draft(self) -> Draft:
        w, line = self.writer, self.line
        w.add("core, cores = tl.program_id(0), tl.num_programs(0)", "lines = tl.alloc_ub(wide, tl.float32)")
        places = "index0" if self.padded and not self.moving else "index"
        w.add(f"{places} = tl.iota(count)", f"spot = tl.cast({places}, tl.float32)")
        w.add(f"turn = (spot + 0.5) / float({self.column.out}) - 0.5")
        w.add(f"{places} = tl.cast(turn, tl.int32)", f"turn = tl.cast({places}, tl.float32)")
        w.add(f"spot = (spot - turn * float({self.column.out})) * {self.column.stride}.0")
        if line.stride != 1:
            w.add(f"turn = turn * {line.stride}.0")
        neutral = f" + {MOST}.0" if self.padded else ""
        w.add(f"base = turn * float({self.column.size}) + spot{neutral}")
        if not self.moving:
            self._tables()
        w.add(f"blocks = tl.ceil_div({line.out}, height)")
        pieces = f"{self.planes} * blocks" if self.planes != "1" else "blocks"
        with w.block(f"for piece in tl.split({pieces}, core, cores):"):
            self._piece()
        name = self.graph.name
        knobs, steps, tall = [], {}, line.size
        if self.whole:
            steps["height"] = line.out
        else:
            knobs = [ProgramKnob("height", "TILE_ROWS", self._height(), "lines of a block", line.out)]
            tall = f"((height - 1) * {line.stride} + {line.reach})" if line.stride + line.reach > 2 else "height"
        steps |= {"wide": f"{tall} * {self.column.size} + {MOST}", "count": f"height * {self.column.out}"}
        count = f"tl.ceil_div({line.out}, height)"
        cores = f"tl.cores({self.planes} * {count})" if self.planes != "1" else f"tl.cores({count})"
        checks = [(f"{line.size} * {self.column.size} < 16777216", "places are whole numbers of float32")]
        title = f"{name}: windows of {self.of.kernel} over {'planes' if self.whole else 'blocks of lines'}."
        return Draft("window", w, knobs, cores, title, steps, checks if self.whole else [])

    def _height(self) -> int:
        """Lines of a block: few enough that cores get some, as many as are worth their start."""
        if self.planes != "1":
            return _LINES
        lines, width = self.graph.number(self.of.rows), self.graph.number(self.outs[-1].size)
        cycles = lines * width / 64 * _CYCLES * _taps(self.of)
        return max(8, min(_LINES, -(-lines // max(1, int((cycles / STARTED) ** 0.5)))))

    def _piece(self) -> None:
        w, line, column = self.writer, self.line, self.column
        w.lane_scope = w.here
        w.add("o = piece % blocks * height", f"h = min(height, {line.out} - o)", f"n = h * {column.out}")
        w.lane_count, w.lane_at = "n", "0"
        position = self._plane()
        if self.moving:
            w.add(f"top = o * {line.stride} - {line.padding}", "first = max(top, 0)")
            w.add(f"span = (min(top + (h - 1) * {line.stride} + {line.reach}, {line.size}) - first) * {column.size}")
        elif self.whole:
            w.add(f"span = {line.size} * {column.size}")
        else:
            tall = _sum(_times("(h - 1)", line.stride), line.reach) if line.stride != 1 or line.reach != 1 else "h"
            w.add(f"first = {_times('o', line.stride)}", f"span = ({tall}) * {column.size}".replace("(h)", "h"))
        self._load(position)
        taken = None
        for tap in range(line.kernel * column.kernel):
            down, along = divmod(tap, column.kernel)
            if self.moving:
                self._place(down, along, "index")
            index = "index" if self.moving or not self.padded else f"index{tap}"
            rows = _times(str(down * line.dilation), column.size)
            start = "0" if self.padded else _sum(rows, along * column.dilation)
            value = f"tl.gather({self._lines()}, {index}, {start}, n)"
            w.add(f"window = {value if taken is None else self._join('window', value)}")
            taken = value
        w.done[self.window] = "window", w.here
        w.store(0)

    def _plane(self) -> str:
        """Indices of the outer axes; the plane of the input, without its depth."""
        w = self.writer
        if self.planes == "1":
            w.index[self.rows] = "o", w.here
            return ""
        w.add("plane = piece // blocks")
        w.index[self.outs[-2]] = "o", w.here
        if not self.deep:
            w.index[self.rows] = "plane", w.here
            return "plane"
        w.add(f"o0 = plane % {self.deep[0].out}", f"row = plane // {self.deep[0].out}")
        w.index[self.outs[0]], w.index[self.rows] = ("o0", w.here), ("row", w.here)
        return f"(row * {self.deep[0].size} + i0)"

    def _load(self, plane: str) -> None:
        """The lines under the block, ``lines``; of several planes joined, ``joined``."""
        w, line, column = self.writer, self.line, self.column
        start = f"({plane} * {line.size}{'' if self.whole else ' + first'})" if plane else "first"
        pointer = f"{self.of.source.info['tensor']} + {start} * {column.size} + tl.arange(0, span)"
        neutral = number(FIRST[self.kind])
        ends = f", before={MOST}, after=0, other={neutral}" if self.padded else ""
        load = f"tl.load({pointer}, lines{ends})"
        if not self.deep:
            w.add(load)
            return
        deep = self.deep[0]
        w.add(f"joined = tl.full(min(wide, {_sum('span', MOST if self.padded else 0)}), {neutral})")
        with w.block(f"for k0 in range(0, {deep.kernel}):"):
            w.add(f"i0 = o0 * {deep.stride} - {deep.padding} + k0 * {deep.dilation}")
            with w.block(f"if i0 >= 0 and i0 < {deep.size}:"):
                w.add(load, f"joined = {self._join('joined', 'lines')}")

    def _lines(self) -> str:
        return "joined" if self.deep else "lines"

    def _join(self, a: str, b: str) -> str:
        return f"{a} + {b}" if self.kind == "sum" else f"tl.maximum({a}, {b})"

    def _tables(self) -> None:
        w, line, column = self.writer, self.line, self.column
        if not self.padded:
            w.add("index = tl.cast(base, tl.int32)")
            return
        for tap in range(line.kernel * column.kernel):
            self._place(*divmod(tap, column.kernel), f"index{tap}")

    def _place(self, down: int, along: int, index: str) -> None:
        """Where this element of every window lies behind the neutral ones; those outside lie among these."""
        w, line, column = self.writer, self.line, self.column
        below, right = down * line.dilation - line.padding, along * column.dilation - column.padding
        if self.moving:
            w.add(f"under = top + {down * line.dilation}")
        lines = "(under - first)" if self.moving else str(below)
        value = f"base + float({_sum(_times(lines, column.size), right)})"
        over = f"{line.size} - 1 - under" if self.moving else _sum(f"{line.size} - 1", -below)
        tests = [
            (line.outside(down)[0], f"turn >= float({'-under' if self.moving else -below})"),
            (line.outside(down)[1], f"turn <= float({over})"),
            (column.outside(along)[0], f"spot >= {-right}.0"),
            (column.outside(along)[1], f"spot <= float({_sum(f'{column.size} - 1', -right)})"),
        ]
        for wanted, test in tests:
            value = f"tl.where({test}, {value}, 0.0)" if wanted else value
        w.add(f"place = {value}", f"{index} = tl.cast(place, tl.int32)")


def _times(a: str, b: str | int) -> str:
    return "0" if "0" in (a, str(b)) else str(b) if a == "1" else a if str(b) == "1" else f"{a} * {b}"


def _sum(a: str, b: int) -> str:
    if b == 0:
        return a
    return str(b) if a == "0" else f"{a} {'+' if b > 0 else '-'} {abs(b)}"
