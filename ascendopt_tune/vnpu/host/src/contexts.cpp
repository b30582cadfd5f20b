// The contexts' view of a node.
#include "host.h"

namespace vnpu_host {

Node::~Node() {
  if (compile_info != nullptr && functions.free_compile_info != nullptr) functions.free_compile_info(compile_info);
}

void Tensors::Add(size_t ir_index, const gert::Tensor& tensor) {
  while (parameters.size() <= ir_index) parameters.emplace_back(static_cast<uint32_t>(tensors.size()), 0);
  auto& parameter = parameters[ir_index];
  parameter = gert::AnchorInstanceInfo(static_cast<uint32_t>(parameter.GetInstanceStart()),
                                       static_cast<uint32_t>(parameter.GetInstanceNum() + 1));
  tensors.push_back(tensor);
  gert::CompileTimeTensorDesc desc;
  desc.SetDataType(tensor.GetDataType());
  desc.SetStorageFormat(tensor.GetStorageFormat());
  desc.SetOriginFormat(tensor.GetOriginFormat());
  descs.push_back(desc);
}

gert::Tensor* Tensors::At(size_t ir_index, size_t k) {
  if (ir_index >= parameters.size() || k >= parameters[ir_index].GetInstanceNum()) return nullptr;
  return &tensors[parameters[ir_index].GetInstanceStart() + k];
}

}  // namespace vnpu_host

namespace gert {
namespace {

const AnchorInstanceInfo* Parameter(const vnpu_host::Tensors& tensors, size_t ir_index) {
  static const AnchorInstanceInfo absent;
  return ir_index < tensors.parameters.size() ? &tensors.parameters[ir_index] : &absent;
}

const CompileTimeTensorDesc* Desc(const vnpu_host::Tensors& tensors, size_t index) {
  return index < tensors.descs.size() ? &tensors.descs[index] : nullptr;
}

const CompileTimeTensorDesc* Desc(const vnpu_host::Tensors& tensors, size_t ir_index, size_t k) {
  const AnchorInstanceInfo* parameter = Parameter(tensors, ir_index);
  return k < parameter->GetInstanceNum() ? Desc(tensors, parameter->GetInstanceStart() + k) : nullptr;
}

}  // namespace

size_t RuntimeAttrs::GetAttrNum() const { return node_->attrs.size(); }
const void* RuntimeAttrs::Get(size_t i) const { return i < node_->attrs.size() ? node_->attrs[i].data() : nullptr; }

const char* ComputeNodeInfo::GetNodeType() const { return node_->op_type.c_str(); }
const char* ComputeNodeInfo::GetNodeName() const { return node_->op_type.c_str(); }
size_t ComputeNodeInfo::GetIrInputsNum() const { return node_->inputs.parameters.size(); }
size_t ComputeNodeInfo::GetIrOutputsNum() const { return node_->outputs.parameters.size(); }
size_t ComputeNodeInfo::GetInputsNum() const { return node_->inputs.tensors.size(); }
size_t ComputeNodeInfo::GetOutputsNum() const { return node_->outputs.tensors.size(); }
const AnchorInstanceInfo* ComputeNodeInfo::GetInputInstanceInfo(size_t ir_index) const {
  return Parameter(node_->inputs, ir_index);
}
const AnchorInstanceInfo* ComputeNodeInfo::GetOutputInstanceInfo(size_t ir_index) const {
  return Parameter(node_->outputs, ir_index);
}
const CompileTimeTensorDesc* ComputeNodeInfo::GetInputTdInfo(size_t index) const { return Desc(node_->inputs, index); }
const CompileTimeTensorDesc* ComputeNodeInfo::GetOutputTdInfo(size_t index) const {
  return Desc(node_->outputs, index);
}

const CompileTimeTensorDesc* ExtendedKernelContext::GetDynamicInputDesc(size_t ir_index, size_t k) const {
  return Desc(node_->inputs, ir_index, k);
}
const CompileTimeTensorDesc* ExtendedKernelContext::GetDynamicOutputDesc(size_t ir_index, size_t k) const {
  return Desc(node_->outputs, ir_index, k);
}
Tensor* ExtendedKernelContext::Input(size_t index) const { return node_->inputs.At(index); }
Tensor* ExtendedKernelContext::Output(size_t index) const { return node_->outputs.At(index); }
Tensor* ExtendedKernelContext::IrInput(size_t ir_index, size_t k) const { return node_->inputs.At(ir_index, k); }
Tensor* ExtendedKernelContext::IrOutput(size_t ir_index, size_t k) const { return node_->outputs.At(ir_index, k); }

const void* TilingContext::CompileInfo() const { return node_->compile_info; }
fe::PlatFormInfos* TilingContext::GetPlatformInfo() const { return &node_->platform; }
int32_t TilingContext::GetDeterministic() const { return 0; }  // aclnn: off unless a program asks for it
ge::graphStatus TilingContext::SetTilingKey(uint64_t key) {
  node_->tiling_key = key;
  return ge::GRAPH_SUCCESS;
}
uint64_t TilingContext::GetTilingKey() const { return node_->tiling_key; }
ge::graphStatus TilingContext::SetBlockDim(uint32_t block_dim) {
  node_->block_dim = block_dim;
  return ge::GRAPH_SUCCESS;
}
uint32_t TilingContext::GetBlockDim() const { return node_->block_dim; }
ge::graphStatus TilingContext::SetScheduleMode(uint32_t mode) {
  node_->schedule_mode = mode;
  return ge::GRAPH_SUCCESS;
}
uint32_t TilingContext::GetScheduleMode() const { return node_->schedule_mode; }
ge::graphStatus TilingContext::SetNeedAtomic(bool need) {
  node_->need_atomic = need;
  return ge::GRAPH_SUCCESS;
}
bool TilingContext::NeedAtomic() const { return node_->need_atomic; }
ge::graphStatus TilingContext::SetTilingCond(int32_t condition) {
  node_->tiling_condition = condition;
  return ge::GRAPH_SUCCESS;
}
int32_t TilingContext::GetTilingCond() const { return node_->tiling_condition; }
ge::graphStatus TilingContext::SetLocalMemorySize(uint32_t) { return ge::GRAPH_SUCCESS; }
TilingData* TilingContext::GetRawTilingData() { return node_->tiling_data.get(); }
size_t* TilingContext::GetWorkspaceSizes(size_t count) {
  node_->workspaces.resize(count);
  return node_->workspaces.data();
}
size_t TilingContext::GetWorkspaceNum() const { return node_->workspaces.size(); }

void* TilingParseContext::CompiledInfo() const { return node_->compile_info; }
fe::PlatFormInfos* TilingParseContext::GetPlatformInfo() const { return &node_->platform; }

ge::graphStatus InferDataTypeContext::SetOutputDataType(size_t index, ge::DataType data_type) {
  Tensor* output = Output(index);
  if (output == nullptr) return ge::GRAPH_FAILED;
  output->SetDataType(data_type);
  return ge::GRAPH_SUCCESS;
}

}  // namespace gert
