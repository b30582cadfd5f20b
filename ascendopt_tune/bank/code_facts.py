"""What the syntax trees of a kernel show that may cost time, in short phrases: the half of the symptoms a profile
doesn't show. Facts are read from code that runs more than once; they know nothing of motifs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from tree_sitter import Node

from ..search.kernel.reading.api import BINARY, COPY, SCALAR, VECTOR, depend, reads, root, writes
from ..search.kernel.reading.kernel_program import ApiCall, KernelProgram, flat, loops_around, neighbour
from ..sources.cpp import walk

_QUEUE = re.compile(r"\bTQue\w*\s*<")
_NAME = re.compile(r"[A-Za-z_]\w*")


def code_facts(kernel: KernelProgram) -> Iterator[str]:
    """The phrases, in a fixed order."""
    calls = [c for c in kernel.calls if kernel.repeated(c.function, c.node)]
    yield from _order(kernel, calls)
    yield from _buffers(kernel)
    yield from _scalar(calls)
    yield from _copies(kernel, [c for c in calls if c.name in COPY])
    yield from _vector(kernel, [c for c in calls if c.name in VECTOR])
    yield from _unchanged(kernel, calls)


def _many(n: int, what: str) -> Iterator[str]:
    if n:
        yield f"{'one' if n == 1 else 'several' if n < 6 else 'many'} {what}"


def _next(kernel: KernelProgram, call: ApiCall, step: int = 1) -> ApiCall | None:
    """The call that is the neighbouring statement of a call, or None."""
    found = neighbour(call.statement, step) if call.statement is not None else None
    if found is None or found.type != "expression_statement" or not found.named_children:
        return None
    node = found.named_children[0]
    return kernel.call_at(call.function, node) if node.type == "call_expression" else None


def _order(kernel: KernelProgram, calls: Sequence[ApiCall]) -> Iterator[str]:
    """Barriers, flags and meetings."""
    barriers = [c for c in calls if c.name in ("PipeBarrier", "pipe_barrier")]
    everything = [c for c in barriers if "PIPE_ALL" in c.template + "".join(c.args)]
    yield from _many(len(everything), "barriers of all pipes (PIPE_ALL)")
    needless = 0
    for c in barriers:
        before, after = _next(kernel, c, -1), _next(kernel, c)
        if c not in everything and before is not None and after is not None:
            both = before.name in VECTOR and after.name in VECTOR
            needless += after.name == c.name or (both and not depend(before, after))
    yield from _many(needless, "vector barriers between instructions without a common operand")
    at_once = 0
    for c in calls:
        following = _next(kernel, c) if c.name == "SetFlag" else None
        at_once += following is not None and (following.name, following.args) == ("WaitFlag", c.args)
    yield from _many(at_once, "flags set and awaited at once (SetFlag, WaitFlag)")
    meetings = [c for c in calls if c.name in ("SyncAll", "IBSet", "IBWait")]
    yield from _many(len(meetings), "meetings of cores (SyncAll)")


def _buffers(kernel: KernelProgram) -> Iterator[str]:
    """How many buffers queues get, as far as literals and named constants tell; tensors that are held too long."""
    named = {c.name: c.value for c in kernel.constants}
    queues = {name for text in kernel.files.values() for name in _declared_queues(text)}
    single = 0
    for c in kernel.named("InitBuffer"):
        if len(c.args) == 3 and root(c.args[0]) in queues:
            number = c.args[1].strip()
            single += (int(number) if number.isdecimal() else named.get(number.split("::")[-1])) == 1
    yield from _many(single, "queues with a single_buffer")
    late = 0
    for c in kernel.named("FreeTensor"):
        before = _next(kernel, c, -1)
        late += before is not None and before.name != "FreeTensor" and not _mentions(before, c.args[:1])
    yield from _many(late, "tensors freed behind work that doesn't use them (FreeTensor)")


def _mentions(call: ApiCall, names: Sequence[str]) -> bool:
    return any(root(n) in _NAME.findall(a) for n in names for a in (*call.args, call.receiver))


def _declared_queues(text: str) -> Iterator[str]:
    for found in _QUEUE.finditer(text):
        declaration = text[found.start() : text.find(";", found.start())]
        yield from re.findall(r"\b([A-Za-z_]\w*)\b(?=\s*(?:[,\[]|$))", declaration.rpartition(">")[2])


def _scalar(calls: Sequence[ApiCall]) -> Iterator[str]:
    """Elements that the scalar unit reads and writes."""
    elements = [c for c in calls if c.name in ("GetValue", "SetValue")]
    looped = [c for c in elements if _by_counter(c)]
    yield from _many(len(looped), "elements accessed one by one in a loop (GetValue, SetValue)")
    yield from _many(len(elements) - len(looped), "single elements read by the scalar unit (GetValue)")
    read = Counter((c.function.name, c.receiver, flat(str(c.args))) for c in elements if c.name == "GetValue")
    yield from _many(sum(n > 1 for n in read.values()), "elements read more than once")


def _by_counter(call: ApiCall) -> bool:
    """Does an operand name the counter of the innermost loop around the call?"""
    loops = loops_around(call.node, call.function)[:1]
    return any(_counters(loop) & {n for a in call.args for n in _NAME.findall(a)} for loop in loops)


def _copies(kernel: KernelProgram, copies: Sequence[ApiCall]) -> Iterator[str]:
    """Copies from and to global memory, by the names of their operands."""
    moved = [c for c in copies if _global(c)]
    rows = [c for c in moved if _by_counter(c) and _only_copies(kernel, c)]
    yield from _many(len(rows), "loops that copy one row a turn")
    padded = sum(c.name == "DataCopyPad" for c in moved)
    yield from _many(padded, "copies that count bytes (DataCopyPad)")
    yield from _many(len(moved) - padded, "copies of whole blocks (DataCopy)")


def _global(copy: ApiCall) -> bool:
    return any(re.search(r"gm|global", a, re.IGNORECASE) for a in copy.args[:2])


def _only_copies(kernel: KernelProgram, call: ApiCall) -> bool:
    """Is there no vector instruction in the innermost loop around the copy?"""
    loop = loops_around(call.node, call.function)[0]
    return not any(c.name in VECTOR for c in _inside(kernel, call, loop))


def _inside(kernel: KernelProgram, call: ApiCall, loop: Node) -> list[ApiCall]:
    same = (c for c in kernel.calls if c.path == call.path)
    return [c for c in same if loop.start_byte <= c.node.start_byte < loop.end_byte]


def _vector(kernel: KernelProgram, vector: Sequence[ApiCall]) -> Iterator[str]:
    """Vector instructions: parts, repetitions, and what one hands to the next."""
    if not vector:
        yield "no vector instruction in repeated code"
    yield from _many(sum(map(_by_counter, vector)), "vector instructions on one part of a tensor a turn")
    again = Counter((c.function.node.start_byte, c.name, flat(str(c.args))) for c in vector)
    yield from _many(sum(n > 1 for n in again.values()), "instructions that occur twice with the same operands")
    pairs = [(a, b) for a, b in pairwise(vector) if a.function == b.function and writes(a) & reads(b)]
    facts: dict[str, Callable[[ApiCall, ApiCall], bool]] = {
        "tensors filled and then read once (Duplicate)": lambda a, b: a.name == "Duplicate" and b.name in BINARY,
        "chains of two scalar operands (Muls Muls, Adds Adds)": lambda a, b: a.name == b.name and a.name in SCALAR,
        "products that are added at once (Mul Add)": lambda a, b: a.name[:3] == "Mul" and b.name[:3] in ("Add", "Sub"),
    }
    for what, holds in facts.items():
        yield from _many(sum(holds(a, b) for a, b in pairs), what)
    yield from _many(sum(_moves(a) for a, _ in pairs), "moves by arithmetic (Adds 0, Muls 1)")
    steps = [c for c in kernel.calls if c.name in VECTOR or (c.name in COPY and not _global(c))]
    copied = [(a, b) for a, b in pairwise(steps) if a.name in COPY and a.function == b.function]
    yield from _many(sum(bool(writes(a) & reads(b)) for a, b in copied), "tensors copied inside UB and then worked on")


def _moves(call: ApiCall) -> bool:
    """Does the instruction only move data inside UB?"""
    number = re.sub(r"static_cast<\w+>|[()fFuUT]|\.0*$", "", call.args[2]) if len(call.args) > 2 else ""
    return call.name == "Copy" or (call.name == "Adds" and number == "0") or (call.name == "Muls" and number == "1")


def _unchanged(kernel: KernelProgram, calls: Sequence[ApiCall]) -> Iterator[str]:
    """Instructions in a loop that changes nothing they read."""
    same = 0
    for c in calls:
        loops = loops_around(c.node, c.function)
        if loops and c.name in VECTOR | COPY and c.statement is not None:
            others = [o for o in _inside(kernel, c, loops[0]) if o.node != c.node]
            changed = _counters(loops[0]) | _assigned(loops[0])
            changed = changed.union(*(writes(o) for o in others), *(_written(o) for o in others))
            same += not changed & {n for a in c.args for n in _NAME.findall(a)}
    yield from _many(same, "instructions in a loop that changes nothing they read")


def _written(call: ApiCall) -> set[str]:
    """Names an unknown call may change: all it is given."""
    known = VECTOR | COPY | {"PipeBarrier", "FreeTensor", "EnQue"}
    return set() if call.name in known else {n for a in call.args for n in _NAME.findall(a)}


def _names(node: Node | None) -> set[str]:
    return set(_NAME.findall((node.text or b"").decode("utf-8", "replace"))) if node is not None else set()


def _counters(loop: Node) -> set[str]:
    return _names(loop.child_by_field_name("initializer")) | _names(loop.child_by_field_name("update"))


def _assigned(loop: Node) -> set[str]:
    """Names declared or assigned in the loop."""
    out: set[str] = set()
    for node in walk(loop):
        if node.type in ("init_declarator", "assignment_expression", "update_expression"):
            out |= _names(node.child_by_field_name("declarator") or node.child_by_field_name("left") or node)
    return out
