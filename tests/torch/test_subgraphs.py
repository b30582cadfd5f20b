"""``options={"generate": True}``: subgraphs of a compiled model become operators, or stay what they were."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import ascendopt_tune as aot  # isort: skip  (before torch, which loads torch_npu)

torch = pytest.importorskip("torch")
pytest.importorskip("torch_npu")

from ascendopt_tune.errors import SettingsError  # noqa: E402
from ascendopt_tune.torch_ops.compile import subgraphs  # noqa: E402
from ascendopt_tune.torch_ops.compile.compile_pass import compile_graph  # noqa: E402
from ascendopt_tune.torch_ops.device import fallback  # noqa: E402
from ascendopt_tune.torch_ops.device.runtime import is_virtual  # noqa: E402
from ascendopt_tune.torch_ops.serving.registered import registered  # noqa: E402
from ascendopt_tune.torch_ops.serving.status import status  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not is_virtual(), reason="a real CANN serves"),
    pytest.mark.filterwarnings("ignore:Cannot create tensor with internal format:UserWarning"),
]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    fallback.take_over()
    torch.compiler.reset()
    registered.clear()
    subgraphs.found.clear()
    yield
    registered.clear()
    torch.compiler.reset()


def compiled(function: Any) -> Any:
    return torch.compile(function, backend="ascendopt", fullgraph=True, options={"generate": True})


def test_a_subgraph_becomes_an_operator_and_the_rest_stays() -> None:
    """A residual and a norm between two matrix products: one operator with two results; a scan has no place in it."""

    def part(x: Any, w: Any, gamma: Any) -> Any:
        h = x + x @ w
        normed = h * torch.rsqrt((h * h).mean(-1, keepdim=True) + 1e-6) * gamma
        return h + torch.cumsum(normed, 1)

    torch.manual_seed(0)
    x, w, gamma = torch.randn(24, 64).npu(), torch.randn(64, 64).npu(), torch.rand(64).npu()
    function = compiled(part)
    with torch.no_grad():
        expected = part(x, w, gamma).cpu()
        for _ in range(3):
            torch.testing.assert_close(function(x, w, gamma).cpu(), expected, rtol=1e-4, atol=1e-4)
    (row,) = aot.subgraphs()
    assert row.served
    assert row.calls == ("add", "mul", "mean", "add", "rsqrt", "mul", "mul")
    assert row.schedule == "rows"
    assert row.time_us is not None
    assert row.calls_us is not None
    assert 0 < row.time_us < row.calls_us
    assert "operator (rows)" in str(aot.subgraphs())
    served = status().operators[row.name]
    assert served.hits == 3
    assert not served.fallbacks


def test_what_no_rule_fits_stays_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise SettingsError("no rule today.")

    monkeypatch.setattr(subgraphs, "from_module", refuse)
    x = torch.randn(8, 16).npu()
    function = compiled(lambda x: torch.exp(x) * 2.0)
    torch.testing.assert_close(function(x).cpu(), (torch.exp(x) * 2.0).cpu())
    (row,) = aot.subgraphs()
    assert (row.served, row.reason, row.calls) == (False, "no rule today.", ("exp", "mul"))
    assert "as it was (no rule today.)" in str(aot.subgraphs())


def test_one_call_and_other_dtypes_are_nobody_s_business() -> None:
    x = torch.arange(64).npu()
    function = compiled(lambda x: (x + 1) * 2)
    assert torch.equal(function(x).cpu(), (x.cpu() + 1) * 2)
    y = torch.randn(4, 4).npu()
    alone = compiled(torch.exp)
    torch.testing.assert_close(alone(y).cpu(), torch.exp(y).cpu())
    assert aot.subgraphs() == ()
    assert str(aot.subgraphs()) == "no subgraph was looked at"


def test_other_backends_generate_nothing() -> None:
    graph = torch.fx.symbolic_trace(lambda x: torch.exp(x))
    with pytest.raises(SettingsError, match="aren't generated for the inner backend"):
        compile_graph(graph, [], options={"inner": "npu", "generate": True})
