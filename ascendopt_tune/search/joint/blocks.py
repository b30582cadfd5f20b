"""One core's work cut into blocks: the kernel deals its turns (deal.py), the tiling program launches more blocks.

Where one core takes few turns, tiles are made shorter in the same candidate, so that every block has several.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ...nouns.outcome import Timed
from ...nouns.trial import Move
from ...sources.cpp import Edit
from ..mutation import Mutation
from ..tiling.slice import Template
from .deal import dealt
from .move import JointMove, Material

_TURNS = 2  # turns for each block at least: copies of one overlap with the computation of the other
_SHORTER = ("ub_size", "tile_length", "more_tiles", "quantity_down")
_MOST = 3  # ways to shorten tiles that are offered


def blocks(material: Material) -> Iterator[JointMove]:
    """A kernel of one block, made one of many."""
    state, outcome = material.state, material.state.incumbent.outcome
    if not isinstance(outcome, Timed) or outcome.profile.block_dim != 1:
        return
    turns = outcome.profile.detail.counters.get("mte3_copies")
    if turns == 0.0:
        return  # the scalar unit writes the results, and block 0 would do all of it
    launched = list(_launched(material.template))
    edits = dealt(material.kernel) if launched else ()
    if not edits:
        return
    cores = state.cores
    for count, promise in ((cores, 1.0), (cores // 2, 0.5), (max(2, cores // 5), 0.4)):
        more = tuple(replace(e, text=str(count)) for e in launched)
        moves = (Move("blocks", "blocks", "up", count),)
        change = f"one core's turns dealt to {count} blocks"
        yield JointMove(edits, more, change, moves, 3.0 * promise)
        if turns is None or turns >= _TURNS * count:
            continue
        wanted = turns / (_TURNS * count)
        for m in shorter_tiles(material, wanted):
            both = f"{change}; {m.change}"
            worth = (3.2 if turns < count else 2.6) * promise
            yield JointMove(edits, (*more, *m.edits), both, (*moves, *m.moves), worth)


def _launched(template: Template) -> Iterator[Edit]:
    """Where the program says that it launches one block. Only there: what else it counts stays that of one core."""
    ones = {s.name for s in template.of_purpose("block_dim") if s.kind == "number" and s.value == 1}
    for sink in template.flow.sinks:
        text = template.program.text(sink.path, sink.value)
        if sink.kind == "block_dim" and (text == "1" or text in ones):
            yield Edit(sink.path, sink.value.start_byte, sink.value.end_byte, "1")


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
