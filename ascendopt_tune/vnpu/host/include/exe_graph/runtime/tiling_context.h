// gert::TilingContext: what a tiling function reads, and what it decides.
#pragma once
#include <cstddef>
#include <cstdint>

#include "exe_graph/runtime/kernel_context.h"
#include "exe_graph/runtime/stride.h"
#include "exe_graph/runtime/tiling_data.h"
#include "graph/error_codes.h"

namespace fe {
class PlatFormInfos;
}

namespace gert {

class TilingContext : public ExtendedKernelContext {
 public:
  using ExtendedKernelContext::ExtendedKernelContext;

  // What TilingParse filled; nullptr when the operator has none.
  template <typename T>
  const T* GetCompileInfo() const {
    return static_cast<const T*>(CompileInfo());
  }
  const void* GetCompileInfo() const { return CompileInfo(); }
  fe::PlatFormInfos* GetPlatformInfo() const;
  int32_t GetDeterministic() const;
  int32_t GetDeterministicLevel() const { return GetDeterministic(); }  // no level above 1

  const StorageShape* GetInputShape(size_t index) const { return ShapeOf(Input(index)); }
  const StorageShape* GetOptionalInputShape(size_t ir_index) const { return ShapeOf(IrInput(ir_index, 0)); }
  const StorageShape* GetRequiredInputShape(size_t ir_index) const { return ShapeOf(IrInput(ir_index, 0)); }
  const StorageShape* GetDynamicInputShape(size_t ir_index, size_t k) const { return ShapeOf(IrInput(ir_index, k)); }
  bool InputIsView(size_t) const { return false; }  // tensors of a case are contiguous
  const Stride* GetInputStride(size_t) const { return nullptr; }
  const Stride* GetOptionalInputStride(size_t) const { return nullptr; }
  const Stride* GetRequiredInputStride(size_t) const { return nullptr; }
  const Stride* GetDynamicInputStride(size_t, size_t) const { return nullptr; }
  const Tensor* GetInputTensor(size_t index) const { return Input(index); }
  const Tensor* GetOptionalInputTensor(size_t ir_index) const { return IrInput(ir_index, 0); }
  const Tensor* GetRequiredInputTensor(size_t ir_index) const { return IrInput(ir_index, 0); }
  const Tensor* GetDynamicInputTensor(size_t ir_index, size_t k) const { return IrInput(ir_index, k); }
  const StorageShape* GetOutputShape(size_t index) const { return ShapeOf(Output(index)); }
  const StorageShape* GetRequiredOutputShape(size_t ir_index) const { return ShapeOf(IrOutput(ir_index, 0)); }
  const StorageShape* GetDynamicOutputShape(size_t ir_index, size_t k) const { return ShapeOf(IrOutput(ir_index, k)); }

  ge::graphStatus SetTilingKey(uint64_t key);
  uint64_t GetTilingKey() const;
  ge::graphStatus SetBlockDim(uint32_t block_dim);
  uint32_t GetBlockDim() const;
  ge::graphStatus SetNumBlocks(uint32_t blocks) { return SetBlockDim(blocks); }
  ge::graphStatus SetSimdNumBlocks(uint32_t blocks) { return SetBlockDim(blocks); }
  ge::graphStatus SetScheduleMode(uint32_t mode);
  uint32_t GetScheduleMode() const;
  ge::graphStatus SetNeedAtomic(bool need);
  bool NeedAtomic() const;
  ge::graphStatus SetTilingCond(int32_t condition);
  int32_t GetTilingCond() const;
  ge::graphStatus SetLocalMemorySize(uint32_t bytes);

  TilingData* GetRawTilingData();
  template <typename T>
  T* GetTilingData() {
    TilingData* raw = GetRawTilingData();
    if (raw->GetCapacity() < sizeof(T)) return nullptr;
    raw->SetDataSize(sizeof(T));
    return static_cast<T*>(raw->GetData());
  }
  size_t* GetWorkspaceSizes(size_t count);
  size_t GetWorkspaceNum() const;

 private:
  static const StorageShape* ShapeOf(const Tensor* tensor) { return tensor == nullptr ? nullptr : &tensor->GetShape(); }
  const void* CompileInfo() const;
};

}  // namespace gert
