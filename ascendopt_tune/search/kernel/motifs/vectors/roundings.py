"""Floats rounded to whole numbers by one cast, from float to float, where they went to int32 and back.

``Cast(i, x, CAST_FLOOR, n); Cast(y, i, CAST_NONE, n)`` is ``Cast(y, x, CAST_FLOOR, n)`` for what fits int32: a pass and
a barrier less. What is NaN, infinite or beyond int32 stays what it is, where int32 has another number for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import Edit
from ...reading.api import ACCUMULATING, ELEMENTWISE, is_barrier, root, writes
from ...reading.declared import kinds_in
from ...reading.kernel_program import ApiCall, KernelProgram, Where, where
from ..motif import Change, Motif
from .casts import kind_of

_MODE = re.compile(r"(?:AscendC::)?(?:RoundMode::)?CAST_(?:RINT|ROUND|FLOOR|CEIL|TRUNC)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_INT = "template ReinterpretCast<int32_t>()"


@dataclass(frozen=True)
class _Trip:
    """``Cast(whole, source, mode, n)``, the barriers behind it, and the casts to float of what it made, in order."""

    there: ApiCall
    idle: tuple[Node, ...]
    back: tuple[ApiCall, ...]


def _is_cast(call: ApiCall | None) -> bool:
    return call is not None and call.name == "Cast" and len(call.args) == 4 and call.statement is not None


def _trips(kernel: KernelProgram) -> Iterator[_Trip]:
    known: dict[Where, dict[str, set[str]]] = {}
    for block in kernel.blocks:
        for i, step in enumerate(block.steps):
            there = step.call
            if there is None or not _is_cast(there) or _MODE.fullmatch(there.args[2]) is None:
                continue
            at = where(block.function)
            kinds = known[at] = known.get(at) or kinds_in(kernel, block.function)
            if (kind_of(kinds, there.args[0]), kind_of(kinds, there.args[1])) != ("int32_t", "float"):
                continue
            idle: list[Node] = []
            for later in block.steps[i + 1 :]:
                if later.call is not None and is_barrier(later.call, "PIPE_V"):
                    idle.append(later.node)
                elif later.node.type != "comment":
                    break
            else:
                continue
            back = _back(kernel, there, kinds)
            if back and back[0].statement == later.node:
                yield _Trip(there, tuple(idle), back)


def _back(kernel: KernelProgram, there: ApiCall, kinds: dict[str, set[str]]) -> tuple[ApiCall, ...]:
    """The casts to float that read the whole numbers, if nothing else does before they are made anew."""
    whole, _, _, count = there.args
    name = root(whole)
    found: list[ApiCall] = []
    for call in kernel.calls_of(there.function):
        words = {w for a in call.args for w in _WORD.findall(a)} | {root(call.receiver)}
        held = root(found[0].args[0]) if found else ""
        behind = call.node.start_byte > there.node.start_byte and call.name != "ReinterpretCast"
        if not behind or not words & {name, held} - {""}:
            continue
        to_float = _is_cast(call) and kind_of(kinds, call.args[0]) == "float" and call.args[3] == count
        if to_float and call.args[1] == whole and (not found or _kept(kernel, found[0], call)):
            found.append(call)
            if root(call.args[0]) == name:
                return tuple(found)
            continue
        if name not in words or call.name == "FreeTensor":
            continue
        anew = name in writes(call) and call.name in ELEMENTWISE - ACCUMULATING and call.args[0] == whole
        if anew and name not in {w for a in call.args[1:] for w in _WORD.findall(a)}:
            return tuple(found)
        if name in writes(call) and call.name not in ELEMENTWISE:
            continue
        return ()
    return tuple(found)


def _kept(kernel: KernelProgram, made: ApiCall, until: ApiCall) -> bool:
    """Does nothing write the rounded floats between the first cast back and another one?"""
    between = (
        c for c in kernel.calls_of(made.function) if made.node.start_byte < c.node.start_byte < until.node.start_byte
    )
    return not any(root(made.args[0]) in writes(c) for c in between)


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    for trip in _trips(kernel):
        there, path, f = trip.there, trip.there.path, trip.there.function
        first, *others = trip.back
        assert there.statement is not None
        edits: list[Edit] = [kernel.delete(path, n) for n in (there.statement, *trip.idle)]
        edits.append(kernel.replace(path, first.node, first.spelled("Cast", first.args[0], *there.args[1:])))
        for call in others:
            text = call.spelled("Cast", call.args[0], first.args[0], *there.args[2:])
            edits.append(kernel.replace(path, call.node, text))
        change = f"{there.args[1]} of {f.name} rounded from float to float, not by way of int32"
        yield Change(kernel.site(f, there.statement), change, tuple(edits))


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """The way over int32 again, in the room of the result."""
    known: dict[Where, dict[str, set[str]]] = {}
    for call in kernel.named("Cast"):
        if not _is_cast(call) or _MODE.fullmatch(call.args[2]) is None:
            continue
        at = where(call.function)
        kinds = known[at] = known.get(at) or kinds_in(kernel, call.function)
        target, source, mode, count = call.args
        if (kind_of(kinds, target), kind_of(kinds, source)) != ("float", "float") or call.statement is None:
            continue
        whole = f"{target}.{_INT}"
        none = re.sub(r"CAST_\w+", "CAST_NONE", mode)
        barrier = "" if kernel.auto_sync else "PipeBarrier<PIPE_V>(); "
        first, second = (call.spelled("Cast", *a) for a in ((whole, *call.args[1:]), (target, whole, none, count)))
        edit = kernel.replace(call.path, call.statement, f"{first}; {barrier}{second};")
        change = f"{source} of {call.function.name} rounded by way of int32"
        yield Change(kernel.site(call.function, call.statement), change, (edit,))


ROUNDING_CAST = Motif(
    name="rounding-cast",
    title="Rounded by one cast",
    description="A float that is rounded by a cast to int32 and back takes two passes over the data. A cast from "
    "float to float with the same rounding is one.",
    bottlenecks=("vector", "vector barriers", "short vector instructions"),
    preconditions="Nothing else reads the int32 values; what is rounded is a number within int32 (NaN and what is "
    "beyond stay, where int32 has 0 or its limits).",
    faster=_faster,
    slower=_slower,
)
