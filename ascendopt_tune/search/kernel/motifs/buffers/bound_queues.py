"""What is loaded, copied to another queue's tensor and stored: one queue for the way in and the way out.

A queue of loads is bound to the way out as well (TQueBind); its buffers are those of both queues together.

1. Tensors of the second queue are taken for such copies only, and the first one's are handed over nowhere else. Both
   have the same length; a copy within the Unified Buffer is between tensors of one type.
2. What is only moved stays as loaded: the store waits for the load, the vector unit has no part in it.
3. What is done to the copy before it is handed on is done to what was loaded; then each half of the way has a flag of
   its own, as AscendC's EnQue and DeQue with positions say. Behind the copy what was loaded is read once at most, by
   the first instruction, where it writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import Edit, walk
from ...reading.api import ACCUMULATING, ELEMENTWISE, VECTOR, writes
from ...reading.classes import Members, title_of
from ...reading.kernel_program import ApiCall, Block, BlockStep, KernelProgram, flat
from ...reading.member_calls import declared_as, member_uses, members_of_type, statement_of, taken_as
from ..motif import Change, Motif
from ..vectors.choices import copies

_IN = re.compile(r"(AscendC::)?TQue\s*<\s*(?:\w+::)*VECIN\s*,([^,;]*)>", re.DOTALL)
_OUT = re.compile(r"(?:AscendC::)?TQue\s*<\s*(?:\w+::)*VECOUT\s*,([^,;]*)>", re.DOTALL)
_BOUND = re.compile(r"(AscendC::)?TQueBind\s*<\s*(?:\w+::)*VECIN\s*,\s*(?:\w+::)*VECOUT\s*,([^,;]*)>", re.DOTALL)
_CALLS = frozenset(["InitBuffer", "AllocTensor", "EnQue", "DeQue", "FreeTensor"])
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class _Queue:
    """A queue of a kernel's class: its line, name and the calls that name it."""

    line: Members
    name: str
    calls: tuple[ApiCall, ...]

    def named(self, name: str) -> list[ApiCall]:
        return [c for c in self.calls if c.name == name]

    @property
    def made(self) -> ApiCall:
        return self.named("InitBuffer")[0]


@dataclass(frozen=True)
class _Place:
    """``copied``: the statement that copies ``loaded``, which ``handed`` hands over, into ``moved``, which is taken of
    the second queue, queued there, and the other one given back.

    ``changed``: more is done to either than the copy.
    """

    block: Block
    copied: Node
    handed: ApiCall
    taken: ApiCall
    queued: ApiCall
    given: ApiCall
    changed: bool

    @property
    def loaded(self) -> str:
        return self.given.args[0]


@dataclass(frozen=True)
class _Moved:
    """Two queues, and all places where tensors go from the first one to the second."""

    first: _Queue
    second: _Queue
    places: tuple[_Place, ...]

    @property
    def changed(self) -> bool:
        return any(p.changed for p in self.places)


def _queues(kernel: KernelProgram, of_type: re.Pattern[str]) -> list[_Queue]:
    """Those that are made once, by number and length, and otherwise put in, taken out and given back only."""
    out = []
    for line, name, own in members_of_type(kernel, of_type):
        uses = member_uses(kernel, own, name)
        if uses is None or not {c.name for c in uses} <= _CALLS:
            continue
        queue = _Queue(line, name, tuple(uses))
        if len(queue.named("InitBuffer")) == 1 and len(queue.made.args) == 3:
            out.append(queue)
    return out


def _length(q: _Queue) -> str:
    """Of its buffers; types aside, which are one wherever one is copied to the other."""
    return re.sub(r"sizeof\s*\([^()]*\)", "sizeof", flat(q.made.args[2]))


def _found(kernel: KernelProgram) -> Iterator[_Moved]:
    first = _queues(kernel, _IN)
    for out in _queues(kernel, _OUT):
        taken = out.named("AllocTensor")
        for q in first:
            alike = _length(q) == _length(out)
            counts = {len(c) for c in (q.named("DeQue"), q.named("FreeTensor"), out.named("EnQue"), taken)}
            if not alike or counts != {len(taken)} or not taken or not _loads_only(kernel, q):
                continue
            places = [_place(kernel, q, out, c) for c in taken]
            known = tuple(p for p in places if p is not None)
            if len(known) == len(places):
                yield _Moved(q, out, known)


def _place(kernel: KernelProgram, q: _Queue, out: _Queue, taken: ApiCall) -> _Place | None:
    """The copy from what one queue hands over to what is taken of the other, all in one block."""
    block = next((b for b in kernel.blocks if any(s.node == statement_of(taken.node) for s in b.steps)), None)
    if block is None:
        return None
    nodes = [s.node for s in block.steps]
    here = {
        n: [c for c in k if statement_of(c.node) in nodes]
        for n, k in (("handed", q.named("DeQue")), ("queued", out.named("EnQue")), ("given", q.named("FreeTensor")))
    }
    if any(len(c) != 1 for c in here.values()):
        return None
    handed, queued, given = (c[0] for c in here.values())
    loaded, moved = taken_as(kernel, handed), taken_as(kernel, taken)
    plain = queued.statement is not None and given.statement is not None
    if loaded is None or moved is None or loaded == moved or not plain:
        return None
    if (queued.args, given.args) != ((moved,), (loaded,)):
        return None
    at = [nodes.index(statement_of(c.node)) for c in (handed, taken, queued, given)]
    for i, step in enumerate(block.steps):
        if _copies(kernel, block, step.node, (moved, loaded)):
            if not max(at[:2]) < i < min(at[2:]):
                return None
            changed = _changed(kernel, block, {*at, i}, i, at[2], (loaded, moved))
            return _Place(block, step.node, handed, taken, queued, given, changed) if changed is not None else None
    return None


def _copies(kernel: KernelProgram, block: Block, node: Node, names: tuple[str, str]) -> bool:
    """A copy from one tensor to the other, or a choice of which each side is one."""
    if node.type == "if_statement":
        sides = [node.child_by_field_name("consequence"), node.child_by_field_name("alternative")]
        last = [s.named_children[-1] if s is not None and s.type == "else_clause" else s for s in sides]
        return all(s is not None and _copies(kernel, block, s, names) for s in last)
    if node.type == "compound_statement":
        inside = [n for n in node.named_children if n.type != "comment"]
        return len(inside) == 1 and _copies(kernel, block, inside[0], names)
    call = kernel.call_of(block.function, node)
    return call is not None and copies(call) and call.args[:2] == names


def _changed(
    kernel: KernelProgram, block: Block, skipped: set[int], copy: int, queued: int, names: tuple[str, str]
) -> bool | None:
    """Is more done to either tensor? None where one tensor would not do for both."""
    loaded, moved = names
    changed = written = False
    for i, step in enumerate(block.steps):
        words = _WORD.findall(kernel.text(block.function.path, step.node))
        if i in skipped or not {loaded, moved} & set(words):
            continue
        changed = True
        early, late = i < copy and moved in words, i > queued and moved in words
        again = i > copy and loaded in words and (written or not _in_place(kernel, block, step, names))
        if early or late or again:
            return None
        written = written or moved in words
    return changed


def _in_place(kernel: KernelProgram, block: Block, step: BlockStep, names: tuple[str, str]) -> bool:
    """Is the statement an instruction that reads what was loaded where it writes the copy?"""
    call, (loaded, moved) = step.call, names
    if call is None or call.name not in ELEMENTWISE - ACCUMULATING - {"Cast"} or not call.args[0].startswith(moved):
        return False
    there = loaded + call.args[0].removeprefix(moved)
    times = sum(a == there for a in call.args)
    return _WORD.findall(kernel.text(block.function.path, step.node)).count(loaded) == times


def _loads_only(kernel: KernelProgram, q: _Queue) -> bool:
    """Do the functions that take tensors of the queue to load them do nothing else to them?

    The buffer was given back by the vector unit, and is now by the store.
    """
    for taken in q.named("AllocTensor"):
        name = taken_as(kernel, taken)
        if name is None:
            return False
        for c in kernel.calls_in(taken.function):
            by_scalar = c.name == "SetValue" and c.receiver == name
            if (c.name in VECTOR and name in writes(c)) or (by_scalar and not kernel.auto_sync):
                return False
    return True


# -- edits -------------------------------------------------------------------------------------------------------------


def _kind(p: _Place) -> str:
    """The type of elements, as it is spelled where what was loaded is handed over."""
    return p.handed.template.strip()[1:-1]


def _of_half(kernel: KernelProgram, call: ApiCall, like: ApiCall, ends: tuple[str, str], kind: str, queue: str) -> Edit:
    """EnQue or DeQue of ``queue`` for one half of the way; spelled with ``template`` where ``like`` is."""
    called, other = (c.node.child_by_field_name("function") for c in (call, like))
    assert called is not None
    assert other is not None
    word = "template " if re.search(r"\btemplate\b", kernel.text(like.path, other)) else ""
    this = "this->" if call.receiver.startswith("this->") else ""
    at = "AscendC::TPosition::"
    return kernel.replace(call.path, called, f"{this}{queue}.{word}{call.name}<{at}{ends[0]}, {at}{ends[1]}, {kind}>")


def _handed_on(kernel: KernelProgram, call: ApiCall, name: str, to: str) -> Edit:
    """A call of another queue: the member's name in its receiver."""
    called = call.node.child_by_field_name("function")
    assert called is not None
    node = next(
        n for n in walk(called) if n.type in ("identifier", "field_identifier") and kernel.text(call.path, n) == name
    )
    return kernel.replace(call.path, node, to)


def _bound(kernel: KernelProgram, m: _Moved) -> tuple[Edit, ...]:
    first, second, like = m.first, m.second, m.places[0].handed
    space, depth = first.line.found[1] or "", first.line.found[2].strip()
    kind = f"{space}TQueBind<{space}TPosition::VECIN, {space}TPosition::VECOUT, {depth}>"
    edits = [declared_as(kernel, first.line, [first.name], kind), _without(kernel, second)]
    counts = (first.made.args[1], second.made.args[1])
    both = str(sum(map(int, counts))) if all(c.isdigit() for c in counts) else f"{counts[0]} + {counts[1]}"
    edits.append(kernel.replace(first.made.path, first.made.arguments[1], both))
    assert second.made.statement is not None
    edits.append(kernel.delete(second.made.path, second.made.statement))
    edits += [_handed_on(kernel, c, second.name, first.name) for c in second.named("FreeTensor")]
    edits += [kernel.delete(p.given.path, p.given.statement) for p in m.places if p.given.statement is not None]
    if m.changed:
        kind = _kind(m.places[0])
        for c in first.named("EnQue"):
            edits.append(_of_half(kernel, c, like, ("GM", "VECIN"), kind, first.name))
        for c in second.named("DeQue"):
            edits.append(_of_half(kernel, c, like, ("VECOUT", "GM"), kind, first.name))
        for p in m.places:
            edits += _in_halves(kernel, p, first.name)
    else:
        edits += [_handed_on(kernel, c, second.name, first.name) for c in second.named("DeQue")]
        for p in m.places:
            gone = (statement_of(p.handed.node), statement_of(p.taken.node), p.copied, statement_of(p.queued.node))
            edits += [kernel.delete(p.handed.path, n) for n in gone]
    return tuple(edits)


def _in_halves(kernel: KernelProgram, p: _Place, queue: str) -> Iterator[Edit]:
    """The tensor is handed over for what is done to it, and handed on behind."""
    path, statement = p.handed.path, statement_of(p.taken.node)
    yield _of_half(kernel, p.handed, p.handed, ("GM", "VECIN"), _kind(p), queue)
    yield kernel.delete(path, statement)
    text = kernel.text(path, statement)
    yield kernel.replace(path, p.copied, f"{text.partition('=')[0].rstrip()} = {p.loaded};")
    yield _of_half(kernel, p.queued, p.handed, ("VECOUT", "GM"), _kind(p), queue)


def _without(kernel: KernelProgram, q: _Queue) -> Edit:
    """The declaration of a queue taken out."""
    rest = [n for n in q.line.names if n != q.name]
    if not rest:
        data, node = kernel.program.files[q.line.path].data, q.line.node
        start, stop = data.rfind(b"\n", 0, node.start_byte) + 1, data.find(b"\n", node.end_byte)
        alone = stop >= 0 and not data[start : node.start_byte].strip() and not data[node.end_byte : stop].strip()
        return Edit(q.line.path, *((start, stop + 1) if alone else (node.start_byte, node.end_byte)), "")
    return kernel.replace(q.line.path, q.line.node, f"{kernel.text(q.line.path, q.line.type)} {', '.join(rest)};")


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    for m in _found(kernel):
        how = "changed where it was loaded" if m.changed else "stored as it was loaded"
        title = f"what {m.first.name} loads is {how}, without {m.second.name}"
        yield Change(f"{title_of(kernel, m.first.line)}/{m.first.name}", title, _bound(kernel, m))


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """Two queues, and a copy from a tensor of the one to one of the other in front of the store."""
    for q in _queues(kernel, _BOUND):
        handed, made = q.named("DeQue"), q.made
        names = [taken_as(kernel, c) for c in handed]
        plain = all("," not in c.template for c in (*handed, *q.named("EnQue")))
        if len(handed) != 1 or names[0] is None or not plain or made.statement is None:
            continue
        yield Change(
            f"{title_of(kernel, q.line)}/{q.name}", f"{q.name} is two queues", tuple(_apart(kernel, q, names[0]))
        )


def _apart(kernel: KernelProgram, q: _Queue, name: str) -> Iterator[Edit]:
    handed, made, space = q.named("DeQue")[0], q.made, q.line.found[1] or ""
    other, depth = f"{q.name}Out", q.line.found[2].strip()
    yield declared_as(kernel, q.line, [q.name], f"{space}TQue<{space}TPosition::VECIN, {depth}>")
    end = q.line.node.end_byte
    yield Edit(q.line.path, end, end, f"\n  {space}TQue<{space}TPosition::VECOUT, {depth}> {other};")
    count = made.args[1]
    half = str(max(1, int(count) // 2)) if count.isdigit() else count
    assert made.statement is not None
    text = kernel.text(made.path, made.statement).replace(made.args[1], half, 1)
    yield kernel.replace(made.path, made.statement, f"{text} {text.replace(q.name, other, 1)}")
    statement, kind = statement_of(handed.node), handed.template
    lines = (
        f"{space}LocalTensor{kind} loaded = {kernel.text(handed.path, handed.node)};",
        f"{space}LocalTensor{kind} moved = {other}.AllocTensor{kind}();",
        f"{space}DataCopy(moved, loaded, loaded.GetSize());",
        f"{other}.EnQue(moved);",
        f"{q.name}.FreeTensor(loaded);",
    )
    yield kernel.before(handed.path, statement, f"\n{kernel.indent(handed.path, statement)}".join(lines))
    yield kernel.replace(handed.path, handed.node, f"{other}.DeQue{kind}()")
    for c in q.named("FreeTensor"):
        yield _handed_on(kernel, c, q.name, other)


BOUND_QUEUE = Motif(
    name="bound-queue",
    title="One queue for the way in and out",
    description="A tensor that is loaded, copied to another queue's tensor and stored costs a pass of the vector unit "
    "and a second set of buffers. A queue that is bound to both ways (TQueBind) hands over what was loaded to the "
    "store; what is changed on the way is changed in place.",
    bottlenecks=("vector", "memory bandwidth", "copies", "no overlap", "small copies", "scalar"),
    preconditions="Both queues' tensors have one type and length; nobody else takes tensors of the second queue.",
    faster=_faster,
    slower=_slower,
)
