"""What the runs come to: the paper's figures, by level and in all.

An operator counts where every method that applies to it has every seed. Its speedup by a method is the geometric mean
over seeds; ``fast_p`` is the share of (operator, seed) whose speedup is greater than p, strictly, as in the paper's
eq. 6 (there one run an operator). Methods that need a parametric space are compared on the operators that have one, and
the others beside them on the same operators.
"""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from .run import RunRecord

THRESHOLDS = (1.0, 1.2, 1.4, 2.0)
_NEAR = 0.95  # of the best known
_LEVEL = 0.005  # share of the speedup within which two methods are level
_DRAWS = 4000


@dataclass(frozen=True)
class Line:
    """One method on a set of operators. ``low`` and ``high``: geometric means of the worst and of the best seed.

    ``to_best``: median evaluations until 95 % of the best known speed, of the runs that get there (share ``reached``).
    ``overhead_s``: median seconds of the wall clock that the method takes for an evaluation, besides it.
    """

    method: str
    operators: int
    runs: int
    mean: float
    low: float
    high: float
    fast: tuple[float, ...]
    to_best: float | None
    reached: float
    overhead_s: float


@dataclass(frozen=True)
class Against:
    """One method against another one on the operators that have both.

    ``ratio``: geometric mean of the first's speedup over the other's; ``low`` and ``high``: its 95 % interval, by
    drawing operators anew. ``ahead``, ``level``, ``behind``: operators, by their mean over seeds; level: within 0.5 %.
    """

    other: str
    operators: int
    ratio: float
    low: float
    high: float
    ahead: int
    level: int
    behind: int


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


def complete(runs: Sequence[RunRecord], methods: Sequence[str], seeds: int) -> list[RunRecord]:
    """The runs of operators that have every seed of all these methods."""
    have: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for r in runs:
        have[r.operator].add((r.method, r.seed))
    wanted = {(m, s) for m in methods for s in range(seeds)}
    return [r for r in runs if r.method in methods and r.seed < seeds and wanted <= have[r.operator]]


def best_known(runs: Sequence[RunRecord]) -> dict[str, float]:
    """Operator -> the least confirmed time, in us, of all runs."""
    out: dict[str, float] = {}
    for r in runs:
        out[r.operator] = min(r.best_us, out.get(r.operator, r.best_us))
    return out


def best_so_far(run: RunRecord) -> list[float]:
    """The speedup after each evaluation of the budget; never above what was confirmed in the end."""
    out, best = [], run.baseline_us
    for time_us in run.trace:
        if time_us is not None:
            best = min(best, max(time_us, run.best_us))
        out.append(run.baseline_us / best)
    return out + [out[-1]] * (run.budget - len(out))


def line(method: str, runs: Sequence[RunRecord], known: dict[str, float]) -> Line:
    """The figures of a method's runs; there is one at least."""
    seeds: dict[int, list[float]] = defaultdict(list)
    for r in runs:
        seeds[r.seed].append(r.speedup)
    means = [geometric_mean(s) for s in seeds.values()]
    reached = []
    for r in runs:
        target = _NEAR * r.baseline_us / known[r.operator]
        reached += [n for n, speed in enumerate(best_so_far(r), start=1) if speed >= target][:1]
    return Line(
        method=method,
        operators=len({r.operator for r in runs}),
        runs=len(runs),
        mean=geometric_mean([r.speedup for r in runs]),
        low=min(means),
        high=max(means),
        fast=tuple(sum(r.speedup > p for r in runs) / len(runs) for p in THRESHOLDS),
        to_best=statistics.median(reached) if reached else None,
        reached=len(reached) / len(runs),
        overhead_s=statistics.median(r.proposer_s / len(r.trace) for r in runs),
    )


def lines(runs: Sequence[RunRecord], methods: Sequence[str], known: dict[str, float]) -> list[Line]:
    """One line for each method that has runs."""
    found = [(m, [r for r in runs if r.method == m]) for m in methods]
    return [line(m, of, known) for m, of in found if of]


def against(runs: Sequence[RunRecord], first: str, other: str) -> Against | None:
    """``first`` against ``other``; None where no operator has both."""
    logs: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for r in runs:
        logs[r.operator][r.method].append(math.log(r.speedup))
    of = [
        statistics.fmean(by[first]) - statistics.fmean(by[other])
        for _, by in sorted(logs.items())
        if first in by and other in by
    ]
    if not of:
        return None
    rng = random.Random(0)
    drawn = sorted(statistics.fmean(rng.choices(of, k=len(of))) for _ in range(_DRAWS))
    near = math.log(1 + _LEVEL)
    return Against(
        other=other,
        operators=len(of),
        ratio=math.exp(statistics.fmean(of)),
        low=math.exp(drawn[int(0.025 * _DRAWS)]),
        high=math.exp(drawn[int(0.975 * _DRAWS)]),
        ahead=sum(x > near for x in of),
        level=sum(-near <= x <= near for x in of),
        behind=sum(x < -near for x in of),
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


def left_behind(runs: Sequence[RunRecord], method: str, known: dict[str, float]) -> list[tuple[str, float, float, str]]:
    """(operator, mean speedup by ``method``, best known speedup, who found that), the largest distance first."""
    out = []
    for operator in sorted({r.operator for r in runs if r.method == method}):
        own = [r.speedup for r in runs if r.operator == operator and r.method == method]
        best = min((r for r in runs if r.operator == operator), key=lambda r: (r.best_us, r.method, r.seed))
        out.append((operator, geometric_mean(own), best.baseline_us / known[operator], best.method))
    return sorted(out, key=lambda row: row[1] / row[2])
