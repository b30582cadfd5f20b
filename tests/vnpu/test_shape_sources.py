"""Shape functions in a file that the build file doesn't name are taken where they build, and left out where not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.errors import AscendOptError
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.nouns.case import TensorSpec
from ascendopt_tune.sources.project import load_project

_HOST = """\
#include "register/op_def_registry.h"
namespace optiling {
static ge::graphStatus Tiling(gert::TilingContext* context) {
  context->SetBlockDim(1);
  return ge::GRAPH_SUCCESS;
}
IMPL_OP_OPTILING(Halve).Tiling(Tiling);
}
namespace ops {
class Halve : public OpDef {
 public:
  explicit Halve(const char* name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->AICore().AddConfig("ascend910b");
  }
};
OP_ADD(Halve);
}
"""
_SHAPES = """\
#include "register/op_impl_registry.h"
namespace ops {
static ge::graphStatus InferShape(gert::InferShapeContext* context) {
  *context->GetOutputShape(0) = *context->GetInputShape(0);
  context->GetOutputShape(0)->SetDim(0, context->GetInputShape(0)->GetDim(0) / 2);
  return ge::GRAPH_SUCCESS;
}
IMPL_OP_INFERSHAPE(Halve).InferShape(InferShape);
}
"""
_KERNEL = """\
#include "kernel_operator.h"
extern "C" __global__ __aicore__ void halve(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {}
"""
_BROKEN = '#include "nowhere/nothing.h"\n'  # a header that the operator has no use for otherwise
_CALLS = "void nobodys();\nstatic int asked = (nobodys(), 0);\n"  # what nobody defines


def made(root: Path, shapes: str) -> Path:
    texts = {"op_host/halve.cpp": _HOST, "op_host/halve_infershape.cpp": shapes, "op_kernel/halve.cpp": _KERNEL}
    texts["CMakeLists.txt"] = "target_sources(optiling PRIVATE op_host/halve.cpp)\n"
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_they_are_looked_for_where_nobody_registers_any(tmp_path: Path) -> None:
    root = made(tmp_path / "halve", _SHAPES)
    assert load_project(root).shape_sources == (root / "op_host/halve_infershape.cpp",)
    (root / "op_host/halve.cpp").write_text(_HOST + _SHAPES)
    assert load_project(root).shape_sources == ()


def test_the_shape_is_known_by_them(tmp_path: Path) -> None:
    operator = load_project(made(tmp_path / "halve", _SHAPES))
    with Evaluator(virtual(), "ascend910b2", workers=1, build_dir=tmp_path / "build") as evaluator:
        for _ in range(2):  # the second time the program is there
            outputs = evaluator.infer_outputs(operator, (TensorSpec("float32", (8, 3)),), ())
            assert outputs == (TensorSpec("float32", (4, 3)),)


@pytest.mark.parametrize("start", [_BROKEN, _CALLS], ids=["a header is missing", "a function is missing"])
def test_they_are_left_out_where_they_do_not_build(start: str, tmp_path: Path) -> None:
    operator = load_project(made(tmp_path / "halve", start + _SHAPES))
    with Evaluator(virtual(), "ascend910b2", workers=1, build_dir=tmp_path / "build") as evaluator:
        for _ in range(2):
            assert [p.name for p in evaluator.describe(operator).signature.outputs] == ["y"]
        try:
            outputs = evaluator.infer_outputs(operator, (TensorSpec("float32", (8, 3)),), ())
        except AscendOptError:
            return
        assert outputs == (None,)
