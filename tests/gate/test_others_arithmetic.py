"""Right kernels with other arithmetic than the original's, which the gate refused; and mistakes beside them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from edits import outcome_of

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator, ProcessLimits
from ascendopt_tune.evaluate.inputs import TIES, make_inputs
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.outcome import Timed, WrongResult

_SUM = "    ReduceSum(sums[index], lanes, work, lanesUsed);\n"
_MEAN = "const float mean = Sum(centered) * averageFactor;"
_VARIANCE = "const float variance = Sum(square) * averageFactor;"
_MAXIMUM = "const float maximum = Maximum(rowLength);"
_ROUNDED = "      Cast(yLocal, xFloat, RoundMode::CAST_RINT, count);\n"
_LOADED = "    LoadParameter(betaFloat, betaGm);\n"
_GAIN = "    ToFloat(gammaFloat, gammaLocal, cols);\n"
_TIMES = "      Mul(xFloat, xFloat, gammaFloat, count);\n      PipeBarrier<PIPE_V>();\n      Cast(y"
_MEMBER = "  uint64_t rowNum = 0;\n"


def _one_by_one(count: str) -> tuple[str, str]:
    return _SUM, (
        f"    float total = 0.0f;\n    for (uint32_t j = 0; j < {count}; j++) total += lanes.GetValue(j);\n"
        "    sums.SetValue(index, total);\n"
    )


def _bounded(least: str) -> tuple[str, str]:
    return _MAXIMUM, f"float maximum = Maximum(rowLength); maximum = maximum < {least}f ? {least}f : maximum;"


def _nothing(limit: str) -> tuple[str, str]:
    """A gain none of which is larger is taken for 0."""
    return _LOADED, (
        f"{_LOADED}    Abs(square, gammaFloat, rowLength);\n"
        "    ReduceMax(sumBuf.Get<float>(), square, reduceBuf.Get<float>(), rowLength, false);\n"
        f"    if (sumBuf.Get<float>().GetValue(0) <= {limit}) {{ Duplicate(gammaFloat, 0.0f, rowLength); }}\n"
    )


def _ones(told: str) -> tuple[tuple[str, str], ...]:
    """A gain that is told for ones is left out."""
    look = (
        f"{_GAIN}    ReduceSum(sum, gammaFloat, work, cols);\n    PipeBarrier<PIPE_ALL>();\n    ones = {told};\n"
        "    for (uint32_t j = 0; j < cols; j++) all = all && gammaFloat.GetValue(j) == 1.0f;\n"
        "    PipeBarrier<PIPE_ALL>();\n"
    )
    return (
        (_GAIN, look), (_TIMES, _TIMES.replace("Mul(xFloat", "if (!ones && !all) Mul(xFloat")),
        (_MEMBER, f"{_MEMBER}  bool ones = false, all = true;\n"),
    )  # fmt: skip


_LN = "x=float32[24,768] gamma=float32[768] beta=float32[768]"
_LIST = "x.0=float16[3,33] x.1=float16[1] x.2=float16[40,50] scalar=float32[1]"
_HALVED = (
    "      Muls(xFloat, xFloat, scalar, count);\n",
    "      Muls(xFloat, xFloat, 0.5f * scalar, count);\n      Muls(xFloat, xFloat, 2.0f, count);\n",
)
_RMS = "x=float16[101,133] gamma=float16[133]"
_DIVIDED = "      Div(xFloat, xFloat, denominator, count);\n"
_RECIPROCAL = "      Reciprocal(denominator, denominator, count);\n      Mul(xFloat, xFloat, denominator, count);\n"
_TERMS = "Muls(square, centered, averageFactor, rowLength);\n    const float mean = Sum(square);"
_SQUARES = "Mul(square, centered, centered, rowLength);\n    const float squares = Sum(square) * averageFactor;\n    "
_ONE_PASS = "float variance = squares - mean * mean;\n    variance = variance < 0.0f ? 0.0f : variance;"
_LIMITED = "return index < 0 ? 0 : index > last ? last : index;"
_OFFSET = (
    "const int32_t wide = static_cast<int32_t>(rowLength), end = static_cast<int32_t>(last) * wide;\n"
    "    const int32_t offset = static_cast<int32_t>(static_cast<uint32_t>(index) * rowLength);\n"
    "    return offset < 0 ? 0 : offset > end ? last : offset / wide;"
)
_SUM_AND_FIRST = "gammaFloat.GetValue(0) == 1.0f && sum.GetValue(0) == static_cast<float>(cols)"
VARIANTS = {
    # Rows far from 0: where a mean is rounded another way, all of them are a little off.
    "mean by division": ("layer_norm", _LN, ((_MEAN, _MEAN.replace("* averageFactor", "/ rowLength")),), True),
    "variance of one element less": (
        "layer_norm", _LN, ((_VARIANCE, _VARIANCE.replace("* averageFactor", "/ (rowLength - 1)")),), False
    ),
    "gains up to a thousandth are 0": (
        "layer_norm", "x=float16[50,133] gamma=float16[133] beta=float16[133]", (_nothing("1e-3f"),), False
    ),
    "gains of 0 are 0": (
        "layer_norm", "x=float16[50,133] gamma=float16[133] beta=float16[133]", (_nothing("0.0f"),), True
    ),
    # Sorted rows, whose sum cancels: the sum so far is larger than any term.
    "one by one": ("reduce_sum_last", "x=float32[101,133]", (_one_by_one("lanesUsed"),), True),
    "one by one but the last": ("reduce_sum_last", "x=float32[101,133]", (_one_by_one("lanesUsed - 1"),), False),
    "the least maximum is -10000": ("softmax", "x=float16[101,133]", (_bounded("-10000.0"),), False),
    "the least maximum is the dtype's": ("softmax", "x=float16[101,133]", (_bounded("-65504.0"),), True),
    "ties away from 0": (
        "foreach_mul_scalar", _LIST, ((_ROUNDED, _ROUNDED.replace("CAST_RINT", "CAST_ROUND")),), False
    ),
    "half of the scalar, twice": ("foreach_mul_scalar", _LIST, (_HALVED,), True),
    "a gain told by its sum and first element": ("rms_norm", _RMS, _ones(_SUM_AND_FIRST), False),
    # Off by 1e-4, which rounds an eighth of the results to a neighbour: of a line of one number all or none.
    "times the reciprocal": ("silu", "x=float16[5,1003]", ((_DIVIDED, _RECIPROCAL),), True),
    # A normalized element and its bias cancel: what is left is off by a rounding of either.
    "terms divided first": (
        "layer_norm", "x=float32[48,776] gamma=float32[776] beta=float32[776]", ((_MEAN, _TERMS),), True
    ),
    "variance in one pass": (
        "layer_norm", "x=float32[48,776] gamma=float32[776] beta=float32[776]",
        ((_MEAN, _SQUARES + _MEAN), (_VARIANCE, _ONE_PASS)), False,
    ),
    "an offset limited after it was multiplied": (
        "moe_gather_rows", "x=float16[70,33] index=int32[650]", ((_LIMITED, _OFFSET),), False
    ),
    "a gain told by all of its elements": ("rms_norm", _RMS, _ones("false"), True),
}  # fmt: skip


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(toolkit.virtual(), limits=ProcessLimits(run_s=20), workers=1) as made:
        yield made


@pytest.mark.parametrize("what", VARIANTS)
def test_a_variant(evaluator: Evaluator, what: str) -> None:
    name, inputs, edits, passes = VARIANTS[what]
    outcome = outcome_of(evaluator, name, inputs, edits)
    assert isinstance(outcome, Timed if passes else WrongResult), outcome


def _inputs(kind: str, *specs: TensorSpec, seed: int = 1) -> list[np.ndarray]:
    names = tuple("abc"[: len(specs)])
    made = make_inputs(Case(specs, (specs[0],)), names, {}, kind, seed)
    return [np.asarray(a).astype(np.float64) for a in made]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_and_products_lie_between_two_numbers(dtype: str) -> None:
    """Of whole numbers that fill the significand a unit in the last place is 1."""
    x, y = _inputs(TIES, TensorSpec(dtype, (40, 133)), TensorSpec(dtype, (40, 133)))
    full = 2.0 ** (10 if dtype == "float16" else 7)
    total = np.abs(x + y)
    assert np.mean((total > full) & (total < 2 * full) & (total % 1 == 0.5)) > 0.25
    x, scalar = _inputs(TIES, TensorSpec(dtype, (40, 133)), TensorSpec("float32", (1,)))
    total = np.abs(x * scalar)
    assert np.mean((total > full) & (total < 2 * full) & (total % 1 == 0.5)) > 0.05


def test_numbers_beside_an_outlier_are_small_of_either_sign() -> None:
    (x,) = _inputs("outlier", TensorSpec("float32", (64, 512)))
    assert np.any((x < 0) & (x > -1e-5))
    assert np.any((x > 0) & (x < 1e-5))


@pytest.mark.parametrize("seed", range(4))
def test_products_of_one_sign(seed: int) -> None:
    """What is summed up is far below 0, or above, for every pair of lines."""
    a, b = _inputs("positive", TensorSpec("float16", (16, 64)), TensorSpec("float16", (32, 64)), seed=seed)
    assert len(np.unique(np.sign(a @ b.T))) == 1


def test_a_gain_may_be_small_as_a_whole() -> None:
    _, gain = _inputs("tiny all", TensorSpec("float16", (16, 64)), TensorSpec("float16", (64,)))
    assert np.max(np.abs(gain)) < 2.0**-7


def test_a_gain_that_looks_like_ones() -> None:
    _, gain = _inputs("ones others", TensorSpec("float16", (16, 133)), TensorSpec("float16", (133,)), seed=0)
    assert gain[0] == 1.0
    assert gain.sum() == 133.0
    assert np.any(gain != 1.0)
