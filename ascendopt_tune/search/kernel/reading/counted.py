"""Loops that count: name, bounds and step of those whose body is a block."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from .kernel_program import Block, KernelProgram

_COUNTED = re.compile(
    r"for\s*\(\s*([\w:\s]+?)\b(\w+)\s*=\s*([^;]+?)\s*;\s*(\w+)\s*<\s*([^;]+?)\s*;\s*(.+?)\)\s*$", re.DOTALL
)


@dataclass(frozen=True)
class CountedLoop:
    """``for (type name = first; name < bound; name += step) {...}``; ``step`` is an expression, ``1`` for ``++``."""

    block: Block
    node: Node
    type: str
    name: str
    first: str
    bound: str
    step: str


def counted_loops(kernel: KernelProgram) -> Iterator[CountedLoop]:
    """Loops of live functions that count upwards and have a block as their body, outer ones first."""
    for block in kernel.blocks:
        loop = block.node.parent
        if loop is None or loop.type != "for_statement":
            continue
        path = block.function.path
        head = kernel.program.files[path].data[loop.start_byte : block.node.start_byte].decode("utf-8", "replace")
        found = _COUNTED.match(head.strip())
        if found is None or found[4] != found[2]:
            continue
        name, update = found[2], found[6].strip()
        added = re.fullmatch(rf"{name}\s*\+=\s*(.+)", update, re.DOTALL)
        if added is None and update not in (f"{name}++", f"++{name}"):
            continue
        yield CountedLoop(block, loop, found[1].strip(), name, found[3], found[5], added[1] if added else "1")
