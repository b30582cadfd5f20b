"""Products of rows by repeats, which are summed up later by one instruction: MulAddDst, with the same repeats.

``Mul(b[0], x, c, mask, r, p); Mul(b[32], y, s, mask, r, p); Add(a, a, b, n)`` is ``MulAddDst(a[0], x, c, mask, r, p);
MulAddDst(a[32], y, s, mask, r, p)``: rotary embeddings, two weighted tensors. The products may stand in a loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import Edit, walk
from ...reading.api import ACCUMULATING, ELEMENTWISE, VECTOR, is_barrier, root, writes
from ...reading.counted import counted_loops
from ...reading.kernel_program import ApiCall, Block, KernelProgram
from ..motif import Change
from .pairs import floats

_WORD = re.compile(r"[A-Za-z_]\w*")
_MASKED = 6  # target, two sources, mask, repeats, strides


@dataclass(frozen=True)
class _Products:
    """What is summed up: the products of one tensor, and the loop that they stand in, if they do."""

    calls: tuple[ApiCall, ...]
    loop: Node | None
    at: int  # the step of the block that the last of them is in


def products_in_repeats(kernel: KernelProgram) -> Iterator[Change]:
    """Each sum whose one term is products by repeats and nothing else."""
    for block in kernel.blocks:
        for i, step in enumerate(block.steps):
            total = step.call
            if total is None or total.name != "Add" or len(total.args) not in (4, _MASKED) or not floats(kernel, total):
                continue
            target = total.args[0]
            for term in (t for t in total.args[1:3] if t != target and target in total.args[1:3]):
                if re.fullmatch(r"\w+", term) is None or root(term) == root(target) or _needed(kernel, total, term):
                    continue
                found = _products(kernel, block, i, term, target)
                if found is not None:
                    yield _change(kernel, block, total, term, found)


def _needed(kernel: KernelProgram, total: ApiCall, term: str) -> bool:
    """Does anything behind the sum read the products before they are made anew?"""
    for call in kernel.calls_of(total.function):
        words = {w for a in call.args for w in _WORD.findall(a)} | {root(call.receiver)}
        if call.node.start_byte <= total.node.start_byte or term not in words or call.name == "FreeTensor":
            continue
        again = call.name in VECTOR - ACCUMULATING and term in writes(call)
        return not again or term in {w for a in call.args[1:] for w in _WORD.findall(a)}
    return False


def _products(kernel: KernelProgram, block: Block, i: int, term: str, target: str) -> _Products | None:
    """The products in front of step ``i``; None where something else makes the term, or changes what they are of."""
    path = block.function.path
    calls: list[ApiCall] = []
    changed: set[str] = set()
    for k in range(i - 1, -1, -1):
        node, call = block.steps[k].node, block.steps[k].call
        if node.type == "comment" or (call is not None and is_barrier(call, "PIPE_V")):
            continue
        words = set(_WORD.findall(kernel.text(path, node)))
        if _is_product(call, term):
            assert call is not None
            if target in words or changed & words - {term}:
                return None
            calls.insert(0, call)
            continue
        if calls:
            break
        if node.type == "for_statement" and term in words:
            return _looped(kernel, block, k, term, target, changed)
        if term in words or call is None or call.name not in ELEMENTWISE | {"FreeTensor"}:
            return None
        if call.name == "FreeTensor":
            changed |= {root(a) for a in call.args}
        else:
            changed |= set(writes(call)) - {root(target)}
    alone = {root(a) for c in calls for a in c.args[1:3]}
    return _Products(tuple(calls), None, i) if calls and term not in alone else None


def _is_product(call: ApiCall | None, term: str) -> bool:
    return call is not None and call.name == "Mul" and len(call.args) == _MASKED and root(call.args[0]) == term


def _looped(kernel: KernelProgram, block: Block, k: int, term: str, target: str, changed: set[str]) -> _Products | None:
    """Products in a counted loop of masked instructions, each of which may multiply in place."""
    node, path = block.steps[k].node, block.function.path
    loop = next((n for n in counted_loops(kernel) if n.node == node and n.block.function == block.function), None)
    calls = [s.call for s in loop.block.steps if s.node.type != "comment"] if loop is not None else [None]
    work = [c if _idle(c) or _is_masked(c) else None for c in calls]
    mine = [c for c in work if c is not None and _is_product(c, term)]
    rest = [c for c in work if c is not None and c not in mine and not _idle(c)]
    if None in work or len(mine) != 1:
        return None
    words = {w for c in rest for w in _WORD.findall(kernel.text(path, c.node))}
    if term in words or _of_changed(mine[0], target, changed | {root(c.args[0]) for c in rest}):
        return None
    return _Products(tuple(mine), node, k)


def _of_changed(product: ApiCall, target: str, changed: set[str]) -> bool:
    """Is the product of what it is added to, or of what something else writes before that?"""
    sources = {root(a) for a in product.args[1:3]}
    return target in sources or bool(sources & changed)


def _is_masked(call: ApiCall | None) -> bool:
    return call is not None and call.name in ELEMENTWISE and len(call.args) > 4


def _idle(call: ApiCall | None) -> bool:
    return call is not None and is_barrier(call, "PIPE_V")


def _change(kernel: KernelProgram, block: Block, total: ApiCall, term: str, found: _Products) -> Change:
    path, f = block.function.path, block.function
    texts = []
    for call in found.calls:
        place = total.args[0] + call.args[0].removeprefix(term)
        texts.append(f"{call.spelled('MulAddDst', place, *call.args[1:])};")
    edits: list[Edit] = [kernel.delete(path, c.statement) for c in found.calls if c.statement is not None]
    text = " ".join(texts)
    if found.loop is not None:
        body = next(n for n in walk(found.loop) if n.type == "compound_statement")
        head = kernel.program.files[path].data[found.loop.start_byte : body.start_byte].decode("utf-8", "replace")
        text = f"{head}{{ {text} }}"
    assert total.statement is not None
    edits.append(kernel.replace(path, total.statement, text))
    change = f"{len(found.calls)} products by repeats of {f.name} added to {total.args[0]} as they are made"
    return Change(f"{kernel.site(f, total.statement)}/repeats", change, tuple(edits))
