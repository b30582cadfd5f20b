"""Types of outputs that an operator's own type function gets wrong."""

from __future__ import annotations

from ascendopt_tune.build.host_program import _as_defined
from ascendopt_tune.build.host_signature import dtype_column
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


def test_of_columns_of_one_dtype_that_with_the_formats_is_taken() -> None:
    """ops-nn's quant_batch_matmul_v3: int8 in ND and in tiles, each a column."""
    both = ("int8", "int8", "int8", "float16")
    product = Signature(
        "Product",
        (
            ParamDef("a", both, "required", ("FRACTAL_NZ", "ND", "ND", "ND")),
            ParamDef("b", both, "required", ("FRACTAL_NZ", "ND", "FRACTAL_NZ", "ND")),
        ),
        (ParamDef("y", ("float16",) * 4, "required", ("ND",) * 4),),
        (),
    )
    rows, tiles = TensorSpec("int8", (64, 64)), TensorSpec("int8", (2, 4, 16, 32), "FRACTAL_NZ")
    y = TensorSpec("float16", (64, 64))
    found = [dtype_column(product, inputs, (y,)) for inputs in ((rows, rows), (rows, tiles), (tiles, tiles))]
    assert found == [1, 2, 0]
    assert dtype_column(product, (tiles, rows), (y,)) == 0  # no column has both: the first that has most
    assert dtype_column(product, (y, y), (y,)) == 3
