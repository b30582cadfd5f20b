// Shape functions that operators of CANN's open repositories share (their package's infershape_elewise_util.h and
// infershape_broadcast_util.h, known here by who calls them; what they say of shapes is numpy's rule).
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "exe_graph/runtime/infer_shape_context.h"
#include "util/shape_util.h"

namespace Ops {
namespace Base {

// The shape that two shapes are broadcast to; false if one axis has two lengths of which none is 1.
inline bool BroadcastShape(const gert::Shape* one, const gert::Shape* other, gert::Shape* out) {
  if (one == nullptr || other == nullptr || out == nullptr) return false;
  const size_t rank = std::max(one->GetDimNum(), other->GetDimNum());
  const auto length = [rank](const gert::Shape* shape, size_t axis) -> int64_t {
    const size_t missing = rank - shape->GetDimNum();
    return axis < missing ? 1 : shape->GetDim(axis - missing);
  };
  gert::Shape result;
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t a = length(one, axis), b = length(other, axis);
    if (a != b && a != 1 && b != 1) return false;
    result.AppendDim(a == 1 ? b : a);
  }
  *out = result;
  return true;
}

// Each output has the shape of the first input.
inline ge::graphStatus InferShape4Elewise(gert::InferShapeContext* context) {
  const gert::Shape* input = context->GetInputShape(0);
  if (input == nullptr || context->GetOutputShape(0) == nullptr) return ge::GRAPH_FAILED;
  for (size_t i = 0; i < context->GetComputeNodeOutputNum(); ++i) {
    if (gert::Shape* output = context->GetOutputShape(i); output != nullptr) *output = *input;
  }
  return ge::GRAPH_SUCCESS;
}

// The first output has the shape that the first `inputs` inputs are broadcast to.
inline ge::graphStatus InferShape4Broadcast(gert::InferShapeContext* context, size_t inputs) {
  gert::Shape* output = context->GetOutputShape(0);
  const gert::Shape* first = context->GetInputShape(0);
  if (output == nullptr || first == nullptr) return ge::GRAPH_FAILED;
  gert::Shape result = *first;
  for (size_t i = 1; i < inputs; ++i) {
    if (!BroadcastShape(&result, context->GetInputShape(i), &result)) return ge::GRAPH_FAILED;
  }
  *output = result;
  return ge::GRAPH_SUCCESS;
}

inline ge::graphStatus InferShape4Broadcast(gert::InferShapeContext* context) {
  return InferShape4Broadcast(context, 2);
}

}  // namespace Base
}  // namespace Ops
