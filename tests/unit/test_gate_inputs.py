"""Random inputs: reproducible, inside their domain, different per distribution."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ascendopt_tune.errors import CaseError
from ascendopt_tune.evaluate.inputs import PLAIN, STRESS, make_inputs, schedule
from ascendopt_tune.evaluate.trials import TrialMaker, check_memory
from ascendopt_tune.nouns.case import DTYPES, Case, TensorSpec
from ascendopt_tune.sources.arguments import numpy_dtype
from ascendopt_tune.sources.registry import load_operator

ALL = (*PLAIN, *STRESS)
FINITE = tuple(d for d in ALL if d != "specials")


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
    constant = {"zeros"}
    if numpy_dtype(dtype).kind in "iub" or dtype == "int4":
        constant |= {"equal", "tiny", *(("negative", "positive") if dtype[0] in "ub" else ())}
    if distribution not in constant:
        assert not np.array_equal(array.view(np.uint8), one(dtype, distribution, seed=1).view(np.uint8))
        assert len(np.unique(array.view(np.uint8))) > 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_only_specials_are_not_finite(dtype: str) -> None:
    for distribution in FINITE:
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


@pytest.mark.parametrize("distribution", FINITE)
def test_domain_is_kept(distribution: str) -> None:
    for dtype, low, high in (("float32", 0.5, 0.75), ("float32", -10.0, 10.0), ("int32", 3, 9), ("int8", -2, 2)):
        array = one(dtype, distribution, low=low, high=high)
        if distribution != "zeros" or low <= 0:
            assert array.min() >= low
            assert array.max() <= high
    assert one("float32", distribution, low=0.0).min() >= 0
    assert one("float32", distribution, high=0.0).max() <= 0


@pytest.mark.parametrize("distribution", ALL)
def test_domains_of_whole_numbers_and_of_one_value(distribution: str) -> None:
    mask = one("float32", distribution, low=0, high=1, whole=True)
    assert mask.dtype == np.float32
    assert set(np.unique(mask)) <= {0.0, 1.0}
    ones = one("float32", distribution, low=1.0, high=1.0)
    assert (ones[np.isfinite(ones)] == 1).all()


def test_index_domain_follows_the_shape() -> None:
    case = Case((TensorSpec("float32", (7, 3)), TensorSpec("int32", (1000,))), ())
    settings = {"domain": {"index": {"index": "x", "axis": 0}}}
    for distribution in ALL:
        index = make_inputs(case, ("x", "index"), settings, distribution, 0)[1]
        assert isinstance(index, np.ndarray)
        inside = bool(index.min() >= 0) and bool(index.max() <= 6)
        assert inside == (distribution != "beyond")


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


def test_every_line_has_its_pattern_and_the_ends_of_lines_stand_out() -> None:
    case = Case((TensorSpec("float32", (400, 333)),), ())
    (array,) = make_inputs(case, ("x",), {}, "lines", 0, steps=(100,))
    assert isinstance(array, np.ndarray)
    stands_out = np.abs(array) / 6 > np.sort(np.abs(array), -1)[:, -2:-1]
    lone = set(np.argmax(stands_out, -1)[stands_out.any(-1)].tolist())
    assert {0, 332, 99, 100, 199, 299, 300, 255, 256} <= lone
    with np.errstate(over="ignore"):
        differences = np.diff(array)
    rows = {
        "all negative": (array < 0).all(-1),
        "all equal": (array == array[:, :1]).all(-1) & (array[:, 0] != 0),
        "zeros": (array == 0).all(-1),
        "ascending": (differences >= 0).all(-1) & (array[:, 0] < array[:, -1]),
        "descending": (differences <= 0).all(-1) & (array[:, 0] > array[:, -1]),
        "tiny": (np.abs(array).max(-1) < 1e-3) & (array != 0).any(-1),
        "at the edges": np.abs(array).max(-1) > 1e38,
    }
    assert {name for name, found in rows.items() if not found.any()} == set()


def test_columns_are_lines_of_the_first_axis() -> None:
    case = Case((TensorSpec("float32", (333, 400)),), ())
    (array,) = make_inputs(case, ("x",), {}, "columns", 0)
    assert isinstance(array, np.ndarray)
    assert ((array < 0).all(0)).any()
    assert not ((array < 0).all(1)).any()


def test_zeros_stand_at_the_beginning_of_either_input() -> None:
    """A shortcut that looks at the first element sees 0 where others are not."""
    spec = TensorSpec("float16", (64, 133))
    case = Case((spec, spec), ())
    one, two = (make_inputs(case, ("x", "y"), {}, name, 4) for name in ("sparse", "sparse others"))
    for (mostly, normal), several in ((one, 2000), (two[::-1], 2000)):
        assert isinstance(mostly, np.ndarray)
        assert isinstance(normal, np.ndarray)
        assert np.count_nonzero(normal) > 8000
        assert 0 < np.count_nonzero(mostly) < 8512 - several
        assert ((mostly[:, 0] == 0) & (mostly != 0).any(-1)).any()
    counts = make_inputs(Case((TensorSpec("int32", (64, 133)),), ()), ("x",), {}, "sparse", 0)[0]
    assert isinstance(counts, np.ndarray)
    assert 0 < np.count_nonzero(counts) < 2000


def test_a_lone_number_is_what_shortcuts_wait_for() -> None:
    case = Case((TensorSpec("float16", (9, 9)), TensorSpec("float32", (1,))), ())
    tried = schedule(case, ("x", "s"), {"specials": True}, 24)
    assert tried.count("specials") == 2
    names = ("descending", "equal", "ascending", "positive", "offset")
    numbers = [float(make_inputs(case, ("x", "s"), {}, name, 0)[1][0]) for name in names]  # type: ignore[index]
    assert numbers == [0.0, 1.0, 1.0078125, 2051.0, 0.001953125]
    assert float(make_inputs(case, ("x", "s"), {}, "lines", 1)[1][0]) == 1.0 + 2.0**-11  # type: ignore[index]
    assert float(make_inputs(case, ("x", "s"), {}, "levels", 1)[1][0]) == 1.0 - 2.0**-15  # type: ignore[index]
    narrow = Case((TensorSpec("float16", (9, 9)), TensorSpec("float16", (1,))), ())
    assert float(make_inputs(narrow, ("x", "s"), {}, "lines", 1)[1][0]) == 1.0 + 2.0**-10  # type: ignore[index]
    found = [float(make_inputs(case, ("x", "s"), {}, "specials", seed)[1][0]) for seed in (20, 21)]  # type: ignore[index]
    assert found[0] != 0
    assert found[1] == 0
    inside = make_inputs(case, ("x", "s"), {"domain": {"s": {"low": 0.5, "high": 2.0}}}, "descending", 0)[1]
    assert isinstance(inside, np.ndarray)
    assert 0.5 <= inside[0] <= 2.0


def test_whole_results_of_floats_are_tried_on_halves() -> None:
    x, scale, counts = TensorSpec("float16", (9, 40)), TensorSpec("float32", (40,)), TensorSpec("int64", (5,))
    case = Case((x, scale, counts), (TensorSpec("int8", (9, 40)),))
    names = ("x", "scale", "counts")
    assert "halves" in schedule(case, names, {}, 7)
    assert "halves" not in schedule(replace(case, outputs=(x,)), names, {}, 26)
    found, factors, _ = make_inputs(case, names, {}, "halves", 4)
    assert isinstance(found, np.ndarray)
    assert isinstance(factors, np.ndarray)
    assert (found * 2 == np.round(found * 2)).all()
    assert set(np.abs(found).max(-1).tolist()) <= {99.5, 127.0, 7.0}
    assert set(np.unique(factors)) == {0.5, 1.0, 2.0}


def test_whole_numbers_with_a_domain_are_once_all_at_its_end() -> None:
    case = Case((TensorSpec("float16", (9, 40)), TensorSpec("int64", (5,))), ())
    counts = make_inputs(case, ("x", "counts"), {"domain": {"counts": {"low": 0, "high": 32}}}, "positive", 4)[1]
    assert isinstance(counts, np.ndarray)
    assert (counts == 32).all()


def test_small_cases_are_tried_on_everything_and_large_ones_on_what_finds_most() -> None:
    small, large = (Case((TensorSpec("float32", shape),), ()) for shape in ((1, 77), (4096, 4096)))
    tried = schedule(small, ("x",), {"specials": True}, 24)
    of_several = {k for k in STRESS if k.endswith((" others", " all")) and k != "balanced all"}
    assert set(tried) == {*PLAIN, *STRESS} - {"beyond", "halves", "ties", *of_several}
    assert tried.count("lines") > 1
    assert schedule(large, ("x",), {}, 7) == (
        "normal", "lines", "large", "columns", "outlier", "uniform", "zeros"
    )  # fmt: skip
    assert schedule(small, ("x",), {"domain": {"x": {"index": "x"}}}, 2) == ("normal", "lines", "beyond")


def test_a_gain_is_mostly_one() -> None:
    """A shortcut that looks at its ends takes it for no gain at all."""
    case = Case((TensorSpec("float32", (40, 333)), TensorSpec("float32", (333,))), ())
    assert "ones others" in schedule(case, ("x", "gamma"), {}, 26)
    made = [make_inputs(case, ("x", "gamma"), {}, "ones others", seed) for seed in range(8)]
    gains = [g for _, g in made if isinstance(g, np.ndarray)]
    assert all(0 < np.count_nonzero(g != 1) < 200 for g in gains)
    assert any(g[0] == g[-1] == 1 for g in gains)
    assert all(np.count_nonzero(x == 1) < 10 for x, _ in made if isinstance(x, np.ndarray))


def test_parts_of_a_line_lie_on_levels_of_their_own() -> None:
    case = Case((TensorSpec("float32", (64, 4000)),), ())
    (array,) = make_inputs(case, ("x",), {}, "levels", 3, steps=(500,))
    assert isinstance(array, np.ndarray)
    parts = array.reshape(64, 8, 500)
    assert (parts.mean(-1).max(-1) - parts.mean(-1).min(-1) > 8).any()
    assert (parts.std(-1).max(-1) > 100 * parts.std(-1).min(-1)).any()


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        ({"low": 3, "high": 1}, "the domain of i is empty: its lowest value 3 is above its highest, 1"),
        ({"low": float("nan")}, "has the bound nan. A bound is a finite number"),
        ({"high": "9"}, "has the bound '9'"),
        ({"values": [[1], [2, 3]]}, "gives values that are no numbers"),
        ({"values": ["1", "2", "3", "4"]}, "gives values that are no numbers"),
        ({"index": "q"}, r"an index into axis 0 of q. There are i\[4\], x\[3,5\]"),
        ({"index": "x", "axis": 2}, "an index into axis 2 of x"),
    ],
)
def test_domains_that_no_value_is_in_are_refused(domain: dict[str, object], text: str) -> None:
    case = Case((TensorSpec("int32", (4,)), TensorSpec("float32", (3, 5))), ())
    with pytest.raises(CaseError, match=text):
        make_inputs(case, ("i", "x"), {"domain": {"i": domain}}, "normal", 0)


def test_what_no_memory_holds_is_refused_before_anything_is_drawn() -> None:
    check_memory(1 << 20)
    with pytest.raises(
        CaseError, match=r"take 1048576\.0 GiB, .* 3 times; this machine has \d+\.\d GiB .* smaller shape"
    ):
        check_memory(1 << 50)


def test_indices_beyond_their_domain_have_any_magnitude() -> None:
    x, index = TensorSpec("float16", (70, 33)), TensorSpec("int32", (650,))
    settings = {"domain": {"index": {"index": "x"}}}
    _, made = make_inputs(Case((x, index), (x,)), ("x", "index"), settings, "beyond", 0)
    wide = np.asarray(made).astype(np.int64)
    inside = (wide >= 0) & (wide < 70)
    assert 0.5 < inside.mean() < 0.75
    offsets = (wide * 33).astype(np.int32)  # wraps
    for sign in (-1, 1):
        assert np.any(
            (sign * wide > 1 << 24) & (offsets >= 0) & (offsets < 70 * 33) | (sign * offsets < 0) & (sign * wide > 0)
        )


def test_of_whole_numbers_a_wrong_one_says_nothing_of_its_line() -> None:
    operator = load_operator("add")
    for dtype, others in (("int32", 0), ("float32", 3)):
        spec = TensorSpec(dtype, (2, 4))
        maker = TrialMaker(operator, Case((spec, spec), (spec,)), None, None, {}, 0)  # type: ignore[arg-type]
        want = np.ones((2, 4), numpy_dtype(dtype))
        got = want.copy()
        got[0, 1] = 1 << 20
        assert maker._wrong(got, want, np.zeros(want.shape, np.float32)).sum() == 1 + others
