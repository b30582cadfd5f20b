"""Buffers: two a queue with tiles that leave room for them, and constants that both programs have."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...evaluate.diagnosis import diagnose
from ...nouns.outcome import Timed
from ...nouns.trial import Move
from ...sources.cpp import Edit
from ..kernel.motifs import find
from ..kernel.reading.kernel_program import KernelProgram
from ..tiling.purposes import BUFFER_COUNT
from .blocks import shorter_tiles
from .move import JointMove, Material

_HELPED = frozenset(["no overlap", "copies", "memory bandwidth"])  # shorter tiles are dear where these are no bound
_SHARES = ((0.5, 1.0), (0.25, 0.6))  # of the tile's length, and how promising: its room twice, and more turns
_TILE = re.compile(r"tile|chunk|batch|block_?len|per_?loop|max_?len", re.IGNORECASE)
_CORES = re.compile(r"core|dim|align|byte|size_?of", re.IGNORECASE)
_SHORTEST_TILE, _LONGEST_TILE = 64, 1 << 16  # elements


def double_buffers(material: Material) -> Iterator[JointMove]:
    """Two buffers for queues that have one, with shorter tiles, so that they fit and there are turns to overlap."""
    outcome = material.state.incumbent.outcome
    if not isinstance(outcome, Timed):
        return
    findings = diagnose(outcome.profile, material.state.chip).findings
    if not any(f.bound in _HELPED for f in findings[:2]):
        return
    for rewrite in list(find("double-buffer").optimize(material.kernel))[:2]:
        for share, worth in _SHARES:
            for m in shorter_tiles(material, share)[:1]:
                moves = (Move(f"double-buffer@{rewrite.site}", "double-buffer", "flip", 1.0), *m.moves)
                change = f"{rewrite.change}; {m.change}"
                yield JointMove(rewrite.edits, m.edits, change, moves, 1.5 * worth)


def shared_constants(material: Material) -> Iterator[JointMove]:
    """A number that both programs have by the same name: buffers a queue, or the length of a tile."""
    host = KernelProgram(material.state.incumbent.candidate.pair.tiling).constants
    used = {w for f in material.kernel.functions for w in re.findall(r"\w+", material.kernel.text(f.path, f.node))}
    for mine in material.kernel.constants:
        twins = [c for c in host if (c.name, c.value) == (mine.name, mine.value)]
        if not twins or mine.name not in used or _CORES.search(mine.name):
            continue
        for value, promise in _values(mine.name, mine.value):
            edits = tuple(Edit(c.path, c.start, c.end, str(value)) for c in twins)
            own = (Edit(mine.path, mine.start, mine.end, str(value)),)
            direction = "up" if value > mine.value else "down"
            moves = (Move(f"shared:{mine.name}", "shared-constant", direction, value),)
            change = f"{mine.name} {mine.value} -> {value} in both programs"
            yield JointMove(own, edits, change, moves, promise)


def _values(name: str, value: int) -> list[tuple[int, float]]:
    if BUFFER_COUNT.search(name) and 1 <= value <= 4:
        return [(n, 1.2 if n == 2 else 0.5) for n in (1, 2) if n != value]
    if _TILE.search(name) and _SHORTEST_TILE <= value <= _LONGEST_TILE:
        return [(value * 2, 0.9), (value // 2, 0.8), (value * 4, 0.5), (value // 4, 0.5)]
    return []
