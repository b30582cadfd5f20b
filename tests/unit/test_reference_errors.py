"""What a user's reference raises is told with its line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ascendopt_tune.errors import OperatorError
from ascendopt_tune.evaluate import reference
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.sources.registry import LazyReference, load_operator

pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def reference(x):\n    y = x\n    return y.nope()\n", "reference.py, line 3: AttributeError: "),
        ("def reference(x) return\n", "SyntaxError: "),
        ("def refrence(x):\n    return x\n", "Define reference(*inputs, **attrs). Correct"),
        ("def reference(x):\n    raise ValueError('no.')\n", "line 2: ValueError: no. Correct"),
    ],
)
def test_the_line_is_told(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "reference.py").write_text(text)
    spec = TensorSpec("float32", (8,))
    operator = replace(load_operator("silu"), reference=LazyReference(tmp_path / "reference.py"))
    with pytest.raises(OperatorError) as raised:
        reference.expected_outputs(operator, Case((spec,), (spec,)), [np.ones(8, np.float32)])
    assert said in str(raised.value)
    assert ".." not in str(raised.value).replace(str(tmp_path), "")
