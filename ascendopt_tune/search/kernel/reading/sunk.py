"""Instructions in front of a choice at compile time, moved into its sides, where what reads their result stands.

``Muls(y, x, a, n); if constexpr (c) { Adds(z, y, b, n); } else { Adds(x, y, b, n); Cast(z, x, ...); }`` has the product
in front of both sums then. Barriers of the vector pipe go with the instructions; a tensor that is taken from a queue in
between is taken first. Where no side may be chosen, one more is added.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from ....sources.cpp import Edit, Function, walk
from .api import ELEMENTWISE, VECTOR, is_barrier, root
from .kernel_program import Block, BlockStep, KernelProgram
from .written_out import Piece, Rewritten

_MOST = 3  # instructions that are moved
_TAKEN = re.compile(r"(?:[\w:]+\s*<[^;=]*>\s*|auto\s+)?\w+\s*=\s*[\w.>-]+\.\s*(?:template\s+)?AllocTensor\b[^;]*;")


def sunk(kernel: KernelProgram) -> Iterator[Rewritten]:
    """What is taken out in front of each such choice, and what is put into its sides."""
    for block in kernel.blocks:
        for i, step in enumerate(block.steps):
            sides = _sides(step.node)
            moved = _moved(kernel, block, i) if sides is not None else []
            if sides is None or not moved or not any(_reads(kernel, block, s, moved) for s in sides[0]):
                continue
            f = block.function
            pieces: list[Piece] = []
            for s in moved:
                pieces += [Piece("\n"), Piece(kernel.text(f.path, s.node), (f.path, s.node.start_byte))]
            for s in moved:
                yield f, Edit(f.path, s.node.start_byte, s.node.end_byte, ""), ()
            for side in sides[0]:
                yield _put(f, side.start_byte + 1, [*pieces, Piece("\n")])
            if sides[1]:
                yield _put(f, step.node.end_byte, [Piece(" else {"), *pieces, Piece("\n}")])


def _put(f: Function, at: int, pieces: list[Piece]) -> Rewritten:
    return f, Edit(f.path, at, at, "".join(p.text for p in pieces)), tuple(pieces)


def _sides(node: Node) -> tuple[list[Node], bool] | None:
    """The blocks of ``if constexpr``, those of what stands behind its ``else`` too, and whether none may be chosen."""
    out: list[Node] = []
    while node.type == "if_statement" and any(c.type == "constexpr" for c in node.children):
        then, other = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        if then is None or then.type != "compound_statement":
            return None
        out.append(then)
        if other is None:
            return out, True
        node = other.named_children[-1]
    return ([*out, node], False) if out and node.type == "compound_statement" else None


def _moved(kernel: KernelProgram, block: Block, i: int) -> list[BlockStep]:
    """The instructions that stand directly in front of step ``i``, with the barriers behind them, in order."""
    out: list[BlockStep] = []
    pending: list[BlockStep] = []
    for step in reversed(block.steps[:i]):
        text = kernel.text(block.function.path, step.node)
        if step.call is not None and is_barrier(step.call, "PIPE_V"):
            pending.append(step)
        elif step.call is not None and step.call.name in ELEMENTWISE and len(out) < _MOST:
            out += [*pending, step]
            pending = []
            if sum(s.call is not None and s.call.name in ELEMENTWISE for s in out) == _MOST:
                break
        elif step.node.type != "comment" and _TAKEN.fullmatch(text) is None:
            break
    return out[::-1]


def _reads(kernel: KernelProgram, block: Block, side: Node, moved: list[BlockStep]) -> bool:
    """Is the first vector instruction of a side one that reads what the last one that is moved makes?"""
    made = next(root(s.call.args[0]) for s in reversed(moved) if s.call is not None and s.call.name in ELEMENTWISE)
    calls = (kernel.call_at(block.function, n) for n in walk(side) if n.type == "call_expression")
    first = next((c for c in calls if c.name in VECTOR or c.name == "DataCopy"), None)
    return first is not None and made in {root(a) for a in first.args[1:]}
