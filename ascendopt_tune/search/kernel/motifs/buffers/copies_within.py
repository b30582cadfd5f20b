"""Copies within the Unified Buffer that something in front or behind can do without.

1. What is copied and then read, by several instructions perhaps, is read where it is.
2. A tensor that is copied where the types agree and cast elsewhere is, where they agree, the one that was loaded.
3. What the next instruction makes of such a tensor in place, it makes of what was loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import Edit, walk
from ...reading.api import ACCUMULATING, ELEMENTWISE, VECTOR, is_barrier, root, writes
from ...reading.declared import global_tensors, local_kinds
from ...reading.kernel_program import ApiCall, Block, BlockStep, KernelProgram
from ..motif import Change
from ..vectors.choices import copies, sides

_WORD = re.compile(r"[A-Za-z_]\w*")
_BARRIER = "PipeBarrier<PIPE_V>();"


def taken_as_they_are(kernel: KernelProgram) -> Iterator[Change]:
    """Each copy of the three kinds, not made."""
    outside = global_tensors(kernel)
    for block in kernel.blocks:
        for i, step in enumerate(block.steps):
            call = step.call
            if call is not None and copies(call) and not outside & {root(a) for a in call.args[:2]}:
                yield from _read_where_it_is(kernel, block, i, call)
            found = sides(kernel, block, step.node)
            if found is not None and not outside & {root(a) for a in found[0].args[:2]}:
                yield from _the_loaded_one(kernel, block, i, *found)
                yield from _made_of_it(kernel, block, i, *found)


def _mentions(kernel: KernelProgram, block: Block, node: Node, name: str) -> int:
    return _WORD.findall(kernel.text(block.function.path, node)).count(name)


def _calls(kernel: KernelProgram, block: Block, node: Node) -> list[ApiCall]:
    return [kernel.call_at(block.function, n) for n in walk(node) if n.type == "call_expression"]


def _local(kernel: KernelProgram, block: Block, name: str) -> str | None:
    """The element type of a tensor that a statement of the block declares (empty: ``auto``); None for any other."""
    for step in block.steps:
        text = kernel.text(block.function.path, step.node) if step.node.type == "declaration" else ""
        made = re.match(rf"(?:(?:AscendC::)?LocalTensor\s*<\s*([\w:]+)\s*>|auto)\s+{name}\s*=", text)
        if made is not None:
            return made[1] or ""
    return None


def _freed(kernel: KernelProgram, block: Block, node: Node, name: str) -> bool:
    call = kernel.call_of(block.function, node)
    return call is not None and call.name == "FreeTensor" and call.args == (name,)


# -- read where it is --------------------------------------------------------------------------------------------------


@dataclass
class _Readers:
    """Operands that read the copy, the statement of the last of them, and where the source is given back."""

    operands: list[Node]
    last: Node | None = None
    freed: Node | None = None


def _read_where_it_is(kernel: KernelProgram, block: Block, i: int, copy: ApiCall) -> Iterator[Change]:
    readers = _readers(kernel, block, i, copy)
    if readers is None or not readers.operands or readers.last is None or copy.statement is None:
        return
    path, (target, source) = copy.path, copy.args[:2]
    edits = [kernel.delete(path, copy.statement)]
    for node in readers.operands:
        edits.append(kernel.replace(path, node, source + kernel.text(path, node).removeprefix(target)))
    if readers.freed is not None and readers.freed.start_byte < readers.last.start_byte:
        edits += [
            kernel.delete(path, readers.freed),
            kernel.after(path, readers.last, kernel.text(path, readers.freed)),
        ]
    change = f"{source} of {block.function.name} read where it is, {len(readers.operands)} times, not copied"
    yield Change(f"{kernel.site(block.function, copy.statement)}/read", change, tuple(edits))


def _readers(kernel: KernelProgram, block: Block, i: int, copy: ApiCall) -> _Readers | None:
    """Who reads the copy until it is written anew; None where anything else is done to it, or to its source."""
    target, source = copy.args[:2]
    name, of = root(target), root(source)
    out = _Readers([])
    known = local_kinds([kernel.text(copy.path, block.function.node)])
    if name == of or name in _WORD.findall(source) or not {name, of} <= set(known) or "aram" in copy.args[-1]:
        return None
    for step in block.steps[i + 1 :]:
        if _freed(kernel, block, step.node, source) and source == of:
            out.freed = step.node
        elif not _freed(kernel, block, step.node, name):
            taken = _taken_in(kernel, block, step, copy)
            if taken is None or (taken.ends and out.freed is not None):
                return None
            if taken.operands:
                out.operands += taken.operands
                out.last = step.node
            if taken.ends:
                return out
    return out if _local(kernel, block, name) is not None else None


@dataclass(frozen=True)
class _Taken:
    """Operands of a statement that are the copy; ``ends``: the statement writes it anew."""

    operands: list[Node]
    ends: bool = False


def _taken_in(kernel: KernelProgram, block: Block, step: BlockStep, copy: ApiCall) -> _Taken | None:
    """None where the statement writes the source, a part of the copy, or does anything else with either."""
    target, (name, of) = copy.args[0], map(root, copy.args[:2])
    calls = _calls(kernel, block, step.node)
    if any(of in writes(c) for c in calls):
        return None
    times = _mentions(kernel, block, step.node, name)
    if times == 0:
        return None if calls and step.call is None and _mentions(kernel, block, step.node, of) else _Taken([])
    call = step.call
    if call is not None and name in writes(call):
        whole = call.name in ELEMENTWISE - ACCUMULATING and call.args[0] == target and call.args[-1] == copy.args[-1]
        nodes = [n for n in call.arguments[1:] if kernel.text(copy.path, n) == target]
        return _Taken(nodes, ends=True) if whole and times == len(nodes) + 1 else None
    nodes = _operands(kernel, calls, target)
    return _Taken(nodes) if len(nodes) == times else None


def _count(call: ApiCall, name: str) -> int:
    return sum(_WORD.findall(a).count(name) for a in call.args)


def _operands(kernel: KernelProgram, calls: list[ApiCall], target: str) -> list[Node]:
    """Operands of vector instructions that are the tensor, or begin within it, and are only read."""
    return [
        n
        for c in calls
        if c.name in VECTOR and root(target) not in writes(c)
        for n, text in zip(c.arguments[1:], c.args[1:], strict=False)
        if text == target or text.startswith(f"{target}[")
    ]


# -- the one that was loaded -------------------------------------------------------------------------------------------


def _the_loaded_one(kernel: KernelProgram, block: Block, i: int, copy: ApiCall, cast: ApiCall) -> Iterator[Change]:
    """``if constexpr (same) { t = s; } else { Cast(t, s, ...); }``, and ``s`` held as long as ``t``."""
    path, (target, source) = copy.path, copy.args[:2]
    kind = _local(kernel, block, target) if re.fullmatch(r"\w+", target) else None
    loaded = root(source)
    if kind is None or cast.args[:1] != (target,) or root(cast.args[1]) != loaded or copy.statement is None:
        return
    uses = [s.node for s in block.steps[i + 1 :] if _mentions(kernel, block, s.node, target)]
    frees = [n for n in uses if _freed(kernel, block, n, target)]
    uses = [n for n in uses if n not in frees]
    freed = _held_alone(kernel, block, i, loaded, uses)
    if freed is None or any(_kept_by_others(kernel, block, n, target) for n in uses):
        return
    held = "" if not frees else f"auto {target}Kept = {target};"
    edits: list[Edit] = [kernel.before(path, block.steps[i].node, held)] if held else []
    of_kind = source if "ReinterpretCast" in source else f"{source}.template ReinterpretCast<{kind or 'float'}>()"
    edits.append(kernel.replace(path, copy.statement, f"{target} = {of_kind};"))
    for node in frees:
        edits.append(kernel.replace(path, node, kernel.text(path, node).replace(target, f"{target}Kept")))
    if freed.start_byte < uses[-1].start_byte and cast.statement is not None:
        edits += held_longer(kernel, block, freed, uses[-1], [cast.statement])
    change = f"{target} of {block.function.name} is {source} where the types agree"
    yield Change(f"{kernel.site(block.function, copy.statement)}/loaded", change, tuple(edits))


def held_longer(kernel: KernelProgram, block: Block, freed: Node, last: Node, casts: list[Node]) -> list[Edit]:
    """The tensor given back behind ``last``; where it is cast at once, behind the last cast of that side."""
    path, text = block.function.path, kernel.text(block.function.path, freed)
    taken: list[str] = []
    for node in casts:
        side = node.parent
        conditions: list[str] = []
        while side is not None and side.parent is not None and side.parent.type in ("if_statement", "else_clause"):
            choice = side.parent if side.parent.type == "if_statement" else side.parent.parent
            if choice is None or choice.start_byte < block.node.start_byte:
                break
            asked = choice.child_by_field_name("condition")
            assert asked is not None
            mine = choice.child_by_field_name("consequence") == side
            conditions.insert(0, kernel.text(path, asked) if mine else f"!{kernel.text(path, asked)}")
            side = choice
            if choice.parent is None or choice.parent.type != "else_clause":
                break
        taken.append(" && ".join(conditions))
    asked_all = " && ".join(f"!({t})" for t in taken)
    later = f"if constexpr ({asked_all}) {{ {text} }}" if all(taken) else text
    behind = [kernel.after(path, node, text) for node in casts] if all(taken) else []
    return [kernel.delete(path, freed), *behind, kernel.after(path, last, later)]


def _held_alone(kernel: KernelProgram, block: Block, i: int, loaded: str, uses: list[Node]) -> Node | None:
    """Where the loaded tensor is given back, and nothing else; None if it can't be held until ``uses`` end."""
    given = [s.node for s in block.steps[i + 1 :] if _mentions(kernel, block, s.node, loaded)]
    alone = bool(uses) and len(given) == 1 and _freed(kernel, block, given[0], loaded)
    return given[0] if alone and _room(kernel, block, given[0], uses[-1]) else None


def _kept_by_others(kernel: KernelProgram, block: Block, node: Node, name: str) -> bool:
    """Is the tensor given to a queue, stored, or assigned?"""
    calls = _calls(kernel, block, node)
    stored = any(
        c.name in ("EnQue", "DataCopy", "DataCopyPad") and name in _WORD.findall(" ".join(c.args)) for c in calls
    )
    return stored or re.search(rf"\b{name}\s*=[^=]", kernel.text(block.function.path, node)) is not None


def _room(kernel: KernelProgram, block: Block, freed: Node, last: Node) -> bool:
    """Does nobody ask the queue for a buffer while the tensor is held longer, or has it two?"""
    call = kernel.call_of(block.function, freed)
    queue = root(call.receiver.removeprefix("this->")) if call is not None else ""
    between = (s.node for s in block.steps if freed.start_byte < s.node.start_byte <= last.start_byte)
    asked = [c for n in between for c in _calls(kernel, block, n) if c.name == "AllocTensor"]
    ones = {"1", *(c.name for c in kernel.constants if c.value == 1)}
    made = [c.args[1] for c in kernel.named("InitBuffer") if len(c.args) == 3 and root(c.args[0]) == queue]
    return all(root(c.receiver) != queue for c in asked) or not ones.intersection(made)


# -- made of what was loaded -------------------------------------------------------------------------------------------


def _made_of_it(kernel: KernelProgram, block: Block, i: int, copy: ApiCall, cast: ApiCall) -> Iterator[Change]:
    """The instruction behind the choice that works in place, moved into both sides; there it reads what was loaded.

    It may stand in a choice of its own, made when the kernel is compiled.
    """
    path, (target, source) = copy.path, copy.args[:2]
    for step in block.steps[i + 1 :]:
        call = step.call
        if call is not None and (is_barrier(call, "PIPE_V") or call.name == "FreeTensor"):
            continue
        condition, user = _guarded(kernel, block, step.node)
        alike = user is not None and user.name in ELEMENTWISE - ACCUMULATING and user.args[:2] == (target, target)
        if (
            user is None
            or not alike
            or cast.args[0] != target
            or cast.args[1] != source
            or _count(user, root(target)) > 2
        ):
            return
        assert copy.statement is not None
        assert cast.statement is not None
        anew = f"{user.spelled(user.name, target, source, *user.args[2:])};"
        there, more = f"{kernel.text(path, user.node)};", kernel.text(path, copy.statement)
        barrier = "" if kernel.auto_sync else f"{_BARRIER} "
        if condition:
            anew = f"if constexpr {condition} {{ {anew} }} else {{ {more} }}"
            there = f"if constexpr {condition} {{ {barrier}{there} }}"
        else:
            there = f"{barrier}{there}"
        edits = (
            kernel.replace(path, copy.statement, anew),
            kernel.after(path, cast.statement, there),
            kernel.delete(path, step.node),
        )
        change = f"{user.name} of {block.function.name} reads {source} itself where the types agree"
        yield Change(f"{kernel.site(block.function, copy.statement)}/of it", change, edits)
        return


def _guarded(kernel: KernelProgram, block: Block, node: Node) -> tuple[str, ApiCall | None]:
    """(condition, the one call) of a choice at compile time with one side, or an instruction; barriers left aside."""
    if node.type != "if_statement":
        return "", kernel.call_of(block.function, node)
    condition, branch = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
    constant = any(c.type == "constexpr" for c in node.children) and node.child_by_field_name("alternative") is None
    if not constant or condition is None or branch is None or branch.type != "compound_statement":
        return "", None
    calls = [kernel.call_of(block.function, n) for n in branch.named_children if n.type != "comment"]
    work = [c for c in calls if c is None or not is_barrier(c, "PIPE_V")]
    return kernel.text(block.function.path, condition), work[0] if len(work) == 1 else None
