"""Acceptance: is the fastest candidate really faster, or was it lucky?

The few fastest are measured again, several rounds, each time in turn with the baseline; what counts is the share of the
baseline's time that is saved. A finalist is accepted when the median of its rounds exceeds both the minimum effect and
the noise. Where times don't vary (the virtual NPU) the search's own measurement is the one round there is.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .proposer import Trial

WIN, NO_WIN = "win", "no significant win"
FINALISTS = 3
_SPREADS = 2.0  # a gain must exceed so many half interquartile ranges


@dataclass(frozen=True)
class Comparison:
    """One interleaved measurement: medians and spreads (half the interquartile range) in us of the target's clock."""

    candidate_us: float
    baseline_us: float
    candidate_spread_us: float = 0.0
    baseline_spread_us: float = 0.0

    @property
    def gain(self) -> float:
        """Share of the baseline's time that is saved; negative if the candidate is slower."""
        return 1.0 - self.candidate_us / self.baseline_us

    @property
    def noise(self) -> float:
        """Spread of the gain: both spreads, as shares of the baseline's time."""
        return (self.candidate_spread_us + self.baseline_spread_us) / self.baseline_us


@dataclass(frozen=True)
class Finalist:
    """``gains``: of each round; ``noise``: the larger of the spread within the rounds and that between them."""

    id: int
    gains: tuple[float, ...]
    gain: float
    noise: float
    accepted: bool


@dataclass(frozen=True)
class Decision:
    """``order``: ids of the accepted finalists, the winner first. ``outcome`` is ``win`` or ``no significant win``."""

    finalists: tuple[Finalist, ...]
    order: tuple[int, ...]
    min_effect: float

    @property
    def outcome(self) -> str:
        return WIN if self.order else NO_WIN

    def to_json(self) -> dict[str, Any]:
        return {
            "outcome": self.outcome,
            "min_effect": self.min_effect,
            "finalists": [asdict(f) for f in self.finalists],
            "order": list(self.order),
        }


def decide(
    finalists: Sequence[Trial], measure: Callable[[Trial], Comparison | None], *, rounds: int, min_effect: float
) -> Decision:
    """Which finalists are faster than the baseline beyond the noise, the best first.

    ``measure`` compares one finalist with the baseline once, or returns None when it failed this time, which excludes
    it. Rounds are interleaved: every finalist is measured once before any is measured again. Finalists whose gains
    differ by less than the minimum effect tie, and the one that was found first (the smaller id) wins.
    """
    seen: dict[int, list[Comparison]] = {t.candidate.id: [] for t in finalists}
    out: set[int] = set()
    for _ in range(rounds):
        for trial in finalists:
            number = trial.candidate.id
            if number in out:
                continue
            one = measure(trial)
            if one is None:
                out.add(number)
            else:
                seen[number].append(one)
    judged = tuple(_judge(n, s, min_effect) for n, s in seen.items() if s and n not in out)
    return Decision(judged, _ranked([f for f in judged if f.accepted], min_effect), min_effect)


def _judge(number: int, seen: Sequence[Comparison], min_effect: float) -> Finalist:
    gains = [c.gain for c in seen]
    gain = statistics.median(gains)
    between = 0.0
    if len(gains) > 1:
        quarters = statistics.quantiles(gains, n=4, method="inclusive")
        between = (quarters[2] - quarters[0]) / 2
    noise = max(between, statistics.median(c.noise for c in seen))
    return Finalist(number, tuple(gains), gain, noise, gain > max(min_effect, _SPREADS * noise))


def _ranked(accepted: Sequence[Finalist], min_effect: float) -> tuple[int, ...]:
    """Best first; again and again the smallest id among those within the minimum effect of the best that is left."""
    left, out = list(accepted), list[int]()
    while left:
        best = max(f.gain for f in left)
        first = min((f for f in left if f.gain > best - min_effect), key=lambda f: f.id)
        left.remove(first)
        out.append(first.id)
    return tuple(out)
