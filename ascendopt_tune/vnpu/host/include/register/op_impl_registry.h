// Registration of an operator type's functions: IMPL_OP_OPTILING, IMPL_OP_INFERSHAPE, IMPL_OP.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "exe_graph/runtime/infer_datatype_context.h"
#include "exe_graph/runtime/infer_shape_context.h"
#include "exe_graph/runtime/infer_shape_range_context.h"
#include "exe_graph/runtime/tiling_context.h"
#include "exe_graph/runtime/tiling_parse_context.h"
#include "graph/compiler_def.h"

namespace vnpu_host {

// Functions of one operator type. The definition (OP_ADD) fills only what IMPL_OP* left open.
struct OpFunctions {
  ge::graphStatus (*tiling)(gert::TilingContext*) = nullptr;
  ge::graphStatus (*tiling_parse)(gert::TilingParseContext*) = nullptr;
  ge::graphStatus (*infer_shape)(gert::InferShapeContext*) = nullptr;
  ge::graphStatus (*infer_data_type)(gert::InferDataTypeContext*) = nullptr;
  void* (*make_compile_info)() = nullptr;
  void (*free_compile_info)(void*) = nullptr;
  size_t tiling_capacity = 2048;     // bytes; CANN's default
  uint64_t tiling_value_inputs = 0;  // bit i: the tiling function reads the values of parameter i
  bool same_type_as_first_input = false;
};

// The entry of `op_type` in the registry of the library that is being loaded.
OpFunctions& FunctionsOf(const char* op_type);

}  // namespace vnpu_host

namespace gert {

enum class TilingPlacement : uint8_t { TILING_ON_HOST = 0, TILING_ON_AICPU };

class OpImplRegisterV2 {
 public:
  using TilingFunction = ge::graphStatus (*)(TilingContext*);
  using TilingParseFunction = ge::graphStatus (*)(TilingParseContext*);
  using KernelFunction = ge::graphStatus (*)(KernelContext*);
  using InferShapeFunction = ge::graphStatus (*)(InferShapeContext*);
  using InferShapeRangeFunction = ge::graphStatus (*)(InferShapeRangeContext*);
  using InferDataTypeFunction = ge::graphStatus (*)(InferDataTypeContext*);

  explicit OpImplRegisterV2(const char* op_type) : functions_(&vnpu_host::FunctionsOf(op_type)) {}

  OpImplRegisterV2& Tiling(TilingFunction function, size_t max_tiling_data_size = 2048) {
    functions_->tiling = function;
    functions_->tiling_capacity = max_tiling_data_size;
    return *this;
  }
  template <typename T>
  OpImplRegisterV2& TilingParse(TilingParseFunction function) {
    functions_->tiling_parse = function;
    functions_->make_compile_info = []() -> void* { return new T(); };
    functions_->free_compile_info = [](void* info) { delete static_cast<T*>(info); };
    return *this;
  }
  OpImplRegisterV2& InferShape(InferShapeFunction function) {
    functions_->infer_shape = function;
    return *this;
  }
  OpImplRegisterV2& InferShapeRange(InferShapeRangeFunction) { return *this; }
  OpImplRegisterV2& InferDataType(InferDataTypeFunction function) {
    functions_->infer_data_type = function;
    return *this;
  }
  OpImplRegisterV2& InferOutDataTypeSameWithFirstInput() {
    functions_->same_type_as_first_input = true;
    return *this;
  }
  // Inputs whose values the shape function reads: the tiling function sees them as well.
  OpImplRegisterV2& InputsDataDependency(std::initializer_list<int32_t> inputs) {
    return TilingInputsDataDependency(inputs);
  }
  OpImplRegisterV2& TilingInputsDataDependency(std::initializer_list<int32_t> inputs) {
    for (int32_t i : inputs) functions_->tiling_value_inputs |= uint64_t{1} << i;
    return *this;
  }
  // Where a program's tiling may be worked out: always on the host here.
  OpImplRegisterV2& TilingInputsDataDependency(std::initializer_list<int32_t> inputs,
                                               std::initializer_list<TilingPlacement>) {
    return TilingInputsDataDependency(inputs);
  }
  // Private attributes belong to graph fusion; a case never carries them.
  template <typename... T>
  OpImplRegisterV2& PrivateAttr(const char*, T&&...) {
    return *this;
  }
  // Names precompiled binaries of a CANN package; a kernel is always compiled from its source here.
  OpImplRegisterV2& GenSimplifiedKey(ge::graphStatus (*)(TilingContext*, ge::char_t*)) { return *this; }
  OpImplRegisterV2& OutputShapeDependOnCompute(std::initializer_list<int32_t>) { return *this; }

 private:
  vnpu_host::OpFunctions* functions_;
};

}  // namespace gert

#define VNPU_HOST_IMPL_OP(op_type, part) \
  VAR_UNUSED static ::gert::OpImplRegisterV2 g_vnpu_op_##part##_##op_type = ::gert::OpImplRegisterV2(#op_type)
#define IMPL_OP(op_type) VNPU_HOST_IMPL_OP(op_type, impl)
#define IMPL_OP_OPTILING(op_type) VNPU_HOST_IMPL_OP(op_type, tiling)
#define IMPL_OP_INFERSHAPE(op_type) VNPU_HOST_IMPL_OP(op_type, infer)
