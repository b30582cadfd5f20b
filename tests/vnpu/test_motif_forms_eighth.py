"""Tensors that are only moved or changed in place, values that the next turn reads again, blocks and rest in one copy,
written small: what becomes of them is right, and no slower."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from written_small import evaluator, open_form

from ascendopt_tune.evaluate.evaluator import Evaluator

__all__ = ["evaluator"]

FOLDER = Path(__file__).with_name("motif_forms_eighth")
FORMULAS: dict[str, Callable[..., Any]] = {
    "blocks_and_rest": lambda x: x.abs(),
    "moved_rows": lambda x: x.flip(0),
    "cleared_ends": lambda x: torch.cat([x[:, :-64], torch.zeros_like(x[:, -64:])], 1),
    "next_ends": lambda x, ends: x.view(256, 16)[:, :8] * (ends.long() % 256).diff().view(-1, 1),
}
LEAST = {"blocks_and_rest": 1.01, "moved_rows": 1.05, "cleared_ends": 1.01, "next_ends": 1.005}


def test_every_form_has_its_formula() -> None:
    assert {path.stem for path in FOLDER.glob("*.cpp")} == set(FORMULAS) == set(LEAST)


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_what_becomes_of_it_is_right_and_no_slower(name: str, evaluator: Evaluator) -> None:
    form = open_form(FOLDER / f"{name}.cpp", FORMULAS[name], evaluator)
    rewrites = form.rewrites()
    assert len(rewrites) == form.count
    for rewrite in rewrites:
        assert form.gain(form.changed([rewrite]), rewrite.site) >= LEAST[name], rewrite.site
