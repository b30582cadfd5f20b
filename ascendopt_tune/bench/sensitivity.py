"""Which constant of the clock moves the benchmark most: each halved and doubled, one at a time, or some set by hand.

The traces of the baseline and of the best pair that a method kept are timed again under the other clock; nothing runs
anew and nothing is searched anew, so this is how far the speedups of *these* pairs rest on a constant, not what a
search under the other clock would have found. The same for another state: what is left of them where something else
ran before each launch. A constant that is 0 is set to the ends of its interval.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..errors import AscendOptError, SettingsError, did_you_mean
from ..files import write_between
from ..nouns.chip import WARM, Chip
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
    """Constants with other values, by their keys in the chip file (``launch.base_us``)."""

    clock: Mapping[str, float]

    @property
    def names(self) -> str:
        return ", ".join(self.clock)


class Replayed(Protocol):
    """What is asked of a subject: the modelled times of a pair, in us, under clocks that differ from the chip's."""

    def times(self, pair: Pair, clocks: Sequence[Mapping[str, float]], state: str = WARM) -> list[float]: ...


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
        ClockChange({key: value})
        for key, constant in sorted(chip.constants.items())
        if not key.startswith("instructions.")
        for value in ([f * constant.value for f in _FACTORS] if constant.value else [constant.low, constant.high])
        if value != constant.value
    ]


def given(chip: Chip, texts: Sequence[str]) -> list[ClockChange]:
    """The one change that sets all of these (``launch.tiling_us=0``); none where there are no texts.

    Raises:
        SettingsError: a text is no ``KEY=VALUE``, or the chip has no such constant.
    """
    clock: dict[str, float] = {}
    for text in texts:
        key, _, value = text.partition("=")
        if key not in chip.constants:
            near = did_you_mean(key, chip.constants)
            raise SettingsError(f"--set {text}: {chip.name} has no constant {key!r}.{near}", "Its chip file has them.")
        try:
            clock[key] = float(value)
        except ValueError as error:
            raise SettingsError(f"--set {text}: {value!r} is no number.", f"As --set {key}=0.") from error
        if not 0 <= clock[key] < math.inf:
            raise SettingsError(f"--set {text}: a constant is 0 or more, and finite.")
    return [ClockChange(clock)] if clock else []


def speedups(
    subject: Replayed, baseline: Pair, best: Pair, of: Sequence[ClockChange], state: str = WARM
) -> list[float]:
    """Of the best pair over the baseline: under the chip's own clock, then under each of these changes.

    Args:
        state: what the launches find, one of STATES of nouns/chip.py.

    Raises:
        DeviceError: a pair can't be launched, or a constant is unknown.
    """
    clocks = [{}, *(change.clock for change in of)]
    if best.hash == baseline.hash:
        return [1.0] * len(clocks)
    times = (subject.times(pair, clocks, state) for pair in (baseline, best))
    return [a / b for a, b in zip(*times, strict=True)]


def measure(
    entries: Sequence[BenchOperator],
    best: Mapping[CaseName, RunRecord],
    results: Path,
    chip: str,
    of: Sequence[ClockChange],
    tell: Callable[[CaseName, str], None],
    state: str = WARM,
) -> dict[CaseName, list[float]]:
    """``speedups`` of every case that has a run; what is known already isn't timed again.

    Args:
        best: of each case the run whose pair is taken.
        results: the folder that these runs were kept in.
        of: the clocks besides the chip's own.
        tell: told of each case as it ends, with what there is to say.
        state: what the launches find, one of STATES of nouns/chip.py; the pairs were found ``warm``.
    """
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
                found[case] = speedups(subject, subject.operator.baseline, pair, of, state)
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

    nominal = effect(ClockChange({}), 0)
    moved = [effect(change, place) for place, change in enumerate(of, start=1)]
    return nominal, sorted(moved, key=lambda e: (-abs(math.log(e.means["all"] / nominal.means["all"])), e.change.names))


def best_runs(runs: Sequence[RunRecord], method: str) -> dict[CaseName, RunRecord]:
    """Case -> the run of ``method`` that found the fastest pair."""
    out: dict[CaseName, RunRecord] = {}
    for r in runs:
        if r.method == method and (r.case not in out or r.best_us < out[r.case].best_us):
            out[r.case] = r
    return out


def rows(
    chip: Chip,
    nominal: Effect,
    moved: Sequence[Effect],
    by_hand: Sequence[ClockChange],
    cases: int,
    state: str = WARM,
) -> Iterator[str]:
    """The result as Markdown, what was set by hand first."""
    sizes = list(nominal.means)
    found = "" if state == WARM else f", launches that find the state `{state}` (the pairs were found in `{WARM}`)"
    yield f"{cases} cases on {chip.name}; modelled{found}. Each constant halved and doubled (one that is 0: the ends of"
    yield f"its interval), one at a time; the {_SHOWN} changes that move the geometric mean most.\n"
    yield f"| constant | from | to | source | {' | '.join(f'mean, {size}' for size in sizes)} | fast_1 |"
    yield f"|---|---|---|---|{'---|' * (len(sizes) + 1)}"
    yield f"| as it is | | | | {_figures(nominal, sizes)} |"
    others = [one for one in moved if one.change not in by_hand]
    for one in [*(one for one in moved if one.change in by_hand), *others[:_SHOWN]]:
        own = [chip.constants[key] for key in one.change.clock]
        values = f"{_numbers(c.value for c in own)} | {_numbers(one.change.clock.values())}"
        source = ", ".join(dict.fromkeys(c.source.partition(":")[0] for c in own))
        yield f"| {one.change.names} | {values} | {source} | {_figures(one, sizes)} |"


def _numbers(values: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _figures(effect: Effect, sizes: Sequence[str]) -> str:
    return f"{' | '.join(f'{effect.means[size]:.3f}' for size in sizes)} | {100 * effect.fast:.1f} %"


def write(page: Path, lines: Sequence[str]) -> None:
    """Puts the lines between the marks of ``page``. Raises CacheError when it has none, or can't be written."""
    write_between(page, BEGIN, END, "the sensitivity", "\n".join(lines).rstrip())
