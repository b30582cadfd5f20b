"""Template synthesis: mark the evolvable region of a tiling program.

The region is what the data flow (flow.py) says decides the launch. Every piece of it that a proposer may change is an
``EvolvableSite`` with a purpose, found by structure: where a value comes from, which operator takes it, which sink it
reaches. Names (tile, buffer, align, core, ...) only raise or lower a site's rank.

1. Births: where the core count and the UB size enter the program.
2. Numbers: literals in the slice and constants of one literal.
3. Definitions: local quantities computed from UB size or core count (tile lengths, rows a loop, loops).
4. Conditions: branches that decide a value of the slice (a mode, a split, a tiling key).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from ...sources.cpp import Function, SourceProgram, program_of, walk
from .flow import Definition, Flow, Key, analyse
from .purposes import CAP, SCALE, NumberUse, number_purpose, rank_of
from .usage import integer, usage


@dataclass(frozen=True)
class EvolvableSite:
    """One place of the tiling program that a proposer may edit.

    ``start:end`` is a byte range of the file's UTF-8 text. ``name`` is the constant or the variable the site decides.
    ``id`` stays the same while other sites are edited, so that outcomes can be remembered by it. ``value`` is the
    number, where the site is one. ``reach``: kinds of sinks it feeds (``block_dim``, ``tiling_key``, ``field``,
    ``workspace``). ``rank``: prior worth of an evaluation spent here.
    """

    id: str
    kind: str  # "number", "expression" (may be wrapped), "statement" (code may follow it), "condition"
    purpose: str
    path: str
    start: int
    end: int
    text: str
    name: str
    function: str
    reach: frozenset[str]
    rank: float
    value: int | None = None
    insert_at: int | None = None  # where a statement about ``name`` may be inserted, for definitions and births


@dataclass(frozen=True, eq=False)
class Template:
    """The evolvable region of one tiling program: its sites, best rank first, and the flow they come from.

    Equal to itself alone, so that what rules derive from it can be kept with it.
    """

    program: SourceProgram
    flow: Flow
    sites: tuple[EvolvableSite, ...]

    def of_purpose(self, *purposes: str) -> tuple[EvolvableSite, ...]:
        return tuple(s for s in self.sites if s.purpose in purposes)


class _Sites:
    """Collects sites and gives each its id: file, function, name, and a running number."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.out: list[EvolvableSite] = []
        self._count: Counter[tuple[str, ...]] = Counter()

    def add(
        self, kind: str, purpose: str, path: str, node: Node, name: str, function: Function | None, reach: set[str],
        value: int | None = None, insert_at: int | None = None, weight: float = 1.0, to: Node | None = None,
    ) -> None:  # fmt: skip
        if reach == {"workspace"}:
            purpose = "workspace"
        rank = rank_of(purpose, name, kind) * weight
        owner = function.name if function else ""
        identity = (path, owner, purpose, name)
        number = self._count[identity]
        self._count[identity] += 1
        end = to.end_byte if to is not None else node.end_byte
        text = self.flow.program.files[path].data[node.start_byte : end].decode("utf-8", "replace")
        site_id = f"{path}:{owner}:{purpose}:{name}#{number}"
        self.out.append(
            EvolvableSite(
                site_id,
                kind,
                purpose,
                path,
                node.start_byte,
                end,
                text,
                name,
                owner,
                frozenset(reach),
                round(rank, 4),
                value,
                insert_at,
            )
        )


def statement_of(node: Node) -> Node | None:
    """The statement of a block that contains ``node``, or None (e.g. in a loop head or a bare if branch)."""
    top: Node | None = node
    while top is not None and top.parent is not None:
        if top.parent.type == "compound_statement":
            return top if top.type in ("declaration", "expression_statement") else None
        top = top.parent
    return None


def _core_keys(flow: Flow) -> set[Key]:
    """Variables whose value is, as it is, the block dim."""
    keys: set[Key] = set()
    for sink in flow.sinks:
        if sink.kind == "block_dim":
            target = flow.target(sink.path, sink.value, sink.function)
            if target is not None:
                keys.add(target)
    return keys


def _numbers(flow: Flow, sites: _Sites) -> None:
    core_keys, text = _core_keys(flow), flow.program.text
    for key in list(flow.definitions):
        reach = flow.reach.get(key, set())
        if not reach:
            continue
        labels: set[str] = set()
        for d in flow.definitions[key]:
            if d.kind in ("argument", "alias", "filled"):
                continue
            whole = integer(text(d.path, d.value))
            if whole is not None:
                labels = labels or {x for path, node, f in flow.uses.get(key, ()) for x in usage(flow, path, node, f)}
                own = labels if d.kind in ("constant", "define") else {"direct", *labels}
                purpose = number_purpose(NumberUse(key[1], whole, frozenset(own), frozenset(reach), key in core_keys))
                if purpose is not None and _counts(flow, d):
                    sites.add("number", purpose, d.path, d.value, key[1], d.function, reach, whole)
            elif d.kind != "define":
                _literals(flow, sites, d.path, d.value, key, d.function, reach, key in core_keys)
    for sink in flow.sinks:
        _literals(flow, sites, sink.path, sink.value, ("", sink.name), sink.function, {sink.kind}, False)
    for path, condition, function in _slice_conditions(flow):
        _literals(flow, sites, path, condition, ("", "condition"), function, {"field"}, False)


def _counts(flow: Flow, d: Definition) -> bool:
    """No loop counter, and no element size chosen by dtype (``case DT_FLOAT: size = 4``)."""
    if d.statement.parent is not None and d.statement.parent.type == "for_statement":
        return False
    by_dtype = any(
        "dtype" in flow.expression_tags(d.path, c, d.function) for c in flow.conditions(d.statement, d.function)
    )
    value = integer(flow.program.text(d.path, d.value)) or 0
    return not (by_dtype and value <= 8 and d.kind == "assign")


def _literals(
    flow: Flow, sites: _Sites, path: str, node: Node, key: Key, function: Function | None, reach: set[str], core: bool,
) -> None:  # fmt: skip
    name = key[1]
    if CAP.fullmatch(flow.program.text(path, node)) or SCALE.fullmatch(flow.program.text(path, node)):
        return
    text = flow.program.text
    rounding = {first.start_byte: second for n in walk(node) for first, second in _rounding(flow, path, n)}
    second_halves = {second.start_byte for second in rounding.values()}
    for n in walk(node):
        value = integer(text(path, n)) if n.type == "number_literal" else None
        if not value or n.start_byte in second_halves:
            continue
        if n.start_byte in rounding and value >= 8:
            sites.add("number", "alignment", path, n, name, function, reach, value, to=rounding[n.start_byte])
            continue
        labels = set(usage(flow, path, n, function))
        if "direct" in labels:  # it becomes the variable: what is done with that says what it is
            labels |= {x for q, use, f in flow.uses.get(key, ()) for x in usage(flow, q, use, f)}
        if labels & {"adds", "subtracts"} and value == 1:
            continue
        purpose = number_purpose(NumberUse(name, value, frozenset(labels), frozenset(reach), core))
        if purpose is not None:
            sites.add("number", purpose, path, n, name, function, reach, value, weight=0.8)


def _rounding(flow: Flow, path: str, node: Node) -> Iterator[tuple[Node, Node]]:
    """The two literals of ``x / 256 * 256``, which are one decision."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    while left is not None and left.type == "parenthesized_expression":
        left = next(iter(left.named_children), None)
    divisor = left.child_by_field_name("right") if left is not None and left.type == "binary_expression" else None
    if node.type != "binary_expression" or right is None or divisor is None or left is None:
        return
    signs = [flow.program.text(path, n.child_by_field_name("operator") or n) for n in (left, node)]
    same = flow.program.text(path, divisor) == flow.program.text(path, right)
    if signs == ["/", "*"] and same and right.type == "number_literal":
        yield divisor, right


def _births(flow: Flow, sites: _Sites) -> None:
    """Where the core count and the UB size come in; those of a helper that only prepares them (no sink) rank lower."""
    seen: set[tuple[str, int]] = set()
    with_sinks = {flow.scope(s.function) for s in flow.sinks}
    # What a callee may write to can't be wrapped.
    taken = {(d.path, d.value.start_byte) for ds in flow.definitions.values() for d in ds if d.kind == "alias"}
    for key in list(flow.definitions):
        for d in flow.definitions[key]:
            place = (d.path, d.value.start_byte)
            if not flow.reach.get(key) or d.function is None or place in seen:
                continue
            if d.kind == "argument" and place in taken:
                continue
            if _birth(flow, sites, key, d, 1.0 if flow.scope(d.function) in with_sinks else 0.3):
                seen.add(place)

    for sink in flow.sinks:
        tags = flow.expression_tags(sink.path, sink.value, sink.function)
        if sink.kind == "block_dim" and tags == {"core"} and _access(sink.value) and flow._facts(sink.path, sink.value):
            sites.add("expression", "core_count", sink.path, sink.value, sink.name, sink.function, {"block_dim"})


def _birth(flow: Flow, sites: _Sites, key: Key, d: Definition, weight: float) -> bool:
    """Adds the site of a definition that asks for the core count or the UB size; False if it asks for neither."""
    reach = flow.reach.get(key, set())
    statement = statement_of(d.statement)
    after = statement.end_byte if statement is not None else None
    if d.kind == "filled" and "ub" in flow._facts(d.path, d.value) and after is not None:
        sites.add("statement", "ub_size", d.path, d.value, _lvalue(flow, d), d.function, reach, None, after, weight)
        return True
    tags = flow.expression_tags(d.path, d.value, d.function)
    if d.kind not in ("init", "assign", "argument") or tags not in ({"core"}, {"ub"}) or not _enters(flow, d):
        return False
    text = flow.program.text(d.path, statement) if statement is not None else ""
    constant = re.match(r"\s*(static\s+)?(const|constexpr)\b", text)
    insert = after if d.kind != "argument" and not constant else None
    purpose = "core_count" if tags == {"core"} else "ub_size"
    sites.add("expression", purpose, d.path, d.value, key[1], d.function, reach, None, insert, weight)
    return True


def _enters(flow: Flow, d: Definition) -> bool:
    """Does the value come straight from a query or from a member (the compile info), rather than from a local?"""
    written = flow.program.text(d.path, d.value)
    if CAP.fullmatch(written) or SCALE.fullmatch(written):
        return True
    return _access(d.value) and (bool(flow._facts(d.path, d.value)) or d.value.type == "field_expression")


def _lvalue(flow: Flow, d: Definition) -> str:
    """The text of the variable a query fills: its last argument, without an address operator."""
    arguments = d.value.child_by_field_name("arguments")
    last = arguments.named_children[-1] if arguments is not None and arguments.named_children else d.value
    return flow.program.text(d.path, last).lstrip("&").strip()


def _access(node: Node) -> bool:
    """A plain read: an identifier, a member, a query, or a conversion of one."""
    return not any(n.type in ("binary_expression", "conditional_expression", "number_literal") for n in walk(node))


def _definitions(flow: Flow, sites: _Sites) -> None:
    for key in list(flow.definitions):
        reach = flow.reach.get(key, set())
        if not key[0] or not reach & {"block_dim", "field"}:
            continue
        for d in flow.definitions[key]:
            statement = statement_of(d.statement)
            if d.kind not in ("init", "assign") or statement is None or d.function is None:
                continue
            if d.kind == "assign" and flow.program.text(d.path, d.statement).split("=")[0].rstrip().endswith(
                tuple("+-*/%&|<>!")
            ):
                continue
            tags = flow.expression_tags(d.path, d.value, d.function)
            if not tags & {"ub", "core"} or "float" in flow.program.text(d.path, statement):
                continue
            decides = any(
                (
                    n.type == "binary_expression"
                    and flow.program.text(d.path, n.child_by_field_name("operator") or n) == "/"
                )
                or n.type in ("call_expression", "conditional_expression")
                for n in walk(d.value)
            )
            if not decides or (_access(d.value) and tags in ({"core"}, {"ub"})):
                continue
            constant = re.match(r"\s*(static\s+)?(const|constexpr)\b", flow.program.text(d.path, statement))
            at = None if constant else statement.end_byte
            sites.add("expression", "quantity", d.path, d.value, key[1], d.function, reach, None, at)


def _slice_conditions(flow: Flow) -> Iterator[tuple[str, Node, Function]]:
    """Conditions of the if statements whose branches decide a value of the slice or set the tiling key."""
    deciding: dict[tuple[str, int], set[int]] = defaultdict(set)
    for key in list(flow.definitions):
        if flow.reach.get(key, set()) & {"block_dim", "field", "tiling_key"}:
            for d in flow.definitions[key]:
                if d.function is not None and d.kind in ("init", "assign", "field"):
                    for c in flow.conditions(d.statement, d.function):
                        deciding[d.path, c.start_byte].add(d.statement.start_byte)
    for sink in flow.sinks:
        for c in flow.conditions(sink.value, sink.function):
            deciding[sink.path, c.start_byte].add(sink.value.start_byte)
    for function in flow.program.functions:
        for node in walk(function.body):
            if node.type == "if_statement":
                condition = node.child_by_field_name("condition")
                if condition is not None and (function.path, condition.start_byte) in deciding:
                    yield function.path, condition, function


def _conditions(flow: Flow, sites: _Sites) -> None:
    for path, condition, function in _slice_conditions(flow):
        inner = next((c for c in condition.named_children if c.type != "comment"), None)
        if inner is None or inner.type in ("declaration", "init_statement"):
            continue
        tags = flow.expression_tags(path, inner, function)
        # A test of the dtype alone is a fact about the call, not a decision.
        if (tags and tags <= {"dtype"}) or re.search(r"nullptr|NULL|GRAPH_", flow.program.text(path, inner)):
            continue
        # In a loop over cores or tensors it keeps the books more often than it decides a mode.
        weight = (1.0 if tags else 0.4) * (0.3 if _in_loop(condition, function) else 1.0)
        sites.add("condition", "branch", path, inner, "condition", function, {"field"}, weight=weight)
    for key, found in list(flow.definitions.items()):
        reach = flow.reach.get(key, set()) & {"block_dim", "field", "tiling_key"}
        for d in found if reach else ():
            if d.kind not in ("init", "assign", "return", "field"):
                continue
            for node in walk(d.value):
                choice = _choice(flow, d.path, node)
                if choice is None:
                    continue
                tags = flow.expression_tags(d.path, choice, d.function)
                if not tags or tags <= {"dtype"} or re.search(r"nullptr|NULL", flow.program.text(d.path, choice)):
                    continue
                sites.add("condition", "branch", d.path, choice, key[1] or "choice", d.function, reach, weight=0.7)


def _in_loop(node: Node, function: Function) -> bool:
    top = node.parent
    while top is not None and top != function.node:
        if top.type in ("for_statement", "while_statement", "do_statement", "for_range_loop"):
            return True
        top = top.parent
    return False


def _choice(flow: Flow, path: str, node: Node) -> Node | None:
    """The condition of ``c ? a : b``; None where that is a smaller or larger of two, or a guard against zero."""
    if node.type != "conditional_expression":
        return None
    condition = node.child_by_field_name("condition")
    while condition is not None and condition.type == "parenthesized_expression":
        condition = next(iter(condition.named_children), None)
    if condition is None:
        return None
    arms = {flow.program.text(path, n) for n in node.named_children[1:]}
    compared = [flow.program.text(path, n) for n in condition.named_children]
    if condition.type == "binary_expression" and (arms & set(compared) or "0" in compared):
        return None
    return condition


@lru_cache(maxsize=128)
def _synthesize(files: tuple[tuple[str, str], ...]) -> Template:
    program = program_of(dict(files))
    flow = analyse(program)
    sites = _Sites(flow)
    _births(flow, sites)
    _numbers(flow, sites)
    _definitions(flow, sites)
    _conditions(flow, sites)
    unique: dict[tuple[str, int, int], EvolvableSite] = {}
    for s in sites.out:
        other = unique.get((s.path, s.start, s.end))
        if other is None or s.rank > other.rank:
            unique[s.path, s.start, s.end] = s
    ordered = sorted(unique.values(), key=lambda s: (-s.rank, s.path, s.start))
    return Template(program, flow, tuple(ordered))


def synthesize(files: Mapping[str, str]) -> Template:
    """The template of the tiling program ``files`` (path -> text); no sites if it sets no block dim or tiling field."""
    return _synthesize(tuple(sorted(files.items())))
