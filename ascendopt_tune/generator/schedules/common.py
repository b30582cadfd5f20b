"""What schedules share: levels of nodes, loops over axes, partial results of cores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..axes import Axis, Normalized
from ..graph import POINTWISE, REDUCTIONS, Graph, Node, NotGenerated
from ..text import Writer, number, operand

_SIGNS = {"sum": "add", "prod": "mul"}
_WEIGHTS = {"erf": 24, "tanh": 12, "sigmoid": 5, "where": 3}  # of what takes several instructions
CORES = 40  # of the smallest device; more only help


def share_of(graph: Graph) -> int:
    """Elements that are worth another core: the more is done with each, the fewer."""
    operations = sum(_WEIGHTS.get(n.op, 1) for n in graph.nodes() if n.op in POINTWISE)
    return max(4096, min(16384, 1 << (131072 // (operations + 3)).bit_length() - 1))


def reductions(graph: Graph) -> list[Node]:
    return [n for n in graph.nodes() if n.op in REDUCTIONS]


def levels(graph: Graph) -> dict[Node, int]:
    """How many reductions, one behind the other, a node waits for."""
    found: dict[Node, int] = {}
    for n in graph.nodes():
        below = max((found[a] for a in n.nodes), default=0)
        found[n] = below + (n.op in REDUCTIONS)
    return found


def name_axes(normalized: Normalized, kept: Sequence[Axis], reduced: Sequence[Axis], lane: str) -> None:
    for k, a in enumerate(kept):
        a.name = "rows" if len(kept) == 1 else f"outer{k}"
    for k, a in enumerate(reduced):
        a.name = "middle" if len(reduced) == 1 else f"middle{k}"
    normalized.axes[-1].name = lane


def passes(
    writer: Writer,
    graph: Graph,
    inner: Sequence[Node],
    outputs: Sequence[int],
    loop: Callable[[Callable[[], None]], None],
    finish: Callable[[Sequence[Node]], None] | None = None,
) -> None:
    """As many passes over the data as reductions wait for each other, and one for the outputs that vary with it.

    Args:
        inner: the reductions over what ``loop`` runs over.
        outputs: those that are stored inside of it.
        loop: writes the loops around a body.
        finish: what brings the cores' shares of reductions together.
    """
    level = levels(graph)
    last = max([level[n] for n in inner] + [level[graph.outputs[i]] + 1 for i in outputs], default=0)
    for k in range(1, last + 1):
        mine = [n for n in inner if level[n] == k]
        stored = [i for i in outputs if level[graph.outputs[i]] == k - 1]
        if not mine and not stored:
            continue
        tiles = {n: writer.is_tile(n) for n in mine}
        names = {n: writer.name(WORDS[n.op]) for n in mine}
        for n in mine:
            start = number(REDUCTIONS[n.op])
            writer.add(f"{names[n]} = tl.full({writer.lane_count}, {start})" if tiles[n] else f"{names[n]} = {start}")
            if n.op in PLACES:
                extreme = number(REDUCTIONS[PLACES[n.op]])
                writer.add(f"{names[n]}_value = tl.full({writer.lane_count}, {extreme})")
        scope = writer.here

        def body(stored: Sequence[int] = stored, names: Mapping[Node, str] = names) -> None:
            for n, name in names.items():
                if n.op in PLACES:
                    _place(writer, n, name)
                else:
                    writer.add(f"{name} = {joined(writer, n, name)}")
            for i in stored:
                writer.store(i)

        loop(body)
        for n in mine:
            writer.done[n] = names[n], scope
        if finish is not None and mine:
            finish(mine)


WORDS = {"sum": "total", "max": "largest", "min": "smallest", "prod": "factors", "argmax": "where", "argmin": "where"}
PLACES = {"argmax": "max", "argmin": "min"}


def _place(writer: Writer, n: Node, name: str) -> None:
    """The index of the best so far, one for each lane, and the best itself."""
    (axis,) = writer.normalized.reduced[n]
    if not writer.is_tile(n) or not writer.is_tile(n.args[0]):
        raise NotGenerated(f"{n.op} along the lanes has no rule.")
    value, step = writer.name(f"{name}_next"), writer.index[axis][0]
    writer.add(f"{value} = {writer.value(n.args[0])}")
    sign = ">" if n.op == "argmax" else "<"
    writer.add(f"{name} = tl.where({value} {sign} {name}_value, float({step}), {name})")
    writer.add(f"{name}_value = tl.{PLACES[n.op]}imum({name}_value, {value})")


def joined(writer: Writer, n: Node, name: str) -> str:
    """The next value of a reduction, from what it was."""
    source = n.args[0]
    value = writer.value(source)
    if writer.is_tile(n):
        if not writer.is_tile(source):
            raise NotGenerated("a reduction over what doesn't vary has no rule.")
        return join(n.op, name, value, tiles=True)
    if writer.is_tile(source):
        if n.op == "prod":
            raise NotGenerated("a product along the lanes has no rule.")
        value = f"tl.{n.op}({value})"
    return join(n.op, name, value, tiles=False)


def join(op: str, name: str, value: str, tiles: bool) -> str:
    """A value taken into a reduction, as text."""
    if op in _SIGNS:
        return f"{name} {'+' if op == 'sum' else '*'} {operand(value, _SIGNS[op], 1)}"
    return f"{f'tl.{op}imum' if tiles else op}({name}, {value})"


def together(writer: Writer, of: Sequence[Node], first: str, slots: str) -> None:
    """The cores' shares of reductions, in the same order on every core: by way of the workspace.

    Args:
        first: where the shares of these cores begin, in slots.
        slots: elements of all their shares, eight a core.
    """
    parts = {}
    for n in of:
        parts[n] = writer.name(f"{writer.done[n][0]}_parts")
        writer.host.workspaces[parts[n]] = "tl.num_cores() * 8"
        writer.add(f"tl.store({parts[n]} + core * 8 + tl.arange(0, 8), tl.full(8, {writer.done[n][0]}))")
    writer.add("tl.sync_all()")
    for n in of:
        name = writer.done[n][0]
        shares = writer.name(f"{name}_shares")
        begin = f" + {first} * 8" if first else ""
        writer.add(f"{shares} = tl.load({parts[n]}{begin} + tl.arange(0, {slots}))")
        tail = " / 8.0" if n.op == "sum" else ""
        if n.op == "prod":
            raise NotGenerated("a product over several cores has no rule.")
        writer.add(f"{name} = tl.{n.op}({shares}){tail}")


def unravel(writer: Writer, kept: list[Axis]) -> None:
    """Indices of the outer axes from a row's number."""
    if len(kept) == 1:
        writer.index[kept[0]] = "row", writer.here
        return
    if kept:
        writer.together.append((tuple(kept), "row"))
    rest = "row"
    for k in range(len(kept) - 1, -1, -1):
        a = kept[k]
        variable = writer.name(f"i{k}")
        size = writer.axis(a)
        writer.add(f"{variable} = {rest} % {size}" if k else f"{variable} = {rest}")
        writer.index[a] = variable, writer.here
        if k:
            rest = f"row // {size}" if rest == "row" else f"{rest} // {size}"
