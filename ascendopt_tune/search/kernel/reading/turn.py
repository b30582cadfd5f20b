"""One turn of a counted loop: what it sets, which instructions it has, and whether turns are apart."""

from __future__ import annotations

import re

from .affine import AffinePlace, affine, resolved
from .api import is_barrier, root
from .counted import CountedLoop
from .kernel_program import ApiCall, KernelProgram, neighbour

ROWS_AT_ONCE = "rowsAtOnce"  # the variable of loops that became one instruction: how many turns there were
#: ``name = value;``, declared or not.
LOCAL_SET = re.compile(r"(?:(?:const\s+)?[A-Za-z_][\w:]*\s+)?([A-Za-z_]\w*)\s*=\s*([^;{}]+);", re.DOTALL)


def usable(kernel: KernelProgram, loop: CountedLoop, *names: str) -> bool:
    """Does the loop count by 1, and is it none that a rewrite kept for when its condition doesn't hold?

    ``names``: of variables of the new code, which the loop must have none of.
    """
    path, node = loop.block.function.path, loop.node.parent
    branch = node.parent.parent if node is not None and node.parent is not None else None
    if branch is not None and branch.type == "if_statement":
        condition = branch.child_by_field_name("condition")
        if condition is not None and ROWS_AT_ONCE in kernel.text(path, condition):
            return False
    return loop.step == "1" and {ROWS_AT_ONCE, *names}.isdisjoint(re.findall(r"\w+", kernel.text(path, loop.node)))


def turn_of(kernel: KernelProgram, loop: CountedLoop) -> tuple[dict[str, str], list[str], list[ApiCall]] | None:
    """(variables set in a turn, those of them that live longer, instructions); None if a turn does something else."""
    names: dict[str, str] = {}
    longer: list[str] = []
    calls: list[ApiCall] = []
    path = loop.block.function.path
    for step in loop.block.steps:
        if step.node.type == "comment":
            continue
        if step.call is not None:
            if not is_barrier(step.call, "PIPE_V"):
                calls.append(step.call)
            continue
        found = LOCAL_SET.fullmatch(kernel.text(path, step.node))
        if found is None or calls or found[1] in names or "(" in re.sub(r"\([^()\w]*|\(\w[^()]*\)", "", found[2]):
            return None
        if step.node.type == "expression_statement":
            longer.append(found[1])
        names[found[1]] = resolved(found[2], names)
    return (names, longer, calls) if calls else None


def rows_of(loop: CountedLoop) -> str:
    """The declaration of ``rowsAtOnce``: how many turns the loop has."""
    first = "" if loop.first == "0" else f" - static_cast<int64_t>({loop.first})"
    return f"const int64_t rowsAtOnce = static_cast<int64_t>({loop.bound}){first};"


def target(call: ApiCall) -> str:
    """The tensor that a call writes."""
    return root(call.args[0].removeprefix("this->"))


def ended(kernel: KernelProgram, loop: CountedLoop) -> str:
    """The barrier that ends each turn, for what comes in place of the loop; none where the compiler synchronizes."""
    f, last = loop.block.function, loop.block.steps[-1].call
    behind = kernel.call_of(f, neighbour(loop.node, 1))
    if kernel.auto_sync or last is None or not is_barrier(last, "PIPE_V"):
        return ""
    return "" if behind is not None and is_barrier(behind, "PIPE_V") else " PipeBarrier<PIPE_V>();"


def apart(loop: CountedLoop, calls: list[ApiCall], names: dict[str, str], parts: bool = False) -> bool:
    """Does no row read or write what another row writes? Then the order of rows and instructions may change.

    ``parts``: instructions may be of different parts of the row, where they move alike.
    """
    if any(not c.args for c in calls):
        return False
    written = {target(c) for c in calls}
    places: dict[str, set[AffinePlace | None]] = {}
    for call in calls:
        for a in call.args:
            name = root(a.removeprefix("this->"))
            if name in written:
                places.setdefault(name, set()).add(affine(a, loop.name, loop.first, names))
    alike = (({p.step for p in found if p is not None} if parts else found, found) for found in places.values())
    return all(len(one) == 1 and None not in found for one, found in alike)
