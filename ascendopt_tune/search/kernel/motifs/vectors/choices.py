"""A result that is cast to the output's type, or copied where the types agree: in that case made there at once.

``Muls(a, a, f, n); if constexpr (...) { DataCopy(y, a, n); } else { Cast(y, a, ...); }`` is
``if constexpr (...) { Muls(y, a, f, n); } else { Muls(a, a, f, n); Cast(y, a, ...); }``, either side first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from ...reading.api import ACCUMULATING, ELEMENTWISE, is_barrier, root
from ...reading.kernel_program import ApiCall, Block, KernelProgram
from ..motif import Change

_NOTHING = re.compile(r"(?:\(\w+\)|static_cast<\w+>)?\(?(0|1)(?:\.0*)?[fF]?\)?")
_BARRIER = "PipeBarrier<PIPE_V>();"


def made_in_its_branch(kernel: KernelProgram) -> Iterator[Change]:
    """Each copy of a choice between a copy and a cast whose source an instruction in front of the choice makes."""
    for block in kernel.blocks:
        for i, step in enumerate(block.steps):
            found_sides = sides(kernel, block, step.node)
            if found_sides is None:
                continue
            copy, cast = found_sides
            target, source = copy.args[:2]
            found = _maker(kernel, block, i, target, source)
            if found is None or cast.args[:2] != (target, source):
                continue
            maker, ordered = found
            path = block.function.path
            made = kernel.text(path, maker.node)
            assert maker.statement is not None
            assert copy.statement is not None
            assert cast.statement is not None
            between = f" {_BARRIER}" if ordered else ""
            edits = (
                kernel.delete(path, maker.statement),
                kernel.replace(path, copy.statement, f"{maker.spelled(maker.name, target, *maker.args[1:])};"),
                kernel.before(path, cast.statement, f"{made};{between}"),
            )
            site = kernel.site(block.function, copy.statement)
            change = f"{maker.name} in {block.function.name} writes {target} itself where the types agree"
            yield Change(f"{site}/branch", change, edits)


def sides(kernel: KernelProgram, block: Block, node: Node) -> tuple[ApiCall, ApiCall] | None:
    """(copy, cast) of ``if constexpr`` with one of them on each side."""
    if node.type != "if_statement" or not any(c.type == "constexpr" for c in node.children):
        return None
    other = node.child_by_field_name("alternative")
    branches = (node.child_by_field_name("consequence"), other.named_children[-1] if other is not None else None)
    calls = [_only_call(kernel, block, b) for b in branches]
    copied = [c for c in calls if c is not None and copies(c)]
    casts = [c for c in calls if c is not None and c.name == "Cast" and len(c.args) == 4]
    return (copied[0], casts[0]) if len(copied) == len(casts) == 1 else None


def _only_call(kernel: KernelProgram, block: Block, branch: Node | None) -> ApiCall | None:
    """The one call of a branch in braces, barriers and declared numbers left aside."""
    if branch is None or branch.type != "compound_statement":
        return None
    steps = (n for n in branch.named_children if n.type != "comment")
    told = (n for n in steps if n.type != "declaration" or "Tensor" in kernel.text(block.function.path, n))
    calls = [kernel.call_of(block.function, n) for n in told]
    work = [c for c in calls if c is None or not is_barrier(c, "PIPE_V")]
    return work[0] if len(work) == 1 else None


def copies(call: ApiCall) -> bool:
    """An instruction that copies: Adds by 0, Muls by 1, or a DataCopy (within UB, where a vector one reads it)."""
    if call.name in ("Adds", "Muls") and len(call.args) == 4:
        found = _NOTHING.fullmatch(call.args[2])
        return found is not None and found[1] == {"Adds": "0", "Muls": "1"}[call.name]
    return call.name == "DataCopy" and len(call.args) == 3


def _maker(kernel: KernelProgram, block: Block, i: int, target: str, source: str) -> tuple[ApiCall, bool] | None:
    """(instruction in front of step ``i`` that makes ``source``, whether a barrier stands behind it).

    None where either is used in between, or ``source`` behind.
    """
    path = block.function.path
    used = re.compile(rf"\b{re.escape(root(source))}\b")
    for step in block.steps[i + 1 :]:
        if used.search(kernel.text(path, step.node)) and (step.call is None or step.call.name != "FreeTensor"):
            return None
    ordered = False
    for step in reversed(block.steps[:i]):
        call, text = step.call, kernel.text(path, step.node)
        if call is not None and call.args[:1] == (source,):
            plain = call.name in ELEMENTWISE - ACCUMULATING - {"Cast"} and root(target) not in text
            return (call, ordered) if plain and call.statement is not None else None
        ordered = ordered or (call is not None and is_barrier(call, "PIPE_V"))
        idle = step.node.type in ("comment", "declaration") or (call is not None and is_barrier(call, "PIPE_V"))
        if not idle or used.search(text):
            return None
    return None
