"""Products that are summed up later, by parts and between flags: each adds to the sum where it is made.

``for (...) Mul(b[i * n], x, y[i * n], mask, r, p); Mul(b[last], ...); SetFlag<...>(...); Add(a, a, b, n)`` is the same
with ``MulAddDst(a[i * n], ...)`` and no sum. Nothing else in the class names ``b`` or the buffer it is made of, so what
the sum covers beyond the products was never written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from .....sources.cpp import Edit, walk
from ...reading.api import is_barrier, root
from ...reading.counted import counted_loops
from ...reading.kernel_program import ApiCall, Block, BlockStep, KernelProgram
from ..motif import Change
from .pairs import floats

_WORD = re.compile(r"[A-Za-z_]\w*")
_FLAGS = ("SetFlag", "WaitFlag", "set_flag", "wait_flag")
_MADE = re.compile(
    r"(?:[^=;]*\bLocalTensor\s*<[^;=]*>\s*)?(?:this->)?(\w+)\s*=\s*(?:this->)?(\w+)\s*\.\s*(?:template\s+)?Get\b.*;",
    re.DOTALL,
)
_NAMES = ("identifier", "field_identifier")
_MASKED = 6  # target, two sources, mask, repeats, strides


def products_in_place(kernel: KernelProgram) -> Iterator[Change]:
    """Each sum whose one term is products, in loops or one by one, with nothing but flags between."""
    for block in kernel.blocks:
        for i, step in enumerate(block.steps):
            total = step.call
            if total is None or total.name != "Add" or len(total.args) != 4 or total.statement is None:
                continue
            target = total.args[0]
            for term in (t for t in total.args[1:3] if t != target and target in total.args[1:3]):
                found = _products(kernel, block, i, term, target)
                if found and floats(kernel, total) and _is_alone(kernel, total, term, found):
                    yield _change(kernel, block, total, term, found)


def _products(kernel: KernelProgram, block: Block, i: int, term: str, target: str) -> Sequence[ApiCall]:
    """The products in front of step ``i``; none where one instruction of another kind comes between or they follow it
    without a loop or a flag, which is another form (products_in_repeats.py)."""
    if not term.isidentifier() or not re.fullmatch(r"(?:this->)?\w+", target):
        return ()
    out: list[ApiCall] = []
    parted = False
    for step in reversed(block.steps[:i]):
        call = step.call
        if call is not None and (call.name in _FLAGS or is_barrier(call, "PIPE_V")):
            parted = parted or call.name in _FLAGS
            continue
        mine = _of_step(kernel, block, step, term, target)
        out = [*mine, *out]
        parted = parted or (bool(mine) and step.node.type == "for_statement")
        if not mine and {term, root(target)} & set(_WORD.findall(kernel.text(block.function.path, step.node))):
            break
    return out if parted else ()


def _of_step(kernel: KernelProgram, block: Block, step: BlockStep, term: str, target: str) -> list[ApiCall]:
    """The products that a statement is, or that a loop is made of."""
    if step.node.type != "for_statement":
        return [step.call] if step.call is not None and _is_product(step.call, term, target) else []
    loop = next((n for n in counted_loops(kernel) if n.node == step.node and n.block.function == block.function), None)
    calls = [s.call for s in loop.block.steps if s.node.type != "comment"] if loop is not None else []
    work = [c for c in calls if c is None or not is_barrier(c, "PIPE_V")]
    found = [c for c in work if c is not None and _is_product(c, term, target)]
    return found if len(found) == len(work) else []


def _is_product(call: ApiCall, term: str, target: str) -> bool:
    if call.name != "Mul" or len(call.args) != _MASKED or root(call.args[0]) != term or call.statement is None:
        return False
    return not {term, root(target)} & {w for a in call.args[1:] for w in _WORD.findall(a)}


def _is_alone(kernel: KernelProgram, total: ApiCall, term: str, found: Sequence[ApiCall]) -> bool:
    """Does nothing else of the class name the products' tensor, or its buffer, but what makes them?"""
    mine = [total, *found]
    of = kernel.class_of(total.function)
    buffers: set[str] = set()
    functions = [f for f in kernel.functions if kernel.class_of(f) == of]
    for f in functions:
        for node in walk(f.body):
            if node.type not in _NAMES or kernel.text(f.path, node) != term:
                continue
            if f.path == total.path and any(_within(node, c.node) for c in mine):
                continue
            made = _MADE.fullmatch(kernel.text(f.path, _statement(node)))
            if made is None or made[1] != term:
                return False
            buffers.add(made[2])
    if len(buffers) != 1:
        return False
    (buffer,) = buffers
    named = sum(n.type in _NAMES and kernel.text(f.path, n) == buffer for f in functions for n in walk(f.body))
    making = [
        c
        for f in functions
        for c in kernel.calls_of(f)
        if c.name == "InitBuffer" and buffer in _WORD.findall(c.args[0])
    ]
    return named == len(making) + 1


def _within(node: Node, other: Node) -> bool:
    return other.start_byte <= node.start_byte < other.end_byte


def _statement(node: Node) -> Node:
    while node.parent is not None and node.parent.type != "compound_statement":
        node = node.parent
    return node


def _change(kernel: KernelProgram, block: Block, total: ApiCall, term: str, found: Sequence[ApiCall]) -> Change:
    path, f = block.function.path, block.function
    edits: list[Edit] = []
    for call in found:
        place = total.args[0] + call.args[0].removeprefix(term)
        edits.append(kernel.replace(path, call.node, call.spelled("MulAddDst", place, *call.args[1:])))
    assert total.statement is not None
    edits.append(kernel.delete(path, total.statement))
    if not kernel.auto_sync:
        first = next(s.node for s in block.steps if _within(found[0].node, s.node))
        edits.append(kernel.before(path, first, "PipeBarrier<PIPE_V>();"))
    change = f"{len(found)} products of {f.name} added to {total.args[0]} as they are made"
    return Change(f"{kernel.site(f, total.statement)}/placed", change, tuple(edits))
