"""A value a row, or a row, spread over a whole matrix to be one operand: taken with strides of 0 instead.

``BroadCast`` writes a matrix that one instruction behind it reads. A row for all rows is an operand whose repeats are
0 blocks apart; a value a row is a block a row (Brcb) whose blocks are 0 apart. Where the shapes don't allow that, which
is asked when the kernel runs, the matrix is made as before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .api import ACCUMULATING, BINARY, VECTOR, is_barrier, root
from .kernel_program import ApiCall, Block, KernelProgram
from .motif import Change
from .turns import listed, local_types

_CALLS = ("BroadCast", "Broadcast")
_MOST = 255  # repeats of an instruction, and blocks from one to the next
_SWAPS = frozenset(["Add", "Max", "Min", "Mul"])  # a op b is b op a


@dataclass(frozen=True)
class _Spread:
    """A BroadCast whose matrix one instruction reads: ``rows`` of ``width`` elements, a value a row or one row."""

    made: ApiCall
    used: ApiCall
    rows: str
    width: str
    by_value: bool
    kind: str
    place: int  # among those of its function

    @property
    def name(self) -> str:
        """Of the variable that says whether the matrix isn't needed."""
        return f"rowsInPlace{self.place}"


def rows_in_place(kernel: KernelProgram) -> Iterator[Change]:
    """Each matrix of one value a row, or of one row, that one instruction reads, not made."""
    for block in kernel.blocks:
        for i, step in enumerate(block.steps):
            call = step.call
            found = _spread(kernel, block, i, call) if call is not None and call.name in _CALLS else None
            if found is None:
                continue
            path, site = block.function.path, kernel.site(block.function, step.node)
            assert found.made.statement is not None
            assert found.used.statement is not None
            edits = (
                kernel.replace(path, found.made.statement, _first(kernel, found)),
                kernel.replace(path, found.used.statement, _second(kernel, found)),
            )
            what = "a value a row" if found.by_value else "one row"
            change = f"{found.used.name} in {block.function.name} takes {what} with stride 0, not as a matrix"
            yield Change(f"{site}/in place", change, edits)


def _spread(kernel: KernelProgram, block: Block, i: int, call: ApiCall) -> _Spread | None:
    if len(call.args) not in (4, 5):
        return None
    shapes = [_shape(kernel, call, a) for a in call.args[2:4]]
    used = _user(kernel, block, i, call.args[0])
    if used is None or shapes[0] is None or shapes[1] is None or shapes[0][0] == "1" or len(used.args) != 4:
        return None
    (rows, width), source = shapes[0], shapes[1]
    by_value = source[1] == "1" and source[0] == rows
    matrix = call.args[0]
    kinds = local_types([kernel.text(call.path, call.function.node)])
    kind = kinds.get(root(used.args[0]), "") or kinds.get(root(matrix), "")
    if not by_value and (source[0] != "1" or source[1] != width):
        return None
    if not kind or root(matrix) in {root(used.args[0]), root(call.args[1])} or "int" in kind:
        return None
    starts = sorted(c.node.start_byte for c in kernel.calls_of(call.function) if c.name in _CALLS)
    return _Spread(call, used, rows, width, by_value, kind, starts.index(call.node.start_byte) + 1)


def _shape(kernel: KernelProgram, call: ApiCall, name: str) -> tuple[str, str] | None:
    """The two numbers of a shape that is declared with them in the function, and not changed behind."""
    text = kernel.text(call.path, call.function.node)
    if not re.fullmatch(r"\w+", name):
        return None
    declared = re.findall(rf"\b{name}\s*\[\w+\]\s*=\s*\{{([^{{}}]*)\}}\s*;", text)
    if len(declared) != 1 or re.search(rf"\b{name}\s*\[\w+\]\s*=(?!\s*\{{)", text):
        return None
    numbers = [re.sub(r"^\(\s*uint32_t\s*\)\s*", "", part) for part in listed(declared[0])]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


def _user(kernel: KernelProgram, block: Block, i: int, matrix: str) -> ApiCall | None:
    """The one instruction that reads the matrix before it is written again.

    None where something else has to do with it, or stands between the two.
    """
    name = re.compile(rf"\b{re.escape(root(matrix))}\b")
    found: ApiCall | None = None
    for step in block.steps[i + 1 :]:
        call = step.call
        mentioned = name.search(kernel.text(block.function.path, step.node)) is not None
        if found is not None and mentioned:
            return found if call is not None and _taken_anew(kernel, call, matrix) else None
        if found is None and mentioned:
            if call is None or not _reads(call, matrix):
                return None
            found = call
        elif found is None and step.node.type != "comment" and not _idle(call):
            return None
    return found


def _idle(call: ApiCall | None) -> bool:
    """Does the call nothing to the data?"""
    return call is not None and (is_barrier(call, "PIPE_V") or call.name == "FreeTensor")


def _taken_anew(kernel: KernelProgram, call: ApiCall, matrix: str) -> bool:
    """Is the matrix's memory given back, written, or left to a function of the kernel's own?"""
    if call.name in VECTOR - ACCUMULATING and call.args[0] == matrix:
        return matrix not in call.args[1:]
    return call.name in {f.name for f in kernel.functions} | {"FreeTensor", *_CALLS}


def _reads(call: ApiCall, matrix: str) -> bool:
    """Is the matrix the operand that an instruction can take with a stride of its own?"""
    if len(call.args) != 4 or "," in call.template:
        return False
    if call.name == "Axpy":
        return call.args[1] == matrix
    first = call.name in _SWAPS and call.args[1] == matrix and call.args[2] != matrix
    return call.name in BINARY and (first or (call.args[2] == matrix and call.args[1] != matrix))


def _first(kernel: KernelProgram, found: _Spread) -> str:
    """The condition, and what comes in place of the matrix: a block a row, or nothing."""
    rows, width = (f"static_cast<int64_t>({n})" for n in (found.rows, found.width))
    size = f"static_cast<int64_t>(sizeof({found.kind}))"
    conditions = [
        f"{rows} > 1",
        f"{rows} <= {_MOST}",
        f"{width} * {size} % 32 == 0",
        f"{width} * {size} >= 256",
        f"{width} * {size} <= {_MOST * 32}",
        f"{size} >= 2",
        f"static_cast<int64_t>({found.used.args[-1]}) == {rows} * {width}",
    ]
    condition = f"const bool {found.name} = {' && '.join(conditions)};"
    whole = f"{kernel.text(found.made.path, found.made.node)};"
    if not found.by_value:
        return f"{condition} if (!{found.name}) {{ {whole} }}"
    times = f"static_cast<uint8_t>(({rows} + 7) / 8)"
    block = found.made.spelled("Brcb", *found.made.args[:2], times, "{1, 8}")
    return f"{condition} if ({found.name}) {{ {block}; }} else {{ {whole} }}"


def _second(kernel: KernelProgram, found: _Spread) -> str:
    """The instruction a column of 256 bytes, the rows its repeats."""
    matrix, used = found.made.args[0], found.used
    spread = matrix if found.by_value else found.made.args[1]
    at = "" if found.by_value else "[column]"
    apart = f"static_cast<uint8_t>(static_cast<int64_t>({found.width}) * sizeof({found.kind}) / 32)"
    blocks, repeats = ("0", "1") if found.by_value else ("1", "0")
    width, rows = f"static_cast<int64_t>({found.width})", f"static_cast<uint8_t>({found.rows})"
    lanes = f"256 / static_cast<int64_t>(sizeof({found.kind}))"
    left = f"const int64_t columnWidth = {width} - column < {lanes} ? {width} - column : {lanes};"
    mask = "static_cast<uint64_t>(columnWidth)"
    if used.name == "Axpy":
        operands = [f"{used.args[0]}[column]", f"{spread}{at}", used.args[2]]
        params = f"AscendC::UnaryRepeatParams(1, {blocks}, {apart}, {repeats})"
    else:
        other = used.args[1] if used.args[2] == matrix else used.args[2]
        operands = [f"{used.args[0]}[column]", f"{other}[column]", f"{spread}{at}"]
        params = f"AscendC::BinaryRepeatParams(1, 1, {blocks}, {apart}, {apart}, {repeats})"
    one = used.spelled(used.name, *operands, mask, rows, params)
    turn = f"for (int64_t column = 0; column < {width}; column += {lanes}) {{ {left} {one}; }}"
    return f"if ({found.name}) {{ {turn} }} else {{ {kernel.text(used.path, used.node)}; }}"
