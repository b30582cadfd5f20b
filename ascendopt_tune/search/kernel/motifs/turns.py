"""Loops whose turns are one instruction with strides: rows copied one by one, rows computed one by one.

Both rewrites keep the loop for when the instruction can't say it: strides and counts are checked where they are known,
when the kernel runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .affine import AffinePlace, affine, at, fixed, resolved
from .api import BINARY, COPY, SCALAR, UNARY, root
from .barriers import is_barrier
from .kernel_program import ApiCall, KernelProgram
from .loops import CountedLoop, counted_loops
from .motif import Change

_ROWS = "rowsAtOnce"
_NAMES = (_ROWS, "column")  # of variables of the new code
_MOST_ROWS = 4095  # blocks of one DataCopyPad
_MOST_REPEATS = 255  # repeats of one instruction, and blocks from one to the next
_SET = re.compile(r"(?:(?:const\s+)?[A-Za-z_][\w:]*\s+)?([A-Za-z_]\w*)\s*=\s*([^;{}]+);", re.DOTALL)
_LOCAL = re.compile(r"\bLocalTensor\s*<\s*([^<>;]+?)\s*>\s*&?\s*([A-Za-z_]\w*)")
_GOT = re.compile(r"\bauto\s+([A-Za-z_]\w*)\s*=[^;]*?\b(?:Get|AllocTensor|DeQue)\s*<\s*([\w:]+)\s*>")
_PATH = re.compile(r"(?:this->)?[A-Za-z_][\w.]*")


def _usable(kernel: KernelProgram, loop: CountedLoop) -> bool:
    """Does the loop count by 1, and is it none that a rewrite kept for when its condition doesn't hold?"""
    path, node = loop.block.function.path, loop.node.parent
    branch = node.parent.parent if node is not None and node.parent is not None else None
    if branch is not None and branch.type == "if_statement":
        condition = branch.child_by_field_name("condition")
        if condition is not None and _ROWS in kernel.text(path, condition):
            return False
    return loop.step == "1" and not any(name in kernel.text(path, loop.node) for name in _NAMES)


def _turn(kernel: KernelProgram, loop: CountedLoop) -> tuple[dict[str, str], list[str], list[ApiCall]] | None:
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
        found = _SET.fullmatch(kernel.text(path, step.node))
        if found is None or calls or found[1] in names or "(" in re.sub(r"\([^()\w]*|\(\w[^()]*\)", "", found[2]):
            return None
        if step.node.type == "expression_statement":
            longer.append(found[1])
        names[found[1]] = resolved(found[2], names)
    return (names, longer, calls) if calls else None


# -- rows copied one by one --------------------------------------------------------------------------------------------


def rows_in_one_copy(kernel: KernelProgram, types: dict[str, str]) -> Iterator[Change]:
    """A loop of copies a row between global memory and UB, made one DataCopyPad with gaps for each."""
    for loop in counted_loops(kernel):
        turn = _turn(kernel, loop) if _usable(kernel, loop) else None
        if turn is None or any(c.name not in COPY for c in turn[2]):
            continue
        names, longer, calls = turn
        copies = [_strided_copy(loop, call, names, types) for call in calls]
        found = [c for c in copies if c is not None]
        if len(found) < len(copies) or len({_target(c) for c in calls}) < len(calls):
            continue
        path = loop.block.function.path
        last = [f"{n} = {at(names[n], loop.name, f'{loop.bound} - 1')};" for n in longer]
        steps = [f"if ({condition}) {{ {text}; }}" for condition, text in found]
        if len(found) > 1:
            joined = " && ".join(f"({condition})" for condition, _ in found)
            steps = [f"if ({joined}) {{ {' '.join(f'{text};' for _, text in found)} }}"]
        step = steps[0].removesuffix("}") + " ".join(last) + " }"
        whole = f"{{ {_rows(loop)} {step} else {{ {kernel.text(path, loop.node)} }} }}"
        site = kernel.site(loop.block.function, loop.node)
        change = f"rows of {loop.block.function.name} in one DataCopyPad where their strides allow"
        yield Change(f"{site}/where", change, (kernel.replace(path, loop.node, whole),))


def _rows(loop: CountedLoop) -> str:
    """The declaration of ``rowsAtOnce``: how many turns the loop has."""
    first = "" if loop.first == "0" else f" - static_cast<int64_t>({loop.first})"
    return f"const int64_t rowsAtOnce = static_cast<int64_t>({loop.bound}){first};"


def _target(call: ApiCall) -> str:
    return root(call.args[0].removeprefix("this->"))


def _strided_copy(
    loop: CountedLoop, call: ApiCall, names: dict[str, str], types: dict[str, str]
) -> tuple[str, str] | None:
    """(condition, copy) for all turns at once."""
    if len(call.args) < 3:
        return None
    kinds = [types.get(root(a.removeprefix("this->"))) for a in call.args[:2]]
    to, of = (affine(a, loop.name, loop.first, names) for a in call.args[:2])
    kind = kinds[0] or kinds[1]
    if to is None or of is None or kind is None or (kinds[0] is None) == (kinds[1] is None):
        return None
    inward = kinds[1] is not None
    length, conditions = _length_of(call, kind)
    if length is None or not all(fixed(a, loop.name, names) for a in (*call.args[2:], loop.bound, loop.first)):
        return None
    outside, inside = (of, to) if inward else (to, of)
    size = f"static_cast<int64_t>({length})"
    far, near = (f"static_cast<int64_t>({p.step}) * static_cast<int64_t>(sizeof({kind}))" for p in (outside, inside))
    conditions += ["rowsAtOnce > 1", f"rowsAtOnce <= {_MOST_ROWS}", f"{far} >= {size}"]
    conditions += [f"{near} % 32 == 0", f"{near} >= {size}"]
    gap = f"static_cast<uint32_t>({far} - {size})"
    blocks = f"static_cast<uint32_t>(({near} - {size}) / 32)"  # whole blocks: near is a multiple of one
    gaps = (gap, blocks) if inward else (blocks, gap)
    one = f"{far} == {size} && {near} == {size}"  # rows without gaps are one block
    blocks_of = (
        f"static_cast<uint16_t>({one} ? 1 : rowsAtOnce)",
        f"static_cast<uint32_t>({one} ? rowsAtOnce * {size} : {size})",
    )
    fields = [*blocks_of, *gaps, "0"]
    args = [
        f"{to.tensor}[{to.start}]",
        f"{of.tensor}[{of.start}]",
        f"AscendC::DataCopyExtParams{{{', '.join(fields)}}}",
    ]
    if inward:
        args.append(f"AscendC::DataCopyPadExtParams<{kind}>{{false, 0, 0, 0}}")
    return " && ".join(conditions), call.spelled("DataCopyPad", *args)


def _length_of(call: ApiCall, kind: str) -> tuple[str | None, list[str]]:
    """(bytes of one turn's copy, what has to hold for it to be one plain block of that length)."""
    third = call.args[2].strip()
    if call.name == "DataCopy":
        count = len(call.args) == 3 and not re.search(r"[pP]arams|^\{", third)
        return (f"({third}) * sizeof({kind})" if count else None), []
    conditions: list[str] = []
    if len(call.args) == 4:
        pad = call.args[3].strip()
        if _PATH.fullmatch(pad):
            conditions.append(f"!{pad}.isPad")
        elif not re.search(r"\{\s*(?:false|0)\b", pad):
            return None, []
    if _PATH.fullmatch(third):
        return f"{third}.blockLen", [*conditions, f"{third}.blockCount == 1"]
    fields = re.fullmatch(r"(?:(?:AscendC::)?DataCopy(?:Ext)?Params\s*)?\{(.*)\}", third, re.DOTALL)
    parts = _parts(fields[1]) if fields else []
    plain = len(parts) >= 4 and re.fullmatch(r"(?:static_cast<\w+>\(|\(\w+\))?\(?1\)*", parts[0])
    return (parts[1] if plain else None), conditions


def _parts(text: str) -> list[str]:
    out, depth, start = [], 0, 0
    for k, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            out.append(text[start:k].strip())
            start = k + 1
    return [*out, text[start:].strip()]


# -- rows computed one by one ------------------------------------------------------------------------------------------


def rows_as_repeats(kernel: KernelProgram) -> Iterator[Change]:
    """A loop of vector instructions a row, made one of each a column of 256 bytes, the rows its repeats.

    What is the same for every row is an operand with stride 0. Worth it where there are more rows than columns.
    """
    types = _local_types(kernel)
    for loop in counted_loops(kernel):
        turn = _turn(kernel, loop) if _usable(kernel, loop) else None
        if turn is None or turn[1] or not _apart(loop, turn[2], turn[0]):
            continue
        parts = [_repeated(loop, call, turn[0], types) for call in turn[2]]
        found = [p for p in parts if p is not None]
        if len(found) < len(parts):
            continue
        conditions = list(dict.fromkeys(c for conditions, _ in found for c in conditions))
        between = " " if kernel.auto_sync else " PipeBarrier<PIPE_V>(); "
        text = between.join(text for _, text in found)
        path = loop.block.function.path
        whole = (
            f"{{ {_rows(loop)} if ({' && '.join(conditions)}) {{ {text} }} else {{ {kernel.text(path, loop.node)} }} }}"
        )
        site = kernel.site(loop.block.function, loop.node)
        instructions = ", ".join(dict.fromkeys(c.name for c in turn[2]))
        change = f"rows of {loop.block.function.name} are repeats of {instructions} where their strides allow"
        yield Change(f"{site}/repeats", change, (kernel.replace(path, loop.node, whole),))


def _apart(loop: CountedLoop, calls: list[ApiCall], names: dict[str, str]) -> bool:
    """Does no row read or write what another row writes? Then the order of rows and instructions may change."""
    if any(c.name not in BINARY | UNARY | SCALAR or not c.args for c in calls):
        return False
    written = {_target(c) for c in calls}
    places: dict[str, set[AffinePlace | None]] = {}
    for call in calls:
        for a in call.args:
            name = root(a.removeprefix("this->"))
            if name in written:
                places.setdefault(name, set()).add(affine(a, loop.name, loop.first, names))
    return all(len(found) == 1 and None not in found for found in places.values())


def _repeated(
    loop: CountedLoop, call: ApiCall, names: dict[str, str], types: dict[str, str]
) -> tuple[list[str], str] | None:
    """(conditions, the instruction for all rows in a loop over columns)."""
    tensors = 3 if call.name in BINARY else 2 if call.name in UNARY | SCALAR else 0
    if not tensors or len(call.args) != (3 if call.name in UNARY else 4) or "," in call.template:
        return None
    count, kind = call.args[-1], types.get(_target(call))
    places = [affine(a, loop.name, loop.first, names) for a in call.args[:tensors]]
    still = [a for a, p in zip(call.args[:tensors], places, strict=True) if p is None]
    still += [*call.args[tensors:], loop.bound, loop.first]
    if kind is None or places[0] is None or not all(fixed(a, loop.name, names) for a in still):
        return None
    length, size = f"static_cast<int64_t>({count})", f"static_cast<int64_t>(sizeof({kind}))"
    lanes = f"256 / {size}"
    conditions = ["rowsAtOnce > 1", f"rowsAtOnce <= {_MOST_REPEATS}", f"{length} <= rowsAtOnce * ({lanes})"]
    conditions.append(f"static_cast<int64_t>({places[0].step}) >= {length}")
    for step in dict.fromkeys(p.step for p in places if p is not None):
        distance = f"static_cast<int64_t>({step}) * {size}"
        conditions += [f"{distance} % 32 == 0", f"{distance} >= 0", f"{distance} <= {_MOST_REPEATS * 32}"]
    operands = [_column(a, p) for a, p in zip(call.args[:tensors], places, strict=True)]
    strides = [f"static_cast<uint8_t>(({p.step}) * sizeof({kind}) / 32)" if p is not None else "0" for p in places]
    shape = "BinaryRepeatParams" if tensors == 3 else "UnaryRepeatParams"
    params = f"AscendC::{shape}({', '.join(['1'] * tensors)}, {', '.join(strides)})"
    width = f"const int64_t columnWidth = {length} - column < {lanes} ? {length} - column : {lanes};"
    scalars = list(call.args[tensors:-1])
    mask, rows = "static_cast<uint64_t>(columnWidth)", "static_cast<uint8_t>(rowsAtOnce)"
    text = call.spelled(call.name, *operands, *scalars, mask, rows, params)
    head = f"for (int64_t column = 0; column < {length}; column += {lanes})"
    return conditions, f"{head} {{ {width} {text}; }}"


def _column(operand: str, place: AffinePlace | None) -> str:
    return f"{operand}[column]" if place is None else f"{place.tensor}[{place.start} + column]"


def _local_types(kernel: KernelProgram) -> dict[str, str]:
    """Name of a LocalTensor -> its element type as written, where all of that name have the same."""
    found: dict[str, set[str]] = {}
    for source in kernel.program.files.values():
        text = source.data.decode("utf-8", "replace")
        for kind, name in (*_LOCAL.findall(text), *((k, n) for n, k in _GOT.findall(text))):
            found.setdefault(name, set()).add(kind.strip())
    return {name: next(iter(kinds)) for name, kinds in found.items() if len(kinds) == 1}
