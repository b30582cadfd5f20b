"""What is multiplied by a number and then summed: the sum is multiplied instead, one element in place of a row.

``Muls(y, x, 1/n, count); ReduceSum(m, y, w, count)`` is ``ReduceSum(m, x, w, count); Muls(m, m, 1/n, 1)``. Kernels have
functions of their own for the sum, which leave it in a tensor or return it, for one row or for each of a loop's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import Edit, walk
from ...reading.affine import indexed
from ...reading.api import ACCUMULATING, ELEMENTWISE, VECTOR, is_barrier, root, writes
from ...reading.declared import local_kinds
from ...reading.kernel_program import LOOPS, ApiCall, Block, KernelProgram, neighbour
from ..motif import Change, Motif

_WORD = re.compile(r"[A-Za-z_]\w*")
_SUM = re.compile(r"ReduceSum|ReduceAdd|SumReduce", re.IGNORECASE)
_COUNT_FORM = 4


@dataclass(frozen=True)
class _Scaled:
    """``Muls(product, data, factor, count)``: statement ``step`` of its block; the sum alone reads it."""

    block: Block
    step: int
    muls: ApiCall
    sum: ApiCall

    @property
    def factor(self) -> str:
        return self.muls.args[2]


def _is_sum(call: ApiCall) -> bool:
    return _SUM.search(call.name) is not None and call.receiver in ("", "this")


def _scaled(kernel: KernelProgram) -> Iterator[_Scaled]:
    for block in kernel.blocks:
        for i, step in enumerate(block.steps):
            call = step.call
            if call is None or call.name != "Muls" or len(call.args) != _COUNT_FORM or call.args[2] in ("1", "1.0f"):
                continue
            user = next((s.node for s in block.steps[i + 1 :] if not _idle(kernel, block, s.node)), None)
            summed = _first_sum(kernel, block, user) if user is not None else None
            if summed is not None and _reads_part(summed, call.args[0]) and _summed_only(kernel, call, summed):
                yield _Scaled(block, i, call, summed)


def _idle(kernel: KernelProgram, block: Block, node: Node) -> bool:
    call = kernel.call_of(block.function, node)
    return node.type == "comment" or (call is not None and is_barrier(call, "PIPE_V"))


def _first_sum(kernel: KernelProgram, block: Block, node: Node) -> ApiCall | None:
    """The sum in a statement, or in a loop that it is, where it is the first thing there to be done with vectors."""
    if node.type not in ("expression_statement", "declaration", *LOOPS):
        return None
    found = (kernel.call_at(block.function, n) for n in walk(node) if n.type == "call_expression")
    first = next((c for c in found if c.name in VECTOR or _is_sum(c)), None)
    return first if first is not None and _is_sum(first) else None


def _reads_part(call: ApiCall, product: str) -> bool:
    return any(indexed(a)[0] == product for a in call.args[:2])


def _summed_only(kernel: KernelProgram, muls: ApiCall, summed: ApiCall) -> bool:
    """Is the product of a type that holds the whole sum, and read by nothing else before it is written anew?"""
    product = muls.args[0]
    everywhere = local_kinds(s.data.decode("utf-8", "replace") for s in kernel.program.files.values())
    kinds = {**everywhere, **local_kinds([kernel.text(muls.path, muls.function.node)])}
    if kinds.get(root(product), set()) & {"half", "bfloat16_t", "int32_t"} or "[" in product:
        return False
    if any(indexed(a)[0] == product for a in summed.args[:1]) and len(summed.args) > 1:
        return True  # the sum is left in the product's place
    for call in kernel.calls_of(muls.function):
        if call.node.start_byte <= summed.node.start_byte or not call.args:
            continue
        roots = {root(a) for a in call.args[1:]}
        if root(product) in writes(call) and call.name not in ACCUMULATING and root(product) not in roots:
            return True
        if root(product) in roots | {root(call.args[0])} and call.name not in ("FreeTensor",):
            return False
    return True


# -- the sum, scaled ---------------------------------------------------------------------------------------------------


def _scale_sum(kernel: KernelProgram, found: _Scaled) -> tuple[Edit, ...]:
    """The sum times the factor: where it is returned, where it is read by name, or in front of what takes it."""
    call, path = found.sum, found.sum.path
    held = call.node.parent
    if held is not None and held.type == "init_declarator":
        return (kernel.replace(path, call.node, f"{kernel.text(path, call.node)} * ({found.factor})"),)
    s = call.statement
    if s is None or not call.args:
        return ()
    target = indexed(call.args[0])[0]
    later = [c for c in kernel.calls_of(call.function) if c.node.start_byte > call.node.start_byte]
    for user in later:
        if user.name == "GetValue" and root(user.receiver) == root(target):
            near = user.node.parent is not None and user.node.parent.type == "init_declarator"
            alone = near and _loop_of(call) == _loop_of(user)
            scaled = f"{kernel.text(path, user.node)} * ({found.factor})"
            return (kernel.replace(path, user.node, scaled),) if alone else ()
        if root(target) not in {root(a) for a in user.args}:
            continue
        plain = user.name in ELEMENTWISE - ACCUMULATING and len(user.args) in (3, 4) and target in user.args[1:2]
        if not plain or user.statement is None or user.statement.parent != found.block.node:
            return ()
        scaled = user.spelled("Muls", target, target, found.factor, user.args[-1])
        barrier = "" if kernel.auto_sync else " PipeBarrier<PIPE_V>();"
        return (kernel.before(path, user.statement, f"{scaled};{barrier}"),)
    return ()


def _loop_of(call: ApiCall) -> Node | None:
    """The innermost loop around a call."""
    node = call.node.parent
    while node is not None and node != call.function.node and node.type not in LOOPS:
        node = node.parent
    return node if node is not None and node.type in LOOPS else None


# -- the product, not made ---------------------------------------------------------------------------------------------


def _unmade(kernel: KernelProgram, found: _Scaled) -> tuple[Edit, ...]:
    """The edits after which the sum reads the data: made in the product's place, or where they are."""
    muls, path = found.muls, found.block.function.path
    product, data = muls.args[:2]
    assert muls.statement is not None
    gone = [kernel.delete(path, muls.statement)]
    behind = neighbour(muls.statement, 1)
    call = kernel.call_of(muls.function, behind)
    if behind is not None and call is not None and is_barrier(call, "PIPE_V"):
        gone.append(kernel.delete(path, behind))
    if data == product:
        return tuple(gone)
    maker = _maker(kernel, found)
    if maker is not None:
        return (*gone, kernel.replace(path, maker.arguments[0], product))
    if found.sum.name in VECTOR and found.sum.args[1] == product and root(data) not in writes(found.sum):
        return (*gone, kernel.replace(path, found.sum.arguments[1], data))
    return ()


def _maker(kernel: KernelProgram, found: _Scaled) -> ApiCall | None:
    """The instruction in front that makes the data for the product alone."""
    product, data = found.muls.args[:2]
    for step in reversed(found.block.steps[: found.step]):
        call = step.call
        if _idle(kernel, found.block, step.node):
            continue
        made = call is not None and call.name in ELEMENTWISE - ACCUMULATING and call.args[0] == data
        if (
            call is None
            or not made
            or root(product) in {root(a) for a in call.args}
            or call.args[-1] != found.muls.args[3]
        ):
            return None
        return call if _unread(kernel, found.muls, root(data)) else None
    return None


def _unread(kernel: KernelProgram, after: ApiCall, name: str) -> bool:
    """Is the tensor written anew before anything behind reads it, in the rest of the function?"""
    for call in kernel.calls_of(after.function):
        if call.node.start_byte <= after.node.start_byte or name not in _WORD.findall(" ".join(call.args)):
            continue
        return name in writes(call) - {root(a) for a in call.args[1:]} and call.name not in ACCUMULATING
    return False


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    for found in _scaled(kernel):
        unmade, scaled = _unmade(kernel, found), _scale_sum(kernel, found)
        if unmade and scaled:
            f = found.block.function
            assert found.muls.statement is not None
            change = f"{found.sum.name} of {f.name} multiplied by {found.factor}, not what it sums"
            yield Change(kernel.site(f, found.muls.statement), change, (*unmade, *scaled))


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """``ReduceSum(m, x, w, n); Muls(m, m, f, 1)`` with the factor in front, where nobody else needs ``x``."""
    for block in kernel.blocks:
        for i, step in enumerate(block.steps):
            muls = step.call
            if muls is None or muls.name != "Muls" or len(muls.args) != _COUNT_FORM or muls.args[0] != muls.args[1]:
                continue
            before = next((s for s in reversed(block.steps[:i]) if not _idle(kernel, block, s.node)), None)
            summed = before.call if before is not None else None
            if summed is None or summed.name != "ReduceSum" or len(summed.args) != 4 or summed.args[0] != muls.args[0]:
                continue
            _, data, _, count = summed.args
            if before is None or root(data) == root(muls.args[0]) or not re.fullmatch(r"\w+", data):
                continue
            later = [c for c in kernel.calls_of(muls.function) if c.node.start_byte > summed.node.start_byte]
            if any(data in _WORD.findall(" ".join(c.args)) and c.name != "FreeTensor" for c in later):
                continue
            barrier = "" if kernel.auto_sync else " PipeBarrier<PIPE_V>();"
            text = f"{muls.spelled('Muls', data, data, muls.args[2], count)};{barrier}"
            path = block.function.path
            edits = (kernel.before(path, before.node, text), kernel.delete(path, step.node))
            yield Change(kernel.site(block.function, step.node), f"{data} multiplied before it is summed", edits)


SCALE_BEHIND_SUM = Motif(
    name="scale-behind-sum",
    title="The sum is multiplied, not what it sums",
    description="A mean as the sum of elements that were multiplied by 1/n first costs a pass over them. The sum "
    "multiplied by 1/n is one element.",
    bottlenecks=("vector", "vector barriers", "short vector instructions"),
    preconditions="Floats whose sum doesn't overflow; the last bits of the result may differ. What the kernel's own "
    "function of that name does is a sum.",
    faster=_faster,
    slower=_slower,
    through_calls=True,
)
