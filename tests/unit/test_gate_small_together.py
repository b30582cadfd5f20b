"""Inputs that are small together: what is added to a sum of several inputs decides only there."""

from __future__ import annotations

import numpy as np
import pytest

from ascendopt_tune.evaluate.inputs import ALL_SPARSE, ALL_TINY, make_inputs, schedule
from ascendopt_tune.nouns.case import Case, TensorSpec

_NAMES = ("x", "residual", "gain")


def _case(dtype: str, rows: int = 400) -> Case:
    tall = TensorSpec(dtype, (rows, 333))
    return Case((tall, tall, TensorSpec(dtype, (333,))), (tall,))


def _made(case: Case, distribution: str, seed: int = 0) -> list[np.ndarray]:
    return [np.asarray(a, np.float64) for a in make_inputs(case, _NAMES, {}, distribution, seed)]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_in_some_lines_all_inputs_of_a_shape_are_small(dtype: str) -> None:
    x, residual, _ = _made(_case(dtype), "lines")
    both = np.maximum(np.abs(x).mean(-1), np.abs(residual).mean(-1))
    small = both < 2.0**-9  # the root of 1e-6 is about 2**-10
    assert small.sum() >= 20
    assert (np.abs(x + residual)[small].max(-1) > 0).sum() >= 10  # and not one the other's negative, nor 0


def test_where_lines_are_few_the_seeds_take_turns() -> None:
    case = _case("float32", 2)
    found = 0
    for seed in range(40):
        x, residual, _ = _made(case, "lines", seed)
        found += int(((np.abs(x).mean(-1) < 0.1) & (np.abs(residual).mean(-1) < 0.1) & (np.abs(x).max(-1) > 0)).any())
    assert found >= 2


def test_one_trial_has_small_lines_in_every_float_input() -> None:
    case = _case("float16")
    assert ALL_TINY in schedule(case, _NAMES, {}, 30)
    for array in _made(case, ALL_TINY):
        lines = np.atleast_2d(array)
        assert (np.abs(lines).mean(-1) < 2.0**-3).all()
    alone = Case((TensorSpec("float16", (400, 333)),), ())
    assert ALL_TINY not in schedule(alone, ("x",), {}, 30)


def test_a_domain_is_kept() -> None:
    settings = {"domain": {"x": {"low": 1.0, "high": 2.0}}}
    for distribution in ("lines", ALL_TINY):
        x = np.asarray(make_inputs(_case("float32"), _NAMES, settings, distribution, 0)[0])
        assert (x >= 1).all()
        assert (x <= 2).all()


def test_whole_numbers_are_left_as_they_are() -> None:
    spec = TensorSpec("int32", (40, 33))
    case = Case((spec, spec, TensorSpec("float32", (33,))), ())
    assert ALL_TINY not in schedule(case, _NAMES, {}, 30)
    x = np.asarray(make_inputs(case, _NAMES, {}, ALL_TINY, 0)[0])
    assert len(np.unique(x)) > 20


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "int32"])
def test_all_inputs_are_nothing_but_for_a_few_elements(dtype: str) -> None:
    case = _case(dtype)
    assert ALL_SPARSE in schedule(case, _NAMES, {}, 30)
    x, residual, gain = _made(case, ALL_SPARSE)
    for array in (x, residual, gain):
        flat = array.reshape(-1)
        half = flat.size // 2
        assert 0.9 < (flat[:half] == 0).mean() < 1
        assert 0.9 < (flat[half:] == 1).mean() < 1
    assert ((x == 0) & (residual != 0)).any()


def test_lines_are_nothing_together() -> None:
    x, residual, _ = _made(_case("float32"), "lines")
    for value in (0, 1):
        both = ((x == value).mean(-1) > 0.5) & ((residual == value).mean(-1) > 0.5)
        assert both.sum() >= 5


def test_indices_and_domains_are_left_alone() -> None:
    settings = {"domain": {"x": {"low": 2, "high": 9}}}
    x = np.asarray(make_inputs(_case("int32"), _NAMES, settings, ALL_SPARSE, 0)[0])
    assert (x >= 2).all()
