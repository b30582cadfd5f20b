"""Random inputs: reproducible, inside their domain, different per distribution."""

from __future__ import annotations

import numpy as np
import pytest

from ascendopt_tune.arguments import numpy_dtype
from ascendopt_tune.case import DTYPES, Case, TensorSpec
from ascendopt_tune.errors import CaseError
from ascendopt_tune.evaluate.inputs import DISTRIBUTIONS, make_inputs

ALL = (*DISTRIBUTIONS, "specials")


def one(dtype: str, distribution: str, seed: int = 0, **domain: object) -> np.ndarray:
    case = Case((TensorSpec(dtype, (40, 50)),), ())
    (array,) = make_inputs(case, ("x",), {"domain": {"x": domain}}, distribution, seed)
    assert isinstance(array, np.ndarray)
    return array


@pytest.mark.parametrize("distribution", ALL)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_in_every_distribution(dtype: str, distribution: str) -> None:
    array = one(dtype, distribution)
    assert array.dtype == numpy_dtype(dtype)
    assert array.shape == (40, 50)
    np.testing.assert_array_equal(array.view(np.uint8), one(dtype, distribution).view(np.uint8))
    if distribution != "zeros":
        assert not np.array_equal(array.view(np.uint8), one(dtype, distribution, seed=1).view(np.uint8))
        assert len(np.unique(array.view(np.uint8))) > 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_only_specials_are_not_finite(dtype: str) -> None:
    for distribution in DISTRIBUTIONS:
        assert np.isfinite(one(dtype, distribution).astype(np.float32)).all()
    special = one(dtype, "specials").astype(np.float32)
    assert np.isnan(special).any()
    assert np.isposinf(special).any()
    assert np.isneginf(special).any()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "int32"])
def test_large_rows_end_with_their_extremes(dtype: str) -> None:
    """So that a maximum or minimum without the tail is another one."""
    array = one(dtype, "large").astype(np.float64)
    assert (array[:, -1] == array.max()).all()
    assert (array[:, -2] == array.min()).all()
    if not dtype.startswith("int"):
        assert (array[:, -1] > 1.9 * np.abs(array[:, :-2]).max()).all()


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_domain_is_kept(distribution: str) -> None:
    for dtype, low, high in (("float32", 0.5, 0.75), ("float32", -10.0, 10.0), ("int32", 3, 9), ("int8", -2, 2)):
        array = one(dtype, distribution, low=low, high=high)
        if distribution != "zeros" or low <= 0:
            assert array.min() >= low
            assert array.max() <= high
    assert one("float32", distribution, low=0.0).min() >= 0
    assert one("float32", distribution, high=0.0).max() <= 0


def test_index_domain_follows_the_shape() -> None:
    case = Case((TensorSpec("float32", (7, 3)), TensorSpec("int32", (1000,))), ())
    settings = {"domain": {"index": {"index": "x", "axis": 0}}}
    for distribution in ALL:
        index = make_inputs(case, ("x", "index"), settings, distribution, 0)[1]
        assert isinstance(index, np.ndarray)
        assert index.min() >= 0
        assert index.max() <= 6


def test_lists_and_absent_inputs() -> None:
    spec = TensorSpec("float16", (4,))
    case = Case(((spec, spec), None, spec), ())
    listed, absent, single = make_inputs(case, ("xs", "o", "y"), {}, "normal", 0)
    assert isinstance(listed, tuple)
    assert not np.array_equal(listed[0], listed[1])
    assert absent is None
    assert isinstance(single, np.ndarray)


@pytest.mark.parametrize("distribution", ALL)
def test_given_values_are_those_of_every_trial(distribution: str) -> None:
    case = Case((TensorSpec("int64", (2, 2)), TensorSpec("bfloat16", ())), ())
    settings = {"domain": {"pads": {"values": [1, 2, 3, 4]}, "scale": {"values": 0.5}}}
    pads, scale = make_inputs(case, ("pads", "scale"), settings, distribution, 7)
    assert isinstance(pads, np.ndarray)
    assert isinstance(scale, np.ndarray)
    assert pads.tolist() == [[1, 2], [3, 4]]
    assert (scale.dtype, scale.shape, float(scale)) == (numpy_dtype("bfloat16"), (), 0.5)


def test_given_values_of_another_number_are_refused() -> None:
    case = Case((TensorSpec("int64", (4,)),), ())
    with pytest.raises(CaseError, match=r"input pads gives 3 values; the case has int64\[4\]"):
        make_inputs(case, ("pads",), {"domain": {"pads": {"values": [1, 2, 3]}}}, "normal", 0)
