"""Operators of cann-ops and ops-nn that call SoftmaxGrad, unmodified, against formulas written here.

As test_cann_ops.py; ops-nn is found through ``ASCENDOPT_OPS_NN``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import ascendopt_tune  # noqa: F401  # isort: skip  (before torch, which loads torch_npu)
from cann_ops.table import FLOATS, Row, arguments, in_float64
from test_cann_ops import check, settings_of

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case
from ascendopt_tune.nouns.operator import Operator, Signature
from ascendopt_tune.nouns.outcome import Hazard
from ascendopt_tune.settings import settings
from ascendopt_tune.sources.project import load_project


def softmax_grad(y: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    return (grad - (grad * y).sum(-1, keepdim=True)) * y


def fused(y: torch.Tensor, grad: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    return softmax_grad(y, grad @ values.transpose(-1, -2))


def masked(grad: torch.Tensor, y: torch.Tensor, mask: torch.Tensor, scale: float, **_: Any) -> torch.Tensor:
    return (softmax_grad(y, grad) * scale).masked_fill(mask, 0)


ROWS = [
    Row(
        "cann_ops:src/math/inplace_fused_matmul_softmax_grad",
        (
            "T[4,64,128] T[4,64,32] T[4,128,32] -> T[4,64,128]",
            "T[3,17,108] T[3,17,40] T[3,108,40] -> T[3,17,108]",
        ),
        fused,
        FLOATS,
        domain={0: (0.0, 0.1)},
        in_place=(0,),
    ),
    Row(
        "ops_nn:vfusion/scaled_masked_softmax_grad_v2",
        (
            "T[2,4,16,128] T[2,4,16,128] bool[2,4,16,128] -> T[2,4,16,128]",
            "T[2,3,17,100] T[2,3,17,100] bool[2,1,17,100] -> T[2,3,17,100]",
            "T[1,2,3,1500] T[1,2,3,1500] bool[1,2,3,1500] -> T[1,2,3,1500]",
        ),
        masked,
        FLOATS,
        attrs={"scale": 0.5, "fixed_triu_mask": False},
        domain={1: (0.0, 0.1)},
    ),
]


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    build_dir = tmp_path_factory.mktemp("build")
    with Evaluator(toolkit.virtual(), "ascend910b3", workers=1, build_dir=build_dir) as opened:
        yield opened


def _folder(path: str) -> Path:
    repository, _, folder = path.partition(":")
    root: Path | None = getattr(settings(), repository)
    if root is None or not (root / folder).is_dir():
        pytest.skip(f"ASCENDOPT_{repository.upper()} is not set, or has no such operator")
    return root / folder


def _case(row: Row, text: str, dtype: str, evaluator: Evaluator) -> tuple[Operator, Case, Signature]:
    operator = load_project(_folder(row.path))
    signature = evaluator.describe(operator).signature
    operator = dataclasses.replace(operator, reference=in_float64(row.reference), settings=settings_of(row, signature))
    inputs, outputs = arguments(text, {"T": dtype})
    return operator, Case(inputs, outputs, tuple(sorted(row.attrs.items()))), signature


@pytest.mark.parametrize(
    ("row", "text", "dtype"),
    [pytest.param(r, text, dtype, id=f"{r.path}-{dtype}-{text.split()[0]}") for r in ROWS for text, dtype in r.runs()],
)
def test_operator_with_softmax_grad(row: Row, text: str, dtype: str, evaluator: Evaluator) -> None:
    operator, case, signature = _case(row, text, dtype, evaluator)
    check(operator, case, evaluator, signature)


def test_a_gap_between_rows_is_found(evaluator: Evaluator) -> None:
    """Rows of 100 halves: their products have 104 floats, and 112 are summed, times zeros that a NaN doesn't mind."""
    text = "T[3,17,100] T[3,17,40] T[3,100,40] -> T[3,17,100]"
    operator, case, signature = _case(ROWS[0], text, "float16", evaluator)
    outcome = Gate(operator, case, evaluator, signature=signature).evaluate(operator.baseline).outcome
    assert isinstance(outcome, Hazard)
    assert "SoftmaxGrad" in outcome.reason
    assert "which nobody has written" in outcome.reason
