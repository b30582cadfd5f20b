"""Inputs of one shape take turns in having a pattern, and are alike, opposite or constant in lines of their own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendopt_tune.evaluate.inputs import make_inputs
from ascendopt_tune.evaluate.together import take_turns
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.sources.arguments import numpy_dtype


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple),
    count=st.integers(2, 4),
    dtype=st.sampled_from(("float16", "bfloat16", "float32", "int8", "uint8", "bool")),
    first_axis=st.booleans(),
    alike=st.booleans(),
    anything=st.booleans(),
    seed=st.integers(0, 1 << 40),
)
def test_every_element_is_that_of_a_version(
    shape: tuple[int, ...], count: int, dtype: str, first_axis: bool, alike: bool, anything: bool, seed: int
) -> None:
    """An input's own in either version, another's, its negative or its neighbour where they are alike, 0 or 1 where it
    is constant."""
    size, kind = int(np.prod(shape)), numpy_dtype(dtype)
    versions = [
        [np.asarray((np.arange(size) % 9 + 10 * v + k).reshape(shape)).astype(kind) for k in range(count)]
        for v in (0, 1)
    ]
    made = take_turns(versions[0], versions[1], first_axis, alike, anything, seed)
    again = take_turns(versions[0], versions[1], first_axis, alike, anything, seed)
    for k, array in enumerate(made):
        assert array.shape == shape
        assert array.dtype == kind
        assert array.tobytes() == again[k].tobytes()
        wide, first = array.astype(np.float64), versions[1][0].astype(np.float64)
        known = np.any([wide == v[k].astype(np.float64) for v in versions], axis=0)
        if alike:
            step = 1 if kind.kind in "iu" else np.abs(first) * {"float16": 2**-10, "bfloat16": 2**-7}.get(dtype, 2**-23)
            known |= (np.abs(wide - first) <= step) & (anything or kind.kind == "f" or dtype == "bfloat16")
            known |= wide == first
            assert anything or wide.max() <= max(v[k].astype(np.float64).max() for v in versions for k in range(count))
        if anything:
            known |= (wide == 0) | (wide == 1) | ((wide == -first) & (alike and kind.kind not in "ub"))
        assert known.all()


@pytest.mark.parametrize("distribution", ["lines", "columns"])
def test_one_trial_has_patterns_in_every_input_and_inputs_that_are_alike(distribution: str) -> None:
    spec = TensorSpec("float32", (400, 333) if distribution == "lines" else (333, 400))
    arrays = [np.asarray(a) for a in make_inputs(Case((spec,) * 3, ()), ("a", "b", "c"), {}, distribution, 0)]
    a, b, c = arrays if distribution == "lines" else (array.T for array in arrays)
    for one in (a, b, c):
        assert (one < 0).all(-1).any()
        assert ((one == 0).mean(-1) > 0.5).any()
        assert ((one == 1).mean(-1) > 0.5).any()
    beside = np.abs(np.where((a < 0).all(-1)[:, None], b, 0))
    assert 0 < beside.max() < 6  # random numbers beside a pattern
    for one, other in ((a, b), (a, c)):
        for same in (one == other, one == -other):
            nearly = (same & (one != 0)).mean(-1)
            assert ((nearly > 0.4) & (nearly < 1)).any()


def test_inputs_stay_inside_their_domains() -> None:
    spec = TensorSpec("float32", (64, 65))
    domains = {"a": {"low": 2.0, "high": 3.0}, "b": {"low": -1.0, "high": -0.5}}
    for distribution in ("lines", "columns"):
        a, b = make_inputs(Case((spec, spec), ()), ("a", "b"), {"domain": domains}, distribution, 1)
        assert np.min(a) >= 2.0  # type: ignore[arg-type]
        assert np.max(a) <= 3.0  # type: ignore[arg-type]
        assert np.min(b) >= -1.0  # type: ignore[arg-type]
        assert np.max(b) <= -0.5  # type: ignore[arg-type]


def test_short_lines_have_one_pattern_together() -> None:
    """A tile holds several lines: in some trials it is zero but for a few elements, its ends too."""
    (array,) = make_inputs(Case((TensorSpec("float32", (640, 50)),), ()), ("x",), {}, "lines", 3)
    assert isinstance(array, np.ndarray)
    tiles = array.reshape(-1, 10 * 50)
    few = (tiles != 0).mean(-1)
    assert ((few > 0) & (few < 0.5) & (tiles[:, 0] == tiles[:, -1])).any()


def test_an_index_follows_its_neighbour_but_for_some() -> None:
    case = Case((TensorSpec("float16", (40000, 64)), TensorSpec("int32", (500,))), ())
    _, index = make_inputs(case, ("x", "index"), {"domain": {"index": {"index": "x", "axis": 0}}}, "lines", 1, (11,))
    assert isinstance(index, np.ndarray)
    assert index.min() >= 0
    assert index.max() < 40000
    runs = index[:242].reshape(-1, 11)
    steps = np.diff(runs, axis=-1)
    straight = (steps == 1).all(-1)
    assert straight.any()
    assert ((runs[:, -1] - runs[:, 0] == 10) & ~straight).any()  # the ends of a run, something else between
    assert ((steps == 0).all(-1) | (steps[:, 0] == 0)).any()


def test_rows_are_as_small_as_their_float_allows() -> None:
    for dtype in ("bfloat16", "float32"):
        (array,) = make_inputs(Case((TensorSpec(dtype, (400, 33)),), ()), ("x",), {}, "lines", 0)
        largest = np.abs(np.asarray(array).astype(np.float64)).max(-1)
        assert (largest[largest > 0] < 1e-30).any()
