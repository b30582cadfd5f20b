"""CANN's WeightQuantBatchMatmulV2 beside published times: values by the formula, and a row as the page says it.

Both need a checkout of ops-nn (``ASCENDOPT_OPS_NN``).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ascendopt_tune.fidelity import operators
from ascendopt_tune.nouns.chip import FLUSHED, WARM
from ascendopt_tune.settings import settings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cube_time.md"
FAMILY = "weight_quant_batch_matmul"


def test_its_rows_are_on_the_page() -> None:
    rows = operators.chosen([FAMILY], operators.known([FAMILY]))
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| {FAMILY}/")]
    assert [line.split("|")[1].strip() for line in lines] == [r.id for r in rows]
    assert [float(line.split("|")[3]) for line in lines] == [r.task_duration_us for r in rows]


def test_a_row_is_what_the_page_says() -> None:
    if settings().ops_nn is None:
        pytest.skip("ASCENDOPT_OPS_NN is not set")
    name = f"{FAMILY}/1"
    (one,) = operators.run(operators.chosen([name], operators.known([name])))
    line = next(text for text in PAGE.read_text().splitlines() if text.startswith(f"| {name} |"))
    for state, said in zip((FLUSHED, WARM), re.findall(r"\| ([\d.]+) \| [+-]", line), strict=True):
        assert f"{one.profiles[state].task_duration_us:.1f}" == said
