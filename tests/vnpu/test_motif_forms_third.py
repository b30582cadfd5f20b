"""What the third reading had motifs widened for, written small: each rewrite is right, and not slower."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from written_small import evaluator, open_form

from ascendopt_tune.evaluate.evaluator import Evaluator

__all__ = ["evaluator"]

FOLDER = Path(__file__).with_name("motif_forms_third")
FORMULAS: dict[str, Callable[..., Any]] = {
    "indices_ahead": lambda x, order: x[order.long()] / x[order.long()].max(1).values[:, None],
    "rows_loaded_at_once": lambda x: (x - x.mean(1)[:, None]) / (x - x.mean(1)[:, None]).max(1).values[:, None],
    "rows_of_views": lambda x, w, b: x * w + b,
    "tails_ahead": lambda x: torch.nn.functional.pad(
        torch.nn.functional.pad(x, (0, 192)).view(8, 9, 512).sum(2), (0, 7)
    ),
    "turned_pairs": lambda x, c, s: x * c + torch.cat([x[:, 32:], x[:, :32]], 1) * s,
    "whole_parts": lambda x: x - torch.floor(x),
}
DOMAINS = {"indices_ahead": ["order=0:255", "x=0.5:4"]}


def test_every_form_has_its_formula() -> None:
    assert {path.stem for path in FOLDER.glob("*.cpp")} == set(FORMULAS)


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_what_motifs_make_of_it_is_right_and_not_slower(name: str, evaluator: Evaluator) -> None:
    form = open_form(FOLDER / f"{name}.cpp", FORMULAS[name], evaluator, domains=DOMAINS.get(name, []))
    rewrites = form.rewrites()
    assert len(rewrites) == form.count
    for rewrite in rewrites:
        assert form.gain(form.changed([rewrite]), rewrite.site) >= 1 / 1.001, rewrite.site
