"""Which constant of the clock moves the benchmark most: each halved and doubled, one at a time.

The traces of the baseline and of the best pair that a method kept are timed again under the other clock; nothing runs
anew and nothing is searched anew, so this is how far the speedups of *these* pairs rest on a constant, not what a
search under the other clock would have found. A constant that is 0 is set to the ends of its interval.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..errors import AscendOptError
from ..files import write_between
from ..nouns.chip import Chip, load_chip
from ..nouns.operator import Pair
from .record import RunRecord
from .sizes import SIZES
from .subject import Subject
from .summary import CaseName, geometric_mean
from .table import BenchOperator

BEGIN, END = "<!-- sensitivity: written by `ascendopt-tune bench sensitivity --docs` -->", "<!-- end of sensitivity -->"
_FACTORS = (0.5, 2.0)
_SHOWN = 15  # constants in the table; the others move the mean by less
_HELD = 0.001  # share of the time that a win has to save, as in run.py


@dataclass(frozen=True)
class ClockChange:
    """One constant with another value. ``key`` as in the chip file (``launch.base_us``)."""

    key: str
    value: float

    @property
    def clock(self) -> dict[str, float]:
        return {self.key: self.value}


class Replayed(Protocol):
    """What is asked of a subject: the modelled times of a pair, in us, under clocks that differ from the chip's."""

    def times(self, pair: Pair, clocks: Sequence[Mapping[str, float]]) -> list[float]: ...


@dataclass(frozen=True)
class Effect:
    """What the benchmark shows when one constant has another value.

    ``means``: size (and ``all``) -> geometric mean of the speedups; ``fast``: share of cases faster than as written.
    """

    change: ClockChange
    means: dict[str, float]
    fast: float


def changes(chip: Chip) -> list[ClockChange]:
    """Every constant of the chip that has an interval, halved and doubled.

    Of the single instructions' there are too many for one at a time: what they have in common (``vector``) stands for
    them.
    """
    return [
        ClockChange(key, value)
        for key, constant in sorted(chip.constants.items())
        if not key.startswith("instructions.")
        for value in ([f * constant.value for f in _FACTORS] if constant.value else [constant.low, constant.high])
        if value != constant.value
    ]


def speedups(subject: Replayed, baseline: Pair, best: Pair, of: Sequence[ClockChange]) -> list[float]:
    """Of the best pair over the baseline: under the chip's own clock, then under each of these changes.

    Raises:
        DeviceError: a pair can't be launched, or a constant is unknown.
    """
    clocks = [{}, *(change.clock for change in of)]
    if best.hash == baseline.hash:
        return [1.0] * len(clocks)
    return [a / b for a, b in zip(subject.times(baseline, clocks), subject.times(best, clocks), strict=True)]


def measure(
    entries: Sequence[BenchOperator],
    best: Mapping[CaseName, RunRecord],
    results: Path,
    chip: str,
    tell: Callable[[CaseName, str], None],
) -> dict[CaseName, list[float]]:
    """``speedups`` of every case that has a run; what is known already isn't timed again.

    Args:
        best: of each case the run whose pair is taken.
        results: the folder that these runs were kept in.
        tell: told of each case as it ends, with what there is to say.
    """
    of = changes(load_chip(chip))
    found: dict[CaseName, list[float]] = {}
    for entry in entries:
        case = entry.path, entry.size
        if case not in best:
            continue
        try:
            with Subject(entry, results, chip) as subject:
                pair = subject.kept(best[case].best_pair)
                if pair is None:
                    tell(case, "its best pair was found by another version of the virtual NPU")
                    continue
                found[case] = speedups(subject, subject.operator.baseline, pair, of)
                tell(case, f"{found[case][0]:.3f}x modelled")
        except AscendOptError as error:  # the other cases may do better
            tell(case, str(error))
    return found


def effects(of: Sequence[ClockChange], found: Mapping[CaseName, Sequence[float]]) -> tuple[Effect, list[Effect]]:
    """The benchmark under the chip's own clock, and under each change, the one that moves its mean most first.

    Args:
        found: case -> what ``speedups`` gave; there is one at least.
    """

    def effect(change: ClockChange, place: int) -> Effect:
        by_size = {size: [s[place] for (_, at), s in found.items() if size in (at, "all")] for size in (*SIZES, "all")}
        means = {size: geometric_mean(values) for size, values in by_size.items() if values}
        fast = statistics.fmean(1 / s[place] < 1.0 - _HELD for s in found.values())
        return Effect(change, means, fast)

    nominal = effect(ClockChange("", 0.0), 0)
    moved = [effect(change, place) for place, change in enumerate(of, start=1)]
    return nominal, sorted(moved, key=lambda e: (-abs(math.log(e.means["all"] / nominal.means["all"])), e.change.key))


def best_runs(runs: Sequence[RunRecord], method: str) -> dict[CaseName, RunRecord]:
    """Case -> the run of ``method`` that found the fastest pair."""
    out: dict[CaseName, RunRecord] = {}
    for r in runs:
        if r.method == method and (r.case not in out or r.best_us < out[r.case].best_us):
            out[r.case] = r
    return out


def rows(chip: Chip, nominal: Effect, moved: Sequence[Effect], cases: int) -> Iterator[str]:
    """The result as Markdown."""
    sizes = list(nominal.means)
    yield f"{cases} cases on {chip.name}; modelled. Each constant halved and doubled (one that is 0: the ends of its"
    yield f"interval), one at a time; the {_SHOWN} changes that move the geometric mean most.\n"
    yield f"| constant | from | to | source | {' | '.join(f'mean, {size}' for size in sizes)} | fast_1 |"
    yield f"|---|---|---|---|{'---|' * (len(sizes) + 1)}"
    yield f"| as it is | | | | {_figures(nominal, sizes)} |"
    for one in moved[:_SHOWN]:
        constant = chip.constants[one.change.key]
        about = f"{one.change.key} | {constant.value:g} | {one.change.value:g} | {constant.source.partition(':')[0]}"
        yield f"| {about} | {_figures(one, sizes)} |"


def _figures(effect: Effect, sizes: Sequence[str]) -> str:
    return f"{' | '.join(f'{effect.means[size]:.3f}' for size in sizes)} | {100 * effect.fast:.1f} %"


def write(page: Path, lines: Sequence[str]) -> None:
    """Puts the lines between the marks of ``page``. Raises CacheError when it has none, or can't be written."""
    write_between(page, BEGIN, END, "the sensitivity", "\n".join(lines).rstrip())
