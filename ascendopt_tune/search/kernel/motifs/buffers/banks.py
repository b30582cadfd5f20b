"""Bank groups of UB: where buffers lie that one vector instruction reads together.

A repeat reads 256 bytes of each source, half of the 16 groups, and each group gives one block a cycle. Two sources that
start a multiple of 512 bytes apart, or anywhere but 256 from it, share groups, and every repeat takes a cycle more. So
buffers are made two sets: one starts at multiples of 512 bytes, the other 256 behind them.

1. Which buffers an instruction reads together says the text: tensors by the queue or buffer they were taken from.
2. The sets are chosen so that few such pairs lie in one.
3. Buffers of a block are made set by set, each a multiple of 512 bytes long, with 256 bytes between the sets.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from .....sources.cpp import Edit, Function, walk
from ...reading.api import ACCUMULATING, BINARY, root
from ...reading.kernel_program import ApiCall, KernelProgram, Where, loops_around, where
from ...reading.room import room
from ..motif import Change, Motif

_ROUND = re.compile(r"\(\((.*)\) \+ 511\) / 512 \* 512", re.DOTALL)
_SHIFT = " + 32"  # bytes: the next bank group, for instructions of few blocks
_CUBE = re.compile(r"\bT(?:Que|QueBind|Buf)\s*<[^>]*\b(?:A1|A2|B1|B2|C1|C2|CO1|CO2|TSCM)\b")
_APART = "banksApart"
_TAKEN = re.compile(
    r"\b([A-Za-z_]\w*)\s*=\s*(?:this->)?([A-Za-z_]\w*)\s*\.\s*(?:template\s+)?(?:DeQue|AllocTensor|Get)\b"
)
_TOGETHER = BINARY | ACCUMULATING
_OFTEN = 4  # an instruction that runs again and again counts as so many
_CALLS_DEEP = 2  # functions that hand on their arguments
_ROUNDS = 4  # of moving single buffers to the other set


def _buffers(kernel: KernelProgram) -> list[ApiCall]:
    """Calls that give a queue or a buffer its bytes in the Unified Buffer."""
    elsewhere = _of_cube_cores(kernel)
    return [c for c in kernel.named("InitBuffer") if len(c.args) in (2, 3) and c.args[0] not in elsewhere]


def _of_cube_cores(kernel: KernelProgram) -> set[str]:
    """Names of queues and buffers that are declared at a position of a cube core: ``TQue<TPosition::A1, 2> a1``."""
    names = set()
    for source in kernel.program.files.values():
        for node in walk(source.tree.root_node):
            kind = node.child_by_field_name("type") if node.type in ("field_declaration", "declaration") else None
            if kind is not None and _CUBE.search(source.text(kind)):
                names |= {source.text(n) for n in node.children_by_field_name("declarator")}
    return names


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    calls = _buffers(kernel)
    if any(_APART in kernel.text(c.path, c.function.node) for c in calls):
        return
    yield from _apart(kernel, calls)
    rounded = [(c, m[1]) for c in calls if (m := _ROUND.fullmatch(c.args[-1]))]
    shifted = any(c.args[-1].endswith(_SHIFT) for c in calls)
    plain = [(c, f"{_summand(c.args[-1])}{_SHIFT}") for c in calls if not rounded and not shifted]
    for site, found, what in (("whole", rounded, "no longer rounded up"), ("shift", plain, "32 bytes longer")):
        for part, chosen in (("each", found), ("second", found[1::2])):
            if chosen:
                edits = tuple(kernel.replace(c.path, c.arguments[-1], size) for c, size in chosen)
                yield Change(f"{site}/{part}", f"{len(chosen)} of {len(calls)} buffers {what}", edits)


def _summand(text: str) -> str:
    return text if re.fullmatch(r"[\w\s*+().>:-]+", text) else f"({text})"


# -- two sets ----------------------------------------------------------------------------------------------------------


def _apart(kernel: KernelProgram, calls: Sequence[ApiCall]) -> Iterator[Change]:
    second = _second_set(_read_together(kernel, {_name(c.args[0]) for c in calls}))
    places = list(_places(kernel, calls))
    if not second or not second <= {_name(c.args[0]) for p in places for c in p.calls}:
        return
    edits = [e for i, place in enumerate(places) for e in _laid_out(kernel, place, second, f"{_APART}{i}")]
    change = f"buffers read together lie in different bank groups ({', '.join(sorted(second))} 256 bytes further)"
    yield Change("apart", change, tuple(edits))
    shorter = tuple(room(kernel, sum(512 * (len(c.args) - 1) for p in places for c in p.calls) + 512))
    if shorter:
        yield Change("apart/room", f"{change}, tiles shorter by that", tuple(edits), shorter)


def _name(expression: str) -> str:
    return root(expression.removeprefix("this->"))


def _read_together(kernel: KernelProgram, buffers: set[str]) -> Counter[tuple[str, str]]:
    """How often an instruction reads two buffers."""
    own, known = _taken_from(kernel)
    pairs: Counter[tuple[str, str]] = Counter()
    for f in kernel.functions:
        for call in kernel.calls_of(f):
            if call.name in _TOGETHER and len(call.args) > 3:
                read = call.args[:2] if call.name in ACCUMULATING else call.args[1:3]
                found = {own[where(f)].get(n) or known.get(n, n) for n in map(_name, read)}
                if len(found) == 2 and found <= buffers:
                    one, two = sorted(found)
                    pairs[one, two] += _OFTEN if kernel.repeated(f, call.node) else 1
    return pairs


def _taken_from(kernel: KernelProgram) -> tuple[dict[Where, dict[str, str]], dict[str, str]]:
    """(by function, in all functions alike): tensor -> the queue or buffer it was taken from, as argument too."""
    own = {where(f): dict(_TAKEN.findall(kernel.text(f.path, f.node))) for f in kernel.functions}
    by_name = {f.name: (where(f), _parameters(kernel, f)) for f in kernel.functions}
    for _ in range(_CALLS_DEEP):
        for call in kernel.calls:
            if call.name not in by_name or call.receiver:
                continue
            called, parameters = by_name[call.name]
            for argument, parameter in zip(call.args, parameters, strict=False):
                buffer = own[where(call.function)].get(_name(argument))
                if buffer is not None:
                    own[called].setdefault(parameter, buffer)
    everywhere: dict[str, set[str]] = {}
    for taken in own.values():
        for tensor, buffer in taken.items():
            everywhere.setdefault(tensor, set()).add(buffer)
    return own, {tensor: next(iter(found)) for tensor, found in everywhere.items() if len(found) == 1}


def _parameters(kernel: KernelProgram, f: Function) -> list[str]:
    found = next((n for n in walk(f.node) if n.type == "parameter_list"), None)
    words = (re.findall(r"\w+", kernel.text(f.path, n)) for n in found.named_children) if found is not None else ()
    return [w[-1] for w in words if w]


def _second_set(pairs: Mapping[tuple[str, str], int]) -> frozenset[str]:
    """Buffers that lie apart from the others, so that few pairs are in one set; none where there are no pairs."""
    side: dict[str, int] = {}
    for one, two in sorted(pairs, key=lambda p: (-pairs[p], p)):
        for name, other in ((one, two), (two, one)):
            if name not in side:
                side[name] = 1 - side.get(other, 1)
    for _ in range(_ROUNDS):
        for name in sorted(side):
            here = sum(w for p, w in pairs.items() if name in p and side[p[0]] == side[p[1]])
            there = sum(w for p, w in pairs.items() if name in p and side[p[0]] != side[p[1]])
            if here > there:
                side[name] = 1 - side[name]
    return frozenset(name for name, s in side.items() if s)


@dataclass(frozen=True)
class _Place:
    """Buffers that are made in one block, nothing done with them in between."""

    function: Function
    calls: tuple[ApiCall, ...]


def _places(kernel: KernelProgram, calls: Sequence[ApiCall]) -> Iterator[_Place]:
    mine = {(c.path, c.node.start_byte): c for c in calls if c.statement is not None}
    for block in kernel.blocks:
        f, run = block.function, list[ApiCall]()
        if loops_around(block.node, f):
            continue
        for step in block.steps:
            call = mine.get((f.path, step.call.node.start_byte)) if step.call is not None else None
            if call is not None:
                run.append(call)
            elif run and _touches(kernel.text(f.path, step.node), run):
                yield _Place(f, tuple(run))
                run = []
        if run:
            yield _Place(f, tuple(run))


def _touches(text: str, run: Sequence[ApiCall]) -> bool:
    """May the buffers of the run not be made behind this statement?"""
    return "InitBuffer" in text or not {_name(c.args[0]) for c in run}.isdisjoint(re.findall(r"\w+", text))


def _laid_out(kernel: KernelProgram, place: _Place, second: frozenset[str], name: str) -> Iterator[Edit]:
    """The buffers of the second set behind the others, and 256 bytes between them; the next block starts anew."""
    path = place.function.path
    sets = [[c for c in place.calls if (_name(c.args[0]) in second) == far] for far in (False, True)]
    made = [[f"{_with_length(kernel, c)};" for c in found] for found in sets]
    lines = [*made[0], *made[1]]
    if made[1]:
        pipe = kernel.text(path, place.calls[0].node).partition("InitBuffer")[0]
        spacers = [f"AscendC::TBuf<AscendC::TPosition::VECCALC> {name}{end};" for end in ("", "End")]
        gaps = [f"{pipe}InitBuffer({name}{end}, 256);" for end in ("", "End")]
        lines = [*spacers, *made[0], gaps[0], *made[1], gaps[1]]
    for call in place.calls[:-1]:
        yield kernel.delete(path, _statement(call))
    last = _statement(place.calls[-1])
    yield kernel.replace(path, last, f"\n{kernel.indent(path, last)}".join(lines))


def _statement(call: ApiCall) -> Node:
    assert call.statement is not None
    return call.statement


def _with_length(kernel: KernelProgram, call: ApiCall) -> str:
    """The call with a length in whole 512 bytes."""
    size = call.arguments[-1]
    text, start = kernel.text(call.path, call.node), call.node.start_byte
    data = text.encode()
    length = call.args[-1] if _ROUND.fullmatch(call.args[-1]) else f"(({call.args[-1]}) + 511) / 512 * 512"
    return (data[: size.start_byte - start] + length.encode() + data[size.end_byte - start :]).decode()


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    calls = [c for c in _buffers(kernel) if not _ROUND.fullmatch(c.args[-1])]
    edits = []
    for c in calls:
        size = c.args[-1].removesuffix(_SHIFT)
        edits.append(kernel.replace(c.path, c.arguments[-1], f"(({size}) + 511) / 512 * 512"))
    if len(calls) > 1:
        yield Change("all", f"{len(calls)} buffers start in the same bank group", tuple(edits))


BANK_GROUPS = Motif(
    name="bank-groups",
    title="Operands in different bank groups",
    description="A repeat reads 256 bytes of each source, half of UB's 16 bank groups (address bits 5 to 8), and a "
    "group gives one block a cycle. Sources that don't start 256 bytes apart, counted in 512, are read one after the "
    "other. Buffers in whole 512 bytes, those that are read together 256 bytes apart, are read at once.",
    bottlenecks=("bank conflicts", "vector"),
    preconditions="UB has room for the bytes in between.",
    faster=_faster,
    slower=_slower,
    together="no",
)
