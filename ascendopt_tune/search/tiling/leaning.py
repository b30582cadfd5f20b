"""What bounds the parent's launch says which families of rules are worth an evaluation first.

A factor on a mutation's weight, for the two most important findings of the diagnosis. It counts in full in the first
five evaluations, when outcomes have taught nothing yet (learning.py), and by half afterwards. Factors are chosen by
judgement: a family that works on what is the bound is worth about twice one that doesn't.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...evaluate.diagnosis import diagnose
from ...nouns.outcome import Timed
from ...nouns.trial import Trial
from ..mutation import Mutation
from ..proposer import SearchState

_EARLY = 5  # evaluations, the baseline's included
_LATER = 0.5  # of the leaning that is left then
_RANKS = (1.0, 0.5)  # of the leaning, by the finding's rank

_CORES = ("core_count", "block_dim")
_LENGTHS = ("tile_length", "ub_size", "quantity_up", "quantity_down")
_FEWER = {**{f"{f} down": 2.0 for f in _CORES}, "used_cores": 2.0, **{f"{f} up": 0.6 for f in _CORES}}
_MORE = {**{f"{f} up": 2.0 for f in _CORES}, "split": 1.5, "branch": 1.4, **{f"{f} down": 0.5 for f in _CORES}}
_LONGER = {**{f"{f} up": 2.0 for f in _LENGTHS}, "ub_share down": 1.6, "ub_reserve down": 1.4, "more_tiles": 0.5}
_SHORTER = {**{f"{f} down": 1.7 for f in _LENGTHS}, "more_tiles": 2.2, "even_tiles": 1.6, "buffer_num": 1.7}
_EVEN = {"even_shares": 2.0, "even_tiles": 1.5, "used_cores": 1.6, "aligned_shares": 0.7, "core_count": 1.3}
_SHORT_LISTS = {"tiling_list down": 2.0}
_ALIGNED = {"alignment": 1.8, "aligned_shares": 1.8}
#: Finding -> family (and direction) -> factor.
_HELP: Mapping[str, Mapping[str, float]] = {
    "launch": {**_FEWER, **_SHORT_LISTS},
    "few cores": {**_MORE, "more_tiles": 1.4, "tile_length down": 1.4},
    "imbalance": _EVEN,
    "synchronization": _FEWER,
    "no overlap": _SHORTER,
    "scalar round trips": _LONGER,
    "scalar": {**_LONGER, **_SHORT_LISTS},
    "vector barriers": _LONGER,
    "short vector instructions": _LONGER,
    "small copies": {**_LONGER, "swapped_axes": 1.3},
    "copies": {**_ALIGNED, **_MORE},
    "memory bandwidth": {**_ALIGNED, "core_count down": 1.3, "block_dim down": 1.3},
}


@dataclass(frozen=True)
class Leaning:
    """Factors by family, or by family and direction; 1 for what the diagnosis has nothing to say about."""

    factors: Mapping[str, float] = field(default_factory=dict)

    @staticmethod
    def of(state: SearchState, parent: Trial) -> Leaning:
        """What the diagnosis of ``parent`` says, so far into the run; nothing where its launch wasn't timed."""
        if not isinstance(parent.outcome, Timed):
            return Leaning()
        strength = 1.0 if len(state.history.evaluated) <= _EARLY else _LATER
        out: dict[str, float] = {}
        findings = diagnose(parent.outcome.profile, state.chip).findings
        for finding, rank in zip(findings, _RANKS, strict=False):
            for family, factor in _HELP.get(finding.bound, {}).items():
                out[family] = out.get(family, 1.0) * factor ** (strength * rank)
        return Leaning(out)

    def factor(self, mutation: Mutation) -> float:
        """The mean over the mutation's moves."""
        found = [self._of(f"{m.family} {m.direction}", m.family) for m in mutation.moves]
        return sum(found) / len(found) if found else 1.0

    def _of(self, exact: str, family: str) -> float:
        return self.factors.get(exact, self.factors.get(family, 1.0))
