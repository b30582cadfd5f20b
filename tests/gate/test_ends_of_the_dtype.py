"""Gains, biases and lines at the end of what a dtype holds; and where functions bend, a constant's fourth digit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from edits import outcome_of

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.accuracy import LineErrors, differences
from ascendopt_tune.evaluate.evaluator import Evaluator, ProcessLimits
from ascendopt_tune.evaluate.inputs import make_inputs, schedule
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.outcome import Timed, WrongResult

_MAXIMUM = "        const float maximum = Maximum(rowLength);"
_BETA = "    LoadParameter(betaFloat, betaGm);\n"
_GAMMA = "    ToFloat(gammaFloat, gammaLocal, cols);\n"
_SOFTMAX, _LN = "x=float16[101,133]", "x=float16[50,133] gamma=float16[133] beta=float16[133]"
_RMS = "x=bfloat16[50,133] gamma=bfloat16[133]"


def _bounded(place: str, call: str, before: bool = False) -> tuple[str, str]:
    text = f"        {call}\n        PipeBarrier<PIPE_V>();\n"
    return place, f"{text}{place}" if before else f"{place}{text}"


def _row(call: str) -> tuple[str, str]:
    return _bounded(_MAXIMUM, call, before=True)


VARIANTS = {
    "a line of at most 60000": ("softmax", _SOFTMAX, _row("Mins(rowFloat, rowFloat, 60000.0f, rowLength);"), False),
    "a line of at most 65504": ("softmax", _SOFTMAX, _row("Mins(rowFloat, rowFloat, 65504.0f, rowLength);"), True),
    "a line of at least -60000": ("softmax", _SOFTMAX, _row("Maxs(rowFloat, rowFloat, -60000.0f, rowLength);"), False),
    "a bias of at most 60000": (
        "layer_norm", _LN, _bounded(_BETA, "Mins(betaFloat, betaFloat, 60000.0f, rowLength);"), False
    ),
    "a bias of at most 65504": (
        "layer_norm", _LN, _bounded(_BETA, "Mins(betaFloat, betaFloat, 65504.0f, rowLength);"), True
    ),
    "a gain of at least -65504": (
        "rms_norm", _RMS, _bounded(_GAMMA, "Maxs(gammaFloat, gammaFloat, -65504.0f, cols);"), False
    ),
    "a gain of at least -3e38": (
        "rms_norm", _RMS, _bounded(_GAMMA, "Maxs(gammaFloat, gammaFloat, -3e38f, cols);"), True
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(toolkit.virtual(), limits=ProcessLimits(run_s=20), workers=1) as made:
        yield made


@pytest.mark.parametrize("what", VARIANTS)
def test_limits_below_the_end_of_the_dtype(evaluator: Evaluator, what: str) -> None:
    name, inputs, edit, passes = VARIANTS[what]
    outcome = outcome_of(evaluator, name, inputs, [edit])
    assert isinstance(outcome, Timed if passes else WrongResult), outcome


def test_others_reach_the_end_of_the_dtype() -> None:
    case = Case((TensorSpec("float16", (16, 133)), TensorSpec("float16", (133,))), (TensorSpec("float16", (16, 133)),))
    assert "far others" in schedule(case, ("x", "gamma"), {}, 30)
    x, gain = (np.asarray(a, np.float64) for a in make_inputs(case, ("x", "gamma"), {}, "far others", 3))
    assert np.abs(x).max() < 10
    assert np.any((gain > 61000) & (gain < 65505))
    assert np.any(gain < -61000)
    assert np.mean(np.abs(gain) < 10) > 0.5


@pytest.mark.parametrize(("constant", "found"), [(0.0447, True), (0.044715, False)])
def test_a_constant_of_four_digits_shows_in_a_line(constant: float, found: bool) -> None:
    """Of GELU's tanh form, in half: the mean error of a line in which the function bends is too large."""

    def gelu(x: np.ndarray, cubed: float) -> np.ndarray:
        return x / (1 + np.exp(-1.5957691216 * (x + cubed * x**3)))

    case = Case((TensorSpec("float16", (64, 512)),), (TensorSpec("float16", (64, 512)),))
    worst = 0.0
    for seed in range(3):
        (x,) = (np.asarray(a).astype(np.float64) for a in make_inputs(case, ("x",), {}, "lines", seed))
        with np.errstate(over="ignore"):
            want, got = gelu(x, 0.044715).astype(np.float16), gelu(x, constant).astype(np.float16)
        leeway = np.zeros(want.shape, np.float32)
        lines, places = LineErrors(want, leeway), np.flatnonzero(want != got)
        errors = differences(got.reshape(-1)[places], want.reshape(-1)[places], leeway.reshape(-1)[places])
        assert errors is not None
        lines.add(places, errors)
        worst = max(worst, lines.worst(got))
    assert (worst > 0) is found
