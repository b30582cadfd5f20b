"""Tiles asked for a turn ahead where the turn first sets what its copies go by: the tail's length, an offset, an index.

1. A counted loop sets variables (``if (i == last) length = tail;``), calls functions that copy in and do nothing else,
   or does so itself, and goes on with the tile. What the copies go by is told by data flow.
2. The next turn's settings are made in front of its copies, which are issued in this turn; then every variable that
   lives longer is what it was, so that the rest of the turn sees its own.
3. What the rest of the turn moves on by a sum (``offset += length;``) is moved on for the copies as well. What it
   changes in any other way, and the copies go by, leaves no place.
4. A queue that has one buffer gets a second one, where the scalar unit waits for something in the turn.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import Edit, Function, walk
from ...reading.affine import at
from ...reading.api import root, writes
from ...reading.classes import members
from ...reading.counted import CountedLoop, counted_loops
from ...reading.kernel_program import ApiCall, BlockStep, KernelProgram
from ..motif import Change

_WORD = re.compile(r"[A-Za-z_]\w*")
_ON = re.compile(r"((?:this->)?\w+)\s*\+=\s*([^;()]+);", re.DOTALL)
_PLAIN = re.compile(r"(?:this->)?[A-Za-z_]\w*")
_FREE = re.compile(r"\b(?:static_cast|sizeof|u?int\d*_t|CeilDiv|min|max|Min|Max|GetBlockIdx|GetBlockNum)\b")
_READ = re.compile(r"((?:this->)?\w+)\s*\.\s*GetValue(?=\s*\()")
_CALLED = re.compile(r"[A-Za-z_]\w*(?:<[\w:]+>)?(?=\s*\()")
_LEAVES = ("break_statement", "return_statement", "goto_statement", "continue_statement")
_KEPT = "ofThisTurn"
_QUEUE = re.compile(r"((?:AscendC::)?TQue\s*<\s*[\w:]+\s*,\s*)(\w+)\s*>")
_ONE_BY_DEFAULT = re.compile(r"[<,]\s*(?:u?int\d*(?:_t)?|size_t)\s+(\w+)\s*=\s*1\s*(?=[,>])")


@dataclass(frozen=True)
class _Ahead:
    """A loop whose copies may be issued a turn ahead: what sets what they go by, them, and what goes on."""

    loop: CountedLoop
    front: tuple[BlockStep, ...]
    copies: tuple[BlockStep, ...]
    kept: tuple[str, ...]  # variables that are set for the copies and live longer than a turn
    on: tuple[str, ...]  # statements behind the copies that move such variables on
    plain: bool  # nothing but a declaration or two in front of one call


@dataclass(frozen=True)
class _Turn:
    """The statements of a turn: those in front of the copies, the copies, those behind."""

    loop: CountedLoop
    front: tuple[BlockStep, ...]
    copies: tuple[BlockStep, ...]
    rest: tuple[BlockStep, ...]

    @property
    def path(self) -> str:
        return self.loop.block.function.path


def ahead(kernel: KernelProgram, fetchers: Collection[str]) -> Iterator[_Ahead]:
    """The loops of the kernel that copy in at one place. ``fetchers``: functions that copy in and do nothing else."""
    for loop in counted_loops(kernel):
        steps = tuple(s for s in loop.block.steps if s.node.type != "comment")
        first = next((i for i, s in enumerate(steps) if _fetches(s, fetchers)), len(steps))
        last = first
        while last < len(steps) and _fetches(steps[last], fetchers):
            last += 1
        parent = loop.node.parent
        if not first < last < len(steps) or parent is None or parent.type != "compound_statement":
            continue
        found = _found(kernel, _Turn(loop, steps[:first], steps[first:last], steps[last:]))
        if found is not None:
            yield found


def _fetches(step: BlockStep, fetchers: Collection[str]) -> bool:
    return step.call is not None and step.call.name in fetchers and step.call.receiver in ("", "this")


def _found(kernel: KernelProgram, turn: _Turn) -> _Ahead | None:
    path = turn.path
    names = [s.call.name for s in turn.copies if s.call is not None]
    if not _once(kernel, turn, names):
        return None
    owned = [g for g in kernel.functions if g.name in names]
    texts = [(path, s.node) for s in turn.copies] + [(g.path, g.body) for g in owned]
    read = {w for p, n in texts for w in _WORD.findall(kernel.text(p, n))}
    slice_ = _slice(kernel, turn, read)
    if slice_ is None:
        return None
    local = {d for s in slice_ for d in _declared(kernel, path, s.node)}
    kept = {n: None for s in slice_ for n in _assigned(kernel, path, s.node) if n not in local}
    on = _goes_on(kernel, turn.loop, turn.rest, read - local)
    aside = tuple(s for s in turn.front if s not in slice_)
    if on is None or not _apart(kernel, path, owned, (*aside, *turn.rest), read):
        return None
    kept.update(dict.fromkeys(_moved(text) for text in on))
    plain = len(names) == 1 and all(s.node.type == "declaration" for s in turn.front)
    return _Ahead(turn.loop, slice_, turn.copies, tuple(kept), on, plain)


def _once(kernel: KernelProgram, turn: _Turn, names: list[str]) -> bool:
    """Does each turn issue its copies at this place alone, whatever happens, and leave the counter to the loop?"""
    others = (*turn.front, *turn.rest)
    again = any(c in names for s in others for c in _called(kernel, turn.path, s.node))
    leaves = any(n.type in _LEAVES for s in others for n in walk(s.node))
    counted = turn.loop.name in {n for s in others for n in _assigned(kernel, turn.path, s.node)}
    return not again and not leaves and not counted and len(set(names)) == len(names)


def _slice(kernel: KernelProgram, turn: _Turn, read: set[str]) -> tuple[BlockStep, ...] | None:
    """The statements in front of the copies that set what they go by; None where that isn't to be done twice.

    ``read``: the names that the copies go by; those that the statements read join them.
    """
    f, out = turn.loop.block.function, list[BlockStep]()
    written = _written(kernel, turn)
    for step in reversed(turn.front):
        sets = {n.removeprefix("this->") for n in _assigned(kernel, f.path, step.node)}
        sets |= _declared(kernel, f.path, step.node)
        if not sets & read:
            continue
        if not _sets_only(kernel, f, step.node, written):
            return None
        out.insert(0, step)
        read |= set(_WORD.findall(kernel.text(f.path, step.node)))
    return tuple(out)


def _written(kernel: KernelProgram, turn: _Turn) -> set[str]:
    """Tensors that something in the turn writes, or takes from a queue."""
    f, block = turn.loop.block.function, turn.loop.block.node
    inside = _calls(kernel, turn.loop)
    out = {w for c in inside for w in writes(c)} | {root(c.receiver) for c in inside if c.name == "SetValue"}
    return out | {root(n) for n in _assigned(kernel, f.path, block) if "Tensor" in n}


def _calls(kernel: KernelProgram, loop: CountedLoop) -> list[ApiCall]:
    """The calls of a turn, and those of the kernel's functions that it calls."""
    f, block = loop.block.function, loop.block.node
    inside = [c for c in kernel.calls_of(f) if block.start_byte <= c.node.start_byte < block.end_byte]
    pending, seen = {c.name for c in inside}, set[str]()
    while pending:
        name = pending.pop()
        for g in kernel.functions:
            if g.name == name and name not in seen:
                own = list(kernel.calls_of(g))
                inside += own
                pending |= {c.name for c in own}
        seen.add(name)
    return inside


def _waits(kernel: KernelProgram, loop: CountedLoop) -> bool:
    """Does the scalar unit wait for something in a turn? Else it asks for the next tile early by itself."""
    return any(
        c.name in ("GetValue", "ReduceSum", "ReduceMax", "ReduceMin") or (c.name == "WaitFlag" and "_S>" in c.template)
        for c in _calls(kernel, loop)
    )


def _moved(text: str) -> str:
    """The variable that a statement moves on."""
    found = _ON.fullmatch(text)
    assert found is not None
    return found[1]


def _called(kernel: KernelProgram, path: str, node: Node) -> set[str]:
    return {
        _WORD.findall(kernel.text(path, called))[-1]
        for n in walk(node)
        if n.type == "call_expression" and (called := n.child_by_field_name("function")) is not None
        for called_text in [kernel.text(path, called)]
        if _WORD.findall(called_text)
    }


def _sets_only(kernel: KernelProgram, f: Function, node: Node, written: Collection[str]) -> bool:
    """Declarations of scalars, assignments, and choices between such: nothing that is wrong when done twice.

    ``written``: tensors whose elements aren't the same all the time.
    """
    text = kernel.text(f.path, node)
    called = _CALLED.findall(_READ.sub(lambda m: m[0] if root(m[1]) in written else "", text))
    if any(not _FREE.search(c) for c in called if c not in ("if", "constexpr")):
        return False
    if node.type == "declaration":
        return "Tensor" not in text and "&" not in text.split("=")[0]
    if node.type == "expression_statement":
        inner = node.named_children[0] if node.named_children else None
        left = inner.child_by_field_name("left") if inner is not None else None
        plain = inner is not None and inner.type == "assignment_expression" and left is not None
        return plain and left is not None and _PLAIN.fullmatch(kernel.text(f.path, left)) is not None
    if node.type == "if_statement":
        parts = (node.child_by_field_name("consequence"), node.child_by_field_name("alternative"))
        return all(_sets_only(kernel, f, p, written) for p in parts if p is not None)
    if node.type in ("compound_statement", "else_clause"):
        return all(_sets_only(kernel, f, n, written) for n in node.named_children)
    return node.type == "comment"


def _declared(kernel: KernelProgram, path: str, node: Node) -> set[str]:
    if node.type != "declaration":
        return set()
    names = (_WORD.findall(kernel.text(path, d).split("=")[0]) for d in node.children_by_field_name("declarator"))
    return {n[-1] for n in names if n}


def _assigned(kernel: KernelProgram, path: str, node: Node) -> list[str]:
    """Variables and members that something below a node sets."""
    out: list[str] = []
    for n in walk(node):
        if n.type == "assignment_expression" and (left := n.child_by_field_name("left")) is not None:
            out.append(kernel.text(path, left))
        elif n.type == "update_expression":
            out += [w for w in (kernel.text(path, c) for c in n.named_children) if _PLAIN.fullmatch(w)]
    return out


def _goes_on(
    kernel: KernelProgram, loop: CountedLoop, rest: tuple[BlockStep, ...], read: Collection[str]
) -> tuple[str, ...] | None:
    """Statements of the rest that move on what the copies go by; None where it is changed in any other way."""
    path, out = loop.block.function.path, list[str]()
    for step in rest:
        text = kernel.text(path, step.node)
        changed = [n for n in _assigned(kernel, path, step.node) if n.removeprefix("this->") in read]
        if not changed:
            continue
        found = _ON.fullmatch(text)
        if found is None or step.node.type != "expression_statement":
            return None
        out.append(text)
    names = {_moved(t).removeprefix("this->") for t in out}
    moved = {w for t in out for w in _WORD.findall(_ON.sub(r"\2", t))}
    return tuple(out) if len(names) == len(out) and not moved & names else None


def _apart(
    kernel: KernelProgram, path: str, owned: list[Function], rest: tuple[BlockStep, ...], read: Collection[str]
) -> bool:
    """Do the copies and what else is called share no member that either sets, tensors that each takes anew aside?"""
    others: dict[int, Function] = {}
    pending = {c for s in rest for c in _called(kernel, path, s.node)}
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        for g in kernel.functions:
            if g.name == name and g not in owned:
                others[id(g)] = g
                pending |= _called(kernel, g.path, g.body)
    set_here = {n.removeprefix("this->") for g in owned for n in _lasting(kernel, g)}
    for g in others.values():
        set_there = {n.removeprefix("this->") for n in _lasting(kernel, g)}
        words = _WORD.findall(kernel.text(g.path, g.body))
        for name in set_here & set(words) | set_there & set(read):
            if not (_taken_first(kernel, g, name) or (name not in words)):
                return False
            if name in set_there & set(read) and not all(_taken_first(kernel, o, name) for o in owned if _has(o, name)):
                return False
    words = [w for s in rest for w in _WORD.findall(kernel.text(path, s.node))]
    return not set_here & set(words)


def _has(f: Function, name: str) -> bool:
    return name in _WORD.findall((f.body.text or b"").decode("utf-8", "replace"))


def _lasting(kernel: KernelProgram, f: Function) -> set[str]:
    """What a function sets and doesn't declare."""
    declared = {d for n in walk(f.body) for d in _declared(kernel, f.path, n)} | set(f.parameters)
    plain = (n for n in _assigned(kernel, f.path, f.body) if _PLAIN.fullmatch(n))
    return {n for n in plain if n not in declared}


def _taken_first(kernel: KernelProgram, f: Function, name: str) -> bool:
    """Is the first thing the function does with a member to take it from a queue or a buffer?"""
    text = kernel.text(f.path, f.body)
    found = re.search(rf"\b{name}\b(\s*=\s*(?:this->)?\w+\s*\.\s*(?:template\s+)?(?:AllocTensor|DeQue|Get)\b)?", text)
    return found is not None and found[1] is not None


def changes(kernel: KernelProgram, fetchers: Collection[str], single: Collection[str]) -> Iterator[Change]:
    """Each loop's copies, issued a turn ahead. ``fetchers``: functions that copy in; ``single``: into one buffer."""
    for found in ahead(kernel, fetchers):
        loop, path = found.loop, found.loop.block.function.path
        names = [s.call.name for s in found.copies if s.call is not None]
        if found.plain and not found.on and not set(names) & set(single):
            continue  # the form that asks nothing
        if set(names) & set(single) and not _waits(kernel, loop):
            continue  # a second buffer is all that it needs
        settings = [kernel.text(path, s.node) for s in found.front]
        copies = [kernel.text(path, s.node) for s in found.copies]
        keep = [f"const auto {_KEPT}{i} = {name};" for i, name in enumerate(found.kept)]
        back = [f"{name} = {_KEPT}{i};" for i, name in enumerate(found.kept)]
        later = [at(t, loop.name, f"{loop.name} + {loop.step}") for t in (*settings, *copies)]
        space = kernel.indent(path, loop.node)
        begin = [f"{loop.type} {loop.name} = {loop.first};", *keep, *settings, *copies, *back]
        start = _block(f"if ({loop.first} < {loop.bound}) {{", begin, space)
        condition = f"if ({loop.name} + {loop.step} < {loop.bound}) {{"
        inside = _block(condition, [*keep, *found.on, *later, *back], space + "  ")
        buffers = {
            (e.path, e.start): e for name in names for e in _two_buffers(kernel, loop.block.function, name)
        }.values()
        if any(_QUEUE.match(e.text) for e in buffers) and _given_on(kernel):
            continue
        edits: list[Edit] = [kernel.before(path, loop.node, start)]
        edits.append(kernel.replace(path, found.copies[0].node, inside))
        edits += [kernel.delete(path, s.node) for s in found.copies[1:]]
        edits += buffers
        f = loop.block.function
        site = f"{kernel.site(f, loop.node)}/{'+'.join(names)}"
        more = ", into a second buffer" if set(names) & set(single) else ""
        change = f"{f.name} sets what the next tile goes by and asks for it before it works on this one{more}"
        yield Change(site, change, tuple(edits))


def moved_on(kernel: KernelProgram, fetchers: Collection[str]) -> set[tuple[str, int]]:
    """Loops, by path and first byte, that move on behind the copies what these go by."""
    return {(a.loop.block.function.path, a.loop.node.start_byte) for a in ahead(kernel, fetchers) if a.on}


def _two_buffers(kernel: KernelProgram, f: Function, fetcher: str) -> Iterator[Edit]:
    """Queues that a function of the class puts tiles into, made with two buffers and as deep."""
    given = {root(c.receiver.removeprefix("this->")) for c in kernel.named("EnQue") if c.function.name == fetcher}
    ones = {"1", *(c.name for c in kernel.constants if c.value == 1), *_parameters(kernel)}
    held, of = kernel.class_node(f), kernel.class_of(f)
    made = [c for c in kernel.named("InitBuffer") if len(c.args) == 3 and root(_bare(c.args[0])) in given]
    here = [c for c in made if kernel.class_of(c.function) == of]
    for call in here or made:
        if call.args[1] in ones:
            yield kernel.replace(call.path, call.arguments[1], "2")
    types = [q for q in members(kernel, _QUEUE) if given.intersection(q.names)]
    own = [q for q in types if held is not None and q.path == held[0] and _within(q.node, held[1])]
    for queue in own or types:
        if queue.found[2] in ones:
            yield kernel.replace(queue.path, queue.type, f"{queue.found[1]}2>")


def _given_on(kernel: KernelProgram) -> bool:
    """Do functions spell the types of queues that they are given? They would have to change with the queues."""
    return any(re.search(rb"[(,]\s*(?:AscendC::)?TQue\s*<[^;{}]*?>\s*&", s.data) for s in kernel.program.files.values())


def _bare(name: str) -> str:
    return name.removeprefix("this->")


def _within(node: Node, outer: Node) -> bool:
    return outer.start_byte <= node.start_byte < outer.end_byte


def _parameters(kernel: KernelProgram) -> set[str]:
    """Integer parameters of templates that are 1 where nobody says otherwise."""
    texts = (s.data.decode("utf-8", "replace") for s in kernel.program.files.values())
    return {m[1] for text in texts for m in _ONE_BY_DEFAULT.finditer(text)}


def _block(head: str, lines: list[str], space: str) -> str:
    return f"\n{space}  ".join([head, *lines]) + f"\n{space}}}"
