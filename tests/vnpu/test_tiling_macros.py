"""Macros of an operator's build: tiling data where they lie, two keys asked for at once, the mode it is built in."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.operator import Operator
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.sources.registry import load_folder

_DATA = """\
#pragma once
#include <cstdint>
struct Factors { uint32_t times; uint32_t plus; };
struct PartsTiling { uint32_t length; uint32_t steps[3]; Factors factors; };
"""
_HOST = """\
#include "../op_kernel/parts_data.h"
#include "register/op_def_registry.h"
namespace optiling {
static ge::graphStatus Tiling(gert::TilingContext* context) {
  auto data = context->GetTilingData<PartsTiling>();
  *data = {static_cast<uint32_t>(context->GetInputShape(0)->GetShape().GetShapeSize()), {1, 2, 4}, {3, 5}};
  context->SetTilingKey(data->length > 64 ? 2 : 1);
  context->SetBlockDim(1);
  return ge::GRAPH_SUCCESS;
}
}
namespace ops {
class Parts : public OpDef {
 public:
  explicit Parts(const char* name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_INT32}).Format({ge::FORMAT_ND});
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_INT32}).Format({ge::FORMAT_ND});
    this->AICore().SetTiling(optiling::Tiling).AddConfig("ascend910b");
  }
};
OP_ADD(Parts);
}
"""
_KERNEL = """\
#include "kernel_operator.h"
#include "op_kernel/math_util.h"
#include "op_kernel/platform_util.h"
#include "parts_data.h"
#if defined(HIGH_PERFORMANCE) == defined(HIGH_PRECISION)
#error "an operator is built in one of two modes"
#endif
using namespace AscendC;
__aicore__ inline uint32_t LengthOf(__tiling_data_ptr__ PartsTiling* data) { return data->length; }
extern "C" __global__ __aicore__ void parts(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  REGISTER_NONE_TILING;
  GET_TILING_DATA_PTR_WITH_STRUCT(PartsTiling, data, tiling);
  COPY_TILING_WITH_STRUCT(Factors, &data->factors, factors);
  COPY_TILING_WITH_ARRAY(uint32_t, 3, data->steps, steps);
  GlobalTensor<int32_t> in, out;
  in.SetGlobalBuffer((__gm__ int32_t*)x);
  out.SetGlobalBuffer((__gm__ int32_t*)y);
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, Ops::Base::CeilAlign<uint32_t>(LengthOf(data) * 4, Ops::Base::GetUbBlockSize()));
  LocalTensor<int32_t> local = buffer.Get<int32_t>();
  const uint32_t bytes = LengthOf(data) * 4;
  DataCopyPad(local, in, DataCopyExtParams{1, bytes, 0, 0, 0}, DataCopyPadExtParams<int32_t>{false, 0, 0, 0});
  PipeBarrier<PIPE_ALL>();
  Muls(local, local, static_cast<int32_t>(factors->times * (*steps)[2]), data->length);
  PipeBarrier<PIPE_V>();
  if (TILING_KEY_LIST(2, 3)) {
    Adds(local, local, static_cast<int32_t>(factors->plus), data->length);
  } else if (TILING_KEY_LIST(7, 1)) {
    Adds(local, local, static_cast<int32_t>(1), data->length);
  }
  PipeBarrier<PIPE_ALL>();
  DataCopyPad(out, local, DataCopyExtParams{1, bytes, 0, 0, 0});
}
"""
_REFERENCE = """\
def reference(x):
    return 12 * x + (5 if x.numel() > 64 else 1)
"""


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Operator:
    root: Path = tmp_path_factory.mktemp("made") / "parts"
    texts = {"op_host/parts.cpp": _HOST, "op_kernel/parts.cpp": _KERNEL, "op_kernel/parts_data.h": _DATA}
    for name, text in {**texts, "reference.py": _REFERENCE}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return load_folder(root)


@pytest.mark.parametrize(("length", "options"), [(64, ()), (100, ()), (64, ("-DHIGH_PRECISION=1",))])
def test_parts_of_the_tiling_data_are_read_where_they_lie(
    operator: Operator, length: int, options: tuple[str, ...]
) -> None:
    operator = dataclasses.replace(operator, kernel_options=(*operator.kernel_options, *options))
    spec = TensorSpec("int32", (length,))
    with Evaluator(virtual(), "ascend910b2", workers=1) as evaluator:
        signature = evaluator.describe(operator).signature
        gate = Gate(operator, Case((spec,), (spec,)), evaluator, signature=signature)
        ((_, checked),) = gate.evaluate_many({0: operator.baseline})
    assert isinstance(checked.outcome, Timed), checked.outcome
