"""The benchmark's cases at their full sizes, against the formulas of ``cann_ops/``: what is sped up there is right.

A battery: minutes for the small sizes, an hour or more for the large ones. The benchmark itself takes the baseline for
the specification.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import ascendopt_tune  # noqa: F401  # isort: skip  (before torch, which loads torch_npu)
from cann_ops.table import in_float64
from test_cann_ops import OPERATORS

from ascendopt_tune.bench import table
from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.evaluate.limits import ProcessLimits
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.settings import settings

CHIP = "ascend910b4"
#: Formulas that take too much memory; the tests of ``cann_ops/`` have small cases of them.
TOO_LARGE = {"math/spence": "a table of 4097 steps for every element"}
#: What rounding costs where a case has more elements, or larger images, than the tests': a product rounded to float16
#: (0.11 % of the elements off by a tolerance or two), a value beside a half, differences of neighbours times the width
#: of an image.
TOLERANCE = {
    "activation/gelu_quant": {"int8": {"atol": 1}},
    "math/addcmul": {"float16": {"ratio": 2e-3}},
    "image/multi_scale_deformable_attention_grad": {"float32": {"ratio": 2e-3}},
}
#: Not as the formula says in a corner that no case of this size leaves out; whose fault it is isn't known.
WRONG = {"math/triu": "the head of the first row is zero: 44 elements of 1 Mi"}


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    build_dir: Path = tmp_path_factory.mktemp("build")
    limits = ProcessLimits(run_s=600)
    with Evaluator(toolkit.virtual(), CHIP, limits, workers=1, build_dir=build_dir) as opened:
        yield opened


CASES = [one for one in table.read() if one.root == "cann-ops"]


@pytest.mark.battery
@pytest.mark.parametrize("one", [pytest.param(one, id=f"{one.path}-{one.size}") for one in CASES])
def test_the_baseline_is_right_at_this_size(
    one: table.BenchOperator, evaluator: Evaluator, request: pytest.FixtureRequest
) -> None:
    if settings().cann_ops is None:
        pytest.skip("ASCENDOPT_CANN_OPS is not set")
    if one.path in WRONG:  # strict: one that comes out right has to leave the list
        request.applymarker(pytest.mark.xfail(reason=WRONG[one.path], strict=True))
    if one.path in TOO_LARGE:
        pytest.skip(TOO_LARGE[one.path])
    operator = one.load()
    signature = evaluator.describe(operator).signature
    operator = one.with_settings(operator, signature)
    more = {"tolerance": TOLERANCE[one.path]} if one.path in TOLERANCE else {}
    reference = in_float64(OPERATORS[one.path][0].reference)
    operator = replace(operator, reference=reference, settings={**operator.settings, **more})
    outcome = Gate(operator, one.case, evaluator, signature=signature).evaluate(operator.baseline).outcome
    assert isinstance(outcome, Timed), f"{type(outcome).__name__}: {getattr(outcome, 'reason', outcome)}"
