"""Plausible clocks: a chip's constants drawn from their intervals, and what they leave of a modelled speedup.

A chip file says of each fitted or assumed constant in which interval it plausibly lies, nine times of ten. A draw
replaces all of them at once, each by its own chance, and SCALE times as far from the value. The same draws time the
pair as written and the pair that is compared with it, so an error that both share cancels.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, quantiles
from typing import Any

from .chip import Chip, Constant

Clock = Mapping[str, float]  # constants of a chip to replace, by key

COUNT = 40  # clocks that a speedup is told for
ENOUGH = 0.95  # share of the clocks in which a pair has to be faster to be accepted

_NORMAL = NormalDist()
_DEVIATION = _NORMAL.inv_cdf(0.95)  # standard deviations from the value to the end of its interval
#: By how much draws are spread wider than the intervals, for what the model's structure misses: with 1 the published
#: values lie in the 90 % intervals of modelled times in 75 of 100 cases, with 1.7 in 87 (``fidelity --intervals``). A
#: scale factor as the Particle Data Group's, for measurements that scatter by more than their errors say.
SCALE = 1.7
_BEYOND = 0.3  # how far a draw may leave the interval, as a share of the distance from the value to its end


def plausible(chip: Chip, n: int = COUNT, seed: int = 0) -> tuple[Clock, ...]:
    """``n`` draws of all constants of ``chip``: normal with a deviation of its own on each side of the value.

    The draws of a constant are spread evenly over its distribution (Latin hypercube), and depend on nothing but its
    key, ``n`` and ``seed``: other chips and other constants don't change them. A constant whose interval has no
    negative number is never drawn negative, one whose interval has no zero never zero.
    """
    draws = {key: _draws(f"{seed}/{key}", constant, n) for key, constant in sorted(chip.constants.items())}
    return tuple({key: of[i] for key, of in draws.items()} for i in range(n))


def _draws(name: str, constant: Constant, n: int) -> list[float]:
    rng = random.Random(name)
    # Within its n-th of the distribution each draw is random; the smallest float is where the normal begins.
    shares = [max((i + rng.random()) / n, 1e-12) for i in rng.sample(range(n), n)]
    return [_at(constant, _NORMAL.inv_cdf(share) / _DEVIATION) for share in shares]


def _at(constant: Constant, u: float) -> float:
    """The constant ``u`` away from its value; -1 and 1 are the ends of its interval before SCALE."""
    u = SCALE * min(max(u, -1 - _BEYOND), 1 + _BEYOND)
    value, low, high = constant.value, constant.low, constant.high
    drawn = value + u * (high - value if u > 0 else value - low)
    return drawn if low < 0 else max(drawn, low / 2)


@dataclass(frozen=True)
class Interval:
    """A speedup over plausible clocks: its 5th and 95th percentile, and the share of clocks in which it is above 1."""

    low: float
    high: float
    wins: float

    @property
    def survives(self) -> bool:
        """Whether it is above 1 in nearly all of them."""
        return self.wins >= ENOUGH

    def to_json(self) -> dict[str, float]:
        """The fields of records and cache entries: ``speedup_low``, ``speedup_high``, ``wins``."""
        return {"speedup_low": self.low, "speedup_high": self.high, "wins": self.wins}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Interval | None:
        """The interval among the fields of a document; None where it has none."""
        if "wins" not in document:
            return None
        return Interval(*(float(document[name]) for name in ("speedup_low", "speedup_high", "wins")))

    def __str__(self) -> str:
        return f"{self.low:.2f} to {self.high:.2f} over plausible clocks"


def speedups(baseline_us: Sequence[float], best_us: Sequence[float]) -> tuple[float, ...]:
    """The speedup under each clock; both have the times of the same clocks in the same order."""
    return tuple(base / best for base, best in zip(baseline_us, best_us, strict=True))


def interval(of: Sequence[float]) -> Interval | None:
    """The interval of a speedup that was found under each of the plausible clocks; None for no clocks."""
    if not of:
        return None
    cuts = quantiles(of, n=20, method="inclusive") if len(of) > 1 else of
    return Interval(cuts[0], cuts[-1], sum(s > 1 for s in of) / len(of))


def mean(of: Sequence[Sequence[float]], weights: Sequence[float] | None = None) -> tuple[float, ...]:
    """The weighted geometric mean, under each clock, of several speedups; none where one of them has none."""
    if not all(of):
        return ()
    weights = weights or [1.0] * len(of)
    logs = zip(*([math.log(s) for s in one] for one in of), strict=True)
    return tuple(math.exp(sum(w * x for w, x in zip(weights, row, strict=True)) / sum(weights)) for row in logs)


def speedup_text(speedup: float, found: Interval | None) -> str:
    """How a speedup is told wherever a person reads it: ``1.31x (1.18 to 1.42 over plausible clocks)``."""
    return f"{speedup:.2f}x ({found})" if found is not None else f"{speedup:.2f}x"
