"""Calls of small functions and choices of types between two instructions, written small: what motifs make of them is
right, and not slower."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from written_small import evaluator, open_form

from ascendopt_tune.evaluate.evaluator import Evaluator

__all__ = ["evaluator"]

FOLDER = Path(__file__).with_name("motif_forms_flat")
FORMULAS: dict[str, Callable[..., Any]] = {
    "rows_normed": lambda x: (x - x.mean(1)[:, None]) / x.std(1, correction=0)[:, None] * 0.75 + 0.25,
    "weighted_sums": lambda x, z: 2 * x + 3 * z,
}
AS_HALF = [("float32", "float16"), ("RowsNormed<float>", "RowsNormed<half>")]


@pytest.mark.parametrize(
    ("name", "changes", "motifs"),
    [
        ("rows_normed", [], {"extra-copy": 1, "scale-behind-sum": 1, "chained-instructions": 1}),
        ("rows_normed", AS_HALF, {"extra-copy": 1, "scale-behind-sum": 1, "fused-scalars": 1}),
        ("weighted_sums", [], {"extra-copy": 2}),
    ],
)
def test_what_stands_apart_is_put_together_and_right(
    name: str, changes: list[tuple[str, str]], motifs: dict[str, int], evaluator: Evaluator
) -> None:
    form = open_form(FOLDER / f"{name}.cpp", FORMULAS[name], evaluator, changes=changes)
    for motif, least in motifs.items():
        rewrites = form.rewrites(motif)
        assert len(rewrites) >= least, motif
        for rewrite in rewrites:
            assert form.gain(form.changed([rewrite]), f"{motif}, {rewrite.site}") >= 1 / 1.002, rewrite.site
    pair = form.baseline
    for motif in motifs:
        while found := form.rewrites(motif, pair):
            pair = form.changed(found[:1], pair)
    assert form.gain(pair, "all") > 1.02
