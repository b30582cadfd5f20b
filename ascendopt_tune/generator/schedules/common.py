"""What schedules share: levels of nodes, loops over axes, partial results of cores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ..axes import Axis, Normalized
from ..graph import COMPARISONS, POINTWISE, REDUCTIONS, Graph, Node, NotGenerated, Size
from ..text import Writer, number, operand

_SIGNS = {"sum": "add", "prod": "mul"}
#: Cycles for 64 elements where it isn't one: of two tiles, of functions at half the rate, of several instructions.
_CYCLES = {"add": 2, "sub": 2, "mul": 2, "div": 4, "exp": 2, "log": 2, "sqrt": 2, "rsqrt": 4, "erf": 28, "tanh": 9,
           "sigmoid": 8, "where": 4, "reciprocal": 4}  # fmt: skip
_TRANSFER = 2.5  # and to move 64 elements of a tensor
STARTED = 135  # cycles until another core has started
CORES = 40  # of the smallest device; more only help


def share_of(graph: Graph, count: Size) -> int:
    """Elements that are worth another core: cores start one after the other, so the more is done with each element,
    and the more elements there are, the more cores (the root of the work over what a start takes)."""
    cycles = _TRANSFER * (len([i for i in graph.inputs if i.shape]) + len(graph.outputs))
    for n in graph.nodes():
        two = sum(bool(a.shape) and a.op != "number" for a in n.nodes) == 2
        if n.op in POINTWISE or n.op in COMPARISONS:
            cycles += _CYCLES.get(n.op, 1) if two or n.op not in ("add", "sub", "mul") else 1
    elements = graph.number(count)
    cores = max(1, int((elements / 64 * cycles / STARTED) ** 0.5) // 4) * 4  # four of them start at a time
    return max(4096, min(32768, -(-elements // (cores * 256)) * 256))


def reductions(graph: Graph) -> list[Node]:
    return [n for n in graph.nodes() if n.op in REDUCTIONS]


def levels(graph: Graph, joint: Mapping[Node, Node]) -> dict[Node, int]:
    """How many reductions, one behind the other, a node waits for. ``joint``: those that don't wait for another."""
    found: dict[Node, int] = {}
    for n in graph.nodes():
        below = max((found[a] for a in n.nodes), default=0)
        found[n] = found[joint[n]] if n in joint else below + (n.op in REDUCTIONS)
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
    finish: Callable[[Sequence[Node], Mapping[Node, Moments]], None] | None = None,
    once: bool = False,
) -> None:
    """As many passes over the data as reductions wait for each other, and one for the outputs that vary with it.

    Every other pass goes backwards: it begins with what the one before had last, which is still in L2.

    Args:
        inner: the reductions over what ``loop`` runs over.
        outputs: those that are stored inside of it.
        loop: writes the loops around a body.
        finish: what brings the cores' shares of reductions together.
        once: the loop's body runs once; else one number is kept as a tile of one element until the end of the loop,
            so that the scalar unit needn't wait in it.
    """
    joint = {} if once else deviations(writer, inner)
    level = levels(graph, joint)
    writer.backwards = False
    last = max([level[n] for n in inner] + [level[graph.outputs[i]] + 1 for i in outputs], default=0)
    for k in range(1, last + 1):
        mine = [n for n in inner if level[n] == k]
        stored = [i for i in outputs if level[graph.outputs[i]] == k - 1]
        if not mine and not stored:
            continue
        names, kept, pairs = _begun(writer, mine, joint, once)
        scope = writer.here

        loop(partial(_body, writer, stored, names, kept, pairs))
        writer.backwards = not writer.backwards
        for n, tile in kept.items():
            writer.add(f"{names[n]} = tl.extract_scalar({tile}, 0)")
        for n in names:
            writer.done[n] = names[n], scope
        if finish is not None and mine:
            finish(list(names), pairs)
        for pair in pairs.values():
            pair.end(scope)


def _begun(
    writer: Writer, mine: Sequence[Node], joint: Mapping[Node, Node], once: bool
) -> tuple[dict[Node, str], dict[Node, str], dict[Node, Moments]]:
    """What a pass's reductions begin with: their names, the tiles of those kept as one, the pairs found together."""
    pairs = {n: Moments(writer, joint[n], n) for n in mine if n in joint}
    names = {n: writer.name(WORDS[n.op]) for n in mine if n not in pairs and n not in _means(pairs)}
    kept = {n: writer.name(f"{names[n]}_tile") for n in names if not once and _one_number(writer, n)}
    for n in names:
        _begin(writer, n, names[n], kept.get(n, ""))
    for pair in pairs.values():
        pair.begin()
    return names, kept, pairs


def _body(
    writer: Writer,
    stored: Sequence[int],
    names: Mapping[Node, str],
    kept: Mapping[Node, str],
    pairs: Mapping[Node, Moments],
) -> None:
    """What one pass does with a tile: takes it into its reductions, stores the outputs that are known."""
    for n, name in names.items():
        if n.op in PLACES:
            _place(writer, n, name)
        elif n in kept:
            part = f"tl.reduce_{n.op}({writer.value(n.args[0])})"
            writer.add(f"{kept[n]} = {join(n.op, kept[n], part, tiles=True)}")
        else:
            writer.add(f"{name} = {joined(writer, n, name)}")
    for pair in pairs.values():
        pair.step()
    for i in stored:
        writer.store(i)


def _one_number(writer: Writer, n: Node) -> bool:
    """Whether tiles become one number."""
    return not writer.is_tile(n) and writer.is_tile(n.args[0]) and n.op in ("sum", "max", "min")


def _begin(writer: Writer, n: Node, name: str, kept: str) -> None:
    """What a reduction begins with; ``kept``: the tile of one element that holds it."""
    start = number(REDUCTIONS[n.op])
    if kept:
        writer.add(f"{kept} = tl.full(1, {start})")
        return
    writer.add(f"{name} = tl.full({writer.lane_count}, {start})" if writer.is_tile(n) else f"{name} = {start}")
    if n.op in PLACES:
        extreme = number(REDUCTIONS[PLACES[n.op]])
        writer.add(f"{name}_value = tl.full({writer.lane_count}, {extreme})")


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


def deviations(writer: Writer, inner: Sequence[Node]) -> dict[Node, Node]:
    """Sums of squared deviations from a mean along the lanes, by the sum that the mean is made of."""
    found = {}
    for n in inner:
        square = n.args[0]
        if n.op != "sum" or square.op != "mul" or square.args[0] is not square.args[1]:
            continue
        centred = square.args[0]
        if not isinstance(centred, Node) or centred.op != "sub" or not all(isinstance(a, Node) for a in centred.args):
            continue
        source, mean = centred.args
        total = _bare(_bare(mean).args[0]) if _bare(mean).op == "div" else None
        if not isinstance(total, Node) or total not in inner or total.op != "sum" or total.args[0] is not source:
            continue
        if _one_number(writer, n) and _one_number(writer, total):
            found[n] = total
    return found


def _bare(node: Node) -> Node:
    """What a reshape shows."""
    while isinstance(node, Node) and node.op == "reshape":
        node = node.args[0]
    return node


def _means(pairs: Mapping[Node, Moments]) -> set[Node]:
    return {p.total for p in pairs.values()}


class Moments:
    """A sum and the sum of squared deviations from the mean, in one pass: those of every tile, which are in the
    Unified Buffer, are joined to what came before (Chan, Golub and LeVeque's formula)."""

    def __init__(self, writer: Writer, total: Node, squares: Node) -> None:
        self.writer, self.total, self.squares = writer, total, squares
        self.names = [writer.name(w) for w in ("mean", "squares", "seen")]

    def begin(self) -> None:
        self.writer.add(*(f"{name} = 0.0" for name in self.names))

    def step(self) -> None:
        w, (mean, squares, seen) = self.writer, self.names
        tile, n = w.value(self.total.args[0]), w.lane_count
        near, away, step = (w.name(x) for x in ("near", "away", "step"))
        w.add(f"{near} = tl.sum({tile}) / {n}", f"{away} = {tile} - {near}", f"{step} = {near} - {mean}")
        w.add(f"{squares} = {squares} + tl.sum({away} * {away}) + {step} * {step} * {seen} * {n} / ({seen} + {n})")
        w.add(f"{mean} = {mean} + {step} * {n} / ({seen} + {n})", f"{seen} = {seen} + {n}")

    def together(self, load: Callable[[str], str]) -> None:
        """``load``: loads the cores' numbers, eight times each, and says what they are called. Two at a time."""
        w, (mean, squares, seen), away = self.writer, self.names, self.writer.name("away")
        w.add(f"{squares} = tl.sum({load(squares)}) / 8.0")
        means, counts = load(mean), load(seen)
        w.add(f"{seen} = tl.sum({counts}) / 8.0", f"{mean} = tl.sum({means} * {counts}) / 8.0 / {seen}")
        w.add(f"{away} = {means} - {mean}", f"{squares} = {squares} + tl.sum({away} * {away} * {counts}) / 8.0")

    def end(self, scope: int) -> None:
        mean, squares, seen = self.names
        name = self.writer.name(WORDS["sum"])
        self.writer.add(f"{name} = {mean} * {seen}")
        self.writer.done[self.total], self.writer.done[self.squares] = (name, scope), (squares, scope)


def together(
    writer: Writer, of: Sequence[Node], first: str, slots: str, pairs: Mapping[Node, Moments] | None = None
) -> None:
    """The cores' shares of reductions, in the same order on every core: by way of the workspace.

    Args:
        first: where the shares of these cores begin, in slots.
        slots: elements of all their shares, eight a core.
    """
    moments = list((pairs or {}).values())
    names = [writer.done[n][0] for n in of] + [name for p in moments for name in p.names]
    parts = writer.name(f"{names[0]}_parts")
    writer.host.workspaces[parts] = f"tl.num_cores() * {8 * len(names)}"
    places = {name: f"{parts}{f' + tl.num_programs(0) * {8 * k}' if k else ''}" for k, name in enumerate(names)}
    for name, place in places.items():
        writer.add(f"tl.store({place} + core * 8 + tl.arange(0, 8), tl.full(8, {name}))")
    writer.add("tl.sync_all()")

    def load(name: str) -> str:
        shares = writer.name(f"{name}_shares")
        begin = f" + {first} * 8" if first else ""
        writer.add(f"{shares} = tl.load({places[name]}{begin} + tl.arange(0, {slots}))")
        return shares

    for n in of:
        if n.op == "prod":
            raise NotGenerated("a product over several cores has no rule.")
        name = writer.done[n][0]
        writer.add(f"{name} = tl.{n.op}({load(name)}){' / 8.0' if n.op == 'sum' else ''}")
    for p in moments:
        p.together(load)


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
