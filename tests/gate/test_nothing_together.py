"""A tile of a sum that is taken for nothing, because samples of both inputs are 0 (or 1); and who looks at all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator, ProcessLimits
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.outcome import Timed, WrongResult
from ascendopt_tune.sources.registry import load_operator

_ADD = "    Add(zLocal, xLocal, yLocal, count);\n"
_ENDS, _THREE = ("0", "count - 1"), ("0", "count / 2", "count - 1")


def _all_are(value: int, places: tuple[str, ...]) -> str:
    return " && ".join(
        f"static_cast<float>({t}.GetValue({p})) == {value}" for t in ("xLocal", "yLocal") for p in places
    )


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(toolkit.virtual(), limits=ProcessLimits(run_s=20), workers=1) as made:
        yield made


@pytest.mark.parametrize(
    ("dtype", "before", "condition", "value", "passes"),
    [
        pytest.param("float16", "", _all_are(0, _ENDS), 0, False, id="ends are 0"),
        pytest.param("int32", "", _all_are(0, _THREE), 0, False, id="whole numbers, three are 0"),
        pytest.param("float32", "", _all_are(1, _ENDS), 2, False, id="ends are 1"),
        pytest.param(
            "float16", f"bool none = true; for (uint32_t i = 0; i < count; i++) none = none && {_all_are(0, ('i',))};",
            "none", 0, True, id="all are 0",
        ),
    ],
)  # fmt: skip
def test_a_tile_that_is_taken_for_nothing(
    evaluator: Evaluator, dtype: str, before: str, condition: str, value: int, passes: bool
) -> None:
    operator = load_operator("add")
    text = operator.baseline.kernel[operator.kernel_main]
    assert text.count(_ADD) == 1
    short = f"Duplicate(zLocal, static_cast<T>({value}), count);"
    changed = text.replace(
        _ADD, f"    PipeBarrier<PIPE_ALL>();\n    {before}\n    if ({condition}) {{ {short} }} else {{\n{_ADD}    }}\n"
    )
    spec = TensorSpec(dtype, (64, 1000))
    gate = Gate(operator, Case((spec, spec), (spec,)), evaluator)
    outcome = gate.evaluate(operator.baseline.with_kernel(operator.kernel_main, changed)).outcome
    assert isinstance(outcome, Timed if passes else WrongResult), outcome
