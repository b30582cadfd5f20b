"""Constants of the clock from measured times: robust least squares over replays, and what they don't determine.

A residual is the logarithm of modelled over measured time, in units of what the measurement may be off. Parameters are
logarithms of constants (a constant that may be 0 is taken as it is, in units of its interval), near the chip file's
values with a weak prior: it only decides where no benchmark does. Levenberg-Marquardt with Huber's weights. A constant
whose standard error stays above ``UNDETERMINED`` (of its value; of half its interval when it may be 0) keeps its
nominal value and interval, and the others are fitted once more with it held: anywhere in that interval, say theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..nouns.chip import Chip
from .measure import Measured
from .parameters import FOLDED, NINETY, ClockModel, Parameter, Vector, clock_of, parameters_of, seen_by

#: Relative standard error of a constant above which the benchmarks don't determine it.
UNDETERMINED = 0.15
#: Relative error of a measured time that more samples don't take away: what the model leaves out.
FLOOR = 0.002
_HUBER = 2.0  # residuals beyond this many standard errors count less
#: Floors of the errors, from coarse to fine: far from the solution everything is off, and nothing is an outlier yet.
_COARSE = (0.2, 0.02)
_STEP = 0.01  # of a parameter, for derivatives
_ROUNDS = 40


@dataclass(frozen=True)
class Determined:
    """A fitted constant: its value, relative standard error and 90 % interval."""

    value: float
    error: float
    low: float
    high: float


@dataclass(frozen=True)
class Residual:
    """One microbenchmark: what was measured (us), and what the fitted clock says."""

    name: str
    measured_us: float
    modelled_us: float

    @property
    def percent(self) -> float:
        return 100 * (self.modelled_us / self.measured_us - 1)


@dataclass(frozen=True)
class Fit:
    """``undetermined``: why, by constant. ``scatter``: of the residuals, in units of the measurements' own errors."""

    determined: Mapping[str, Determined]
    undetermined: Mapping[str, str]
    residuals: tuple[Residual, ...]
    scatter: float

    @property
    def clock(self) -> dict[str, float]:
        """The fitted constants' values."""
        return {key: d.value for key, d in self.determined.items()}


@dataclass
class _Problem:
    """Residuals and derivatives; benchmarks are asked only for constants that they see."""

    model: ClockModel
    measured: Sequence[Measured]
    parameters: Sequence[Parameter]
    seen: list[list[int]]  # by benchmark: positions of parameters

    def believe(self, floor: float) -> None:
        """Times are off by their own errors and by ``floor``."""
        self.target = np.log([m.us for m in self.measured])
        self.sigma = np.hypot([m.error for m in self.measured], floor)

    def look_again(self, x: Vector) -> bool:
        """Whether a benchmark sees constants here that it didn't see before; from now on they count."""
        before, rows = self.seen, zip(self.measured, self.seen, strict=True)
        self.seen = [seen_by(self.model, m.name, self.parameters, x, known) for m, known in rows]
        return self.seen != before

    def residuals(self, x: Vector) -> Vector:
        rows = zip(self.measured, self.seen, strict=True)
        times = [self.model.times_us(m.name, [clock_of(self.parameters, x, seen)])[0] for m, seen in rows]
        return (np.log(times) - self.target) / self.sigma

    def derivatives(self, x: Vector) -> tuple[Vector, Vector]:
        """Residuals, and how they change with each parameter."""
        jacobian = np.zeros((len(self.measured), len(self.parameters)))
        times = np.zeros(len(self.measured))
        for row, (m, columns) in enumerate(zip(self.measured, self.seen, strict=True)):
            steps = [_STEP if x[i] + _STEP <= self.parameters[i].high else -_STEP for i in columns]
            clocks = [clock_of(self.parameters, x, columns)]
            for i, step in zip(columns, steps, strict=True):
                p = self.parameters[i]
                clocks.append(clocks[0] | {p.key: p.value(float(x[i]) + step)})
            found = np.log(self.model.times_us(m.name, clocks))
            times[row] = found[0]
            jacobian[row, columns] = (found[1:] - found[0]) / steps / self.sigma[row]
        return (times - self.target) / self.sigma, jacobian


def fit(
    model: ClockModel, measured: Sequence[Measured], chip: Chip, seen: Mapping[str, Sequence[int]] | None = None
) -> Fit:
    """The constants of ``chip`` that explain the measured times best.

    Args:
        model: of the same microbenchmarks, with ``chip`` as its nominal clock.
        seen: what :func:`parameters.seen_by` says to them with the nominal clock, if that is known already.
    """
    parameters = parameters_of(chip)
    x = np.zeros(len(parameters))
    known = seen or {}
    first = [list(known.get(m.name) or seen_by(model, m.name, parameters, x)) for m in measured]
    problem = _Problem(model, measured, parameters, first)
    everything = np.ones(len(parameters), np.bool_)
    for floor in (*_COARSE, FLOOR):
        problem.believe(floor)
        x, _, _ = _minimize(problem, x, everything)
        if floor < max(_COARSE) and problem.look_again(x):
            x, _, _ = _minimize(problem, x, everything)
    free = np.array([any(i in seen for seen in problem.seen) for i in range(len(parameters))])
    why = dict(FOLDED) | {p.key: "no microbenchmark sees it" for p, f in zip(parameters, free, strict=True) if not f}
    why = {key: text for key, text in why.items() if key in chip.constants}
    while True:
        x, jacobian, weights = _minimize(problem, x, free)
        residuals = problem.residuals(x)
        covariance = _covariance(jacobian, weights, free, problem.parameters)
        scatter = max(1.0, float(1.4826 * np.median(np.abs(residuals))))
        errors = np.sqrt(np.diag(covariance)) * scatter
        relative = errors * [p.relative(float(v)) for p, v in zip(parameters, x, strict=True)]
        worst = _least_determined(jacobian, weights, free, parameters, x, scatter)
        if not worst:
            break
        for i in worst:
            why[parameters[i].key] = _reason(i, covariance, parameters, float(relative[i]))
            free[i], x[i] = False, 0.0
    errors = np.hypot(errors, _errors_of_held(jacobian, weights, free, parameters))
    return Fit(_determined(parameters, free, x, errors), why, _listed(problem, residuals), scatter)


def _minimize(problem: _Problem, start: Vector, free: npt.NDArray[np.bool_]) -> tuple[Vector, Vector, Vector]:
    """Levenberg-Marquardt within bounds: the parameters, derivatives and weights there."""
    prior = np.array([p.prior for p in problem.parameters])
    low = np.array([p.low for p in problem.parameters])
    high = np.array([p.high for p in problem.parameters])

    def cost(x: Vector, r: Vector) -> float:
        a = np.abs(r)
        huber = np.where(a <= _HUBER, a**2, 2 * _HUBER * a - _HUBER**2)
        return float(huber.sum() + ((x / prior)[free] ** 2).sum())

    x, damping = start.copy(), 1e-3
    r, jacobian = problem.derivatives(x)
    for _ in range(_ROUNDS):
        weights = _HUBER / np.maximum(np.abs(r), _HUBER)
        gradient = jacobian.T @ (weights * r) + x / prior**2
        hessian = jacobian.T @ (weights[:, None] * jacobian) + np.diag(prior**-2)
        moving = free & ~((x <= low) & (gradient > 0)) & ~((x >= high) & (gradient < 0))
        before, at = cost(x, r), np.flatnonzero(moving)
        step = np.zeros_like(x)
        while damping < 1e8:
            part = hessian[np.ix_(at, at)]
            step[at] = -np.linalg.solve(part + damping * np.diag(np.diag(part)), gradient[at])
            there = np.clip(x + np.clip(step, -1, 1), low, high)
            if cost(there, problem.residuals(there)) < before:
                break
            damping *= 5
        else:
            break
        x, damping = there, max(damping / 10, 1e-9)
        r, jacobian = problem.derivatives(x)
        if before - cost(x, r) < 1e-4 * (1 + before):
            break
    return x, jacobian, _HUBER / np.maximum(np.abs(r), _HUBER)


def _covariance(
    jacobian: Vector, weights: Vector, free: npt.NDArray[np.bool_], parameters: Sequence[Parameter]
) -> Vector:
    """Of the free parameters, 0 elsewhere; the measurements' own errors are taken at their word."""
    at = np.flatnonzero(free)
    prior = np.array([p.prior for p in parameters])
    hessian = jacobian.T @ (weights[:, None] * jacobian) + np.diag(prior**-2)
    out = np.zeros_like(hessian)
    out[np.ix_(at, at)] = np.linalg.inv(hessian[np.ix_(at, at)])
    return out


def _errors_of_held(
    jacobian: Vector, weights: Vector, free: npt.NDArray[np.bool_], parameters: Sequence[Parameter]
) -> Vector:
    """What the free parameters are off because those that are held may lie anywhere in their intervals."""
    at, held = np.flatnonzero(free), np.flatnonzero(~free)
    prior = np.array([p.prior for p in parameters])
    hessian = jacobian.T @ (weights[:, None] * jacobian) + np.diag(prior**-2)
    moved = np.linalg.solve(hessian[np.ix_(at, at)], hessian[np.ix_(at, held)])  # by a step of 1 of each held one
    out = np.zeros(len(parameters))
    out[at] = np.linalg.norm(
        moved * np.array([p.spread for p, used in zip(parameters, free, strict=True) if not used]), axis=1
    )
    return out


def _least_determined(
    jacobian: Vector,
    weights: Vector,
    free: npt.NDArray[np.bool_],
    parameters: Sequence[Parameter],
    x: Vector,
    scatter: float,
) -> list[int]:
    """Parameters to hold, so that the others are determined: one after another, the worst first."""
    left, out = free.copy(), []
    while left.any():
        errors = np.sqrt(np.diag(_covariance(jacobian, weights, left, parameters))) * scatter
        relative = errors * [p.relative(float(v)) for p, v in zip(parameters, x, strict=True)]
        relative = np.where(left, relative, 0)
        worst = int(np.argmax(relative))
        if relative[worst] <= UNDETERMINED:
            break
        out.append(worst)
        left[worst] = False
    return out


def _reason(i: int, covariance: Vector, parameters: Sequence[Parameter], relative: float) -> str:
    deviations = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    correlation = np.abs(covariance[i] / deviations / deviations[i])
    correlation[i] = 0
    other = int(np.argmax(correlation))
    error = f"standard error {100 * relative:.0f} %" if np.isfinite(relative) and relative < 10 else "hardly seen"
    if correlation[other] > 0.9:
        return f"{error}; seen together with {parameters[other].key} only"
    return error


def _determined(
    parameters: Sequence[Parameter], free: npt.NDArray[np.bool_], x: Vector, errors: Vector
) -> dict[str, Determined]:
    out = {}
    for p, used, at, error in zip(parameters, free, map(float, x), map(float, errors), strict=True):
        if not used:
            continue
        low, high = (p.value(max(p.low, at - NINETY * error)), p.value(at + NINETY * error))
        out[p.key] = Determined(p.value(at), error * p.relative(at), low, high)
    return out


def _listed(problem: _Problem, residuals: Vector) -> tuple[Residual, ...]:
    modelled = np.exp(residuals * problem.sigma + problem.target)
    return tuple(Residual(m.name, m.us, float(t)) for m, t in zip(problem.measured, modelled, strict=True))
