"""Flags: a pair set and waited for at once stops one pipe for another; in a loop it does so in every turn."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from ....sources.cpp import Edit
from .api import VECTOR
from .kernel_program import Block, KernelProgram
from .motif import Change, Motif

_EVENT = "HardEvent::V_S"


def _pairs(kernel: KernelProgram) -> Iterator[tuple[Block, Node, Node, str]]:
    """``SetFlag<E>(id); WaitFlag<E>(id);`` one behind the other, in code that runs again and again."""
    for block in kernel.blocks:
        if not kernel.repeated(block.function, block.node):
            continue
        for one, two in zip(block.steps, block.steps[1:], strict=False):
            a, b = one.call, two.call
            if a is None or b is None or (a.name, b.name) != ("SetFlag", "WaitFlag"):
                continue
            if a.template == b.template and a.args == b.args:
                yield block, one.node, two.node, a.template.strip("<> ")


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    found = list(_pairs(kernel))
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
        taken = {n.start_byte for b, n, _, _ in _pairs(kernel) if b.node == block.node}
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
