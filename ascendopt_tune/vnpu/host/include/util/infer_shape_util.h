// Shape functions that operators of CANN's open repositories share (opbase: infershape_elewise_util.h,
// infershape_broadcast_util.h, infershape_reduce_util.h). Shapes are known here: no axis is -1 or -2.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

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

// The shape that all of them are broadcast to.
inline bool BroadcastShape(const std::vector<const gert::Shape*>& shapes, gert::Shape* out) {
  if (shapes.empty() || shapes[0] == nullptr || out == nullptr) return false;
  gert::Shape result = *shapes[0];
  for (size_t i = 1; i < shapes.size(); ++i) {
    if (!BroadcastShape(&result, shapes[i], &result)) return false;
  }
  *out = result;
  return true;
}

// The first output has the shape of the first input; of others it says nothing.
inline ge::graphStatus InferShape4Elewise(gert::InferShapeContext* context) {
  const gert::Shape* input = context->GetInputShape(0);
  gert::Shape* output = context->GetOutputShape(0);
  if (input == nullptr || output == nullptr) return ge::GRAPH_FAILED;
  *output = *input;
  return ge::GRAPH_SUCCESS;
}

// The first output has the shape that the first `inputs` inputs are broadcast to.
inline ge::graphStatus InferShape4Broadcast(gert::InferShapeContext* context, size_t inputs) {
  std::vector<const gert::Shape*> shapes;
  for (size_t i = 0; i < inputs; ++i) shapes.push_back(context->GetInputShape(i));
  return BroadcastShape(shapes, context->GetOutputShape(0)) ? ge::GRAPH_SUCCESS : ge::GRAPH_FAILED;
}

inline ge::graphStatus InferShape4Broadcast(gert::InferShapeContext* context) {
  return InferShape4Broadcast(context, 2);
}

// Which axes of a shape a list names, counted from either end; false if there is no such axis.
template <typename T>
bool NamedAxes(const gert::Shape& shape, const T* axes, int32_t count, std::vector<bool>& named) {
  const auto rank = static_cast<int64_t>(shape.GetDimNum());
  named.assign(static_cast<size_t>(rank), false);
  for (int32_t i = 0; i < count; ++i) {
    if (!CheckAxisBounds(rank, axes[i])) return false;
    if (rank > 0) named[static_cast<size_t>(axes[i] < 0 ? axes[i] + rank : axes[i])] = true;
  }
  return true;
}

template <typename T>
ge::graphStatus ReduceDimsWithKeepDims(const gert::Shape* shape, const T* axes, int32_t count, gert::Shape* out) {
  std::vector<bool> reduced;
  if (!NamedAxes(*shape, axes, count, reduced)) return ge::GRAPH_FAILED;
  *out = *shape;
  for (size_t i = 0; i < reduced.size(); ++i) {
    if (reduced[i]) out->SetDim(i, 1);
  }
  return ge::GRAPH_SUCCESS;
}

template <typename T>
ge::graphStatus ReduceDimsWithoutKeepDims(const gert::Shape* shape, const T* axes, int32_t count, gert::Shape* out) {
  std::vector<bool> reduced;
  if (!NamedAxes(*shape, axes, count, reduced)) return ge::GRAPH_FAILED;
  gert::Shape left;
  for (size_t i = 0; i < reduced.size(); ++i) {
    if (!reduced[i]) left.AppendDim(shape->GetDim(i));
  }
  *out = left;
  return ge::GRAPH_SUCCESS;
}

template <typename T>
ge::graphStatus ReduceDims(const gert::Shape* shape, const gert::Tensor* axes, int32_t count, bool keep,
                           gert::Shape* out) {
  const T* named = axes->GetData<T>();
  return keep ? ReduceDimsWithKeepDims(shape, named, count, out) : ReduceDimsWithoutKeepDims(shape, named, count, out);
}

// The first input without the axes that the second one, known when the shape is asked for, names; the first attribute
// says whether they stay with length 1. No axes: the input's own shape.
inline ge::graphStatus InferShape4Reduce(gert::InferShapeContext* context) {
  const gert::Shape* input = context->GetInputShape(0);
  const gert::Tensor* axes = context->GetInputTensor(1);
  gert::Shape* output = context->GetOutputShape(0);
  const bool* keep = context->GetAttrs() == nullptr ? nullptr : context->GetAttrs()->GetAttrPointer<bool>(0);
  if (input == nullptr || axes == nullptr || output == nullptr || keep == nullptr) return ge::GRAPH_FAILED;
  const auto count = static_cast<int32_t>(axes->GetShapeSize());
  if (count == 0) {
    *output = *input;
    return ge::GRAPH_SUCCESS;
  }
  if (axes->GetDataType() == ge::DT_INT32) return ReduceDims<int32_t>(input, axes, count, *keep, output);
  if (axes->GetDataType() == ge::DT_INT64) return ReduceDims<int64_t>(input, axes, count, *keep, output);
  return ge::GRAPH_FAILED;
}

}  // namespace Base
}  // namespace Ops
