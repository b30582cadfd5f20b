"""A kernel's half of becoming one of more blocks: a block's turns are dealt to a group of them, one after the other.

Every block of a group walks through the whole control flow of the one block that it was, so what loops carry along
(offsets, counts) stays right without being understood. What is dealt are *units*: runs of statements that write global
memory and leave nothing behind for the statements around them, which are

* no assignment to a variable that lives longer, in the run or in functions called from it;
* for each queue as much put in as taken out, and as much allocated as freed;
* no meeting of cores: those all blocks of the group go to.

Where the innermost run is no unit, the one around its loop, or around the calls of its function, may be. Writes of the
scalar unit stay with a group's first block, calls of their function as a whole: two cores' writes into one cache line
get lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Node

from ...sources.cpp import Edit, Function, walk
from ..kernel.motifs.api import COPY, root
from ..kernel.motifs.kernel_program import LOOPS, ApiCall, Block, KernelProgram, where

_QUEUE = ("EnQue", "DeQue", "AllocTensor", "FreeTensor")
_BY_NUMBER = frozenset(["IBSet", "IBWait", "CrossCoreSetFlag", "CrossCoreWaitFlag"])  # meetings of certain cores
_MEETING = _BY_NUMBER | {"SyncAll"}
_ASKED = ("GetBlockIdx", "get_block_idx", "GetBlockNum", "get_block_num")
_FILLS = frozenset(["InitGlobalMemory", "InitOutput", "Fill"])  # write global memory by themselves
_TENSOR = re.compile(r"\bGlobalTensor\s*<[^;{}()]*?>\s*&?\s*([\w\s,]+)[;,)=]")
_GIVEN = re.compile(r"\bLocalTensor\s*<[^;{}()]*?>\s*&?\s*(\w+)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_ACQUIRES = re.compile(r"\b(?:AllocTensor|DeQue)\b")
_STATEMENTS = ("expression_statement", "declaration", "comment", "if_statement", *LOOPS)
_DEEPEST = 8  # calls above one another
_COUNTER = "turn"


@dataclass(frozen=True)
class _Unit:
    """Steps ``first`` to ``last`` of a block; ``dealt`` turn by turn, or else left to the group's first."""

    block: Block
    first: int
    last: int
    dealt: bool

    @property
    def start(self) -> int:
        return self.block.steps[self.first].node.start_byte

    @property
    def end(self) -> int:
        return self.block.steps[self.last].node.end_byte


def dealt(kernel: KernelProgram, group: int) -> tuple[Edit, ...]:
    """The edits that deal the turns of each block to ``group`` blocks; none where that can't be done.

    What the kernel asks about blocks itself gets the answers it got before there were groups.
    """
    return tuple(_Deal(kernel, group).edits())


@dataclass
class _Deal:
    kernel: KernelProgram
    group: int

    def edits(self) -> Iterator[Edit]:
        kernel = self.kernel
        outer = self._outer()
        turns = [u for u in outer if u.dealt]
        if not any(kernel.repeated(u.block.function, u.block.node) for u in turns):
            return
        functions = {where(u.block.function): u.block.function for u in turns}
        holders = dict.fromkeys(self._holder(f) for f in functions.values())
        texts = [kernel.text(path, n) for path, n in (*((f.path, f.node) for f in functions.values()), *holders)]
        if any(_COUNTER in _WORD.findall(text) for text in texts):
            return
        for path, node in holders:
            yield Edit(path, node.start_byte + 1, node.start_byte + 1, f" uint32_t {_COUNTER} = 0;")
        member = f"AscendC::GetBlockIdx() % {self.group}"
        for u in outer:
            path = u.block.function.path
            condition = f"{_COUNTER}++ % {self.group} == {member}" if u.dealt else f"{member} == 0"
            yield Edit(path, u.start, u.start, f"if ({condition}) {{ ")
            yield Edit(path, u.end, u.end, " }")
        for call in kernel.named(*_ASKED):
            yield kernel.replace(call.path, call.node, f"({kernel.text(call.path, call.node)} / {self.group})")

    def _outer(self) -> list[_Unit]:
        """What no other unit holds; none where a call goes by a block's number, or a write can't be dealt."""
        if any(c.name in _BY_NUMBER or (c.name == "SyncAll" and c.args) for c in self.kernel.calls):
            return []
        units: list[_Unit] = []
        for call in self._writes():
            found = self._units(call.function, call.node, call.name not in COPY)
            if found is None or not (self._meets or self._reads_its_own(call, found)):
                return []
            units += found
        return [u for u in dict.fromkeys(units) if not any(self._holds(o, u) for o in units if o != u)]

    def _holder(self, f: Function) -> tuple[str, Node]:
        """What the count of turns is declared in: the class of a method, as functions may be called once a turn."""
        found = self.kernel.class_node(f)
        body = found[1].child_by_field_name("body") if found is not None else None
        return (found[0], body) if found is not None and body is not None else (f.path, f.body)

    def _holds(self, outer: _Unit, inner: _Unit) -> bool:
        """Is the inner unit a part of the outer one, or of a function that is called there?"""
        function = inner.block.function
        if outer.block.function.path == function.path and outer.start <= inner.start and inner.end <= outer.end:
            return True
        return where(function) in map(where, self._called(outer.block, outer.first, outer.last))

    @cached_property
    def _meets(self) -> bool:
        return any(c.name == "SyncAll" for c in self.kernel.calls)

    def _reads_its_own(self, write: ApiCall, units: list[_Unit]) -> bool:
        """Is what the call writes read in the same turn alone, as where an operator works in place, or never?"""
        written = root(write.args[0].removeprefix("this->")) if write.args else ""
        reads = [c for c in self.kernel.calls if c.name in COPY and len(c.args) > 1]
        its_own = [c for c in reads if root(c.args[1].removeprefix("this->")) == written]
        return all(call in self._calls(u.block, u.first, u.last) for call in its_own for u in units)

    # -- what writes global memory -------------------------------------------------------------------------------------

    @cached_property
    def _tensors(self) -> set[str]:
        """Names of GlobalTensors: members, variables and parameters."""
        texts = (s.data.decode("utf-8", "replace") for s in self.kernel.program.files.values())
        return {name for text in texts for names in _TENSOR.findall(text) for name in _WORD.findall(names)}

    def _writes(self) -> Iterator[ApiCall]:
        for call in self.kernel.calls:
            target = call.args[0].removeprefix("this->") if call.args else ""
            if call.name == "SetValue":
                target = call.receiver.removeprefix("this->")
            if call.name in COPY | _FILLS | {"SetValue"} and root(target) in self._tensors:
                yield call

    # -- from a write to its units -------------------------------------------------------------------------------------

    def _units(self, function: Function, node: Node, scalar: bool, depth: int = 0) -> list[_Unit] | None:
        """The innermost unit around the node in its function, else those around each call of the function."""
        for block, index in self._places(function, node) if not scalar else ():
            unit = self._run(block, index)
            if unit is not None:
                return [unit]
        callers = [c for c in self.kernel.calls if c.name == function.name and self._may_call(c, function)]
        if not callers or depth == _DEEPEST:
            return None
        out: list[_Unit] = []
        for caller in callers:
            found = self._alone(caller) if scalar else None
            found = found or self._units(caller.function, caller.node, scalar, depth + 1)
            if found is None:
                return None
            out += found
        return out

    def _alone(self, call: ApiCall) -> list[_Unit] | None:
        """The statement that is the call, left to the group's first; None where that would leave something behind."""
        place = next(self._places(call.function, call.node), None)
        if place is None or self._left_behind(place[0], place[1], place[1]):
            return None
        return [_Unit(place[0], place[1], place[1], dealt=False)]

    def _may_call(self, call: ApiCall, callee: Function) -> bool:
        """A method's callers are of its own class, or have an object of it."""
        caller, own = call.function, self.kernel.class_of(callee)
        if caller.node == callee.node or not own or self.kernel.class_of(caller) == own:
            return caller.node != callee.node
        if self.kernel.class_of(caller):
            return False
        data = self.kernel.program.files[call.path].data
        before = data[caller.body.start_byte : call.node.start_byte].decode("utf-8", "replace")
        made = re.findall(rf"\b(\w+)\s*(?:<[^;{{}}]*>)?\s+{re.escape(call.receiver)}\s*[;({{]", before)
        return not made or made[-1] == own

    def _places(self, function: Function, node: Node) -> Iterator[tuple[Block, int]]:
        """(block, step) that hold the node, the innermost block first."""
        for block in reversed(self.kernel.blocks):
            if block.function.node == function.node and block.node.start_byte <= node.start_byte < block.node.end_byte:
                for index, step in enumerate(block.steps):
                    if step.node.start_byte <= node.start_byte < step.node.end_byte:
                        yield block, index

    # -- runs ----------------------------------------------------------------------------------------------------------

    def _run(self, block: Block, index: int) -> _Unit | None:
        """The longest run around the step that is a unit."""
        for alone in ((), (*LOOPS, "if_statement"), _STATEMENTS):
            first = last = index
            while first > 0 and self._may_join(block, first - 1, alone):
                first -= 1
            while last + 1 < len(block.steps) and self._may_join(block, last + 1, alone):
                last += 1
            while first < index and not _ACQUIRES.search(self._text(block, first)):
                if block.steps[first].node.type not in ("declaration", "comment"):
                    break
                first += 1
            if not self._left_behind(block, first, last) and self._closed(block, first, last):
                return _Unit(block, first, last, dealt=True)
        return None

    def _may_join(self, block: Block, index: int, alone: tuple[str, ...]) -> bool:
        """May the step be part of a run? Of the kinds ``alone`` only what leaves nothing behind by itself."""
        kind = block.steps[index].node.type
        if kind not in _STATEMENTS:
            return False
        return kind not in alone or not self._left_behind(block, index, index, names=False)

    def _text(self, block: Block, index: int) -> str:
        return self.kernel.text(block.function.path, block.steps[index].node)

    def _borrows(self, block: Block, first: int, last: int) -> bool:
        """Does the run use a tensor of a queue that its function took before, or was given?"""
        f = block.function
        start, end = block.steps[first].node.start_byte, block.steps[last].node.end_byte
        head = self.kernel.text(f.path, f.node).partition("{")[0]
        before = {name for names in _GIVEN.findall(head) for name in _WORD.findall(names)}
        outside = (n for n in walk(f.body) if n.type == "init_declarator" and not start <= n.start_byte < end)
        for n in outside:
            if _ACQUIRES.search(self.kernel.text(f.path, n)):
                before.update(self._declared(f.path, n))
        return any(not before.isdisjoint(_WORD.findall(self._text(block, i))) for i in range(first, last + 1))

    def _left_behind(self, block: Block, first: int, last: int, names: bool = True) -> bool:
        """Does the run change what is read elsewhere: by assignments, or (``names``) by what it declares?"""
        path = block.function.path
        nodes = [s.node for s in block.steps[first : last + 1]]
        if any(_leaves(n) for n in nodes):
            return True
        declared = {name for n in nodes for name in self._declared(path, n)}
        if any(name not in declared for n in nodes for name in self._assigned(path, n)):
            return True
        called = self._called(block, first, last)
        if any(self._keeps(f) for f in called) or any(c.name in _MEETING for c in self._calls(block, first, last)):
            return True
        if not names:
            return False
        top = {name for n in nodes if n.type == "declaration" for name in self._declared(path, n)}
        behind = " ".join(self._text(block, i) for i in range(last + 1, len(block.steps)))
        return bool(top & set(_WORD.findall(behind)))

    def _assigned(self, path: str, node: Node) -> Iterator[str]:
        for n in walk(node):
            if n.type == "assignment_expression":
                left = n.child_by_field_name("left")
                yield root(self.kernel.text(path, left).removeprefix("this->")) if left is not None else ""
            elif n.type == "update_expression":
                yield from _WORD.findall(self.kernel.text(path, n))

    def _declared(self, path: str, node: Node) -> Iterator[str]:
        for n in walk(node):
            above = n.parent.type if n.parent is not None and n.type == "identifier" else ""
            if above in ("declaration", "init_declarator", "for_range_loop"):
                yield self.kernel.text(path, n)

    def _called(self, block: Block, first: int, last: int) -> list[Function]:
        """The kernel's own functions that the run calls, also those called by them."""
        start, end = block.steps[first].node.start_byte, block.steps[last].node.end_byte
        path = block.function.path
        pending = [c for c in self.kernel.calls if c.path == path and start <= c.node.start_byte < end]
        out: dict[tuple[str, int], Function] = {}
        while pending:
            call = pending.pop()
            for f in self._own.get(call.name, ()):
                key = (f.path, f.node.start_byte)
                if key not in out and self.kernel.class_of(f) in ("", self.kernel.class_of(block.function)):
                    out[key] = f
                    pending += self._calls_of[key]
        return list(out.values())

    @cached_property
    def _own(self) -> dict[str, list[Function]]:
        out: dict[str, list[Function]] = {}
        for f in self.kernel.functions:
            out.setdefault(f.name, []).append(f)
        return out

    @cached_property
    def _calls_of(self) -> dict[tuple[str, int], list[ApiCall]]:
        out: dict[tuple[str, int], list[ApiCall]] = {(f.path, f.node.start_byte): [] for f in self.kernel.functions}
        for c in self.kernel.calls:
            out[c.function.path, c.function.node.start_byte].append(c)
        return out

    def _calls(self, block: Block, first: int, last: int) -> list[ApiCall]:
        """The calls of the run and of the kernel's own functions that it calls."""
        start, end = block.steps[first].node.start_byte, block.steps[last].node.end_byte
        path = block.function.path
        calls = [c for c in self.kernel.calls if c.path == path and start <= c.node.start_byte < end]
        for f in self._called(block, first, last):
            calls += self._calls_of[f.path, f.node.start_byte]
        return calls

    def _keeps(self, f: Function) -> bool:
        """Does the function assign to anything but its own variables?"""
        head = self.kernel.text(f.path, f.node).partition("{")[0]
        own = {*self._declared(f.path, f.body), *_WORD.findall(head.replace("this->", ""))}
        return any(name not in own for name in self._assigned(f.path, f.body))

    def _closed(self, block: Block, first: int, last: int) -> bool:
        """Is as much put into each queue as taken out, and allocated as freed, by the run itself?"""
        if self._borrows(block, first, last):
            return False
        sides: dict[str, set[str]] = {name: set() for name in _QUEUE}
        for c in self._calls(block, first, last):
            if c.name in sides:
                sides[c.name].add(c.receiver.removeprefix("this->"))
        return sides["EnQue"] == sides["DeQue"] and sides["AllocTensor"] == sides["FreeTensor"]


def _leaves(node: Node) -> bool:
    """Is there a way out of the function, or out of a loop around, in the statement?"""
    for n in walk(node):
        if n.type in ("return_statement", "goto_statement"):
            return True
        if n.type in ("break_statement", "continue_statement") and not _inside(n, node):
            return True
    return False


def _inside(node: Node, top: Node) -> bool:
    """Is the node in a loop or a switch that is part of ``top``?"""
    parent: Node | None = node
    while parent is not None and parent.start_byte >= top.start_byte:
        if parent.type in (*LOOPS, "switch_statement"):
            return True
        if parent == top:
            return False
        parent = parent.parent
    return False
