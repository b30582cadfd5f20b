"""A queue's tensor that a method loads and takes itself, the same in each turn, though the queue holds others as well.

The first time what was taken is copied to where it stays (``KeptTensor.Keep``), and read there from then on. Where the
method loads something else in between, which the queue's wait orders too, the queue's calls stay, and only the load is
left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import Edit, Function, walk
from ...reading.api import COPY, root
from ...reading.kernel_program import ApiCall, KernelProgram
from ...reading.steady import Steady
from .kept_tensors import QUEUED, fills_the_same, member_of

_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Taken:
    """``alloc``, ``load``, ``given`` (EnQue), ``taken`` (DeQue), ``freed``: the statements, in order."""

    function: Function
    alloc: Node
    load: ApiCall
    given: ApiCall
    taken: Node
    freed: ApiCall
    name: str  # of what is taken
    kind: str  # of an element
    alone: bool  # nothing else is loaded in between

    @property
    def statement(self) -> Node:
        found = self.load.statement
        assert found is not None
        return found

    @property
    def title(self) -> str:
        return self.load.name

    def edits(self, kernel: KernelProgram, member: str) -> Iterator[Edit]:
        path, condition = self.function.path, f"if ({member}.anew) {{ "
        indent = kernel.indent(path, self.alloc)
        wants = f"{member}.Wants(({self.load.args[2]}) * sizeof({self.kind}));\n{indent}"
        given = [self.statement, self.given.statement] if self.alone else [self.statement]
        yield from (e for s in given if s is not None for e in _around(path, s, condition))
        place = f"AscendC::LocalTensor<{self.kind}> {member}At = {member}.Get<{self.kind}>();"
        if self.alone:
            yield kernel.replace(path, self.alloc, wants + _split(kernel, path, self.alloc, condition, self.kind, ""))
            free = f" {kernel.text(path, self.freed.node)};"
            behind = f" {member}.Keep({self.name});{free}"
            taken = _split(kernel, path, self.taken, condition, self.kind, behind)
            yield kernel.replace(path, self.taken, f"{taken}\n{indent}{place}")
            assert self.freed.statement is not None
            yield kernel.delete(path, self.freed.statement)
        else:
            yield Edit(path, self.alloc.start_byte, self.alloc.start_byte, wants)
            yield kernel.after(path, self.taken, f"{condition}{member}.Keep({self.name}); }}\n{indent}{place}")
        for node in walk(self.function.body):
            mine = node.type == "identifier" and kernel.text(path, node) == self.name
            if mine and self.taken.end_byte <= node.start_byte and not _is_in(node, self.freed.node):
                yield kernel.replace(path, node, f"{member}At")
        yield from member_of(kernel, self.function, member)


def _is_in(node: Node, outer: Node) -> bool:
    return outer.start_byte <= node.start_byte < outer.end_byte


def _around(path: str, statement: Node, condition: str) -> tuple[Edit, Edit]:
    return (
        Edit(path, statement.start_byte, statement.start_byte, condition),
        Edit(path, statement.end_byte, statement.end_byte, " }"),
    )


def _split(kernel: KernelProgram, path: str, s: Node, condition: str, kind: str, behind: str) -> str:
    """A statement that asks a queue, under the condition; what it declares is declared in any case."""
    text = kernel.text(path, s).rstrip("; ")
    name, _, value = (part.strip() for part in text.partition("="))
    name = _WORD.findall(name)[-1]
    declared = f"AscendC::LocalTensor<{kind}> {name}; " if s.type == "declaration" else ""
    return f"{declared}{condition}{name} = {value};{behind} }}"


def found(kernel: KernelProgram, facts: Steady, tensors: set[str]) -> Iterator[Taken]:
    """In methods that are repeated, of what is loaded from global memory the same in all turns."""
    for f in kernel.functions:
        if kernel.class_node(f) is None or not kernel.repeated(f, f.body):
            continue
        for name, values in facts.made(f).items():
            for node, value in values:
                asked = QUEUED.match(value.strip()) if "AllocTensor" in value else None
                one = _taken(facts, tensors, f, (name, node, asked[1], asked[2])) if asked is not None else None
                if one is not None:
                    yield one


def _taken(facts: Steady, tensors: set[str], f: Function, asked: tuple[str, Node, str, str]) -> Taken | None:
    """``asked``: who asks a queue for room, where, which queue, and for elements of which type."""
    name, alloc, queue, kind = asked
    calls = [c for c in facts.kernel.calls_of(f) if c.node.start_byte > alloc.start_byte]
    given = next((c for c in calls if c.name == "EnQue" and c.receiver == queue and c.args == (name,)), None)
    hands = _hands_over(facts, f, given, queue) if given is not None else None
    if given is None or hands is None:
        return None
    taken, y = hands
    before = [c for c in calls if c.node.start_byte < given.node.start_byte]
    load = _only([c for c in before if name in map(root, c.args)])
    freed = _only([c for c in calls if c.name == "FreeTensor" and c.args == (y,) and c.receiver == queue])
    if load is None or freed is None or not _is_load(facts, tensors, load, name):
        return None
    alone = not any(root(a) in tensors for c in before if c != load for a in c.args[1:2])
    found = Taken(f, alloc, load, given, taken, freed, y, kind, alone)
    return found if _may_be_kept(facts, found, calls) else None


def _may_be_kept(facts: Steady, found: Taken, calls: list[ApiCall]) -> bool:
    """Is it done in one block, how much known from its start on, and what was taken only read?"""
    if found.alloc.type not in ("declaration", "expression_statement") or not _in_order(
        [found.alloc, found.load.statement, found.given.statement, found.taken, found.freed.statement]
    ):
        return False
    words = set(_WORD.findall(found.load.args[2]))
    made = facts.made(found.function)
    if any(n.start_byte > found.alloc.start_byte for w in words for n, _ in made.get(w, ())):
        return False
    if facts.views(found.function, found.name):
        return False
    between = [c for c in calls if found.taken.end_byte < c.node.start_byte < found.freed.node.start_byte]
    return _only_read(facts, found.function, between, found.name)


def _only(calls: list[ApiCall]) -> ApiCall | None:
    return calls[0] if len(calls) == 1 else None


def _in_order(statements: list[Node | None]) -> bool:
    """Are they statements of one block, one behind the other?"""
    known = [s for s in statements if s is not None]
    same = len(known) == len(statements) and all(s.parent == known[0].parent for s in known)
    return same and known == sorted(known, key=lambda s: s.start_byte)


def _hands_over(facts: Steady, f: Function, given: ApiCall, queue: str) -> tuple[Node, str] | None:
    """Where the queue is asked next, and who gets what was given; None where it is asked for room."""
    made = (
        (n, v, name)
        for name, values in facts.made(f).items()
        for n, v in values
        if n.start_byte > given.node.start_byte and (m := QUEUED.match(v.strip())) and m[1] == queue
    )
    first = min(made, key=lambda e: e[0].start_byte, default=None)
    return (first[0], first[2]) if first is not None and "DeQue" in first[1] else None


def _is_load(facts: Steady, tensors: set[str], call: ApiCall, name: str) -> bool:
    """Does it load as many elements as its third argument says, the same in all turns?"""
    if len(call.args) != 3 or call.args[0] != name or root(call.args[1]) not in tensors or call.args[2][0] == "{":
        return False
    kernel, last = facts.kernel, re.escape(call.args[2])
    if re.search(rf"Params\b[^;()=]*\b{last}\b", kernel.text(call.path, call.function.node)):
        return False
    return (call.name == "DataCopy" or call.name in facts.own) and fills_the_same(facts, tensors, call)


def _only_read(facts: Steady, f: Function, calls: list[ApiCall], name: str) -> bool:
    """Do these calls, by the vector unit, read the tensor and nothing else?"""
    uses = [c for c in calls if name in map(root, c.args) or root(c.receiver) == name]
    others = (c for c in uses if c.receiver or c.name in COPY or facts.written(c, name))
    values = (c for c in uses if ".GetValue" in facts.kernel.text(f.path, c.node))
    return bool(uses) and next(others, None) is None and next(values, None) is None
