"""Logic mutations: other code where the template decides something.

1. Core count and UB size are capped or scaled where they enter the program, so that everything computed from them stays
   consistent.
2. A quantity computed from them is halved, doubled, or rounded down to whole 512-byte pieces.
3. A split into tiles is made even, or into at least so many tiles that copies and computation overlap.
4. After a ceiling split over cores, only the cores that get work are launched.
5. A branch that decides a mode, a split or a tiling key takes the other way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from tree_sitter import Node

from ...nouns.trial import Move
from ...sources.cpp import Edit, Function, walk
from ..mutation import Mutation
from .context import Context
from .expressions import ceiled, mentions, written
from .flow import arguments_of
from .parameter_rules import core_counts
from .purposes import CAP, SCALE
from .slice import EvolvableSite, Template, statement_of

# (multiplier, divisor, promise) applied to the UB size a program reckons with. Above 1: many programs count buffers
# their kernel doesn't have.
_SHARES = (
    (1, 2, 1.0),
    (3, 4, 0.8),
    (1, 4, 0.8),
    (7, 8, 0.4),
    (1, 8, 0.5),
    (5, 4, 0.4),
    (3, 2, 0.5),
    (2, 1, 0.5),
    (1, 16, 0.3),
)
_SECOND_CAP = 0.2  # worth of another place where cores come in, once their number is capped at one


def core_count(template: Template, context: Context) -> Iterator[Mutation]:
    """``n`` -> ``(n < k ? n : k)``; a cap that is there already is changed, not nested; other core queries."""
    sites = template.of_purpose("core_count")
    elsewhere = any(CAP.fullmatch(s.text) for s in sites)
    for site in sites:
        capped = CAP.fullmatch(site.text)
        rank = site.rank * (_SECOND_CAP if elsewhere and not capped else 1.0)
        what, current = (capped["what"], int(capped["n"])) if capped else (site.text, context.cores)
        for value, promise in core_counts(context, current):
            text = what if value >= context.cores else f"({what} < {value} ? {what} : {value})"
            if len(what) > 160 or text == site.text:
                continue
            move = Move(site.id, "core_count", "up" if value > current else "down", value)
            yield Mutation(
                (Edit(site.path, site.start, site.end, text),), f"cores: at most {value}", (move,), rank * promise
            )
        for old, new in (("GetCoreNum()", "GetCoreNumAiv()"), ("GetCoreNumAiv()", "GetCoreNum()")):
            if old in site.text:
                edit = Edit(site.path, site.start, site.end, site.text.replace(old, new))
                yield Mutation((edit,), f"cores: {new}", (Move(site.id, "core_count", "set", 0),), site.rank * 0.3)


def ub_size(template: Template, context: Context) -> Iterator[Mutation]:
    """Reckon with a share of the Unified Buffer: shorter (or longer) tiles with every rounding of the program kept."""
    for site in template.of_purpose("ub_size"):
        data = template.program.files[site.path].data
        if site.kind == "statement" and site.insert_at is not None:
            name = re.escape(site.name)
            tail = data[site.insert_at :].decode("utf-8", "replace")
            found = re.match(rf"\s*{name} = {name} / (\d+) \* (\d+);", tail)
            start, end = site.insert_at, site.insert_at + len(found.group().encode()) if found else site.insert_at
            current = int(found[2]) / int(found[1]) if found else 1.0
            forms = {(m, d): f" {site.name} = {site.name} / {d} * {m};" for m, d, _ in _SHARES} | {(1, 1): ""}
        else:
            scaled = SCALE.fullmatch(site.text)
            what = scaled["what"] if scaled else site.text
            start, end = site.start, site.end
            current = int(scaled["m"]) / int(scaled["d"]) if scaled else 1.0
            forms = {(m, d): f"({what} / {d} * {m})" for m, d, _ in _SHARES} | {(1, 1): what}
        for m, d, promise in (*_SHARES, (1, 1, 0.5)):
            ratio = m / d
            if ratio == current:
                continue
            move = Move(site.id, "ub_size", "up" if ratio > current else "down", ratio, 1 if ratio > current else -1)
            change = f"UB: {site.name} times {m}/{d}"
            yield Mutation((Edit(site.path, start, end, forms[m, d]),), change, (move,), site.rank * promise)


def quantities(template: Template, context: Context) -> Iterator[Mutation]:
    """Halve, double or round down one computed quantity."""
    piece = 512 // context.element_bytes
    for site in template.of_purpose("quantity"):
        tags = tags_of(template, site)
        # What is left of UB may shrink and stay right; shares of the work mostly may not.
        promise = 0.5 if "ub" in tags else 0.2
        changes = [
            (f"{site.name} halved", "down", 0.5, "({0} + 1) / 2", promise),
            (f"{site.name} doubled", "up", 2.0, "{0} * 2", 0.8 * promise),
        ]
        if "ub" in tags:
            rounded = "({0} > " + str(piece) + " ? {0} / " + str(piece) + " * " + str(piece) + " : {0})"
            changes.append((f"{site.name} quartered", "down", 0.25, "({0} + 3) / 4", 0.4))
            changes.append((f"{site.name} rounded down to {piece} (512 bytes)", "set", piece, rounded, 0.4))
        for change, direction, value, form, worth in changes:
            if site.insert_at is not None:
                edit = Edit(site.path, site.insert_at, site.insert_at, f" {site.name} = {form.format(site.name)};")
            elif len(site.text) <= 60:
                edit = Edit(site.path, site.start, site.end, "(" + form.format(f"({site.text})") + ")")
            else:
                continue
            pressure = (1 if direction == "up" else -1) if "ub" in tags else 0
            move = Move(site.id, f"quantity_{direction}", direction, value, pressure)
            yield Mutation((edit,), change, (move,), site.rank * worth)


def tags_of(template: Template, site: EvolvableSite) -> set[str]:
    """What the quantity that the site decides is computed from: ``ub``, ``core``, ``shape``, ``dtype``."""
    for function in template.program.functions:
        if function.path == site.path and function.node.start_byte <= site.start < function.node.end_byte:
            return template.flow.tags.get(template.flow.key(site.name, function), set())
    return template.flow.tags.get(("", site.name), set())


@lru_cache(maxsize=8)
def divisions(template: Template) -> tuple[tuple[Function, Node, Node, Node], ...]:
    """(function, expression, dividend, divisor) of each ``a / b`` and ``ceil_div(a, b)`` that decides a quantity, a
    tiling field or the block dim."""
    spans = [(s.path, s.start, s.end) for s in template.of_purpose("quantity")]
    sinks = [s for s in template.flow.sinks if s.kind in ("field", "block_dim")]
    spans += [(s.path, s.value.start_byte, s.value.end_byte) for s in sinks]
    return tuple(
        (function, node, *parts)
        for function in template.program.functions
        for node in walk(function.body)
        if (parts := _divided(template, function, node)) is not None
        and any(p == function.path and a <= node.start_byte and node.end_byte <= b for p, a, b in spans)
    )


def _divided(template: Template, function: Function, node: Node) -> tuple[Node, Node] | None:
    """Dividend and divisor, if the node is a division or a call of a helper that divides."""
    if node.type == "binary_expression":
        operator = node.child_by_field_name("operator")
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if operator is not None and operator.type == "/" and left is not None and right is not None:
            return left, right
    elif node.type == "call_expression":
        arguments = arguments_of(node)
        called = template.flow.called(function.path, node)
        if len(arguments) == 2 and re.search("ceil|div", called, re.IGNORECASE):
            return arguments[0], arguments[1]
    return None


def assignable(template: Template, function: Function, node: Node) -> bool:
    """A variable or a member (not a constant, not a parameter's alias) that may be assigned once more."""
    if node.type != "identifier":
        return False
    flow = template.flow
    key = flow.key(flow.program.text(function.path, node), function)
    kinds = ("init",) if key[0] else ("assign", "filled")
    made = [d for d in flow.definitions.get(key, ()) if d.kind in kinds]
    return bool(made) and not any(
        re.match(r"\s*(static\s+)?(const|constexpr)\b", flow.program.text(d.path, d.statement)) for d in made
    )


def tiles(template: Template, context: Context) -> Iterator[Mutation]:
    """Before ``total / tile`` is reckoned: make the tiles even, or short enough for at least so many of them."""
    flow, block = template.flow, max(1, 32 // context.element_bytes)
    done: set[tuple[str, int, str]] = set()
    for function, node, left, right in divisions(template):
        text = flow.program.text
        tile, total = text(function.path, right), text(function.path, left)
        statement = statement_of(node)
        wanted = "ub" in flow.expression_tags(function.path, right, function)
        if (
            not wanted
            or "ub" in flow.expression_tags(function.path, left, function)
            or not assignable(template, function, right)
        ):
            continue
        if (
            statement is None
            or (function.path, statement.start_byte, tile) in done
            or len(total) > 80
            or mentions(left, right)
        ):
            continue
        done.add((function.path, statement.start_byte, tile))
        site = f"{function.path}:{function.name}:tiles:{tile}"
        at = statement.start_byte
        even = (
            f"if ({tile} > 0 && ({total}) > 0) {{ {tile} = (({total}) + (({total}) + {tile} - 1) / {tile} - 1) / "
            f"((({total}) + {tile} - 1) / {tile}); "
        )
        for unit in (block, 1):
            edit = Edit(function.path, at, at, even + f"{tile} = ({tile} + {unit - 1}) / {unit} * {unit}; }} ")
            change = f"even tiles: {tile} divides {total} into equal pieces of {unit}"
            yield Mutation((edit,), change, (Move(site, "even_tiles", "set", unit),), 1.2 if unit == block else 0.8)
        for parts in (2, 4, 8):
            cap = f"(({total}) / {parts} + {block - 1}) / {block} * {block}"
            edit = Edit(function.path, at, at, f"if ({cap} > 0 && {tile} > {cap}) {{ {tile} = {cap}; }} ")
            change = f"at least {parts} tiles: {tile} at most {total} / {parts}"
            yield Mutation((edit,), change, (Move(site, "more_tiles", "up", parts, -1),), 1.6 / (1 + 0.2 * parts))


def used_cores(template: Template, context: Context) -> Iterator[Mutation]:
    """After ``per = ceil(total / cores)``: ``cores = ceil(total / per)``."""
    flow, text = template.flow, template.flow.program.text
    counts = {(s.path, s.function, s.name) for s in template.of_purpose("core_count", "block_dim")}
    counts |= {(s.path, s.function.name, text(s.path, s.value)) for s in flow.sinks if s.kind == "block_dim"}
    quantities_at = {(s.path, s.start, s.end): s for s in template.of_purpose("quantity")}
    for function, node, left, right in divisions(template):
        site = quantities_at.get((function.path, node.start_byte, node.end_byte))
        cores = text(function.path, right)
        by_cores = (function.path, function.name, cores) in counts
        if site is None or site.insert_at is None or not by_cores or not assignable(template, function, right):
            continue
        if node.type == "call_expression":
            whole = text(function.path, left)
        elif (found := ceiled(left, right)) is not None:
            whole = written(found)
        else:
            continue
        per = site.name
        code = f" if ({per} > 0) {{ {cores} = (({whole}) + {per} - 1) / {per}; }}"
        edit = Edit(site.path, site.insert_at, site.insert_at, code)
        move = Move(f"{site.id}:{cores}", "used_cores", "set", 0)
        yield Mutation((edit,), f"cores: only those that get work of {per}", (move,), 1.0)


def branches(template: Template, context: Context) -> Iterator[Mutation]:
    """Take the other branch: ``c`` -> ``!(c)`` and back."""
    for site in template.of_purpose("branch"):
        inner = re.fullmatch(r"!\((.*)\)", site.text, re.DOTALL)
        text = inner[1] if inner else f"!({site.text})"
        move = Move(site.id, "branch", "flip", 0.0 if inner else 1.0)
        short = " ".join(site.text.split())
        change = f"branch: other way at `{short[:60]}` in {site.function}"
        yield Mutation((Edit(site.path, site.start, site.end, text),), change, (move,), site.rank)
