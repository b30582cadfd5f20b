"""Loops that copy a row a turn between global memory and the Unified Buffer: one copy with strides for all rows.

The rewrite keeps the loop for when the copy can't say it: strides and counts are checked where they are known, when the
kernel runs. A turn may

* set variables first, and a copy's parameters, which are the same in each turn;
* wait for the pipe that it copies on, which one copy has no use for;
* choose by a condition that is the same in each turn (``if constexpr`` for a type): the loop is chosen then;
* let offsets go on by a fixed step at its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from ...reading.affine import AffinePlace, affine, at, fixed, resolved
from ...reading.api import COPY, is_barrier, root
from ...reading.counted import CountedLoop, counted_loops
from ...reading.declared import listed
from ...reading.kernel_program import ApiCall, BlockStep, KernelProgram
from ...reading.turn import rows_of, target, usable
from ..motif import Change

_MOST_ROWS = 4095  # blocks of one DataCopyPad
_WAITS = ("PIPE_V", "PIPE_MTE2", "PIPE_MTE3")
_SET = re.compile(r"(?:(?:const\s+)?[A-Za-z_][\w:]*\s+)?([A-Za-z_]\w*)\s*=\s*([^;{}]+);", re.DOTALL)
_PARAMS = re.compile(r"(?:AscendC::)?DataCopy\w*Params(?:<[^;{}]*>)?\s+\w+\s*(?:=?\s*\{[^;]*\})?\s*;", re.DOTALL)
_FIELD = re.compile(r"[A-Za-z_]\w*\.(?:blockCount|blockLen|srcStride|dstStride|rsv)\s*=\s*([^;{}]+);", re.DOTALL)
_ON = re.compile(r"(\w+)\s*\+=\s*([^;]+);|(\w+)\+\+;|\+\+(\w+);", re.DOTALL)
_PATH = re.compile(r"(?:this->)?[A-Za-z_][\w.]*")
_ONE = re.compile(r"(?:static_cast<\w+>\(|\(\w+\))?\(?1U?\)*")
BEGIN = "AtTheLoop"  # an offset's value in front of the loop, until the text is whole


@dataclass
class CopyingTurn:
    """What is done in each turn. ``names``: variables and what they are set to, in terms of the counter.

    ``first``: parameters, which are the same in each turn; ``last``: what the variables that live longer are behind the
    loop; ``rest``: the statements without the chosen ones, as text.
    """

    names: dict[str, str] = field(default_factory=dict)
    first: list[str] = field(default_factory=list)
    last: list[str] = field(default_factory=list)
    calls: list[ApiCall] = field(default_factory=list)
    choice: Node | None = None
    rest: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)


def rows_in_one_copy(kernel: KernelProgram, types: dict[str, str]) -> Iterator[Change]:
    """A loop of copies a row, made one DataCopyPad with gaps for each."""
    for loop in counted_loops(kernel):
        turn = turn_of_copies(kernel, loop) if usable(kernel, loop) else None
        path = loop.block.function.path
        if turn is None or any(of_many(turn, call) for call in turn.calls):
            continue
        whole = (
            _all_rows(loop, turn, turn.calls, kernel.text(path, loop.node), types)
            if turn.choice is None
            else _chosen(kernel, loop, turn, types)
        )
        if whole is None:
            continue
        site = kernel.site(loop.block.function, loop.node)
        change = f"rows of {loop.block.function.name} in one DataCopyPad where their strides allow"
        text = whole.replace(BEGIN, "")
        yield Change(f"{site}/where", change, (kernel.replace(path, loop.node, text),))


# -- what a turn does --------------------------------------------------------------------------------------------------


def turn_of_copies(kernel: KernelProgram, loop: CountedLoop) -> CopyingTurn | None:
    """What a turn does; None if that is something else than copies and what they need."""
    turn, path = CopyingTurn(), loop.block.function.path
    steps = [s for s in loop.block.steps if s.node.type != "comment"]
    while steps and (found := _ON.fullmatch(kernel.text(path, steps[-1].node))) is not None:
        name, by = found[1] or found[3] or found[4], (found[2] or "1").strip()
        if name in turn.names or name == loop.name:
            return None
        turn.names[name] = f"({name}{BEGIN} + {loop.name} * ({by}))"  # counted from the first turn: see _place
        turn.last.append(f"{name} += rowsAtOnce * ({by});")
        turn.behind.insert(0, kernel.text(path, steps.pop().node))
    going = dict(turn.names)
    for step in steps:
        if not _does(kernel, loop, step, turn):
            return None
    moved = {text for text in (*turn.first, *turn.behind) if not fixed(text, loop.name, _others(turn.names, text))}
    copied = bool(turn.calls) or turn.choice is not None
    return turn if copied and not moved and not set(turn.behind) & set(going) else None


def _others(names: Mapping[str, str], text: str) -> dict[str, str]:
    """The variables without the one that a step at the end moves on."""
    found = _ON.fullmatch(text)
    own = (found[1] or found[3] or found[4]) if found is not None else ""
    return {name: value for name, value in names.items() if name != own}


def _does(kernel: KernelProgram, loop: CountedLoop, step: BlockStep, turn: CopyingTurn) -> bool:
    """Notes what a statement does; False where it isn't known."""
    text, call = kernel.text(loop.block.function.path, step.node), step.call
    if turn.choice is not None:
        return False
    if call is not None:
        waits = any(is_barrier(call, pipe) for pipe in _WAITS)
        turn.calls += [] if waits else [call]
        turn.rest.append(text)
        return waits or call.name in COPY
    if step.node.type == "if_statement":
        turn.choice = step.node
        return not turn.calls
    turn.rest.append(text)
    if _PARAMS.fullmatch(text) or _FIELD.fullmatch(text):
        turn.first.append(text)
        return not turn.calls
    found = _SET.fullmatch(text)
    if found is None or turn.calls or found[1] in turn.names:
        return False
    if "(" in re.sub(r"\([^()\w]*|\(\w[^()]*\)", "", found[2]):
        return False
    turn.names[found[1]] = resolved(found[2], turn.names)
    if step.node.type == "expression_statement":
        if BEGIN in turn.names[found[1]] and loop.first != "0":
            return False
        turn.last.append(f"{found[1]} = {at(turn.names[found[1]], loop.name, f'{loop.bound} - 1')};")
    return True


def of_many(turn: CopyingTurn, call: ApiCall) -> bool:
    """Do the parameters that the turn makes for a copy say that it has several blocks?"""
    text, name = " ".join(turn.first), re.escape(call.args[2].strip()) if len(call.args) > 2 else ""
    counts = re.findall(rf"\b{name}\.blockCount\s*=\s*([^;]+);|\b{name}\s*=?\s*\{{([^,;{{}}]*)[,}}]", text)
    values = [(one or other).strip() for one, other in counts]
    return bool(values) and not any(_ONE.fullmatch(v) for v in values)


# -- all turns at once -------------------------------------------------------------------------------------------------


def _all_rows(
    loop: CountedLoop, turn: CopyingTurn, calls: Sequence[ApiCall], whole: str, types: dict[str, str]
) -> str | None:
    """The copies for all turns where they may be, else the loop, as it is; None where they never may."""
    copies = [_strided_copy(loop, call, turn.names, types) for call in calls]
    found = [c for c in copies if c is not None]
    if not found or len(found) < len(copies) or len({target(c) for c in calls}) < len(calls):
        return None
    joined = " && ".join(f"({condition})" if len(found) > 1 else condition for condition, _ in found)
    steps = [*(f"{text};" for _, text in found), *turn.last]
    first = "".join(f" {text}" for text in turn.first)
    return f"{{ {rows_of(loop)}{first} if ({joined}) {{ {' '.join(steps)} }} else {{ {whole} }} }}"


def _chosen(kernel: KernelProgram, loop: CountedLoop, turn: CopyingTurn, types: dict[str, str]) -> str | None:
    """The same for each side of a condition that is the same in each turn."""
    assert turn.choice is not None
    f, node = loop.block.function, turn.choice
    condition, then = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
    otherwise = node.child_by_field_name("alternative")
    if condition is None or then is None or not fixed(kernel.text(f.path, condition), loop.name, turn.names):
        return None
    data = kernel.program.files[f.path].data
    head, made = (
        data[a.start_byte : b.start_byte].decode("utf-8", "replace")
        for a, b in ((loop.node, loop.block.node), (node, then))
    )
    sides, found = list[str](), False
    for side in (then, otherwise.named_children[-1] if otherwise is not None else None):
        inside = list(side.named_children) if side is not None and side.type == "compound_statement" else [side]
        nodes = [n for n in inside if n is not None and n.type != "comment"]
        calls = [kernel.call_of(f, n) for n in nodes]
        text = " ".join(kernel.text(f.path, n) for n in nodes)
        whole = f"{head}{{ {' '.join((*turn.rest, text, *turn.behind))} }}"
        copies = [c for c in calls if c is not None and c.name in COPY]
        made_one = _all_rows(loop, turn, copies, whole, types) if copies and len(copies) == len(calls) else None
        found = found or made_one is not None
        sides.append(made_one or f"{{ {whole if text or turn.behind or turn.last else ''} }}")
    return f"{made}{sides[0]} else {sides[1]}" if found else None


def _strided_copy(
    loop: CountedLoop, call: ApiCall, names: dict[str, str], types: dict[str, str]
) -> tuple[str, str] | None:
    """(condition, copy) for all turns at once."""
    if len(call.args) < 3:
        return None
    kinds = [types.get(root(a.removeprefix("this->"))) for a in call.args[:2]]
    to, of = (place_of(a, loop, names) for a in call.args[:2])
    kind = kinds[0] or kinds[1]
    if to is None or of is None or kind is None or (kinds[0] is None) == (kinds[1] is None):
        return None
    inward = kinds[1] is not None
    length, conditions = length_of(call, kind)
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


def place_of(operand: str, loop: CountedLoop, names: Mapping[str, str]) -> AffinePlace | None:
    """The operand as a place that moves with the counter; None where it moves with that and an offset that goes on."""
    whole = resolved(operand, names)
    if loop.first == "0" or BEGIN not in whole:
        return affine(operand, loop.name, loop.first, names)
    counted = {name: value for name, value in names.items() if BEGIN not in value}
    return (
        None if loop.name in re.findall(r"\w+", resolved(operand, counted)) else affine(operand, loop.name, "0", names)
    )


def length_of(call: ApiCall, kind: str) -> tuple[str | None, list[str]]:
    """(bytes of one turn's copy, what has to hold for it to be one plain block of that length)."""
    third = call.args[2].strip()
    blocks = ""
    if call.name == "DataCopy":
        if len(call.args) != 3:
            return None, []
        body = (call.function.node.text or b"").decode("utf-8", "replace")
        if not re.search(r"[pP]arams|^\{", third) and not re.search(rf"Params\s+{re.escape(third)}\b", body):
            return f"({third}) * sizeof({kind})", []
        blocks = " * 32"  # its parameters count blocks
    conditions: list[str] = []
    if len(call.args) == 4:
        pad = call.args[3].strip()
        if _PATH.fullmatch(pad):
            conditions.append(f"!{pad}.isPad")
        elif not re.search(r"\{\s*(?:false|0)\b", pad):
            return None, []
    if _PATH.fullmatch(third):
        return f"{third}.blockLen{blocks}", [*conditions, f"{third}.blockCount == 1"]
    fields = re.fullmatch(r"(?:(?:AscendC::)?DataCopy(?:Ext)?Params\s*)?\{(.*)\}", third, re.DOTALL)
    parts = listed(fields[1]) if fields else []
    plain = len(parts) >= 4 and _ONE.fullmatch(parts[0])
    return (f"({parts[1]}){blocks}" if plain and blocks else parts[1] if plain else None), conditions
