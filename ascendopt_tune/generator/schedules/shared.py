"""Few rows, or none: the cores share each of them, and bring their parts of a reduction together.

Reductions over everything (losses, the Frobenius norm), and rows that are fewer than cores.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..axes import Axis, Normalized
from ..graph import Graph, product
from ..program import Draft, ProgramKnob
from ..text import Writer
from .common import CORES, name_axes, passes, reductions, share_of, together, unravel
from .rows import loops

_LEAST = 1 << 16  # elements of a row that is worth two meetings of the cores


def fits(graph: Graph, normalized: Normalized) -> bool:
    of = reductions(graph)
    if not normalized.axes or not of or any(n.op == "prod" for n in of):
        return False
    reduced = normalized.reduced[of[0]]
    if any(normalized.reduced[n] != reduced for n in of):
        return False
    rows = graph.number(product([a.size for a in normalized.axes if a not in reduced]))
    length = graph.number(product([a.size for a in normalized.axes if a in reduced]))
    alone = all(a in reduced for a in normalized.axes)
    return normalized.axes[-1] in reduced and (alone or (rows * 2 <= CORES and length >= _LEAST))


def drafts(graph: Graph, normalized: Normalized) -> Iterator[Draft]:
    lane = normalized.axes[-1]
    of = reductions(graph)
    reduced = normalized.reduced[of[0]]
    middle = [a for a in normalized.axes if a in reduced and a is not lane]
    kept = [a for a in normalized.axes if a not in reduced]
    name_axes(normalized, kept, middle, "cols" if kept else "count")
    writer = Writer(graph, normalized, lane)
    part, first_of_row = ("part", "row * parts") if kept else ("core", "")
    writer.add("core = tl.program_id(0)")
    cols = writer.axis(lane)
    rows = writer.size(product([a.size for a in kept]), "rows")
    if kept:
        writer.add("row = core // parts", "part = core % parts")
    unravel(writer, kept)
    writer.add(f"first, last = tl.split({cols}, {part}, parts, unit=8)")
    loop = loops(writer, middle, "first", "last")
    within = [i for i, p in enumerate(normalized.outputs) if any(a in p.names for a in reduced)]
    across = [i for i in range(len(graph.outputs)) if i not in within]
    passes(
        writer, graph, of, within, loop,
        lambda mine, pairs: together(writer, mine, first_of_row, "slots", pairs),
    )  # fmt: skip
    if across:
        with writer.block(f"if {part} == 0:"):
            for i in across:
                writer.store(i)
    share = f"tl.num_cores() // {rows}" if kept else "tl.num_cores()"
    length = product([a.size for a in normalized.axes if a in reduced])
    work = _work(writer, cols, middle)
    found = Draft(
        "shared",
        writer,
        [
            ProgramKnob("tile", "TILE_LENGTH", 8192, "a part of a core's share and what is between"),
            ProgramKnob("share", "CORE_ELEMENTS", share_of(graph, length), "what a core is worth starting for"),
        ],
        f"{rows} * parts" if kept else "parts",
        f"{graph.name}: {'rows that cores share' if kept else 'everything to one number'}.",
        {"parts": f"max(1, min({share}, {work}))", "slots": "parts * 8"},
    )
    if kept and not rows.isdigit():
        found.checks.append((f"{rows} <= tl.num_cores()", "at most as many rows as cores"))
    yield found


def _work(writer: Writer, cols: str, middle: list[Axis]) -> str:
    """How many cores are worth starting. They share the lanes: each goes through all of the axes above them."""
    if not middle:
        return f"tl.ceil_div({cols}, share)"
    total = " * ".join([cols, *(writer.axis(a) for a in middle)])
    return f"tl.ceil_div({total}, share), tl.ceil_div({cols}, 64)"
