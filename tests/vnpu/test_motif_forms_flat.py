"""Calls of small functions and choices of types between two instructions, written small: what motifs make of them is
right, and not slower."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case
from ascendopt_tune.nouns.operator import Operator, Pair
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.search.kernel.rules import applied, rewrites_of
from ascendopt_tune.sources.arguments import direct_signature, parse_tensor
from ascendopt_tune.sources.project import load_direct

FOLDER = Path(__file__).with_name("motif_forms_flat")
_CASE = re.compile(r"// case: (.*) -> (.*), (\d+) blocks\n")
FORMULAS: dict[str, Callable[..., Any]] = {
    "rows_normed": lambda x: (x - x.mean(1)[:, None]) / x.std(1, correction=0)[:, None] * 0.75 + 0.25,
    "weighted_sums": lambda x, z: 2 * x + 3 * z,
}
AS_HALF = [("float32", "float16"), ("RowsNormed<float>", "RowsNormed<half>")]


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    with Evaluator(virtual(), "ascend910b4", workers=1, build_dir=tmp_path_factory.mktemp("build")) as opened:
        yield opened


def _gate(name: str, evaluator: Evaluator, *changes: tuple[str, str]) -> tuple[Gate, Operator, Pair]:
    path = FOLDER / f"{name}.cpp"
    head = path.read_text()
    for old, new in changes:
        head = head.replace(old, new)
    found = _CASE.search(head)
    assert found is not None
    inputs, outputs = (dict(map(parse_tensor, found[i].split())) for i in (1, 2))
    operator = load_direct(path, name, int(found[3]))
    kernel = dict(operator.baseline.kernel)
    for old, new in changes:
        kernel = {where: text.replace(old, new) for where, text in kernel.items()}
    signature = direct_signature(operator, inputs, outputs, {})
    dtype = getattr(torch, next(iter(outputs.values())).dtype)

    def reference(*tensors: Any, **_: Any) -> Any:
        return FORMULAS[name](*(t.double() for t in tensors)).to(dtype)

    baseline = Pair(operator.baseline.tiling, kernel)
    operator = dataclasses.replace(operator, baseline=baseline, reference=reference)
    case = Case(tuple(inputs.values()), tuple(outputs.values()))
    return Gate(operator, case, evaluator, signature=signature), operator, baseline


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
    gate, operator, baseline = _gate(name, evaluator, *changes)
    before = gate.evaluate(baseline).outcome
    assert isinstance(before, Timed), before
    rewrites = rewrites_of(baseline, operator.auto_sync)
    for motif, least in motifs.items():
        assert len(rewrites[motif]) >= least, motif
        for rewrite in rewrites[motif]:
            changed = applied(baseline, (rewrite,))
            assert changed is not None
            after = gate.evaluate(changed).outcome
            assert isinstance(after, Timed), (rewrite.site, after)
            gain = before.profile.task_duration_us / after.profile.task_duration_us
            print(f"{name} {changes[:1]} {motif}, {rewrite.site}: modelled {gain:.3f}x")
            assert gain >= 1 / 1.002, rewrite.site
    pair = baseline
    for motif in motifs:
        while found := rewrites_of(pair, operator.auto_sync).get(motif, ()):
            pair = applied(pair, found[:1]) or pair
    together = gate.evaluate(pair).outcome
    assert isinstance(together, Timed), together
    gain = before.profile.task_duration_us / together.profile.task_duration_us
    print(f"{name} {changes[:1]} all: modelled {gain:.3f}x")
    assert gain > 1.02
