"""Whole blocks by one copy and what is left by another one: where something is left, one with padding takes both.

``if (n != 0) { DataCopy(t, x, n); } if (rest != 0) { ... DataCopyPad(t[n], x[n], params, ...); }``, in either
direction: the second copy begins at the first element and is as much longer, and the first one is for no rest only.
What stands there for another chip (``#ifdef``) is left as it is, and would need the first copy still.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from tree_sitter import Node

from .....sources.cpp import Edit, walk
from ...reading.kernel_program import ApiCall, Block, KernelProgram, flat
from ..motif import Change, Motif

_PARAMS = re.compile(
    r"(?:const\s+|constexpr\s+)*(?:AscendC::)?DataCopyExtParams\s+(\w+)\s*=?\s*\{(.*)\}\s*;", re.DOTALL
)
_LONGER = re.compile(r"static_cast<uint32_t>\(\((.*)\) \* sizeof\((\w+)\.GetValue\(0\)\)\) \+ \((.*)\)", re.DOTALL)


@dataclass(frozen=True)
class _Pair:
    """``blocks`` copies the first elements if ``first``, ``rest`` the others if ``second``; ``length``: of the rest, in
    bytes, as its parameters have it."""

    block: Block
    first: Node
    second: Node
    blocks: ApiCall
    rest: ApiCall
    length: Node


def _pairs(kernel: KernelProgram) -> Iterator[_Pair]:
    """Choices behind each other, with a copy and one with padding in them."""
    for block in kernel.blocks:
        nodes = [s.node for s in block.steps if s.node.type != "comment"]
        for one, two in pairwise(nodes):
            conditions = [n.child_by_field_name("condition") for n in (one, two) if n.type == "if_statement"]
            if len(conditions) != 2 or any(n.child_by_field_name("alternative") is not None for n in (one, two)):
                continue
            copies = _calls(kernel, block, one)
            padded = [c for c in _calls(kernel, block, two) if c.name == "DataCopyPad" and len(c.args) in (3, 4)]
            if len(copies) != 1 or copies[0].name != "DataCopy" or len(copies[0].args) != 3 or len(padded) != 1:
                continue
            length = _length(kernel, block, two, padded[0].args[2])
            if length is not None and conditions[0] is not None and conditions[1] is not None:
                yield _Pair(block, conditions[0], conditions[1], copies[0], padded[0], length)


def _calls(kernel: KernelProgram, block: Block, node: Node) -> list[ApiCall]:
    side = node.child_by_field_name("consequence")
    found = walk(side) if side is not None else ()
    return [kernel.call_at(block.function, n) for n in found if n.type == "call_expression"]


def _length(kernel: KernelProgram, block: Block, node: Node, name: str) -> Node | None:
    """How many bytes a choice's parameters of one block say."""
    path = block.function.path
    for declared in (n for n in walk(node) if n.type == "declaration"):
        found = _PARAMS.fullmatch(kernel.text(path, declared))
        listed = next((n for n in walk(declared) if n.type == "initializer_list"), None)
        if found is None or found[1] != name or listed is None or len(listed.named_children) != 5:
            continue
        values = [flat(kernel.text(path, n)) for n in listed.named_children]
        if values[0] == "1" and values[2:] == ["0"] * 3:
            return listed.named_children[1]
    return None


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    for p in _pairs(kernel):
        path, (target, source, count) = p.blocks.path, p.blocks.args
        if p.rest.args[:2] != (f"{target}[{count}]", f"{source}[{count}]") or not re.fullmatch(r"\w+", target):
            continue
        first, second = (kernel.text(path, n) for n in (p.first, p.second))
        whole = f"static_cast<uint32_t>(({count}) * sizeof({target}.GetValue(0))) + ({kernel.text(path, p.length)})"
        edits = (
            kernel.replace(path, p.first, f"({first} && !{second})"),
            kernel.replace(path, p.length, whole),
            *(kernel.replace(path, n, text) for n, text in zip(p.rest.arguments, (target, source), strict=False)),
        )
        change = f"{target} of {p.block.function.name} in one copy, blocks and rest"
        yield Change(f"{kernel.site(p.block.function, p.blocks.node)}/whole", change, edits)


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    for p in _pairs(kernel):
        path, (target, source, count) = p.blocks.path, p.blocks.args
        found = _LONGER.fullmatch(kernel.text(path, p.length))
        first, second = (kernel.text(path, n) for n in (p.first, p.second))
        end = f" && !{second})"
        if found is None or found[1] != count or p.rest.args[:2] != (target, source) or not first.endswith(end):
            continue
        edits: list[Edit] = [
            kernel.replace(path, p.first, first[1:].removesuffix(end)),
            kernel.replace(path, p.length, found[3]),
            *(
                kernel.replace(path, n, f"{text}[{count}]")
                for n, text in zip(p.rest.arguments, (target, source), strict=False)
            ),
        ]
        change = f"blocks and rest of {target} in two copies"
        yield Change(f"{kernel.site(p.block.function, p.blocks.node)}/whole", change, tuple(edits))


WHOLE_COPY = Motif(
    name="whole-copy",
    title="Blocks and rest in one copy",
    description="Whole blocks of 32 bytes by DataCopy and what is left by DataCopyPad are two copies, each with a head "
    "of its own. Where something is left, one DataCopyPad takes all.",
    bottlenecks=("small copies", "copies", "no overlap"),
    preconditions="The rest begins where the blocks end; one block of parameters says its length.",
    faster=_faster,
    slower=_slower,
)
