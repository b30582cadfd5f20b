"""A reference gets int4 as int8, which torch knows, in float64's company and alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ascendopt_tune.evaluate import reference
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.sources.registry import load_operator

pytest.importorskip("torch")


def test_int4_of_a_reference() -> None:
    seen: list[Any] = []

    def of(weight: Any, scale: Any) -> Any:
        seen.append(weight.dtype)
        return weight.double() * scale

    operator = replace(load_operator("silu"), reference=of)
    case = Case((TensorSpec("int4", (8,)), TensorSpec("float32", (8,))), (TensorSpec("float32", (8,)),))
    weight = np.array([-8, -1, 0, 1, 2, 3, 4, 7], dtype=ml_dtypes.int4)
    found = reference.expected_outputs(operator, case, [weight, np.full(8, 0.5, np.float32)])
    assert all(str(dtype) == "torch.int8" for dtype in seen)
    assert seen
    first = found[0] if isinstance(found, tuple) else found
    np.testing.assert_allclose(np.asarray(first, np.float64), [-4, -0.5, 0, 0.5, 1, 1.5, 2, 3.5])
    assert str(reference.to_tensor(weight).dtype) == "torch.int8"
