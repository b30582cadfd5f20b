"""Windows (pooling) over planes: the lines under a block of the output are joined as vectors, then columns gathered.

The rows of a window are a stride apart, so each of its lines is one strided vector operation over all of the block;
only its columns are gathered, by tables of places that are made once a core. Planes under a window are joined first.
Lines outside of the plane are neutral. A column outside is another one of the same window where that can't change the
largest, else a mask says that it doesn't count.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..axes import Axis
from ..graph import Graph, Node
from ..program import LINES, Draft, ProgramKnob
from ..text import Writer, number
from .pooling import FIRST, Window, added, placed, times

_LINES = 64  # of a block
_COLUMNS = 16  # of a window; each has a table


def drafts(graph: Graph, window: Node) -> Iterator[Draft]:
    """None where windows have no plane, or many columns."""
    of = Window(window)
    if 2 <= len(of.kernel) <= 3 and of.kernel[-1] <= _COLUMNS:
        yield _Planes(graph, window, of).draft()


class _Planes:
    def __init__(self, graph: Graph, window: Node, of: Window) -> None:
        self.graph, self.window, self.of, self.kind = graph, window, of, window.info["kind"]
        self.rows = Axis(of.rows, "rows")
        self.outs = [Axis(s, f"out{k}") for k, s in enumerate(of.outs)]
        self.writer = Writer(graph, placed(graph, window, self.rows, self.outs), self.outs[-1])
        sides = of.sides(self.writer, self.outs)
        self.line, self.column, self.deep = sides[-2], sides[-1], sides[:-2]
        self.planes = " * ".join([self.writer.axis(self.rows), *(d.out for d in self.deep)])

    def draft(self) -> Draft:
        w, line, column = self.writer, self.line, self.column
        w.add("core, cores = tl.program_id(0), tl.num_programs(0)")
        w.add(f"lines = tl.alloc_ub((tall, {column.size}), tl.float32)")
        if self.deep:
            w.add(f"planes = tl.alloc_ub((tall, {column.size}), tl.float32)")
        self._tables()
        w.add(f"blocks = tl.ceil_div({line.out}, height)")
        with w.block(f"for piece in tl.split({self.planes} * blocks, core, cores):"):
            self._piece()
        reach = added(times("(height - 1)", line.stride), line.reach)
        steps = {"height": f"tl.ceil_div({line.out}, tl.ceil_div({line.out}, most))"}
        steps |= {"tall": f"min({reach}, {line.size})", "count": f"height * {column.out}"}
        knob = ProgramKnob("most", LINES, _LINES, "lines of a block of the output, shared evenly", line.out)
        cores = f"tl.cores({self.planes} * tl.ceil_div({line.out}, height))"
        title = f"{self.graph.name}: windows of {self.of.kernel} over blocks of lines."
        return Draft("window", w, [knob], cores, title, steps)

    def _tables(self) -> None:
        """Where the columns of every window lie behind the beginning of the joined lines."""
        w, column = self.writer, self.column
        w.add("place = tl.iota(count)", "spot = tl.cast(place, tl.float32)")
        w.add(f"turn = (spot + 0.5) / float({column.out}) - 0.5", "place = tl.cast(turn, tl.int32)")
        w.add("turn = tl.cast(place, tl.float32)")
        w.add(f"spot = (spot - turn * float({column.out})) * {column.stride}.0")
        w.add(f"base = turn * float(tl.align({column.size}, 8))")
        for tap in range(column.kernel):
            self._table(tap)

    def _table(self, tap: int) -> None:
        w, column = self.writer, self.column
        before, behind = column.outside(tap)
        w.add(f"at = {added('spot', tap * column.dilation - column.padding, '.0')}")
        last = f"float({column.size} - 1)"
        if self._masked(tap):
            inside = "tl.where(at >= 0.0, 1.0, 0.0)" if before else f"tl.where(at <= {last}, 1.0, 0.0)"
            w.add(f"inside{tap} = {inside}")
            if before and behind:
                w.add(f"inside{tap} = tl.where(at <= {last}, inside{tap}, 0.0)")
        shift = -(-column.padding // column.dilation) * column.dilation
        if before:
            other = "0.0" if self._masked(tap) else f"at + {shift}.0"
            w.add(f"at = tl.where(at >= 0.0, at, {other})")
        if behind:
            other = "0.0" if self._masked(tap) else f"at - {shift}.0"
            w.add(f"at = tl.where(at <= {last}, at, {other})")
        w.add("at = at + base", f"index{tap} = tl.cast(at, tl.int32)")

    def _masked(self, tap: int) -> bool:
        """Whether columns outside have to be left out: the largest may be asked for twice, where the window is wide
        enough to have another column inside."""
        column = self.column
        twice = self.kind == "max" and 2 * -(-column.padding // column.dilation) <= column.kernel - 1
        return any(column.outside(tap)) and not twice

    def _piece(self) -> None:
        w, line, column = self.writer, self.line, self.column
        w.lane_scope = w.here
        w.add("o = piece % blocks * height", f"n = min(height, {line.out} - o) * {column.out}")
        w.lane_count, w.lane_at = "n", "0"
        plane = self._plane()
        w.add(f"top = {added(times('o', line.stride), -line.padding)}")
        w.add(f"first = min(max(top, 0), {line.size} - tall)")
        source = self._load(plane)
        w.add("under = top - first")
        neutral = number(FIRST[self.kind])
        for down in range(line.kernel):
            start = added("under", down * line.dilation)
            taken = f"tl.take_rows({source}, {start}, {line.stride}, height, {neutral})"
            w.add(f"joined = {self._join('joined', taken) if down else taken}")
        for tap in range(column.kernel):
            value = f"tl.gather(joined, index{tap})"
            if self._masked(tap):
                value = f"tl.where(inside{tap} > 0.5, {value}, {neutral})"
            w.add(f"window = {self._join('window', value) if tap else value}")
        w.done[self.window] = "window", w.here
        w.store(0)

    def _plane(self) -> str:
        """Indices of the outer axes; the plane of the input, or of the volume the first plane."""
        w = self.writer
        w.add("plane = piece // blocks")
        w.index[self.outs[-2]] = "o", w.here
        if not self.deep:
            w.index[self.rows] = "plane", w.here
            return "plane"
        w.add(f"o0 = plane % {self.deep[0].out}", f"row = plane // {self.deep[0].out}")
        w.index[self.outs[0]], w.index[self.rows] = ("o0", w.here), ("row", w.here)
        return f"(row * {self.deep[0].size} + i0)"

    def _load(self, plane: str) -> str:
        """The lines under the block: what they are called."""
        w, line, column = self.writer, self.line, self.column
        start = f"({plane} * {line.size} + first) * {column.size}"
        part = f"tl.arange(0, tall)[:, None] * {column.size} + tl.arange(0, {column.size})[None, :]"
        load = f"tl.load({self.of.source.info['tensor']} + {start} + {part}, lines)"
        if not self.deep:
            w.add(load)
            return "lines"
        deep = self.deep[0]
        w.add(f"tl.duplicate(planes, {number(FIRST[self.kind])})")
        with w.block(f"for k0 in range(0, {deep.kernel}):"):
            w.add(f"i0 = {added(times('o0', deep.stride), -deep.padding)} + {times('k0', deep.dilation)}")
            with w.block(f"if i0 >= 0 and i0 < {deep.size}:"):
                w.add(load, f"planes = {self._join('planes', 'lines')}")
        return "planes"

    def _join(self, a: str, b: str) -> str:
        return f"{a} + {b}" if self.kind == "sum" else f"tl.maximum({a}, {b})"
