"""Tensors of queues that nobody queues: what is taken and given back, but never put in or taken out, is a TBuf.

AllocTensor looks for a free buffer and FreeTensor gives it back, each with an event of its own; a TBuf has neither.

1. A queue of the Unified Buffer of which nothing is asked but AllocTensor and FreeTensor, by the methods of its class
   and of those derived from it.
2. It is *kept* where it is taken in one place that runs once (or in either side of a choice there): nobody ever waits
   for a buffer that was given back.
3. It is *scratch* where each function that takes a tensor gives it back, and no copy between it and global memory is
   ordered by that: vector and scalar unit alone use it. With several buffers only where the compiler synchronizes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tree_sitter import Node

from .....sources.cpp import Edit, Function, apply_edits, walk
from ...reading.classes import Members, title_of
from ...reading.kernel_program import ApiCall, KernelProgram, siblings, where
from ...reading.member_calls import declared_as, member_uses, members_of_type, renamed, statement_of, taken_as
from ...reading.traced import Buffers, Trace, UnclearTrace
from ..motif import Change, Motif

_QUEUE = re.compile(r"(?:AscendC::)?TQue\s*<\s*(?:\w+::)*(?:VECCALC|VECIN|VECOUT)\s*,[^;]*>", re.DOTALL)
_BUFFER = re.compile(r"(?:AscendC::)?TBuf\s*<\s*(?:(?:\w+::)*(?:VECCALC|VECIN|VECOUT)\s*)?>")
_LEAVES = ("return_statement", "goto_statement")


@dataclass(frozen=True)
class _Queue:
    """A queue that is never queued in: its line, its name, and the calls that make it, take of it and give back."""

    line: Members
    name: str
    made: tuple[ApiCall, ...]
    taken: tuple[ApiCall, ...]
    given: tuple[ApiCall, ...]
    kept: bool


def _found(kernel: KernelProgram) -> Iterator[_Queue]:
    for line, name, own in members_of_type(kernel, _QUEUE):
        uses = member_uses(kernel, own, name)
        if uses is None or not {c.name for c in uses} <= {"InitBuffer", "AllocTensor", "FreeTensor"}:
            continue
        made, taken, given = (
            tuple(c for c in uses if c.name == n) for n in ("InitBuffer", "AllocTensor", "FreeTensor")
        )
        whole = all(len(c.args) == 3 for c in made) and all(c.statement is not None for c in given)
        if not made or not taken or not whole or any(taken_as(kernel, c) is None for c in taken):
            continue
        kept = _runs_once(kernel, taken, own)
        if kept or _is_scratch(kernel, made, taken, given):
            yield _Queue(line, name, made, taken, given, kept)


def _runs_once(kernel: KernelProgram, taken: tuple[ApiCall, ...], own: Iterable[Function]) -> bool:
    """Is a tensor taken once in a kernel's life: in one place, or in one of the sides of choices?"""
    classes = {kernel.class_of(f) for f in own}
    f = taken[0].function
    if any(where(c.function) != where(f) or kernel.repeated(f, c.node) for c in taken):
        return False
    if sum(kernel.class_of(c.function) in classes for c in kernel.named(f.name)) > 1:
        return False
    return all(_apart(a.node, b.node) for a in taken for b in taken if a.node.start_byte < b.node.start_byte)


def _apart(a: Node, b: Node) -> bool:
    """Do two places stand in different sides of one choice?"""
    node = a.parent
    while node is not None and not node.start_byte <= b.start_byte < node.end_byte:
        node = node.parent
    if node is None or node.type != "if_statement":
        return False
    other = node.child_by_field_name("alternative")
    return other is not None and other.start_byte <= b.start_byte


def _is_scratch(
    kernel: KernelProgram, made: tuple[ApiCall, ...], taken: tuple[ApiCall, ...], given: tuple[ApiCall, ...]
) -> bool:
    ones = {"1", *(c.name for c in kernel.constants if c.value == 1)}
    if not kernel.auto_sync and any(c.args[1] not in ones for c in made):
        return False
    functions = {where(c.function): c.function for c in (*taken, *given)}
    for key, f in functions.items():
        mine, back = ([c for c in calls if where(c.function) == key] for calls in (taken, given))
        if _reached(kernel, f) & set(functions) or not _in_turn(kernel, mine, back):
            return False
        copied = _copied(kernel, f)
        if copied is None or copied & {f"queue:{taken_as(kernel, c)}" for c in mine}:
            return False
    return True


def _in_turn(kernel: KernelProgram, taken: list[ApiCall], given: list[ApiCall]) -> bool:
    """Is each tensor of a function given back in the block that it is taken in, before the next one is taken?"""
    calls = sorted((*taken, *given), key=lambda c: c.node.start_byte)
    if len(calls) % 2:
        return False
    for one, two in zip(calls[::2], calls[1::2], strict=True):
        alike = one in taken and two in given and two.args == (taken_as(kernel, one),)
        if not alike or statement_of(two.node) not in siblings(statement_of(one.node)):
            return False
    return True


def _reached(kernel: KernelProgram, f: Function) -> set[tuple[str, int, int]]:
    """Functions that one calls, directly or not."""
    out: set[tuple[str, int, int]] = set()
    pending = [f]
    while pending:
        names = {c.name for c in kernel.calls_in(pending.pop())}
        for g in kernel.functions:
            if g.name.partition("<")[0] in names and where(g) not in out:
                out.add(where(g))
                pending.append(g)
    return out


def _copied(kernel: KernelProgram, f: Function) -> set[str] | None:
    """Buffers, and ``queue:`` with its name, of all tensors that a function copies from or to global memory; None
    where that isn't clear."""
    try:
        trace = Trace(Buffers(kernel, f)).run(f, list(f.body.named_children))
    except UnclearTrace:
        return None
    return {u for s in trace.steps if s.kind in ("load", "store") for u in (*s.units, *s.buffers)}


# -- edits -------------------------------------------------------------------------------------------------------------


def _spelled(kernel: KernelProgram, line: Members, queue: bool = False) -> str:
    space = "AscendC::" if kernel.text(line.path, line.type).startswith("AscendC::") else ""
    return f"{space}TQue<{space}TPosition::VECCALC, 1>" if queue else f"{space}TBuf<{space}TPosition::VECCALC>"


def _as_buffers(kernel: KernelProgram, queues: Iterable[_Queue]) -> tuple[Edit, ...]:
    edits: list[Edit] = []
    lines: dict[tuple[str, int], tuple[Members, list[str]]] = {}
    for q in queues:
        lines.setdefault((q.line.path, q.line.node.start_byte), (q.line, []))[1].append(q.name)
        for c in q.made:
            _, count, length = c.arguments
            edits.append(Edit(c.path, count.start_byte, length.start_byte, ""))
        edits += [renamed(kernel, c, "Get") for c in q.taken]
        edits += [kernel.delete(c.path, c.statement) for c in q.given if c.statement is not None]
    edits += [declared_as(kernel, line, names, _spelled(kernel, line)) for line, names in lines.values()]
    return tuple(edits)


def kept_as_buffers(kernel: KernelProgram) -> KernelProgram | None:
    """The kernel with TBufs for queues of which one tensor is taken and kept; None where there is none.

    The texts parse as well as before; motifs for buffers by hand look there for what they make of the kernel.
    """
    kept = [q for q in kernel.once(_queues) if q.kept]
    return replace(kernel, files=apply_edits(kernel.files, _as_buffers(kernel, kept))) if kept else None


def _queues(kernel: KernelProgram) -> tuple[_Queue, ...]:
    return tuple(_found(kernel))


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    queues = kernel.once(_queues)
    if len(queues) > 1:
        yield Change("all", f"{len(queues)} queues that nobody queues in are buffers", _as_buffers(kernel, queues))
    for q in queues:
        title = f"{q.name} is a buffer: nobody queues in it"
        yield Change(f"{title_of(kernel, q.line)}/{q.name}", title, _as_buffers(kernel, [q]))


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """A buffer that one function takes for itself, as a queue that it takes a tensor from and gives it back to."""
    for line, name, own in members_of_type(kernel, _BUFFER):
        uses = member_uses(kernel, own, name) or []
        made, got = ([c for c in uses if c.name == n] for n in ("InitBuffer", "Get"))
        if len(uses) != len(made) + len(got) or len(got) != 1 or any(len(c.args) != 2 for c in made) or got[0].args:
            continue
        f, block = got[0].function, siblings(statement_of(got[0].node))
        variable = taken_as(kernel, got[0])
        alone = "LocalTensor" in kernel.text(f.path, statement_of(got[0].node)).partition("=")[0]
        if variable is None or not alone or any(n.type in _LEAVES for n in walk(f.body)):
            continue
        copied = _copied(kernel, f)
        if block[-1].parent != f.body or copied is None or name in copied:
            continue
        edits = [Edit(c.path, n.start_byte, n.start_byte, "1, ") for c in made for n in c.arguments[1:]]
        edits += [
            declared_as(kernel, line, [name], _spelled(kernel, line, True)),
            renamed(kernel, got[0], "AllocTensor"),
        ]
        edits.append(kernel.after(f.path, block[-1], f"{name}.FreeTensor({variable});"))
        yield Change(f"{title_of(kernel, line)}/{name}", f"{name} is taken from a queue and given back", tuple(edits))


UNQUEUED = Motif(
    name="unqueued-tensors",
    title="No queue for what isn't queued",
    description="AllocTensor and FreeTensor look for a buffer and take and give back an event, each some tens of the "
    "scalar unit's cycles. A tensor that nobody puts into its queue, scratch of the vector unit or one that is kept "
    "for good, is a TBuf.",
    bottlenecks=("scalar", "no overlap", "launch"),
    preconditions="Of the queue nothing is asked but tensors; no copy from or to global memory is ordered by giving "
    "one back; one tensor at a time.",
    faster=_faster,
    slower=_slower,
)
