"""What the sixth reading had motifs widened for, written small: each rewrite is right, and faster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from written_small import evaluator, open_form

from ascendopt_tune.evaluate.evaluator import Evaluator

__all__ = ["evaluator"]

FOLDER = Path(__file__).with_name("motif_forms_sixth")
FORMULAS: dict[str, Callable[..., Any]] = {
    "halves_a_row": lambda x: torch.exp(x) + x,
    "rows_of_one_side": lambda x: torch.cat([x[:, :40] + 0.5, torch.ones_like(x[:, 40:])], 1),
    "running_rows": lambda x, w: torch.exp(x.cumsum(1).reshape(512, 1) + w),
}
LEAST = {"halves_a_row": 1.02, "rows_of_one_side": 1.02, "running_rows": 1.02}
DOMAINS = {"running_rows": ["x=-0.1:0.1", "w=-1:1"]}


def test_every_form_has_its_formula() -> None:
    assert {path.stem for path in FOLDER.glob("*.cpp")} == set(FORMULAS)


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_what_motifs_make_of_it_is_right_and_faster(name: str, evaluator: Evaluator) -> None:
    form = open_form(FOLDER / f"{name}.cpp", FORMULAS[name], evaluator, domains=DOMAINS.get(name, []))
    rewrites = form.rewrites()
    assert len(rewrites) == form.count
    for rewrite in rewrites:
        assert form.gain(form.changed([rewrite]), rewrite.site) > LEAST[name], rewrite.site
