"""Places in global memory that go on by the same step in each turn of a loop, read through calls and variables.

1. What variables are set to between a loop's beginning and a place in it is known where nothing sets them twice, under
   a condition, or from memory.
2. Variables that the loop moves on by the same in each turn go on like its counter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tree_sitter import Node

from ....sources.cpp import Function, walk
from .affine import growth, indexed, resolved
from .api import COPY, root
from .counted import CountedLoop, counted_loops
from .declared import element_types
from .kernel_program import ApiCall, KernelProgram, loops_around
from .steady import Steady, Turns

_ON = re.compile(r"(\w+)\s*\+=\s*([^;]+);", re.DOTALL)
_CALLS = re.compile(r"\b(?!static_cast\b|sizeof\b|u?int\d*(?:_t)?\b)[A-Za-z_]\w*(?:<[\w:]+>)?\s*\(")
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class EvenTurn:
    """A loop in which a statement asks for a place that goes on: how many turns are left, and how far each goes."""

    function: Function
    loop: Node
    statement: Node
    left: str
    step: str


class GoingOn:
    """What goes on in the loops of one kernel.

    ``whatever_is_stored``: also turns that store something that goes on by the same step.
    """

    def __init__(self, kernel: KernelProgram, facts: Steady, whatever_is_stored: bool = False) -> None:
        self.kernel, self.facts, self.types = kernel, facts, element_types(kernel)
        self.whatever_is_stored = whatever_is_stored
        self.loops = {(n.block.function.path, n.node.start_byte): n for n in counted_loops(kernel)}

    def turn(self, f: Function, statement: Node, index: str) -> EvenTurn | None:
        """The innermost loop that asks for a place that goes on evenly; None where it doesn't.

        Where that loop has one turn only, when the kernel runs, it is the loop around it, if the place goes on there.
        """
        around = [self.loops.get((f.path, n.start_byte)) for n in loops_around(statement, f)[:2]]
        inner = around[0] if around else None
        if inner is None:
            return None
        turn = self._turn(f, statement, inner, index, {}, self.facts.turns_of(f, statement))
        outer = around[1] if len(around) > 1 and inner.first.isalnum() else None
        all_turns, first = self.facts.all_turns_of(f, statement), {inner.name: inner.first}
        whole = self._turn(f, statement, outer, index, first, all_turns) if outer is not None else None
        if whole is None or outer is None or inner.name in _WORD.findall(f"{whole.step} {outer.bound}"):
            return turn
        left, step = (turn.left, turn.step) if turn is not None else ("1", whole.step)
        one = f"static_cast<int64_t>({inner.bound}) == {inner.first} + 1"
        step = whole.step if step == whole.step else f"{one} ? {whole.step} : {step}"
        return replace(whole, left=f"{one} ? {whole.left} : {left}", step=step)

    def _turn(
        self,
        f: Function,
        statement: Node,
        loop: CountedLoop,
        index: str,
        first: Mapping[str, str],
        turns: Turns | None,
    ) -> EvenTurn | None:
        """The turn of one loop; ``first``: the counter of one inside of it, and where that begins."""
        if turns is None or loop.step != "1":
            return None
        names = self.values(f, loop.block.node, statement)
        on = self._goes_on(loop)
        if any(v is None and k not in on and k in _WORD.findall(index) for k, v in names.items()):
            return None
        text = resolved(index, {k: v for k, v in known(names).items() if k not in on})
        text = resolved(text, first)
        step = self._step(loop, text, on)
        if step is None or step == "0" or any(n in turns.assigned for n in _WORD.findall(step)):
            return None
        unknown = (set(_WORD.findall(text)) - {loop.name, *on}) & turns.assigned
        if unknown or (not self.whatever_is_stored and self._stored_alike(loop, step, on)):
            return None
        left = f"static_cast<int64_t>({loop.bound}) - static_cast<int64_t>({loop.name})"
        return EvenTurn(f, loop.node, statement, left, step)

    def _goes_on(self, loop: CountedLoop) -> dict[str, str]:
        """Variables that the loop moves on by the same in each turn, and by how much."""
        path, out = loop.block.function.path, dict[str, str]()
        for s in loop.block.steps:
            found = _ON.fullmatch(self.kernel.text(path, s.node))
            if found is not None and not _CALLS.search(found[2]):
                out[found[1]] = found[2].strip()
        often = [name for name, _ in self._all_sets(loop.block.function, loop.block.node)]
        return {name: by for name, by in out.items() if often.count(name) == 1}

    def _step(self, loop: CountedLoop, text: str, on: Mapping[str, str]) -> str | None:
        return growth(text, {loop.name: "1", **on})

    def _stored_alike(self, loop: CountedLoop, step: str, on: Mapping[str, str]) -> bool:
        """Does the turn store something that goes on by the same step? Then turns of several rows do more."""
        f, body = loop.block.function, loop.block.node
        for g, inside in self.bodies(f, loop.node):
            for c, index in self.stores(g, inside):
                names = self.values(g, inside, c.node)
                text = resolved(index, known(names))
                inner = [
                    resolved(resolved(text, dict(zip(g.parameters, called.args, strict=False))), known(outer))
                    for called in (self.facts.callers(g) if g != f else ())
                    if body.start_byte <= called.node.start_byte < body.end_byte
                    for outer in [self.values(f, body, called.node)]
                ]
                grown = [self._step(loop, t, on) for t in inner or [text]]
                alike = any(grows is not None and bare(grows) == bare(step) for grows in grown)
                if alike and len(loops_around(c.node, g)) < 2:
                    return True
        return False

    def stores(self, f: Function, body: Node) -> Iterator[tuple[ApiCall, str]]:
        """Calls that copy to global memory, or are given where to, and the place there."""
        for c in self.kernel.calls_of(f):
            if not c.args or not body.start_byte <= c.node.start_byte < body.end_byte:
                continue
            tensor, index = indexed(c.args[0])
            copies = c.name in COPY or c.name in self.facts.own
            if copies and index is not None and root(tensor.removeprefix("this->")) in self.types:
                yield c, index

    def bodies(self, f: Function, loop: Node) -> Iterator[tuple[Function, Node]]:
        """What a turn does: the loop's body, and those of the functions it calls."""
        body = loop.child_by_field_name("body")
        if body is not None:
            yield f, body
        for c in self.kernel.calls_of(f):
            if loop.start_byte <= c.node.start_byte < loop.end_byte:
                yield from ((g, g.body) for g in self.facts.own.get(c.name, ()))

    def values(self, f: Function, block: Node, place: Node) -> dict[str, str | None]:
        """What variables are set to between the beginning of a block and a place in it; None for what isn't known."""
        names: dict[str, str | None] = {}
        while True:
            for n in block.named_children:
                if n.start_byte >= place.start_byte:
                    break
                for name, value in self._sets(f, n):
                    if value is None or name in names or _CALLS.search(value):
                        names[name] = None
                    else:
                        lost = any(v is None and k in _WORD.findall(value) for k, v in names.items())
                        names[name] = None if lost else resolved(value, known(names))
            inner = next((n for n in block.named_children if n.start_byte <= place.start_byte < n.end_byte), None)
            if inner is None or inner == place:
                return names
            body = inner.child_by_field_name("body")
            block = body if body is not None and body.start_byte <= place.start_byte < body.end_byte else inner

    def _sets(self, f: Function, statement: Node) -> Iterator[tuple[str, str | None]]:
        """Names that a statement sets and the block knows, and to what; None where it does so under a condition."""
        plain = statement.type in ("declaration", "expression_statement")
        declared = [n for n in walk(statement) if n.type == "init_declarator"]
        inside = set() if plain else {self.kernel.text(f.path, n.named_children[0]) for n in declared}
        for name, value in self._all_sets(f, statement):
            if name not in inside:
                yield name, value if plain else None

    def _all_sets(self, f: Function, statement: Node) -> Iterator[tuple[str, str | None]]:
        for n in walk(statement):
            if n.type == "init_declarator":
                value = n.child_by_field_name("value")
                name = self.kernel.text(f.path, n.named_children[0])
                yield name, self.kernel.text(f.path, value) if value is not None else None
            elif n.type == "assignment_expression":
                left, right = n.child_by_field_name("left"), n.child_by_field_name("right")
                name = self.kernel.text(f.path, left).removeprefix("this->") if left is not None else ""
                operator = n.child_by_field_name("operator")
                plain = right is not None and operator is not None and operator.type == "="
                if name.isidentifier():
                    yield name, self.kernel.text(f.path, right) if plain and right is not None else None
            elif n.type == "update_expression":
                yield from ((w, None) for w in _WORD.findall(self.kernel.text(f.path, n)))


def known(names: Mapping[str, str | None]) -> dict[str, str]:
    """Those of the names whose values are known."""
    return {name: value for name, value in names.items() if value is not None}


def bare(text: str) -> str:
    """An expression without casts, brackets and spaces, to compare it."""
    return re.sub(r"static_cast<[\w:]+>|this->|\(u?int\d+_t\)|[\s()]", "", text)
