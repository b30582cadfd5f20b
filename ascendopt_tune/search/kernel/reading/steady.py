"""What stays the same from turn to turn, read through calls: tensors whose content nobody writes there, and numbers.

1. ``turns_of`` finds the innermost loops that repeat a place. Where its function has none around it, its callers'.
2. A tensor's *events* are the statements that give it content: an instruction that writes it, a queue that hands it
   over. A buffer's are those of all tensors that lie in it.
3. A tensor is steady where no event of its is among what the turns run; a number, where nothing assigns its names.

Names stand for what they name, so that aliases by address are missed: the gate sees those.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Node

from ....sources.cpp import Function, declared_name, walk
from .api import root
from .kernel_program import ApiCall, KernelProgram, Where, loops_around, where

_WORD = re.compile(r"[A-Za-z_]\w*")
_TAKEN = re.compile(r"[.>]\s*(?:template\s+)?(?:DeQue|AllocTensor)\b")
_GOT = re.compile(r"[.>]\s*(?:template\s+)?Get(?:WithOffset)?\s*[<(]")
_READS = re.compile(r"GetValue|DeQue|AllocTensor|GetAccVal|\*\s*reinterpret_cast|Reduce")
_DEPTH = 6  # calls and aliases that are followed

Event = tuple[Function, Node]


@dataclass(frozen=True)
class Turns:
    """The innermost loops that repeat a place, and the functions that are called from inside of them."""

    loops: tuple[Event, ...]
    functions: frozenset[str]
    assigned: frozenset[str]

    def hold(self, f: Function, node: Node) -> bool:
        """Does the node run in these turns?"""
        return f.name in self.functions or any(
            f.path == g.path and loop.start_byte <= node.start_byte < loop.end_byte for g, loop in self.loops
        )


class Steady:
    """The facts of one kernel."""

    def __init__(self, kernel: KernelProgram) -> None:
        self.kernel = kernel
        self.own: dict[str, list[Function]] = {}
        for f in kernel.functions:
            self.own.setdefault(f.name, []).append(f)
        self._made: dict[Where, dict[str, list[tuple[Node, str]]]] = {}
        self._turns: dict[tuple[tuple[str, int], ...], Turns | None] = {}
        self._called: dict[Where, list[ApiCall]] = {}
        self._given: dict[Where, dict[str, list[ApiCall]]] = {}
        self._parts: dict[Where, dict[str, set[str]]] = {}
        self._changes: dict[Where, list[tuple[int, str]]] = {}

    @cached_property
    def _callers(self) -> dict[str, list[ApiCall]]:
        out: dict[str, list[ApiCall]] = {}
        for c in self.kernel.calls:
            if c.name in self.own:
                out.setdefault(c.name, []).append(c)
        return out

    def callers(self, f: Function) -> list[ApiCall]:
        """Calls of a function; those of its class where it has some."""
        if where(f) not in self._called:
            calls = [c for c in self._callers.get(f.name, ()) if len(c.args) <= len(f.parameters)]
            ours = [c for c in calls if self.kernel.class_of(c.function) == self.kernel.class_of(f)]
            self._called[where(f)] = ours or calls
        return self._called[where(f)]

    # -- turns ---------------------------------------------------------------------------------------------------------

    def turns_of(self, f: Function, node: Node) -> Turns | None:
        """The innermost loops that repeat the node; None where nothing does."""
        return self._turns_of(f, node, True)

    def all_turns_of(self, f: Function, node: Node) -> Turns | None:
        """All loops that repeat the node, inner and outer ones."""
        return self._turns_of(f, node, False)

    def _turns_of(self, f: Function, node: Node, innermost: bool) -> Turns | None:
        loops = tuple(dict.fromkeys(self._loops(f, node, innermost, 0)))
        key = tuple((g.path, loop.start_byte) for g, loop in loops)
        if key not in self._turns:
            self._turns[key] = self._of_loops(loops) if loops else None
        return self._turns[key]

    def _loops(self, f: Function, node: Node, innermost: bool, depth: int) -> Iterator[Event]:
        around = loops_around(node, f)
        yield from ((f, loop) for loop in (around[:1] if innermost else around))
        if depth < _DEPTH and not (innermost and around):
            for c in self.callers(f):
                yield from self._loops(c.function, c.node, innermost, depth + 1)

    def _of_loops(self, loops: tuple[Event, ...]) -> Turns:
        names: set[str] = set()
        assigned: set[str] = set()
        pending: list[Event] = []
        for f, loop in loops:
            assigned |= self._assigned(f, loop)
            pending.append((f, loop))
        while pending:
            f, node = pending.pop()
            for c in self.kernel.calls_of(f):
                inside = node.start_byte <= c.node.start_byte < node.end_byte
                if inside and c.name in self.own and c.name not in names:
                    names.add(c.name)
                    for g in self.own[c.name]:
                        assigned |= self._assigned(g, g.body)
                        pending.append((g, g.body))
        return Turns(loops, frozenset(names), frozenset(assigned))

    def _assigned(self, f: Function, node: Node) -> set[str]:
        """Names that something below the node assigns or counts; counters of loops are among them."""
        if where(f) not in self._changes:
            self._changes[where(f)] = list(self._changed(f))
        return {name for at, name in self._changes[where(f)] if node.start_byte <= at < node.end_byte}

    def _changed(self, f: Function) -> Iterator[tuple[int, str]]:
        for n in walk(f.body):
            if n.type == "assignment_expression":
                left = n.child_by_field_name("left")
                yield n.start_byte, _variable(self.kernel.text(f.path, left)) if left is not None else ""
            elif n.type == "update_expression":
                yield from ((n.start_byte, name) for name in _WORD.findall(self.kernel.text(f.path, n)))

    # -- numbers -------------------------------------------------------------------------------------------------------

    def number(self, turns: Turns, f: Function, text: str, depth: int = 0) -> bool:
        """Is the expression, at a place of ``f``, the same in all these turns?"""
        if depth > _DEPTH or _READS.search(text):
            return False
        inside = f.name not in turns.functions  # what called it is the same in all of its turns
        for name in sorted(_names(text)):
            if name in turns.assigned:
                return False
            made = self.made(f).get(name)
            if made is not None:
                if not all(value and self.number(turns, f, value, depth + 1) for _, value in made):
                    return False
            elif name in f.parameters and not inside:
                place = f.parameters.index(name)
                given = [c for c in self.callers(f) if place < len(c.args)]
                if not all(self.number(turns, c.function, c.args[place], depth + 1) for c in given):
                    return False
        return True

    def uses_what_changes(self, turns: Turns, f: Function) -> bool:
        """Does a function use what the turns assign, variables of its own apart?"""
        own = set(f.parameters)
        for n in walk(f.body):
            if n.type == "declaration":
                names = (declared_name(d) for d in n.children_by_field_name("declarator"))
                own |= {self.kernel.text(f.path, name) for name in names if name is not None}
        return bool(turns.assigned & _names(self.kernel.text(f.path, f.body)) - own)

    # -- tensors -------------------------------------------------------------------------------------------------------

    def made(self, f: Function) -> dict[str, list[tuple[Node, str]]]:
        """By name, the statements of a function that declare or assign it, each with the value it gets."""
        if where(f) not in self._made:
            out: dict[str, list[tuple[Node, str]]] = {}
            for node in walk(f.body):
                if node.type == "init_declarator" and node.parent is not None:
                    name, value = declared_name(node), node.child_by_field_name("value")
                    if name is not None and value is not None:
                        entry = (node.parent, self.kernel.text(f.path, value))
                        out.setdefault(self.kernel.text(f.path, name), []).append(entry)
                elif node.type == "assignment_expression" and node.parent is not None:
                    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
                    text = self.kernel.text(f.path, left).removeprefix("this->") if left is not None else ""
                    if right is not None and text.isidentifier():
                        out.setdefault(text, []).append((node.parent, self.kernel.text(f.path, right)))
            self._made[where(f)] = out
        return self._made[where(f)]

    def writers(self, f: Function, name: str) -> Iterator[ApiCall]:
        """Calls in a function that write the tensor of that name."""
        return (c for c in self._touching(f).get(name, ()) if self.written(c, name))

    def _touching(self, f: Function) -> dict[str, list[ApiCall]]:
        """By name, the calls in a function that are given it, or are its own."""
        if where(f) not in self._given:
            out: dict[str, list[ApiCall]] = {}
            for c in self.kernel.calls_of(f):
                for name in {root(a) for a in c.args} | ({root(c.receiver)} if c.receiver else set()):
                    out.setdefault(name, []).append(c)
            self._given[where(f)] = out
        return self._given[where(f)]

    def written(self, c: ApiCall, name: str, depth: int = 0) -> bool:
        """Does a call write the tensor? One of the kernel's own, where it writes the parameter; others their first."""
        if c.name == "SetValue":
            return root(c.receiver) == name
        places = [i for i, a in enumerate(c.args) if root(a) == name and ".GetValue" not in a]
        if c.name not in self.own:
            extra = (2,) if c.name.startswith("Reduce") else ()
            return not c.receiver and any(i in (0, *extra) for i in places)
        if depth > 2:
            return True
        for g in self.own[c.name]:
            for p in (g.parameters[i] for i in places if i < len(g.parameters)):
                if any(self.written(d, p, depth + 1) for d in self._touching(g).get(p, ())):
                    return True
        return False

    def made_at(self, f: Function, name: str, at: Node | None) -> list[tuple[Node, str]]:
        """Those of ``made`` that a place of the function may see: no variable of another block."""
        return [(n, v) for n, v in self.made(f).get(name, ()) if at is None or n.type != "declaration" or _sees(at, n)]

    def events(self, f: Function, name: str, at: Node | None = None, depth: int = 0) -> list[Event] | None:
        """The statements that give a tensor, as a place of ``f`` sees it, its content; None where they aren't known."""
        if depth > _DEPTH:
            return None
        found: list[Event] = [(f, c.node) for n in (name, *self.views(f, name)) for c in self.writers(f, n)]
        places = self._sources(f, name, at)
        if self._is_member(f, name, at):
            found += [(g, c.node) for g in self.kernel.functions if self._akin(f, g) for c in self.writers(g, name)]
        if not places:
            return None
        for g, node, value in places:
            of = root(value)
            if _TAKEN.search(value):
                found.append((g, node))
            elif _GOT.search(value):
                found += [(h, n) for h, n in self._in_buffer.get(of, []) if self._akin(g, h)]
            elif of != name or where(g) != where(f):
                more = self.events(g, of, node, depth + 1)
                if more is None:
                    return None
                found += more
        return list(dict.fromkeys(found))

    def views(self, f: Function, name: str) -> set[str]:
        """Tensors of a function that are others' names for the tensor, or parts of it."""
        if where(f) not in self._parts:
            parts: dict[str, set[str]] = {}
            for part, values in self.made(f).items():
                for _, value in values:
                    if not _READS.search(value) and not _GOT.search(value):
                        parts.setdefault(root(value), set()).add(part)
            self._parts[where(f)] = parts
        out, pending = set[str](), [name]
        while pending:
            more = self._parts[where(f)].get(pending.pop(), set()) - out
            out |= more
            pending += more
        return out - {name}

    def _sources(self, f: Function, name: str, at: Node | None) -> list[tuple[Function, Node, str]]:
        """(function, statement or call, value) of what makes a name of ``f`` the tensor it is."""
        if self._is_member(f, name, at):
            akin = [g for g in self.kernel.functions if self._akin(f, g)]
            return [(g, n, v) for g in akin for n, v in self.made(g).get(name, ())]
        sources = self.made_at(f, name, at)
        if sources:
            return [(f, n, v) for n, v in sources]
        place = f.parameters.index(name)
        return [(c.function, c.node, c.args[place]) for c in self.callers(f) if place < len(c.args)]

    def _is_member(self, f: Function, name: str, at: Node | None) -> bool:
        """Is a name that a place of a function sees declared outside of it?"""
        sources = self.made_at(f, name, at)
        if not sources or name in f.parameters:
            return name not in f.parameters
        declared = re.search(rf"LocalTensor\s*<[^;=()]*>\s*{name}\s*;", self.kernel.text(f.path, f.body))
        return all(n.type != "declaration" for n, _ in sources) and declared is None

    def akin(self, f: Function, g: Function) -> bool:
        """May one of two functions use the other's members?"""
        return self._akin(f, g)

    def _akin(self, f: Function, g: Function) -> bool:
        """Are two functions of one class, or of two one of which may be derived from the other?"""
        one, two = self.kernel.class_of(f), self.kernel.class_of(g)
        return one == two or one in self._heads.get(two, ()) or two in self._heads.get(one, ())

    @cached_property
    def _heads(self) -> dict[str, set[str]]:
        """By class, the words in front of its body: those it is derived from are among them."""
        out: dict[str, set[str]] = {}
        for path, node in self.kernel.class_nodes:
            body = node.child_by_field_name("body")
            head = self.kernel.text(path, node)[: body.start_byte - node.start_byte] if body is not None else ""
            out.setdefault(self.kernel.title(path, node), set()).update(_WORD.findall(head))
        return out

    @cached_property
    def _in_buffer(self) -> dict[str, list[Event]]:
        """By buffer, what writes the tensors that lie in it."""
        out: dict[str, list[Event]] = {}
        for f in self.kernel.functions:
            for name in self.made(f):
                for buffer in self.buffers(f, name):
                    out.setdefault(buffer, []).extend((f, c.node) for c in self.writers(f, name))
        return out

    def buffers(self, f: Function, name: str, depth: int = 0) -> set[str]:
        """The buffers that a function's tensor may lie in."""
        out: set[str] = set()
        for _, value in self.made(f).get(name, ()):
            if _GOT.search(value):
                out.add(root(value))
            elif depth < _DEPTH and not _TAKEN.search(value) and root(value) != name:
                out |= self.buffers(f, root(value), depth + 1)
        return out

    def steady(self, turns: Turns, f: Function, name: str, at: Node) -> list[Event] | None:
        """What gives a tensor new content, if nothing does in these turns; None if something does, or isn't known."""
        events = self.events(f, name, at)
        if not events or any(turns.hold(g, node) for g, node in events) or self._moves(turns, f, name, at, 0):
            return None
        return [(g, node) for g, node in events if self.kernel.repeated(g, node)]

    def _moves(self, turns: Turns, f: Function, name: str, at: Node | None, depth: int) -> bool:
        """Is a tensor another part of what it lies in, in another turn?"""
        for g, node, value in self._sources(f, name, at) if depth < _DEPTH else ():
            if "[" in value and turns.hold(g, node) and not self.number(turns, g, value[value.index("[") :]):
                return True
            of_another = root(value) != name or where(g) != where(f)
            if of_another and not _TAKEN.search(value) and self._moves(turns, g, root(value), node, depth + 1):
                return True
        return False

    # -- global memory -------------------------------------------------------------------------------------------------

    @cached_property
    def stored(self) -> set[str]:
        """Names of tensors that something writes, or that move."""
        out: set[str] = set()
        for c in self.kernel.calls:
            if c.name == "SetValue" or (c.name == "SetGlobalBuffer" and self.kernel.repeated(c.function, c.node)):
                out.add(root(c.receiver))
            elif c.args and not c.receiver and self.written(c, root(c.args[0])):
                out.add(root(c.args[0]))
        return out

    def range_is_steady(self, turns: Turns, f: Function, place: str) -> bool:
        """Is it the same elements of a global tensor, which nobody writes, in all these turns?"""
        name = root(place)
        return name not in self.stored and name not in f.parameters and self.number(turns, f, place)


def _names(text: str) -> set[str]:
    """The variables and functions in a text, without fields and what is of another scope."""
    return set(_WORD.findall(re.sub(r"(?:\.|->|::)\s*[A-Za-z_]\w*", "", text.replace("this->", ""))))


def _variable(text: str) -> str:
    """The name that an assignment's left side changes."""
    return root(text.removeprefix("this->"))


def _sees(at: Node, declaration: Node) -> bool:
    """Does a declaration's block hold the place, and come before it?"""
    block = declaration.parent
    whole = block is not None and block.start_byte <= at.start_byte < block.end_byte
    return whole and declaration.start_byte <= at.start_byte
