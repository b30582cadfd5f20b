"""Tensors of queues that nobody queues in, and products by parts, written small: what becomes of them is right, and no
slower."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from written_small import evaluator, open_form

from ascendopt_tune.evaluate.evaluator import Evaluator

__all__ = ["evaluator"]

FOLDER = Path(__file__).with_name("motif_forms_seventh")
FORMULAS: dict[str, Callable[..., Any]] = {
    "placed_products": lambda x, w: (x * w).sum(0),
    "scratch_queues": lambda x, w: (1 + torch.exp(x)) * (x + w),
}
LEAST = {"placed_products": 1.01, "scratch_queues": 0.9999}  # what each rewrite gains


def test_every_form_has_its_formula() -> None:
    assert {path.stem for path in FOLDER.glob("*.cpp")} == set(FORMULAS) == set(LEAST)


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_what_becomes_of_it_is_right_and_no_slower(name: str, evaluator: Evaluator) -> None:
    form = open_form(FOLDER / f"{name}.cpp", FORMULAS[name], evaluator)
    rewrites = form.rewrites()
    assert len(rewrites) == form.count
    for rewrite in rewrites:
        assert form.gain(form.changed([rewrite]), rewrite.site) >= LEAST[name], rewrite.site
