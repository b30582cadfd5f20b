// z = -x for every tensor of a list; y = -y in place. One core.
#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"

namespace optiling {
BEGIN_TILING_DATA_DEF(NegateListsTilingData)
TILING_DATA_FIELD_DEF(uint32_t, count);           // tensors of each list
TILING_DATA_FIELD_DEF_ARR(uint32_t, 8, lengths);  // elements
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(NegateLists, NegateListsTilingData)

static ge::graphStatus TilingFunc(gert::TilingContext* context) {
  NegateListsTilingData tiling;
  uint32_t lengths[8] = {};
  uint32_t count = 0;
  while (count < 8 && context->GetDynamicInputShape(0, count) != nullptr) {
    lengths[count] = context->GetDynamicInputShape(0, count)->GetStorageShape().GetShapeSize();
    count++;
  }
  tiling.set_count(count);
  tiling.set_lengths(lengths);
  context->SetBlockDim(1);
  tiling.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
  context->GetRawTilingData()->SetDataSize(tiling.GetDataSize());
  return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ops {
class NegateLists : public OpDef {
 public:
  explicit NegateLists(const char* name) : OpDef(name) {
    for (const char* input : {"x", "y"})
      this->Input(input).ParamType(DYNAMIC).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    for (const char* output : {"z", "y"})
      this->Output(output).ParamType(DYNAMIC).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
    this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b");
  }
};
OP_ADD(NegateLists);
}  // namespace ops
