"""Flags: a pair set and waited for at once stops one pipe for another; in a loop it does so in every turn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from tree_sitter import Node

from ....sources.cpp import Edit
from .api import VECTOR
from .kernel_program import ApiCall, Block, KernelProgram
from .motif import Change, Motif

_EVENT = "HardEvent::V_S"
_WAITS = {"SetFlag": "WaitFlag", "set_flag": "wait_flag"}
_PIPES = re.compile(r"PIPE_(\w+)\s*,\s*PIPE_(\w+)")


def _event(call: ApiCall) -> str:
    """The event of a flag, as the enumeration spells it; empty where it can't be read from the call."""
    if call.name in ("SetFlag", "WaitFlag"):
        return call.template.strip("<> ").removeprefix("AscendC::")
    pipes = _PIPES.search(", ".join(call.args))
    return f"HardEvent::{pipes[1]}_{pipes[2]}" if pipes else ""


def pairs(kernel: KernelProgram) -> Iterator[tuple[Block, Node, Node, str]]:
    """A flag set and waited for one behind the other, in code that runs again and again, however it is spelled.

    ``SetFlag<E>(id); WaitFlag<E>(id);`` or ``set_flag(PIPE_A, PIPE_B, id); wait_flag(PIPE_A, PIPE_B, id);``.
    """
    for block in kernel.blocks:
        if not kernel.repeated(block.function, block.node):
            continue
        steps = [s for s in block.steps if s.node.type != "comment"]
        for one, two in pairwise(steps):
            a, b = one.call, two.call
            if a is None or b is None or _WAITS.get(a.name) != b.name:
                continue
            if _event(a) and _event(a) == _event(b) and a.args == b.args:
                yield block, one.node, two.node, _event(a)


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    found = list(pairs(kernel))
    edits = [
        tuple(kernel.delete(block.function.path, n) for n in (set_flag, wait_flag))
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
        edits_out = [kernel.delete(path, n) for n in (set_flag, wait_flag)]
        indent = kernel.indent(path, loop)
        moved = f"\n{indent}{kernel.text(path, set_flag)}\n{indent}{kernel.text(path, wait_flag)}"
        edits_out.append(Edit(path, loop.end_byte, loop.end_byte, moved))
        site = f"{kernel.site(block.function, set_flag)}/behind"
        yield Change(site, f"{event} of {block.function.name} waited for once, behind the loop", tuple(edits_out))


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
    together="auto-sync",
)
