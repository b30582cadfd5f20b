"""Tensors of queues that nobody queues in, written small: as buffers they are right, and no slower."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from written_small import evaluator, open_form

from ascendopt_tune.evaluate.evaluator import Evaluator

__all__ = ["evaluator"]

FOLDER = Path(__file__).with_name("motif_forms_unqueued")
FORMULAS: dict[str, Callable[..., Any]] = {"scratch_queues": lambda x, w: (1 + torch.exp(x)) * (x + w)}
LEAST = {"scratch_queues": {"all": 1.01}}  # what each gains at least; the others no less than before


def test_every_form_has_its_formula() -> None:
    assert {path.stem for path in FOLDER.glob("*.cpp")} == set(FORMULAS) == set(LEAST)


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_buffers_for_queues_are_right_and_no_slower(name: str, evaluator: Evaluator) -> None:
    form = open_form(FOLDER / f"{name}.cpp", FORMULAS[name], evaluator)
    rewrites = form.rewrites()
    assert len(rewrites) == form.count
    for rewrite in rewrites:
        assert form.gain(form.changed([rewrite]), rewrite.site) >= LEAST[name].get(rewrite.site, 0.9999), rewrite.site
