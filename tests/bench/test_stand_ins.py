"""Baselines S and C: which operators of cann-ops stand for ATen's calls; with a checkout two of them run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from typer.testing import CliRunner

from ascendopt_tune.bench import stand_ins
from ascendopt_tune.cli import app
from ascendopt_tune.generator.roofline import AtenCall, aten_calls

TASK = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return {expression}


def get_inputs():
    return [torch.rand(8, 512)]


def get_init_inputs():
    return []
"""


class Of(nn.Module):
    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *given: torch.Tensor) -> torch.Tensor:
        return self.function(*given)


def found(function: Callable[..., torch.Tensor], *shapes: tuple[int, ...]) -> list[stand_ins.StandIn | None]:
    calls: list[AtenCall] = aten_calls(Of(function), [torch.rand(s) for s in shapes])
    calls = [c for c in stand_ins.joined(calls) if c.bytes > 1024]
    return [stand_ins.RULES[c.name](c) if c.name in stand_ins.RULES else None for c in calls]


def test_calls_have_operators_of_the_same_function_or_of_the_same_class() -> None:
    (relu,) = found(F.relu, (8, 512))
    assert relu is not None
    assert (relu.path, relu.same) == ("foreach/foreach_maximum_scalar", True)
    assert relu.results["y.0"].shape == (8, 512)
    (gelu,) = found(F.gelu, (8, 512))
    assert gelu is not None
    assert not gelu.same
    assert found(lambda x: x.cumsum(1), (8, 512)) == [None]
    assert found(lambda x: x.sum(1), (8, 512)) == [None]
    (whole,) = found(torch.sum, (8, 512))
    assert whole is not None
    assert whole.results["y.0"].shape == (1,)
    (product,) = found(torch.mul, (8, 512), (512,))
    assert product is not None
    assert product.inputs["x2.0"].shape == (8, 512)


def test_pools_of_any_rank_are_of_three_axes() -> None:
    (mean,) = found(nn.AvgPool1d(4, 2, 1), (2, 8, 64))
    assert mean is not None
    assert mean.inputs["x"].shape == (2, 1, 1, 64, 8)
    assert mean.outputs["y"].shape == (2, 1, 1, 32, 8)
    assert (mean.attrs["ksize"], mean.attrs["pads"]) == ([1, 1, 4], [0, 0, 0, 0, 1, 1])
    (largest,) = found(nn.MaxPool3d(3, 2, 1, 2), (2, 8, 9, 10, 11))
    assert largest is not None
    assert (largest.attrs["strides"], largest.attrs["dilation"]) == ([2, 2, 2], [2, 2, 2])
    assert largest.outputs["argmax"].shape == largest.outputs["y"].shape


def test_two_calls_that_one_operator_does() -> None:
    target = torch.randint(0, 64, (64,))
    calls = aten_calls(Of(lambda x: F.cross_entropy(x, target.to(x.device))), [torch.rand(64, 64)])
    (both,) = [c for c in stand_ins.joined(calls) if c.name in stand_ins.RULES]
    of = stand_ins.RULES[both.name](both)
    assert of is not None
    assert of.inputs["target"].dtype == "int64"
    assert of.domain["target"] == {"low": 0, "high": 63}


def test_a_call_without_an_operator_has_no_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, expression in (("sorted_rows", "torch.sort(x)[0]"), ("positive", "torch.relu(x)")):
        (tmp_path / "reference" / "activation").mkdir(parents=True, exist_ok=True)
        (tmp_path / "reference" / "activation" / f"{name}.py").write_text(TASK.format(expression=expression))
    results = tmp_path / "out.jsonl"
    command = ["bench", "mkb", "activation", "--tasks", str(tmp_path), "--baselines", "--results", str(results)]
    checkout = os.environ.get("ASCENDOPT_CANN_OPS")
    monkeypatch.delenv("ASCENDOPT_CANN_OPS", raising=False)
    assert "ASCENDOPT_CANN_OPS is not set" in str(CliRunner().invoke(app, command).exception)
    monkeypatch.setenv("ASCENDOPT_CANN_OPS", checkout or str(tmp_path))
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "sorted_rows: none (sort has no operator)" in done.output
    assert ("positive: S " in done.output) == (checkout is not None)
    assert len(list(stand_ins.baselines(tmp_path / "out.baselines.jsonl"))) == 2
    assert CliRunner().invoke(app, command).output == done.output  # nothing is measured again
