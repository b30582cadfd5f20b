"""A small operator as text, for tests of the host side."""

from __future__ import annotations

from pathlib import Path

TILING_H = """\
#include "register/tilingdata_base.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(Inner)
  TILING_DATA_FIELD_DEF(uint8_t, flag);
  TILING_DATA_FIELD_DEF(uint32_t, size);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(InnerOp, Inner)
BEGIN_TILING_DATA_DEF(ScaleRowsTilingData)
  TILING_DATA_FIELD_DEF(uint8_t, first);
  TILING_DATA_FIELD_DEF(uint64_t, rows);
  TILING_DATA_FIELD_DEF(uint16_t, half);
  TILING_DATA_FIELD_DEF_ARR(uint32_t, 3, list);
  TILING_DATA_FIELD_DEF(float, scale);
  TILING_DATA_FIELD_DEF_STRUCT(Inner, inner);
  TILING_DATA_FIELD_DEF(int16_t, last);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(ScaleRows, ScaleRowsTilingData)
BEGIN_TILING_DATA_DEF(SevenTilingData)
  TILING_DATA_FIELD_DEF(uint32_t, one);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(ScaleRows_7, SevenTilingData)
}
"""

HOST_CPP = """\
#include "scale_rows_tiling.h"
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"
namespace optiling {
struct CompileInfo { uint32_t cores; uint64_t ub; };
static ge::graphStatus Parse(gert::TilingParseContext* context) {
  auto* info = context->GetCompiledInfo<CompileInfo>();
  platform_ascendc::PlatformAscendC platform(context->GetPlatformInfo());
  info->cores = platform.GetCoreNumAiv();
  platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, info->ub);
  return ge::GRAPH_SUCCESS;
}
static ge::graphStatus Tiling(gert::TilingContext* context) {
  const auto& shape = context->GetInputShape(0)->GetStorageShape();
  if (shape.GetDim(0) == 13) {
    printf("thirteen rows are not supported\\n");
    return ge::GRAPH_FAILED;
  }
  auto* info = context->GetCompileInfo<CompileInfo>();
  ScaleRowsTilingData data;
  data.set_first(1);
  data.set_rows(shape.GetDim(0));
  data.set_half(info->ub / 256);
  uint32_t list[3] = {1, 2, uint32_t(context->GetDynamicInputTensor(2, 0) ? 9 : 0)};
  data.set_list(list);
  data.set_scale(*context->GetAttrs()->GetFloat(0));
  const auto* axes = context->GetAttrs()->GetListInt(1);
  data.inner.set_size(axes->GetSize() * 100 + axes->GetData()[0]);
  data.set_last(context->GetOptionalInputDesc(1) == nullptr ? -1 : 1);
  if (const auto* k = context->GetOptionalInputTensor(1); k != nullptr && k->GetData<int64_t>() != nullptr) {
    data.set_last(k->GetData<int64_t>()[1]);
  }
  data.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(data.GetDataSize());
  context->SetBlockDim(info->cores);
  context->SetTilingKey(context->GetInputDesc(0)->GetDataType() == ge::DT_FLOAT ? 0 : 7);
  context->GetWorkspaceSizes(2)[0] = 64;
  context->GetWorkspaceSizes(2)[1] = 32;
  return ge::GRAPH_SUCCESS;
}
static ge::graphStatus InferShape(gert::InferShapeContext* context) {
  auto* y = context->GetOutputShape(0);
  *y = *context->GetInputShape(0);
  y->AppendDim(2);
  return ge::GRAPH_SUCCESS;
}
IMPL_OP_OPTILING(ScaleRows).Tiling(Tiling).TilingParse<CompileInfo>(Parse);
}
namespace ops {
class ScaleRows : public OpDef {
 public:
  explicit ScaleRows(const char* name) : OpDef(name) {
    this->Input("x").DataType({ge::DT_FLOAT, ge::DT_FLOAT16}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Input("k").ParamType(OPTIONAL).DataType({ge::DT_INT64, ge::DT_INT64}).ValueDepend(OPTIONAL);
    this->Input("more").ParamType(DYNAMIC).DataType({ge::DT_FLOAT, ge::DT_FLOAT});
    this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT, ge::DT_BF16}).Format({ge::FORMAT_ND, ge::FORMAT_ND});
    this->Attr("scale").AttrType(OPTIONAL).Float(0.1);
    this->Attr("axes").AttrType(REQUIRED).ListInt();
    this->SetInferShape(optiling::InferShape);
    this->AICore().SetTiling(optiling::Tiling).AddConfig("ascend910b");
  }
};
OP_ADD(ScaleRows);
}
"""

KERNEL_CPP = """\
#include "kernel_operator.h"
// __global__ void not_this_one() {}
extern "C" __global__ __aicore__ void scale_rows(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {}
"""


def write_operator(folder: Path, host: str = HOST_CPP, kernel: str = KERNEL_CPP) -> Path:
    """Writes the operator ``scale_rows`` into ``folder``; returns its folder."""
    root = folder / "scale_rows"
    for path, text in {
        "op_host/scale_rows.cpp": host,
        "op_host/scale_rows_tiling.h": TILING_H,
        "op_host/aclnn_scale_rows.cpp": "#include <nowhere.h>\n",
        "op_kernel/scale_rows.cpp": kernel,
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def write_shared_tiling(folder: Path) -> tuple[Path, Path]:
    """``scale_rows`` with its tiling data in a header of the repository: (its folder, the repository's headers)."""
    root = write_operator(folder / "src")
    shared = folder / "src" / "common" / "inc"
    (shared / "rows" / "more").mkdir(parents=True)
    (root / "op_host" / "scale_rows_tiling.h").rename(shared / "rows" / "more" / "data.h")
    (shared / "rows" / "tiling.h").write_text('#include "more/data.h"\n#include "register/op_def_registry.h"\n')
    (shared / "rows" / "other.h").write_text("int other();\n")
    host = root / "op_host" / "scale_rows.cpp"
    text = host.read_text().replace('"scale_rows_tiling.h"', '"rows/tiling.h"\n#include "rows/other.h"')
    host.write_text(text)
    (root / "CMakeLists.txt").write_text(f"target_include_directories(optiling PRIVATE {shared})\n")
    return root, shared
