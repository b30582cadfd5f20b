"""A kernel whose template arguments, a type among them, the tiling function chooses: instantiated for the key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.operator import Operator
from ascendopt_tune.nouns.outcome import CompileFailed, Timed
from ascendopt_tune.sources.registry import load_folder

_KEYS = """\
#pragma once
#include "ascendc/host_api/tiling/template_argument.h"
ASCENDC_TPL_ARGS_DECL(Grow,
  ASCENDC_TPL_DATATYPE_DECL(D_T_X, C_DT_FLOAT16, C_DT_FLOAT, C_DT_INT32),
  ASCENDC_TPL_UINT_DECL(FACTOR, ASCENDC_TPL_8_BW, ASCENDC_TPL_UI_LIST, 3, 5),
  ASCENDC_TPL_BOOL_DECL(PLUS_ONE, 0, 1)
);
ASCENDC_TPL_SEL(ASCENDC_TPL_ARGS_SEL(ASCENDC_TPL_DATATYPE_SEL(D_T_X, C_DT_FLOAT16), ASCENDC_TPL_BOOL_SEL(PLUS_ONE, 0)));
struct GrowTiling { uint32_t length; };
"""
_HOST = """\
#include "../op_kernel/grow_keys.h"
#include "register/op_def_registry.h"
namespace optiling {
static ge::graphStatus Tiling(gert::TilingContext* context) {
  auto data = context->GetTilingData<GrowTiling>();
  data->length = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
  const uint32_t type = context->GetInputDesc(0)->GetDataType();
  ASCENDC_TPL_SEL_PARAM(context, type, data->length > 64 ? 5u : 3u, data->length % 2);
  context->SetBlockDim(1);
  return ge::GRAPH_SUCCESS;
}
}
namespace ge {
static graphStatus InferShape(gert::InferShapeContext* context) {
  *context->GetOutputShape(0) = *context->GetInputShape(0);
  return GRAPH_SUCCESS;
}
}
namespace ops {
class Grow : public OpDef {
 public:
  explicit Grow(const char* name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_INT32})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT16, ge::DT_FLOAT, ge::DT_INT32})
        .Format({ge::FORMAT_ND, ge::FORMAT_ND, ge::FORMAT_ND});
    this->SetInferShape(ge::InferShape);
    this->AICore().SetTiling(optiling::Tiling).AddConfig("ascend910b");
  }
};
OP_ADD(Grow);
}
"""
_KERNEL = """\
#include "kernel_operator.h"
#include "grow_keys.h"
using namespace AscendC;
template <typename D_T_X, int FACTOR, bool PLUS_ONE>
__global__ __aicore__ void grow(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(GrowTiling);
  GET_TILING_DATA_WITH_STRUCT(GrowTiling, data, tiling);
  GlobalTensor<D_T_X> in, out;
  in.SetGlobalBuffer((__gm__ D_T_X*)x);
  out.SetGlobalBuffer((__gm__ D_T_X*)y);
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, 1024);
  LocalTensor<D_T_X> local = buffer.Get<D_T_X>();
  const uint32_t bytes = data.length * sizeof(D_T_X);
  DataCopyPad(local, in, DataCopyExtParams{1, bytes, 0, 0, 0}, DataCopyPadExtParams<D_T_X>{false, 0, 0, 0});
  PipeBarrier<PIPE_ALL>();
  Muls(local, local, static_cast<D_T_X>(FACTOR), data.length);
  PipeBarrier<PIPE_V>();
  if constexpr (PLUS_ONE) Adds(local, local, static_cast<D_T_X>(1), data.length);
  PipeBarrier<PIPE_ALL>();
  DataCopyPad(out, local, DataCopyExtParams{1, bytes, 0, 0, 0});
}
"""
_REFERENCE = """\
def reference(x):
    return x * (5 if x.numel() > 64 else 3) + x.numel() % 2
"""


# Who says the type; a header of keys that has no guard and that the kernel includes twice; or a header of the host,
# behind which DT_FLOAT16 is no macro.
@pytest.fixture(scope="module", params=["", "ASCENDC_TPL_INPUT(0)", "ASCENDC_TPL_OUTPUT(0)", "twice", "host"])
def operator(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Operator:
    root = tmp_path_factory.mktemp("made") / "grow"
    texts = {"op_host/grow.cpp": _HOST, "op_kernel/grow.cpp": _KERNEL, "op_kernel/grow_keys.h": _KEYS}
    texts["reference.py"] = _REFERENCE
    if request.param == "twice":
        texts["op_kernel/grow_keys.h"] = _KEYS.replace("#pragma once\n", "").partition("struct")[0]
        struct = f"struct{_KEYS.partition('struct')[2]}"
        again = f'#include "grow_keys.h"\n#include "grow_keys.h"\n{struct}'
        texts["op_kernel/grow.cpp"] = _KERNEL.replace('#include "grow_keys.h"\n', again)
        texts["op_host/grow.cpp"] = _HOST.replace("namespace optiling {", f"{struct}namespace optiling {{", 1)
    elif request.param == "host":
        texts["op_kernel/grow_keys.h"] = f'{_KEYS}#include "tiling/tiling_api.h"\n'
    elif request.param:  # the case says the type; the tiling function always names the first one
        texts["op_kernel/grow_keys.h"] = _KEYS.replace("C_DT_INT32),", f"C_DT_INT32, {request.param}),")
        texts["op_host/grow.cpp"] = _HOST.replace("context->GetInputDesc(0)->GetDataType()", "C_DT_FLOAT16")
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return load_folder(root)


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(virtual(), "ascend910b2", workers=1) as opened:
        yield opened


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
@pytest.mark.parametrize("length", [64, 33, 100])
def test_the_key_says_type_and_numbers(operator: Operator, evaluator: Evaluator, dtype: str, length: int) -> None:
    spec = TensorSpec(dtype, (length,))
    signature = evaluator.describe(operator).signature
    gate = Gate(operator, Case((spec,), (spec,)), evaluator, signature=signature)
    ((_, checked),) = gate.evaluate_many({0: operator.baseline})
    assert isinstance(checked.outcome, Timed), checked.outcome


def test_a_key_that_nobody_declared_is_told(tmp_path: Path) -> None:
    root = tmp_path / "grow"
    asked = "ASCENDC_TPL_SEL_PARAM(context, type, data->length > 64 ? 5u : 3u, data->length % 2);"
    host = _HOST.replace(asked, "context->SetTilingKey((1 << 17) + type);")
    texts = {"op_host/grow.cpp": host, "op_kernel/grow.cpp": _KERNEL, "op_kernel/grow_keys.h": _KEYS}
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    spec = TensorSpec("float16", (64,))
    with Evaluator(virtual(), "ascend910b2", workers=1) as evaluator:
        operator = load_folder(root)
        signature = evaluator.describe(operator).signature
        built = Gate(operator, Case((spec,), (spec,)), evaluator, signature=signature).build(operator.baseline)
    assert isinstance(built.outcome, CompileFailed)
    assert "tiling key 131073 is none of the declared template arguments" in built.outcome.reason
