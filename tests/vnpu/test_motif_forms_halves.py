"""Buffers and flags by hand, written small: with two halves in turn they are right, and faster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import test_motif_forms as forms
import torch

from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.search.kernel.motifs import find
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram
from ascendopt_tune.search.kernel.rules import applied
from ascendopt_tune.sources.arguments import direct_signature, parse_tensor
from ascendopt_tune.sources.project import load_direct

FOLDER = Path(__file__).with_name("motif_forms_halves")
FORMULAS: dict[str, Callable[..., Any]] = {
    "flags_across": lambda x: torch.sqrt(x.abs() + 1),
    "parts_of_one": lambda x: x.abs() - x * x,
    "tiles_by_hand": lambda x, w: torch.exp(x) * w + x,
}
LEAST = {"flags_across": 1.2, "parts_of_one": 1.2, "tiles_by_hand": 1.2}


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    with Evaluator(virtual(), "ascend910b4", workers=1, build_dir=tmp_path_factory.mktemp("build")) as opened:
        yield opened


def test_every_form_has_its_formula() -> None:
    assert {path.stem for path in FOLDER.glob("*.cpp")} == set(FORMULAS) == set(LEAST)


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_halves_in_turn_are_right_and_faster(name: str, evaluator: Evaluator) -> None:
    path = FOLDER / f"{name}.cpp"
    head = forms._HEAD.search(path.read_text())
    assert head is not None
    assert head[4] == "ping-pong"
    inputs, outputs = (dict(map(parse_tensor, head[i].split())) for i in (1, 2))
    operator = load_direct(path, name, int(head[3]))
    signature = direct_signature(operator, inputs, outputs, {})
    gate = Gate(operator, Case(tuple(inputs.values()), tuple(outputs.values())), evaluator, signature=signature)
    before = gate.evaluate(operator.baseline).outcome
    assert isinstance(before, Timed), before
    motif, kernel = find("ping-pong"), KernelProgram(operator.baseline.kernel, {}, None, operator.auto_sync)
    rewrites = list(motif.optimize(kernel))
    assert len(rewrites) == int(head[5])
    for rewrite in rewrites:
        pair = applied(operator.baseline, (rewrite,))
        assert pair is not None
        after = gate.evaluate(pair).outcome
        assert isinstance(after, Timed), (rewrite.site, after)
        gain = before.profile.task_duration_us / after.profile.task_duration_us
        print(f"{name}, {rewrite.site}: modelled {gain:.3f}x")
        assert gain > LEAST[name], rewrite.site
        again = KernelProgram(pair.kernel, {}, None, operator.auto_sync)
        assert not list(motif.optimize(again))
        (slower,) = motif.rewind(again)
        undone = gate.evaluate(applied(pair, (slower,)) or pair).outcome
        assert isinstance(undone, Timed), undone
        assert undone.profile.task_duration_us > after.profile.task_duration_us
