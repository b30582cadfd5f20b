"""Loads to L0A and L0B: a loop of LoadData made one call, or a loop over the shorter side.

A base block lies in L1 as columns of tiles and goes to L0 as rows of them. Written as a loop over its rows (or columns)
each turn is one LoadData with the tiles of that row as its repeats. Where rows follow each other at the distance their
tiles have, one call takes all; else the loop can run over the other side, with the rows as repeats. Which of them
holds is known when the kernel runs: the loop stays for what neither says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...reading.affine import affine, fixed, indexed
from ...reading.counted import CountedLoop, counted_loops
from ...reading.declared import local_types
from ...reading.kernel_program import ApiCall, KernelProgram
from ..motif import Change, Motif

_PARAMS = r"\bLoadData2DParams\s+{}\b"
_TURNS, _TILE, _PART, _TILES = "loadTurns", "loadTile", "loadPart", "tilesAtOnce"
_MOST_REPEATS = 255  # tiles of one LoadData
_MOST_STRIDE = 65535  # tiles from one to the next
_BYTES = 512  # of a tile


def _load(kernel: KernelProgram, call: ApiCall) -> str | None:
    """The elements' type of a LoadData with LoadData2DParams that have a name; None for other calls."""
    if call.name != "LoadData" or len(call.args) != 3 or not call.args[2].isidentifier():
        return None
    text = kernel.text(call.path, call.function.node)
    if not re.search(_PARAMS.format(call.args[2]), text):
        return None
    types = local_types([text])
    kinds = {types[t] for a in call.args[:2] if (t := indexed(a)[0]) in types}
    return kinds.pop() if len(kinds) == 1 and not any("int4" in k for k in kinds) else None


def _ours(kernel: KernelProgram, loop: CountedLoop) -> bool:
    """Is the loop one of these rewrites', or one that they kept for when their conditions don't hold?"""
    block = loop.node.parent
    branch = block.parent if block is not None else None
    around = branch.parent if branch is not None and branch.type == "else_clause" else branch
    condition = around.child_by_field_name("condition") if around is not None else None
    return loop.name == _TILE or (condition is not None and _TURNS in kernel.text(loop.block.function.path, condition))


def _faster(kernel: KernelProgram) -> Iterator[Change]:
    for loop in counted_loops(kernel):
        steps = [s for s in loop.block.steps if s.node.type != "comment"]
        call = steps[0].call if len(steps) == 1 else None
        kind = _load(kernel, call) if call is not None else None
        if call is None or kind is None or loop.step != "1" or _ours(kernel, loop):
            continue
        to, of = (affine(a, loop.name, loop.first, {}) for a in call.args[:2])
        if to is None or of is None or not all(fixed(t, loop.name, {}) for t in (loop.bound, loop.first)):
            continue
        path, params = loop.block.function.path, call.args[2]
        size = f"static_cast<int64_t>(sizeof({kind}))"
        far = [f"static_cast<int64_t>({p.step}) * {size}" for p in (to, of)]
        first = "" if loop.first == "0" else f" - static_cast<int64_t>({loop.first})"
        declared = [
            f"const int64_t {_TURNS} = static_cast<int64_t>({loop.bound}){first};",
            f"const int64_t loadTo = {far[0]} / {_BYTES}, loadOf = {far[1]} / {_BYTES};",
            f"const int64_t loadTiles = {params}.repeatTimes, loadStep = {params}.dstGap + 1;",
            f"auto {_TILES} = {params};",
        ]
        whole = f"({far[0]}) % {_BYTES} == 0 && ({far[1]}) % {_BYTES} == 0 && {params}.addrMode == 0"
        even = f"loadTo == loadTiles * loadStep && loadOf == loadTiles * {params}.srcStride"
        one = f"{_TURNS} > 1 && {whole} && {even} && {_TURNS} * loadTiles <= {_MOST_REPEATS}"
        other = (
            f"{_TURNS} > loadTiles && {whole} && {_TURNS} <= {_MOST_REPEATS} && loadTo > 0 && loadOf >= 0 && "
            f"loadTo <= {_MOST_STRIDE} && loadOf <= {_MOST_STRIDE}"
        )
        at = [
            f"{to.tensor}[{to.start} + {_TILE} * loadStep * ({_BYTES} / {size})]",
            f"{of.tensor}[{of.start} + {_TILE} * {params}.srcStride * ({_BYTES} / {size})]",
        ]
        all_of_them = call.spelled("LoadData", f"{to.tensor}[{to.start}]", f"{of.tensor}[{of.start}]", _TILES)
        text = (
            f"{{ {' '.join(declared)} "
            f"if ({one}) {{ {_TILES}.repeatTimes = {_TURNS} * loadTiles; {all_of_them}; }} "
            f"else if ({other}) {{ {_TILES}.repeatTimes = {_TURNS}; {_TILES}.srcStride = loadOf; "
            f"{_TILES}.dstGap = loadTo - 1; for (int64_t {_TILE} = 0; {_TILE} < loadTiles; {_TILE}++) "
            f"{{ {call.spelled('LoadData', *at, _TILES)}; }} }} "
            f"else {{ {kernel.text(path, loop.node)} }} }}"
        )
        site = kernel.site(loop.block.function, loop.node)
        change = f"tiles of {loop.block.function.name} in one LoadData, or over the shorter side"
        yield Change(f"{site}/tiles", change, (kernel.replace(path, loop.node, text),))


def _slower(kernel: KernelProgram) -> Iterator[Change]:
    """Each tile loaded by a call of its own."""
    for call in kernel.named("LoadData"):
        kind, statement = _load(kernel, call), call.statement
        if kind is None or statement is None or _PART in kernel.text(call.path, call.function.node):
            continue
        params = call.args[2]
        tile = f"({_BYTES} / static_cast<int64_t>(sizeof({kind})))"
        strides = (f"({params}.dstGap + 1)", f"{params}.srcStride")
        at = []
        for operand, stride in zip(call.args[:2], strides, strict=True):
            tensor, index = indexed(operand)
            start = f"({index}) + " if index else ""
            at.append(f"{tensor}[{start}{_PART} * ({stride} * {tile})]")
        text = (
            f"{{ LoadData2DParams oneTile = {params}; oneTile.repeatTimes = 1; "
            f"for (int64_t {_PART} = 0; {_PART} < {params}.repeatTimes; {_PART}++) "
            f"{{ {call.spelled('LoadData', *at, 'oneTile')}; }} }}"
        )
        if call.spelled("LoadData").startswith("AscendC::"):
            text = text.replace("{ LoadData2DParams", "{ AscendC::LoadData2DParams")
        change = f"tiles of {call.function.name} loaded one by one"
        yield Change(kernel.site(call.function, statement), change, (kernel.replace(call.path, statement, text),))


MERGED_LOADS = Motif(
    name="merged-loads",
    title="Many tiles in one LoadData",
    description="Each LoadData costs the scalar unit its issue and MTE1 a head, however few tiles it moves. Tiles at "
    "one distance are the repeats of one call; a block that is longer in the other direction is loaded along that.",
    bottlenecks=("waits between pipes", "scalar", "copies", "matrix unit"),
    preconditions="At most 255 tiles a call; tiles start at multiples of 512 bytes.",
    faster=_faster,
    slower=_slower,
)
