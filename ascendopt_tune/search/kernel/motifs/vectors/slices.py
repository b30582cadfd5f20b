"""A loop over slices of a tile, 256 bytes each mostly, made one instruction a step of the turn over all slices.

Slices lie one behind the other, at an offset that each turn moves by their length: ``x[at]`` with ``at += length``, or
``x[i * length]``. What a turn leaves in a slice of its own, to read it there, is made where its result goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...reading.affine import affine, fixed, indexed
from ...reading.api import ACCUMULATING, ELEMENTWISE, UNARY, is_barrier, root
from ...reading.counted import CountedLoop, counted_loops
from ...reading.kernel_program import ApiCall, KernelProgram
from ..motif import Change

_ADDED = re.compile(r"(\w+)\s*\+=\s*([^;]+);", re.DOTALL)
_SET = re.compile(r"(?:const\s+)?[\w:]+\s+(\w+)\s*=\s*([^;{}]+);", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class _Turn:
    """What a turn does: instructions, barriers between any of them, variables it sets, offset -> what it moves by."""

    calls: tuple[ApiCall, ...]
    ordered: bool
    names: dict[str, str]
    moved: dict[str, str]


def slices_at_once(kernel: KernelProgram) -> Iterator[Change]:
    """Loops over slices that need no loop: each with an offset that moves, or with a slice of the turn's own."""
    for loop in counted_loops(kernel):
        turn = _turn(kernel, loop)
        if turn is None or (loop.first, loop.step) != ("0", "1") or not all(map(_plain, turn.calls)):
            continue
        length = turn.calls[0].args[-1]
        alike = {_bare(c.args[-1]) for c in turn.calls} == {_bare(length)} and fixed(length, loop.name, turn.names)
        if not alike or loop.name in _WORD.findall(loop.bound):
            continue
        whole = _whole(loop, turn, length)
        if whole is None:
            continue
        barrier = " PipeBarrier<PIPE_V>();" if turn.ordered and not kernel.auto_sync else ""
        steps = [f"{text};{barrier}" for text in whole]
        steps += [f"{name} += ({loop.bound}) * ({by});" for name, by in turn.moved.items()]
        f = loop.block.function
        text = f"if ({loop.bound} > 0) {{ {' '.join(steps)} }}"
        names = ", ".join(dict.fromkeys(c.name for c in turn.calls))
        change = f"{names} of {f.name} over all slices at once"
        yield Change(f"{kernel.site(f, loop.node)}/slices", change, (kernel.replace(f.path, loop.node, text),))


def _turn(kernel: KernelProgram, loop: CountedLoop) -> _Turn | None:
    calls: list[ApiCall] = []
    names: dict[str, str] = {}
    moved: dict[str, str] = {}
    ordered = False
    for step in loop.block.steps:
        text = kernel.text(loop.block.function.path, step.node)
        added, given = _ADDED.fullmatch(text), _SET.fullmatch(text)
        if step.node.type == "comment":
            continue
        if step.call is not None and is_barrier(step.call, "PIPE_V"):
            ordered = True
        elif step.call is not None and not moved:
            calls.append(step.call)
        elif added is not None and calls and fixed(added[2], loop.name, names):
            moved[added[1]] = added[2]
        elif given is not None and not calls and "GetValue" not in text:
            names[given[1]] = given[2]
        else:
            return None
    return _Turn(tuple(calls), ordered, names, moved) if calls else None


def _plain(call: ApiCall) -> bool:
    """An elementwise instruction in its count form, of operands of one type."""
    count = 3 if call.name in UNARY | {"Duplicate"} else 4
    return call.name in ELEMENTWISE - {"Cast", "Axpy"} and len(call.args) == count


def _operands(call: ApiCall) -> range:
    """Places of the operands that are tensors."""
    scalar = call.name.endswith("s") and call.name != "Abs"
    tensors = 1 if call.name == "Duplicate" else 2 if call.name in UNARY or scalar or call.name == "LeakyRelu" else 3
    return range(tensors)


def _bare(text: str) -> str:
    text = re.sub(r"static_cast<[\w:]+>|\(u?int\d+_t\)|this->|\s", "", text)
    while (inner := re.sub(r"(?<!\w)\((\w+)\)", r"\1", text)) != text:
        text = inner
    return text


def _whole(loop: CountedLoop, turn: _Turn, length: str) -> list[str] | None:
    """The instructions over all slices; None where an operand is the same in every turn, or moves by anything else."""
    own = _own(loop, turn, length)
    if own is None:
        return None
    out = []
    for call in turn.calls:
        args = list(call.args)
        for i in _operands(call):
            place = _first(loop, turn, own.get(args[i], args[i]), length)
            if place is None:
                return None
            args[i] = place
        if not all(fixed(a, loop.name, {**turn.names, **turn.moved}) for a in args[len(_operands(call)) : -1]):
            return None
        args[-1] = f"({loop.bound}) * ({length})"
        out.append(call.spelled(call.name, *args))
    return out


def _first(loop: CountedLoop, turn: _Turn, operand: str, length: str) -> str | None:
    """Where the operand's slices begin; None for one that isn't a slice behind the other in each turn."""
    tensor, index = indexed(operand)
    if index in turn.moved:
        return operand if _bare(turn.moved[index]) == _bare(length) else None
    place = affine(operand, loop.name, "0", turn.names) if index is not None else None
    if place is None or _bare(place.step) != _bare(length) or set(turn.moved) & set(_WORD.findall(operand)):
        return None
    return tensor if place.start == "0" else f"{tensor}[{place.start}]"


def _own(loop: CountedLoop, turn: _Turn, length: str) -> dict[str, str] | None:
    """Tensors that hold a slice in each turn anew -> the result's slice that may hold it; None where one can't.

    The result must not be touched from where the slice is made to where it is read for the last time.
    """
    out: dict[str, str] = {}
    for name in dict.fromkeys(c.args[i] for c in turn.calls for i in _operands(c)):
        if _first(loop, turn, name, length) is not None:
            continue
        uses = [i for i, c in enumerate(turn.calls) if name in c.args]
        made, last = turn.calls[uses[0]], turn.calls[uses[-1]]
        fresh = made.args[0] == name and name not in made.args[1:] and made.name not in ACCUMULATING
        result = last.args[0]
        between: Sequence[ApiCall] = turn.calls[uses[0] : uses[-1]]
        touched = any(root(a) == root(result) for c in between for a in c.args)
        again = result in last.args[1:] or last.name in ACCUMULATING
        if not fresh or len(uses) < 2 or touched or again or _first(loop, turn, result, length) is None:
            return None
        out[name] = result
    return out
