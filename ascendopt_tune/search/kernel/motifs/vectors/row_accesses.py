"""What two parts of a row's turn touch, and whether all rows may go through the first part before the second begins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from .....sources.cpp import walk
from ...reading.affine import AffinePlace, affine, at
from ...reading.api import ACCUMULATING, COPY, VECTOR, root
from ...reading.counted import CountedLoop
from ...reading.kernel_program import ApiCall, KernelProgram

_SET = re.compile(r"\b(\w+)\s*=\s*((?:this->)?[A-Za-z_][^;=]*)$", re.DOTALL)
_REFUSED = ("AllocTensor", "EnQue", "DeQue", "FreeTensor", "SyncAll", *COPY)
_ASIDE = (
    *("SetFlag", "WaitFlag", "set_flag", "wait_flag", "PipeBarrier", "pipe_barrier", "FetchEventID", "GetTPipePtr"),
    *("Get", "ReinterpretCast", "SetDeqScale"),
)
_LEAVING = ("return_statement", "break_statement", "continue_statement", "goto_statement")


class Entangled(Exception):
    """The parts do something that isn't understood, or need each other's order."""


@dataclass
class Part:
    """Tensors by name: ``first``: is the first thing done to one a sure write? ``rows``: the places of its rows, None
    for any other operand; ``shared_writes``: is something written that is no row of its own?
    """

    first: dict[str, bool] = field(default_factory=dict)
    rows: dict[str, set[AffinePlace | None]] = field(default_factory=dict)
    writes: set[str] = field(default_factory=set)
    perhaps: set[str] = field(default_factory=set)
    shared_writes: bool = False

    def by_row(self, name: str) -> bool:
        return None not in self.rows.get(name, set())


class Accesses:
    """The tensors of a loop over rows."""

    def __init__(self, kernel: KernelProgram, loop: CountedLoop, tensors: set[str]) -> None:
        self.kernel, self.loop = kernel, loop
        self.tensors = tensors
        self.path = loop.block.function.path
        self.names: dict[str, str] = {}  # numbers and views that a turn declares, and what they are
        self._is: dict[str, str] = {}  # tensors that are others', or lie in a buffer
        inside = {s.node.start_byte for s in loop.block.steps}
        for node in walk(loop.block.function.body):
            found = _SET.search(kernel.text(self.path, node)) if node.type == "init_declarator" else None
            if found is None or node.parent is None or re.search(r"GetValue|EventID", found[2]):
                continue
            if node.parent.start_byte in inside:
                self.names[found[1]] = found[2].strip()
            if found[1] in tensors or root(found[2]) in tensors or re.search(r"\.\s*(?:template )?Get<", found[2]):
                self.tensors.add(found[1])
                self._is[found[1]] = root(found[2])

    def written_out(self, operand: str) -> str:
        """An operand with the turn's views replaced by what they are of."""
        name = root(operand)
        if name in self.names and name in self._is:
            return at(operand, name, self.names[name]).replace("(", "", 1).replace(")", "", 1)
        return operand

    def canonical(self, operand: str) -> str:
        name = root(self.written_out(operand))
        for _ in range(4):
            name = self._is.get(name, name)
        return name

    def of(self, nodes: Sequence[Node], skip: Sequence[Node] = ()) -> Part:
        """What statements do to tensors. Raises Entangled for queues, copies and jumps."""
        part = Part()
        self._statements(part, nodes, {n.start_byte for n in skip})
        return part

    def _statements(self, part: Part, nodes: Sequence[Node], left_out: set[int]) -> None:
        for statement in nodes:
            if statement.type in ("compound_statement", "else_clause"):
                self._statements(part, statement.named_children, left_out)
                continue
            if statement.type == "if_statement":
                self._branches(part, statement, left_out)
                continue
            sure = statement.type in ("expression_statement", "declaration")
            for n in walk(statement):
                if n.type in _LEAVING:
                    raise Entangled
                if n.type == "call_expression" and n.start_byte not in left_out:
                    self._call(part, self.kernel.call_at(self.loop.block.function, n), sure)

    def _branches(self, part: Part, statement: Node, left_out: set[int]) -> None:
        """One of some branches: what is written first there is as good as written if nobody reads it behind them."""
        found = []
        for field_name in ("condition", "consequence", "alternative"):
            branch = statement.child_by_field_name(field_name)
            found.append(Part())
            self._statements(found[-1], [branch] if branch is not None else [], left_out)
        for name in {n for one in found for n in one.first}:
            if name not in part.first:
                part.first[name] = all(one.first.get(name, True) for one in found)
                if not all(name in one.first for one in found[1:]):
                    part.perhaps.add(name)
            elif name in part.perhaps and not all(one.first.get(name, True) for one in found):
                part.first[name] = False
        for one in found:
            part.writes |= one.writes
            part.shared_writes |= one.shared_writes
            part.perhaps |= one.perhaps
            for name, places in one.rows.items():
                part.rows.setdefault(name, set()).update(places)

    def _call(self, part: Part, call: ApiCall, sure: bool) -> None:
        if call.name in _REFUSED:
            raise Entangled
        if call.name in ("GetValue", "SetValue") and call.args:
            self._touch(
                part, f"{call.receiver}[{call.args[0]}]", call.name == "GetValue", call.name == "SetValue", sure
            )
            return
        if call.name in _ASIDE:
            return
        vector = call.name in VECTOR
        for i in (*range(1, len(call.args)), 0) if call.args else ():
            if root(call.args[i]) not in self.tensors or ".GetValue" in call.args[i]:
                continue
            written = not vector or i == 0 or (i == 2 and call.name.startswith("Reduce"))
            read = not vector or not written or call.name in ACCUMULATING
            self._touch(part, call.args[i], read, written, sure)

    def _touch(self, part: Part, operand: str, read: bool, written: bool, sure: bool) -> None:
        name = self.canonical(operand)
        place = affine(self.written_out(operand), self.loop.name, "0", self.names)
        part.first.setdefault(name, written and not read and sure)
        if name in part.perhaps and read:
            part.first[name] = False
        elif written and sure:
            part.perhaps.discard(name)
        part.rows.setdefault(name, set()).add(place)
        if written:
            part.writes.add(name)
            part.shared_writes |= place is None

    def check(self, before: Part, behind: Part, data: str, place: AffinePlace | None, results: Sequence[str]) -> None:
        """Raises Entangled where a row of the second part needs what another row of the first one writes, or the other
        way round. ``data`` is reduced between them, and written over; so are ``results``.
        """
        reduced = self.canonical(data)
        own = {self.canonical(r) for r in results if root(r) in self.tensors} - {reduced}
        for name in before.writes | own:
            rows = before.rows.get(name, set()) | behind.rows.get(name, set())
            apart = None not in rows and len({p.step for p in rows if p is not None}) == 1 and name not in own
            if not apart and name in behind.first and not behind.first[name]:
                raise Entangled
        if reduced in behind.first and not behind.first[reduced]:
            raise Entangled
        for name in behind.writes:
            if name in before.first and not before.first[name] and not before.by_row(name):
                raise Entangled
            if name == reduced and place is None and name not in before.writes:
                raise Entangled
