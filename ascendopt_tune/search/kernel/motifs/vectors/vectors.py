"""Vector instructions: instead of scalar loops, over many rows at once, and independent ones side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from .....sources.cpp import walk
from ...reading.api import ELEMENTWISE, UNARY, VECTOR, is_barrier, reads, root, writes
from ...reading.counted import CountedLoop, counted_loops
from ...reading.declared import kinds_in
from ...reading.kernel_program import ApiCall, Block, BlockStep, KernelProgram
from ...reading.turn import ended
from ..motif import Change, Motif
from .broadcasts import rows_in_place
from .filled_ranges import filled_ranges
from .rows_as_repeats import rows_as_repeats
from .slices import slices_at_once

_OPERATOR = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Adds": "+", "Muls": "*"}
_VECTOR_OF = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div"}
_CHUNK = 64  # elements; one repeat of float


def _synchronized(kernel: KernelProgram, lines: list[str], indent: str) -> str:
    """The lines, between full barriers where nobody else orders scalar accesses."""
    if not kernel.auto_sync:
        lines = ["PipeBarrier<PIPE_ALL>();", *lines, "PipeBarrier<PIPE_ALL>();"]
    return f"\n{indent}".join(lines)


def _repeated_statements(kernel: KernelProgram, *names: str) -> Iterator[tuple[ApiCall, Node]]:
    for call in kernel.named(*names):
        s = call.statement
        if s is None or s.parent is None or s.parent.type != "compound_statement":
            continue
        if kernel.repeated(call.function, call.node):
            yield call, s


# -- scalar loops ------------------------------------------------------------------------------------------------------


def _scalar_slower(kernel: KernelProgram) -> Iterator[Change]:
    for call, statement in _repeated_statements(kernel, *_OPERATOR, "Duplicate"):
        d, *rest = call.args
        if call.name == "Duplicate":
            if len(call.args) != 3:
                continue
            value = rest[0]
        else:
            if len(call.args) != 4:
                continue
            second = rest[1] if call.name.endswith("s") else f"{rest[1]}.GetValue(element)"
            value = f"{rest[0]}.GetValue(element) {_OPERATOR[call.name]} {second}"
        indent = kernel.indent(call.path, statement)
        lines = [
            f"for (uint32_t element = 0; element < {call.args[-1]}; element++) {{",
            f"  {d}.SetValue(element, {value});",
            "}",
        ]
        edit = kernel.replace(call.path, statement, _synchronized(kernel, lines, indent))
        site = kernel.site(call.function, statement)
        yield Change(site, f"{call.name} of {call.function.name} element by element on the scalar unit", (edit,))


def _scalar_faster(kernel: KernelProgram) -> Iterator[Change]:
    plain: set[int] = set()
    for loop in counted_loops(kernel):
        if loop.step != "1" or loop.first != "0" or len(loop.block.steps) != 1:
            continue
        call = loop.block.steps[0].call
        if call is None or call.name != "SetValue" or len(call.args) != 2 or call.args[0] != loop.name:
            continue
        text = _as_vector(call.receiver, call.args[1], loop)
        if text is None or ("/" in call.args[1] and _whole_numbers(kernel, call)):
            continue
        path = loop.block.function.path
        site = kernel.site(loop.block.function, loop.node)
        change = f"scalar loop of {loop.block.function.name} made {text.partition('(')[0]}"
        plain.add(loop.node.start_byte)
        yield Change(site, change, (kernel.replace(path, loop.node, f"{text};"),))
    yield from (c for c in filled_ranges(kernel) if not plain & {e.start for e in c.edits})


def _whole_numbers(kernel: KernelProgram, call: ApiCall) -> bool:
    """Are the elements that a call sets known as integers, whose quotients no instruction makes?"""
    kinds = kinds_in(kernel, call.function).get(root(call.receiver.removeprefix("this->")), set())
    return any(re.fullmatch(r"u?int(?:\d+_t)?", kind) for kind in kinds)


def _as_vector(target: str, value: str, loop: CountedLoop) -> str | None:
    """The vector instruction that sets every element i of ``target`` to ``value``, an expression of elements i."""
    element = rf"([\w.>\[\]-]+)\.GetValue\(\s*{loop.name}\s*\)"
    binary = re.fullmatch(rf"{element}\s*([-+*/])\s*{element}", value)
    if binary:
        return f"{_VECTOR_OF[binary[2]]}({target}, {binary[1]}, {binary[3]}, {loop.bound})"
    if re.search(rf"\b{loop.name}\b|GetValue", re.sub(element, "", value)):
        return None
    scalar = re.fullmatch(rf"{element}\s*([-+*/])\s*(.+)", value)
    if scalar:
        source, sign, operand = scalar[1], scalar[2], scalar[3]
        name = "Adds" if sign in "+-" else "Muls"
        operand = {"-": f"-({operand})", "/": f"1.0f / ({operand})"}.get(sign, operand)
        return f"{name}({target}, {source}, {operand}, {loop.bound})"
    copied = re.fullmatch(element, value)
    if copied:
        return f"DataCopy({target}, {copied[1]}, {loop.bound})"
    return f"Duplicate({target}, {value}, {loop.bound})" if not re.search(element, value) else None


# -- many rows at once -------------------------------------------------------------------------------------------------


def _tensors(call: ApiCall) -> list[int]:
    """Positions of the tensor operands of an elementwise instruction in its count form."""
    if call.name == "Duplicate":
        return [0]
    operands = {"Cast": 2}.get(call.name, 2 if call.name in UNARY or call.name.endswith("s") else 3)
    return list(range(2 if call.name == "Axpy" else operands))


def _length(call: ApiCall) -> int:
    """How many arguments the count form has."""
    return {"Duplicate": 3, "Cast": 4}.get(call.name, 3 if call.name in UNARY else 4)


def _rows_slower(kernel: KernelProgram) -> Iterator[Change]:
    for call, statement in _repeated_statements(kernel, *sorted(ELEMENTWISE)):
        if len(call.args) != _length(call):
            continue
        count = call.args[-1]
        args = [f"{a}[part]" if i in _tensors(call) else a for i, a in enumerate(call.args[:-1])]
        args.append(f"{count} - part < {_CHUNK} ? {count} - part : {_CHUNK}")
        indent = kernel.indent(call.path, statement)
        lines = [
            f"for (uint32_t part = 0; part < {count}; part += {_CHUNK}) {{",
            f"  {call.spelled(call.name, *args)};",
            "}",
        ]
        edit = kernel.replace(call.path, statement, f"\n{indent}".join(lines))
        site = kernel.site(call.function, statement)
        yield Change(site, f"{call.name} of {call.function.name} in parts of {_CHUNK} elements", (edit,))


def _rows_faster(kernel: KernelProgram) -> Iterator[Change]:
    plain = {c.edits[0].start for c in _adjacent_rows(kernel)}
    yield from _adjacent_rows(kernel)
    yield from (c for c in rows_as_repeats(kernel) if c.edits[0].start not in plain)
    yield from rows_in_place(kernel)
    yield from (c for c in slices_at_once(kernel) if c.edits[0].start not in plain)


def _adjacent_rows(kernel: KernelProgram) -> Iterator[Change]:
    for loop in counted_loops(kernel):
        calls = [s.call for s in loop.block.steps if s.call is None or not is_barrier(s.call, "PIPE_V")]
        merged = [_over_all_rows(c, loop) if c is not None else None for c in calls]
        if not merged or None in merged or loop.first != "0":
            continue
        path = loop.block.function.path
        indent = kernel.indent(path, loop.node)
        barrier = "" if kernel.auto_sync else f"PipeBarrier<PIPE_V>();\n{indent}"
        text = f"\n{indent}{barrier}".join(f"{m};" for m in merged) + ended(kernel, loop)
        names = ", ".join(dict.fromkeys(c.name for c in calls if c is not None))
        change = f"{names} of {loop.block.function.name} over all rows at once"
        yield Change(kernel.site(loop.block.function, loop.node), change, (kernel.replace(path, loop.node, text),))


def _over_all_rows(call: ApiCall, loop: CountedLoop) -> str | None:
    """The instruction once for what the loop does in adjacent rows or parts; None where they aren't."""
    if call.name not in ELEMENTWISE or len(call.args) != _length(call):
        return None
    *operands, count = call.args
    i = loop.name
    if loop.step != "1":  # parts: x[part], and what is left of the whole
        part = rf"\[\s*{i}\s*\]$"
        wanted = re.fullmatch(rf"{re.escape(loop.bound)} - {i} < (\S+) \? {re.escape(loop.bound)} - {i} : \1", count)
        total = loop.bound if wanted and wanted[1] == loop.step else None
    else:
        row = re.escape(count)
        part = rf"\[\s*(?:{i}\s*\*\s*{row}|{row}\s*\*\s*{i})\s*\]$"
        total = f"{_factor(loop.bound)} * {_factor(count)}"
    if total is None or (re.search(rf"\b{i}\b", re.sub(rf"{part}", "", count)) and loop.step == "1"):
        return None
    whole = []
    for position, operand in enumerate(operands):
        bare = re.sub(part, "", operand) if position in _tensors(call) else operand
        if (position in _tensors(call) and bare == operand) or re.search(rf"\b{i}\b", bare):
            return None
        whole.append(bare)
    return call.spelled(call.name, *whole, total)


def _factor(text: str) -> str:
    return text if re.fullmatch(r"[\w.>-]+", text) else f"({text})"


# -- independent instructions side by side -----------------------------------------------------------------------------


def _aliases(kernel: KernelProgram, block: Block) -> dict[str, str]:
    """Names declared as views of other tensors or buffers of the function -> what they are views of."""
    out: dict[str, str] = {}
    for node in walk(block.function.body):
        if node.type != "declaration":
            continue
        text = kernel.text(block.function.path, node)
        found = re.match(r"[\w:\s<>,&]*?\b(\w+)\s*=\s*([^;]+)", text)
        if found and not re.search(r"AllocTensor|DeQue", found[2]):
            out[found[1]] = root(found[2].strip())
    return out


def _runs(kernel: KernelProgram) -> Iterator[tuple[Block, list[BlockStep], bool]]:
    """(block, vector instructions that follow one another, are there barriers among them)."""
    for block in kernel.blocks:
        if not kernel.repeated(block.function, block.node):
            continue
        run: list[BlockStep] = []
        barriers = False
        for step in (*block.steps, BlockStep(block.node, None)):
            call = step.call
            if call is not None and call.name in VECTOR:
                run.append(step)
            elif call is not None and is_barrier(call, "PIPE_V") and run:
                barriers = True
                run.append(step)
            else:
                if sum(s.call is not None and s.call.name in VECTOR for s in run) > 2:
                    yield block, run, barriers
                run, barriers = [], False


def _conflicts(kernel: KernelProgram, block: Block, calls: list[ApiCall]) -> list[set[int]]:
    """For each instruction, the earlier ones it has to stay behind."""
    aliases = _aliases(kernel, block)

    def canonical(names: frozenset[str]) -> set[str]:
        out = set()
        for name in names:
            for _ in range(4):
                name = aliases.get(name, name)
            out.add(name)
        return out

    written = [canonical(writes(c)) for c in calls]
    used = [canonical(reads(c) | writes(c)) for c in calls]
    return [{j for j in range(i) if written[j] & used[i] or used[j] & written[i]} for i in range(len(calls))]


def _ordered(kernel: KernelProgram, block: Block, run: list[BlockStep], by_level: bool) -> list[tuple[int, ApiCall]]:
    """(level, instruction) in the wanted order: by level, or each as late as what needs it allows."""
    calls = [s.call for s in run if s.call is not None and s.call.name in VECTOR]
    behind = _conflicts(kernel, block, calls)
    level: list[int] = []
    for needed in behind:
        level.append(1 + max((level[j] for j in needed), default=-1))
    if by_level:
        return sorted(((level[i], c) for i, c in enumerate(calls)), key=lambda pair: pair[0])
    done: list[int] = []

    def visit(i: int) -> None:
        if i not in done:
            for j in sorted(behind[i]):
                visit(j)
            done.append(i)

    for i in sorted(range(len(calls)), key=lambda i: (-level[i], i)):
        visit(i)
    return [(level[i], calls[i]) for i in done]


def _reordered(
    kernel: KernelProgram, block: Block, run: list[BlockStep], barriers: bool, by_level: bool
) -> Change | None:
    before = [s.call for s in run if s.call is not None and s.call.name in VECTOR]
    order = _ordered(kernel, block, run, by_level)
    path = block.function.path
    lines: list[str] = []
    for i, (level, call) in enumerate(order):
        if barriers and i and (level != order[i - 1][0] if by_level else True):
            lines.append("PipeBarrier<PIPE_V>();")
        lines.append(kernel.text(path, call.node) + ";")
    if [c.node.start_byte for _, c in order] == [c.node.start_byte for c in before]:
        return None
    first, last = run[0].node, run[-1].node
    if is_barrier(run[-1].call, "PIPE_V") if run[-1].call is not None else False:
        lines.append("PipeBarrier<PIPE_V>();")
    indent = kernel.indent(path, first)
    edits = [kernel.delete(path, s.node) for s in run[:-1]]
    edits.append(kernel.replace(path, last, f"\n{indent}".join(lines)))
    what = "side by side" if by_level else "one chain after the other"
    change = f"{len(before)} vector instructions of {block.function.name}: {what}"
    return Change(f"{block.function.name}/{before[0].name}@{len(before)}", change, tuple(edits))


def _order_faster(kernel: KernelProgram) -> Iterator[Change]:
    changes = (_reordered(kernel, block, run, barriers, True) for block, run, barriers in _runs(kernel))
    return (c for c in changes if c is not None)


def _order_slower(kernel: KernelProgram) -> Iterator[Change]:
    changes = (_reordered(kernel, block, run, barriers, False) for block, run, barriers in _runs(kernel))
    return (c for c in changes if c is not None)


SCALAR_LOOP = Motif(
    name="scalar-loop",
    title="Vector instructions instead of scalar loops",
    description="A loop of GetValue and SetValue takes tens of cycles an element; a vector instruction takes 64 "
    "floats a cycle.",
    bottlenecks=("scalar", "scalar round trips"),
    preconditions="The loop does the same to every element; the vector instruction knows the type.",
    faster=_scalar_faster,
    slower=_scalar_slower,
)

MERGED_ROWS = Motif(
    name="merged-rows",
    title="One instruction for many rows",
    description="Each vector instruction costs a head before it computes. Rows (or parts) that lie one behind the "
    "other are one instruction with a larger count; rows a stride apart are its repeats.",
    bottlenecks=("short vector instructions", "vector barriers", "scalar", "vector"),
    preconditions="The rows are adjacent in every operand, or a fixed number of 32-byte blocks apart.",
    faster=_rows_faster,
    slower=_rows_slower,
    through_calls=True,
)

INDEPENDENT_NEIGHBOURS = Motif(
    name="independent-neighbours",
    title="Independent instructions side by side",
    description="Between a vector instruction and one that needs its result stands a barrier. With instructions of "
    "other chains beside them one barrier serves several chains.",
    bottlenecks=("vector barriers", "short vector instructions", "vector"),
    preconditions="The instructions that change places touch different bytes.",
    faster=_order_faster,
    slower=_order_slower,
)
