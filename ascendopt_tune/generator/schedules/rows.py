"""The innermost axis is reduced: every core takes rows, a row goes through in tiles, its results are scalars.

Softmax, norms of rows, statistics of contiguous segments (layer, group, instance and batch norm), and losses that
average a value per row: those are added up per core and then over the cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...dsl.ir import BUFFERS
from ..axes import Axis, Normalized
from ..graph import Graph, Node, NotGenerated, product
from ..program import Draft, ProgramKnob
from ..text import Writer
from .common import WORDS, joined, name_axes, passes, reductions, together, unravel

_WHOLE = 8192  # elements of a row that may be one tile
_FIRST = {"sum": "0.0", "max": "-tl.inf"}  # what a reduction over all rows begins with; else with inf
_ALONE = 24576  # and of one that nothing else is loaded beside


def fits(graph: Graph, normalized: Normalized) -> bool:
    return True


def drafts(graph: Graph, normalized: Normalized) -> Iterator[Draft]:
    if normalized.axes and graph.number(normalized.axes[-1].size) <= _WHOLE:
        yield draft(graph, normalized, whole=True)
    if normalized.axes and _WHOLE < graph.number(normalized.axes[-1].size) <= _ALONE:
        yield draft(graph, normalized, whole=True, alone=True)
    yield draft(graph, normalized, whole=False)


def draft(graph: Graph, normalized: Normalized, whole: bool, alone: bool = False) -> Draft:
    """``whole``: rows are tiles, and are loaded once; ``alone``: with one buffer for each tensor."""
    if not normalized.axes:
        raise NotGenerated("a module on single numbers has no schedule.")
    lane = normalized.axes[-1]
    inner, outer, reduced = _reduced(graph, normalized)
    middle = [a for a in normalized.axes if a in reduced and a is not lane]
    kept = [a for a in normalized.axes if a not in reduced]
    name_axes(normalized, kept, middle, "cols")
    writer = Writer(graph, normalized, lane)
    writer.saving = alone
    writer.add("core, cores = tl.program_id(0), tl.num_programs(0)")
    cols = writer.axis(lane)
    rows = writer.size(product([a.size for a in kept]), "rows")
    loop = loops(writer, middle, "" if whole else "0", cols)
    within = [i for i, p in enumerate(normalized.outputs) if any(a in p.names for a in reduced)]
    across = [i for i in range(len(graph.outputs)) if i not in within]
    names = {n: writer.name(f"all_{WORDS[n.op]}") for n in outer}
    for n, name in names.items():
        writer.add(f"{name} = {_FIRST.get(n.op, 'tl.inf')}")
    with writer.block(f"for row in tl.split({rows}, core, cores):"):
        unravel(writer, kept)
        passes(writer, graph, inner, within, loop, once=whole and not middle)
        for n, name in names.items():
            writer.add(f"{name} = {joined(writer, n, name)}")
        if not outer:
            _stored(writer, across)
    tile = ProgramKnob("tile", "TILE_LENGTH", 8192, "a part of a row and what is between", f"tl.align({cols}, 8)")
    single = ProgramKnob("buffers", BUFFERS, 1, "a row fills the Unified Buffer")
    draft_ = Draft(
        "rows",
        writer,
        [] if whole and not alone else [single] if whole else [tile],
        f"tl.cores({rows})",
        f"{graph.name}: {'rows, then all of them' if outer else 'by rows'}.",
    )
    if outer:
        writer.done.update({n: (name, 0) for n, name in names.items()})
        draft_.steps["slots"] = f"tl.cores({rows}) * 8"
        together(writer, outer, "", "slots")
        with writer.block("if core == 0:"):
            _stored(writer, across)
    return draft_


def _reduced(graph: Graph, normalized: Normalized) -> tuple[list[Node], list[Node], set[Axis]]:
    """Reductions of rows, those over all rows, and the axes of the first kind.

    Raises:
        NotGenerated: there is no schedule for them together.
    """
    inner = [n for n in reductions(graph) if normalized.axes[-1] in normalized.reduced[n]]
    outer = [n for n in reductions(graph) if n not in inner]
    reduced = set().union(*(normalized.reduced[n] for n in inner))
    if any(normalized.reduced[n] != reduced for n in inner):
        raise NotGenerated("reductions over different axes have no schedule together.")
    if any(normalized.reduced[n] != set(normalized.axes) - reduced for n in outer):
        raise NotGenerated("a second reduction that keeps an axis has no schedule.")
    if outer and any(p.names for p in normalized.outputs):
        raise NotGenerated("what follows a reduction over all rows is one number.")
    return inner, outer, reduced


def _stored(writer: Writer, outputs: Sequence[int]) -> None:
    for i in outputs:
        writer.store(i)


def loops(writer: Writer, middle: list[Axis], first: str, end: str) -> Callable[[Callable[[], None]], None]:
    """Loops over reduced axes, the lanes innermost: from ``first`` to ``end`` in tiles, all at once where it is ""."""

    def loop(body: Callable[[], None], left: list[Axis] | None = None) -> None:
        remaining = middle if left is None else left
        if remaining:
            axis = remaining[0]
            variable = writer.name("r" if len(middle) == 1 else "i")
            size = writer.axis(axis)
            with writer.block(f"for {variable} in range(0, {size}):"):
                writer.index[axis] = variable, writer.here
                if writer.backwards:
                    writer.index[axis] = f"({size} - 1 - {variable})", writer.here
                loop(body, remaining[1:])
            return
        if not first:
            writer.lane_scope, writer.lane_count, writer.lane_at = writer.here, end, "0"
            body()
            return
        if writer.backwards:
            pieces, piece, writer.lane_at = (writer.name(w) for w in ("pieces", "piece", "begin"))
            writer.add(f"{pieces} = tl.ceil_div({end}{'' if first == '0' else f' - {first}'}, tile)")
            with writer.block(f"for {piece} in range(0, {pieces}):"):
                writer.lane_scope = writer.here
                start = "" if first == "0" else f"{first} + "
                writer.add(f"{writer.lane_at} = {start}({pieces} - 1 - {piece}) * tile")
                writer.add(f"n = min(tile, {end} - {writer.lane_at})")
                body()
            return
        writer.lane_at = "at"
        with writer.block(f"for at in range({first}, {end}, tile):"):
            writer.lane_scope = writer.here
            writer.add(f"n = min(tile, {end} - at)")
            body()

    return loop
