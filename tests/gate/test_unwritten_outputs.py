"""Without a reference the operator as written is the specification: what it leaves of its outputs unwritten is told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.evaluate.compare import untouched
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.operator import Operator
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.sources.registry import load_operator

SPEC = TensorSpec("float16", (40, 512))
STORE = "DataCopyPad(zGm[offset], zLocal, copyParams);"


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(virtual(), "ascend910b2", workers=1) as opened:
        yield opened


def add(store: str) -> Operator:
    """add without its reference, and with another statement that stores."""
    operator = replace(load_operator("add"), reference=None)
    ((path, text),) = [(p, t) for p, t in operator.baseline.kernel.items() if STORE in t]
    return replace(operator, baseline=operator.baseline.with_kernel(path, text.replace(STORE, store)))


@pytest.mark.parametrize(
    ("store", "written"),
    [(STORE, True), (f"if (GetBlockIdx() % 2 == 0) {{ {STORE} }}", False)],
    ids=["all of it", "by every other core"],
)
def test_what_nobody_writes_is_told(evaluator: Evaluator, store: str, written: bool) -> None:
    gate = Gate(add(store), Case((SPEC, SPEC), (SPEC,)), evaluator)
    checked = gate.evaluate(gate.operator.baseline)
    assert isinstance(checked.outcome, Timed), checked.outcome
    if written:
        assert gate.unwritten == {}
    else:
        left, size = gate.unwritten["z"]
        assert size == 40 * 512
        assert 0.4 * size < left < 0.6 * size
        assert gate.unwritten_notes == [
            f"the operator as written leaves {left} of 20480 elements of z as they were, in every trial"
        ]


def test_an_element_is_untouched_if_all_its_bytes_are() -> None:
    array = np.array([[0x5A5A, 0x5A00], [0, -1]], np.int16)
    np.testing.assert_array_equal(untouched(array, 0x5A), [[True, False], [False, False]])
    np.testing.assert_array_equal(untouched(array.T, 0xFF), [[False, False], [False, True]])
    assert untouched(np.zeros((0, 3), np.float32), 0).shape == (0, 3)
