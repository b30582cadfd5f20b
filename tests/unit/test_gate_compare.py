"""Comparison of outputs: what passes, what doesn't, and what is said about it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ascendopt_tune.evaluate.compare import Tolerance, drift, mismatch, tolerance, too_much_drift
from ascendopt_tune.sources.arguments import numpy_dtype

HALF = tolerance("float16", {})


def test_equal_arrays_match_in_every_dtype() -> None:
    for dtype in (np.float16, np.float32, np.int8, np.int64, np.bool_, np.complex64, ml_dtypes.bfloat16):
        array = np.arange(24).reshape(2, 3, 4).astype(dtype)
        assert mismatch("y", array, array.copy(), tolerance(str(np.dtype(dtype)), {})) is None


def test_a_mismatch_says_where_what_and_how_many() -> None:
    expected = np.ones((3, 5), np.float32)
    got = expected.copy()
    got[2, 1] = 1.5
    text = mismatch("y", got, expected, tolerance("float32", {}))
    assert text is not None
    for part in ("1 of 15 elements", "output y", "float32[3,5]", "[2, 1]", "expected 1.0", "got 1.5"):
        assert part in text


def test_a_small_share_may_be_slightly_off_but_never_far_off() -> None:
    expected = np.ones(10_000, np.float16)
    slightly = expected.copy()
    slightly[:5] = 1.005  # 2.5 tolerances
    assert mismatch("y", slightly, expected, HALF) is None
    slightly[:50] = 1.005
    assert mismatch("y", slightly, expected, HALF) is not None
    far = expected.copy()
    far[9_999] = 2
    text = mismatch("y", far, expected, HALF)
    assert text is not None
    assert "[9999]" in text


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_special_values_match_only_themselves(value: float) -> None:
    expected = np.array([1.0, value, 2.0], np.float16)
    assert mismatch("y", expected.copy(), expected, HALF) is None
    for other in (0.0, np.nan, np.inf, -np.inf, 65504.0):
        got = np.array([1.0, other, 2.0], np.float16)
        same = np.array_equal(got, expected, equal_nan=True)
        assert (mismatch("y", got, expected, HALF) is None) == same


def test_signed_zeros_are_equal_and_nan_payloads_too() -> None:
    exact = Tolerance()
    assert mismatch("y", np.array([-0.0], np.float32), np.array([0.0], np.float32), exact) is None
    nans = np.array([0x7FC00000, 0xFFC00001], np.uint32).view(np.float32)
    assert mismatch("y", nans[:1], nans[1:], exact) is None


def test_integers_are_exact_unless_said_otherwise() -> None:
    expected, got = np.array([1, 2, 3], np.int8), np.array([1, 2, 4], np.int8)
    assert mismatch("y", got, expected, tolerance("int8", {})) is not None
    assert mismatch("y", got, expected, tolerance("int8", {"tolerance": {"int8": {"atol": 1}}})) is None
    wrapped = np.array([-128], np.int8), np.array([127], np.int8)
    assert mismatch("y", *wrapped, tolerance("int8", {"tolerance": {"int8": {"atol": 1}}})) is not None


def test_what_was_never_written_is_named() -> None:
    expected = np.ones(4, np.float16)
    got = expected.copy()
    got[2:] = np.frombuffer(b"\xa5" * 4, np.float16)
    text = mismatch("y", got, expected, HALF, poison=0xA5)
    assert text is not None
    assert "nothing was written there" in text


def test_settings_override_single_fields() -> None:
    changed = tolerance("float16", {"tolerance": {"float16": {"rtol": 0.5}}})
    assert changed == Tolerance(0.5, HALF.atol, HALF.ratio)
    assert tolerance("float32", {"tolerance": {"float32": 0.1}}).atol == 0.1


def test_other_shape_or_dtype_is_a_mismatch() -> None:
    assert mismatch("y", np.ones(3, np.float32), np.ones(4, np.float32), HALF) is not None
    assert mismatch("y", np.ones(3, np.float32), np.ones(3, np.float16), HALF) is not None


def test_empty_and_scalar_outputs() -> None:
    assert mismatch("y", np.ones((0, 3), np.float16), np.ones((0, 3), np.float16), HALF) is None
    assert mismatch("y", np.float16(1).reshape(()), np.float16(1).reshape(()), HALF) is None
    assert mismatch("y", np.float16(1).reshape(()), np.float16(2).reshape(()), HALF) is not None


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_drift_tells_rounding_to_one_side_from_rounding_to_nearest(dtype: str) -> None:
    right = np.random.default_rng(0).standard_normal(4096).astype(np.float32)
    nearest = right.astype(numpy_dtype(dtype))
    wide = nearest.astype(np.float32)
    step = np.spacing(np.abs(nearest)) if dtype == "float16" else (np.abs(wide) * 2**-8).astype(nearest.dtype)
    below = np.where(wide > right, nearest - step, nearest).astype(nearest.dtype)  # towards minus infinity
    towards_zero = np.where(np.abs(wide) > np.abs(right), nearest - np.sign(nearest) * step, nearest)
    assert drift(nearest, nearest) == 0.0
    assert abs(drift(np.where(np.arange(4096) % 2 == 0, nearest + step, nearest - step), nearest)) < 0.1
    for leaning in (below, towards_zero.astype(nearest.dtype)):
        found = drift(leaning, nearest)
        assert -0.65 < found < -0.35
        assert too_much_drift("y", found, 0.0) is not None
        assert too_much_drift("y", found, found) is None


def test_drift_is_not_judged_where_it_says_nothing() -> None:
    few = np.ones(100, np.float16)
    assert drift(np.nextafter(few, np.float16(2)), few) == 0.0
    wide = np.ones(4096, np.float32)
    assert drift(np.nextafter(wide, np.float32(2)), wide) == 0.0
    special = np.full(4096, np.nan, np.float16)
    assert drift(special, special) == 0.0
    assert drift(special, np.ones(4096, np.float16)) == 0.0
