"""Types of outputs that an operator's own type function gets wrong."""

from __future__ import annotations

from ascendopt_tune.build.host_program import _as_defined
from ascendopt_tune.nouns.case import TensorSpec
from ascendopt_tune.nouns.operator import ParamDef, Signature

SIGNATURE = Signature(
    "Sums",
    (ParamDef("index", ("int32", "int32"), "required", ("ND", "ND")),),
    (
        ParamDef("y", ("float32", "float16"), "required", ("ND", "ND")),
        ParamDef("parts", ("float32", "float16"), "dynamic", ("ND", "ND")),
    ),
    (),
)
INDEX = TensorSpec("int32", (9,))
DEFINED = (TensorSpec("float32", ()), (TensorSpec("float32", ()),) * 2)


def _found(y: str, part: str) -> tuple[TensorSpec, tuple[TensorSpec, ...]]:
    return TensorSpec(y, (3, 4)), (TensorSpec(part, (3,)), TensorSpec(part, (4,)))


def test_types_that_a_column_has_stay() -> None:
    assert _as_defined(SIGNATURE, (INDEX,), _found("float16", "float16"), DEFINED) == _found("float16", "float16")


def test_types_that_no_column_has_are_the_definitions() -> None:
    assert _as_defined(SIGNATURE, (INDEX,), _found("int32", "float32"), DEFINED) == _found("float32", "float32")
