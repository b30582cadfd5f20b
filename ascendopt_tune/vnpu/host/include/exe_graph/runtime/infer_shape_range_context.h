// gert::InferShapeRangeContext: named by operators that register a shape range function; ranges are never inferred
// here, because every case has known shapes.
#pragma once
#include "exe_graph/runtime/kernel_context.h"
#include "exe_graph/runtime/range.h"

namespace gert {

class InferShapeRangeContext : public ExtendedKernelContext {
 public:
  using ExtendedKernelContext::ExtendedKernelContext;
  const Range<Shape>* GetInputShapeRange(size_t) const { return nullptr; }
  const Range<Shape>* GetRequiredInputShapeRange(size_t) const { return nullptr; }
  const Range<Shape>* GetOptionalInputShapeRange(size_t) const { return nullptr; }
  Range<Shape>* GetOutputShapeRange(size_t) { return nullptr; }
};

}  // namespace gert
