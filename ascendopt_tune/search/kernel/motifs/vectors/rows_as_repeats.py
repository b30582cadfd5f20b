"""Rows computed one by one, made instructions whose repeats are the rows.

The rewrite keeps the loop for when the instruction can't say it: strides and counts are checked where they are known,
when the kernel runs. Rows that are copied are those of copies/row_copies.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import walk
from ...reading.affine import AffinePlace, affine, fixed, resolved
from ...reading.api import BINARY, SCALAR, UNARY, is_barrier, root, writes
from ...reading.counted import CountedLoop, counted_loops
from ...reading.declared import local_types, types_at
from ...reading.kernel_program import ApiCall, KernelProgram
from ...reading.turn import LOCAL_SET, apart, ended, rows_of, target, usable
from ..motif import Change
from .masked_rows import is_masked, masked_row

_COLUMN = "column"
_MOST_REPEATS = 255  # repeats of one instruction, and blocks from one to the next

_OF_THREE = BINARY | frozenset(["FusedMulAdd", "MulAddDst"])
_BY_ROW = _OF_THREE | UNARY | SCALAR | frozenset(["Axpy", "Cast"])
_LEAVES = ("break_statement", "continue_statement", "goto_statement", "return_statement")
_WORD = re.compile(r"[A-Za-z_]\w*")
_CHANGED = re.compile(r"\b([A-Za-z_]\w*)\s*(?:[-+*/%|&]?=(?!=)|\+\+|--)|(?:\+\+|--)\s*([A-Za-z_]\w*)")


@dataclass(frozen=True)
class _Choice:
    """Instructions of a row behind a condition that is the same for all rows; ``head``: ``if (...)`` as written."""

    head: str
    then: tuple[ApiCall | _Choice, ...]
    otherwise: tuple[ApiCall | _Choice, ...]


@dataclass(frozen=True)
class _Phases:
    """What is done to a row: variables of the turn, instructions, and from some statement on what isn't understood."""

    names: dict[str, str]
    set_up: tuple[str, ...]
    parts: tuple[ApiCall | _Choice, ...]
    rest: str

    @property
    def calls(self) -> list[ApiCall]:
        return list(_calls(self.parts))


def _calls(parts: Iterable[ApiCall | _Choice]) -> Iterator[ApiCall]:
    for part in parts:
        if isinstance(part, ApiCall):
            yield part
        else:
            yield from _calls((*part.then, *part.otherwise))


def rows_as_repeats(kernel: KernelProgram) -> Iterator[Change]:
    """A loop of vector instructions a row, made one of each a column of 256 bytes, the rows its repeats.

    What is the same for every row is an operand with stride 0. Conditions that don't depend on the row stay around
    their instructions, and what else a turn does comes behind, in a loop of its own. Worth it where there are more
    rows than columns.
    """
    everywhere = local_types(source.data.decode("utf-8", "replace") for source in kernel.program.files.values())
    for loop in counted_loops(kernel):
        phases = _phases(kernel, loop) if usable(kernel, loop, _COLUMN, "columnWidth") else None
        if phases is None or not apart(loop, phases.calls, phases.names, any(map(is_masked, phases.calls))):
            continue
        f = loop.block.function
        types = {**everywhere, **types_at(kernel, f, loop.node)}
        done = [
            (
                masked_row(kernel, loop, c, phases.names, types)
                if is_masked(c)
                else _repeated(loop, c, phases.names, types)
            )
            for c in phases.calls
        ]
        if None in done:
            continue
        texts = {call.node.start_byte: d[1] for call, d in zip(phases.calls, done, strict=True) if d is not None}
        conditions = list(dict.fromkeys(c for d in done if d is not None for c in d[0]))
        text = _all_rows(phases.parts, texts, " " if kernel.auto_sync else " PipeBarrier<PIPE_V>(); ")
        whole = kernel.text(f.path, loop.node)
        if phases.rest:
            head = kernel.program.files[f.path].data[loop.node.start_byte : loop.block.node.start_byte].decode().strip()
            text += f" {head} {{ {' '.join(phases.set_up)} {phases.rest}"
        else:
            text += ended(kernel, loop)
        whole = f"{{ {rows_of(loop)} if ({' && '.join(conditions)}) {{ {text} }} else {{ {whole} }} }}"
        site = kernel.site(f, loop.node)
        instructions = ", ".join(dict.fromkeys(c.name for c in phases.calls))
        change = f"rows of {f.name} are repeats of {instructions} where their strides allow"
        yield Change(f"{site}/repeats", change, (kernel.replace(f.path, loop.node, whole),))


def _all_rows(parts: Iterable[ApiCall | _Choice], texts: dict[int, str], between: str) -> str:
    out = []
    for part in parts:
        if isinstance(part, ApiCall):
            out.append(texts[part.node.start_byte])
            continue
        text = f"{part.head} {{ {_all_rows(part.then, texts, between)} }}"
        if part.otherwise:
            text += f" else {{ {_all_rows(part.otherwise, texts, between)} }}"
        out.append(text)
    return between.join(out)


def _phases(kernel: KernelProgram, loop: CountedLoop) -> _Phases | None:
    path = loop.block.function.path
    names: dict[str, str] = {}
    set_up: list[str] = []
    parts: list[ApiCall | _Choice] = []
    rest = ""
    for step in loop.block.steps:
        text = kernel.text(path, step.node)
        found = LOCAL_SET.fullmatch(text) if step.node.type == "declaration" and not parts else None
        if found is not None and found[1] not in names and _plain(found[2]):
            names[found[1]] = resolved(found[2], names)
            set_up.append(text)
            continue
        part = _part(kernel, loop, step.node, names)
        if part is None:
            end = loop.block.node.end_byte
            rest = kernel.program.files[path].data[step.node.start_byte : end].decode("utf-8", "replace")
            if any(n.type in _LEAVES for n in walk(step.node.parent or step.node)):
                return None
            break
        parts += part
    used = {w for c in _calls(parts) for a in c.args for w in re.findall(r"[A-Za-z_]\w*", a)}
    changed = {name for pair in _CHANGED.findall(rest) for name in pair}
    if not parts or used & changed or _carried(kernel, loop, list(_calls(parts)), names):
        return None
    return _Phases(names, tuple(set_up), tuple(parts), rest)


def _carried(kernel: KernelProgram, loop: CountedLoop, calls: list[ApiCall], names: dict[str, str]) -> bool:
    """Does a turn write, behind the instructions, what all rows of theirs read?"""
    read = {root(a) for c in calls for a in c.args[1:] if loop.name not in _WORD.findall(resolved(a, names))}
    behind = max(c.node.end_byte for c in calls)
    later = (c for c in kernel.calls_of(loop.block.function) if behind <= c.node.start_byte < loop.block.node.end_byte)
    return any(read & writes(c) for c in later)


def _plain(value: str) -> bool:
    """An expression without a call."""
    return "(" not in re.sub(r"\([^()\w]*|\(\w[^()]*\)", "", value)


def _part(
    kernel: KernelProgram, loop: CountedLoop, node: Node, names: dict[str, str]
) -> list[ApiCall | _Choice] | None:
    """What a statement does to a row: nothing (a barrier), an instruction, a choice; None: something else."""
    if node.type == "comment":
        return []
    call = kernel.call_of(loop.block.function, node)
    if call is not None:
        return [] if is_barrier(call, "PIPE_V") else [call] if call.name in _BY_ROW else None
    condition, then = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
    if node.type != "if_statement" or condition is None or then is None:
        return None
    path = loop.block.function.path
    if not fixed(kernel.text(path, condition), loop.name, names) or "GetValue" in kernel.text(path, condition):
        return None
    other = node.child_by_field_name("alternative")
    sides = [_side(kernel, loop, side, names) for side in (then, other.named_children[-1] if other else None)]
    if sides[0] is None or sides[1] is None:
        return None
    head = kernel.program.files[path].data[node.start_byte : then.start_byte].decode("utf-8", "replace").strip()
    return [_Choice(head, tuple(sides[0]), tuple(sides[1]))]


def _side(
    kernel: KernelProgram, loop: CountedLoop, node: Node | None, names: dict[str, str]
) -> list[ApiCall | _Choice] | None:
    out: list[ApiCall | _Choice] = []
    statements = () if node is None else node.named_children if node.type == "compound_statement" else (node,)
    for statement in statements:
        part = _part(kernel, loop, statement, names)
        if part is None:
            return None
        out += part
    return out


def _repeated(
    loop: CountedLoop, call: ApiCall, names: dict[str, str], types: dict[str, str]
) -> tuple[list[str], str] | None:
    """(conditions, the instruction for all rows in a loop over columns)."""
    tensors = 3 if call.name in _OF_THREE else 2
    if len(call.args) != (3 if call.name in UNARY else 4) or "," in call.template:
        return None
    count, kind = call.args[-1], types.get(target(call))
    places = [affine(a, loop.name, loop.first, names) for a in call.args[:tensors]]
    still = [a for a, p in zip(call.args[:tensors], places, strict=True) if p is None]
    still += [*call.args[tensors:], loop.bound, loop.first]
    of_its_own = call.name in ("Axpy", "Cast", "MulAddDst")  # types of sources and target may differ
    source = types.get(root(call.args[1])) if of_its_own else kind
    if kind is None or source is None or "int4" in kind + source:
        return None
    if places[0] is None or not all(fixed(a, loop.name, names) for a in still):
        return None
    length = f"static_cast<int64_t>({count})"
    sizes = [f"static_cast<int64_t>(sizeof({k}))" for k in (kind, source, source)]
    wider = sizes[0] if kind == source else f"({sizes[0]} > {sizes[1]} ? {sizes[0]} : {sizes[1]})"
    lanes = f"256 / {wider}"
    conditions = ["rowsAtOnce > 1", f"rowsAtOnce <= {_MOST_REPEATS}", f"{length} <= rowsAtOnce * ({lanes})"]
    conditions.append(f"static_cast<int64_t>({places[0].step}) >= {length}")
    for step, size in dict.fromkeys((p.step, size) for p, size in zip(places, sizes, strict=False) if p is not None):
        distance = f"static_cast<int64_t>({step}) * {size}"
        conditions += [f"{distance} % 32 == 0", f"{distance} >= 0", f"{distance} <= {_MOST_REPEATS * 32}"]
    operands = [_column(a, p) for a, p in zip(call.args[:tensors], places, strict=True)]
    kinds = (kind, source, source)
    strides = [
        f"static_cast<uint8_t>(({p.step}) * sizeof({k}) / 32)" if p is not None else "0"
        for p, k in zip(places, kinds, strict=False)
    ]
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
