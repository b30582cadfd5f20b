"""Buffers and flags by hand, written small: with two halves in turn they are right, and faster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from written_small import evaluator, open_form

from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.search.kernel.motifs import find
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram

__all__ = ["evaluator"]

FOLDER = Path(__file__).with_name("motif_forms_halves")
FORMULAS: dict[str, Callable[..., Any]] = {
    "flags_across": lambda x: torch.sqrt(x.abs() + 1),
    "kept_tensors": lambda x, w: torch.exp(x) * w,
    "parts_of_one": lambda x: x.abs() - x * x,
    "terms_of_a_tile": lambda x: torch.exp(x).sum(0),
    "tiles_by_hand": lambda x, w: torch.exp(x) * w + x,
}
LEAST = {"flags_across": 1.2, "kept_tensors": 1.2, "parts_of_one": 1.2, "terms_of_a_tile": 1.1, "tiles_by_hand": 1.2}


def test_every_form_has_its_formula() -> None:
    assert {path.stem for path in FOLDER.glob("*.cpp")} == set(FORMULAS) == set(LEAST)


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_halves_in_turn_are_right_and_faster(name: str, evaluator: Evaluator) -> None:
    form = open_form(FOLDER / f"{name}.cpp", FORMULAS[name], evaluator)
    assert form.motif == "ping-pong"
    motif = find("ping-pong")
    rewrites = list(motif.optimize(KernelProgram(form.baseline.kernel, {}, None, form.auto_sync)))
    assert len(rewrites) == form.count
    for rewrite in rewrites:
        pair = form.changed([rewrite])
        assert form.gain(pair, rewrite.site) > LEAST[name], rewrite.site
        again = KernelProgram(pair.kernel, {}, None, form.auto_sync)
        assert not list(motif.optimize(again))
        (slower,) = motif.rewind(again)
        assert form.modelled_us(form.changed([slower], pair)) > form.modelled_us(pair)
