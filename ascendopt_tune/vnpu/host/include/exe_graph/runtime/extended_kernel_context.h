// The part all contexts share. Two kinds of index: `index` counts the call's tensors (a list of n occupies n, an absent
// parameter none); `ir_index` counts the parameters of the operator definition.
#pragma once
#include <cstddef>
#include <cstdint>

#include "exe_graph/runtime/compute_node_info.h"
#include "exe_graph/runtime/tensor.h"

namespace gert {

class ExtendedKernelContext {
 public:
  explicit ExtendedKernelContext(vnpu_host::Node* node) : node_(node), info_(node) {}

  const char* GetNodeType() const { return info_.GetNodeType(); }
  const char* GetNodeName() const { return info_.GetNodeName(); }
  const ComputeNodeInfo* GetComputeNodeInfo() const { return &info_; }
  const RuntimeAttrs* GetAttrs() const { return info_.GetAttrs(); }
  size_t GetComputeNodeInputNum() const { return info_.GetInputsNum(); }
  size_t GetComputeNodeOutputNum() const { return info_.GetOutputsNum(); }
  const AnchorInstanceInfo* GetIrInputInstanceInfo(size_t ir_index) const {
    return info_.GetInputInstanceInfo(ir_index);
  }
  const AnchorInstanceInfo* GetIrOutputInstanceInfo(size_t ir_index) const {
    return info_.GetOutputInstanceInfo(ir_index);
  }
  const CompileTimeTensorDesc* GetInputDesc(size_t index) const { return info_.GetInputTdInfo(index); }
  const CompileTimeTensorDesc* GetOutputDesc(size_t index) const { return info_.GetOutputTdInfo(index); }
  const CompileTimeTensorDesc* GetOptionalInputDesc(size_t ir_index) const { return GetDynamicInputDesc(ir_index, 0); }
  const CompileTimeTensorDesc* GetRequiredInputDesc(size_t ir_index) const { return GetDynamicInputDesc(ir_index, 0); }
  const CompileTimeTensorDesc* GetDynamicInputDesc(size_t ir_index, size_t k) const;
  const CompileTimeTensorDesc* GetRequiredOutputDesc(size_t ir_index) const {
    return GetDynamicOutputDesc(ir_index, 0);
  }
  const CompileTimeTensorDesc* GetDynamicOutputDesc(size_t ir_index, size_t k) const;

 protected:
  // nullptr when the call has no such tensor.
  Tensor* Input(size_t index) const;
  Tensor* Output(size_t index) const;
  Tensor* IrInput(size_t ir_index, size_t k) const;
  Tensor* IrOutput(size_t ir_index, size_t k) const;

  vnpu_host::Node* node_;

 private:
  ComputeNodeInfo info_;
};

}  // namespace gert
