"""Which cores a kernel runs on, as the selection of its template arguments says (ASCENDC_TPL_KERNEL_TYPE_SEL)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.operator import Operator
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.sources.registry import load_folder

# A number that goes by ranges, and one that the selection has in hexadecimal; the dtype decides by #if, too.
_KEYS = """\
#pragma once
#include "ascendc/host_api/tiling/template_argument.h"
#define ON_CUBES 3
ASCENDC_TPL_ARGS_DECL(Which,
  ASCENDC_TPL_BOOL_DECL(OTHER, 0, 1),
  ASCENDC_TPL_UINT_DECL(MODE, ASCENDC_TPL_8_BW, ASCENDC_TPL_UI_RANGE, 1, 1, 5)
);
ASCENDC_TPL_SEL(
  ASCENDC_TPL_ARGS_SEL(ASCENDC_TPL_KERNEL_TYPE_SEL(ASCENDC_TPL_AIV_ONLY), ASCENDC_TPL_BOOL_SEL(OTHER, 0, 1),
                       ASCENDC_TPL_UINT_SEL(MODE, ASCENDC_TPL_UI_LIST, 1, 2)),
#if defined(ORIG_DTYPE_X) && ORIG_DTYPE_X == DT_INT32
  ASCENDC_TPL_ARGS_SEL(ASCENDC_TPL_KERNEL_TYPE_SEL(ASCENDC_TPL_AIC_ONLY), ASCENDC_TPL_BOOL_SEL(OTHER, 1),
                       ASCENDC_TPL_UINT_SEL(MODE, ASCENDC_TPL_UI_LIST, 0x3)),
#endif
  ASCENDC_TPL_ARGS_SEL(ASCENDC_TPL_KERNEL_TYPE_SEL(ASCENDC_TPL_MIX_AIC_1_1), ASCENDC_TPL_BOOL_SEL(OTHER, 0),
                       ASCENDC_TPL_UINT_SEL(MODE, ASCENDC_TPL_UI_RANGE, 1, ON_CUBES, 4)),
  ASCENDC_TPL_ARGS_SEL(ASCENDC_TPL_KERNEL_TYPE_SEL(ASCENDC_TPL_MIX_AIC_1_2), ASCENDC_TPL_BOOL_SEL(OTHER, 0),
                       ASCENDC_TPL_UINT_SEL(MODE, ASCENDC_TPL_UI_MIX, 1, 5, 5)),
);
struct WhichTiling { uint32_t length; };
"""
_HOST = """\
#include "../op_kernel/which_keys.h"
#include "register/op_def_registry.h"
namespace optiling {
static ge::graphStatus Tiling(gert::TilingContext* context) {
  const uint32_t length = context->GetInputShape(0)->GetStorageShape().GetShapeSize();
  context->GetTilingData<WhichTiling>()->length = length;
  ASCENDC_TPL_SEL_PARAM(context, length >= 10 ? 1u : 0u, length % 10);
  context->SetBlockDim(1);
  return ge::GRAPH_SUCCESS;
}
}
namespace ops {
class Which : public OpDef {
 public:
  explicit Which(const char* name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_INT32, ge::DT_FLOAT}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_INT32, ge::DT_INT32}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->AICore().SetTiling(optiling::Tiling).AddConfig("ascend910b");
  }
};
OP_ADD(Which);
}
"""
_KERNEL = """\
#include "kernel_operator.h"
#include "which_keys.h"
using namespace AscendC;
template <int OTHER, int MODE>
__global__ __aicore__ void which(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
  REGISTER_TILING_DEFAULT(WhichTiling);
  GlobalTensor<int32_t> out;
  int place = 0;
  if ASCEND_IS_AIV { place = 16 * (1 + GetSubBlockIdx()); }
  out.SetGlobalBuffer((__gm__ int32_t*)y + place);
  out.SetValue(0, MODE);
  DataCacheCleanAndInvalid<int32_t, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(out);
}
"""
_REFERENCE = """\
import torch


def reference(x):
    mode, cores = x.numel() % 10, {1: (1,), 2: (1,), 13: (0,), 4: (0, 1), 5: (0, 1, 2)}[x.numel()]
    y = torch.zeros(48, dtype=torch.int32)
    for core in cores:
        y[16 * core] = mode
    return y
"""


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Operator:
    root = tmp_path_factory.mktemp("made") / "which"
    texts = {"op_host/which.cpp": _HOST, "op_kernel/which.cpp": _KERNEL, "op_kernel/which_keys.h": _KEYS}
    texts |= {"reference.py": _REFERENCE, "op.toml": "[initial]\ny = 0\n"}
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return load_folder(root)


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(virtual(), "ascend910b2", workers=1) as opened:
        yield opened


@pytest.mark.parametrize(
    ("length", "kind"), [(1, "aiv"), (2, "aiv"), (13, "aic"), (4, "mix"), (5, "mix")], ids=lambda v: str(v)
)
def test_the_selection_says_the_cores(operator: Operator, evaluator: Evaluator, length: int, kind: str) -> None:
    case = Case((TensorSpec("int32", (length,)),), (TensorSpec("int32", (48,)),))
    outcome = Gate(operator, case, evaluator, signature=evaluator.describe(operator).signature)
    found = outcome.evaluate(operator.baseline).outcome
    assert isinstance(found, Timed), found
    assert found.profile.kind == kind


def test_a_combination_of_another_dtype_says_nothing(operator: Operator, evaluator: Evaluator) -> None:
    case = Case((TensorSpec("float32", (13,)),), (TensorSpec("int32", (48,)),))
    gate = Gate(operator, case, evaluator, signature=evaluator.describe(operator).signature)
    assert not isinstance(gate.evaluate(operator.baseline).outcome, Timed)  # it runs on vector cores
