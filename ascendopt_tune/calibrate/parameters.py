"""What is fitted: the constants of a chip file as parameters, and which of them a microbenchmark depends on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ..nouns.chip import Chip, Constant

Vector: TypeAlias = npt.NDArray[np.float64]

#: Errors that all rows of the table of instructions share: they end up in the rows.
FOLDED = {"vector.head_offset_cycles": "is part of every row's head"}

#: Standard errors on either side of an interval that holds nine times of ten.
NINETY = 1.645

_INSENSITIVE = 1e-6  # change of a time's logarithm that is none
_BOUND = np.log(8.0)  # how far a constant may go from its nominal value
_MOVE = 0.4  # of parameters, to see whether a time depends on them


class ClockModel(Protocol):
    """Modelled times (us) of a microbenchmark under some clocks; an empty clock is the nominal one."""

    def times_us(self, name: str, clocks: Sequence[Mapping[str, float]]) -> list[float]: ...


@dataclass(frozen=True)
class Parameter:
    """How a constant is varied: ``value(0)`` is nominal; a step of 1 is a factor of e, or half of its interval."""

    key: str
    nominal: float
    scale: float  # of a constant that may be 0, else 0
    prior: float  # standard deviation of the parameter before anything is measured
    spread: float  # standard deviation that the chip file's interval (nine times of ten) stands for
    low: float
    high: float

    @staticmethod
    def of(key: str, constant: Constant) -> Parameter:
        """The parameter of a constant of the chip file."""
        if constant.value > 0 and constant.low > 0:
            width = np.log(constant.high / constant.low) / 2
            return Parameter(key, constant.value, 0.0, max(0.5, 3 * width), width / NINETY, -_BOUND, _BOUND)
        scale = max((constant.high - constant.low) / 2, 1e-9)
        low = -constant.value / scale if constant.low >= 0 else -8.0
        return Parameter(key, constant.value, scale, 2.0, 1 / NINETY, low, 8.0)

    def value(self, x: float) -> float:
        """The constant."""
        return self.nominal + self.scale * x if self.scale else self.nominal * float(np.exp(x))

    def relative(self, x: float) -> float:
        """What a small change of the parameter is of the constant's value, or of half its interval if that is more."""
        return self.scale / max(self.scale, abs(self.value(x))) if self.scale else 1.0


def parameters_of(chip: Chip) -> list[Parameter]:
    """The constants of a chip file that vector cores show, but those that are part of others."""
    return [Parameter.of(key, constant) for key, constant in chip.vector_constants.items() if key not in FOLDED]


def clock_of(parameters: Sequence[Parameter], x: Vector, chosen: Sequence[int]) -> dict[str, float]:
    """The constants at these positions, for parameters ``x``."""
    return {parameters[i].key: parameters[i].value(float(x[i])) for i in chosen}


def seen_by(
    model: ClockModel, name: str, parameters: Sequence[Parameter], x: Vector, known: Sequence[int] = ()
) -> list[int]:
    """Positions of the parameters that a microbenchmark's time depends on near ``x``; ``known`` are among them.

    Most don't matter, so they are moved together, and groups that move the time are halved.
    """
    here = clock_of(parameters, x, known)

    def moved(group: Sequence[int], by: float) -> dict[str, float]:
        there = np.clip(x + by, [p.low for p in parameters], [p.high for p in parameters])
        return here | clock_of(parameters, there, group)

    groups: list[list[int]] = [sorted({*range(len(parameters))} - {*known})]
    found: list[int] = [*known]
    while groups:
        times = np.log(model.times_us(name, [here, *(moved(g, by) for g in groups for by in (-_MOVE, _MOVE))]))
        moves = np.abs(times[1:] - times[0]).reshape(-1, 2).max(1)
        matter = [g for g, move in zip(groups, moves, strict=True) if move > _INSENSITIVE]
        found += [g[0] for g in matter if len(g) == 1]
        groups = [half for g in matter if len(g) > 1 for half in (g[: len(g) // 2], g[len(g) // 2 :])]
    return sorted(found)
