"""Do outputs match what is expected? Tolerances per dtype, CANN's allowed error ratio, and a mismatch in words.

Source of the tolerances: the accuracy standard of the CANN operator samples, float16 one in a thousand in both value
and share of elements, float32 one in ten thousand, bfloat16 four in a thousand. Elements in the allowed share may be
off by ``_OUTLIER`` tolerances and no more (chosen here: a tile that was never written must not hide in the share).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..sources.arguments import Array, dtype_name
from .accuracy import AlikeOnce, Errors, LineErrors, Sum, differences, either, free

_OUTLIER = 10.0
# Chosen here: half of what directed rounding leans by, and 4 standard deviations of errors that are -1 and 1 by chance.
_DRIFT, _DRIFT_LEAST, _DRIFT_MOST = 0.25, 256, 1 << 16
_CHUNK = 1 << 22  # elements compared at once, so that large outputs need little memory


@dataclass(frozen=True)
class Tolerance:
    """|got - expected| <= atol + rtol * |expected| for all but the share ``ratio`` of the elements."""

    rtol: float = 0.0
    atol: float = 0.0
    ratio: float = 0.0


_DEFAULTS = {
    "float16": Tolerance(1e-3, 1e-3, 1e-3),
    "bfloat16": Tolerance(4e-3, 4e-3, 4e-3),
    "float32": Tolerance(1e-4, 1e-4, 1e-4),
    "float64": Tolerance(1e-4, 1e-4, 1e-4),
    "complex64": Tolerance(1e-4, 1e-4, 1e-4),
}


def tolerance(dtype: str, settings: Mapping[str, Any]) -> Tolerance:
    """The tolerance of ``dtype``; ``settings["tolerance"][dtype]`` (a table of rtol, atol, ratio) overrides fields."""
    given = settings.get("tolerance", {}).get(dtype, {})
    default = _DEFAULTS.get(dtype, Tolerance())
    if not isinstance(given, Mapping):  # one number: both tolerances
        given = {"rtol": float(given), "atol": float(given)}
    return Tolerance(**{f: float(given.get(f, getattr(default, f))) for f in ("rtol", "atol", "ratio")})


def mismatch(
    name: str, got: Array, expected: Array, allowed: Tolerance, poison: int | None = None, leeway: Array | None = None
) -> str | None:
    """None if ``got`` matches ``expected`` within the tolerance; else where and by how much it doesn't."""
    return compare(name, got, expected, allowed, poison, leeway)[0]


def compare(
    name: str, got: Array, expected: Array, allowed: Tolerance, poison: int | None = None, leeway: Array | None = None,
    told: Callable[[tuple[int, ...]], str] | None = None,
) -> tuple[str | None, Errors]:  # fmt: skip
    """Why ``got`` doesn't match ``expected`` (where and by how much), or None; and its errors.

    Args:
        name: the output's name.
        poison: the byte outputs were filled with before the launch; elements that still hold it are named so.
        leeway: what each element may be off beyond the tolerance (protocol.Trial).
        told: what more there is to say of the first wrong element.
    """
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"output {name} is {_what(got)}, expected {_what(expected)}.", Errors()
    flat_got, flat_expected = got.reshape(-1), expected.reshape(-1)
    flat_leeway = None if leeway is None else leeway.reshape(-1)
    total, lines = Sum(), LineErrors(expected, leeway)
    off = hard = 0
    first = first_hard = -1
    worst = 0.0
    for begin in range(0, flat_got.size, _CHUNK):
        part = slice(begin, begin + _CHUNK)
        # Most elements are equal bit by bit, which is told at the speed of memory.
        differ = np.flatnonzero(_bits(flat_got[part]) != _bits(flat_expected[part]))
        a, b = flat_got[part][differ], flat_expected[part][differ]
        more = None if flat_leeway is None else flat_leeway[part][differ]
        errors = differences(a, b, more)
        if errors is not None:
            total.add(errors)
            lines.add(begin + differ, errors)
        excess = _excess(a, b, allowed, more)
        bad = differ[excess > 1.0]
        if not bad.size:
            continue
        severe = differ[excess > (_OUTLIER if allowed.ratio else 1.0)]
        first = begin + int(bad[0]) if first < 0 else first
        off += bad.size
        if severe.size:
            first_hard = begin + int(severe[0]) if first_hard < 0 else first_hard
            hard += severe.size
        worst = max(worst, float(np.max(excess)))
    found = total.over(flat_got.size, lines.worst(got))
    if AlikeOnce.matters(expected, found):
        found = _alike_once(flat_got, flat_expected, flat_leeway, found)
    if not hard and off <= allowed.ratio * flat_got.size:
        return None, found
    at = first_hard if hard else first
    index = [int(i) for i in np.unravel_index(at, got.shape)] if got.shape else []
    value = flat_got[at]
    stale = poison is not None and value.tobytes() == bytes([poison]) * value.nbytes
    note = " (the pattern from before the launch: nothing was written there)" if stale else ""
    rule = f"rtol {allowed.rtol:g}, atol {allowed.atol:g}" if allowed.rtol or allowed.atol else "exact"
    by = "" if not np.isfinite(worst) else f", worst {worst:.3g} times the tolerance"
    text = (
        f"{off} of {flat_got.size} elements of output {name} ({_what(got)}) are wrong ({rule}; "
        f"{allowed.ratio:.2%} may be off by up to {_OUTLIER:g} tolerances){by}; first at {index}: "
        f"expected {flat_expected[at]}, got {value}{note}{told(tuple(index)) if told is not None else ''}."
    )
    return text, found


def _alike_once(got: Array, expected: Array, leeway: Array | None, found: Errors) -> Errors:
    """The errors of a flat output, with what is expected alike counted once."""
    alike = AlikeOnce()
    for begin in range(0, got.size, _CHUNK):
        part = slice(begin, begin + _CHUNK)
        errors = differences(got[part], expected[part], None if leeway is None else leeway[part])
        if errors is not None:
            alike.add(expected[part], errors)
    return alike.over(found)


def wrong_elements(got: Array, expected: Array, allowed: Tolerance, leeway: Array | None = None) -> Array:
    """Which elements are off by more than the tolerance: booleans of the outputs' shape."""
    wrong = np.zeros(got.size, bool)
    flat_got, flat_expected = got.reshape(-1), expected.reshape(-1)
    flat_leeway = None if leeway is None else leeway.reshape(-1)
    for begin in range(0, flat_got.size, _CHUNK):
        part = slice(begin, begin + _CHUNK)
        more = None if flat_leeway is None else flat_leeway[part]
        wrong[part] = _excess(flat_got[part], flat_expected[part], allowed, more) > 1.0
    return wrong.reshape(got.shape)


def drift(got: Array, expected: Array, leeway: Array | None = None) -> float:
    """By how much results lean to one side, in units in the last place: the mean error, or the mean error away from
    zero, whichever is larger.

    Where one unit is about the tolerance (float16, bfloat16), rounding the wrong way passes the comparison of single
    elements; over many it shows: to nearest leans by nothing, every other mode by half a unit. Other dtypes, and
    outputs with less than ``_DRIFT_LEAST`` elements to judge, have no drift (0).
    """
    if dtype_name(got.dtype) not in ("float16", "bfloat16") or got.shape != expected.shape:
        return 0.0
    step = max(1, got.size // _DRIFT_MOST)
    one, other = (_ordered(a.reshape(-1)[::step]) for a in (got, expected))
    infinite = 0x7C00 if dtype_name(got.dtype) == "float16" else 0x7F80
    judged = (np.abs(one) < infinite) & (np.abs(other) < infinite) & (other != 0)
    if leeway is not None:
        judged &= ~either(expected.reshape(-1)[::step], leeway.reshape(-1)[::step])  # all of them may lean
    if np.count_nonzero(judged) < _DRIFT_LEAST:
        return 0.0
    error = np.clip(one[judged] - other[judged], -_OUTLIER, _OUTLIER)
    return float(max(error.mean(), (error * np.sign(other[judged])).mean(), key=abs))


def _ordered(array: Array) -> Array:
    """16-bit floats as integers in the same order, neighbours one apart."""
    bits = array.view(np.int16).astype(np.int32)
    return np.where(bits < 0, -(bits & 0x7FFF), bits)


def too_much_drift(name: str, found: float, baseline: float) -> str | None:
    """In words, when an output leans more than the baseline's does."""
    if abs(found) <= abs(baseline) + _DRIFT:
        return None
    return (
        f"output {name} is rounded to one side: on average {found:+.2f} units in the last place off, "
        f"the original {baseline:+.2f} (more than {_DRIFT:g} apart)."
    )


def _excess(got: Array, expected: Array, allowed: Tolerance, leeway: Array | None = None) -> Array:
    """Error in units of the tolerance, per element; infinite where NaN, infinity or an exact value doesn't match."""
    if got.dtype.kind == "c":
        parts = [_excess(getattr(got, p), getattr(expected, p), allowed, leeway) for p in ("real", "imag")]
        return np.maximum(*parts)
    if not (allowed.rtol or allowed.atol):
        same = (got == expected) & ~_other_zero(got, expected, leeway)
        if got.dtype.kind == "b":  # a byte that is neither 0 nor 1 is no truth value, unless the original's is the same
            byte, other = got.view(np.uint8), expected.view(np.uint8)
            same = ((byte != 0) == (other != 0)) & ((byte <= 1) | (byte == other))
        if _is_float(got):
            same |= _nan(got) & _nan(expected)
        if leeway is not None:
            same |= leeway == np.inf
            if not _is_float(got) and got.dtype.kind in "iu":  # rounded to the other side of a half
                same |= (leeway >= 1) & (np.abs(got.astype(np.float64) - expected.astype(np.float64)) <= leeway)
        return np.where(same, 0.0, np.inf)
    wide = np.float32 if got.dtype.itemsize <= 2 else np.float64
    wide_got, wide_expected = got.astype(wide), expected.astype(wide)
    with np.errstate(invalid="ignore", over="ignore"):
        limit = allowed.atol + allowed.rtol * np.abs(wide_expected)
        error: Array = np.abs(np.subtract(wide_got, wide_expected))
        if leeway is not None:
            error = np.maximum(error - free(expected, leeway), 0.0)
        error = error / limit
    same = ((wide_got == wide_expected) & ~_other_zero(got, expected, leeway)) | (_nan(wide_got) & _nan(wide_expected))
    finite = np.isfinite(wide_expected) & np.isfinite(wide_got)
    if leeway is not None:
        same |= leeway == np.inf
    return np.asarray(np.where(same, 0.0, np.where(finite, error, np.inf)))


def _other_zero(got: Array, expected: Array, leeway: Array | None) -> Array:
    """Where a zero has the other sign, and nothing else will do (a leeway of minus infinity)."""
    if leeway is None or not _is_float(got):
        return np.zeros(got.shape, bool)
    signs = np.signbit(got.astype(np.float64)) != np.signbit(expected.astype(np.float64))
    return np.asarray((leeway == -np.inf) & (expected == 0) & signs)


def _bits(array: Array) -> Array:
    return array.view(f"u{array.itemsize}")


def _is_float(array: Array) -> bool:
    return array.dtype.kind in "fc" or dtype_name(array.dtype) == "bfloat16"


def _nan(array: Array) -> Array:
    return np.asarray(array != array)


def _what(array: Array) -> str:
    return f"{dtype_name(array.dtype)}[{','.join(map(str, array.shape))}]"


def untouched(array: Array, poison: int) -> Array:
    """Which elements still hold the byte that outputs are filled with before the launch."""
    found = np.ascontiguousarray(array).view(np.uint8).reshape(*array.shape, array.dtype.itemsize) == poison
    return np.asarray(found.all(-1))
