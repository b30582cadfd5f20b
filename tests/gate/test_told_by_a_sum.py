"""Classes of faults that the gate accepted, planted once more from outside, in small operators; and right twins."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.compare import Tolerance, mismatch
from ascendopt_tune.evaluate.evaluator import Evaluator, ProcessLimits
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.evaluate.inputs import ALL_BALANCED, make_inputs
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.outcome import Timed, WrongResult
from ascendopt_tune.sources.registry import load_operator

_ADD = "    Add(zLocal, xLocal, yLocal, count);\n"
_ALL = "    PipeBarrier<PIPE_ALL>();\n"
_EACH = "for (uint32_t i = 0; i < count; i++)"
_X, _Y = (f"static_cast<float>({name}Local.GetValue(i))" for name in "xy")


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(toolkit.virtual(), limits=ProcessLimits(run_s=20), workers=1) as made:
        yield made


def _outcome(evaluator: Evaluator, shape: tuple[int, ...], dtype: str, after: str) -> object:
    """Of ``add`` with statements behind its sum, through the whole gate."""
    operator = load_operator("add")
    text = operator.baseline.kernel[operator.kernel_main]
    assert text.count(_ADD) == 1
    spec = TensorSpec(dtype, shape)
    gate = Gate(operator, Case((spec, spec), (spec,)), evaluator)
    pair = operator.baseline.with_kernel(operator.kernel_main, text.replace(_ADD, f"{_ADD}{_ALL}    {after}\n{_ALL}"))
    outcome = gate.evaluate(pair).outcome
    return gate.confirm(pair).outcome if isinstance(outcome, Timed) else outcome


_ONLY_Y = f"{_EACH} zLocal.SetValue(i, yLocal.GetValue(i));"


@pytest.mark.parametrize(
    ("shape", "dtype", "after", "passes"),
    [
        pytest.param((40, 133), "float16", f"float all = 0; {_EACH} all += {_X}; if (all == 0.0f) {_ONLY_Y}", False,
                     id="a tile whose sum is 0"),
        pytest.param((40, 133), "int32", f"int32_t all = 0; {_EACH} all += xLocal.GetValue(i); if (all == 0) {_ONLY_Y}",
                     False, id="a tile of whole numbers whose sum is 0"),
        pytest.param((40, 133), "float16",
                     f"float most = -1e30f; {_EACH} most = {_X} > most ? {_X} : most; if (most == 0.0f) {_ONLY_Y}",
                     False, id="a tile whose maximum is 0"),
        pytest.param((40, 133), "float16",
                     f"bool none = true; {_EACH} none = none && {_X} == 0.0f; if (none) {_ONLY_Y}", True,
                     id="a tile of zeros"),
        pytest.param((6, 20), "float16",
                     f"{_EACH} if ({_X} != {_X} && ({_Y}) - ({_Y}) != ({_Y}) - ({_Y}) && {_Y} == {_Y}) "
                     "zLocal.SetValue(i, yLocal.GetValue(i));", False, id="NaN lost beside an infinity"),
        pytest.param((40, 133), "int32",
                     f"{_EACH} {{ const int32_t s = zLocal.GetValue(i); if (s >= 32768 && s < 65536) "
                     "zLocal.SetValue(i, s - 65536); }", False, id="sums of 16 bits"),
    ],
)  # fmt: skip
def test_what_one_number_tells(
    evaluator: Evaluator, shape: tuple[int, ...], dtype: str, after: str, passes: bool
) -> None:
    outcome = _outcome(evaluator, shape, dtype, after)
    assert isinstance(outcome, Timed if passes else WrongResult), outcome


def test_powers_of_two_by_their_exponent(evaluator: Evaluator) -> None:
    """A product that adds exponents is right but for 0, for what is subnormal, and at the ends."""
    operator = load_operator("foreach_mul_scalar")
    text = operator.baseline.kernel[operator.kernel_main]
    product = "      Muls(yLocal, xLocal, scalar, count);\n"
    assert text.count(product) == 1
    shift = (
        f"{product}      const uint32_t word = *reinterpret_cast<const uint32_t*>(&scalar);\n"
        f"      if ((word & 0x7FFFFF) == 0 && word != 0) {{\n{_ALL}"
        f"        {_EACH} {{ const float e = xLocal.GetValue(i); uint32_t b = *reinterpret_cast<const uint32_t*>(&e);\n"
        "          b = (b ^ (word & 0x80000000)) + ((word & 0x7F800000) - 0x3F800000);\n"
        f"          yLocal.SetValue(i, *reinterpret_cast<const float*>(&b)); }}\n{_ALL}      }}\n"
    )
    spec = TensorSpec("float32", (40, 50))
    gate = Gate(operator, Case(((spec,), TensorSpec("float32", (1,))), ((spec,),)), evaluator)
    pair = operator.baseline.with_kernel(operator.kernel_main, text.replace(product, shift))
    outcome = gate.evaluate(pair).outcome
    assert isinstance(outcome, WrongResult), outcome


def test_a_truth_value_is_0_or_1() -> None:
    """The original's own byte is no fault of a candidate's."""
    want, got = (np.array(b, np.uint8).view(bool) for b in ([0, 1, 1, 1], [0, 1, 2, 255]))
    told = mismatch("y", got, want, Tolerance())
    assert told is not None
    assert told.startswith("2 of 4 elements of output y (bool[4]) are wrong")
    assert mismatch("y", want, got, Tolerance()) is None  # 1 where the original wrote another one
    assert mismatch("y", got, got.copy(), Tolerance()) is None


def _both(dtype: str, shape: tuple[int, ...], kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    spec = TensorSpec(dtype, shape)
    one, other = make_inputs(Case((spec, spec), (spec,)), ("x", "y"), {}, kind, seed)
    return np.asarray(one), np.asarray(other)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("dtype", "fewer"), [("int32", "float32"), ("int64", "float64"), ("int64", "int32"), ("int32", "int16")]
)
def test_whole_numbers_meet_their_neighbours(dtype: str, fewer: str, seed: int) -> None:
    """Who compares them in fewer bits takes them for equal."""
    x, y = _both(dtype, (16, 512), "lines", seed)
    assert np.any((x != y) & (x.astype(fewer) == y.astype(fewer)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_floats_meet_their_neighbours(dtype: str) -> None:
    x, y = _both(dtype, (16, 512), "lines", 0)
    apart = x.view(f"i{x.itemsize}").astype(np.int64) - y.view(f"i{y.itemsize}").astype(np.int64)
    assert np.count_nonzero(np.abs(apart) == 1) > 16


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_balanced_numbers(dtype: str) -> None:
    """Tiles that begin at an even place have the sum 0; below, none has both signs."""
    x, y = (a.astype(np.float64) for a in _both(dtype, (64, 96), ALL_BALANCED, 5))
    for one in (x, y):
        assert not np.any(one[:32, 32:64].sum(-1))
        assert np.count_nonzero(one[:32]) > 0.9 * one[:32].size
        assert np.min(one[32:]) == 0.0 or np.max(one[32:]) == 0.0
        assert np.any(one[32:])


def test_a_domain_s_bounds_are_met() -> None:
    spec = TensorSpec("float32", (8, 512))
    settings = {"domain": {"x": {"low": 0.0, "high": 37.0}}}
    (x,) = make_inputs(Case((spec,), (spec,)), ("x",), settings, "edges", 1)
    assert np.any(np.asarray(x) == 37.0)
    assert np.any(np.asarray(x) == 0.0)
