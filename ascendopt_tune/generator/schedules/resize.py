"""Resizing by interpolation: lines of the input mixed with scalar weights, then columns gathered by tables.

A piece is one line of the output. Where an output lies in the input is a fraction of whole numbers, ``scaled / parts``,
so that its index is exact and its weights are as good as float32 is; the columns' tables are made once a core.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product as combinations

import sympy

from ..axes import Axis, Normalized, Placed
from ..graph import Graph, Node, NotGenerated, product
from ..program import Draft
from ..text import Writer

ZERO = sympy.Integer(0)
_EXACT = 1 << 24  # whole numbers below it are float32's
_CUBIC = {  # of the distance: torch's coefficient is -0.75
    "near": "(1.25 * {d} - 2.25) * {d} * {d} + 1.0",
    "far": "((-0.75 * {d} + 3.75) * {d} - 6.0) * {d} + 3.0",
}
_CUBIC_TAPS = (("{} + 1.0", "far"), ("{} * 1.0", "near"), ("1.0 - {}", "near"), ("2.0 - {}", "far"))


@dataclass(frozen=True)
class _Side:
    """One resized axis: sizes in the kernel's words, and which neighbours of an element it takes."""

    mode: str  # nearest, linear, cubic or antialias
    align: bool
    size: str
    out: str
    most: int  # antialias: at most so many elements become one

    @property
    def taps(self) -> tuple[int, ...]:
        if self.mode == "antialias":
            return tuple(range(1 - self.most, self.most + 1))
        return {"nearest": (0,), "linear": (0, 1), "cubic": (-1, 0, 1, 2)}[self.mode]


def fits(graph: Graph) -> bool:
    return any(n.op == "resize" for n in graph.nodes())


def drafts(graph: Graph) -> Iterator[Draft]:
    (node, *more) = graph.outputs
    if node.op != "resize" or more or node.args[0].op != "input" or node.args[0].info.get("start"):
        raise NotGenerated("a resize with anything around it has no schedule.")
    yield draft(graph, node)


def draft(graph: Graph, node: Node) -> Draft:
    rank = int(node.info["rank"])
    source, lead = node.args[0], len(node.shape) - rank
    rows = Axis(product(node.shape[:lead]), "rows")
    outs = [Axis(s, f"out{k}") for k, s in enumerate(node.shape[lead:])]
    axes = (rows, *outs)
    placed = Placed(tuple((a, a.size, ZERO) for a in axes))
    normalized = Normalized([*axes], {node: axes, source: ()}, {}, {}, [placed])
    writer = Writer(graph, normalized, outs[-1])
    sides = [
        _Side(
            node.info["mode"],
            node.info["align"],
            writer.size(source.shape[lead + k], f"size{k}"),
            writer.axis(outs[k]),
            _most(graph, source.shape[lead + k], outs[k].size),
        )
        for k in range(rank)
    ]
    writer.add("core, cores = tl.program_id(0), tl.num_programs(0)")
    writer.lane_count, writer.lane_at = sides[-1].out, "0"
    _columns(writer, sides[-1])
    lines = " * ".join([writer.axis(a) for a in (rows, *outs[:-1])])
    with writer.block(f"for line in tl.split({lines}, core, cores):"):
        writer.lane_scope = writer.here
        rest = "line"
        for k in range(rank - 2, -1, -1):
            writer.add(f"o{k} = {rest} % {sides[k].out}", f"above{k} = {rest} // {sides[k].out}")
            writer.index[outs[k]] = f"o{k}", writer.here
            rest = f"above{k}"
        writer.add(f"row = {rest}")
        writer.index[rows] = "row", writer.here
        _mixed(writer, sides, source.info["tensor"])
        taken = [f"tl.gather(mixed, index{t})" for t in range(len(sides[-1].taps))]
        if sides[-1].mode == "nearest":
            writer.add(f"result = {taken[0]}")
        for t, text in enumerate(taken if sides[-1].mode != "nearest" else ()):
            writer.add(f"result = {'result + ' if t else ''}{text} * share{t}")
        writer.done[node] = "result", writer.here
        writer.store(0)
    checks = [(f"2 * {s.size} * {s.out} < {_EXACT}", "places are whole numbers of float32") for s in sides]
    for s in sides:
        if s.mode == "nearest":
            checks.append((f"max({s.size}, {s.out}) % min({s.size}, {s.out}) == 0", "one size divides the other"))
        if s.mode == "antialias":
            checks.append((f"{s.size} <= {s.most} * {s.out}", f"at most {s.most} elements become one"))
    return Draft(
        "resize", writer, [], f"tl.cores({lines})", f"{graph.name}: {node.info['mode']} resize.", checks=checks
    )


def _most(graph: Graph, size: object, out: object) -> int:
    return max(1, -(-graph.number(size) // graph.number(out)))


def _columns(writer: Writer, side: _Side) -> None:
    """Tables of indices (``index0``, ...) and weights (``share0``, ...) for a line's columns."""
    size, out = side.size, side.out
    writer.add(f"place = tl.cumsum(tl.full({out}, 1.0))")
    if side.mode == "nearest":  # one size divides the other: half an element from every border
        writer.add(f"spot = (place - 0.5) * (float({size}) / float({out})) - 0.5", "index0 = tl.cast(spot, tl.int32)")
        return
    if side.align:
        writer.add(f"scaled = (place - 1.0) * float({size} - 1)", f"parts = float(max({out} - 1, 1))")
    else:
        writer.add(f"scaled = (place * 2.0 - 1.0) * float({size}) - float({out})", f"parts = float(2 * {out})")
        if side.mode == "linear":
            writer.add("scaled = tl.maximum(scaled, 0.0)")
    writer.add("position = scaled / parts", "near = tl.cast(position, tl.int32)", "low = tl.cast(near, tl.float32)")
    writer.add("low = tl.where(low * parts > scaled, low - 1.0, low)", "part = (scaled - low * parts) / parts")
    for t, offset in enumerate(side.taps):
        writer.add(f"spot{t} = tl.minimum(tl.maximum(low + {offset}.0, 0.0), float({size} - 1))")
        writer.add(f"index{t} = tl.cast(spot{t}, tl.int32)")
    _weights(writer, side, "share", "part", "low", tiles=True)


def _mixed(writer: Writer, sides: list[_Side], tensor: str) -> None:
    """``mixed``: the input's lines under an output line, each with its weight."""
    width = sides[-1].size
    for k, s in enumerate(sides[:-1]):
        if s.mode == "nearest":
            writer.add(f"low{k} = o{k} * {s.size} // {s.out}")
            continue
        if s.align:
            writer.add(f"scaled{k} = o{k} * ({s.size} - 1)", f"parts{k} = max({s.out} - 1, 1)")
        else:
            scaled = f"(2 * o{k} + 1) * {s.size} - {s.out}"
            writer.add(
                f"scaled{k} = {f'max({scaled}, 0)' if s.mode == 'linear' else scaled}", f"parts{k} = 2 * {s.out}"
            )
        writer.add(f"low{k} = (scaled{k} + parts{k}) // parts{k} - 1")
        writer.add(f"part{k} = (scaled{k} - low{k} * parts{k}) / parts{k}")
        _weights(writer, s, f"weight{k}_", f"part{k}", f"low{k}", tiles=False)
    for number, chosen in enumerate(combinations(*(range(len(s.taps)) for s in sides[:-1]))):
        position, weights = "row", []
        for k, t in enumerate(chosen):
            s = sides[k]
            at = f"min(max(low{k} + {s.taps[t]}, 0), {s.size} - 1)" if s.mode != "nearest" else f"low{k}"
            position = f"({position} * {s.size} + {at})"
            weights += [f"weight{k}_{t}"] if s.mode != "nearest" else []
        load = f"tl.load({tensor} + {position} * {width} + tl.arange(0, {width}))"
        value = " * ".join([load, *([f"({' * '.join(weights)})"] if weights else [])])
        writer.add(f"mixed = {'mixed + ' if number else ''}{value}")


def _weights(writer: Writer, side: _Side, name: str, part: str, low: str, tiles: bool) -> None:
    """A weight for each neighbour, as tiles or numbers; ``part``: how far behind the neighbour 0 the place is."""
    if side.mode == "linear":
        writer.add(f"{name}0 = 1.0 - {part}", f"{name}1 = {part}{' * 1.0' if tiles else ''}")
    elif side.mode == "cubic":
        for t, (away, kind) in enumerate(_CUBIC_TAPS):
            writer.add(f"{name}{t}_away = {away.format(part)}")
            writer.add(f"{name}{t} = {_CUBIC[kind].format(d=f'{name}{t}_away')}")
    elif side.mode == "antialias":
        writer.add(f"{name}_reach = max(float({side.size}) / float({side.out}), 1.0)")
        for t, offset in enumerate(side.taps):
            away = f"{offset}.0 - {part}"
            size = f"tl.abs({away})" if tiles else f"max({away}, {part} - {offset}.0)"
            value = f"1.0 - {size} / {name}_reach"
            writer.add(f"{name}{t} = {f'tl.relu({value})' if tiles else f'max({value}, 0.0)'}")
            if tiles:
                writer.add(f"{name}{t} = tl.where({low} + {offset}.0 < 0.0, 0.0, {name}{t})")
                writer.add(f"{name}{t} = tl.where({low} + {offset}.0 > float({side.size} - 1), 0.0, {name}{t})")
            else:
                inside = f"{low} + {offset} >= 0 and {low} + {offset} < {side.size}"
                writer.add(f"{name}{t} = {name}{t} if {inside} else 0.0")
        names = [f"{name}{t}" for t in range(len(side.taps))]
        writer.add(f"{name}_total = {' + '.join(names)}")
        writer.add(*(f"{n} = {n} / {name}_total" for n in names))
