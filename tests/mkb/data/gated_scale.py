"""A solution whose module and binding do what an import has to follow; the kernel scales what a mask lets through."""

project_json_src = """
[{"op": "GatedScaleCustom", "language": "cpp",
  "input_desc": [{"name": "x", "param_type": "required", "format": ["ND"], "type": ["float"]},
                 {"name": "weight", "param_type": "required", "format": ["ND"], "type": ["float"]},
                 {"name": "mask", "param_type": "required", "format": ["ND"], "type": ["float"]}],
  "output_desc": [{"name": "y", "param_type": "required", "format": ["ND"], "type": ["float"]}],
  "attr": [{"name": "factor", "type": "float", "param_type": "required"}]}]
"""

host_tiling_src = """
#include "register/tilingdata_base.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(GatedScaleTilingData)
TILING_DATA_FIELD_DEF(uint32_t, rows);
TILING_DATA_FIELD_DEF(uint32_t, columns);
TILING_DATA_FIELD_DEF(float, factor);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(GatedScaleCustom, GatedScaleTilingData)
}
"""

host_operator_src = """
#include "gated_scale_custom_tiling.h"
#include "register/op_def_registry.h"
namespace optiling {
static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  GatedScaleTilingData tiling;
  const gert::Shape& shape = context->GetInputShape(0)->GetStorageShape();
  tiling.set_columns(shape.GetDim(2));
  tiling.set_rows(shape.GetDim(0) * shape.GetDim(1));
  tiling.set_factor(*context->GetAttrs()->GetFloat(0));
  context->SetBlockDim(1);
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
  return ge::GRAPH_SUCCESS;
}
}
namespace ops {
class GatedScaleCustom : public OpDef {
 public:
  explicit GatedScaleCustom(const char* name) : OpDef(name) {
    this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Input("weight").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Input("mask").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->Attr("factor").AttrType(REQUIRED).Float();
    this->AICore().SetTiling(optiling::TilingFunc);
    this->AICore().AddConfig("ascend910b");
  }
};
OP_ADD(GatedScaleCustom);
}
"""

kernel_src = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void gated_scale_custom(GM_ADDR x, GM_ADDR weight, GM_ADDR mask, GM_ADDR y,
                                                         GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(data, tiling);
  const uint32_t n = data.columns;
  const DataCopyExtParams part{1, static_cast<uint32_t>(n * sizeof(float)), 0, 0, 0};
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> in[3];
  TQue<QuePosition::VECOUT, 1> out;
  GlobalTensor<float> from[3], to;
  const GM_ADDR given[3] = {x, weight, mask};
  for (int i = 0; i < 3; i++) {
    from[i].SetGlobalBuffer((__gm__ float*)given[i], i == 1 ? n : data.rows * n);
    pipe.InitBuffer(in[i], 1, (n + 7) / 8 * 32);
  }
  to.SetGlobalBuffer((__gm__ float*)y, data.rows * n);
  pipe.InitBuffer(out, 1, (n + 7) / 8 * 32);
  for (uint32_t row = 0; row < data.rows; row++) {
    for (int i = 0; i < 3; i++) {
      LocalTensor<float> tile = in[i].AllocTensor<float>();
      DataCopyPad(tile, from[i][i == 1 ? 0 : row * n], part, DataCopyPadExtParams<float>{false, 0, 0, 0});
      in[i].EnQue(tile);
    }
    LocalTensor<float> a = in[0].DeQue<float>(), b = in[1].DeQue<float>(), c = in[2].DeQue<float>();
    LocalTensor<float> result = out.AllocTensor<float>();
    Mul(result, a, b, n);
    Muls(result, result, data.factor, n);
    Mul(result, result, c, n);
    in[0].FreeTensor(a);
    in[1].FreeTensor(b);
    in[2].FreeTensor(c);
    out.EnQue(result);
    result = out.DeQue<float>();
    DataCopyPad(to[row * n], result, part);
    out.FreeTensor(result);
  }
}
"""

python_bind_src = """
#include <torch/extension.h>
#include "pytorch_npu_helper.hpp"

namespace {
int64_t last_axis(const at::Tensor& x) { return x.dim() > 0 ? x.dim() - 1 : 0; }
}

at::Tensor gated_scale_npu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& mask, double factor) {
    TORCH_CHECK(x.dim() == 3, "x[N, C, L] is expected");
    at::Tensor rows = x.permute({0, 2, 1}).contiguous();
    at::Tensor flat = weight.flatten();
    at::Tensor gate = mask.permute({0, 2, 1}).to(at::kFloat).contiguous();
    at::Tensor result = at::empty({rows.size(0), rows.size(1), rows.size(last_axis(rows))}, rows.options());
    EXEC_NPU_CMD(aclnnGatedScaleCustom, rows, flat, gate, factor, result);
    return result.permute({0, 2, 1}).contiguous();
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("gated_scale_custom", &gated_scale_npu, "gated scale");
}
"""

model_src = """
import torch
import torch_npu
import custom_ops_lib


class ModelNew(torch.nn.Module):
    def __init__(self, channels: int, factor: float = 2.0):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(channels, 1))
        self.factor = factor

    def forward(self, x, mask):
        return custom_ops_lib.gated_scale_custom(x, self.weight, mask, self.factor)
"""
