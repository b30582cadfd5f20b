"""The table of others' units in docs/cube_units.md says what the tests run: no more, no less."""

from __future__ import annotations

import re
from pathlib import Path

import test_catlass_units
import test_cube_units
import test_image_units
import test_kernel_file_units
import test_matmul_units
import test_mixed_units
import test_operator_units
import test_samples
import test_transformer_units
from vllm_ops import cubes

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cube_units.md"
REPOSITORIES = "asc-devkit|cann-ops|catlass|ops-nn|ops-transformer|vllm-ascend"
ROW = re.compile(rf"^\| ({REPOSITORIES}) `(\w+)` \| (.+) \|$", re.MULTILINE)


def run() -> set[tuple[str, str]]:
    """Units that tests build and hold to values, hazards and bytes."""
    samples = [s.folder for s in (*test_cube_units.TABLE, *test_mixed_units.TABLE, *test_samples.TABLE)]
    found = {("asc-devkit", Path(folder).name) for folder in (*samples, *test_matmul_units.SAMPLES)}
    operators = ("mmad", "mat_mul_v3", "matmul_leakyrelu", "matmul_api_constant", "complex_mat_mul")
    found |= {("cann-ops", name) for name in operators}
    found |= {("cann-ops", name) for name in test_image_units.IMAGES}
    found |= {(where, Path(row.path).name) for where, rows in test_operator_units.UNITS.items() for row in rows}
    found |= {("catlass", Path(example.folder).name) for example in test_catlass_units.TABLE}
    found |= {("ops-transformer", name) for name in test_transformer_units.UNITS}
    found |= {(unit.repository.replace("_", "-"), unit.unit) for unit in test_kernel_file_units.UNITS}
    return found | {("vllm-ascend", Path(row.path).name) for row in cubes.ROWS}


def test_the_table_says_what_is_run() -> None:
    rows = ROW.findall(PAGE.read_text())
    assert len({row[:2] for row in rows}) == len(rows), "a unit stands there twice"
    told = {(repository, name) for repository, name, state in rows if state.startswith("right")}
    assert told == run()
    counted = re.search(r"(\d+) units are right", PAGE.read_text())
    assert counted is not None
    assert int(counted[1]) == len(told)
