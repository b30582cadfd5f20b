"""Shape functions that operators of CANN's open repositories share: against numpy's rule."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendopt_tune.build.host import HostProgram, compile_host
from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.errors import AscendOptError
from ascendopt_tune.nouns.case import TensorSpec
from ascendopt_tune.sources.project import load_project

_HOST = """\
#include "register/op_def_registry.h"
#include "{header}"
namespace ops {{
static ge::graphStatus Shapes(gert::InferShapeContext* context) {{ return Ops::Base::{called}; }}
IMPL_OP_INFERSHAPE(Both).InferShape(Shapes);
class Both : public OpDef {{
 public:
  explicit Both(const char* name) : OpDef(name) {{
    for (const char* name : {{"a", "b", "c"}}) this->Input(name).ParamType(REQUIRED).DataType({{ge::DT_FLOAT}});
    for (const char* name : {{"x", "y"}}) this->Output(name).ParamType(REQUIRED).DataType({{ge::DT_FLOAT}});
    this->AICore().SetTiling([](gert::TilingContext*) {{ return ge::GRAPH_SUCCESS; }}).AddConfig("ascend910b");
  }}
}};
OP_ADD(Both);
}}
"""


def compiled(folder: Path, header: str, called: str) -> Iterator[HostProgram]:
    for name, text in (
        ("op_host/both.cpp", _HOST.format(header=header, called=called)),
        ("op_kernel/both.cpp", 'extern "C" __global__ __aicore__ void both(GM_ADDR a) {}'),
    ):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(text)
    operator = load_project(folder)
    program = compile_host(operator, operator.baseline, virtual(), folder / "out")
    yield program
    program.close()


@pytest.fixture(scope="module")
def broadcast(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostProgram]:
    yield from compiled(
        tmp_path_factory.mktemp("all") / "both", "infershape_broadcast_util.h", "InferShape4Broadcast(context, 3)"
    )


def inferred(program: HostProgram, *shapes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    found = program.infer_shape(tuple(TensorSpec("float32", s) for s in shapes), {})
    return tuple(t.shape for t in found if isinstance(t, TensorSpec))


_SHAPES = st.lists(st.sampled_from([1, 1, 2, 3]), max_size=3).map(tuple)


@given(_SHAPES, _SHAPES, _SHAPES)
def test_broadcasting_is_numpys(
    broadcast: HostProgram, a: tuple[int, ...], b: tuple[int, ...], c: tuple[int, ...]
) -> None:
    try:
        expected = np.broadcast_shapes(a, b, c)
    except ValueError:
        with pytest.raises(AscendOptError, match="refuses"):
            inferred(broadcast, a, b, c)
    else:
        assert inferred(broadcast, a, b, c)[0] == expected


def test_the_first_elementwise_output_is_as_the_first_input(tmp_path: Path) -> None:
    header, called = "op_common/op_host/infershape_elewise_util.h", "InferShape4Elewise(context)"
    for program in compiled(tmp_path / "both", header, called):
        assert inferred(program, (4, 5), (7,), (1,)) == ((4, 5), ())


@pytest.mark.parametrize(
    ("keep", "axes", "expected"),
    [
        ("With", "0, -1", (1, 5, 1)),
        ("Without", "0, -1", (5,)),
        ("Without", "-2", (4, 6)),
        ("Without", "1, 1", (4, 6)),
        ("With", "3", None),
    ],
)
def test_reduced_axes_are_counted_from_either_end(
    tmp_path: Path, keep: str, axes: str, expected: tuple[int, ...] | None
) -> None:
    count = axes.count(",") + 1
    named = f"std::vector<int64_t>{{{axes}}}.data(), {count}, context->GetOutputShape(0)"
    called = f"ReduceDims{keep}KeepDims(context->GetInputShape(0), {named})"
    for program in compiled(tmp_path / "both", "op_host/infershape_reduce_util.h", called):
        if expected is None:
            with pytest.raises(AscendOptError, match="refuses"):
                inferred(program, (4, 5, 6), (7,), (1,))
        else:
            assert inferred(program, (4, 5, 6), (7,), (1,))[0] == expected


def test_several_shapes_are_broadcast_at_once(tmp_path: Path) -> None:
    shapes = ", ".join(f"context->GetInputShape({i})" for i in range(3))
    called = f"BroadcastShape({{{shapes}}}, context->GetOutputShape(0)) ? ge::GRAPH_SUCCESS : ge::GRAPH_FAILED"
    for program in compiled(tmp_path / "both", "infershape_broadcast_util.h", called):
        assert inferred(program, (4, 1), (7,), (1,))[0] == (4, 7)
