"""Unit flags: L0C handed from the matrix unit to Fixpipe piece by piece, as it is made, instead of by a flag.

A flag (of SetFlag and WaitFlag, or of a queue) says that a whole result is there. With ``unitFlag`` in Mmad and Fixpipe
the core keeps a flag for every 512 bytes: all products of a sum but the last leave them as they are (2), the last one
raises them (3), and Fixpipe takes what is raised and lowers it (3).

1. What happens in order, with own functions in the place of their calls: products, handing over, bringing out.
2. The products of a sum are those in front of where it is handed over. Which turn is the last one the loops around them
   say that aren't around the handing over.
3. Rows leave as rows of tiles are made where products go along n first: SetMMRowMajor (asc-devkit, UnitFlag).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from tree_sitter import Node

from .....sources.cpp import Edit, Function, walk
from ...reading.counted import counted_loops
from ...reading.kernel_program import ApiCall, KernelProgram, loops_around
from ..motif import Change, Motif

_MADE, _OUT = ("Mmad", "MmadWithSparse"), ("Fixpipe",)
_ORDER = ("SetMMRowMajor", "SetMMColumnMajor", "SetMMLayoutTransform")
_EVENT = re.compile(r"<\s*(?:AscendC::)?HardEvent::M_FIX\s*>")
_QUEUE = re.compile(
    r"(?:AscendC::)?TQue\s*<\s*((?:\w+::)*CO1)\s*,\s*\w+\s*>|FlaggedQueue\s*<\s*((?:\w+::)*CO1)\s*,[^<>]*>"
)
_PARAMS = r"\b(?:Mmad|Fixpipe)Params\w*(?:<[^;{{}}]*>)?\s+{}\b"
_MAKES = re.compile(r"(?:AscendC::)?(?:Mmad|Fixpipe)Params\w*(?:<.*?>)?\s*[({]", re.DOTALL)
_PLAIN = re.compile(r"[\w.:]+")
_DEPTH = 8  # functions from the entry on
_ENTERED = 5000  # functions that are looked into, each way to them; kernels with more are left alone
_LAST, _COPY = "lastOfSums", "flagged"
_CLASS = """\
#ifndef UNIT_FLAGGED
#define UNIT_FLAGGED
// Buffers of L0C that go round; unit flags hand over what is in them, so that nobody sets a flag here or waits for one.
template <AscendC::TPosition POSITION>
class UnitFlagged {
 public:
  __aicore__ inline void Begin(uint32_t count, uint32_t bytes) {
    buffers = count;
    length = (bytes + 31) / 32 * 32;
    AscendC::GetTPipePtr()->InitBuffer(memory, buffers * length);
  }
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> AllocTensor() {
    return Next<T>(taken);
  }
  template <typename T>
  __aicore__ inline void EnQue(const AscendC::LocalTensor<T>&) {}
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> DeQue() {
    return Next<T>(heard);
  }
  template <typename T>
  __aicore__ inline void FreeTensor(const AscendC::LocalTensor<T>&) {}

 private:
  template <typename T>
  __aicore__ inline AscendC::LocalTensor<T> Next(uint32_t& place) {
    const uint32_t now = place;
    place = now + 1 == buffers ? 0 : now + 1;
    return memory.template Get<T>()[now * (length / sizeof(T))];
  }

  AscendC::TBuf<POSITION> memory;
  uint32_t buffers = 0, length = 0, taken = 0, heard = 0;
};
#endif

"""


@dataclass(frozen=True)
class _Event:
    """A call, and how it is got to: the functions from the entry on, each with the call in it that leads further."""

    call: ApiCall
    chain: tuple[ApiCall, ...]


@dataclass
class _Handover:
    """Products of a sum, where it is handed over, and how it leaves."""

    made: list[_Event]
    told: list[_Event] = field(default_factory=list)
    out: list[_Event] = field(default_factory=list)


# -- what happens in order ---------------------------------------------------------------------------------------------


def _called(kernel: KernelProgram, call: ApiCall) -> list[Function]:
    """The kernel's own functions that a call may be of; of the caller's class where it is of its own."""
    found = [f for f in kernel.functions if f.name == call.name]
    if call.receiver not in ("", "this"):
        return found
    own = [f for f in found if kernel.class_of(f) == kernel.class_of(call.function)]
    return own or found


def _events(kernel: KernelProgram, queues: Sequence[str]) -> Iterator[_Event]:
    calls: dict[tuple[str, int], list[ApiCall]] = {}
    for call in kernel.calls:
        calls.setdefault((call.path, call.function.node.start_byte), []).append(call)
    leading = _leading(kernel, queues)
    called_by: dict[int, list[Function]] = {}
    entered = 0

    def run(f: Function, chain: tuple[ApiCall, ...]) -> Iterator[_Event]:
        nonlocal entered
        entered += 1
        for call in calls.get((f.path, f.node.start_byte), ()) if entered < _ENTERED else ():
            if _tells(call, queues) or call.name in (*_MADE, *_OUT):
                yield _Event(call, (*chain, call))
            elif call.name in leading and len(chain) < _DEPTH and call not in chain:
                if call.node.id not in called_by:
                    called_by[call.node.id] = _called(kernel, call)
                for g in called_by[call.node.id]:
                    yield from run(g, (*chain, call))

    called = {c.name for c in kernel.calls}
    starts = [f for f in kernel.functions if f.name in leading and f.name not in called]
    found = [event for f in starts for event in run(f, ())]
    yield from found if entered < _ENTERED else ()


def _leading(kernel: KernelProgram, queues: Sequence[str]) -> set[str]:
    """Names of functions in which, or further down, something of all this happens."""
    found: set[str] = set()
    grown = {c.function.name for c in kernel.calls if c.name in (*_MADE, *_OUT) or _tells(c, queues)}
    while not grown <= found:
        found |= grown
        grown = {c.function.name for c in kernel.calls if c.name in found}
    return found


def _tells(call: ApiCall, queues: Sequence[str]) -> bool:
    """Does the call hand a result over, or wait for one?"""
    if call.name in ("SetFlag", "WaitFlag"):
        return _EVENT.fullmatch(call.template) is not None
    return call.name in ("EnQue", "DeQue") and _queue_of(call) in queues


def _handovers(kernel: KernelProgram, queues: Sequence[str]) -> Iterator[_Handover]:
    """Products, then a flag or a queue, then Fixpipe; what comes in another order is left out."""
    now = _Handover([])
    for event in _events(kernel, queues):
        made, out = event.call.name in _MADE, event.call.name in _OUT
        if (now.out and not out) or (now.told and made):  # a new one begins
            if now.made and now.told and now.out:
                yield now
            now = _Handover([])
        (now.made if made else now.out if out else now.told).append(event)
    if now.made and now.told and now.out:
        yield now


# -- which product is the last one of its sum --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Turns:
    """Loops of one function around a call in it."""

    call: ApiCall
    loops: tuple[Node, ...]


def _turns(made: _Event, told: _Event) -> list[_Turns]:
    """The loops that a product is in and its handing over isn't, by function, the outermost function first."""
    together = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(made.chain, told.chain, strict=False))))
    around = {n.id for c in told.chain[together:] for n in loops_around(c.node, c.function)}
    out = []
    for call in made.chain[together:]:
        loops = tuple(n for n in loops_around(call.node, call.function) if n.id not in around)
        out.append(_Turns(call, loops))
    return [t for t in out if t.loops]


def _is_last(kernel: KernelProgram, loops: Sequence[Node]) -> str | None:
    """Whether every loop is in its last turn; None for loops that don't count upwards."""
    counted = {loop.node.id: loop for loop in counted_loops(kernel)}
    if any(n.id not in counted for n in loops):
        return None
    found = [counted[n.id] for n in reversed(loops)]
    return " && ".join(f"{c.name} + {_operand(c.step)} >= {_operand(c.bound)}" for c in found)


def _operand(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else f"({text})"


# -- the rewrite -------------------------------------------------------------------------------------------------------


def _ahead(kernel: KernelProgram, call: ApiCall, text: str) -> list[Edit] | None:
    """``text`` in front of the statement that is the call."""
    statement = call.statement
    if statement is None or statement.parent is None:
        return None
    if statement.parent.type == "compound_statement":
        return [kernel.before(call.path, statement, text)]
    start, end = statement.start_byte, statement.end_byte
    return [Edit(call.path, start, start, f"{{ {text} "), Edit(call.path, end, end, " }")]


def _flagged(kernel: KernelProgram, call: ApiCall, value: str) -> list[Edit] | None:
    """The call's unit flag set, in the structure that its function makes, or that the call itself does."""
    given = call.args[-1] if call.args else ""
    if given.isidentifier():
        made = re.search(_PARAMS.format(given), kernel.text(call.path, call.function.body))
        return _ahead(kernel, call, f"{given}.unitFlag = {value};") if made is not None else None
    statement = call.statement
    if statement is None or _MAKES.match(given) is None:
        return None
    start, end = statement.start_byte, statement.end_byte
    return [
        Edit(call.path, start, start, f"{{ auto {_COPY} = {given}; {_COPY}.unitFlag = {value}; "),
        kernel.replace(call.path, call.arguments[-1], _COPY),
        Edit(call.path, end, end, " }"),
    ]


def _raised(kernel: KernelProgram, made: _Event, handover: _Handover) -> list[Edit] | None:
    """The product told to raise unit flags if it is the last one of its sum."""
    later = handover.made[handover.made.index(made) + 1 :]
    if not all(_either_or(made, other) for other in later):
        return _flagged(kernel, made.call, "2")
    turns = _turns(made, handover.told[0])
    above = [t for t in turns if t.call != made.call]
    own = [t for t in turns if t.call == made.call]
    conditions = [_is_last(kernel, t.loops) for t in own]
    said = _said_above(kernel, above, made.call) if above else []
    if said is None or None in conditions:
        return None
    says = [*(c for c in conditions if c is not None), *([_LAST] if above else [])]
    raises = f"{' && '.join(says)} ? 3 : 2" if says else "3"
    flagged = _flagged(kernel, made.call, raises)
    return [*said, *flagged] if flagged is not None else None


def _either_or(one: _Event, other: _Event) -> bool:
    """Are the two in different branches of a condition?"""
    a, b = next((a.node, b.node) for a, b in zip(one.chain, other.chain, strict=False) if a != b)
    above = set()
    node: Node | None = a
    while node is not None:
        above.add(node.id)
        node = node.parent
    node = b
    while node is not None and node.id not in above:
        node = node.parent
    return node is not None and node.type == "if_statement"


def _said_above(kernel: KernelProgram, above: Sequence[_Turns], made: ApiCall) -> list[Edit] | None:
    """A member that knows whether the loops of the one function above are in their last turn."""
    call = above[0].call
    condition = _is_last(kernel, above[0].loops)
    found = kernel.class_node(call.function)
    body = found[1].child_by_field_name("body") if found is not None else None
    ahead = _ahead(kernel, call, f"{_LAST} = {condition};")
    one_class = kernel.class_of(call.function) == kernel.class_of(made.function)
    if len(above) > 1 or condition is None or found is None or body is None or ahead is None or not one_class:
        return None
    inside = body.start_byte + 1
    return [Edit(found[0], inside, inside, f"\n  bool {_LAST} = true;"), *ahead]


def _edits(kernel: KernelProgram, handover: _Handover) -> list[Edit] | None:
    """Everything but what is done about the flag or the queue itself."""
    told = handover.told[0]
    if _turns(told, handover.made[-1]) or any(_turns(o, told) for o in handover.out):  # one sum, several times
        return None
    edits = _all_of(
        [*(_raised(kernel, m, handover) for m in handover.made), *(_flagged(kernel, o.call, "3") for o in handover.out)]
    )
    if edits is None:
        return None
    as_rows = all("CFG_NZ" not in o.call.template for o in handover.out)
    if not as_rows or any(kernel.named(*_ORDER)):
        return list(edits)
    inside = told.call.function.body.start_byte + 1
    order = handover.made[0].call.spelled("SetMMRowMajor")
    return [*edits, Edit(told.call.path, inside, inside, f"\n    {order};")]


def _declared(kernel: KernelProgram) -> Iterator[tuple[str, Node, str, str]]:
    """(path, type, position, name) of each queue of L0C that is a member of its own."""
    for path, source in kernel.program.files.items():
        for node in walk(source.tree.root_node):
            kind = node.child_by_field_name("type") if node.type == "field_declaration" else None
            found = _QUEUE.fullmatch(kernel.text(path, kind)) if kind is not None else None
            names = node.children_by_field_name("declarator")
            if kind is not None and found is not None and [n.type for n in names] == ["field_identifier"]:
                yield path, kind, found[1] or found[2], kernel.text(path, names[0])


def _without_queue(kernel: KernelProgram, name: str) -> list[Edit] | None:
    """The queue made buffers that nobody waits for."""
    declared = [(path, kind, position) for path, kind, position, q in _declared(kernel) if q == name]
    made = [c for c in kernel.named("InitBuffer") if c.args and c.args[0].removeprefix("this->") == name]
    if len(declared) != 1 or any(len(c.args) != 3 for c in made):
        return None
    path, kind, position = declared[0]
    top = kind
    while top.parent is not None and top.parent.parent is not None and not top.parent.type.startswith("preproc"):
        top = top.parent
    edits = [Edit(path, top.start_byte, top.start_byte, _CLASS), kernel.replace(path, kind, f"UnitFlagged<{position}>")]
    edits += [kernel.replace(c.path, c.node, f"{c.args[0]}.Begin({c.args[1]}, {c.args[2]})") for c in made]
    return edits


def _without_flag(kernel: KernelProgram, told: Sequence[_Event]) -> list[Edit] | None:
    """The flag neither set nor waited for."""
    statements = [(e.call.path, e.call.statement) for e in told]
    if [e.call.name for e in told] != ["SetFlag", "WaitFlag"]:
        return None
    edits = [kernel.delete(path, statement) for path, statement in statements if statement is not None]
    return edits if len(edits) == len(told) else None


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    if not any(kernel.named(*_OUT)):
        return
    queues = [name for *_, name in _declared(kernel)]
    places: dict[tuple[str, int], list[_Handover]] = {}
    for h in _handovers(kernel, queues):
        told = h.told[0].call
        places.setdefault((told.path, told.node.start_byte), []).append(h)
    for queue in dict.fromkeys(queues):
        theirs = [hs for hs in places.values() if _queue_of(hs[0].told[0].call) == queue]
        asked = [c for c in kernel.named("EnQue") if _queue_of(c) == queue]
        edits = _all_of([_without_queue(kernel, queue), *(_same(kernel, hs) for hs in theirs)])
        if theirs and len(asked) == len(theirs) and edits is not None:
            yield Change(f"{queue}/queue", f"what is in {queue} is handed over by unit flags", edits)
    for handovers in places.values():
        told = handovers[0].told[0].call
        edits = _all_of([_without_flag(kernel, handovers[0].told), _same(kernel, handovers)])
        if told.name == "SetFlag" and edits is not None:
            site = kernel.site(told.function, told.statement or told.node)
            yield Change(site, f"results of {told.function.name} handed over by unit flags", edits)


def _queue_of(call: ApiCall) -> str:
    return call.receiver.removeprefix("this->")


def _all_of(parts: Sequence[list[Edit] | None]) -> tuple[Edit, ...] | None:
    """Every edit once; None where a part can't be done."""
    found = [part for part in parts if part is not None]
    return tuple(dict.fromkeys(e for part in found for e in part)) if len(found) == len(parts) else None


def _same(kernel: KernelProgram, handovers: Sequence[_Handover]) -> list[Edit] | None:
    """What all ways to one place ask for; None where they differ."""
    first, *others = (_edits(kernel, h) for h in handovers)
    return first if first is not None and all(o == first for o in others) else None


# -- back --------------------------------------------------------------------------------------------------------------


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """Unit flags left as they are, and a flag each way around Fixpipe."""
    said = [kernel.delete(f.path, node) for f in kernel.functions for node in walk(f.body) if _sets(kernel, f, node)]
    out = [(c, c.statement) for c in kernel.named(*_OUT)]
    if not said or not out or not any("TPipe" in text for text in kernel.files.values()):
        return
    edits = said
    for call, statement in out:
        if statement is None:
            return
        start, end = statement.start_byte, statement.end_byte
        edits.append(Edit(call.path, start, start, f"{{ {_flag(call, 'M_FIX')} "))
        edits.append(Edit(call.path, end, end, f" {_flag(call, 'FIX_M')} }}"))
    yield Change("flags", "results are handed over as a whole, by flags", tuple(edits))


def _sets(kernel: KernelProgram, f: Function, statement: Node) -> bool:
    """Is it ``params.unitFlag = ...;``?"""
    node = (
        statement.named_children[0] if statement.type == "expression_statement" and statement.named_children else None
    )
    left = node.child_by_field_name("left") if node is not None and node.type == "assignment_expression" else None
    name = left.child_by_field_name("field") if left is not None and left.type == "field_expression" else None
    return name is not None and kernel.text(f.path, name) == "unitFlag"


def _flag(call: ApiCall, event: str) -> str:
    there = call.spelled("GetTPipePtr")
    space = "AscendC::" if there.startswith("AscendC::") else ""
    name = f"flag{event.title().replace('_', '')}"
    hard = f"{space}HardEvent::{event}"
    return (
        f"const auto {name} = {there}->FetchEventID({hard}); "
        f"{space}SetFlag<{hard}>({name}); {space}WaitFlag<{hard}>({name});"
    )


UNIT_FLAG = Motif(
    name="unit-flag",
    title="Results leave L0C as they are made",
    description="A flag from the matrix unit to Fixpipe says that a whole block of L0C is there. With unitFlag in "
    "both, each 512 bytes have a flag of their own: Fixpipe begins while the last product of a block goes on.",
    bottlenecks=("waits between pipes", "matrix unit", "copies", "no overlap"),
    preconditions="Each product of a sum is known as the last one or not; what a product writes leaves as a whole.",
    faster=_faster,
    slower=_slower,
)
