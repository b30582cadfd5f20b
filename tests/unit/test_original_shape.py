"""What a tiling program is told of an input that lies in tiles: the shape of the matrix, and that of its storage."""

from __future__ import annotations

import struct
from contextlib import closing
from pathlib import Path

import pytest
from host_examples import HOST_CPP
from test_host import operator, out_dir

from ascendopt_tune.build.host import compile_host
from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import load_chip
from ascendopt_tune.nouns.operator import Operator

__all__ = ["operator", "out_dir"]
TOLD = """
  const auto& origin = context->GetInputShape(0)->GetOriginShape();
  const bool plain = context->GetInputDesc(0)->GetOriginFormat() == ge::FORMAT_ND;
  const int64_t columns = origin.GetDim(origin.GetDimNum() - 1), rows = origin.GetDim(origin.GetDimNum() - 2);
  data.set_rows(((origin.GetDimNum() * 10000 + rows) * 10000 + columns) * 2 + plain);
"""


@pytest.mark.parametrize(
    ("spec", "axes", "rows", "columns", "plain"),
    [
        ("float32[3,8,4,16,8]:FRACTAL_NZ", 3, 64, 64, True),
        ("float16[4,2,16,16]:FRACTAL_NZ", 2, 32, 64, True),
        ("float16[4,32]", 2, 4, 32, True),
        ("float32[2,3,8,8]:NCHW", 4, 8, 8, False),
    ],
)
def test_the_origin_of_tiles_is_a_matrix(
    operator: Operator, out_dir: Path, spec: str, axes: int, rows: int, columns: int, plain: bool
) -> None:
    assert "data.set_rows(shape.GetDim(0));" in HOST_CPP
    text = operator.baseline.tiling["op_host/scale_rows.cpp"].replace("data.set_rows(shape.GetDim(0));", TOLD)
    x = TensorSpec.parse(spec)
    with closing(
        compile_host(operator, operator.baseline.with_tiling("op_host/scale_rows.cpp", text), virtual(), out_dir)
    ) as program:
        result = program.tiling(Case((x, None, (x,)), (x,), (("axes", (5, 6)),)), load_chip("ascend910b2"))
        structs = {s.name: s for s in program.describe().tiling_structs}
    (field,) = [f for f in structs["ScaleRowsTilingData"].fields if f.name == "rows"]
    (told,) = struct.unpack_from("<Q", result.data, field.offset)
    assert told == ((axes * 10000 + rows) * 10000 + columns) * 2 + plain
