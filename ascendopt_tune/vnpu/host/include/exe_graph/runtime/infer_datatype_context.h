// gert::InferDataTypeContext: input types in, output types out.
#pragma once
#include "exe_graph/runtime/kernel_context.h"

namespace gert {

class InferDataTypeContext : public ExtendedKernelContext {
 public:
  using ExtendedKernelContext::ExtendedKernelContext;
  ge::DataType GetInputDataType(size_t index) const { return TypeOf(Input(index)); }
  ge::DataType GetOptionalInputDataType(size_t ir_index) const { return TypeOf(IrInput(ir_index, 0)); }
  ge::DataType GetRequiredInputDataType(size_t ir_index) const { return TypeOf(IrInput(ir_index, 0)); }
  ge::DataType GetDynamicInputDataType(size_t ir_index, size_t k) const { return TypeOf(IrInput(ir_index, k)); }
  ge::DataType GetOutputDataType(size_t index) const { return TypeOf(Output(index)); }
  ge::graphStatus SetOutputDataType(size_t index, ge::DataType data_type);

 private:
  static ge::DataType TypeOf(const Tensor* t) { return t == nullptr ? ge::DT_UNDEFINED : t->GetDataType(); }
};

}  // namespace gert
