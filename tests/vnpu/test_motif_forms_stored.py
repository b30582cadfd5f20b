"""Rows that are loaded and stored one a turn, written small: what is made of them is right, and faster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from written_small import evaluator, open_form

from ascendopt_tune.evaluate.evaluator import Evaluator

__all__ = ["evaluator"]

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
    form = open_form(FOLDER / "scaled_rows.cpp", FORMULAS["scaled_rows"], evaluator, changes=changes)
    pair = form.baseline
    for motif in ("loaded-ahead", "stored-together"):
        for rewrite in form.rewrites(motif):
            gain = form.gain(form.changed([rewrite]), f"{motif}, {rewrite.site}")
            assert gain > least.get(motif, 1 / 1.01), rewrite.site
        while rewrites := form.rewrites(motif, pair):
            pair = form.changed(rewrites[:1], pair)
    assert "mQueue.Flush();" in "".join(pair.kernel.values())
    assert form.gain(pair, "all of them") > (2 if least else 1 / 1.01)
