// Inputs whose values tiling and shape functions know, as numbers and as shapes (opbase,
// op_common/op_host/util/const_util.h).
#pragma once
#include <cstddef>
#include <cstdint>

#include "exe_graph/runtime/infer_shape_context.h"
#include "exe_graph/runtime/tiling_context.h"
#include "log/log.h"

namespace Ops {
namespace Base {

template <typename From, typename To>
bool GetValueToInteger(const gert::Tensor* tensor, To& value) {
  const From* data = tensor->GetData<From>();
  if (data == nullptr || tensor->GetSize() == 0) return false;
  value = static_cast<To>(data[0]);
  return true;
}

// The first value of a whole-number input.
template <typename Context, typename T>
bool GetConstInt(const Context* context, int64_t input, T& value) {
  const gert::Tensor* tensor = context == nullptr ? nullptr : context->GetInputTensor(static_cast<size_t>(input));
  if (tensor == nullptr) return false;
  switch (tensor->GetDataType()) {
    case ge::DT_UINT64:
      return GetValueToInteger<uint64_t>(tensor, value);
    case ge::DT_INT64:
      return GetValueToInteger<int64_t>(tensor, value);
    case ge::DT_UINT32:
      return GetValueToInteger<uint32_t>(tensor, value);
    case ge::DT_INT32:
      return GetValueToInteger<int32_t>(tensor, value);
    default:
      return false;
  }
}

template <typename T>
bool GetValueToShape(const gert::Tensor* tensor, gert::Shape& shape) {
  const T* data = tensor->GetData<T>();
  if (data == nullptr) return false;
  shape.SetDimNum(0);
  for (int64_t i = 0; i < tensor->GetShapeSize(); ++i) shape.AppendDim(static_cast<int64_t>(data[i]));
  return true;
}

// All values of a whole-number input, as axes of a shape.
template <typename Context>
bool GetConstIntToShape(const Context* context, int64_t input, gert::Shape& shape) {
  const gert::Tensor* tensor = context == nullptr ? nullptr : context->GetInputTensor(static_cast<size_t>(input));
  if (tensor == nullptr) return false;
  switch (tensor->GetDataType()) {
    case ge::DT_UINT64:
      return GetValueToShape<uint64_t>(tensor, shape);
    case ge::DT_INT64:
      return GetValueToShape<int64_t>(tensor, shape);
    case ge::DT_UINT32:
      return GetValueToShape<uint32_t>(tensor, shape);
    case ge::DT_INT32:
      return GetValueToShape<int32_t>(tensor, shape);
    default:
      return false;
  }
}

}  // namespace Base
}  // namespace Ops
