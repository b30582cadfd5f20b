"""Cube tilings: base blocks and steps of a matrix product, changed together, inside of what L1, L0A, L0B and L0C hold.

1. A program that has the numbers of a base block itself (named as TCubeTiling's fields are): all of them at once.
2. A program that lets a tiling class choose: what the class is told before it is asked, its own choice included.

A number of a base block alone is seldom worth an evaluation: fewer columns give more cores work, but only with more
of k at a time do copies stay long and steps few. So blocks are ranked by a rough count of cycles. Its constants are
assumed, and only put proposals in order; the evaluation decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product as every

from tree_sitter import Node

from ...nouns.trial import Move
from ...sources.cpp import Edit, SourceFile, walk
from ..mutation import Mutation
from .context import Context, number
from .slice import EvolvableSite, Template

_SIDE = 16  # rows of a tile, and columns of one of the results
_SUM_BYTES = 4
_IN_UB = 10  # bytes for an element of a block that goes to vector cores: itself, as much beside it, its result
_ROLES = {  # by CANN's names of TCubeTiling's fields
    "m": re.compile(r"base_?m", re.IGNORECASE),
    "n": re.compile(r"base_?n", re.IGNORECASE),
    "k": re.compile(r"base_?k", re.IGNORECASE),
    "step": re.compile(r"step_?k[ab]?", re.IGNORECASE),
    "l1": re.compile(r"l1_?buf\w*|depth_?[ab]1", re.IGNORECASE),
    "l0": re.compile(r"l0_?buf\w*|db_?l0[ab]", re.IGNORECASE),
}
_ROWS = (16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256)
_COLUMNS = (16, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 512)
_DEPTHS, _STEPS = (64, 128, 256, 512, 1024), (1, 2, 4, 8, 16)  # bytes of k in L0; of those in a copy to L1
_OFFERED = 12  # base blocks offered at a time
_PROMISE = 6.0  # of the best one; a single number has at most about 4
# Cycles of a core, assumed: a share's start and end, a packet's way to L1, a step's flags without and with queues, a
# LoadData.
_SHARE, _PACKET, _FLAGS, _STEP, _LOAD = 1500, 300, 120, 350, 12
_ROW, _BYTES = 4, 64  # cycles a row that is copied at least takes, bytes a cycle
_WINDOW, _PART = 512, 52  # bytes of a row of results that leave at once; cycles more where a row has fewer in the end
_MACS = 8192  # products a cycle, times the bytes of an element
_VECTORS = 2  # vector cores beside a cube core
_SHARES = (1, 2, 3, 4, 6, 8, 12, 16)  # of an axis


@dataclass(frozen=True)
class BaseBlock:
    """A base block: ``m``, ``n``, ``k`` in elements, ``step`` of them along k brought to L1 at a time."""

    m: int
    n: int
    k: int
    step: int

    def fits(self, context: Context, l1: int = 2, l0: int = 2) -> bool:
        """Does it fit where it has to be, with so many buffers? (m x k, k x n, m x n; both packets)"""
        size, memory = context.element_bytes, context.cube
        return (
            self.m * self.k * size * l0 <= memory.l0a
            and self.k * self.n * size * l0 <= memory.l0b
            and self.m * self.n * _SUM_BYTES <= memory.l0c
            and (self.m + self.n) * self.k * self.step * size * l1 <= memory.l1
        )

    def cycles(self, context: Context) -> float:
        """About what the longest core takes; for putting blocks in order."""
        p, size = context.product, context.element_bytes
        shares = _ceil(p.count * _ceil(p.m, self.m) * _ceil(p.n, self.n), context.cube.cores)
        steps = _ceil(p.k, self.k)
        packets = _ceil(steps, self.step)
        long = packets * max(_ROW, self.k * self.step * size / _BYTES)
        rows_of_b = p.k * max(_ROW, self.n * size / _BYTES) if p.b_along_n else self.n * long
        copied = self.m * long + rows_of_b
        step = _STEP if context.queues else _FLAGS
        issued = steps * (step + _LOAD * (self.m / _SIDE + self.k * size / 32))
        multiplied = self.m * self.n * p.k * size / _MACS
        row = self.n * context.result_bytes
        out = self.m * (row / _BYTES + (_PART if row % _WINDOW else 0))
        one = max(copied, issued, multiplied) + packets * _PACKET + _SHARE + out
        return copied / packets + shares * one


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def _aligned(length: int) -> int:
    return max(_SIDE, _ceil(length, _SIDE) * _SIDE)


def _blocks(context: Context, l1: int, l0: int, steps: tuple[int, ...]) -> list[BaseBlock]:
    """Every block that fits, the most promising first; of each m x n the best first of all."""
    p, size = context.product, context.element_bytes
    depths = [d // size for d in _DEPTHS]
    rows = [m for m in _ROWS if m <= _aligned(p.m)] or [_SIDE]
    columns = [n for n in _COLUMNS if n <= _aligned(p.n)] or [_SIDE]
    found = [BaseBlock(m, n, k, s) for m, n, k, s in every(rows, columns, depths, steps)]
    found = sorted((b for b in found if b.fits(context, l1, l0)), key=lambda b: (b.cycles(context), -b.m, -b.n, -b.k))
    best = list({(b.m, b.n): b for b in reversed(found)}.values())
    best.sort(key=lambda b: b.cycles(context))
    return [*best[:_OFFERED], *(b for b in found[:_OFFERED] if b not in best)]


def _roles(template: Template) -> dict[str, EvolvableSite]:
    """The numbers of a base block that the program has: role -> site; nothing unless m, n and k are there."""
    out: dict[str, EvolvableSite] = {}
    for site in template.sites:
        for role, name in _ROLES.items():
            if site.kind == "number" and site.value and name.fullmatch(site.name):
                out.setdefault(role, site)
    return out if {"m", "n", "k"} <= out.keys() else {}


def _buffers(roles: Mapping[str, EvolvableSite], role: str) -> int:
    return (roles[role].value or 2) if role in roles else 2


def base_blocks(template: Template, context: Context) -> Iterator[Mutation]:
    """Base block and step of a program that writes them itself, all numbers at once."""
    roles = _roles(template)
    if not roles:
        return
    steps = _STEPS if "step" in roles else (1,)
    for place, b in enumerate(_blocks(context, _buffers(roles, "l1"), _buffers(roles, "l0"), steps)):
        wanted = {"m": b.m, "n": b.n, "k": b.k, "step": b.step}
        changed = {r: v for r, v in wanted.items() if r in roles and roles[r].value != v}
        if not changed:
            continue
        edits = tuple(number(roles[r], v) for r, v in changed.items())
        told = ", ".join(f"{roles[r].name} {roles[r].value} -> {v}" for r, v in changed.items())
        move = Move(f"{roles['m'].path}::base_block", "base_block", "set", _packed(b))
        yield Mutation(edits, f"base block: {told}", (move,), _PROMISE / (1 + 0.15 * place))


def _packed(b: BaseBlock) -> int:
    return ((b.m * 1024 + b.n) * 1024 + b.k) * 32 + b.step


def overfull(template: Template, context: Context) -> Callable[[Mutation], bool]:
    """Would one number's change alone ask more of L1, L0A, L0B or L0C than there is? Asked of mutations."""
    roles = _roles(template)
    by_site = {site.id: role for role, site in roles.items()}
    written = {role: site.value or 1 for role, site in roles.items()}
    p = context.product

    def asks_too_much(mutation: Mutation) -> bool:
        moved = {by_site[m.site]: int(m.value) for m in mutation.moves if m.site in by_site}
        if not moved:
            return False
        v = written | moved
        block = BaseBlock(
            min(v["m"], _aligned(p.m)), min(v["n"], _aligned(p.n)), min(v["k"], _aligned(p.k)), v.get("step", 1)
        )
        return not block.fits(context, v.get("l1", 2), v.get("l0", 2))

    return asks_too_much


# ---- tiling classes ----


@dataclass(frozen=True)
class Asked:
    """Where a tiling class is asked: ``way`` is how its object is written with the dot or arrow behind it."""

    path: str
    function: str
    way: str
    start: int  # of what these rules told it before, directly in front of the statement that asks
    at: int  # of that statement
    told: tuple[tuple[str, str], ...]  # what they told it: setter, arguments
    to_vectors: bool  # blocks of C go to the Unified Buffer
    on_vectors: bool  # vector cores own the objects: the function counts those
    one_core: bool  # its class has no say in how many cores there are, or in their shares


@dataclass(frozen=True)
class _Call:
    """``way`` ``name`` ``(arguments)``: a call of a member of an object that has a name."""

    way: str
    name: str
    arguments: str
    node: Node


def _member_calls(source: SourceFile, root: Node) -> Iterator[_Call]:
    for node in walk(root):
        member = node.child_by_field_name("function") if node.type == "call_expression" else None
        arguments = node.child_by_field_name("arguments")
        if member is None or member.type != "field_expression" or arguments is None:
            continue
        owner, name = member.child_by_field_name("argument"), member.child_by_field_name("field")
        if owner is not None and name is not None and owner.type == "identifier":
            way = source.data[owner.start_byte : name.start_byte].decode("utf-8", "replace")
            yield _Call(way, source.text(name), source.text(arguments)[1:-1], node)


def _asked(template: Template) -> Iterator[Asked]:
    for function in template.program.functions:
        source = template.program.files[function.path]
        calls = list(_member_calls(source, function.body))
        on_vectors = any(c.name == "GetCoreNumAiv" for c in calls)
        for call in calls:
            own = [c for c in calls if c.way == call.way]
            statement = _statement(call.node) if call.name == "GetTiling" else None
            if statement is None or not any(c.name == "SetBType" for c in own):
                continue
            start, told = _told_before(statement, own)
            to_vectors = any(c.name == "SetCType" and re.search(r"\bVECIN\b", c.arguments) for c in own)
            at = statement.start_byte
            one_core = _for_one_core(source.text(function.body.parent or function.body), source, call.way)
            yield Asked(function.path, function.name, call.way, start, at, told, to_vectors, on_vectors, one_core)


def _for_one_core(function: str, source: SourceFile, way: str) -> bool:
    """Whether what ``way`` leads to is declared, in the function or else in its file, as a class of one core's tiling,
    which has neither SetDim nor SetSingleShape."""
    name = re.findall(r"\w+", way)[-1]
    declared = re.compile(rf"\b(MatmulApiTiling|BatchMatmulTiling|MultiCoreMatmulTiling)\b[\s&*]*\b{name}\b")
    classes = declared.findall(function) or declared.findall(source.data.decode("utf-8", "replace"))
    return bool(classes) and "MultiCoreMatmulTiling" not in classes


def _told_before(statement: Node, own: Sequence[_Call]) -> tuple[int, tuple[tuple[str, str], ...]]:
    """The setters directly in front of ``statement``, on its line, and where the first of them starts."""
    told: list[tuple[str, str]] = []
    first = statement
    while (before := first.prev_named_sibling) is not None and before.end_point.row == statement.start_point.row:
        setter = next((c for c in own if c.node.parent == before and c.name.startswith("Set")), None)
        if setter is None:
            break
        told.insert(0, (setter.name, setter.arguments))
        first = before
    return first.start_byte, tuple(told)


def _statement(node: Node) -> Node | None:
    """The statement of a block that contains ``node``; of a condition the whole ``if``, of a loop's nothing."""
    top: Node | None = node
    while top is not None and top.parent is not None and top.parent.type != "compound_statement":
        top = top.parent
    kinds = ("declaration", "expression_statement", "if_statement", "return_statement")
    return top if top is not None and top.type in kinds else None


def _telling(asked: Asked, calls: Mapping[str, str]) -> Edit:
    """``calls``: setter -> arguments; what was told before by other setters stays."""
    code = "".join(f"{asked.way}{setter}({given}); " for setter, given in (dict(asked.told) | dict(calls)).items())
    return Edit(asked.path, asked.start, asked.at, code)


def tiling_class(template: Template, context: Context) -> Iterator[Mutation]:
    """What ``MatmulApiTiling`` or ``MultiCoreMatmulTiling`` is told last: base block, share of a core, order, cores."""
    p = context.product
    for asked in _asked(template):
        cores = context.cube.cores * (_VECTORS if asked.on_vectors else 1)
        site = f"{asked.path}:{asked.function}:{asked.way}"

        def mutation(
            family: str, calls: dict[str, str], value: int, promise: float, asked: Asked = asked, site: str = site
        ) -> Mutation:
            told = ", ".join(f"{setter}({arguments})" for setter, arguments in calls.items())
            move = Move(f"{site}{family}", family, "set", value)
            return Mutation((_telling(asked, calls),), f"tiling class: {told}", (move,), promise)

        yield mutation("base_block", {"SetFixSplit": "-1, -1, -1"}, 0, _PROMISE)
        room = context.ub_bytes // _IN_UB if asked.to_vectors else context.cube.l0c // _SUM_BYTES
        sums = replace(context, result_bytes=_SUM_BYTES) if asked.to_vectors else context
        for place, b in enumerate(b for b in _blocks(sums, 2, 2, (4,)) if b.m * b.n <= room):
            promise = _PROMISE / (1.2 + 0.2 * place)
            yield mutation("base_block", {"SetFixSplit": f"{b.m}, {b.n}, -1"}, _packed(b), promise)
            together = {"SetFixSplit": f"{b.m}, {b.n}, -1", "SetSingleShape": f"{b.m}, {b.n}, -1"}
            if not asked.one_core and p.count * _ceil(p.m, b.m) * _ceil(p.n, b.n) <= cores:
                yield mutation("single_shape", together, _packed(b), 1.2 * promise)
        for m, n in () if asked.one_core else every(_SHARES, (*_SHARES, 24)):
            share_m, share_n = _aligned(_ceil(p.m, m)), _aligned(_ceil(p.n, n))
            if m * n <= cores < 4 * m * n and m * _SIDE <= _aligned(p.m) and n * _SIDE <= _aligned(p.n):
                calls = {"SetSingleShape": f"{share_m}, {share_n}, -1"}
                yield mutation("single_shape", calls, m * 1024 + n, 1.5 * m * n / cores)
        order = ("FIRSTM", "FIRSTN")
        for value, name in enumerate(order):
            calls = {"SetTraverse": f"matmul_tiling::MatrixTraverse::{name}"}
            yield mutation("traverse", calls, value, 0.8)
        for count in () if asked.one_core else sorted({cores, cores // 2, cores // 4} - {0}, reverse=True):
            yield mutation("core_count", {"SetDim": str(count)}, count, 1.0)
