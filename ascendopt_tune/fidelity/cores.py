"""The same work on fewer and on more cores: what a modelled change of the number of cores is worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log
from statistics import mean

from .compare import ComparedRow
from .ranking import EQUAL, EQUAL_US, GAIN_SHARE
from .table import Family

Series = dict[int, tuple[float, float]]  # of one kernel, by cores: measured (mean of published values), modelled


@dataclass(frozen=True)
class CoreGains:
    """Pairs of launches of one kernel that do the same work on different numbers of cores.

    ``fewer``: whether the launch with fewer cores was measured faster. ``share``: the modelled gain's logarithm as a
    multiple of the measured one's, a straight line through all pairs: above 1 the model exaggerates. ``held``: how many
    of the ``pairs`` have a modelled gain within a third of the logarithm.
    """

    kernel: str
    fewer: bool
    pairs: int
    held: int
    share: float


def core_gains(rows: Sequence[ComparedRow], families: Sequence[Family]) -> list[CoreGains]:
    """A line a kernel and direction, and ``all`` for both at the end."""
    found: dict[bool, list[tuple[str, float, float]]] = {True: [], False: []}
    for name, series in _series(rows, families).items():
        for fewer, measured, modelled in _pairs(series):
            found[fewer].append((name, measured, modelled))
    lines = []
    for fewer, pairs in found.items():
        for kernel in dict.fromkeys(name for name, _, _ in pairs):
            lines.append(_line(kernel, fewer, [p for p in pairs if p[0] == kernel]))
    return lines + [_line("all", fewer, pairs) for fewer, pairs in found.items() if pairs]


def _line(kernel: str, fewer: bool, pairs: Sequence[tuple[str, float, float]]) -> CoreGains:
    held = sum(abs(modelled / measured - 1) <= GAIN_SHARE for _, measured, modelled in pairs)
    share = sum(m * d for _, m, d in pairs) / sum(m * m for _, m, _ in pairs)
    return CoreGains(kernel, fewer, len(pairs), held, share)


def _series(rows: Sequence[ComparedRow], families: Sequence[Family]) -> dict[str, Series]:
    """Kernels that were launched on several numbers of cores, by the family and what was compiled into it."""
    of = {s.name: (s, f) for f in families for s in f.scenarios}
    times: dict[tuple[object, ...], dict[int, list[ComparedRow]]] = {}
    for row in rows:
        if row.measured.metric == "task_duration_us" and row.modelled and not row.left_out and row.scenario in of:
            one, _ = of[row.scenario]
            work = (one.family, one.define, one.kernel, one.buffers, one.auto_sync, one.state)
            times.setdefault(work, {}).setdefault(one.blocks, []).append(row)
    found = {}
    for series in times.values():
        names = {r.scenario for same in series.values() for r in same}
        one, family = of[min(names)]
        if len(series) > 1 and _same_work(names, family):
            found[" ".join((one.family, *one.define))] = {
                cores: (mean(r.measured.value for r in same), same[0].modelled or 0) for cores, same in series.items()
            }
    return found


def _same_work(names: set[str], family: Family) -> bool:
    """Whether scenarios with tensors of the same sizes do the same: their family says so, or a published gain does."""
    return family.ranked or any({g.slow, g.fast} <= names for g in family.gains)


def _pairs(series: Series) -> Iterator[tuple[bool, float, float]]:
    """Pairs that differ as measured: whether fewer cores are faster, and the logarithms of both gains."""
    for few, many in combinations(sorted(series), 2):
        fast, slow = sorted((few, many), key=lambda cores: series[cores][0])
        if series[fast][0] < min(series[slow][0] * (1 - EQUAL), series[slow][0] - EQUAL_US):
            (measured_fast, modelled_fast), (measured_slow, modelled_slow) = series[fast], series[slow]
            yield fast == few, log(measured_slow / measured_fast), log(modelled_slow / modelled_fast)
