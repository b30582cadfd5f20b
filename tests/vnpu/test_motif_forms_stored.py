"""Rows that are loaded and stored one a turn, written small: what is made of them is right, and faster."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import test_motif_forms as forms

from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case
from ascendopt_tune.nouns.operator import Pair
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.search.kernel.rules import applied, rewrites_of
from ascendopt_tune.sources.arguments import direct_signature, parse_tensor
from ascendopt_tune.sources.project import load_direct

FOLDER = Path(__file__).with_name("motif_forms_stored")
FORMULAS: dict[str, Callable[..., Any]] = {
    "scaled_rows": lambda x: (x / x.max(1).values[:, None], x.max(1).values),
}
_EACH_SECOND = """\
    for (uint32_t i = 0; i < rows / 2; i++) {
      LocalTensor<float> loaded = xQueue.AllocTensor<float>();
      DataCopyPad(loaded, xGm[(2 * i + 1) * LENGTH], {1, LENGTH * sizeof(float), 0, 0, 0}, {false, 0, 0, 0});
      xQueue.EnQue(loaded);
      Compute();
      StoreRow(2 * i + 1);
      StoreLargest(2 * i + 1, 1);
    }
    for (uint32_t i = 0; i < rows / 2; i++) {
"""


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    with Evaluator(virtual(), "ascend910b4", workers=1, build_dir=tmp_path_factory.mktemp("build")) as opened:
        yield opened


def _gate(name: str, evaluator: Evaluator, *changes: tuple[str, str]) -> tuple[Gate, Pair, bool]:
    path = FOLDER / f"{name}.cpp"
    head = path.read_text()
    for old, new in changes:
        head = head.replace(old, new)
    found = forms._HEAD.search(head)
    assert found is not None
    inputs, outputs = (dict(map(parse_tensor, found[i].split())) for i in (1, 2))
    operator = load_direct(path, name, int(found[3]))
    kernel = dict(operator.baseline.kernel)
    for old, new in changes:
        assert any(old in text for text in kernel.values())
        kernel = {where: text.replace(old, new) for where, text in kernel.items()}
    signature = direct_signature(operator, inputs, outputs, {})

    def reference(*tensors: Any, **_: Any) -> Any:
        return tuple(t.float() for t in FORMULAS[name](*(t.double() for t in tensors)))

    baseline = Pair(operator.baseline.tiling, kernel)
    operator = dataclasses.replace(operator, baseline=baseline, reference=reference)
    case = Case(tuple(inputs.values()), tuple(outputs.values()))
    return Gate(operator, case, evaluator, signature=signature), baseline, operator.auto_sync


def test_every_form_has_its_formula() -> None:
    assert {path.stem for path in FOLDER.glob("*.cpp")} == set(FORMULAS)


_ROW = "Compute();\n      StoreRow(i);\n      StoreLargest(i, 1);"


@pytest.mark.parametrize(
    ("changes", "least"),
    [
        ((), {"loaded-ahead": 1.3, "stored-together": 1.05}),
        ([("LENGTH = 40", "LENGTH = 37"), ("float32[512,40]", "float32[512,37]")], {}),  # rows end within a block
        ([("i < rows; i++) {", "i < rows + 5; i++) {\n      if (i == rows) break;")], {}),  # fewer than the loop says
        ([("xGm[i", "xGm[(rows - 1 - i)"), (_ROW, _ROW.replace("(i", "(rows - 1 - i"))], {}),  # backwards
        (  # each second row, then those between
            [
                ("    for (uint32_t i = 0; i < rows; i++) {\n", _EACH_SECOND),
                ("xGm[i", "xGm[2 * i"),
                (_ROW, _ROW.replace("(i", "(2 * i")),
            ],
            {},
        ),
    ],
)
def test_rows_together_are_right_and_faster(
    changes: list[tuple[str, str]], least: dict[str, float], evaluator: Evaluator
) -> None:
    gate, baseline, auto_sync = _gate("scaled_rows", evaluator, *changes)
    before = gate.evaluate(baseline).outcome
    assert isinstance(before, Timed), before
    pair = baseline
    for motif in ("loaded-ahead", "stored-together"):
        for rewrite in rewrites_of(baseline, auto_sync).get(motif, ()):
            changed = applied(baseline, (rewrite,))
            assert changed is not None
            after = gate.evaluate(changed).outcome
            assert isinstance(after, Timed), (rewrite.site, after)
            gain = before.profile.task_duration_us / after.profile.task_duration_us
            print(f"{motif}, {rewrite.site}: modelled {gain:.3f}x")
            assert gain > least.get(motif, 1 / 1.01), rewrite.site
        while rewrites := rewrites_of(pair, auto_sync).get(motif, ()):
            pair = applied(pair, rewrites[:1]) or pair
    assert "mQueue.Flush();" in "".join(pair.kernel.values())
    together = gate.evaluate(pair).outcome
    assert isinstance(together, Timed), together
    gain = before.profile.task_duration_us / together.profile.task_duration_us
    print(f"all of them: modelled {gain:.3f}x")
    assert gain > (2 if least else 1 / 1.01)
