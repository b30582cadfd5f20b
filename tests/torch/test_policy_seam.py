"""What every policy of settings.POLICIES promises: the same results, whoever serves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_npu")

import ascendopt_tune as aot  # noqa: E402
from ascendopt_tune.settings import POLICIES, override  # noqa: E402
from ascendopt_tune.torch_ops.device import fallback  # noqa: E402
from ascendopt_tune.torch_ops.device.runtime import is_virtual  # noqa: E402
from ascendopt_tune.torch_ops.serving.registered import registered  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not is_virtual(), reason="a real CANN serves"),
    pytest.mark.filterwarnings("ignore:Cannot create tensor with internal format:UserWarning"),
]
SERVES_CACHED = {"lookup", "lazy", "blocking"}


@pytest.fixture(scope="module", autouse=True)
def aten() -> None:
    """Originals are written with torch's own operators, which the virtual NPU leaves to the CPU."""
    fallback.take_over()  # and stays: other modules share the process


@pytest.fixture(params=POLICIES)
def policy(request: pytest.FixtureRequest, own_cache: Path) -> Any:
    registered.clear()
    with override(reuse=False):
        yield request.param


def add(calls: list[int], policy: str) -> Callable[..., Any]:
    """Counts what the original serves; ``lazy`` and ``blocking`` may tune."""

    @aot.tune("add", policy=policy, budget=2)
    def add(x: Any, y: Any) -> Any:
        calls.append(1)
        return x + y

    return add


def test_a_cached_case_is_right_and_served_by_its_pair_alone_in_the_end(policy: str, layer: Path) -> None:
    calls: list[int] = []
    function = add(calls, policy)
    x = torch.arange(64 * 512, dtype=torch.float32).reshape(64, 512).half().npu() / 1000
    for _ in range(4):
        assert torch.equal(function(x, x).cpu(), (x.cpu() + x.cpu()))
    assert (len(calls) < 4) == (policy in SERVES_CACHED)
    row = aot.stats()["add"]
    assert bool(row["hits"]) == (policy in SERVES_CACHED)
    assert row["fallbacks"] == {}


def test_what_is_not_cached_is_right_at_once(policy: str) -> None:
    calls: list[int] = []
    function = add(calls, policy)
    x = torch.full((3, 40), 1.5, dtype=torch.float16).npu()
    assert (function(x, x).cpu() == 3).all()
    assert policy == "blocking" or calls == [1]


def test_other_devices_and_errors_are_the_originals(policy: str, layer: Path) -> None:
    calls: list[int] = []
    function = add(calls, policy)
    x = torch.ones(64, 512, dtype=torch.float16)
    assert (function(x, x) == 2).all()
    assert calls == [1]
    with pytest.raises(RuntimeError, match="size of tensor"):
        function(x.npu(), torch.ones(3, 7, dtype=torch.float16).npu())


def test_rolled_back_the_original_serves(policy: str, layer: Path) -> None:
    calls: list[int] = []
    function = add(calls, policy)
    x = torch.ones(64, 512, dtype=torch.float16).npu()
    aot.rollback()
    try:
        for _ in range(3):
            assert (function(x, x).cpu() == 2).all()
        assert len(calls) == 3
    finally:
        aot.restore()
