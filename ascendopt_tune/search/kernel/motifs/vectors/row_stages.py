"""Rows of a tile in stages: each is reduced before the scalar unit reads the first result, and waits once for all.

1. A loop over rows works on a row (``before``), reduces it to one float, waits for the scalar unit to read that, and
   goes on with it (``behind``). The reduction is AscendC's or the kernel's own, which returns or sets the float.
2. What ``before`` leaves for ``behind`` lies in rows of its own; scratch tensors that both use are written first.
3. Then up to 64 rows go through ``before``, are reduced together into slots (``ResultsOfRows``), and ``behind``
   follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import Edit, walk
from ...reading.affine import AffinePlace, affine, fixed, resolved
from ...reading.api import is_barrier, root
from ...reading.classes import merged, unused, with_member
from ...reading.counted import CountedLoop, counted_loops
from ...reading.declared import local_kinds
from ...reading.kernel_program import ApiCall, BlockStep, KernelProgram, flat
from ..motif import Change, Motif
from .one_element import read_by, unread
from .results_of_rows import CLASS, CLASS_NAME
from .row_accesses import Accesses, Entangled, Part

_MEMBER = "rowResults"
_SUM = re.compile(r"Reduce_?Sum|Sum_?Reduce|ReduceAdd", re.IGNORECASE)
_MAX = re.compile(r"Reduce_?Max|Max_?Reduce", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z_]\w*")
_PURE = re.compile(rf"\b(?:static_cast|FetchEventID|GetTPipePtr|Get|ReinterpretCast|{_MEMBER}\d+\.Of)\b")
_CALLED = re.compile(r"[\w.]+(?:<[^<>()]*>)?(?=\s*\()")


@dataclass(frozen=True)
class _Reduction:
    """The first reduction of a row: steps before ``first`` are in front of it, those from ``then`` on behind it.

    ``read``: what stands for the result there; ``whole``: it is a statement, which sets ``sets``.
    """

    first: int
    then: int
    call: ApiCall
    sums: bool
    data: str
    count: str
    read: tuple[Node, ...]
    sets: str = ""


# -- finding -----------------------------------------------------------------------------------------------------------


def _kind(name: str) -> bool | None:
    """Is a function of that name a sum (True), a largest value (False) or neither?"""
    return True if _SUM.search(name) else False if _MAX.search(name) else None


def _reduction(kernel: KernelProgram, steps: tuple[BlockStep, ...], i: int) -> _Reduction | None:
    """What step i reduces, if it does, in whatever form."""
    call = steps[i].call
    if call is not None and _kind(call.name) is not None and call.receiver in ("", "this"):
        sums = bool(_kind(call.name))
        if call.name in ("ReduceSum", "ReduceMax"):
            if len(call.args) == 4 or call.args[4:] in (("false",), ("0",)):
                return _read_behind(kernel, steps, i, _Reduction(i, i, call, sums, call.args[1], call.args[3], ()))
        elif len(call.args) == 3 and re.fullmatch(r"[A-Za-z_]\w*", call.args[2]):
            return _Reduction(i, i + 1, call, sums, call.args[0], call.args[1], (), call.args[2])
        elif len(call.args) == 2:
            return _read_behind(kernel, steps, i, _Reduction(i, i, call, sums, call.args[0], call.args[1], ()))
        return None
    return None


def _read_behind(kernel: KernelProgram, steps: tuple[BlockStep, ...], i: int, found: _Reduction) -> _Reduction | None:
    """The reduction with the places that read its result, where nothing but a wait for it stands between."""
    own = found.call.name not in ("ReduceSum", "ReduceMax")
    result = flat(found.data if own else found.call.args[0])
    for j in range(i + 1, len(steps)):
        call = steps[j].call
        waits = call is not None and (
            is_barrier(call, "PIPE_V") or (call.name in ("SetFlag", "WaitFlag") and "V_S" in call.template)
        )
        values = [
            c
            for n in walk(steps[j].node)
            if n.type == "call_expression"
            for c in [kernel.call_at(found.call.function, n)]
            if c.name == "GetValue" and len(c.args) == 1 and read_by(c) == result
        ]
        if values:
            return _Reduction(i, j, found.call, found.sums, found.data, found.count, tuple(c.node for c in values))
        if not waits and "EventID" not in kernel.text(found.call.path, steps[j].node):
            return None
    return None


def _returned(kernel: KernelProgram, loop: CountedLoop, i: int, own: frozenset[str]) -> _Reduction | None:
    """A reduction whose result a function of the kernel's returns, in step i."""
    node = loop.block.steps[i].node
    if node.type not in ("declaration", "expression_statement") or loop.block.steps[i].call is not None:
        return None
    for n in walk(node):
        call = kernel.call_at(loop.block.function, n) if n.type == "call_expression" else None
        if call is not None and call.name in own and call.receiver in ("", "this") and len(call.args) == 2:
            kind = _kind(call.name)
            if kind is not None:
                return _Reduction(i, i, call, kind, call.args[0], call.args[1], (n,))
    return None


def _first(kernel: KernelProgram, loop: CountedLoop, own: frozenset[str]) -> _Reduction | None:
    for i in range(len(loop.block.steps)):
        found = _reduction(kernel, loop.block.steps, i) or _returned(kernel, loop, i, own)
        if found is not None:
            known = found.call.name in ("ReduceSum", "ReduceMax") or found.call.name in own
            return found if known else None
    return None


@dataclass(frozen=True)
class _Stages:
    """A loop that may be taken apart. ``place``: where rows of the reduced tensor are; None: one row's scratch."""

    loop: CountedLoop
    found: _Reduction
    place: AffinePlace | None
    carried: tuple[str, ...]  # declarations in front of the reduction that are needed behind it
    barriers: tuple[bool, bool]  # whether a row of the first or the second stage needs one at its end


def _stages(kernel: KernelProgram) -> Iterator[_Stages]:
    own = frozenset(f.name for f in kernel.functions)
    everywhere = local_kinds(s.data.decode("utf-8", "replace") for s in kernel.program.files.values())
    for loop in counted_loops(kernel):
        f = loop.block.function
        if loop.step != "1" or not kernel.class_of(f) or "(" in loop.bound:
            continue
        found = _first(kernel, loop, own)
        if found is None:
            continue
        kinds = {**everywhere, **local_kinds([kernel.text(f.path, f.node)])}
        if kinds.get(root(found.data)) != {"float"}:
            continue
        try:
            yield _apart(kernel, loop, found, set(kinds))
        except Entangled:
            continue


def _apart(kernel: KernelProgram, loop: CountedLoop, found: _Reduction, tensors: set[str]) -> _Stages:
    """The stages of a loop. Raises Entangled where they aren't apart."""
    steps = loop.block.steps
    if found.then >= len(steps) or found.sets in tensors:
        raise Entangled
    facts = Accesses(kernel, loop, tensors)
    before = facts.of([s.node for s in steps[: found.first]])
    behind = facts.of([s.node for s in steps[found.then :]], skip=(found.call.node, *found.read))
    place = affine(facts.written_out(found.data), loop.name, "0", facts.names)
    if place is None and loop.name in _WORD.findall(facts.written_out(found.data)):
        raise Entangled
    varies = not fixed(resolved(found.count, facts.names), loop.name, {})
    if _left_to_others(kernel, loop, found, facts, behind):
        raise Entangled
    facts.check(before, behind, found.data, place, tuple(found.call.args[:3:2]))
    carried = tuple(_carried(kernel, loop, found))
    rows = (before.shared_writes, behind.shared_writes)
    ends = (_ends(steps[: found.first]), _ends(steps))
    return _Stages(loop, found, None if varies else place, carried, (rows[0] and not ends[0], rows[1] and not ends[1]))


def _left_to_others(kernel: KernelProgram, loop: CountedLoop, found: _Reduction, facts: Accesses, behind: Part) -> bool:
    """Does somebody behind the loop read results where AscendC's reduction put them, or elements that it left alone?"""
    f, end = loop.block.function, loop.node.end_byte
    data = root(facts.written_out(found.data))
    again = behind.first.get(facts.canonical(found.data), False)
    if not again and not unread(kernel, f, data, end):
        return True
    if found.call.name not in ("ReduceSum", "ReduceMax"):
        return False
    result, _, work = found.call.args[:3]
    if not again and data in f.parameters and data not in (root(result), root(work)):
        return True
    if behind.first.get(facts.canonical(result), False):
        return False
    kept = loop.name in _WORD.findall(resolved(facts.written_out(result), facts.names))
    return kept or not unread(kernel, f, root(result), end)


def _ends(steps: tuple[BlockStep, ...]) -> bool:
    """Do the steps end with a barrier of the vector pipe?"""
    return bool(steps) and steps[-1].call is not None and is_barrier(steps[-1].call, "PIPE_V")


def _carried(kernel: KernelProgram, loop: CountedLoop, found: _Reduction) -> Iterator[str]:
    """Declarations in front of the reduction of names that are used behind it; Entangled for those with effects."""
    path, steps = loop.block.function.path, loop.block.steps
    later = set(_WORD.findall(" ".join(kernel.text(path, s.node) for s in steps[found.then :])))
    later |= {found.sets} - {""}
    kept: list[str] = []
    for step in reversed(steps[: found.then]):
        text = kernel.text(path, step.node)
        if step.node.type == "declaration":
            names = {
                _WORD.findall(kernel.text(path, d).split("=")[0])[-1]
                for d in step.node.children_by_field_name("declarator")
            }
            if not names & later:
                continue
            if any(not _PURE.search(called) for called in _CALLED.findall(text)):
                raise Entangled
            later |= set(_WORD.findall(text))
            kept.append(text)
        elif step.call is None and "EventID" not in text:
            assigned = {
                root(kernel.text(path, left))
                for n in walk(step.node)
                if n.type == "assignment_expression" and (left := n.child_by_field_name("left")) is not None
            }
            if assigned or any(n.type == "update_expression" for n in walk(step.node)):
                raise Entangled
    yield from reversed(kept)


# -- changing ----------------------------------------------------------------------------------------------------------


def _text(kernel: KernelProgram, stages: _Stages, member: str, first: str) -> str:
    """What comes in place of the loop."""
    loop, found = stages.loop, stages.found
    path, steps = loop.block.function.path, loop.block.steps
    data = kernel.program.files[path].data
    space = kernel.indent(path, loop.node)
    behind = first.replace("First", "Behind")
    result = f"{member}.Of(static_cast<uint32_t>({loop.name} - {first}))"
    head = f"for ({loop.type} {loop.name} = {first}; {loop.name} < {behind}; {loop.name}++) {{"
    reduce = f"{member}.Reduce<{str(found.sums).lower()}>"
    lines = [
        f"for ({loop.type} {first} = {loop.first}; {first} < {loop.bound}; {first} += {CLASS_NAME}::ROWS) {{",
        f"  const {loop.type} {behind} = {first} + {CLASS_NAME}::ROWS < {loop.bound} ? "
        f"{first} + {CLASS_NAME}::ROWS : {loop.bound};",
        f"  {member}.Begin();",
    ]
    barrier = "  PipeBarrier<PIPE_V>();"
    if stages.place is None or any(s.node.type not in ("declaration", "comment") for s in steps[: found.first]):
        front = data[steps[0].node.start_byte : steps[found.first].node.start_byte].decode().rstrip()
        lines += [f"  {head}", *([f"    {front}"] if front else [])]
        if stages.place is None:
            lines.append(f"    {reduce}({found.data}, {loop.name} - {first}, 1, {found.count}, 0);")
        elif stages.barriers[0]:
            lines.append(f"  {barrier}")
        lines.append("  }")
    if stages.place is not None:
        place = stages.place
        moved = f"{first} * ({place.step})"
        start = f"{place.tensor}[{moved if place.start == '0' else f'{place.start} + {moved}'}]"
        lines.append(f"  {reduce}({start}, 0, {behind} - {first}, {found.count}, {place.step});")
    lines += [f"  {member}.Wait();", f"  {head}", *(f"    {text}" for text in stages.carried)]
    if found.sets:
        lines.append(f"    {found.sets} = {result};")
    begin, end = steps[found.then].node.start_byte, steps[-1].node.end_byte
    text = data[begin:end].decode()
    for node in sorted(found.read, key=lambda n: -n.start_byte):
        at, to = node.start_byte - begin, node.end_byte - begin
        text = (text.encode()[:at] + result.encode() + text.encode()[to:]).decode()
    lines += [f"    {text}", *([f"  {barrier}"] if stages.barriers[1] else []), "  }", "}"]
    return f"\n{space}".join(lines)


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    for number, stages in enumerate(_stages(kernel), unused(kernel, _MEMBER)):
        loop = stages.loop
        f = loop.block.function
        member = f"{_MEMBER}{number}"
        try:
            edits = list(with_member(kernel, f, CLASS_NAME, CLASS, f"{CLASS_NAME} {member};"))
        except ValueError:
            continue
        edits.append(kernel.replace(f.path, loop.node, _text(kernel, stages, member, f"stage{number}First")))
        change = f"rows of {f.name} reduced by {stages.found.call.name} one after the other, then read"
        yield Change(kernel.site(f, loop.node), change, merged(edits))
    yield from _stepped(kernel, "1", f"{CLASS_NAME}::ROWS", "several rows a stage")


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """One row a stage again; the class stays ready for more."""
    yield from _stepped(kernel, f"{CLASS_NAME}::ROWS", "1", "one row a stage")


def _stepped(kernel: KernelProgram, old: str, new: str, change: str) -> Iterator[Change]:
    step = re.compile(rf"(stage\d+First (?:\+=|\+) ){re.escape(old)}(?=\)| <| :)")
    for f in kernel.functions:
        for node in walk(f.body):
            text = kernel.text(f.path, node) if node.type == "for_statement" else ""
            head = text.partition("{")[0]
            name = re.search(r"(stage\d+First) \+= ", head)
            if name is None or step.search(head) is None:
                continue
            edits = [
                Edit(
                    f.path,
                    node.start_byte + len(text[: m.end(1)].encode()),
                    node.start_byte + len(text[: m.end()].encode()),
                    new,
                )
                for m in step.finditer(text)
                if m[1].startswith(name[1])
            ]
            yield Change(f"{f.name}/{name[1]}", f"{change} in {f.name}", tuple(edits))


ROW_STAGES = Motif(
    name="row-stages",
    title="Rows are reduced together, and waited for once",
    description="A loop over the rows of a tile reduces each, and the scalar unit waits to read its result: the vector "
    "pipe runs empty once a row. In stages all rows are worked on up to there and reduced by one instruction, with one "
    "wait; then each goes on with its own result.",
    bottlenecks=("scalar round trips", "short vector instructions", "vector barriers", "vector", "no overlap"),
    preconditions="What a row needs behind the reduction lies in a place of its own; sums of floats may come out in "
    "another order; the kernel's own function of that name is a sum or a maximum.",
    faster=_faster,
    slower=_slower,
    through_calls=True,
)
