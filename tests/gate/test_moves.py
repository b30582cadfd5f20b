"""Outputs whose elements are moved and not computed keep every bit, the sign of zeros included."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.compare import Tolerance, mismatch, wrong_elements
from ascendopt_tune.evaluate.evaluator import Evaluator, ProcessLimits
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.evaluate.moves import exact, negated, of_inputs, turned
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.outcome import Timed, WrongResult
from ascendopt_tune.sources.registry import load_operator

_CAST = "    Cast(maskHalf, maskLocal, RoundMode::CAST_NONE, wholeRepeats);\n"
_SUMMED = f"    Adds(xLocal, xLocal, static_cast<T>(0.0f), count);\n{_CAST}"
_TIMES_ONE = f"    Muls(xLocal, xLocal, static_cast<T>(1.0f), count);\n{_CAST}"
_X = TensorSpec("float16", (9, 133))
_CASE = Case((_X, TensorSpec("bool", (9, 133))), (_X,), (("value", 2.5),))


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(toolkit.virtual(), limits=ProcessLimits(run_s=20), workers=1) as made:
        yield made


@pytest.mark.parametrize("formula", [True, False], ids=["formula", "none"])
@pytest.mark.parametrize(("edit", "passes"), [(_SUMMED, False), (_TIMES_ONE, True)], ids=["plus 0", "times 1"])
def test_a_zero_that_loses_its_sign(evaluator: Evaluator, edit: str, passes: bool, formula: bool) -> None:
    """-0 + 0 is 0; -0 times 1 isn't."""
    operator = load_operator("masked_fill")
    operator = operator if formula else replace(operator, reference=None)
    text = operator.baseline.kernel[operator.kernel_main]
    assert text.count(_CAST) == 1
    gate = Gate(operator, _CASE, evaluator)
    assert isinstance(gate.evaluate(operator.baseline).outcome, Timed)
    pair = operator.baseline.with_kernel(operator.kernel_main, text.replace(_CAST, edit))
    outcome = gate.evaluate(pair).outcome
    assert isinstance(outcome, Timed if passes else WrongResult), outcome
    assert passes or "expected -0.0, got 0.0" in outcome.reason


_ROWS = np.random.default_rng(0).standard_normal((5, 64)).astype(np.float32)
_OTHERS = np.random.default_rng(1).standard_normal((5, 64)).astype(np.float32)


@pytest.mark.parametrize(
    ("function", "moves"),
    [
        (lambda x, y: x.T.copy(), True),
        (lambda x, y: x[[3, 0, 3]], True),
        (lambda x, y: np.where(np.arange(64) % 3 == 0, np.float32(0.5), x), True),
        (lambda x, y: np.pad(x, 2), True),
        (lambda x, y: np.concatenate([y, x]), True),
        (lambda x, y: -x, False),
        (lambda x, y: np.abs(x), False),
        (lambda x, y: np.maximum(x, 0), False),
        (lambda x, y: np.maximum(x, y), False),
        (lambda x, y: np.sort(x, -1), False),
        (lambda x, y: x.max(-1), False),
        (lambda x, y: np.clip(x, -1, 1), False),
        (lambda x, y: x + y, False),
        (lambda x, y: x * np.float32(2), False),
        (lambda x, y: x.astype(np.float16), False),
        (lambda x, y: np.zeros_like(x), False),
    ],
    ids=["transposed", "gathered", "filled", "padded", "joined", "negated", "magnitudes", "relu", "larger of two",
         "sorted", "largest", "clamped", "sums", "doubled", "rounded", "nothing"],
)  # fmt: skip
def test_what_moves_is_told_by_what_the_original_does(
    function: Callable[[np.ndarray, np.ndarray], np.ndarray], moves: bool
) -> None:
    inputs = [_ROWS, _OTHERS]
    before, after = function(*inputs), function(*negated(inputs, [False, False]))
    assert (of_inputs(before, inputs) and turned(before, after, inputs)) is moves


def test_inputs_that_decide_about_the_tiling_stay() -> None:
    x, bf = _ROWS, _ROWS.astype(ml_dtypes.bfloat16)
    kept, turned_, whole = negated([x, (bf, bf), np.arange(3)], [True, False, False])
    assert kept is x
    assert all(np.array_equal(t, -bf) for t in turned_)
    assert np.array_equal(whole, np.arange(3))


def test_nothing_else_will_do() -> None:
    want = np.array([-0.0, 0.0, 1.0, np.nan, 3.0], np.float32)
    leeway = exact(want, np.array([0, 0, 0, 0, np.inf], np.float32))
    allowed = Tolerance(1e-3, 1e-3, 0.5)
    other_nan = np.array([0x7FC00001], np.uint32).view(np.float32)[0]
    assert mismatch("y", np.array([-0.0, 0.0, 1.0, other_nan, 7.0], np.float32), want, allowed, None, leeway) is None
    for k, value in ((0, 0.0), (1, -0.0), (2, np.nextafter(np.float32(1), np.float32(2)))):
        got = want.copy()
        got[k] = value
        assert mismatch("y", got, want, allowed, None, leeway) is not None
        assert list(np.flatnonzero(wrong_elements(got, want, allowed, leeway))) == [k]
    assert mismatch("y", np.zeros(1, np.float32), -np.zeros(1, np.float32), Tolerance(), None, None) is None
