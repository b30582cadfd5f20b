"""What the runs come to: the paper's figures, by size, by level and in all.

A case (an operator at a size) counts where every method that applies to it has every seed. Its speedup by a method is
the geometric mean over seeds; ``fast_p`` is the share of (case, seed) whose speedup is greater than p, strictly, as in
the paper's eq. 6 (there one run an operator). Methods that need a parametric space are compared on the cases that have
one, and the others beside them on the same cases.
"""

from __future__ import annotations

import functools
import math
import random
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..evaluate.bound import mean_hap
from ..nouns import clocks
from .gain import mean_parts
from .record import RunRecord

CaseName = tuple[str, str]  # operator, size
THRESHOLDS = (1.0, 1.2, 1.4, 2.0)
WINS = 0.95  # share of plausible clocks in which a win has to be one
_NEAR = 0.95  # of the best known
_LEVEL = 0.005  # share of the speedup within which two methods are level
_DRAWS = 4000


@dataclass(frozen=True)
class Line:
    """One method on a set of cases. ``low`` and ``high``: geometric means of the worst and of the best seed.

    ``to_best``: median evaluations until 95 % of the best known speed, of the runs that get there (share ``reached``).
    ``overhead_s``: median seconds of the wall clock that the method takes for an evaluation, besides it.
    """

    method: str
    cases: int
    runs: int
    mean: float
    low: float
    high: float
    fast: tuple[float, ...]
    to_best: float | None
    reached: float
    overhead_s: float


@dataclass(frozen=True)
class MeanInterval:
    """A figure under the nominal clock, and its 5th and 95th percentile over plausible clocks.

    Every clock is one for all cases: what it makes of each is reckoned together.
    """

    nominal: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Gain:
    """What one method gains on the cases of one size.

    ``fast``: by threshold. ``wins``: share of runs that are faster in at least ``WINS`` of the plausible clocks; None
    where no run tells. ``parts``: the factors that launch, tiling and kernel have in the mean (gain.py).
    """

    cases: int
    mean: MeanInterval
    fast: dict[float, MeanInterval]
    wins: float | None
    parts: dict[str, float]


@dataclass(frozen=True)
class Against:
    """One method against another one on the cases that have both.

    ``ratio``: geometric mean of the first's speedup over the other's; ``low`` and ``high``: its 95 % interval, by
    drawing operators anew, each with all its sizes. ``ahead``, ``level``, ``behind``: cases, by their mean over seeds;
    level: within 0.5 %.
    """

    other: str
    cases: int
    ratio: float
    low: float
    high: float
    ahead: int
    level: int
    behind: int


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


def complete(runs: Sequence[RunRecord], methods: Sequence[str], seeds: int) -> list[RunRecord]:
    """The runs of cases that have every seed of all these methods."""
    have: dict[CaseName, set[tuple[str, int]]] = defaultdict(set)
    for r in runs:
        have[r.case].add((r.method, r.seed))
    wanted = {(m, s) for m in methods for s in range(seeds)}
    return [r for r in runs if r.method in methods and r.seed < seeds and wanted <= have[r.case]]


def best_known(runs: Sequence[RunRecord]) -> dict[CaseName, float]:
    """Case -> the least confirmed time, in us, of all runs."""
    out: dict[CaseName, float] = {}
    for r in runs:
        out[r.case] = min(r.best_us, out.get(r.case, r.best_us))
    return out


@dataclass(frozen=True)
class Nearness:
    """How near one method comes to the hardware's bound (evaluate/bound.py) on these cases.

    ``hap``: cann-bench's score, mean over the runs that it says something of; 0.5 is as fast as written. ``before`` and
    ``after``: the bound's share of the time as written and of the best pair's, median.
    """

    method: str
    cases: int
    hap: float | None
    before: float
    after: float


def bounds(runs: Sequence[RunRecord]) -> dict[CaseName, float]:
    """Case -> the hardware's bound, in us: the least that any run knows of. Without cases that no run tells of."""
    out: dict[CaseName, float] = {}
    for r in runs:
        if r.bound_us is not None:
            out[r.case] = min(r.bound_us, out.get(r.case, r.bound_us))
    return out


def nearness(method: str, runs: Sequence[RunRecord], bound: dict[CaseName, float]) -> Nearness | None:
    """The method's figure on its runs; None where no case has a bound."""
    of = [(r.baseline_us, r.best_us, bound[r.case]) for r in runs if r.method == method and r.case in bound]
    if not of:
        return None
    return Nearness(
        method=method,
        cases=len({r.case for r in runs if r.method == method and r.case in bound}),
        hap=mean_hap(of),
        before=statistics.median(us / before for before, _, us in of),
        after=statistics.median(us / after for _, after, us in of),
    )


def gain(runs: Sequence[RunRecord]) -> Gain:
    """What these runs, of one method, gain; there is one at least."""

    def ends(figure: Callable[[list[float]], float]) -> MeanInterval:
        nominal = figure([r.speedup for r in runs])
        found = clocks.interval([figure(list(of)) for of in columns]) if known else None
        return MeanInterval(nominal, found.low, found.high) if found is not None else MeanInterval(nominal)

    wins = [r.wins for r in runs if r.wins is not None]
    known = len(wins) == len(runs)
    count = max(len(r.over_clocks) for r in runs) or 1  # as written is as fast as written, whatever the clock
    columns = list(zip(*(r.over_clocks or (1.0,) * count for r in runs), strict=known))
    return Gain(
        cases=len({r.case for r in runs}),
        mean=ends(geometric_mean),
        fast={p: ends(functools.partial(_share_above, p)) for p in THRESHOLDS},
        wins=sum(w >= WINS for w in wins) / len(runs) if known else None,
        parts=mean_parts(runs),
    )


def _share_above(threshold: float, speedups: list[float]) -> float:
    return sum(s > threshold for s in speedups) / len(speedups)


def best_so_far(run: RunRecord) -> list[float]:
    """The speedup after each evaluation of the budget; never above what was confirmed in the end."""
    out, best = [], run.baseline_us
    for time_us in run.trace:
        if time_us is not None:
            best = min(best, max(time_us, run.best_us))
        out.append(run.baseline_us / best)
    return out + [out[-1]] * (run.budget - len(out))


def line(method: str, runs: Sequence[RunRecord], known: dict[CaseName, float]) -> Line:
    """The figures of a method's runs; there is one at least."""
    seeds: dict[int, list[float]] = defaultdict(list)
    for r in runs:
        seeds[r.seed].append(r.speedup)
    means = [geometric_mean(s) for s in seeds.values()]
    reached = []
    for r in runs:
        target = _NEAR * r.baseline_us / known[r.case]
        reached += [n for n, speed in enumerate(best_so_far(r), start=1) if speed >= target][:1]
    return Line(
        method=method,
        cases=len({r.case for r in runs}),
        runs=len(runs),
        mean=geometric_mean([r.speedup for r in runs]),
        low=min(means),
        high=max(means),
        fast=tuple(sum(r.speedup > p for r in runs) / len(runs) for p in THRESHOLDS),
        to_best=statistics.median(reached) if reached else None,
        reached=len(reached) / len(runs),
        overhead_s=statistics.median(r.proposer_s / len(r.trace) for r in runs),
    )


def lines(runs: Sequence[RunRecord], methods: Sequence[str], known: dict[CaseName, float]) -> list[Line]:
    """One line for each method that has runs."""
    found = [(m, [r for r in runs if r.method == m]) for m in methods]
    return [line(m, of, known) for m, of in found if of]


def against(runs: Sequence[RunRecord], first: str, other: str) -> Against | None:
    """``first`` against ``other``; None where no case has both."""
    logs: dict[CaseName, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for r in runs:
        logs[r.case][r.method].append(math.log(r.speedup))
    of: dict[str, list[float]] = defaultdict(list)
    for (operator, _), by in sorted(logs.items()):
        if first in by and other in by:
            of[operator].append(statistics.fmean(by[first]) - statistics.fmean(by[other]))
    every = [x for sizes in of.values() for x in sizes]
    if not every:
        return None
    rng = random.Random(0)
    groups = list(of.values())
    drawn = sorted(
        statistics.fmean(x for sizes in rng.choices(groups, k=len(groups)) for x in sizes) for _ in range(_DRAWS)
    )
    near = math.log(1 + _LEVEL)
    return Against(
        other=other,
        cases=len(every),
        ratio=math.exp(statistics.fmean(every)),
        low=math.exp(drawn[int(0.025 * _DRAWS)]),
        high=math.exp(drawn[int(0.975 * _DRAWS)]),
        ahead=sum(x > near for x in every),
        level=sum(-near <= x <= near for x in every),
        behind=sum(x < -near for x in every),
    )


def curves(runs: Sequence[RunRecord], methods: Sequence[str]) -> dict[str, list[float]]:
    """Method -> geometric mean of the speedup after 1, 2, ... evaluations."""
    out = {}
    for m in methods:
        of = [best_so_far(r) for r in runs if r.method == m]
        if of:
            out[m] = [geometric_mean(column) for column in zip(*of, strict=True)]
    return out


def outcomes(runs: Sequence[RunRecord], methods: Sequence[str]) -> dict[str, Counter[str]]:
    """Method -> evaluations by kind of outcome."""
    out = {m: Counter[str]() for m in methods}
    for r in runs:
        if r.method in out:
            out[r.method].update(r.outcomes)
    return {m: c for m, c in out.items() if c}


def kinds_of_change(runs: Sequence[RunRecord], method: str) -> dict[str, float]:
    """Kind of change (a rule's family, a motif) -> share of the method's runs whose best pair has it; most first."""
    of = [r for r in runs if r.method == method]
    found = Counter(kind for r in of for kind in {_kind(part) for c in r.changes for part in c.split("; ")} if kind)
    return {kind: n / len(of) for kind, n in sorted(found.items(), key=lambda item: (-item[1], item[0]))}


def _kind(change: str) -> str:
    """``cores: at most 10`` is of kind ``cores``; what has no name changes a quantity; a recombination is none."""
    if change.startswith("recombined"):
        return ""
    return change.partition(":")[0] if ":" in change else "quantity"


def left_behind(
    runs: Sequence[RunRecord], method: str, known: dict[CaseName, float]
) -> list[tuple[CaseName, float, float, str]]:
    """(case, mean speedup by ``method``, best known speedup, who found that), the largest distance first."""
    out = []
    for case in sorted({r.case for r in runs if r.method == method}):
        own = [r.speedup for r in runs if r.case == case and r.method == method]
        best = min((r for r in runs if r.case == case), key=lambda r: (r.best_us, r.method, r.seed))
        out.append((case, geometric_mean(own), best.baseline_us / known[case], best.method))
    return sorted(out, key=lambda row: row[1] / row[2])
