"""The same cast twice in one block, its source the same, because the first result was written over for want of room:
it goes into memory of its own, and who read either reads that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .....sources.cpp import Edit
from ...reading.api import is_barrier, root
from ...reading.classes import merged, unused
from ...reading.kernel_program import ApiCall, KernelProgram, flat, neighbour, siblings
from ...reading.readers import Readers, Unclear
from ...reading.room import room
from ...reading.steady import Steady
from ..motif import Change, Motif
from .kept_tensors import MEMBER, member_of

_ROOM = 32768  # bytes: a tile of float
_WORD = re.compile(r"[A-Za-z_]\w*")


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    facts = kernel.once(Steady)
    first = unused(kernel, MEMBER)
    for call in kernel.named("Cast"):
        again = _again(kernel, facts, call) if call.statement is not None else None
        if again is not None and call.statement is not None:
            site = kernel.site(call.function, call.statement)
            change = f"Cast in {call.function.name} done once instead of twice"
            edits = _in_own_memory(kernel, facts, call, again, f"{MEMBER}{first}")
            yield Change(site, change, edits)
            shorter = tuple(room(kernel, _ROOM))
            if edits and shorter:
                yield Change(f"{site}/room", f"{change}, tiles shorter by the room", edits, shorter)


def _again(kernel: KernelProgram, facts: Steady, call: ApiCall) -> ApiCall | None:
    """The same cast later in the block, of a source that is the same, into a tensor that was written over."""
    assert call.statement is not None
    if len(call.args) != 4 or kernel.class_node(call.function) is None:
        return None
    text, f = flat(kernel.text(call.path, call.statement)), call.function
    later = [s for s in siblings(call.statement) if s.start_byte > call.statement.start_byte]
    second = next((s for s in later if flat(kernel.text(call.path, s)) == text), None)
    again = kernel.call_of(f, second)
    source = root(call.args[1])
    if second is None or again is None or source == root(call.args[0]):
        return None
    start, end = call.statement.end_byte, second.start_byte
    words = set(_WORD.findall(f"{call.args[1]}, {call.args[3]}"))
    if any(start < n.start_byte < end for w in words for n, _ in facts.made(f).get(w, ())):
        return None
    given = (c for c in kernel.calls_of(f) if c.name in ("EnQue", "FreeTensor") and source in map(root, c.args))
    written = (c for n in (source, *facts.views(f, source)) for c in facts.writers(f, n))
    changes = [c.node.start_byte for c in (*written, *given)]
    return again if not any(start < at < end for at in changes) else None


def _in_own_memory(
    kernel: KernelProgram, facts: Steady, call: ApiCall, again: ApiCall, member: str
) -> tuple[Edit, ...]:
    """The first one's result in memory of its own, the second one taken out; nothing where readers aren't known."""
    assert call.statement is not None
    assert again.statement is not None
    try:
        readers = [n for c in (call, again) for n in Readers(facts, c, c.args[0]).found]
    except Unclear:
        return ()
    place = f"{member}At"
    indent = kernel.indent(call.path, call.statement)
    made = f"auto {place} = {member}.In({call.args[0]}, {call.args[3]});\n{indent}"
    edits = [
        Edit(call.path, call.statement.start_byte, call.statement.start_byte, made),
        kernel.replace(call.path, call.arguments[0], place),
        *(kernel.replace(call.path, n, place) for n in readers),
        kernel.delete(call.path, again.statement),
    ]
    behind = kernel.call_of(call.function, neighbour(again.statement, 1))
    before = kernel.call_of(call.function, neighbour(again.statement, -1))
    if behind and before and is_barrier(behind, "PIPE_V") and is_barrier(before, "PIPE_V") and behind.statement:
        edits.append(kernel.delete(call.path, behind.statement))
    return merged([*edits, *member_of(kernel, call.function, member)])


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """A cast that is done twice, for nothing."""
    for call in kernel.named("Cast"):
        statement = call.statement
        if statement is None or len(call.args) != 4 or not kernel.repeated(call.function, call.node):
            continue
        if statement.parent is None or statement.parent.type != "compound_statement":
            continue
        if root(call.args[0]) in map(root, call.args[1:]):
            continue
        text = kernel.text(call.path, statement)
        barrier = "" if kernel.auto_sync else " PipeBarrier<PIPE_V>();"
        edit = kernel.before(call.path, statement, f"{text}{barrier}")
        yield Change(kernel.site(call.function, statement), f"Cast in {call.function.name} done twice", (edit,))


CAST_ONCE = Motif(
    name="cast-once",
    title="Cast once",
    description="A cast that is done again because its result was written over costs a pass over the tile. With memory "
    "of its own the first result is read wherever either was.",
    bottlenecks=("vector", "vector barriers", "short vector instructions"),
    preconditions="The source is the same both times; UB has room for the result.",
    faster=_faster,
    slower=_slower,
    together="no",
)
