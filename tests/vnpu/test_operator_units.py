"""Cube and mixed operators of cann-ops, ops-nn and ops-transformer, unmodified, against formulas written here.

The sources are found through ``ASCENDOPT_CANN_OPS``, ``ASCENDOPT_OPS_NN`` and ``ASCENDOPT_OPS_TRANSFORMER``; without
them these tests are skipped. Every unit runs once, in all its dtypes and shapes with ``-m "battery or not battery"``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cann_ops.table import Row
from test_vllm_ascend import check
from unit_rows import attention, convolutions, experts, gradients, recurrent
from unit_rows.products import PRODUCTS

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.settings import settings

#: By repository, in the order of cube_units.md's table.
UNITS: dict[str, tuple[Row, ...]] = {
    repository: tuple(
        row
        for rows in (PRODUCTS, recurrent.ROWS, attention.ROWS, gradients.ROWS, experts.ROWS, convolutions.ROWS)
        for row in rows.get(repository, ())
    )
    for repository in ("cann-ops", "ops-nn", "ops-transformer")
}


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    with Evaluator(toolkit.virtual(), "ascend910b2", workers=1, build_dir=tmp_path_factory.mktemp("build")) as opened:
        yield opened


def folder_of(repository: str) -> Path:
    checkout = getattr(settings(), repository.replace("-", "_"))
    if checkout is None:
        pytest.skip(f"ASCENDOPT_{repository.replace('-', '_').upper()} is not set")
    return Path(checkout) / "src" if repository == "cann-ops" else Path(checkout)


def runs() -> Iterator[Any]:
    """Every unit once; with its other dtypes and shapes in the battery."""
    for repository, rows in UNITS.items():
        for row in rows:
            for i, (case, dtype) in enumerate(row.runs()):
                name = f"{repository}-{Path(row.path).name}-{dtype}-{i}"
                yield pytest.param(repository, row, case, dtype, id=name, marks=[pytest.mark.battery] if i else [])


@pytest.mark.parametrize(("repository", "row", "case", "dtype"), tuple(runs()))
def test_unit(repository: str, row: Row, case: str, dtype: str, evaluator: Evaluator) -> None:
    """Tiling, kernel and launch as they are, through the gate, on cube cores."""
    outcome = check(row, case, dtype, evaluator, folder_of(repository))
    assert outcome.profile.kind in ("mix", "aic")


@pytest.mark.parametrize("repository", UNITS)
def test_every_unit_has_two_cases(repository: str) -> None:
    for row in UNITS[repository]:
        assert len(row.runs()) >= 2, row.path
