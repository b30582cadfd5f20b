// What is known of a node's parameters before it runs: types, formats, how many tensors each parameter has.
#pragma once
#include <cstddef>
#include <cstdint>

#include "exe_graph/runtime/runtime_attrs.h"
#include "exe_graph/runtime/storage_format.h"
#include "graph/types.h"

namespace gert {

class CompileTimeTensorDesc {
 public:
  ge::DataType GetDataType() const { return data_type_; }
  const StorageFormat& GetFormat() const { return format_; }
  ge::Format GetStorageFormat() const { return format_.GetStorageFormat(); }
  ge::Format GetOriginFormat() const { return format_.GetOriginFormat(); }
  void SetDataType(ge::DataType data_type) { data_type_ = data_type; }
  void SetStorageFormat(ge::Format format) { format_.SetStorageFormat(format); }
  void SetOriginFormat(ge::Format format) { format_.SetOriginFormat(format); }

 private:
  ge::DataType data_type_ = ge::DT_UNDEFINED;
  StorageFormat format_;
};

// Where the tensors of one parameter of the definition are among the node's tensors.
class AnchorInstanceInfo {
 public:
  AnchorInstanceInfo() = default;
  AnchorInstanceInfo(uint32_t start, uint32_t count) : start_(start), count_(count) {}
  size_t GetInstanceStart() const { return start_; }
  size_t GetInstanceNum() const { return count_; }

 private:
  uint32_t start_ = 0;
  uint32_t count_ = 0;
};

class ComputeNodeInfo {
 public:
  explicit ComputeNodeInfo(const vnpu_host::Node* node) : node_(node), attrs_(node) {}
  const char* GetNodeType() const;
  const char* GetNodeName() const;
  size_t GetIrInputsNum() const;
  size_t GetIrOutputsNum() const;
  size_t GetInputsNum() const;
  size_t GetOutputsNum() const;
  const AnchorInstanceInfo* GetInputInstanceInfo(size_t ir_index) const;
  const AnchorInstanceInfo* GetOutputInstanceInfo(size_t ir_index) const;
  const CompileTimeTensorDesc* GetInputTdInfo(size_t index) const;
  const CompileTimeTensorDesc* GetOutputTdInfo(size_t index) const;
  const RuntimeAttrs* GetAttrs() const { return &attrs_; }

 private:
  const vnpu_host::Node* node_;
  RuntimeAttrs attrs_;
};

}  // namespace gert
