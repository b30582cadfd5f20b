"""Logic mutations of the split: how the work is cut among cores, along which axis, and what else is chosen with it.

1. Even split against remainder: only as many cores as divide the work without a remainder.
2. Tail handling: shares of whole tiles, so that one core alone has a tail; shares of whole 32- or 512-byte pieces.
3. Axis: two sizes of the shape change places before anything is computed from them.
4. Tiling key: another key that the kernel tests for, where the program computes its key.
5. Workspace: buffers that are added up share the larger one's room; a buffer for each core becomes one for all.

All of these guess that the rest of the program, and the kernel, follow; the gate decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from ...nouns.trial import Move
from ...sources.cpp import Edit, Function, walk
from ..mutation import Mutation
from .context import Context
from .expressions import ceiled, mentions, written
from .flow import Definition, Flow, Key
from .logic_rules import assignable, divisions, tags_of
from .purposes import PURPOSE_RANK
from .slice import EvolvableSite, Template, statement_of
from .usage import integer

_PAIRS = 3  # axis swaps offered for one program
_LONGEST = 80  # characters of an expression that is written once more


def _whole(dividend: Node, divisor: Node) -> str | None:
    """``n`` of the ceiling's dividend ``n + divisor - 1``; the dividend itself where it is none.

    None if it is too long to be written once more, or the divisor is a part of it.
    """
    parts = ceiled(dividend, divisor) or [(1, dividend)]
    text = written(parts)
    return None if len(text) > _LONGEST or any(mentions(n, divisor) for _, n in parts) else text


def _counts_cores(flow: Flow, function: Function, node: Node) -> bool:
    """The core count, or one that was cut to the work there is; nothing that the Unified Buffer's size went into."""
    tags = flow.expression_tags(function.path, node, function)
    return "core" in tags and "ub" not in tags


def _by_cores(template: Template) -> Iterator[tuple[Function, Node, str, str]]:
    """(function, division, what is divided, core count) of every division of work by a core count."""
    flow = template.flow
    for function, node, left, right in divisions(template):
        if _counts_cores(flow, function, right):
            cores = flow.program.text(function.path, right)
            whole = _whole(left, right)
            if whole is not None:
                yield function, node, whole, cores


def even_shares(template: Template, context: Context) -> Iterator[Mutation]:
    """Before work is divided by ``cores``: the largest count, at least half of them, that leaves no remainder."""
    flow = template.flow
    done: set[tuple[str, str, str]] = set()
    for function, node, left, right in divisions(template):
        cores, statement = flow.program.text(function.path, right), statement_of(node)
        whole = _whole(left, right)
        if (
            statement is None
            or whole is None
            or (function.path, function.name, cores) in done
            or not _counts_cores(flow, function, right)
            or not assignable(template, function, right)
        ):
            continue
        done.add((function.path, function.name, cores))
        code = (
            f"for (auto evenCores = {cores}; evenCores > 0 && evenCores >= {cores} / 2; --evenCores) "
            f"{{ if (({whole}) % evenCores == 0) {{ {cores} = evenCores; break; }} }} "
        )
        edit = Edit(function.path, statement.start_byte, statement.start_byte, code)
        move = Move(f"{function.path}:{function.name}:shares:{cores}", "even_shares", "set", 1)
        yield Mutation((edit,), f"even shares: as many cores as divide {whole}", (move,), 1.0)


def _shares(template: Template) -> Iterator[tuple[EvolvableSite, Function]]:
    """Quantities that are one core's share of the work, each with its function."""
    divided = {(f.path, n.start_byte): f for f, n, _, _ in _by_cores(template)}
    for site in template.of_purpose("quantity"):
        if site.insert_at is None or "ub" in tags_of(template, site):
            continue
        for (path, at), function in divided.items():
            if path == site.path and site.start <= at < site.end:
                yield site, function
                break


def whole_tiles(template: Template, context: Context) -> Iterator[Mutation]:
    """A core's share rounded up to whole tiles; the last core with work takes what is left."""
    for share, function in _shares(template):
        tiles = [
            t
            for t in template.of_purpose("quantity", "tile_length")
            if (t.path, t.function) == (share.path, function.name)
            and t.name != share.name
            and (t.purpose == "tile_length" or "ub" in tags_of(template, t))
            and re.fullmatch(r"\w+", t.name)
        ]
        for tile in tiles[:2]:
            at = max(share.insert_at or 0, tile.insert_at or 0)
            one, part = tile.name, share.name
            code = f" if ({one} > 0) {{ {part} = ({part} + {one} - 1) / {one} * {one}; }}"
            move = Move(f"{share.id}:{one}", "whole_tiles", "set", 1)
            change = f"tails: {part} in whole {one}, one tail in all"
            yield Mutation((Edit(share.path, at, at, code),), change, (move,), 0.6 * share.rank)


def aligned_shares(template: Template, context: Context) -> Iterator[Mutation]:
    """A core's share rounded up to whole blocks of 32 or 512 bytes: aligned copies everywhere but at the end."""
    for share, _ in _shares(template):
        for size, promise in ((512, 0.5), (32, 0.4)):
            unit = max(1, size // context.element_bytes)
            code = f" {share.name} = ({share.name} + {unit - 1}) / {unit} * {unit};"
            assert share.insert_at is not None
            edit = Edit(share.path, share.insert_at, share.insert_at, code)
            move = Move(f"{share.id}:aligned", "aligned_shares", "set", size)
            yield Mutation((edit,), f"{share.name} in whole {unit} ({size} bytes)", (move,), promise * share.rank)


def _axes(flow: Flow) -> Iterator[tuple[Key, str, Definition]]:
    """Sizes of the shape that have a variable: key, how it is written, its last definition."""
    for key, found in list(flow.definitions.items()):
        made = [d for d in found if d.kind in ("init", "assign")]
        if not made or not flow.reach.get(key, set()) & {"field", "block_dim"} or flow.tags.get(key) != {"shape"}:
            continue
        if len({flow.scope(d.function) for d in made if d.function is not None}) != 1:
            continue
        if any(re.search(r"GetDim\b|\[", flow.program.text(d.path, d.value)) for d in made):
            constant = any(
                re.match(r"\s*(static\s+)?(const|constexpr)\b", flow.program.text(d.path, d.statement)) for d in made
            )
            if not constant and re.fullmatch(r"\w+", key[1]):
                yield key, key[1], max(made, key=lambda d: d.statement.start_byte)


def swapped_axes(template: Template, context: Context) -> Iterator[Mutation]:
    """Two sizes of the shape change places behind the last statement that sets one of them."""
    flow = template.flow
    axes = list(_axes(flow))
    offered = 0
    for i, (_, one, first) in enumerate(axes):
        for _, other, second in axes[i + 1 :]:
            if first.path != second.path or first.function is None or first.function is not second.function:
                continue
            last = max((first, second), key=lambda d: d.statement.start_byte)
            at = _after(last.statement, first.function)
            if at is None or offered == _PAIRS:
                continue
            offered += 1
            code = f" {{ auto otherAxis = {one}; {one} = {other}; {other} = otherAxis; }}"
            move = Move(f"{first.path}:{first.function.name}:axes:{one}:{other}", "axis", "flip", 1)
            change = f"axis of the split: {one} and {other} change places in {first.function.name}"
            yield Mutation((Edit(first.path, at, at, code),), change, (move,), 0.5)


def _after(statement: Node, function: Function) -> int | None:
    """Behind the statement of the function's own block that contains ``statement``."""
    top: Node | None = statement
    while top is not None and top.parent is not None and top.parent != function.body:
        top = top.parent
    return top.end_byte if top is not None and top.parent is not None else None


def tiling_keys(template: Template, context: Context) -> Iterator[Mutation]:
    """``SetTilingKey(computed)`` -> one of the keys that the kernel tests for."""
    flow = template.flow
    for number, sink in enumerate(s for s in flow.sinks if s.kind == "tiling_key"):
        text = flow.program.text(sink.path, sink.value)
        tags = flow.expression_tags(sink.path, sink.value, sink.function)
        # A key that follows from the dtype alone is a fact about the call.
        if integer(text) is not None or len(context.tiling_keys) < 2 or (tags and tags <= {"dtype"}):
            continue
        for key in context.tiling_keys:
            move = Move(f"{sink.path}:{sink.function.name}:key#{number}", "tiling_key", "set", key)
            edit = Edit(sink.path, sink.value.start_byte, sink.value.end_byte, str(key))
            yield Mutation((edit,), f"tiling key: {key} instead of {' '.join(text.split())[:60]}", (move,), 0.4)


def workspace(template: Template, context: Context) -> Iterator[Mutation]:
    """Less room in GM: two buffers in one place, or one buffer for all cores."""
    flow, seen = template.flow, set[tuple[str, int]]()
    for path, value, function in _workspace_expressions(flow):
        for node in walk(value):
            operator = node.child_by_field_name("operator")
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            if node.type != "binary_expression" or operator is None or left is None or right is None:
                continue
            sign, texts = flow.program.text(path, operator), [flow.program.text(path, n) for n in (left, right)]
            if (path, node.start_byte) in seen or any(integer(t) is not None or len(t) > _LONGEST for t in texts):
                continue
            tags = [flow.expression_tags(path, n, function) for n in (left, right)]
            if sign == "+" and all(t & {"shape", "core", "ub"} for t in tags):
                text, change = (
                    f"({texts[0]} > {texts[1]} ? {texts[0]} : {texts[1]})",
                    f"{texts[0]} and {texts[1]} in one place",
                )
            elif sign == "*" and {"core"} in tags:
                kept = texts[1 - tags.index({"core"})]
                text, change = kept, f"{kept} once for all cores"
            else:
                continue
            seen.add((path, node.start_byte))
            edit = Edit(path, node.start_byte, node.end_byte, text)
            move = Move(f"{path}:{function.name if function else ''}:workspace:{change}", "workspace", "down", 0)
            yield Mutation((edit,), f"workspace: {' '.join(change.split())}", (move,), 2 * PURPOSE_RANK["workspace"])


def _workspace_expressions(flow: Flow) -> Iterator[tuple[str, Node, Function | None]]:
    """What is written to the workspace size, and the definitions of variables that only go there."""
    for sink in flow.sinks:
        if sink.kind == "workspace":
            yield sink.path, sink.value, sink.function
    for key, reached in list(flow.reach.items()):
        if reached == {"workspace"}:
            for d in flow.definitions.get(key, ()):
                if d.kind in ("init", "assign", "return"):
                    yield d.path, d.value, d.function
