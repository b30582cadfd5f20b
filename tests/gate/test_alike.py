"""Lines that begin as the one before, and parts of lines that sum to nothing or look like ones: taken for what they
aren't; and right twins, which look at all of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator, ProcessLimits
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.evaluate.patterns import balanced
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.outcome import Timed, WrongResult
from ascendopt_tune.sources.registry import load_operator

_ALL = "PipeBarrier<PIPE_ALL>();"


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(toolkit.virtual(), limits=ProcessLimits(run_s=20), workers=1) as made:
        yield made


def _outcome(
    evaluator: Evaluator, name: str, case: tuple[TensorSpec, TensorSpec], edits: list[tuple[str, str]]
) -> object:
    """Of an operator with one input, through the gate."""
    operator = load_operator(name)
    text = operator.baseline.kernel[operator.kernel_main]
    for old, new in edits:
        assert text.count(old) == 1
        text = text.replace(old, new)
    gate = Gate(operator, Case(case[:1], case[1:]), evaluator)
    return gate.evaluate(operator.baseline.with_kernel(operator.kernel_main, text)).outcome


@pytest.mark.parametrize(
    ("dtype", "shape", "looked_at", "passes"),
    [
        ("float16", (401, 133), "rowLength / 2", False),
        ("float16", (401, 133), "rowLength - 8", False),
        ("float16", (401, 133), "rowLength", True),
        ("float32", (150, 200), "rowLength - 8", False),
    ],
)
def test_the_sum_of_the_row_before(
    evaluator: Evaluator, dtype: str, shape: tuple[int, int], looked_at: str, passes: bool
) -> None:
    spec = TensorSpec(dtype, shape)
    sum_ = "        const float sum = Sum(rowLength);\n"
    begin = f"""      {_ALL}
      bool same = have;
      for (uint32_t j = 0; j < {looked_at}; j++)
        same = same && kept[j] == static_cast<float>(xLocal.GetValue(i * tileCols + j));
      for (uint32_t j = 0; j < rowLength; j++) kept[j] = static_cast<float>(xLocal.GetValue(i * tileCols + j));
      {_ALL}
"""
    memo = "const float sum = same ? last : Sum(rowLength); last = sum; have = true;\n"
    members = "  uint64_t rowNum = 0;\n"
    edits = [(sum_, begin + memo), (members, f"{members}  float kept[256], last = 1.0f; bool have = false;\n")]
    outcome = _outcome(evaluator, "softmax", (spec, spec), edits)
    assert isinstance(outcome, Timed if passes else WrongResult), outcome


@pytest.mark.parametrize(
    ("told", "passes"),
    [
        pytest.param("float z = 0; EACH z += a.GetValue(r + j); if (z == 0) { EACH b.SetValue(r + j, 0.0f); }", False,
                     id="gates that sum to 0"),
        pytest.param("float z = 0; EACH z += b.GetValue(r + j); if (z == 0) { EACH b.SetValue(r + j, 0.0f); }", False,
                     id="second half that sums to 0"),
        pytest.param("bool all = true; EACH all = all && b.GetValue(r + j) == 0; "
                     "if (all) { EACH b.SetValue(r + j, 0.0f); }", True, id="second half of zeros"),
        pytest.param("if (b.GetValue(r) == 1 && b.GetValue(r + 66) == 1 && b.GetValue(r + 132) == 1) "
                     "{ EACH b.SetValue(r + j, 1.0f); }", False, id="three ones for all"),
    ],
)  # fmt: skip
def test_a_half_of_a_line(evaluator: Evaluator, told: str, passes: bool) -> None:
    after = "      Cast(b, bLocal, RoundMode::CAST_NONE, count);\n"
    each = "for (uint32_t j = 0; j < 133; j++)"  # of rows that begin at blocks
    loop = f"for (uint32_t r = 0; r < count; r += 144) {{ {told.replace('EACH', each)} }}"
    change = f"      {_ALL}\n      {loop}\n      {_ALL}\n"
    case = TensorSpec("float16", (40, 266)), TensorSpec("float16", (40, 133))
    outcome = _outcome(evaluator, "swiglu", case, [(after, after + change)])
    assert isinstance(outcome, Timed if passes else WrongResult), outcome


@pytest.mark.parametrize("length", [66, 99, 132, 133, 266])
def test_parts_of_balanced_lines_sum_to_nothing(length: int) -> None:
    values = balanced((7, length), 64, np.random.default_rng(0))
    for parts in (p for p in (1, 2, 3, 4) if length % p == 0):
        assert not values.reshape(7, parts, -1).sum(-1).any()
    assert np.count_nonzero(values) > values.size * 0.9
