"""Flags between cores in the place of a meeting of all of them, cube and vector.

``SyncAll<false>()`` holds every core until all are there. Where one kind of core only hands on to the other one, a flag
of mode 2 does, within the group or, where any core may read what any other one left, behind a meeting of those that
hand on.

1. What happens in order, own functions in the place of their calls, and which kinds of core get there.
2. Meetings: a call that both kinds get to, or the n-th of the one with the n-th of the other.
3. What each kind does between the meeting before and this one, and between this one and the next, says who may hand on
   to whom. Whether cores of other groups read it, the text hardly says: only where vector cores ask which group they
   are of, flags within the group are offered. The gate decides.

The barrier of all pipes that a meeting has in itself stays; full-barrier takes it where nothing needs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import Edit, Function
from ...reading.kernel_program import ApiCall, KernelProgram, loops_around, siblings, where
from ..motif import Change, Motif
from .handover import flag_number

CUBE, VECTOR = "cube", "vector"
_BOTH = frozenset((CUBE, VECTOR))
_SET, _WAIT = "CrossCoreSetFlag", "CrossCoreWaitFlag"
_FLAGS = (_SET, _WAIT, "NotifyEvent", "WaitEvent", "wait_flag_dev")
_IDS = range(11)  # flags that CANN leaves to kernels
_PIPE = {CUBE: "PIPE_FIX", VECTOR: "PIPE_MTE3"}
_MAY_TOUCH_MEMORY = frozenset(
    ("DataCopy", "DataCopyPad", "Fixpipe", "LoadData", "Mmad", "Iterate", "IterateAll", "GetTensorC")
)
_KINDS = {
    "ASCEND_IS_AIC": CUBE,
    "ASCEND_IS_NOT_AIV": CUBE,
    "g_coreType==AIC": CUBE,
    "ASCEND_IS_AIV": VECTOR,
    "ASCEND_IS_NOT_AIC": VECTOR,
    "g_coreType==AIV": VECTOR,
}
_DEFINED = {"__DAV_C220_CUBE__": CUBE, "__DAV_C220_VEC__": VECTOR}
_FOR_KIND = re.compile(r"<\s*(?:AscendC::)?AI([CV])\s*>\s*\(")
_GROUP_INDEX = re.compile(
    r"\bget_block_idx\(\)|\bblock_idx\b|\bGetSubBlockIdx\(|"
    r"\bGetBlockIdx\(\)\s*(?:/|>>)\s*(?:\w+::)?(?:GetTaskRat\w+|GetSubBlockNum|[12]\b)"
)
_ONE_EACH = re.compile(r"\bKERNEL_TYPE_MIX_AIC_1_1\b|__mix__\s*\(\s*1\s*,\s*1\s*\)")
_OBJECTS = re.compile(r"\bREGIST_MATMUL_OBJ\b")  # vector cores' calls of them are flags
_MODE = re.compile(r"<\s*(0[xX])?0?(\d)\s*,")
_DEPTH = 8  # functions from a start on
_ENTERED = 5000  # functions that are looked into, each way to them; kernels with more are left alone


# -- what happens in order, and where ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Step:
    """A meeting or something that may touch memory; ``loops`` around it, those of the functions above first."""

    call: ApiCall
    kinds: frozenset[str]
    loops: tuple[int, ...]

    @property
    def meets(self) -> bool:
        return _meets(self.call)


def _meets(call: ApiCall) -> bool:
    return call.name == "SyncAll" and call.template.replace(" ", "") == "<false>" and not call.args


def _kind_of(kernel: KernelProgram, f: Function, condition: Node | None) -> str | None:
    """The kind of core that a condition is about."""
    text = re.sub(r"[\s()]|AscendC::", "", kernel.text(f.path, condition)) if condition is not None else ""
    return _KINDS.get(text)


def _other(kind: str) -> str:
    return VECTOR if kind == CUBE else CUBE


def _branch_of(kernel: KernelProgram, f: Function, node: Node, inner: Node) -> str | None:
    """The kind of core that gets from ``node`` to ``inner``, a part of it; None: both."""
    if node.type == "if_statement":
        kind = _kind_of(kernel, f, node.child_by_field_name("condition"))
        first = node.child_by_field_name("consequence") == inner
    elif node.type in ("preproc_ifdef", "preproc_if"):
        said = node.child_by_field_name("name") or node.child_by_field_name("condition")
        text = kernel.text(f.path, said) if said is not None else ""
        kind = next((k for name, k in _DEFINED.items() if name in text), None)
        first = inner.type != "preproc_else"
    else:
        return None
    return kind if first or kind is None else _other(kind)


def _left_before(kernel: KernelProgram, f: Function, inner: Node) -> Iterator[str]:
    """Kinds of core that have returned in front of a statement of a block."""
    for statement in siblings(inner):
        if statement.start_byte >= inner.start_byte:
            return
        body = statement.child_by_field_name("consequence") if statement.type == "if_statement" else None
        inside = body.named_children if body is not None and body.type == "compound_statement" else ()
        last = inside[-1] if inside else body
        if last is not None and last.type == "return_statement":
            kind = _kind_of(kernel, f, statement.child_by_field_name("condition"))
            if kind is not None:
                yield kind


def _kinds_at(kernel: KernelProgram, f: Function, node: Node) -> frozenset[str]:
    """The kinds of core that get to a place of a function, if both get to the function."""
    kinds = set(_BOTH)
    declarator = f.node.child_by_field_name("declarator")
    named = _FOR_KIND.search(kernel.text(f.path, declarator)) if declarator is not None else None
    if named is not None:
        kinds &= {CUBE if named[1] == "C" else VECTOR}
    inner, parent = node, node.parent
    while parent is not None and inner != f.body:
        branch = _branch_of(kernel, f, parent, inner)
        kinds &= {branch} if branch is not None else _BOTH
        if parent.type == "compound_statement":
            kinds -= set(_left_before(kernel, f, inner))
        inner, parent = parent, parent.parent
    return frozenset(kinds)


def _conditions(kernel: KernelProgram, call: ApiCall) -> tuple[str, ...]:
    """Texts of the conditions around a call that aren't about kinds of core."""
    out, node = [], call.node.parent
    while node is not None and node != call.function.node:
        condition = node.child_by_field_name("condition") if node.type == "if_statement" else None
        if condition is not None and _kind_of(kernel, call.function, condition) is None:
            out.append("".join(kernel.text(call.path, condition).split()))
        node = node.parent
    return tuple(out)


def _called(kernel: KernelProgram, call: ApiCall) -> list[Function]:
    """The kernel's own functions that a call may be of: of the class that its receiver is declared with, if one is."""
    found = [f for f in kernel.functions if f.name == call.name]
    if len(found) < 2:
        return found
    if call.receiver in ("", "this"):
        classes = {kernel.class_of(call.function)}
    else:
        name = re.escape(re.split(r"\.|->", call.receiver)[-1])
        declared = re.compile(rf"\b(\w+)\s*(?:<[^;{{}}]*>)?\s*[&*]?\s*\b{name}\s*[;,({{=\[)]")
        classes = {m[1] for text in kernel.files.values() for m in declared.finditer(text)}
    own = [f for f in found if kernel.class_of(f) in classes]
    return own or found


def _leading(kernel: KernelProgram) -> set[str]:
    """Names of functions in which, or further down, something of this happens."""
    found: set[str] = set()
    grown = {c.function.name for c in kernel.calls if c.name in _MAY_TOUCH_MEMORY or _meets(c)}
    while not grown <= found:
        found |= grown
        grown = {c.function.name for c in kernel.calls if c.name in found}
    return found


def _flows(kernel: KernelProgram) -> Iterator[list[_Step]]:
    """What happens from each function on that nobody calls; nothing of those that are too long."""
    leading = _leading(kernel)
    led = [(c, g) for c in kernel.calls if c.name in leading for g in _called(kernel, c)]
    called = {where(g) for c, g in led if where(g) != where(c.function)}
    calls: dict[tuple[str, int], list[ApiCall]] = {}
    for call in kernel.calls:
        calls.setdefault((call.path, call.function.node.start_byte), []).append(call)

    called_by: dict[int, list[Function]] = {}
    entered = 0

    def run(f: Function, kinds: frozenset[str], loops: tuple[int, ...], chain: tuple[int, ...]) -> Iterator[_Step]:
        nonlocal entered
        entered += 1
        for call in calls.get((f.path, f.node.start_byte), ()) if entered < _ENTERED else ():
            here = kinds & _kinds_at(kernel, f, call.node)
            around = (*loops, *(n.id for n in reversed(loops_around(call.node, f))))
            if here and (call.name in _MAY_TOUCH_MEMORY or _meets(call)):
                yield _Step(call, here, around)
            elif here and call.name in leading and len(chain) < _DEPTH and call.node.id not in chain:
                if call.node.id not in called_by:
                    called_by[call.node.id] = _called(kernel, call)
                for g in called_by[call.node.id]:
                    yield from run(g, here, around, (*chain, call.node.id))

    for f in kernel.functions:
        if f.name in leading and where(f) not in called:
            steps = list(run(f, _BOTH, (), ()))
            if entered < _ENTERED:
                yield steps


# -- meetings ----------------------------------------------------------------------------------------------------------


@dataclass
class _Meeting:
    """Where each kind of core meets the other one, and whether it works before it and behind it."""

    calls: dict[str, ApiCall]
    before: dict[str, bool]
    behind: dict[str, bool]

    def may_hand_on(self, kind: str) -> bool:
        return self.before[kind] and self.behind[_other(kind)]

    def may_need_itself(self, kind: str) -> bool:
        return self.before[kind] and self.behind[kind]


def _works(steps: Sequence[_Step], at: int) -> bool:
    """Is there work between the meeting before step ``at`` and this one, that of the turn before included?"""
    for step in reversed(steps[:at]):
        if step.meets:
            break
        return True
    for loop in steps[at].loops:
        turn = [s for s in steps if loop in s.loops]
        first = next(s for s in turn if s.meets)
        if first is steps[at] and not turn[-1].meets:
            return True
    return False


def _met(kernel: KernelProgram, steps: Sequence[_Step]) -> Iterator[_Meeting]:
    own = {kind: [s for s in steps if kind in s.kinds] for kind in (CUBE, VECTOR)}
    places = {kind: [i for i, s in enumerate(of) if s.meets] for kind, of in own.items()}
    if len(places[CUBE]) != len(places[VECTOR]):
        return
    backwards = {kind: list(reversed(of)) for kind, of in own.items()}
    works = {kind: any(not s.meets for s in of) for kind, of in own.items()}
    for cube, vector in zip(places[CUBE], places[VECTOR], strict=True):
        at = {CUBE: cube, VECTOR: vector}
        calls = {kind: own[kind][i].call for kind, i in at.items()}
        alike = len(own[CUBE][cube].loops) == len(own[VECTOR][vector].loops)
        if calls[CUBE].statement is None or calls[VECTOR].statement is None or not alike:
            continue
        if _conditions(kernel, calls[CUBE]) != _conditions(kernel, calls[VECTOR]):
            continue
        # A kind of core of which nothing is found may do anything.
        before = {k: not works[k] or _works(own[k], i) for k, i in at.items()}
        behind = {k: not works[k] or _works(backwards[k], len(own[k]) - 1 - i) for k, i in at.items()}
        yield _Meeting(calls, before, behind)


def _meetings(kernel: KernelProgram) -> list[_Meeting]:
    """Each once; those that are got to in several ways with what is done in any of them."""
    found: dict[tuple[int, int], _Meeting] = {}
    partners: dict[int, set[int]] = {}
    for steps in _flows(kernel):
        for m in _met(kernel, steps):
            one, two = m.calls[CUBE].node.id, m.calls[VECTOR].node.id
            partners.setdefault(one, set()).add(two)
            partners.setdefault(two, set()).add(one)
            known = found.setdefault((one, two), m)
            for kind in _BOTH:
                known.before[kind] |= m.before[kind]
                known.behind[kind] |= m.behind[kind]
    return [m for (one, two), m in found.items() if partners[one] == {two} and partners[two] == {one}]


# -- the rewrite -------------------------------------------------------------------------------------------------------


def unused_flags(kernel: KernelProgram) -> list[int]:
    """Flags that the kernel doesn't use; none where that can't be told."""
    objects = any(_OBJECTS.search(kernel.text(f.path, f.node)) for f in kernel.functions)
    if objects or any(not c.args for c in kernel.named(*_FLAGS)):
        return []
    used = {_sum(kernel, c.args[0]) for c in kernel.named(*_FLAGS)}
    return [] if None in used else [i for i in _IDS if i not in used]


def _sum(kernel: KernelProgram, flag: str) -> int | None:
    numbers = [flag_number(kernel, part.strip()) for part in flag.split("+")]
    known = [n for n in numbers if n is not None]
    return sum(known) if len(known) == len(numbers) else None


@dataclass(frozen=True)
class _Way:
    """What stands in a meeting's place: lines for each kind of core, without a namespace's name."""

    name: str
    change: str
    lines: dict[str, list[str]]


def _ways(meeting: _Meeting, grouped: bool, ids: Sequence[int]) -> Iterator[_Way]:
    """Those that wait for least first."""
    flags = {CUBE: ids[0], VECTOR: ids[1]}
    handing = [kind for kind in (CUBE, VECTOR) if meeting.may_hand_on(kind)]
    if not handing and not (meeting.may_need_itself(CUBE) and len(ids) < 3):
        lines = {kind: _of_own_kind(kind, ids) if meeting.may_need_itself(kind) else [] for kind in (CUBE, VECTOR)}
        yield _Way("own", "cores meet those of their kind", lines)
    arrows = " and ".join(f"{kind} to {_other(kind)}" for kind in handing)
    if grouped and handing:
        lines = {kind: ["PipeBarrier<PIPE_ALL>()"] for kind in (CUBE, VECTOR)}
        for kind in handing:
            lines[kind].append(f"{_SET}<2, {_PIPE[kind]}>({flags[kind]})")
        for kind in handing:
            lines[_other(kind)].append(f"{_WAIT}({flags[kind]})")
        yield _Way("group", f"flags within the group, {arrows}", lines)
    if len(handing) == 1 and len(ids) > 2:
        (kind,) = handing
        told = f"{_WAIT}({flags[kind]})"
        hands = [*_of_own_kind(kind, ids), f"{_SET}<2, {_PIPE[kind]}>({flags[kind]})"]
        yield _Way(
            "all",
            f"{kind} cores meet and tell the others",
            {kind: hands, _other(kind): ["PipeBarrier<PIPE_ALL>()", told]},
        )
        if meeting.may_need_itself(_other(kind)):
            heard = [*_of_own_kind(_other(kind), ids), told]
            yield _Way("kinds", f"each kind meets, {arrows}", {kind: hands, _other(kind): heard})


def _of_own_kind(kind: str, ids: Sequence[int]) -> list[str]:
    """A meeting of the cores of a kind."""
    if kind == VECTOR:
        return ["SyncAll()"]
    return ["PipeBarrier<PIPE_ALL>()", f"{_SET}<0, {_PIPE[CUBE]}>({ids[2]})", f"{_WAIT}({ids[2]})"]


def _spelled(call: ApiCall, lines: Iterable[str]) -> list[str]:
    space = call.spelled("").removesuffix("()")
    return [f"{space}{line};" for line in lines]


def _edits(kernel: KernelProgram, meeting: _Meeting, way: _Way) -> list[Edit]:
    lines = {kind: _spelled(meeting.calls[kind], way.lines[kind]) for kind in (CUBE, VECTOR)}
    one, two = meeting.calls[CUBE], meeting.calls[VECTOR]
    if one.node.id == two.node.id:
        assert one.statement is not None
        return [_in_place(kernel, one, one.statement, _either(lines))]
    return [
        _in_place(kernel, call, call.statement, lines[kind])
        for kind, call in meeting.calls.items()
        if call.statement is not None
    ]


def _either(lines: dict[str, list[str]]) -> list[str]:
    """Lines of a place that both kinds of core get to."""
    out = []
    if lines[CUBE]:
        out += ["if ASCEND_IS_AIC {", *(f"  {line}" for line in lines[CUBE]), "}"]
    if lines[VECTOR]:
        out += ["if ASCEND_IS_AIV {", *(f"  {line}" for line in lines[VECTOR]), "}"]
    return out


def _in_place(kernel: KernelProgram, call: ApiCall, statement: Node, lines: Sequence[str]) -> Edit:
    if not lines:
        return kernel.delete(call.path, statement)
    text = f"\n{kernel.indent(call.path, statement)}".join(lines)
    whole = statement.parent is not None and statement.parent.type == "compound_statement"
    return kernel.replace(call.path, statement, text if whole else f"{{ {' '.join(lines)} }}")


def _grouped(kernel: KernelProgram) -> bool:
    """Do vector cores ask which group they are of?"""
    if any(_ONE_EACH.search(text) for text in kernel.files.values()):
        return True
    return any(_GROUP_INDEX.search(kernel.text(f.path, f.node)) for f in kernel.functions if f.name != "SyncAll")


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    if not any(_meets(c) for c in kernel.calls):
        return
    ids = unused_flags(kernel)
    meetings = _meetings(kernel) if len(ids) > 1 else []
    ways = [(m, list(_ways(m, _grouped(kernel), ids))) for m in meetings]
    told = [(m, found[0]) for m, found in ways if found and found[0].name != "own"]
    if len(told) > 1:
        edits = tuple(dict.fromkeys(e for m, way in told for e in _edits(kernel, m, way)))
        yield Change("all", f"flags in place of {len(told)} meetings of all cores", edits)
    for meeting, found in ways:
        call = meeting.calls[VECTOR]
        for way in found:
            site = f"{kernel.site(call.function, call.statement or call.node)}/{way.name}"
            yield Change(site, f"{call.function.name}: {way.change}", tuple(_edits(kernel, meeting, way)))


# -- back --------------------------------------------------------------------------------------------------------------


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """A flag of mode 2 that each core raises or waits for once: all cores meet there."""
    flags: dict[str, list[ApiCall]] = {}
    for call in kernel.named(_SET, _WAIT):
        if len(call.args) == 1:
            flags.setdefault(call.args[0], []).append(call)
    for calls in flags.values():
        kinds = [_kinds_at(kernel, c.function, c.node) for c in calls]
        once = not any(kernel.repeated(c.function, c.node) or _conditions(kernel, c) for c in calls)
        if [c.name for c in calls].count(_SET) != 1 or len(calls) != 2 or not once or kinds[0] & kinds[1]:
            continue
        (raised,) = (c for c in calls if c.name == _SET)
        if _mode(raised) != 2 or any(c.statement is None or len(k) != 1 for c, k in zip(calls, kinds, strict=True)):
            continue
        edits = tuple(
            kernel.replace(c.path, c.statement, f"{c.spelled('SyncAll<false>')};")
            for c in calls
            if c.statement is not None
        )
        site = kernel.site(raised.function, raised.statement or raised.node)
        yield Change(f"{site}/meet", f"all cores meet where {raised.function.name} raises a flag", edits)


def _mode(call: ApiCall) -> int | None:
    found = _MODE.match(call.template)
    return int(found[2]) if found is not None else None


CROSS_CORE_FLAGS = Motif(
    name="cross-core-flags",
    title="Flags between cores in place of a meeting of all",
    description="SyncAll<false> holds every core, cube and vector, until all are there. Where one kind only hands on "
    "to the other one, a flag of mode 2 within the group does, or one behind a meeting of those that hand on.",
    bottlenecks=("waits between cores", "synchronization", "no overlap"),
    preconditions="What is handed on is read in the same group, or by the other kind alone; flags are free.",
    faster=_faster,
    slower=_slower,
    together="no",
)
