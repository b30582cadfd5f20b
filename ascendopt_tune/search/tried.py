"""How often motifs, and rules of Stage I, that were tried alone made a pair faster where defaults are chosen.

Counted over the development list and the registry at decode and medium sizes (docs/search.md), modelled. A run begins
with a few trials of each kind that ended so, and its own outcomes soon outweigh them.
"""

from __future__ import annotations

from collections.abc import Mapping

#: Motif, or family of moves -> (trials that were faster by 0.3 % at least, trials).
_TRIED: Mapping[str, tuple[int, int]] = {
    # Stage II
    "add-tree": (0, 20),
    "alignment-512": (2, 38),
    "bank-groups": (12, 142),
    "constant-tiling": (8, 8),
    "copy-without-pad": (0, 86),
    "deferred-wait": (6, 8),
    "double-buffer": (0, 71),
    "early-fetch": (10, 53),
    "flag-pair": (6, 36),
    "merged-rows": (4, 4),
    "rings-for-queues": (54, 74),
    "shared-buffers": (43, 51),
    "tile-length": (8, 32),
    # Stage I
    "aligned_shares": (1, 20),
    "alignment": (5, 23),
    "branch": (0, 44),
    "buffer_num": (2, 46),
    "core_count": (28, 174),
    "even_shares": (0, 7),
    "quantity_down": (3, 21),
    "quantity_up": (0, 14),
    "split": (1, 23),
    "tile_length": (6, 60),
    "ub_share": (3, 10),
    "ub_size": (4, 44),
}
_MOST = 8.0  # trials that a run begins with


def prior(kind: str) -> tuple[float, float]:
    """(wins, trials) that a run begins with for a motif or a family of moves; none for what was hardly tried."""
    wins, trials = _TRIED.get(kind, (0, 0))
    scale = min(1.0, _MOST / trials) if trials else 0.0
    return scale * wins, scale * trials
