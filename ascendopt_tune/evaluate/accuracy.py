"""How far outputs are from what is expected, in units in the last place, and how far a candidate's may be.

CANN accepts an operator when its error is within a factor of another implementation's, both against a result of higher
precision: the largest relative error within 10 times, the mean and the root-mean-square within 2. That is the *double
benchmark* (shuang biaogan) of its precision standard, level L0, which L1 tightens to 5, 1.5 and 1.5 (cannbot-skills,
ops/ops-precision-standard, "COMMERCIAL_OPS_PRECISION_DOCS", 1.2 and 4.1); MindStudio's accuracy checker calls the same
10, 2 and 2 errors (mstt, msprobe, api_accuracy_checker). Here the other implementation is the operator as it is
written, errors are in units in the last place instead of relative, and the floors below are this project's.

Three things keep right programs in. What an element's value depends on beyond the precision of float32 (a sum that
cancels) is no error: its ``leeway`` comes off first. A baseline that is exact must not forbid another order of
rounding: the limits have a floor. And where a handful of elements is all there is, a handful may differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..sources.arguments import Array, dtype_name

#: By how much a candidate's largest, mean and root-mean-square error may exceed the baseline's.
FACTORS = (10.0, 2.0, 2.0)
# What is allowed whatever the baseline does, in units in the last place: largest, mean. For 16 bits the mean stands
# for float32 arithmetic with one instruction in it that is documented to be off by 1e-4 (Reciprocal, Rsqrt), which
# rounds so many elements to a neighbour; rounding to 16 bits once too often is off by 0.25. For 32 bits: other orders
# of sums.
_FLOORS = {"float16": (2.0, 0.19), "bfloat16": (2.0, 2.0**-5), "float32": (512.0, 16.0), "float64": (2.0**14, 2.0**8)}
# Whole numbers, which count steps: a quantized value at a tie may be the neighbour, one in 64 of them.
_WHOLE = (1.0, 1 / 64)
# Parts of a unit in the last place that a result isn't determined by, and how much more than its leeway comes off then.
_MOVED, _BY_CHANCE = 1 / 32, 16.0
# Units that a result of 32 bits moves by when it cancels (others by about 8), and how often its leeway comes off then.
_CANCELS, _ANOTHER_WAY = 64.0, 4.0
_SAMPLE = 1 << 16  # elements that are looked at for a share
_LONG, _MOST_LINES = 64, 64  # different results of a line that is judged by itself; lines that are looked at closely
_FEW = 2.0  # elements may be off by the most that is allowed, however few there are
# Bits of the significand behind the point, and the exponent of the smallest subnormal.
_FORMATS = {"float16": (10, -24), "bfloat16": (7, -133), "float32": (23, -149), "float64": (52, -1074)}


@dataclass(frozen=True)
class Errors:
    """Largest, mean and root-mean-square error of an output, in units in the last place of what is expected.

    ``line``: by how much the mean error of a line goes beyond what rounding may come to, at most (:class:`LineErrors`).
    """

    largest: float = 0.0
    mean: float = 0.0
    rms: float = 0.0
    line: float = 0.0


@dataclass(frozen=True)
class Limit:
    """What an output's errors in one trial may be at most (``most``), and what that was made of, for several trials
    together: ``count`` elements, the ``baseline``'s errors, and ``doubt``, see :func:`limits`."""

    most: Errors
    count: int
    baseline: Errors
    doubt: float


def unit(expected: Array) -> Array | None:
    """The distance to the next number of the dtype, per element (float64); None for booleans and complex numbers."""
    if expected.dtype.kind in "iu":
        return np.ones(expected.shape)
    known = _FORMATS.get(dtype_name(expected.dtype))
    if known is None:
        return None
    bits, smallest = known
    with np.errstate(invalid="ignore", over="ignore"):
        _, exponent = np.frexp(np.abs(expected.astype(np.float64)))
    return np.asarray(np.ldexp(1.0, np.maximum(exponent - 1 - bits, smallest)))


def differences(got: Array, expected: Array, leeway: Array | None) -> Array | None:
    """Errors of single elements in units in the last place, beyond their leeway; None for dtypes that have none.

    Equal infinities and NaN are no error, others an infinite one. Around 0 a unit is that of numbers near 1, as a sum
    that cancels is off by; but a 0 that no small change of the inputs moves is 0 in any order of arithmetic, and what
    is more than a few of the smallest numbers away from it is further away than anything may be.
    """
    step = unit(expected)
    if step is None:
        return None
    wide_got, wide_expected = got.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(wide_got - wide_expected)
        if leeway is not None:
            error = np.maximum(error - free(expected, leeway, step), 0.0)
            firm = (wide_expected == 0) & (leeway == 0)
            step = np.where(firm, np.minimum(step, np.maximum(error / _beyond(expected), _least(expected))), step)
        error = error / step
    same = (wide_got == wide_expected) | (np.isnan(wide_got) & np.isnan(wide_expected))
    error = np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))
    return error if leeway is None else np.where(leeway == np.inf, 0.0, error)


def free(expected: Array, leeway: Array, step: Array | None = None) -> Array:
    """What comes off an error: the leeway, and more of it where results are sums that cancel.

    A float32 sum of a thousand terms, one after another, is off by several times what changes of its terms do, and two
    of those may both leave it where it was, by chance. Where they move a result by more than a part of a unit in the
    last place, more comes off: a 16th or less of what rounding the terms to 16 bits would do. A float32 result that is
    what little is left of two larger numbers (a normalized element and its bias) moves by many of its units, but no
    more than by one or two of theirs; each of them is off by so much in another arithmetic.

    Args:
        step: :func:`unit` of ``expected``, where it is known.
    """
    dtype = dtype_name(expected.dtype)
    if dtype not in ("float16", "bfloat16", "float32"):
        return leeway
    step = unit(expected) if step is None else step
    if dtype == "float32":
        return np.where(leeway > _CANCELS * np.asarray(step), _ANOTHER_WAY * leeway, leeway)
    return np.where(leeway > _MOVED * np.asarray(step), _BY_CHANCE * leeway, leeway)


def either_side(leeway: Array, exact: Array, rounded: Array) -> None:
    """Raises the leeway of 16-bit results that lie halfway between two numbers, but for what float32 arithmetic may
    lose, so that either of the two will do: a single one is rarely there, but of small inputs half of the results are.

    Args:
        exact: the results, before they are rounded.
    """
    step = np.where(rounded == 0, _least(rounded), np.asarray(unit(rounded)))
    with np.errstate(invalid="ignore"):
        near = np.abs(np.abs(exact - rounded.astype(np.float64)) - step / 2) <= leeway
    leeway[near] = np.maximum(leeway[near], step[near] / _BY_CHANCE)


def either(expected: Array, leeway: Array) -> Array:
    """Where :func:`either_side` has raised the leeway, or another rule as far, or nothing else will do."""
    return np.asarray(~(np.isfinite(leeway) & (leeway < np.asarray(unit(expected)) / _BY_CHANCE)))


def _beyond(expected: Array) -> float:
    """More units than anything may be off that isn't allowed by a baseline's own errors."""
    return _FLOORS[dtype_name(expected.dtype)][0] + 1.0 if expected.dtype.kind not in "iu" else 1.0


def _least(expected: Array) -> float:
    """The smallest number of a float's type; 1 of a whole one's."""
    known = _FORMATS.get(dtype_name(expected.dtype))
    return 1.0 if known is None else 2.0 ** known[1]


class Sum:
    """Adds up the errors of an output that is looked at in parts."""

    def __init__(self) -> None:
        self._largest = self._sum = self._squares = 0.0

    def add(self, errors: Array) -> None:
        if errors.size:
            self._largest = max(self._largest, float(errors.max()))
            self._sum += float(errors.sum())
            self._squares += float(np.square(errors).sum())

    def over(self, count: int, line: float = 0.0) -> Errors:
        """The errors of an output of ``count`` elements; those that were not added are right."""
        n = max(count, 1)
        return Errors(self._largest, self._sum / n, (self._squares / n) ** 0.5, line)


class AlikeOnce:
    """Mean errors of a 16-bit output in which results that are expected alike count as one, by their mean.

    Equal inputs give equal roundings: a line of a thousand of them is one rounding, which may go either way, and no
    thousand that all went the same way. So few different results say less: what so many roundings may come to by
    chance, three standard deviations, comes off.
    """

    def __init__(self) -> None:
        self._sums, self._squares, self._counts = np.zeros((3, 1 << 16))

    @staticmethod
    def matters(expected: Array, found: Errors) -> bool:
        """Whether the mean, or the root of the mean square, is beyond what is allowed whatever the baseline does."""
        dtype = dtype_name(expected.dtype)
        if dtype not in ("float16", "bfloat16") or not np.isfinite(found.largest):
            return False
        largest, mean = _FLOORS[dtype]
        return found.mean > mean or found.rms > (mean * largest) ** 0.5

    def add(self, expected: Array, errors: Array) -> None:
        """Of a part of the output, flat."""
        words = expected.view(np.uint16)
        self._counts += np.bincount(words, minlength=1 << 16)
        self._sums += np.bincount(words, errors, 1 << 16)
        self._squares += np.bincount(words, np.square(errors), 1 << 16)

    def over(self, found: Errors) -> Errors:
        """The errors with means of this kind, where they are less."""
        there = self._counts > 0
        number = max(1, int(np.count_nonzero(there)))
        if self._counts.sum() * 0.75 < max(_LONG, number):  # few of them are alike
            return found
        mean, square = (float(np.sum(a[there] / self._counts[there])) / number for a in (self._sums, self._squares))
        mean, square = (max(0.0, a - 3.0 * (a / number) ** 0.5) for a in (mean, square))
        return replace(found, mean=min(found.mean, mean), rms=min(found.rms, square**0.5))


class LineErrors:
    """Mean errors of single lines of a 16-bit output: all of a line share a sum or a maximum, and one that is off by
    less than the tolerance moves them all, which the mean over many lines hides.

    A line with at least ``_LONG`` different results is judged, by the mean over those: that many roundings come to the
    floor of the mean, give or take six standard deviations.
    """

    def __init__(self, expected: Array, leeway: Array | None) -> None:
        length = expected.shape[-1] if expected.ndim else 1
        self._floor = _FLOORS.get(dtype_name(expected.dtype), (0.0, 0.0))[1]
        self._judged = leeway is not None and length >= _LONG and dtype_name(expected.dtype) in ("float16", "bfloat16")
        if self._judged:
            self._expected, self._leeway = expected.reshape(-1, length), np.asarray(leeway).reshape(-1, length)
            self._sums = np.zeros(len(self._expected))

    def add(self, places: Array, errors: Array) -> None:
        """``places``: of the errors in the flat output."""
        if self._judged and places.size:
            known = np.where(np.isfinite(errors), errors, 0.0)
            self._sums += np.bincount(places // self._expected.shape[1], known, len(self._sums))

    def worst(self, got: Array) -> float:
        if not self._judged:
            return 0.0
        length = self._expected.shape[1]
        found, worst = got.reshape(-1, length), 0.0
        much = np.flatnonzero(self._sums > self._floor * _LONG)
        for row in much[np.argsort(-self._sums[much])][:_MOST_LINES]:
            _, first = np.unique(self._expected[row], return_index=True)
            if len(first) < _LONG:
                continue
            expected, leeway = self._expected[row][first], self._leeway[row][first]
            errors = differences(found[row][first], expected, leeway)
            assert errors is not None
            floor = self._floor + doubtful(expected, leeway)
            most = floor + 6.0 * (floor / len(first)) ** 0.5
            worst = max(worst, float(np.where(np.isfinite(errors), errors, 0.0).mean()) - most)
        return worst


def limits(dtype: str, count: int, baseline: Errors, doubt: float = 0.0) -> Errors | None:
    """What a candidate's errors may be at most, for an output of ``count`` elements; None: nothing is said.

    Args:
        baseline: the errors of the operator as it is written.
        doubt: the share of elements (0..1) that arithmetic in float32 may well round to a neighbour.
    """
    whole = dtype.startswith(("int", "uint"))
    if dtype not in _FORMATS and not whole:
        return None
    n, narrow = max(count, 1), dtype in ("float16", "bfloat16")
    largest, mean = _WHOLE if whole else _FLOORS[dtype]
    mean = max(mean + (doubt if narrow else 0.0), _FEW * largest / n)
    floors = largest, mean, max((mean * largest) ** 0.5, mean)
    # Being rounded to a neighbour is no error that others may make ten times as large.
    found = (max(baseline.largest - 1.0, 0.0) if narrow else baseline.largest, baseline.mean, baseline.rms)
    most, average, rms = (max(f, k * b) for f, k, b in zip(floors, FACTORS, found, strict=True))
    return Errors(most, average, rms, FACTORS[1] * baseline.line)


def too_inaccurate(name: str, found: Errors, limit: Errors) -> str | None:
    """In words, when an output's error is larger than the baseline's allows."""
    for what, value, most in (
        ("mean", found.mean, limit.mean),
        ("largest", found.largest, limit.largest),
        ("root-mean-square", found.rms, limit.rms),
    ):
        if not value <= most:
            return (
                f"output {name} is less accurate than the original's: its {what} error is {value:.3g} units in the "
                f"last place beyond what float32 arithmetic may lose, more than {most:.3g} "
                f"({FACTORS[0]:g} times the original's largest, {FACTORS[1]:g} times its mean)."
            )
    if not found.line <= limit.line:
        return (
            f"output {name} is less accurate than the original's in one line: the mean error of its elements is "
            f"{found.line:.3g} units in the last place beyond what roundings come to, more than {limit.line:.3g}."
        )
    return None


def inaccurate_together(name: str, dtype: str, trials: Sequence[tuple[Errors, Limit]]) -> str | None:
    """In words, when an output's mean error over several trials is larger than the baseline's allows.

    Of an output of one element any rounding is a neighbour; one that is the wrong neighbour every other time shows over
    all trials. Of 16-bit floats only, where rounding is most of the error.

    Args:
        trials: per trial its errors and their limit; of the tensors of a list all of them.
    """
    if dtype not in ("float16", "bfloat16"):
        return None
    total = max(sum(limit.count for _, limit in trials), 1)

    def mean(values: Iterable[float]) -> float:
        return sum(v * limit.count for v, (_, limit) in zip(values, trials, strict=True)) / total

    found = mean(errors.mean for errors, _ in trials)
    baseline = Errors(mean=mean(limit.baseline.mean for _, limit in trials))
    most = limits(dtype, total, baseline, mean(limit.doubt for _, limit in trials))
    if most is None or found <= most.mean:
        return None
    return (
        f"output {name} is less accurate than the original's: its mean error over all {total} elements of "
        f"{len(trials)} results is {found:.3g} units in the last place, more than {most.mean:.3g}."
    )


@dataclass
class ErrorsSoFar:
    """How exact a candidate's outputs were so far: ``drifts``, the largest of each output (compare.drift), and the
    errors of every tensor in every trial."""

    drifts: dict[str, float] = field(default_factory=dict)
    _errors: dict[str, dict[tuple[int, int], tuple[Errors, Limit]]] = field(default_factory=dict)

    def note(self, name: str, where: tuple[int, int], errors: Errors, limit: Limit | None) -> None:
        """Of the tensor ``where`` (trial, place in a list) of output ``name``."""
        if limit is not None:
            self._errors.setdefault(name, {})[where] = errors, limit

    def together(self, name: str, dtype: str) -> str | None:
        return inaccurate_together(name, dtype, tuple(self._errors.get(name, {}).values()))


def doubtful(expected: Array, leeway: Array) -> float:
    """The share of elements that may well be rounded to a neighbour: the mean of leeway over unit, 1 at most."""
    every = max(1, expected.size // _SAMPLE)
    step, leeway = unit(expected.reshape(-1)[::every]), leeway.reshape(-1)[::every]
    if step is None or not step.size:
        return 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        share = np.minimum(leeway / step, 1.0)
    return float(np.mean(np.where(np.isfinite(leeway), share, 0.0)))
