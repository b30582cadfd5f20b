"""Variants against each other: which is faster, by how much, and how well a whole family is ranked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log
from statistics import mean

from .compare import WHOLE, ComparedRow
from .table import Family

#: By which metrics scenarios are compared, the first that both have.
RANKED = (*WHOLE, "system_counter_ticks_per_1000_add", "time_us_per_100_loops")
#: Measured values closer than this, relatively or in microseconds, are not ranked: repeated measurements differ as much
#: (asc-devkit's pages from version to version; msprof's op_summary has a resolution of 0.1 us).
EQUAL, EQUAL_US = 0.02, 0.1
#: How far off a gain may be, as a share of its logarithm.
GAIN_SHARE = 1 / 3
#: Kendall's rank correlation of a family, at least.
TAU = 0.9


@dataclass(frozen=True)
class Inversion:
    """Two scenarios of a family that the model puts in the wrong order."""

    metric: str
    faster: str  # as measured
    slower: str


@dataclass(frozen=True)
class ComparedGain:
    """How many times faster ``fast`` is than ``slow``; ``modelled`` may be off by a third on the logarithmic scale.

    A measured gain below EQUAL has no limit.
    """

    what: str
    slow: str
    fast: str
    measured: float
    modelled: float

    @property
    def share(self) -> float:
        """log(modelled) / log(measured): 1 for the gain as measured, negative for a loss."""
        return log(self.modelled) / log(self.measured) if self.measured != 1 else 1.0

    @property
    def verdict(self) -> str:
        """``held``, ``missed``, or "" where the measured values are as good as equal."""
        if max(self.measured, 1 / self.measured) < 1 + EQUAL:
            return ""
        return "held" if abs(self.share - 1) <= GAIN_SHARE else "missed"


@dataclass(frozen=True)
class VariantPair:
    """Two variants that do the same work: ``measured``, how many times faster ``fast`` was measured than ``slow``."""

    metric: str
    slow: str
    fast: str
    measured: float


@dataclass(frozen=True)
class Ranking:
    """Kendall's rank correlation ``tau`` over the ``pairs`` of a family's scenarios whose measured values differ."""

    family: str
    pairs: int
    tau: float

    @property
    def verdict(self) -> str:
        """``held`` or ``missed``."""
        return "held" if self.tau >= TAU else "missed"


_Times = dict[str, tuple[float, float]]  # by scenario: measured (the mean of several published values), modelled


def _times(rows: Sequence[ComparedRow], family: Family) -> Iterator[tuple[str, _Times]]:
    for metric in RANKED:
        found: dict[str, list[ComparedRow]] = {}
        for row in rows:
            of_family = row.scenario.split("/")[0] == family.name and not row.left_out
            if of_family and row.measured.metric == metric and row.modelled:
                found.setdefault(row.scenario, []).append(row)
        yield metric, {name: (mean(r.measured.value for r in of), of[0].modelled or 0) for name, of in found.items()}


def _differing(times: _Times) -> Iterator[tuple[str, str]]:
    """Pairs (faster, slower) as measured."""
    for a, b in combinations(times, 2):
        fast, slow = sorted((a, b), key=lambda name: times[name][0])
        if times[fast][0] < min(times[slow][0] * (1 - EQUAL), times[slow][0] - EQUAL_US):
            yield fast, slow


def pairs(rows: Sequence[ComparedRow], families: Sequence[Family]) -> Iterator[VariantPair]:
    """Variants whose measured values differ: all of a family that does one work, else those of a published gain."""
    for family in families:
        published = {frozenset((gain.slow, gain.fast)) for gain in family.gains}
        for metric, times in _times(rows, family):
            for fast, slow in _differing(times):
                if family.ranked or frozenset((fast, slow)) in published:
                    yield VariantPair(metric, slow, fast, times[slow][0] / times[fast][0])


def inversions(rows: Sequence[ComparedRow], families: Sequence[Family]) -> list[Inversion]:
    """Pairs of scenarios of one family with the same work whose measured order the modelled values turn around."""
    return [
        Inversion(metric, fast, slow)
        for family in families
        if family.ranked
        for metric, times in _times(rows, family)
        for fast, slow in _differing(times)
        if times[fast][1] > times[slow][1]
    ]


def rankings(rows: Sequence[ComparedRow], families: Sequence[Family]) -> list[Ranking]:
    """The rank correlation of every family that has at least three scenarios to compare."""
    found = []
    for family in families:
        for _, times in _times(rows, family):
            signs = [
                (times[slow][1] > times[fast][1]) - (times[slow][1] < times[fast][1])
                for fast, slow in _differing(times)
            ]
            if len(times) > 2 and signs:
                found.append(Ranking(family.name, len(signs), sum(signs) / len(signs)))
                break
    return found


def gains(rows: Sequence[ComparedRow], families: Sequence[Family]) -> list[ComparedGain]:
    """Every published gain of which both scenarios were run."""
    found = []
    for family in families:
        for gain in family.gains:
            for _, times in _times(rows, family):
                if gain.slow in times and gain.fast in times:
                    slow, fast = times[gain.slow], times[gain.fast]
                    found.append(ComparedGain(gain.what, gain.slow, gain.fast, slow[0] / fast[0], slow[1] / fast[1]))
                    break
    return found
