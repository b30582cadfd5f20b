"""Sums and extremes over a loop that begin with zeros, or with a copy of the first term: they begin with a result.

``Duplicate(a, 0, n)`` in front of a loop of ``Axpy(a, x, s, n)``: the first turn is ``Muls(a, x, s, n)``.
``DataCopy(a, x, n)`` in front of one of ``Max(a, a, y, n)``: the first turn is ``Max(a, x, y, n)``. Where the loop may
have no turn, the tensor is begun as before, which is asked when the kernel runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import walk
from ...reading.api import root, writes
from ...reading.counted import CountedLoop, counted_loops
from ...reading.declared import global_tensors, local_kinds
from ...reading.kernel_program import ApiCall, Block, KernelProgram
from ..motif import Change, Motif
from .choices import copies

_WORD = re.compile(r"[A-Za-z_]\w*")
_NOUGHT = re.compile(r"(?:\([\w:]+\)|static_cast<[\w:]+>|[A-Za-z]\w*)?\(?0(?:\.0*)?[fF]?\)?")
_LEAVES = ("break_statement", "continue_statement", "goto_statement", "return_statement")
_TERMS = {"Axpy": "Muls", "MulAddDst": "Mul"}  # what adds to its target -> what the first turn does
_FOLDS = frozenset(["Add", "Max", "Min"])


@dataclass(frozen=True)
class _Begun:
    """The instruction that begins ``total``, the loops behind it, outer ones first, and what adds to it in a turn."""

    begin: ApiCall
    loops: tuple[CountedLoop, ...]
    term: ApiCall

    @property
    def first(self) -> str:
        """Is it the first turn?"""
        return " && ".join(f"{loop.name} == {_in(loop.first)}" for loop in self.loops)

    @property
    def any(self) -> str:
        """Is there a turn?"""
        return " && ".join(f"{_in(loop.first)} < {_in(loop.bound)}" for loop in self.loops)


def _in(text: str) -> str:
    return text if re.fullmatch(r"[\w.>-]+", text) else f"({text})"


def _begun(kernel: KernelProgram) -> Iterator[_Begun]:
    loops = {loop.node.start_byte: loop for loop in counted_loops(kernel)}
    outside = global_tensors(kernel)
    for block in kernel.blocks:
        for i, step in enumerate(block.steps):
            begin = step.call
            if begin is None or outside & {root(a) for a in begin.args[:2]}:
                continue
            zeros = begin.name == "Duplicate" and len(begin.args) == 3 and _NOUGHT.fullmatch(begin.args[1]) is not None
            if not zeros and not (copies(begin) and root(begin.args[0]) != root(begin.args[1])):
                continue
            node = next((s.node for s in block.steps[i + 1 :] if _names(kernel, block, s.node, begin)), None)
            found = _term(kernel, block, node, begin, loops) if node is not None else None
            if found is not None:
                yield _Begun(begin, *found)


def _names(kernel: KernelProgram, block: Block, node: Node, begin: ApiCall) -> bool:
    return root(begin.args[0]) in _WORD.findall(kernel.text(block.function.path, node))


def _term(
    kernel: KernelProgram, block: Block, node: Node, begin: ApiCall, loops: dict[int, CountedLoop]
) -> tuple[tuple[CountedLoop, ...], ApiCall] | None:
    """(loops, the one instruction in them that names the tensor): nothing leaves them, and it is done in every turn."""
    total, path = begin.args[0], begin.path
    chain: list[CountedLoop] = []
    while node.type == "for_statement":
        loop = loops.get(node.start_byte)
        named = [s for s in loop.block.steps if _names(kernel, block, s.node, begin)] if loop is not None else []
        if loop is None or len(named) != 1 or any(n.type in _LEAVES for n in walk(loop.node)):
            return None
        chain.append(loop)
        node = named[0].node
    term = kernel.call_of(block.function, node)
    if term is None or not chain or total != term.args[0] or term.args[-1] != begin.args[-1] or len(term.args) != 4:
        return None
    changed = {w for loop in chain for w in (loop.name,)}
    if any(changed & set(_WORD.findall(f"{loop.first} {loop.bound}")) for loop in chain):
        return None
    inside = (kernel.call_at(block.function, n) for n in walk(chain[0].node) if n.type == "call_expression")
    if begin.name != "Duplicate" and any(root(begin.args[1]) in writes(c) for c in inside):
        return None
    return (tuple(chain), term) if _count(kernel.text(path, term.node), root(total)) <= 2 else None


def _count(text: str, name: str) -> int:
    return _WORD.findall(text).count(name)


def _first_turn(kernel: KernelProgram, found: _Begun) -> str | None:
    """What the first turn does in place of adding to the tensor as it was begun."""
    begin, term = found.begin, found.term
    total = begin.args[0]
    kinds = local_kinds([kernel.text(term.path, term.function.node)])
    if begin.name == "Duplicate" and term.name in _TERMS:
        known = [kinds[root(a)] for a in term.args[: 3 if term.name == "MulAddDst" else 2] if root(a) in kinds]
        alike = "," not in term.template and all(k == known[0] for k in known)
        return term.spelled(_TERMS[term.name], *term.args) if alike else None
    if term.name not in _FOLDS or total not in term.args[1:3] or term.args[1] == term.args[2]:
        return None
    other = term.args[2] if term.args[1] == total else term.args[1]
    if begin.name != "Duplicate":
        return term.spelled(term.name, total, begin.args[1], other, term.args[3])
    kind = next(iter(kinds.get(root(total), {""})))
    floats = term.name == "Add" and kind in ("float", "half")
    return term.spelled("Adds", total, other, f"static_cast<{kind}>(0)", term.args[3]) if floats else None


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    for found in _begun(kernel):
        begin, term, f = found.begin, found.term, found.begin.function
        first = _first_turn(kernel, found)
        if first is None or begin.statement is None or term.statement is None:
            continue
        edits = (
            kernel.replace(f.path, begin.statement, f"if (!({found.any})) {{ {kernel.text(f.path, begin.node)}; }}"),
            kernel.replace(
                f.path,
                term.statement,
                f"if ({found.first}) {{ {first}; }} else {{ {kernel.text(f.path, term.node)}; }}",
            ),
        )
        change = f"{term.name} of {f.name} begins with its first term, not with {begin.name}"
        yield Change(kernel.site(f, begin.statement), change, edits)


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """The same undone: the tensor is begun in any case, and every turn adds to it."""
    for block in kernel.blocks:
        for step, node in zip(block.steps, block.steps[1:], strict=False):
            kept = _kept(kernel, block, step.node, r"if \(!\(.*\)\) \{ (.*;) \}")
            inner = [
                n for n in walk(node.node) if n.type == "if_statement" and "==" in kernel.text(block.function.path, n)
            ]
            if kept is None or "Duplicate" not in kept or len(inner) != 1:
                continue
            every = _kept(kernel, block, inner[0], r"if \(.*\) \{ .* \} else \{ (.*;) \}")
            if every is not None:
                path = block.function.path
                edits = (kernel.replace(path, step.node, kept), kernel.replace(path, inner[0], every))
                change = f"{block.function.name} begins with {kept}"
                yield Change(f"{block.function.name}/{kept[:60]}", change, edits)


def _kept(kernel: KernelProgram, block: Block, node: Node, pattern: str) -> str | None:
    """What a choice of this form does where its condition doesn't hold, or the only thing it does."""
    text = " ".join(kernel.text(block.function.path, node).split())
    found = re.fullmatch(pattern, text) if node.type == "if_statement" else None
    return found[1] if found is not None else None


FIRST_TERM = Motif(
    name="first-term",
    title="A sum begins with its first term",
    description="A sum over a loop that begins with zeros, or with a copy, costs a pass over the tensor before the "
    "first turn. The first turn writes what it adds, or adds to what would be copied.",
    bottlenecks=("vector", "vector barriers", "short vector instructions"),
    preconditions="Nothing else in the loop touches the tensor; sums of few terms gain most.",
    faster=_faster,
    slower=_slower,
    through_calls=True,
)
