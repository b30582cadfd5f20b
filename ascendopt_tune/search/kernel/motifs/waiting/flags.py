"""Flags: a pair set and waited for at once stops one pipe for another; in a loop it does so in every turn.

Many kernels have such pairs in a function of their own, ``SyncVToS()`` or ``SetWaitFlag<HardEvent::V_S>(...)``: each
call of it is a pair.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from tree_sitter import Node

from .....sources.cpp import Edit, Function
from ...reading.api import VECTOR
from ...reading.kernel_program import ApiCall, Block, BlockStep, KernelProgram
from ..motif import Change, Motif

_EVENT = "HardEvent::V_S"
_WAITS = {"SetFlag": "WaitFlag", "set_flag": "wait_flag"}
_PIPES = re.compile(r"PIPE_(\w+)\s*,\s*PIPE_(\w+)")
_NAMED = re.compile(r"\bHardEvent::\w+")
# The pipe that waits works on what comes next in order, and nothing is issued later for it: hardly any time is lost.
_FORWARD = frozenset(["HardEvent::MTE2_V", "HardEvent::V_MTE3", "HardEvent::MTE2_MTE3"])
_MAKES_ID = ("FetchEventID", "AllocEventID", "ReleaseEventID")


def _event(call: ApiCall) -> str:
    """The event of a flag, as the enumeration spells it; empty where it can't be read from the call."""
    if call.name in ("SetFlag", "WaitFlag"):
        return call.template.strip("<> ").removeprefix("AscendC::")
    pipes = _PIPES.search(", ".join(call.args))
    return f"HardEvent::{pipes[1]}_{pipes[2]}" if pipes else ""


def pairs(kernel: KernelProgram) -> Iterator[tuple[Block, Node, Node, str]]:
    """(block, where it is set, where it is waited for, event) of each flag that is waited for at once, in code that
    runs again and again, however it is spelled.

    ``SetFlag<E>(id); WaitFlag<E>(id);`` or ``set_flag(PIPE_A, PIPE_B, id); wait_flag(PIPE_A, PIPE_B, id);``; a call of
    a function that does nothing else is both.
    """
    own = _waiting(kernel)
    for block in kernel.blocks:
        if not kernel.repeated(block.function, block.node):
            continue
        steps = [s for s in block.steps if s.node.type != "comment"]
        for step in steps:
            if step.call is not None and step.call.name in own:
                found = _NAMED.search(f"{step.call.template} {' '.join(step.call.args)}")
                yield block, step.node, step.node, own[step.call.name] or (found[0] if found else step.call.name)
        for one, two in pairwise(steps):
            event = _pair(one, two)
            if event:
                yield block, one.node, two.node, event


def _pair(one: BlockStep, two: BlockStep) -> str:
    """The event that the first statement sets and the second one waits for; empty where they don't."""
    a, b = one.call, two.call
    if a is None or b is None or _WAITS.get(a.name) != b.name or a.args != b.args:
        return ""
    return _event(a) if _event(a) == _event(b) else ""


def _waiting(kernel: KernelProgram) -> dict[str, str]:
    """The kernel's own functions that set a flag, wait for it, and do nothing else: name -> event, empty where the
    caller says which.
    """
    out: dict[str, str | None] = {}
    for f in kernel.program.functions:
        name = f.name.partition("<")[0]
        event = _only_waits(kernel, f)
        out[name] = event if out.get(name, event) == event else None
    return {name: event for name, event in out.items() if event is not None}


def _only_waits(kernel: KernelProgram, f: Function) -> str | None:
    """The event of a function that is a pair and what makes its event id; None for any other function."""
    steps = [BlockStep(n, kernel.call_of(f, n)) for n in f.body.named_children if n.type != "comment"]
    event = next((e for one, two in pairwise(steps) if (e := _pair(one, two))), "")
    rest = [s for s in steps if s.call is None or s.call.name not in (*_WAITS, *_WAITS.values(), *_MAKES_ID)]
    if not event or any(s.node.type != "declaration" or not _makes_id(kernel.text(f.path, s.node)) for s in rest):
        return None
    if sum(s.call is not None and s.call.name in _WAITS for s in steps) > 1:
        return None
    return event if _NAMED.fullmatch(event) else ""


def _makes_id(declaration: str) -> bool:
    return any(name in declaration for name in _MAKES_ID) or re.search(r"\bEVENT_ID\d\b", declaration) is not None


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    found = [p for p in pairs(kernel) if p[1] != p[2] or p[3] not in _FORWARD]
    edits = [
        tuple(kernel.delete(block.function.path, n) for n in _statements(set_flag, wait_flag))
        for block, set_flag, wait_flag, _ in found
    ]
    if len(found) > 1:
        flat = tuple(e for pair in edits for e in pair)
        yield Change("all", f"{len(found)} pairs of SetFlag and WaitFlag taken out", flat)
    for (block, set_flag, _, event), pair in zip(found, edits, strict=True):
        site = kernel.site(block.function, set_flag)
        yield Change(site, f"{event} of {block.function.name} is not waited for", pair)
    for block, set_flag, wait_flag, event in found:
        loop = block.node.parent
        outer = loop.parent if loop is not None and loop.type == "for_statement" else None
        if loop is None or outer is None or outer.type != "compound_statement" or wait_flag != block.steps[-1].node:
            continue
        path = block.function.path
        statements = _statements(set_flag, wait_flag)
        edits_out = [kernel.delete(path, n) for n in statements]
        indent = kernel.indent(path, loop)
        moved = "".join(f"\n{indent}{kernel.text(path, n)}" for n in statements)
        edits_out.append(Edit(path, loop.end_byte, loop.end_byte, moved))
        site = f"{kernel.site(block.function, set_flag)}/behind"
        yield Change(site, f"{event} of {block.function.name} waited for once, behind the loop", tuple(edits_out))


def _statements(set_flag: Node, wait_flag: Node) -> tuple[Node, ...]:
    """The statements of a pair: two, or the one call that is both."""
    return (set_flag,) if set_flag == wait_flag else (set_flag, wait_flag)


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    for block in kernel.blocks:
        if not kernel.repeated(block.function, block.node):
            continue
        calls = [s.node for s in block.steps if s.call is not None and s.call.name in VECTOR]
        taken = {n.start_byte for b, n, _, _ in pairs(kernel) if b.node == block.node}
        if not calls or taken:
            continue
        path = block.function.path
        indent = kernel.indent(path, calls[0])
        event = f"static_cast<event_t>(GetTPipePtr()->FetchEventID({_EVENT}))"
        name = "eventWait"
        if name in kernel.text(path, block.function.node):
            continue
        declared = f"event_t {name} = {event};\n{indent}"
        pair = f"\n{indent}SetFlag<{_EVENT}>({name});\n{indent}WaitFlag<{_EVENT}>({name});"
        edits = [Edit(path, calls[0].start_byte, calls[0].start_byte, declared)]
        edits += [Edit(path, n.end_byte, n.end_byte, pair) for n in calls]
        site = f"{block.function.name}/{calls[0].start_point[0] - block.function.node.start_point[0]}"
        change = f"the scalar unit of {block.function.name} waits behind each vector instruction"
        yield Change(site, change, tuple(edits))


FLAG_PAIR = Motif(
    name="flag-pair",
    title="No wait for what nobody needs",
    description="SetFlag with WaitFlag right behind stops the second pipe until the first has finished everything "
    "before. In a loop that is a round trip a turn. Without the pair, or with one behind the loop, the "
    "pipes overlap.",
    bottlenecks=("scalar round trips", "no overlap", "scalar"),
    preconditions="What the flag ordered is ordered by a queue, another flag or the compiler; or the result is needed "
    "only behind the loop.",
    faster=_faster,
    slower=_slower,
    together="no",
)
