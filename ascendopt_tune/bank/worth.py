"""What each motif earned where it was tried on its own, and what that lets one expect of it elsewhere.

A bank's folder may have a file ``worth.csv`` beside its experience: one row a motif, operator and size, written by
``ascendopt-tune bank survey --measure --worth FILE``. Figures only, no code. The shipped one is of the benchmark's
development list, on which defaults may be chosen (docs/bank.md).
"""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from ..errors import BankError
from ..search.acceptance import MIN_EFFECT

FILE = "worth.csv"
_NOTHING = 1.0  # operators on which a motif has earned nothing, added to each motif's
_ALIKE = 3.0  # operators of its mean over all bottlenecks, added to what a motif earned with one
_HALF = 0.03  # logarithm of the speedup that is worth half of what any could be

_ByOperator = dict[str, list[float]]  # logarithms, one a size


@dataclass(frozen=True)
class MotifGain:
    """What a motif alone made of an operator: ``speedup``, modelled; None where the gate let nothing through.

    ``bottleneck``: what the diagnosis of the operator as it was names first.
    """

    motif: str
    operator: str
    size: str
    bottleneck: str
    speedup: float | None

    @property
    def faster(self) -> bool:
        """By more than the smallest effect that counts as one."""
        return self.speedup is not None and self.speedup * (1 - MIN_EFFECT["virtual"]) > 1


def first_bottleneck(text: str) -> str:
    """What a diagnosis, or an experience's bottleneck, names first: up to its colon."""
    return text.partition(":")[0]


def read(path: Path) -> tuple[MotifGain, ...]:
    """The rows of a file; none if there is no file.

    Raises:
        BankError: the file can't be read, or is none.
    """
    if not path.exists():
        return ()
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return tuple(
                MotifGain(motif, operator, size, bottleneck, float(speedup) if speedup else None)
                for motif, operator, size, bottleneck, speedup in map(_row, csv.DictReader(file))
            )
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise BankError(
            f"{path} is no table of what motifs earned ({error}).",
            "`ascendopt-tune bank survey --measure --worth FILE` writes one.",
        ) from error


def _row(row: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(row[f.name] for f in fields(MotifGain))


def write(path: Path, gains: Iterable[MotifGain]) -> None:
    """The rows, sorted. Raises BankError when the file can't be written."""
    rows = sorted((*astuple(g)[:4], "" if g.speedup is None else f"{g.speedup:.4f}") for g in gains)
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([f.name for f in fields(MotifGain)])
            writer.writerows(rows)
    except OSError as error:
        raise BankError(f"can't write {path}: {error.strerror}.", "Name a writable file by --worth.") from error


class Worth:
    """What to expect of motifs: means of the logarithms of ``gains``, drawn towards nothing where little is known."""

    def __init__(self, gains: Sequence[MotifGain] = ()) -> None:
        self._all: dict[str, _ByOperator] = {}
        self._with: dict[tuple[str, str], _ByOperator] = {}
        for g in gains:
            earned = math.log(g.speedup) if g.speedup is not None and g.speedup > 1 else 0.0
            self._all.setdefault(g.motif, {}).setdefault(g.operator, []).append(earned)
            self._with.setdefault((g.motif, g.bottleneck), {}).setdefault(g.operator, []).append(earned)

    def expected(self, motif: str, bottleneck: str) -> float:
        """Logarithm of the speedup; 0 for a motif that was tried nowhere."""
        mean = _mean(self._all.get(motif, {}), _NOTHING, 0.0)
        return _mean(self._with.get((motif, bottleneck), {}), _ALIKE, mean)

    def weight(self, motif: str, bottleneck: str) -> float:
        """The same between 0 and 1: what is more than a few percent hardly differs."""
        expected = self.expected(motif, bottleneck)
        return expected / (expected + _HALF)


def _mean(earned: _ByOperator, others: float, theirs: float) -> float:
    """Of the operators, each with the mean of its sizes, and ``others`` with ``theirs``."""
    return (sum(map(statistics.fmean, earned.values())) + others * theirs) / (len(earned) + others)
