"""Queues made rings of buffers with flags of their own: what TQue keeps account of, the scalar unit pays for.

AllocTensor, EnQue, DeQue and FreeTensor look for a buffer, take an event and give it back. Where buffers go round in
one order, the same handshake is a flag for each buffer, set and waited for in turn, with events that are taken once.

1. A queue is a ring where it is made in one place of each way to begin, with a number of buffers, and nobody in its
   class, or in those derived from it, asks it for anything but those four.
2. Its pipes follow from its position: who fills it, who uses it.
3. Flags that nobody has waited for are waited for where the ring ends.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import Edit
from ...reading.classes import Members, families, in_front, is_of, members, title_of
from ...reading.kernel_program import CLASSES, ApiCall, KernelProgram
from ..motif import Change, Motif

RING = "FlaggedQueue"  # their class
# For classes that hold a queue or a ring: makes its buffers, whichever it is.
MAKE = """\
  template <typename RING>
  __aicore__ static inline auto Make(RING& made, uint32_t count, uint32_t bytes, int)
      -> decltype(made.Begin(count, bytes)) {
    made.Begin(count, bytes);
  }
  template <typename PLAIN>
  __aicore__ static inline void Make(PLAIN& made, uint32_t count, uint32_t bytes, long) {
    AscendC::GetTPipePtr()->InitBuffer(made, count, bytes);
  }
"""
_PIPES = {  # position -> who fills such a buffer, who uses it
    "VECIN": ("MTE2", "V"),
    "VECOUT": ("V", "MTE3"),
    "A1": ("MTE2", "MTE1"),
    "B1": ("MTE2", "MTE1"),
    "C1": ("MTE2", "MTE1"),
    "A2": ("MTE1", "M"),
    "B2": ("MTE1", "M"),
    "C2": ("MTE1", "M"),
    "CO1": ("M", "FIX"),
}
_ASKED = {"AllocTensor": 0, "EnQue": 1, "DeQue": 0, "FreeTensor": 1}  # call -> arguments
_BUFFERS = 8  # of a queue at most, one for each event
_DECLARED = re.compile(r"(?:AscendC::)?TQue\s*<\s*((?:\w+::)*)(\w+)\s*,\s*\w+\s*>")
RINGS = re.compile(rf"{RING}\s*<\s*((?:\w+::)*\w+)\s*,[^<>]*>")
_WORD = re.compile(r"[A-Za-z_]\w*")
RING_CLASS = f"""\
#ifndef FLAGGED_QUEUE
#define FLAGGED_QUEUE
// A queue whose buffers go round: a flag for each of them, of events that are taken once.
template <AscendC::TPosition POSITION, AscendC::HardEvent FULL, AscendC::HardEvent FREE>
class {RING} {{
 public:
  __aicore__ inline void Begin(uint32_t count, uint32_t bytes) {{
    buffers = count;
    length = (bytes + 31) / 32 * 32;
    AscendC::GetTPipePtr()->InitBuffer(memory, buffers * length);
    for (uint32_t i = 0; i < buffers; i++) {{
      full[i] = AscendC::GetTPipePtr()->AllocEventID<FULL>();
      free[i] = AscendC::GetTPipePtr()->AllocEventID<FREE>();
    }}
  }}
  __aicore__ inline ~{RING}() {{
    for (uint32_t i = 0; i < buffers; i++) {{
      if (given[i]) {{
        AscendC::WaitFlag<FREE>(free[i]);
      }}
    }}
  }}
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> AllocTensor() {{
    const uint32_t i = Next(taken);
    if (given[i]) {{
      AscendC::WaitFlag<FREE>(free[i]);
    }}
    given[i] = false;
    return At<T>(i);
  }}
  template <typename T>
  __aicore__ inline void EnQue(const AscendC::LocalTensor<T>&) {{
    AscendC::SetFlag<FULL>(full[Next(told)]);
  }}
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> DeQue() {{
    const uint32_t i = Next(heard);
    AscendC::WaitFlag<FULL>(full[i]);
    return At<T>(i);
  }}
  template <typename T>
  __aicore__ inline void FreeTensor(const AscendC::LocalTensor<T>&) {{
    const uint32_t i = Next(freed);
    AscendC::SetFlag<FREE>(free[i]);
    given[i] = true;
  }}

 private:
  __aicore__ inline uint32_t Next(uint32_t& place) {{
    const uint32_t now = place;
    place = now + 1 == buffers ? 0 : now + 1;
    return now;
  }}
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> At(uint32_t i) {{
    return memory.template Get<T>()[i * (length / sizeof(T))];
  }}

  AscendC::TBuf<POSITION> memory;
  uint32_t buffers = 0, length = 0, taken = 0, told = 0, heard = 0, freed = 0;
  AscendC::TEventID full[{_BUFFERS}], free[{_BUFFERS}];
  bool given[{_BUFFERS}] = {{}};
}};
#endif

"""
# The same, of buffers in memory that others share: what changes (buffers/shared_buffers.py).
SHARED_RING = (
    (" public:\n", " public:\n  AscendC::TBuf<POSITION> memory;\n"),
    (
        "InitBuffer(memory, buffers * length);\n",
        f"""InitBuffer(memory, buffers * length);
    Take(memory.template Get<uint8_t>());
  }}
  // So many buffers, in memory that others share (SharedBuffer).
  __aicore__ inline {RING}& Of(uint32_t count) {{
    buffers = count;
    return *this;
  }}
  __aicore__ inline void Within(const AscendC::LocalTensor<uint8_t>& part, uint32_t bytes) {{
    length = bytes / buffers;
    Take(part);
  }}
  __aicore__ inline void Take(const AscendC::LocalTensor<uint8_t>& part) {{
    room = part;
""",
    ),
    (
        "return memory.template Get<T>()[i * (length / sizeof(T))];",
        "return room[i * length].template ReinterpretCast<T>();",
    ),
    ("  AscendC::TBuf<POSITION> memory;\n  uint32_t", "  AscendC::LocalTensor<uint8_t> room;\n  uint32_t"),
)


@dataclass(frozen=True)
class _Queue:
    """Queues that are declared in one line: where its type stands, and who makes each of them."""

    path: str
    kind: Node  # the type
    position: str  # as written
    names: tuple[str, ...]
    made: tuple[ApiCall, ...]  # InitBuffer of each, one in every way to begin


def _name(expression: str) -> str:
    return expression.removeprefix("this->")


def _declared(kernel: KernelProgram) -> Iterator[tuple[str, Node, str, tuple[str, ...]]]:
    """(path, type, position, names) of each member that is a TQue; a list of queues has no names."""
    for queue in members(kernel, _DECLARED):
        if queue.found[2] in _PIPES:
            yield queue.path, queue.type, queue.found[1] + queue.found[2], queue.names


@dataclass(frozen=True)
class _Uses:
    """What methods of a class, and of those derived from it, do with names; branches of other tiling keys included,
    because they are compiled as well."""

    made: dict[str, list[ApiCall]]  # InitBuffer, by queue
    asked: Counter[str]
    words: Counter[str]

    def ring(self, name: str) -> bool:
        """Is the queue made where nothing else is asked of it, and asked for those four things only?"""
        made = self.made.get(name, [])
        places = {(c.path, c.function.node.start_byte) for c in made}
        askers = {(c.path, c.function.node.start_byte) for c in self.calls if _name(c.receiver) == name}
        whole = self.words[name] == self.asked[name] + len(made) and self.asked[name] >= len(_ASKED)
        return bool(made) and len(places) == len(made) and not places & askers and whole

    calls: tuple[ApiCall, ...]


def _uses(kernel: KernelProgram, classes: frozenset[str]) -> _Uses:
    calls = tuple(c for f in kernel.program.functions if kernel.class_of(f) in classes for c in kernel.calls_in(f))
    made: dict[str, list[ApiCall]] = {}
    for call in calls:
        if call.name == "InitBuffer" and len(call.args) == 3 and call.statement is not None:
            made.setdefault(_name(call.args[0]), []).append(call)
    asks = tuple(c for c in calls if _ASKED.get(c.name) == len(c.args))
    texts = (kernel.text(f.path, f.node) for f in kernel.program.functions if kernel.class_of(f) in classes)
    words = Counter(w for text in texts for w in _WORD.findall(text))
    return _Uses(made, Counter(_name(c.receiver) for c in asks), words, asks)


def _class_around(kernel: KernelProgram, path: str, node: Node) -> str:
    while node.parent is not None and node.type not in CLASSES:
        node = node.parent
    return kernel.title(path, node)


def _queues(kernel: KernelProgram) -> Iterator[_Queue]:
    family_of = families(kernel)
    live = {kernel.class_of(f) for f in kernel.functions}
    declared = [(_class_around(kernel, row[0], row[1]), *row) for row in _declared(kernel)]
    uses = {owner: _uses(kernel, family_of.get(owner, frozenset())) for owner, *_ in declared}
    for owner, path, kind, position, names in declared:
        family = family_of.get(owner, frozenset())
        often = Counter(name for other, *_, theirs in declared if other in family for name in theirs)
        if names and family & live and all(often[n] == 1 and uses[owner].ring(n) for n in names):
            yield _Queue(path, kind, position, names, tuple(c for n in names for c in uses[owner].made[n]))


def _edits(kernel: KernelProgram, queue: _Queue) -> tuple[Edit, ...]:
    fills, uses = _PIPES[queue.position.rpartition(":")[2]]
    event = "AscendC::HardEvent::{}_{}".format
    ring = f"{RING}<{queue.position}, {event(fills, uses)}, {event(uses, fills)}>"
    edits = [kernel.replace(queue.path, queue.kind, ring)]
    for call in queue.made:
        queued, count, length = call.args
        edits.append(kernel.replace(call.path, call.node, f"{queued}.Begin({count}, {length})"))
    return tuple(edits)


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    found = list(_queues(kernel))
    first: dict[str, Edit | None] = {}
    for q in found:
        first.setdefault(q.path, in_front(kernel, q.path, q.kind, RING, RING_CLASS))
    if len(found) > 1:
        every = tuple(e for q in found for e in _edits(kernel, q))
        count = sum(len(q.names) for q in found)
        written = [e for e in first.values() if e is not None]
        yield Change("all", f"{count} queues made rings with flags of their own", (*written, *every))
    for q in found:
        names, own = ", ".join(q.names), first[q.path]
        edits = (*([own] if own is not None else ()), *_edits(kernel, q))
        yield Change(f"{names}/ring", f"{names} made a ring with flags of its own", edits)


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """Rings of this motif made queues again; their class stays."""
    for ring in members(kernel, RINGS):
        edits = [kernel.replace(ring.path, ring.type, f"TQue<{ring.found[1]}, 1>")]
        for call in kernel.named("Begin"):
            if _name(call.receiver) in ring.names and len(call.args) == 2:
                made = f"GetTPipePtr()->InitBuffer({call.receiver}, {', '.join(call.args)})"
                edits.append(kernel.replace(call.path, call.node, made))
        names = ", ".join(ring.names)
        yield Change(f"{names}/queue", f"{names} made a queue", tuple(edits))


# -- classes that hold a queue, made the queue again -------------------------------------------------------------------


def as_queue(
    kernel: KernelProgram, line: Members, name: str, others: Callable[[ApiCall], Iterable[Edit]]
) -> tuple[Edit, ...]:
    """Edits that make a member the queue that its class holds: its type, ``Begin``, and what ``others`` makes of other
    calls. The type is the first group of what ``line`` was found by."""
    edits = [kernel.replace(line.path, line.type, line.found[1])]
    for c in kernel.calls:
        if c.receiver.removeprefix("this->") != name or not is_of(kernel, line, c.function):
            continue
        if c.name == "Begin":
            made = f"AscendC::GetTPipePtr()->InitBuffer({c.receiver}, {', '.join(c.args)})"
            edits.append(kernel.replace(c.path, c.node, made))
        else:
            edits += others(c)
    return tuple(edits)


def as_own(kernel: KernelProgram, line: Members, name: str, own: str, text: str, more: str = "") -> Iterator[Edit]:
    """Edits that make a member of a queue's type one of the class ``own``, which holds the queue; the rest of its line
    stays. ``text``: the class, written where the file hasn't it; ``more``: its further template arguments."""
    kind = kernel.text(line.path, line.type)
    written = in_front(kernel, line.path, line.type, own, text)
    if written is not None:
        yield written
    others = ", ".join(n for n in line.names if n != name)
    rest = f"{kind} {others};\n{kernel.indent(line.path, line.node)}" if others else ""
    yield kernel.replace(line.path, line.node, f"{rest}{own}<{kind}{more}> {name};")


def queues_again(
    kernel: KernelProgram, own: re.Pattern[str], others: Callable[[ApiCall], Iterable[Edit]], said: str
) -> Iterator[Change]:
    """Each member of a class that holds a queue made the queue (:func:`as_queue`). ``own``: finds the members."""
    for line in members(kernel, own):
        for name in line.names if len(line.names) == 1 else ():
            yield Change(f"{title_of(kernel, line)}::{name}", f"{name} {said}", as_queue(kernel, line, name, others))


def unguarded(call: ApiCall) -> Iterator[Edit]:
    """What stands behind ``if (call)`` without the condition."""
    branch: Node | None = call.node
    while branch is not None and branch.type != "if_statement":
        branch = branch.parent
    inner = branch.child_by_field_name("consequence") if branch is not None else None
    if branch is not None and inner is not None and inner.named_children:
        yield Edit(call.path, branch.start_byte, inner.named_children[0].start_byte, "")
        yield Edit(call.path, inner.named_children[-1].end_byte, branch.end_byte, "")


RINGS_FOR_QUEUES = Motif(
    name="rings-for-queues",
    title="Flags for each buffer instead of a queue",
    description="AllocTensor, EnQue, DeQue and FreeTensor look for a buffer and take and give back an event each time. "
    "Where buffers go round in one order, a flag for each of them, of events that are taken once, does the same for a "
    "fraction of the scalar unit's time, which short steps wait for.",
    bottlenecks=("scalar", "waits between pipes", "matrix unit", "no overlap", "copies"),
    preconditions="Buffers are taken, queued, taken out and given back in one order; events of all queues between two "
    "pipes are at most 8.",
    faster=_faster,
    slower=_slower,
    together="behind",
)
