// gert::InferShapeContext: input shapes in, output shapes out.
#pragma once
#include "exe_graph/runtime/kernel_context.h"

namespace gert {

class InferShapeContext : public ExtendedKernelContext {
 public:
  using ExtendedKernelContext::ExtendedKernelContext;
  const Shape* GetInputShape(size_t index) const { return ShapeOf(Input(index)); }
  const Shape* GetOptionalInputShape(size_t ir_index) const { return ShapeOf(IrInput(ir_index, 0)); }
  const Shape* GetRequiredInputShape(size_t ir_index) const { return ShapeOf(IrInput(ir_index, 0)); }
  const Shape* GetDynamicInputShape(size_t ir_index, size_t k) const { return ShapeOf(IrInput(ir_index, k)); }
  const Tensor* GetInputTensor(size_t index) const { return Input(index); }
  const Tensor* GetOptionalInputTensor(size_t ir_index) const { return IrInput(ir_index, 0); }
  const Tensor* GetRequiredInputTensor(size_t ir_index) const { return IrInput(ir_index, 0); }
  const Tensor* GetDynamicInputTensor(size_t ir_index, size_t k) const { return IrInput(ir_index, k); }
  Shape* GetOutputShape(size_t index) { return MutableShapeOf(Output(index)); }
  Shape* GetRequiredOutputShape(size_t ir_index) { return MutableShapeOf(IrOutput(ir_index, 0)); }
  Shape* GetDynamicOutputShape(size_t ir_index, size_t k) { return MutableShapeOf(IrOutput(ir_index, k)); }

 private:
  static const Shape* ShapeOf(const Tensor* t) { return t == nullptr ? nullptr : &t->GetOriginShape(); }
  static Shape* MutableShapeOf(Tensor* t) { return t == nullptr ? nullptr : &t->MutableOriginShape(); }
};

}  // namespace gert
