"""Sums and extremes of many elements as a tree of whole-register instructions, the last register in one step.

An instruction that reduces within registers takes 7 cycles a register, Add one (asc-devkit, theoretical performance);
``ReduceSum`` besides hands its result through the scalar unit. asc-devkit's practice "choose instructions of low
latency" adds halves until one register is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import walk
from ...reading.api import reads, root, writes
from ...reading.declared import local_kinds
from ...reading.kernel_program import ApiCall, KernelProgram, neighbour
from ..motif import Change, Motif

_HALVES = {"ReduceSum": "Add", "ReduceMax": "Max", "ReduceMin": "Min"}
_ONE = {"ReduceSum": "WholeReduceSum", "ReduceMax": "WholeReduceMax", "ReduceMin": "WholeReduceMin"}


@dataclass(frozen=True)
class _Whole:
    """A reduction of ``count`` elements of ``src``, of type ``kind``, to ``dst[0]``; ``work`` is room it may use."""

    call: ApiCall
    statement: Node
    kind: str

    @property
    def operands(self) -> tuple[str, str, str, str]:
        dst, src, work, count = self.call.args[:4]
        return dst, src, work, count


def _wholes(kernel: KernelProgram) -> Iterator[_Whole]:
    """Reductions in their count form that want no index and leave masks alone."""
    everywhere = local_kinds(s.data.decode("utf-8", "replace") for s in kernel.program.files.values())
    for call in kernel.named(*_HALVES):
        s = call.statement
        if s is None or s.parent is None or s.parent.type != "compound_statement":
            continue
        if len(call.args) != 4 and call.args[4:] not in (("false",), ("0",)):
            continue
        if "," in call.template or "GetAccVal" in kernel.text(call.path, call.function.body):
            continue  # the sum is read from the register that only ReduceSum leaves it in
        kinds = {**everywhere, **local_kinds([kernel.text(call.path, call.function.node)])}
        known = {call.template.strip("<> ")} - {""} or kinds.get(root(call.args[1]), set())
        if len(known) == 1:
            yield _Whole(call, s, next(iter(known)))


def _is_needed(kernel: KernelProgram, whole: _Whole) -> bool | None:
    """Does anybody read the elements behind the reduction? None where another function may, of which names don't tell.

    Nobody where the reduction itself writes them.
    """
    dst, src, work, _ = map(root, whole.operands)
    if src in (dst, work):
        return False
    body = kernel.text(whole.call.path, whole.call.function.body)
    if not re.search(rf"\bLocalTensor\s*<[^;]*?>\s*{re.escape(src)}\b|\bauto\s+{re.escape(src)}\b", body):
        return None
    for later in kernel.calls_of(whole.call.function):
        if later.node.start_byte <= whole.call.node.start_byte:
            continue
        if src in reads(later) or (later.name in ("GetValue", "EnQue") and src in (root(later.receiver), *later.args)):
            return True
        if src in writes(later):
            return False
    return False


def _tree(kernel: KernelProgram, whole: _Whole, spare: bool) -> Change:
    """``spare``: leaves the elements as they are, and adds in the reduction's room."""
    call = whole.call
    dst, src, work, count = whole.operands
    barrier = [] if kernel.auto_sync else ["  PipeBarrier<PIPE_V>();"]
    addends, lanes, lower = (_unused(name, call.args) for name in ("addends", "lanes", "lower"))
    half = f"const int32_t {lower} = (({addends} + 1) / 2 + {lanes} - 1) / {lanes} * {lanes};"
    add, order = _HALVES[call.name], "" if call.name == "ReduceSum" else "AscendC::ReduceOrder::ORDER_ONLY_VALUE"

    def last(of: str) -> str:
        return f"{call.spelled(_ONE[call.name], dst, of, addends, '1', '1', '1', '8', *filter(None, [order]))};"

    place = work if spare else src
    loop = [
        f"while ({addends} > {lanes}) {{",
        f"  {half}",
        f"  {call.spelled(add, place, place, f'{place}[{lower}]', f'{addends} - {lower}')};",
        *barrier,
        f"  {addends} = {lower};",
        "}",
        last(place),
    ]
    if spare:
        loop = [
            f"if ({addends} > {lanes}) {{",
            f"  {half}",
            f"  {call.spelled('DataCopy', work, src, lower)};",
            *barrier,
            f"  {call.spelled(add, work, work, f'{src}[{lower}]', f'{addends} - {lower}')};",
            *barrier,
            f"  {addends} = {lower};",
            *(f"  {line}" for line in loop),
            f"}} else {{ {last(src)} }}",
        ]
    lines = [
        "{",
        f"  int32_t {addends} = static_cast<int32_t>({count});",
        f"  constexpr int32_t {lanes} = 256 / static_cast<int32_t>(sizeof({whole.kind}));",
        *(f"  {line}" for line in (*loop, *([] if kernel.auto_sync else ["PipeBarrier<PIPE_V>();"]))),
        "}",
    ]
    indent = kernel.indent(call.path, whole.statement)
    edit = kernel.replace(call.path, whole.statement, f"\n{indent}".join(lines))
    site = kernel.site(call.function, whole.statement)
    change = f"{call.name} of {call.function.name} by halves, {'beside its elements' if spare else 'in place'}"
    return Change(f"{site}/spare" if spare else site, change, (edit,))


def _unused(name: str, texts: Iterable[str]) -> str:
    """``name``, longer where one of the texts has it."""
    while any(re.search(rf"\b{name}\b", text) for text in texts):
        name += "Left"
    return name


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    for whole in _wholes(kernel):
        needed = _is_needed(kernel, whole)
        if not needed:
            yield _tree(kernel, whole, spare=False)
        if needed is not False and root(whole.operands[2]) != root(whole.operands[0]):
            yield _tree(kernel, whole, spare=True)


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """``while (n > k) { Add(x, x, x[h], n - h); ... } WholeReduceSum(y, x, n, ...)`` as one reduction of n elements."""
    wholes = {one: whole for whole, one in _ONE.items()}
    for call in kernel.named(*wholes):
        s = call.statement
        loop = neighbour(s, -1) if s is not None else None
        if s is None or loop is None or loop.type != "while_statement" or len(call.args) < 7:
            continue
        dst, src, count = call.args[:3]
        head = kernel.text(call.path, loop.named_children[0])
        add = _HALVES[wholes[call.name]]
        halved = any(
            c.name == add and len(c.args) == 4 and c.args[0] == src and c.args[2].startswith(f"{src}[")
            for c in (kernel.call_at(call.function, n) for n in walk(loop) if n.type == "call_expression")
        )
        if halved and re.search(rf"\b{re.escape(count)}\b", head):
            edits = (
                kernel.delete(call.path, loop),
                kernel.replace(call.path, s, f"{call.spelled(wholes[call.name], dst, src, src, count)};"),
            )
            yield Change(kernel.site(call.function, s), f"one {wholes[call.name]} in {call.function.name}", edits)


ADD_TREE = Motif(
    name="add-tree",
    title="Reductions by halves",
    description="ReduceMax and ReduceMin take 7 cycles for each register of 256 bytes, ReduceSum half of that, and "
    "hand the result through the scalar unit. Adding (or comparing) the upper half to the lower one until one register "
    "is left takes one cycle a register; the last one is reduced by WholeReduceSum.",
    bottlenecks=("vector", "scalar round trips", "no overlap"),
    preconditions="More than one register; nobody reads the elements afterwards, or the reduction's room holds half "
    "of them. Sums come out in another order.",
    faster=_faster,
    slower=_slower,
)
