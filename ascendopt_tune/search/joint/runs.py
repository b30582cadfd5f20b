"""What a run of statements leaves behind for those around it: variables, tensors of queues, ways out.

A run is the steps ``first`` to ``last`` of a block. Functions of the kernel's own that it calls belong to it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Node

from ...sources.cpp import Function, walk
from ..kernel.reading.api import root
from ..kernel.reading.kernel_program import LOOPS, ApiCall, Block, KernelProgram

BY_NUMBER = frozenset(["IBSet", "IBWait", "CrossCoreSetFlag", "CrossCoreWaitFlag"])  # meetings of certain cores
_MEETING = BY_NUMBER | {"SyncAll"}
_FLAGS = {"SetFlag": 1, "set_flag": 1, "WaitFlag": -1, "wait_flag": -1}
_QUEUE = ("EnQue", "DeQue", "AllocTensor", "FreeTensor")
_GIVEN = re.compile(r"\bLocalTensor\s*<[^;{}()]*?>\s*&?\s*(\w+)")
ACQUIRES = re.compile(r"\b(?:AllocTensor|DeQue)\b")
WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Runs:
    kernel: KernelProgram

    def text(self, block: Block, index: int) -> str:
        return self.kernel.text(block.function.path, block.steps[index].node)

    def _borrows(self, block: Block, first: int, last: int) -> bool:
        """Does the run use a tensor of a queue that its function took before, or was given?"""
        f = block.function
        start, end = block.steps[first].node.start_byte, block.steps[last].node.end_byte
        head = self.kernel.text(f.path, f.node).partition("{")[0]
        before = {name for names in _GIVEN.findall(head) for name in WORD.findall(names)}
        outside = (n for n in walk(f.body) if n.type == "init_declarator" and not start <= n.start_byte < end)
        for n in outside:
            if ACQUIRES.search(self.kernel.text(f.path, n)):
                before.update(self._declared(f.path, n))
        return any(not before.isdisjoint(WORD.findall(self.text(block, i))) for i in range(first, last + 1))

    def left_behind(self, block: Block, first: int, last: int, names: bool = True) -> bool:
        """Does the run change what is read elsewhere: by assignments, or (``names``) by what it declares?"""
        path = block.function.path
        nodes = [s.node for s in block.steps[first : last + 1]]
        if any(_leaves(n) for n in nodes):
            return True
        declared = {name for n in nodes for name in self._declared(path, n)}
        called = self.called(block, first, last)
        kept = {name for n in nodes for name in self._assigned(path, n) if name not in declared}
        kept.update(name for f in called for name in self._kept(f))
        if any(not self._is_renewed(name, block, first, last) for name in kept):
            return True
        if any(c.name in _MEETING for c in self.calls(block, first, last)):
            return True
        if not names:
            return False
        top = {name for n in nodes if n.type == "declaration" for name in self._declared(path, n)}
        behind = " ".join(self.text(block, i) for i in range(last + 1, len(block.steps)))
        return bool(top & set(WORD.findall(behind)))

    def _assigned(self, path: str, node: Node) -> Iterator[str]:
        for n in walk(node):
            if n.type == "assignment_expression":
                left = n.child_by_field_name("left")
                yield root(self.kernel.text(path, left).removeprefix("this->")) if left is not None else ""
            elif n.type == "update_expression":
                yield from WORD.findall(self.kernel.text(path, n))

    def _declared(self, path: str, node: Node) -> Iterator[str]:
        for n in walk(node):
            above = n.parent.type if n.parent is not None and n.type == "identifier" else ""
            if above in ("declaration", "init_declarator", "for_range_loop"):
                yield self.kernel.text(path, n)

    def called(self, block: Block, first: int, last: int) -> list[Function]:
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

    def calls(self, block: Block, first: int, last: int) -> list[ApiCall]:
        """The calls of the run and of the kernel's own functions that it calls."""
        start, end = block.steps[first].node.start_byte, block.steps[last].node.end_byte
        path = block.function.path
        calls = [c for c in self.kernel.calls if c.path == path and start <= c.node.start_byte < end]
        for f in self.called(block, first, last):
            calls += self._calls_of[f.path, f.node.start_byte]
        return calls

    def _kept(self, f: Function) -> set[str]:
        """What the function assigns to, but for its own variables."""
        head = self.kernel.text(f.path, f.node).partition("{")[0]
        own = {*self._declared(f.path, f.body), *WORD.findall(head.replace("this->", ""))}
        return set(self._assigned(f.path, f.body)) - own

    def _is_renewed(self, name: str, block: Block, first: int, last: int) -> bool:
        """Does the run set the variable before it reads it, and does nothing else read it?"""
        setting = re.compile(rf"(?:this->)?{re.escape(name)}\s*=(?!=)\s*([^;]*);")
        for i in range(first, last + 1):
            found = setting.fullmatch(self.text(block, i))
            if found is not None and name not in WORD.findall(found[1]):
                break
            if self._mentions(block, i, i, name):
                return False
        else:
            return False
        outside = [f for f in self.kernel.functions if f not in self.called(block, first, last)]
        here = block.function
        texts = [self.kernel.text(f.path, f.node) for f in outside if f.node != here.node]
        start, end = block.steps[first].node.start_byte, block.steps[last].node.end_byte
        data = self.kernel.program.files[here.path].data
        around = data[here.node.start_byte : start] + b" " + data[end : here.node.end_byte]
        return all(name not in WORD.findall(t) for t in (*texts, around.decode("utf-8", "replace")))

    def is_given(self, expression: str, block: Block, first: int, last: int) -> bool:
        """Does the expression mean the same in front of the run as anywhere in it? Calls in it may not."""
        path, nodes = block.function.path, [s.node for s in block.steps[first : last + 1]]
        own = {name for n in nodes for name in (*self._declared(path, n), *self._assigned(path, n))}
        own.update(name for f in self.called(block, first, last) for name in self._kept(f))
        return "(" not in expression and own.isdisjoint(WORD.findall(expression))

    def _mentions(self, block: Block, first: int, last: int, name: str) -> bool:
        texts = [self.text(block, i) for i in range(first, last + 1)]
        texts += [self.kernel.text(f.path, f.node) for f in self.called(block, first, last)]
        return any(name in WORD.findall(t) for t in texts)

    def closed(self, block: Block, first: int, last: int) -> bool:
        """Is as much put into each queue as taken out, and allocated as freed, and each flag as often set as waited
        for, by the run itself?"""
        if self._borrows(block, first, last):
            return False
        sides: dict[str, set[str]] = {name: set() for name in _QUEUE}
        flags: Counter[str] = Counter()
        for c in self.calls(block, first, last):
            if c.name in sides:
                sides[c.name].add(c.receiver.removeprefix("this->"))
            flags[_event(c)] += _FLAGS.get(c.name, 0)
        if any(flags.values()):  # who waits for a flag that a dealt turn doesn't set waits for ever
            return False
        return sides["EnQue"] == sides["DeQue"] and sides["AllocTensor"] == sides["FreeTensor"]


def _event(call: ApiCall) -> str:
    """The pipes of a flag, as they are written; its number may be a variable."""
    return call.template.replace("AscendC::", "") or ", ".join(call.args[:2])


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
