"""How often motifs that were tried alone made a kernel faster where defaults are chosen.

Counted over the development list and the registry at decode and medium sizes (docs/search.md), modelled, in two runs
of each case by earlier versions of the search, so that many a trial is there twice. A run begins
with a few trials of each motif that ended so, and its own outcomes soon outweigh them. Rules of Stage I have no such
figures: with them the first evaluations found less there, as which rule helps is more the operator's than the rule's.
"""

from __future__ import annotations

from collections.abc import Mapping

#: Motif -> (trials that were faster by 0.3 % at least, trials).
_TRIED: Mapping[str, tuple[int, int]] = {
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
}
_MOST = 8.0  # trials that a run begins with


def prior(motif: str) -> tuple[float, float]:
    """(wins, trials) that a run begins with; none for a motif that was hardly tried."""
    wins, trials = _TRIED.get(motif, (0, 0))
    scale = min(1.0, _MOST / trials) if trials else 0.0
    return scale * wins, scale * trials
