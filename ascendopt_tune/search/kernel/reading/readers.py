"""Who reads what an instruction writes, up to where it is written again: the names that stand for it there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

from tree_sitter import Node

from ....sources.cpp import walk
from .api import ACCUMULATING, root
from .kernel_program import LOOPS, ApiCall, flat, siblings
from .steady import Steady

_PART = re.compile(r"\[")


class _Is(Enum):
    THERE = 0  # the tensor holds what was written
    GONE = 1
    PERHAPS = 2  # it depends on a condition


class Unclear(Exception):
    """Somebody does with the tensor what isn't understood."""


class Readers:
    """The places behind a statement that read ``target``, which it writes."""

    def __init__(self, facts: Steady, fill: ApiCall, target: str) -> None:
        self.facts, self.fill, self.target, self.name = facts, fill, flat(target), root(target)
        self.whole = target == self.name
        self.found: list[Node] = []
        self._replacing = True
        self._gone_if: set[str] = set()  # conditions under which it is written again
        self._same: set[str] = set()  # those under which the statement runs
        assert fill.statement is not None
        behind = [s for s in siblings(fill.statement) if s.start_byte > fill.statement.start_byte]
        state = self._scan(behind, _Is.THERE)
        self._beyond(fill.statement, state)

    def _beyond(self, statement: Node, state: _Is) -> None:
        """Outside of the statement's block only those read what it wrote that ask for the same condition."""
        self._replacing = False
        block, f = statement.parent, self.fill.function
        while block is not None and block != f.body and state is not _Is.GONE:
            if any(self.name in self._declared(n) for n in block.named_children):
                return
            outer = block
            while outer.parent is not None and outer.parent.type != "compound_statement" and outer != f.node:
                outer = outer.parent
            if outer == f.node or outer.parent is None:
                return
            self._same |= self._asked(outer, block)
            state = self._scan([s for s in siblings(outer) if s.start_byte > outer.start_byte], _Is.PERHAPS)
            block = outer.parent

    def _asked(self, branching: Node, block: Node) -> set[str]:
        """The condition under which the block runs, if it is that of a branch."""
        condition = branching.child_by_field_name("condition") if branching.type == "if_statement" else None
        first = branching.child_by_field_name("consequence")
        return {flat(self._text(condition))} if condition is not None and first == block else set()

    def _declared(self, node: Node) -> str:
        return self._text(node) if node.type == "declaration" else ""

    def _text(self, node: Node) -> str:
        return self.facts.kernel.text(self.fill.path, node)

    # -- statements ----------------------------------------------------------------------------------------------------

    def _scan(self, statements: Sequence[Node], state: _Is) -> _Is:
        for s in statements:
            if state is _Is.GONE:
                break
            if self._mentions(s):
                state = self._step(s, state)
        return state

    def _mentions(self, node: Node) -> bool:
        return re.search(rf"\b{self.name}\b", self._text(node)) is not None

    def _step(self, s: Node, state: _Is) -> _Is:
        call = self.facts.kernel.call_of(self.fill.function, s)
        if call is not None:
            return self._call(call, state)
        if s.type in ("compound_statement", "else_clause"):
            return self._scan(s.named_children, state)
        if s.type == "if_statement":
            return self._branches(s, state)
        if s.type in LOOPS:
            return self._loop(s, state)
        if s.type in ("declaration", "expression_statement", "return_statement") and self._only_values(s):
            self._read(s, state)
            return state
        raise Unclear

    def _only_values(self, s: Node) -> bool:
        """Is each mention a value that is read of it?"""
        return not re.search(rf"\b{self.name}\b(?!\s*\.\s*GetValue)", self._text(s))

    def _branches(self, s: Node, state: _Is) -> _Is:
        condition = s.child_by_field_name("condition")
        if condition is not None and self._mentions(condition):
            self._read(condition, state)
        asked = flat(self._text(condition)) if condition is not None else ""
        if state is _Is.PERHAPS and asked in self._gone_if:
            return state  # there it is what was written under the same condition
        if not self._replacing and asked in self._same:
            return self._under_the_same(s, asked)
        ends = [
            self._scan([branch] if branch.type != "else_clause" else branch.named_children, state)
            for branch in (s.child_by_field_name("consequence"), s.child_by_field_name("alternative"))
            if branch is not None
        ]
        if len(ends) == 2 and set(ends) == {_Is.GONE}:
            return _Is.GONE
        if ends and ends[0] is _Is.GONE:
            self._gone_if.add(asked)
        return _Is.PERHAPS if any(e is not _Is.THERE for e in ends) else state

    def _under_the_same(self, s: Node, asked: str) -> _Is:
        branch = s.child_by_field_name("consequence")
        self._replacing = True
        end = self._scan([branch], _Is.THERE) if branch is not None else _Is.THERE
        self._replacing = False
        if end is not _Is.THERE:
            self._gone_if.add(asked)
        return _Is.PERHAPS

    def _loop(self, s: Node, state: _Is) -> _Is:
        body, known = s.child_by_field_name("body"), len(self.found)
        end = self._scan([body], state) if body is not None else state
        if end is state:
            return state
        if len(self.found) > known:  # the next turn reads something else
            raise Unclear
        return _Is.PERHAPS

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _call(self, call: ApiCall, state: _Is) -> _Is:
        if call.receiver:
            if call.name == "FreeTensor":
                return _Is.GONE
            if call.name != "GetValue":
                raise Unclear
        end = state
        for i, (text, node) in enumerate(zip(call.args, call.arguments, strict=True)):
            if not self._mentions(node):
                continue
            if root(text) == self.name and self._is_written(call, i):
                end = self._written(call, text, end)
            else:
                self._read(node, state)
        return end

    def _is_written(self, call: ApiCall, i: int) -> bool:
        if call.name not in self.facts.own:
            return i == 0 or (i == 2 and call.name.startswith("Reduce"))
        named = [g.parameters[i] for g in self.facts.own[call.name] if i < len(g.parameters)]
        return any(c for g in self.facts.own[call.name] for p in named for c in self.facts.writers(g, p))

    def _written(self, call: ApiCall, text: str, state: _Is) -> _Is:
        if call.name in ACCUMULATING:
            raise Unclear
        rest = text.removeprefix("this->")[len(self.name) :]
        if flat(text) == self.target or not _PART.search(rest):  # all of it, as whatever type
            return _Is.GONE
        return _Is.PERHAPS if self.whole else state

    def _read(self, node: Node, state: _Is) -> None:
        """The mentions in an expression that stand for the target; other parts of the tensor are none."""
        for n in walk(node):
            if (n.type == "identifier" if self.whole else n.type not in ("identifier", "ERROR")) and flat(
                self._text(n)
            ) == self.target:
                if state is _Is.PERHAPS or not self._replacing:
                    raise Unclear
                if not any(m.start_byte <= n.start_byte < m.end_byte for m in self.found):
                    self.found.append(n)
