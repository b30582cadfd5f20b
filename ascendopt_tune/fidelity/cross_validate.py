"""What the fitted constants are worth where they were not fitted.

Every scenario is timed with each constant 5 % larger; in logarithms that is the slope of every row. With the slopes the
constants are fitted anew to all rows but those of one scenario, or of one family, and the rows that were left out are
predicted: to first order, which is what a constant moves by (docs/fidelity.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import numpy.typing as npt

from ..nouns.chip import Chip
from ..nouns.clocks import Clock
from .compare import ComparedRow, rows_of
from .measured import PublishedValue
from .runner import Modelled

Matrix = npt.NDArray[np.float64]

#: By how much a constant is moved, in its logarithm.
STEP = 0.05
#: How far a constant may go in a fit, in its logarithm: half as much again, or a third less. Weak on purpose.
_SPREAD = 0.4


def constants(chip: Chip) -> list[str]:
    """The constants that are fitted, by key: all with an interval but the rows of the instruction table."""
    return [key for key, c in chip.vector_constants.items() if c.value and not key.startswith("instructions.")]


def steps(chip: Chip) -> tuple[Clock, ...]:
    """The clocks a scenario has to be timed under: as it is, and with each of the constants larger by STEP."""
    larger = ({key: chip.constants[key].value * float(np.exp(STEP))} for key in constants(chip))
    return ({}, *larger)


@dataclass(frozen=True)
class HeldOut:
    """Rows of a family: median absolute errors in per cent.

    ``now``: with the chip files' constants; ``fitted``: with those fitted to all rows; ``scenario``, ``family``: with
    those fitted without the row's own scenario, and without any scenario of its family.
    """

    name: str
    rows: int
    now: float
    fitted: float
    scenario: float
    family: float


def cross_validate(
    modelled: Sequence[Modelled], measured: Iterable[PublishedValue], chip_of: Callable[[str], Chip]
) -> list[HeldOut]:
    """A line a family, and ``all`` at the end. ``modelled`` were run with the clocks of :func:`steps`."""
    by_name = {m.scenario.name: m for m in modelled}
    rows = [
        r
        for r in rows_of(modelled, measured)
        if r.verdict and r.modelled and by_name[r.scenario].under_other_clocks(r.measured.metric) is not None
    ]
    keys = sorted({key for m in modelled for key in constants(chip_of(m.chip))})
    errors, slopes, weights = _linear(rows, by_name, keys, chip_of)
    scenarios = np.array([r.scenario for r in rows])
    families = np.array([r.scenario.split("/")[0] for r in rows])
    everywhere = errors + slopes @ _fit(errors, slopes, weights)
    left_out = {}
    for what, of in (("scenario", scenarios), ("family", families)):
        predicted = np.empty_like(errors)
        for name in np.unique(of):
            mine = of == name
            predicted[mine] = errors[mine] + slopes[mine] @ _fit(errors[~mine], slopes[~mine], weights[~mine])
        left_out[what] = predicted
    lines = [(str(name), families == name) for name in np.unique(families)] + [("all", np.full(len(rows), True))]
    return [
        HeldOut(
            name,
            int(of.sum()),
            *(_percent(e[of]) for e in (errors, everywhere, left_out["scenario"], left_out["family"])),
        )
        for name, of in lines
    ]


def _linear(
    rows: Sequence[ComparedRow], by_name: dict[str, Modelled], keys: Sequence[str], chip_of: Callable[[str], Chip]
) -> tuple[Matrix, Matrix, Matrix]:
    """Of each row, in logarithms: the error, its slopes in the constants, and 1 / (limit of the error)."""
    errors, slopes, weights = np.zeros(len(rows)), np.zeros((len(rows), len(keys))), np.zeros(len(rows))
    place = {key: k for k, key in enumerate(keys)}
    for i, row in enumerate(rows):
        one = by_name[row.scenario]
        assert row.modelled is not None
        assert row.allowed is not None
        times = one.under_other_clocks(row.measured.metric)
        assert times is not None
        value = row.measured.nearest(row.modelled)
        errors[i] = np.log(row.modelled / value)
        weights[i] = 1 / np.log1p(row.allowed / value)
        for key, us in zip(constants(chip_of(one.chip)), times[1:], strict=True):
            slopes[i, place[key]] = np.log(us / times[0]) / STEP
    return errors, slopes, weights


def _fit(errors: Matrix, slopes: Matrix, weights: Matrix) -> Matrix:
    """How far the constants have to move, in their logarithms: least squares in which outliers count little."""
    moved: Matrix = np.zeros(slopes.shape[1])
    for _ in range(5):
        residual = (errors + slopes @ moved) * weights
        w = weights**2 / np.sqrt(1 + residual**2)
        normal = (slopes.T * w) @ slopes + np.eye(len(moved)) / _SPREAD**2
        moved = np.asarray(-np.linalg.solve(normal, (slopes.T * w) @ errors), np.float64)
    return moved


def _percent(errors: Matrix) -> float:
    return 100 * float(median(np.abs(np.expm1(errors))))
