"""What the third reading had motifs widened for, written small: each rewrite is right, and not slower."""

from __future__ import annotations

import dataclasses
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
from ascendopt_tune.search.kernel.rules import applied, rewrites_of
from ascendopt_tune.sources.arguments import direct_signature, parse_domain, parse_tensor
from ascendopt_tune.sources.project import load_direct

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


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    with Evaluator(virtual(), "ascend910b4", workers=1, build_dir=tmp_path_factory.mktemp("build")) as opened:
        yield opened


def test_every_form_has_its_formula() -> None:
    assert {path.stem for path in FOLDER.glob("*.cpp")} == set(FORMULAS)


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_what_motifs_make_of_it_is_right_and_not_slower(name: str, evaluator: Evaluator) -> None:
    path = FOLDER / f"{name}.cpp"
    found = forms._HEAD.search(path.read_text())
    assert found is not None
    inputs, outputs = (dict(map(parse_tensor, found[i].split())) for i in (1, 2))
    operator = load_direct(path, name, int(found[3]))
    signature = direct_signature(operator, inputs, outputs, {})
    domain = dict(parse_domain(text, signature) for text in DOMAINS.get(name, []))
    dtype = getattr(torch, next(iter(outputs.values())).dtype)

    def reference(*tensors: Any, **_: Any) -> Any:
        return FORMULAS[name](*(t.double() for t in tensors)).to(dtype)

    operator = dataclasses.replace(operator, reference=reference, settings={"domain": domain} if domain else {})
    gate = Gate(operator, Case(tuple(inputs.values()), tuple(outputs.values())), evaluator, signature=signature)
    before = gate.evaluate(operator.baseline).outcome
    assert isinstance(before, Timed), before
    rewrites = rewrites_of(operator.baseline, operator.auto_sync)[found[4]]
    assert len(rewrites) == int(found[5])
    for rewrite in rewrites:
        pair = applied(operator.baseline, (rewrite,))
        assert pair is not None
        after = gate.evaluate(pair).outcome
        assert isinstance(after, Timed), (rewrite.site, after)
        gain = before.profile.task_duration_us / after.profile.task_duration_us
        print(f"{name}, {rewrite.site}: modelled {gain:.3f}x")
        assert gain >= 1 / 1.001, rewrite.site
