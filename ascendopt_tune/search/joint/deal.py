"""A kernel's half of becoming one of more blocks: a block's turns are dealt to a group of them, one after the other.

Every block of a group walks through the whole control flow of the one block that it was, so what loops carry along
(offsets, counts) stays right without being understood. What is dealt are *units*: runs of statements that write global
memory and leave nothing behind for the statements around them, which are

* no assignment to a variable that lives longer, in the run or in functions called from it, but to one that each run
  sets before it reads it and that is read nowhere else;
* for each queue as much put in as taken out, and as much allocated as freed, and each flag as often set as waited for;
* no meeting of cores: those all blocks of the group go to.

Where the innermost run is no unit, the one around its loop, or around the calls of its function, may be. Two cores'
writes of the scalar unit into one cache line get lost: where a turn writes one element, and which one is known when it
begins, turns are dealt by the lines these lie in. Other writes of the scalar unit stay with a group's first block,
calls of their function as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Node

from ...sources.cpp import Edit, Function, walk
from ..kernel.reading.api import COPY, root
from ..kernel.reading.kernel_program import LOOPS, ApiCall, Block, KernelProgram, where
from .runs import ACQUIRES, BY_NUMBER, WORD, Runs

_ASKED = ("GetBlockIdx", "get_block_idx", "GetBlockNum", "get_block_num")
_FILLS = frozenset(["InitGlobalMemory", "InitOutput", "Fill"])  # write global memory by themselves
_TENSOR = re.compile(r"\bGlobalTensor\s*<[^;{}()]*?>\s*&?\s*([\w\s,]+)[;,)=]")
_STATEMENTS = ("expression_statement", "declaration", "comment", "if_statement", *LOOPS)
_DEEPEST = 8  # calls above one another
_COUNTER = "turn"
_LINE = 64  # bytes of a line of the scalar unit's data cache (doc: programming guide, data cache line)


@dataclass(frozen=True)
class _Unit:
    """Steps ``first`` to ``last`` of a block; ``dealt`` turn by turn, or else left to the group's first.

    ``line``: the cache line that a turn writes, as an expression; where it isn't empty, turns are dealt by that.
    """

    block: Block
    first: int
    last: int
    dealt: bool
    line: str = ""

    @property
    def start(self) -> int:
        return self.block.steps[self.first].node.start_byte

    @property
    def end(self) -> int:
        return self.block.steps[self.last].node.end_byte


def dealt(kernel: KernelProgram, group: int, scalar: bool = False) -> tuple[Edit, ...]:
    """The edits that deal the turns of each block to ``group`` blocks; none where that can't be done.

    What the kernel asks about blocks itself gets the answers it got before there were groups.

    Args:
        kernel: as it is.
        group: blocks that share what was one block's.
        scalar: the scalar unit writes all of the results, so that its turns have to be dealt.
    """
    return tuple(_Deal(kernel, group, scalar).edits())


@dataclass
class _Deal:
    kernel: KernelProgram
    group: int
    scalar: bool

    def edits(self) -> Iterator[Edit]:
        kernel = self.kernel
        outer = self._outer()
        turns = [u for u in outer if u.dealt]
        if not any(kernel.repeated(u.block.function, u.block.node) for u in turns if u.line or not self.scalar):
            return
        functions = {where(u.block.function): u.block.function for u in turns}
        holders = dict.fromkeys(self._holder(f) for f in functions.values())
        texts = [kernel.text(path, n) for path, n in (*((f.path, f.node) for f in functions.values()), *holders)]
        if any(_COUNTER in WORD.findall(text) for text in texts):
            return
        for path, node in holders:
            yield Edit(path, node.start_byte + 1, node.start_byte + 1, f" uint32_t {_COUNTER} = 0;")
        member = f"AscendC::GetBlockIdx() % {self.group}"
        for u in outer:
            path = u.block.function.path
            turn = u.line or (f"{_COUNTER}++" if u.dealt else "")
            condition = f"{turn} % {self.group} == {member}" if turn else f"{member} == 0"
            yield Edit(path, u.start, u.start, f"if ({condition}) {{ ")
            yield Edit(path, u.end, u.end, " }")
        for path, node in self._questions():
            yield kernel.replace(path, node, f"({kernel.text(path, node)} / {self.group})")

    def _questions(self) -> Iterator[tuple[str, Node]]:
        """The calls that ask about blocks: in functions, and where a member begins with the answer."""
        seen = {(call.path, call.node.start_byte): call.node for call in self.kernel.named(*_ASKED)}
        for path, declaration, _ in self.kernel.fields:
            for node in walk(declaration):
                asked = node.child_by_field_name("function") if node.type == "call_expression" else None
                if asked is not None and self.kernel.text(path, asked).rpartition("::")[2] in _ASKED:
                    seen.setdefault((path, node.start_byte), node)
        yield from ((path, node) for (path, _), node in seen.items())

    def _outer(self) -> list[_Unit]:
        """What no other unit holds; none where a call goes by a block's number, or a write can't be dealt."""
        if any(c.name in BY_NUMBER or (c.name == "SyncAll" and c.args) for c in self.kernel.calls):
            return []
        units: list[_Unit] = []
        for call in self._written:
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
        return where(function) in map(where, self._runs.called(outer.block, outer.first, outer.last))

    @cached_property
    def _runs(self) -> Runs:
        return Runs(self.kernel)

    @cached_property
    def _meets(self) -> bool:
        return any(c.name == "SyncAll" for c in self.kernel.calls)

    def _reads_its_own(self, write: ApiCall, units: list[_Unit]) -> bool:
        """Is what the call writes read in the same turn alone, as where an operator works in place, or never?"""
        written = root(write.args[0].removeprefix("this->")) if write.args else ""
        reads = [c for c in self.kernel.calls if c.name in COPY and len(c.args) > 1]
        its_own = [c for c in reads if root(c.args[1].removeprefix("this->")) == written]
        return all(call in self._runs.calls(u.block, u.first, u.last) for call in its_own for u in units)

    # -- what writes global memory -------------------------------------------------------------------------------------

    @cached_property
    def _tensors(self) -> set[str]:
        """Names of GlobalTensors: members, variables and parameters."""
        texts = (s.data.decode("utf-8", "replace") for s in self.kernel.program.files.values())
        return {name for text in texts for names in _TENSOR.findall(text) for name in WORD.findall(names)}

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
        if scalar and (by_lines := [u for block, _ in self._places(function, node) if (u := self._lines(block))]):
            return by_lines[-1:]  # the outermost: what leads to the value is dealt with it
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
        if place is None or self._runs.left_behind(place[0], place[1], place[1]):
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

    # -- what the scalar unit writes, by cache lines ------------------------------------------------------------------

    def _lines(self, block: Block) -> _Unit | None:
        """The whole block, where all that it writes is one element of a tensor, the same one wherever it does."""
        last = len(block.steps) - 1
        if last < 0 or not self.kernel.repeated(block.function, block.node):
            return None
        calls = self._runs.calls(block, 0, last)
        written = {(c.receiver, *c.args[:1]) if c.name == "SetValue" else () for c in self._written if c in calls}
        element = written.pop() if len(written) == 1 else ()
        if not element or not element[0].removeprefix("this->").isidentifier():
            return None
        reads = [c for c in self.kernel.named("GetValue") if c.receiver == element[0]]
        if any(c.args != element[1:] for c in reads):  # of what another turn wrote
            return None
        if not self._runs.is_given(element[1], block, 0, last) or self._runs.left_behind(block, 0, last):
            return None
        if not self._runs.closed(block, 0, last):
            return None
        address = f"reinterpret_cast<uint64_t>({element[0]}.GetPhyAddr({element[1]}))"
        return _Unit(block, 0, last, dealt=True, line=f"{address} / {_LINE}")

    @cached_property
    def _written(self) -> list[ApiCall]:
        return list(self._writes())

    # -- runs ----------------------------------------------------------------------------------------------------------

    def _run(self, block: Block, index: int) -> _Unit | None:
        """The longest run around the step that is a unit."""
        for alone in ((), (*LOOPS, "if_statement"), _STATEMENTS):
            first = last = index
            while first > 0 and self._may_join(block, first - 1, alone):
                first -= 1
            while last + 1 < len(block.steps) and self._may_join(block, last + 1, alone):
                last += 1
            while first < index and not ACQUIRES.search(self._runs.text(block, first)):
                if block.steps[first].node.type not in ("declaration", "comment"):
                    break
                first += 1
            if not self._runs.left_behind(block, first, last) and self._runs.closed(block, first, last):
                return _Unit(block, first, last, dealt=True)
        return None

    def _may_join(self, block: Block, index: int, alone: tuple[str, ...]) -> bool:
        """May the step be part of a run? Of the kinds ``alone`` only what leaves nothing behind by itself."""
        kind = block.steps[index].node.type
        if kind not in _STATEMENTS:
            return False
        return kind not in alone or not self._runs.left_behind(block, index, index, names=False)
