"""A pair that was judged by other domains than those of the operator it serves is compared more often at first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_npu")

from ascendopt_tune.nouns.operator import Operator  # noqa: E402
from ascendopt_tune.sources.registry import load_operator  # noqa: E402
from ascendopt_tune.torch_ops.device import fallback  # noqa: E402
from ascendopt_tune.torch_ops.device.runtime import is_virtual  # noqa: E402
from ascendopt_tune.torch_ops.serving.decorator import tune  # noqa: E402
from ascendopt_tune.torch_ops.serving.registered import registered  # noqa: E402
from ascendopt_tune.torch_ops.serving.resolve import JUDGED_OTHERWISE  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not is_virtual(), reason="a real CANN serves"),
    pytest.mark.filterwarnings("ignore:Cannot create tensor with internal format:UserWarning"),
]


@pytest.fixture(autouse=True)
def no_leftovers() -> None:
    fallback.take_over()
    registered.clear()


def _compared(operator: Operator, calls: int) -> int:
    add: Any = tune(operator, policy="lookup")(lambda x, y: x + y)
    for seed in range(calls):
        x, y = (torch.full((64, 512), float(seed + k), dtype=torch.float16).npu() for k in range(2))
        assert torch.equal(add(x, y).cpu(), (x + y).cpu())
    assert add.tuned.served.hits == calls
    return int(add.tuned.served.compared)


def test_it_is_compared_on_its_first_calls(own_cache: Path, layer: Path) -> None:
    operator = load_operator("add")
    domain = {**operator.settings, "domain": {"x": {"low": 0.0, "high": 1.0}}}
    assert _compared(operator, 20) == 1
    assert _compared(replace(operator, settings=domain), JUDGED_OTHERWISE + 8) == JUDGED_OTHERWISE
