"""What is expected: the reference's formula in float64, whatever precision the reference itself chose."""

from __future__ import annotations

import dataclasses

import ml_dtypes
import numpy as np
import pytest

import ascendopt_tune  # noqa: F401  # isort: skip  (before torch, which loads torch_npu)
import torch

from ascendopt_tune.evaluate.accuracy import differences
from ascendopt_tune.evaluate.compare import tolerance, wrong_elements
from ascendopt_tune.evaluate.inputs import TIES
from ascendopt_tune.evaluate.reference import _rounded, formula
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.operator import Operator
from ascendopt_tune.sources.arguments import Array, numpy_dtype
from ascendopt_tune.sources.registry import load_operator


def close(plain: Array, exact: Array, leeway: Array) -> Array:
    return np.asarray(~wrong_elements(exact, plain, tolerance("float32", {}), leeway))


def expected(operator: Operator, *inputs: Array, dtype: str = "float32") -> tuple[Array, Array]:
    case = Case((), (TensorSpec(dtype, inputs[0].shape),))
    found = formula(operator, case, inputs, 0, close)
    (values,), (leeway,) = found.expected, found.leeway
    assert isinstance(values, np.ndarray)
    assert isinstance(leeway, np.ndarray)
    return values, leeway


def operator_of(reference: object) -> Operator:
    return dataclasses.replace(load_operator("silu"), reference=reference)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_it_is_the_formula_in_float64_rounded_once(dtype: str) -> None:
    x = np.random.default_rng(0).standard_normal((7, 33)).astype(numpy_dtype(dtype))
    values, leeway = expected(load_operator("silu"), x, dtype=dtype)
    wide = x.astype(np.float64)
    np.testing.assert_array_equal(values, (wide / (1 + np.exp(-wide))).astype(numpy_dtype(dtype)))
    relative = leeway / np.abs(wide / (1 + np.exp(-wide)))
    assert np.median(relative) > 1e-8  # what float32 arithmetic loses, and not much more
    assert relative.max() < 1e-5


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_a_result_without_axes(dtype: str) -> None:
    x = np.array([0.1, 0.2, 0.4], np.float32)
    case = Case((), (TensorSpec(dtype, ()),))
    mean = operator_of(lambda x: x.mean() * 15)
    (values,), (leeway,) = formula(mean, case, (x,), 0, close).expected, formula(mean, case, (x,), 0, close).leeway
    assert isinstance(values, np.ndarray)
    assert isinstance(leeway, np.ndarray)
    assert values.shape == leeway.shape == ()
    assert values == (np.float32(3.5) if dtype == "float32" else 3)
    assert leeway >= 0


def test_float32_inside_a_reference_is_no_limit() -> None:
    x = np.float32([[1.0, 1e-9, -1.0]])
    plain = operator_of(lambda x: x.to(torch.float32).sum(-1, keepdim=True).expand(1, 3).to(dtype=torch.float32))
    values, leeway = expected(plain, x)
    assert abs(values[0, 0] - 1e-9) < 1e-15
    assert leeway[0, 0] > 1e-8  # the sum cancels: nobody can be held to it


def test_where_the_reference_means_its_precision_it_is_taken_at_its_word() -> None:
    x = np.float32([1.0, 2.0, 3.0])
    lowest = operator_of(lambda x: torch.where(x > 1.5, x, torch.finfo(x.dtype).min))
    values, leeway = expected(lowest, x)
    np.testing.assert_array_equal(values, np.float32([np.finfo(np.float32).min, 2, 3]))
    assert np.isnan(leeway).tolist() == [True, False, False]


def test_integers_on_a_half_may_be_rounded_to_either_side() -> None:
    x = np.float32([0.5, 1.5, 0.3, -2.5, 2.4999])
    rounded = operator_of(lambda x: (x.float() * 1.0).round().to(torch.int8))
    values, leeway = expected(rounded, x, dtype="int8")
    assert values.tolist() == [0, 2, 0, -2, 2]
    assert leeway.tolist() == [1, 1, 0, 1, 0]


def test_a_reference_that_looks_at_bits_is_taken_as_it_is() -> None:
    x = np.asarray([1.0, 2.0], ml_dtypes.bfloat16)
    signs = operator_of(lambda x: (x.view(torch.int16) & 0x7F80).view(torch.bfloat16))
    values, leeway = expected(signs, x, dtype="bfloat16")
    np.testing.assert_array_equal(values, x)
    assert not leeway.any()


@pytest.mark.parametrize("reference", [lambda x: x, lambda x: x.mul_(1), lambda x: x[:]])
def test_a_reference_may_return_its_input_or_change_it(reference: object) -> None:
    """All runs of a reference have their inputs in the same memory."""
    x = np.random.default_rng(1).standard_normal((40, 1000)).astype(np.float16)
    values, leeway = expected(operator_of(reference), x, dtype="float16")
    np.testing.assert_array_equal(values, x)
    assert 0 < leeway.max() < 2.0**-18
    assert np.count_nonzero(leeway) > leeway.size / 2


def test_a_list_of_inputs_is_as_exact_as_one() -> None:
    rng = np.random.default_rng(2)
    x, y = (rng.standard_normal((3, 5)).astype(np.float16) for _ in range(2))
    case = Case((), (TensorSpec("float16", (3, 5)),))
    found = formula(operator_of(lambda pair: pair[0] / pair[1]), case, ((x, y),), 0, close)
    assert found.exact
    np.testing.assert_array_equal(found.expected[0], (x.astype(np.float64) / y).astype(np.float16))


def test_float16_is_rounded_once() -> None:
    """Numbers of float16, what lies halfway between them, and next to that."""
    exact = np.arange(0, 0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    halves = np.append((exact[:-1] + exact[1:]) / 2, 65520.0)
    beside = [np.nextafter(halves, 0), np.nextafter(halves, 1e9), halves * (1 + 2.0**-30), halves * (1 - 2.0**-30)]
    every = np.concatenate([exact, halves, *beside, [1e9, 1e-300, np.inf, np.nan]])
    with np.errstate(over="ignore"):
        for wide in (every, -every):
            found = _rounded(wide, np.dtype(np.float16))
            np.testing.assert_array_equal(found.view(np.uint16), wide.astype(np.float16).view(np.uint16))


def test_leeway_of_a_sum_that_cancels_is_rarely_small_by_chance() -> None:
    """Rows of a few numbers whose sum is next to nothing: any order of adding them is off by some 2**-24 of them."""
    x = np.random.default_rng(3).standard_normal((4000, 3)).astype(np.float32)
    x[:, 2] = -(x[:, 0] + x[:, 1])
    case = Case((), (TensorSpec("float32", (4000,)),))
    (leeway,) = formula(operator_of(lambda x: x.sum(-1)), case, (x,), 0, close).leeway
    assert isinstance(leeway, np.ndarray)
    small = leeway < np.abs(x).max(-1) * 2.0**-24
    assert small.mean() < 0.04  # with the same change once up and once down it would be 0.12


@pytest.mark.parametrize("large", [1 << 20, 0])
def test_leeway_beside_a_mean_is_never_small_by_chance(monkeypatch: pytest.MonkeyPatch, large: int) -> None:
    """Rows far from 0: a number's own change and its mean's may cancel once, and then don't the other way."""
    monkeypatch.setattr("ascendopt_tune.evaluate.reference._LARGE", large)  # 0: one change alone
    x = (512 + np.random.default_rng(3).standard_normal((64, 768)) / 8).astype(np.float32)
    _, leeway = expected(operator_of(lambda x: x - x.mean(-1, keepdim=True)), x)
    assert leeway.min() > 512 * 2.0**-24  # one in 220 was below


@pytest.mark.parametrize(("dtype", "least"), [("float16", 2.0**-24), ("bfloat16", 2.0**-133)])
def test_halfway_but_for_less_than_float32_keeps_either_neighbour_will_do(dtype: str, least: float) -> None:
    """x * sigmoid(x) is x / 2 and a little more, which no float32 holds beside a half."""
    x = (np.arange(1, 6) * least).astype(numpy_dtype(dtype))
    values, leeway = expected(load_operator("silu"), x, dtype=dtype)
    low = (np.floor(x.astype(np.float64) / least / 2) * least).astype(values.dtype)  # every other one a whole step
    high = (np.ceil(x.astype(np.float64) / least / 2) * least).astype(values.dtype)
    for got in (low, high):
        errors = differences(got, values, leeway)
        assert errors is not None
        assert errors.max() < 1e-3
    two = (high.astype(np.float64) + 2 * least).astype(values.dtype)
    errors = differences(two, values, leeway)
    assert errors is not None
    assert np.max(errors) >= 1.0


def test_a_sum_moves_by_what_its_order_may_come_to() -> None:
    """Sorted numbers that cancel: the sum so far is much larger than any of them."""
    x = np.sort(np.random.default_rng(1).standard_normal((64, 128)).astype(np.float32), -1)
    x -= x.mean(-1, keepdims=True)
    total = operator_of(lambda x: x.sum(-1, keepdim=True).expand(64, 128))
    _, leeway = expected(total, x)
    off = np.abs(np.cumsum(x, -1, dtype=np.float32)[:, -1] - x.astype(np.float64).sum(-1))
    assert np.median(off / leeway[:, 0]) < 1
    assert np.all(leeway[:, 0] < 2.0**-21 * np.abs(x).sum(-1) + 2.0**-21)


def test_a_reference_that_counts_has_a_formula() -> None:
    """What is summed up may be bools, whose magnitudes torch doesn't know."""
    x = np.random.default_rng(1).standard_normal((8, 16)).astype(np.float32)
    share = operator_of(lambda x: x / (x > 0).sum(-1, keepdim=True, dtype=torch.float32))
    assert formula(share, Case((), (TensorSpec("float32", x.shape),)), (x,), 0, close).exact


@pytest.mark.parametrize(
    ("reference", "firm"),
    [
        (lambda x: x * 1.5, True),
        (lambda x: x + x / 2, True),
        (lambda x: x / (2 / 3 + 0 * x), False),  # somebody's reciprocal is rounded
        (lambda x: x * 1.5 * torch.sigmoid(x.abs() * 1e6 + 1e3), False),  # 1 by some approximations
    ],
)
def test_a_tie_is_firm_where_all_arithmetic_comes_to_it(reference: object, firm: bool) -> None:
    x = np.arange(1025, 1281).astype(np.float16)
    found = formula(operator_of(reference), Case((), (TensorSpec("float16", x.shape),)), (x,), 0, close, TIES)
    (leeway,) = found.leeway
    assert isinstance(leeway, np.ndarray)
    ties = (3 * x.astype(np.int64)) % 2 == 1
    assert np.all((leeway[ties] == -np.inf) == firm)
    assert np.all(leeway[~ties] >= 0)


def test_float32_leeway_of_several_inputs_is_rarely_small_by_chance() -> None:
    """Moves of a product and of what is added to it may cancel, and do so in the opposite direction as well."""
    x, gain, bias = np.random.default_rng(0).standard_normal((3, 200, 200)).astype(np.float32)
    _, leeway = expected(operator_of(lambda x, gain, bias: x * gain + bias), x, gain, bias)
    most = (2 * np.abs(x * gain) + np.abs(bias)) * 2.0**-21
    assert np.mean(leeway < most / 32) < 1 / 2000
    assert np.all(leeway < most * 1.01)


def _largest(values: list[float]) -> tuple[int, float]:
    """The index of the largest share, as expected, and its leeway."""
    x = np.float32([values])
    case = Case((), (TensorSpec("int32", (1,)),))
    found = formula(operator_of(lambda x: x.double().softmax(-1).argmax(-1).to(torch.int32)), case, (x,), 0, close)
    (index,), (leeway,) = found.expected, found.leeway
    assert isinstance(index, np.ndarray)
    assert isinstance(leeway, np.ndarray)
    return int(index[0]), float(leeway[0])


def test_which_of_several_is_the_largest_is_not_determined_where_float32_cannot_tell_them_apart() -> None:
    near = [-1e-8 * (k * 5 % 16) for k in range(16)]  # their exponentials are 1, or the number before
    index, leeway = _largest([*near[1:], near[0]])
    assert index == 15
    assert leeway >= 15


@pytest.mark.parametrize("values", [[0.0, 3.0, 2.9999, 1.0], [0.0, 3.0, 1.0, 3.0], [1.0] * 7])
def test_it_is_determined_where_float32_tells_and_of_equal_ones(values: list[float]) -> None:
    index, leeway = _largest(values)
    assert index == values.index(max(values))
    assert leeway <= 1
