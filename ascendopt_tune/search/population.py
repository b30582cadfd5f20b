"""The population: a quality-diversity archive over how launches behave (MAP-Elites, arXiv:1504.04909).

Every trial that passed the gate falls into one niche, by what its launch did and not by its text: which share of the
cores it used, how long its copies were, and which pipe was busiest. A niche keeps its fastest trial, the elite.

Why an archive and not islands: a run has 40 evaluations. Islands divide them, and each would be too small to find
anything; the archive divides the *parents* only, costs nothing, and keeps alive what is different (few cores with long
copies, many with short ones) even while it is somewhat slower: a change that doesn't help the incumbent may help there.
Elites much slower than the incumbent are no parents.

*Neutral* trials are parents as well: another launch than their parent's, right, and as fast as it. Such a change earns
nothing by itself and may be what makes the next one possible.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from ..nouns.history import History
from ..nouns.outcome import Timed
from ..nouns.profile import Profile
from ..nouns.trial import Trial
from .learning import SAME, verdict

Niche = tuple[int, int, str]

_NEUTRAL = 3  # neutral trials that may be parents, the latest
_SAME = 1.001  # times the incumbent's time; what is slower than that is no neutral parent
_SLOWEST = 1.5  # times the incumbent's time; what is slower than that is no parent
_PIPES = ("vec", "scalar", "mte2", "mte3")


def niche_of(profile: Profile, cores: int) -> Niche:
    """(share of the cores used in quarters, length of a copy in powers of 4 bytes, busiest pipe).

    Of a launch that a device timed by events the virtual NPU tells copies and pipes (``Profile.modelled``); where
    nobody does, all launches on as many cores are one niche.
    """
    profile = profile.detail
    quarter = math.ceil(4 * min(profile.block_dim, cores) / max(cores, 1))
    counters = profile.counters
    moved = sum(counters.get(f"{pipe}_bytes", 0.0) for pipe in ("mte2", "mte3"))
    copies = sum(counters.get(f"{pipe}_copies", 0.0) for pipe in ("mte2", "mte3"))
    length = round(math.log(moved / copies, 4)) if moved > 0 and copies > 0 else 0
    busy = [getattr(profile, f"aiv_{pipe}_time_us") for pipe in _PIPES]
    return quarter, length, _PIPES[busy.index(max(busy))]


@dataclass(frozen=True)
class Population:
    """The elites, fastest first; equally fast ones in order of their ids. ``neutral``: the latest first."""

    elites: tuple[Trial, ...]
    neutral: tuple[Trial, ...] = ()

    @staticmethod
    def of(history: Sequence[Trial], cores: int) -> Population:
        """The archive after ``history`` on a chip of so many vector cores; duplicates of a launch are no members."""
        best: dict[Niche, Trial] = {}
        history = History.of(history)
        neutral: list[Trial] = []
        for trial in history:
            if isinstance(trial.outcome, Timed) and trial.duplicate_of is None:
                niche = niche_of(trial.outcome.profile, cores)
                current = best.get(niche)
                if current is None or (trial.time_us or 0.0) < (current.time_us or 0.0):
                    best[niche] = trial
                parent = history.parent(trial)
                if parent is not None and verdict(trial, parent) == SAME:
                    neutral.append(trial)
        elites = sorted(best.values(), key=lambda t: (t.time_us or 0.0, t.candidate.id))
        return Population(tuple(elites), tuple(reversed(neutral)))

    def enabling(self, incumbent: Trial) -> tuple[Trial, ...]:
        """The latest neutral trials that are as fast as the incumbent."""
        limit, own = _SAME * (incumbent.time_us or 0.0), incumbent.candidate.id
        return tuple(t for t in self.neutral if t.candidate.id != own and (t.time_us or 0.0) <= limit)[:_NEUTRAL]

    def parents(self, incumbent: Trial) -> tuple[Trial, ...]:
        """The elites that may be parents besides the incumbent, and the neutral trials behind them."""
        limit = _SLOWEST * (incumbent.time_us or 0.0)
        own = incumbent.candidate.id
        elites = [t for t in self.elites if t.candidate.id != own and (t.time_us or 0.0) <= limit]
        return (*elites, *(t for t in self.enabling(incumbent) if t not in elites))

    def parent(self, incumbent: Trial, rng: random.Random, share: float) -> Trial:
        """The incumbent, or with probability ``share`` another elite; faster ones are drawn more often."""
        others = self.parents(incumbent)
        if not others or rng.random() >= share:
            return incumbent
        return rng.choices(others, weights=[1 / (rank + 1) for rank in range(len(others))])[0]
