"""What makes two operators' results judged alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ascendopt_tune.errors import OperatorError
from ascendopt_tune.nouns.operator import Operator, Pair
from ascendopt_tune.sources.registry import LazyReference
from ascendopt_tune.sources.specification import specification

SETTINGS = {"domain": {"x": {"low": 0.0}}, "tolerance": {"float16": {"rtol": 1e-3}}, "summary": "x, once more"}


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    file = tmp_path / "reference.py"
    file.write_text("def reference(x):\n    return x + 1\n")
    pair = Pair({"op_host/t.cpp": ""}, {"k.cpp": ""})
    return Operator("op", tmp_path, "k", "k.cpp", pair, reference=LazyReference(file), settings=SETTINGS)


@pytest.mark.parametrize(
    "changes",
    [
        {"domain": {"x": {"low": 0.5}}},
        {"domain": {}},
        {"tolerance": {"float16": {"rtol": 2e-3}}},
        {"initial": {"y": 0}},
        {"specials": True},
    ],
)
def test_inputs_and_tolerances_count(operator: Operator, changes: dict[str, Any]) -> None:
    assert specification(replace(operator, settings={**SETTINGS, **changes})) != specification(operator)


def test_what_only_people_read_does_not(operator: Operator) -> None:
    assert specification(replace(operator, settings={**SETTINGS, "summary": "another"})) == specification(operator)


def test_every_number_of_an_array_counts(operator: Operator) -> None:
    def drawn(values: np.ndarray) -> str:
        return specification(replace(operator, settings={**SETTINGS, "domain": {"x": {"values": values}}}))

    order = np.arange(5000)
    assert drawn(order) == drawn(order.copy())
    assert drawn(order) != drawn(np.where(order == 2500, 0, order))


def test_a_reference_that_is_gone_is_told(operator: Operator) -> None:
    (operator.root / "reference.py").unlink()
    with pytest.raises(OperatorError, match=r"reference.py can't be read"):
        specification(operator)


def test_the_reference_counts(operator: Operator) -> None:
    before = specification(operator)
    (operator.root / "reference.py").write_text("def reference(x):\n    return x + 2\n")
    assert specification(operator) != before
    assert specification(replace(operator, reference=None)) not in (before, specification(operator))
    assert specification(operator.invariantly()) != specification(operator)


def test_a_function_s_own_text_counts(operator: Operator) -> None:
    def one(x: int) -> int:
        return x + 1

    def two(x: int) -> int:
        return x + 2

    names = {specification(replace(operator, reference=f)) for f in (one, two, one, abs)}
    assert len(names) == 3
