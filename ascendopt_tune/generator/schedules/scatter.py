"""Results put where an index says: a copy of a tensor, then every update in its order, so that the last one stays.

Along the first axis every core owns rows of the result, reads all indices and takes those of its rows. Along the last
axis every core owns lines, which it keeps in the Unified Buffer.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..axes import Normalized
from ..graph import Graph, Node, NotGenerated, product
from ..program import Draft, ProgramKnob
from ..text import Writer


def fits(graph: Graph) -> bool:
    return any(n.op == "scatter" for n in graph.nodes())


def drafts(graph: Graph) -> Iterator[Draft]:
    (node, *more) = graph.outputs
    if node.op != "scatter" or more or any(not _plain(a) for a in node.args):
        raise NotGenerated("a scatter with anything around it has no schedule.")
    x, index, _ = node.args
    writer = Writer(graph, Normalized([], {}, {}, {}), None)
    writer.add("core, cores = tl.program_id(0), tl.num_programs(0)")
    if node.info["dim"] == 0 and len(index.shape) == 1:
        yield _rows(graph, node, writer)
    elif node.info["dim"] == len(x.shape) - 1 and len(index.shape) == len(x.shape):
        yield _lines(graph, node, writer)
    else:
        raise NotGenerated(f"a scatter along axis {node.info['dim']} of {len(x.shape)} has no schedule.")


def _plain(node: object) -> bool:
    return isinstance(node, Node) and node.op == "input" and not node.info.get("start")


def _rows(graph: Graph, node: Node, writer: Writer) -> Draft:
    x, index, source = (a.info["tensor"] for a in node.args)
    rows, count = writer.size(node.shape[0], "rows"), writer.size(node.args[1].shape[0], "count")
    cols = writer.size(product(node.shape[1:]), "cols")
    y = writer.output(0)
    writer.add(f"first, last = tl.split({rows}, core, cores)")
    with writer.block("for row in range(first, last):"), writer.block(f"for at in range(0, {cols}, tile):"):
        writer.add(f"n = min(tile, {cols} - at)")
        writer.add(f"kept = tl.load({x} + row * {cols} + at + tl.arange(0, n))")
        writer.add(f"tl.store({y} + row * {cols} + at + tl.arange(0, n), kept)")
    with writer.block(f"for begin in range(0, {count}, several):"):
        writer.add(f"m = min(several, {count} - begin)")
        writer.add(f"places = tl.load({index} + begin + tl.arange(0, m), dtype=tl.int32)")
        with writer.block("for j in range(0, m):"):
            writer.add("place = tl.extract_scalar(places, j)")
            with (
                writer.block("if place >= first and place < last:"),
                writer.block(f"for to in range(0, {cols}, tile):"),
            ):
                writer.add(f"k = min(tile, {cols} - to)")
                writer.add(f"update = tl.load({source} + (begin + j) * {cols} + to + tl.arange(0, k))")
                if node.info["add"]:
                    writer.add(f"known = tl.load({y} + place * {cols} + to + tl.arange(0, k))")
                value = "known + update" if node.info["add"] else "update"
                writer.add(f"tl.store({y} + place * {cols} + to + tl.arange(0, k), {value})")
    knobs = [
        ProgramKnob("tile", "TILE_LENGTH", 8192, "elements of a row", f"tl.align({cols}, 8)"),
        ProgramKnob("several", "INDICES", 1024, "indices that are read at once"),
    ]
    return Draft("scatter", writer, knobs, f"tl.cores({rows})", f"{graph.name}: rows by an index.")


def _lines(graph: Graph, node: Node, writer: Writer) -> Draft:
    x, index, source = (a.info["tensor"] for a in node.args)
    lines, width = writer.size(product(node.shape[:-1]), "lines"), writer.size(node.shape[-1], "width")
    count, given = (writer.size(n.shape[-1], w) for n, w in zip(node.args[1:], ("count", "given"), strict=True))
    with writer.block(f"for line in tl.split({lines}, core, cores):"):
        writer.add(f"result = tl.load({x} + line * {width} + tl.arange(0, {width}))")
        with writer.block(f"for begin in range(0, {count}, tile):"):
            writer.add(f"m = min(tile, {count} - begin)")
            writer.add(f"places = tl.load({index} + line * {count} + begin + tl.arange(0, m), dtype=tl.int32)")
            writer.add(f"updates = tl.load({source} + line * {given} + begin + tl.arange(0, m))")
            with writer.block("for j in range(0, m):"):
                writer.add("place = tl.extract_scalar(places, j)", "update = tl.extract_scalar(updates, j)")
                if node.info["add"]:
                    writer.add("update = update + tl.extract_scalar(result, place)")
                writer.add("tl.insert_scalar(result, place, update)")
        writer.add(f"tl.store({writer.output(0)} + line * {width} + tl.arange(0, {width}), result)")
    knob = ProgramKnob("tile", "TILE_LENGTH", 2048, "indices that are read at once", f"tl.align({count}, 8)")
    return Draft("scatter", writer, [knob], f"tl.cores({lines})", f"{graph.name}: elements of lines by an index.")
