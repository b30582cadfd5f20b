"""What code does to buffers that are made by hand (TBuf), step by step, with calls of own functions followed.

1. A tensor is *units* of buffers: ``x = buf.Get<T>()`` is the unit ``buf``, ``y = x[n]`` is ``buf@y``. Tensors of
   queues are units of no buffer, tensors in global memory are ``gm:name``. Names that a call hands on keep their units.
2. ``Trace`` lists steps in the order of the text: loads, stores, instructions, flags, barriers. Both sides of a choice
   count. A step knows the loops around it.
3. What is read before the code itself wrote it was there before: ``Trace.from_before``.

Raises UnclearTrace where nobody can follow it: a copy of unknown tensors, a buffer's length, cores that meet.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tree_sitter import Node

from ....sources.cpp import Function, walk
from .api import ACCUMULATING, COPY, is_barrier
from .classes import families, title_of
from .classes import members as members_of
from .declared import global_tensors
from .kernel_program import LOOPS, ApiCall, KernelProgram

_WORD = re.compile(r"[A-Za-z_]\w*")
_BUFFER = re.compile(r"(?:AscendC::)?TBuf\s*<[^<>]*>")
_TENSOR = re.compile(r"(?:const\s+)?(?:AscendC::)?LocalTensor\s*<.*>", re.DOTALL)
_OF = re.compile(r"(?:\w+::)*(\w+)\s*(?:<[^()]*>)?\s*::\s*\w+")  # the class in front of a method's name
_MADE = re.compile(r"\b(?:AllocTensor|DeQue)\s*<")
_PART = re.compile(r"\bGetWithOffset\b|\[")
_ALIASES = ("Get", "GetWithOffset", "ReinterpretCast", "AllocTensor", "DeQue", "EnQue", "FreeTensor")
_IGNORED = ("GetPhyAddr", "SetSize", "SetGlobalBuffer", "InitBuffer", "SetShapeInfo", "SetL2CacheHint")
_LENGTHS = ("GetSize", "GetBufLen")
_MEETS = ("SyncAll", "IBSet", "IBWait", "CrossCoreSetFlag", "CrossCoreWaitFlag")
_FLAGS = ("SetFlag", "WaitFlag", "set_flag", "wait_flag")
_COPIES = COPY | {"DataCopyPadGm2UBImpl", "DataCopyPadUB2GMImpl"}  # the API's own copies, of addresses
_DEPTH, _CHOICE, _MOST = 6, 4, 2000  # calls that are followed; functions that one may be of; steps of one trace

Env = dict[str, frozenset[str]]


class UnclearTrace(Exception):
    """Nobody can say what the code does to its buffers."""


@dataclass(frozen=True)
class TracedStep:
    """``kind``: load, store, vector, get, set, flag or barrier; the statement, the units that are touched, the loops.

    ``written``: units that are written whatever they were before.
    """

    kind: str
    function: Function
    statement: Node
    units: frozenset[str]
    written: frozenset[str]
    loops: tuple[tuple[str, int], ...]
    call: ApiCall

    @property
    def buffers(self) -> frozenset[str]:
        return frozenset(buffer_of(u) for u in self.units if not u.startswith("gm:"))

    @property
    def outside(self) -> frozenset[str]:
        """Names in global memory."""
        return frozenset(u for u in self.units if u.startswith("gm:"))


def _by_name(kernel: KernelProgram) -> dict[str, list[Function]]:
    out: dict[str, list[Function]] = {}
    for f in kernel.functions:
        out.setdefault(f.name.partition("<")[0], []).append(f)
    return out


def buffer_of(unit: str) -> str:
    return unit.partition("@")[0]


@dataclass
class MadeTensor:
    """A tensor that is made of a buffer: where, its name, and of what."""

    function: Function
    statement: Node
    name: str
    value: Node
    units: frozenset[str]


class Buffers:
    """Of the classes that are kin to a function's: names of TBufs, and what the tensors among their members are."""

    def __init__(self, kernel: KernelProgram, f: Function) -> None:
        self.kernel = kernel
        mine, family_of = kernel.class_of(f), families(kernel)
        own = family_of.get(mine, frozenset())
        self.kin = {c for c, family in family_of.items() if c in own or mine in family} | {mine}
        self.globals = global_tensors(kernel)
        self.names = {n for m in members_of(kernel, _BUFFER) if title_of(kernel, m) in self.kin for n in m.names}
        self.tensors = {n for m in members_of(kernel, _TENSOR) if title_of(kernel, m) in self.kin for n in m.names}
        self.functions = [g for g in kernel.functions if kernel.class_of(g) in self.kin]
        self.members: Env = {}
        self.made: list[MadeTensor] = []
        if self.names:
            self._read()

    def _read(self) -> None:
        """Assignments of members that are tensors; as often as they are made of one another."""
        found = [
            (g, n, left, right)
            for g in self.functions
            for n in walk(g.body)
            if n.type == "assignment_expression"
            and (left := n.child_by_field_name("left")) is not None
            and (right := n.child_by_field_name("right")) is not None
            and self.kernel.text(g.path, left).removeprefix("this->") in self.tensors
        ]
        for _ in range(4):
            before = dict(self.members)
            for g, _, left, right in found:
                name = self.kernel.text(g.path, left).removeprefix("this->")
                units = self.made_of(name, self.kernel.text(g.path, right), {})
                self.members[name] = self.members.get(name, frozenset()) | units
            if self.members == before:
                break
        for g, n, left, right in found:
            name = self.kernel.text(g.path, left).removeprefix("this->")
            if n.parent is not None and n.parent.type == "expression_statement":
                self.made.append(MadeTensor(g, n.parent, name, right, self.members[name]))

    def before(self, f: Function, end: int) -> tuple[Env, list[MadeTensor]]:
        """What the tensors are that a function makes before a byte of it: by name, and how each is made."""
        env: Env = {}
        out: list[MadeTensor] = []
        for n in walk(f.body):
            if n.type != "init_declarator" or n.end_byte > end or n.parent is None:
                continue
            left, right = n.child_by_field_name("declarator"), n.child_by_field_name("value")
            if left is None or right is None:
                continue
            name, text = self.kernel.text(f.path, left).lstrip("&* "), self.kernel.text(f.path, right)
            units = self.made_of(name, text, env) if "GetValue" not in text else frozenset()
            if units and name.isidentifier():
                env[name] = units
                out.append(MadeTensor(f, n.parent, name, right, units))
        return env, out

    def made_of(self, name: str, text: str, env: Mapping[str, frozenset[str]]) -> frozenset[str]:
        """The units of a tensor ``name`` that is made by an expression."""
        if _MADE.search(text):
            return frozenset([f"queue:{name}"])
        units = self.units(text, env)
        part = _PART.search(text) is not None
        return frozenset(f"{buffer_of(u)}@{name}" if part and not u.startswith(("gm:", "queue:")) else u for u in units)

    def units(self, text: str, env: Mapping[str, frozenset[str]]) -> frozenset[str]:
        """The units that the names of an expression stand for."""
        out: set[str] = set()
        for word in _WORD.findall(text):
            if word in env:
                out |= env[word]
            elif word in self.members:
                out |= self.members[word]
            elif word in self.names:
                out.add(word)
            elif word in self.globals:
                out.add(f"gm:{word}")
        return frozenset(out)


@dataclass
class Trace:
    """The steps of a part of a function, and what it takes of its buffers (``got``) and makes of them (``made``).

    ``flags``: statements that are a flag, set and waited for, whatever function they call.
    """

    buffers: Buffers
    flags: frozenset[tuple[str, int]] = frozenset()
    steps: list[TracedStep] = field(default_factory=list)
    got: list[tuple[Function, ApiCall, str, tuple[tuple[str, int], ...]]] = field(default_factory=list)
    made: list[MadeTensor] = field(default_factory=list)
    from_before: set[str] = field(default_factory=set)
    handed: set[str] = field(default_factory=set)
    _ready: set[str] = field(default_factory=set)
    _if: dict[str, set[str]] = field(default_factory=dict)
    _unless: dict[str, set[str]] = field(default_factory=dict)

    def run(self, f: Function, nodes: list[Node], env: Env | None = None) -> Trace:
        self._nodes(f, nodes, dict(env or {}), (), 0)
        return self

    # -- statements ----------------------------------------------------------------------------------------------------

    def _nodes(self, f: Function, nodes: list[Node], env: Env, loops: tuple[tuple[str, int], ...], depth: int) -> None:
        for node in nodes:
            self._node(f, node, env, loops, depth)

    def _node(self, f: Function, node: Node, env: Env, loops: tuple[tuple[str, int], ...], depth: int) -> None:
        if node.type == "if_statement":
            self._branches(f, node, env, loops, depth)
        elif node.type in LOOPS:
            body = node.child_by_field_name("body")
            inner = (*loops, (f.path, node.start_byte))
            self._nodes(f, [n for n in node.named_children if n != body], env, inner, depth)
            self._nodes(f, [body] if body is not None else [], env, inner, depth)
        elif node.type in ("expression_statement", "declaration", "return_statement", "condition_clause"):
            self._statement(f, node, env, loops, depth)
        elif node.type not in ("comment", "preproc_if", "preproc_ifdef"):
            self._nodes(f, node.named_children, env, loops, depth)
        elif node.type != "comment":
            self._nodes(f, [n for n in node.named_children if n.type != "identifier"], env, loops, depth)

    def _branches(self, f: Function, node: Node, env: Env, loops: tuple[tuple[str, int], ...], depth: int) -> None:
        condition, other = node.child_by_field_name("condition"), node.child_by_field_name("alternative")
        first = node.child_by_field_name("consequence")
        text = self.buffers.kernel.text(f.path, condition) if condition is not None else ""
        at_compile_time = "constexpr" in self.buffers.kernel.text(f.path, node)[:16]
        self._nodes(f, [condition] if condition is not None else [], env, loops, depth)
        before = set(self._ready)
        self._ready |= self._if.get(text, set())
        self._nodes(f, [first] if first is not None else [], env, loops, depth)
        one, self._ready = self._ready, before | (self._unless.get(text, set()) if at_compile_time else set())
        self._nodes(f, [other] if other is not None else [], env, loops, depth)
        chain = other is not None or (at_compile_time and node.parent is not None and node.parent.type == "else_clause")
        if chain and other is None:
            self._ready = one
            return
        self._if.setdefault(text, set()).update(one - before)
        if at_compile_time and other is not None:
            self._unless.setdefault(text, set()).update(self._ready - before)
        self._ready &= one

    def _statement(self, f: Function, node: Node, env: Env, loops: tuple[tuple[str, int], ...], depth: int) -> None:
        kernel = self.buffers.kernel
        calls = [n for n in walk(node) if n.type == "call_expression"]
        for n in sorted(calls, key=lambda n: (n.end_byte, -n.start_byte)):
            self._call(f, node, kernel.call_at(f, n), env, loops, depth)
        for n in walk(node):
            if n.type not in ("init_declarator", "assignment_expression"):
                continue
            left = n.child_by_field_name("declarator" if n.type == "init_declarator" else "left")
            right = n.child_by_field_name("value" if n.type == "init_declarator" else "right")
            if left is None or right is None:
                continue
            name = kernel.text(f.path, left).removeprefix("this->").lstrip("&* ")
            units = self.buffers.made_of(name, kernel.text(f.path, right), env)
            tensor = "GetValue" not in kernel.text(f.path, right)
            if units and name.isidentifier() and tensor:
                self.made.append(MadeTensor(f, node, name, right, units))
                if name not in self.buffers.tensors:
                    env[name] = units

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _call(
        self, f: Function, at: Node, call: ApiCall, env: Env, loops: tuple[tuple[str, int], ...], depth: int
    ) -> None:
        if (f.path, at.start_byte) in self.flags and call.name not in _FLAGS:
            if call.node.parent == at:
                self._add(TracedStep("flag", f, at, frozenset(), frozenset(), loops, call))
            return
        own = self._own(f, call) if call.name not in _COPIES else []
        if own:
            if depth == _DEPTH:
                raise UnclearTrace
            before, after = set(self._ready), list[set[str]]()
            for g in own:
                self._ready = set(before)
                given = {p: self.buffers.units(a, env) for p, a in zip(g.parameters, call.args, strict=False)}
                self.handed |= {buffer_of(u) for units in given.values() for u in units}
                self._nodes(g, [g.body], {p: u for p, u in given.items() if u}, loops, depth + 1)
                after.append(self._ready)
            self._ready = set.intersection(*after)
            return
        if call.name in ("Get", "GetWithOffset"):
            buffer = call.receiver.removeprefix("this->")
            if buffer in self.buffers.names:
                self.got.append((f, call, buffer, loops))
            return
        if call.name in _FLAGS or is_barrier(call, "PIPE_ALL"):
            kind = "barrier" if call.name not in _FLAGS else "flag"
            self._add(TracedStep(kind, f, at, frozenset(), frozenset(), loops, call))
        elif call.name not in (*_ALIASES, *_IGNORED):
            self._access(f, at, call, env, loops)

    def _own(self, f: Function, call: ApiCall) -> list[Function]:
        """The kernel's functions one of which is called; none where it is none of its."""
        kernel = self.buffers.kernel
        named = [g for g in kernel.once(_by_name).get(call.name, ()) if len(g.parameters) >= len(call.args)]
        if not named:
            return []
        called = call.node.child_by_field_name("function")
        of = _OF.match(kernel.text(f.path, called)) if called is not None else None
        if of is not None and any(kernel.class_of(g) == of[1] for g in named):
            named = [g for g in named if kernel.class_of(g) == of[1]]
        for found in ([g for g in named if kernel.class_of(g) == kernel.class_of(f)], self._kin(named), named):
            if len(found) > _CHOICE:
                raise UnclearTrace
            if found:
                return found
        return []

    def _kin(self, named: list[Function]) -> list[Function]:
        return [g for g in named if self.buffers.kernel.class_of(g) in self.buffers.kin]

    def _access(self, f: Function, at: Node, call: ApiCall, env: Env, loops: tuple[tuple[str, int], ...]) -> None:
        units = [self.buffers.units(a, env) for a in call.args]
        receiver = self.buffers.units(call.receiver, env)
        everything = frozenset(u for each in (*units, receiver) for u in each)
        if call.name in _MEETS or (
            call.name in _LENGTHS and any(buffer_of(u) in self.buffers.names for u in everything)
        ):
            raise UnclearTrace
        if not everything:
            if call.name in _COPIES:
                raise UnclearTrace
            return
        kind, written = "vector", frozenset[str]()
        if call.name in _COPIES and len(call.args) > 1:
            kind, written, everything = self._copy(call, env)
        elif call.name in ("GetValue", "SetValue"):
            kind = "get" if call.name == "GetValue" else "set"
            everything = receiver
        elif units and call.name not in ACCUMULATING and not any(units[0] & u for u in units[1:]):
            written = units[0]
        self._add(TracedStep(kind, f, at, everything, written, loops, call))

    def _copy(self, call: ApiCall, env: Env) -> tuple[str, frozenset[str], frozenset[str]]:
        """(kind, what is written, all that is touched)."""
        to, source = (self.buffers.units(a.partition("[")[0], env) for a in call.args[:2])
        outside = [any(u.startswith("gm:") for u in each) for each in (to, source)]
        if all(outside) or not to or not source:
            raise UnclearTrace
        kind = "store" if outside[0] else "load" if outside[1] else "vector"
        return kind, to if kind != "store" else frozenset(), to | source

    def _add(self, step: TracedStep) -> None:
        if len(self.steps) == _MOST:
            raise UnclearTrace
        self.steps.append(step)
        for unit in step.units - step.written:
            if not unit.startswith(("gm:", "queue:")) and not self._is_ready(unit):
                self.from_before.add(unit)
        self._ready |= step.written

    def _is_ready(self, unit: str) -> bool:
        buffer = buffer_of(unit)
        if unit == buffer:
            return any(buffer_of(u) == buffer for u in self._ready)
        return unit in self._ready or buffer in self._ready
