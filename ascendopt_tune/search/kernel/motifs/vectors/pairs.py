"""Two vector instructions that follow one another, and one in place of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .....sources.cpp import Edit
from ...reading.api import VECTOR, is_barrier, root
from ...reading.declared import local_kinds
from ...reading.kernel_program import ApiCall, Block, BlockStep, KernelProgram
from ..motif import Change
from .dead import dead

_INTEGER = re.compile(r"\bu?int(?:\d+_t)?\b")


@dataclass(frozen=True)
class Neighbours:
    """Two vector instructions that follow one another, barriers of the vector pipe between them left aside."""

    block: Block
    first: ApiCall
    second: ApiCall
    between: tuple[BlockStep, ...]


def pairs(kernel: KernelProgram) -> Iterator[Neighbours]:
    for block in kernel.blocks:
        last: tuple[int, ApiCall] | None = None
        for i, step in enumerate(block.steps):
            call = step.call
            if call is not None and is_barrier(call, "PIPE_V"):
                continue
            if call is None or call.name not in VECTOR:
                last = None
                continue
            if last is not None:
                yield Neighbours(block, last[1], call, block.steps[last[0] + 1 : i])
            last = (i, call)


def one(kernel: KernelProgram, pair: Neighbours, text: str, change: str) -> Change:
    """The pair replaced by one instruction."""
    first = pair.first.statement
    assert first is not None
    site = kernel.site(pair.block.function, first)
    return Change(site, f"{change} in {pair.block.function.name}", one_for(kernel, pair, text))


def one_for(kernel: KernelProgram, pair: Neighbours, text: str) -> tuple[Edit, ...]:
    """``text`` as a statement in place of the pair and of what is between."""
    path = pair.block.function.path
    first, second = pair.first.statement, pair.second.statement
    assert first is not None
    assert second is not None
    deleted = [kernel.delete(path, s) for s in (first, *(s.node for s in pair.between))]
    return (*deleted, kernel.replace(path, second, f"{text};"))


def floats(kernel: KernelProgram, call: ApiCall) -> bool:
    """Are the operands of a type that has products and sums in one instruction, as far as it is known?

    Where a choice at compile time is around the call, that is taken to be one of types, unless the tensor is one of
    integers by its declaration.
    """
    everywhere = local_kinds(s.data.decode("utf-8", "replace") for s in kernel.program.files.values())
    kinds = {**everywhere, **local_kinds([kernel.text(call.path, call.function.node)])}
    known = kinds.get(root(call.args[0]), set())
    if known and all(map(_INTEGER.search, known)):
        return False
    node = call.node.parent
    while node is not None and node != call.function.node:
        if node.type == "if_statement" and any(c.type == "constexpr" for c in node.children):
            return True
        node = node.parent
    given = {g for kind in known for g in kernel.given(call.function, kind)}
    return not _INTEGER.search(" ".join(known | given))


def dead_behind(kernel: KernelProgram, pair: Neighbours) -> bool:
    """Does nobody need what the first instruction makes, but the second one? Both are of tensors of their own."""
    name, f = root(pair.first.args[0]), pair.block.function
    return name != root(pair.second.args[0]) and dead(kernel, f, name, pair.second.node.end_byte)
