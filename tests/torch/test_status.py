"""What ``aot.status()`` tells of cases: who serves, how often, why not, and a thousand of them still readable."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_npu")

import ascendopt_tune as aot  # noqa: E402
from ascendopt_tune.torch_ops.device import fallback  # noqa: E402
from ascendopt_tune.torch_ops.device.runtime import is_virtual  # noqa: E402
from ascendopt_tune.torch_ops.serving import status  # noqa: E402

pytestmark = pytest.mark.skipif(not is_virtual(), reason="a real CANN serves")


@pytest.fixture(autouse=True)
def fresh() -> None:
    fallback.take_over()
    status.registered.clear()


def ones(*shape: int, dtype: Any = torch.float16) -> Any:
    return torch.ones(shape, dtype=dtype).npu()


def test_cases_by_source_calls_and_reason(layer: Path) -> None:
    add = aot.tune("add")(lambda x, y: x + y)
    for _ in range(3):
        add(ones(64, 512), ones(64, 512))
    for _ in range(5):
        add(ones(8, 16), ones(8, 16))
    add(ones(4, 4, dtype=torch.float64), ones(4, 4, dtype=torch.float64))
    found = {c.case: c for c in aot.status().cases}
    tuned, missing = found["float16[64,512] float16[64,512]"], found["float16[8,16] float16[8,16]"]
    assert (tuned.source, tuned.hits, tuned.misses) == ("tuned", 3, 0)
    assert "evaluations" in tuned.why
    assert (missing.source, missing.hits, missing.misses) == ("missing", 0, 5)
    assert missing.why == "not cached: this case was not tuned; [64,512] is"
    refused = found["float64[4,4] float64[4,4]"]
    assert (refused.source, refused.misses) == ("missing", 1)
    weights = [c.weight_us for c in aot.status().cases]
    assert weights == sorted(weights, reverse=True)
    text = str(aot.status())
    assert "missing         0 hits      5 misses  add float16[8,16] float16[8,16]: not cached" in text
    assert json.loads(json.dumps(aot.status().as_dict()))["cases"][0]["operator"] == "add"


def test_a_thousand_cases_are_readable(layer: Path) -> None:
    add = aot.tune("add")(lambda x, y: x + y)
    for i in range(1, 1001):
        x = ones(i)
        add(x, x)
    began = time.process_time()
    text = str(aot.status())
    assert time.process_time() - began < 5.0
    lines = text.splitlines()
    assert len(lines) < 40
    assert "  and 980 more: 980 missing; 0 hits, 980 misses (as_dict() has them)" in lines
    assert "float16[1000]" in lines[3], "what moves most comes first"
    assert len(aot.status().as_dict()["cases"]) == 1000
