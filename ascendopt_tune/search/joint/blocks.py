"""A block's work cut into several: the kernel deals its turns (deal.py), the tiling program launches more blocks.

So a program that launches one block, or shares rows where there are fewer rows than cores, gets a second axis to share.
Where a block takes few turns, tiles are made shorter in the same candidate, so that every block has several. Where it
takes many that handle a short row each, a turn gets several rows before turns are dealt: afterwards no block has rows
that lie one behind the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ...evaluate.diagnosis import more_cores
from ...nouns.outcome import Timed
from ...nouns.trial import Move
from ...sources.cpp import Edit, apply_edits
from ..kernel.motifs import Rewrite, find
from ..kernel.reading.kernel_program import KernelProgram
from ..mutation import Mutation
from ..tiling.slice import Template
from .deal import dealt
from .move import JointMove, Material

_TURNS = 2  # turns for each block at least: copies of one overlap with the computation of the other
_SHORTER = ("ub_size", "tile_length", "more_tiles", "quantity_down")
_MOST = 3  # ways to shorten tiles that are offered
# Rows in a turn, and how promising: more than turns dealt alone (3.0), after which no rows are left to put together.
_ROWS = {16: 3.4, 8: 3.3, 4: 3.1}


def blocks(material: Material) -> Iterator[JointMove]:
    """Blocks that leave half of the cores without work, each made a group of them."""
    state, outcome = material.state, material.state.incumbent.outcome
    if not isinstance(outcome, Timed) or outcome.profile.aic_time_us > 0:
        return
    before = outcome.profile.block_dim
    if before < 1:  # nobody said
        return
    turns = outcome.profile.detail.counters.get("mte3_copies")
    scalar = turns == 0.0  # the scalar unit writes the results
    turns = None if scalar else turns
    best = more_cores(outcome.profile.detail, state.chip)[0]
    fewer = _fewer_paid(material)
    for group, promise in () if fewer else _groups(before, state.cores, turns, best // before):
        launched = list(_launched(material.template, group))
        edits = dealt(material.kernel, group, scalar) if launched else ()
        if not edits:
            return
        count = before * group
        moves = (Move("blocks", "blocks", "up", count),)
        change = f"the turns of each of {before} blocks dealt to {group}"
        if before == 1:
            change = f"one core's turns dealt to {count} blocks"
        if before == 1 or turns is None or turns > before:
            yield JointMove(edits, tuple(launched), change, moves, 3.0 * promise)
        for rows, rewrite, whole in _by_rows(material.kernel, group, scalar):
            if turns is None or turns >= rows * count:
                move = Move(f"rows-per-turn@{rewrite.site}", "rows-per-turn", "up", rows)
                both = f"{rewrite.change}; {change}"
                yield JointMove(whole, tuple(launched), both, (move, *moves), _ROWS[rows] * promise)
        if turns is None or turns >= _TURNS * count:
            continue
        wanted = turns / (_TURNS * count)
        for m in shorter_tiles(material, wanted):
            both = f"{change}; {m.change}"
            worth = (3.2 if turns < count else 2.6) * promise
            yield JointMove(edits, (*launched, *m.edits), both, (*moves, *m.moves), worth)


def _fewer_paid(material: Material) -> bool:
    """Whether the search has found that fewer blocks than the baseline's are faster: then more are not tried."""
    first, now = material.state.baseline.outcome, material.state.incumbent.outcome
    return isinstance(first, Timed) and isinstance(now, Timed) and now.profile.block_dim < first.profile.block_dim


def _by_rows(kernel: KernelProgram, group: int, scalar: bool) -> Iterator[tuple[int, Rewrite, tuple[Edit, ...]]]:
    """(rows, what makes them, the files anew) for each way to handle several rows in a turn and deal the turns."""
    for rewrite in find("rows-per-turn").optimize(kernel):
        rows = next((n for n in _ROWS if rewrite.change.startswith(f"{n} rows in a turn")), 0)
        after = rewrite.kernel(kernel)
        edits = dealt(replace(kernel, files=after), group, scalar) if rows else ()
        if edits:
            texts = apply_edits(after, edits)
            files = kernel.files.items()
            whole = [Edit(p, 0, len(t.encode()), texts[p]) for p, t in files if texts[p] != t]
            yield rows, rewrite, tuple(whole)


def _groups(blocks: int, cores: int, turns: float | None, best: int) -> list[tuple[int, float]]:
    """How many blocks may do the work of one, and how promising each number is.

    ``best``: as many as would end soonest, were the work split evenly, their start paid.
    """
    most = cores // blocks
    found = {most // 5: 0.4, most // 2: 0.5, most: 1.0}
    found[best] = max(1.1, found.get(best, 0.0))
    if turns is not None and turns < cores:
        found[int(turns / blocks)] = 0.9  # a turn for each
    return sorted(((n, promise) for n, promise in found.items() if n > 1), key=lambda g: -g[1])


def _launched(template: Template, group: int) -> Iterator[Edit]:
    """Where the program says how many blocks it launches. Only there: what else it counts stays that of before."""
    ones = {s.name for s in template.of_purpose("block_dim") if s.kind == "number" and s.value == 1}
    for sink in template.flow.sinks:
        if sink.kind != "block_dim":
            continue
        text = template.program.text(sink.path, sink.value)
        if text == "1" or text in ones:
            yield Edit(sink.path, sink.value.start_byte, sink.value.end_byte, str(group))
        else:
            yield Edit(sink.path, sink.value.start_byte, sink.value.end_byte, f"({text}) * {group}")


def shorter_tiles(material: Material, ratio: float) -> list[Mutation]:
    """Mutations of the tiling program that shorten its tiles, those nearest to ``ratio`` of the length first."""
    found = [
        m for m in material.mutations if len(m.moves) == 1 and m.moves[0].family in _SHORTER and m.moves[0].pressure < 0
    ]

    def distance(m: Mutation) -> float:
        move = m.moves[0]
        share = {"more_tiles": 1 / max(move.value, 1)}.get(move.family, move.value)
        if move.family == "tile_length":
            share = 0.5
        return abs(math.log2(max(share, 1e-3) / max(ratio, 1 / 64)))

    return sorted(found, key=lambda m: (distance(m), -m.weight, m.change))[:_MOST]
