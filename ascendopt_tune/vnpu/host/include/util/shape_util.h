// Helpers for shapes of CANN's open operator repositories (opbase, op_common/op_host/util/shape_util.h).
#pragma once
#include <cstdint>
#include <string>

#include "exe_graph/runtime/shape.h"
#include "graph/types.h"
#include "graph/utils/type_utils.h"

namespace Ops {
namespace Base {

constexpr int64_t kUnknownDim = -1, kUnknownRank = -2;

// A shape with nothing known, not even how many axes it has, is written as the single axis -2.
inline bool IsUnknownRank(const gert::Shape& shape) {
  return shape.GetDimNum() == 1 && shape.GetDim(0) == kUnknownRank;
}

inline void SetUnknownRank(gert::Shape& shape) {
  shape.SetDimNum(0);
  shape.AppendDim(kUnknownRank);
}

inline bool IsUnknownShape(const gert::Shape& shape) {
  for (size_t i = 0; i < shape.GetDimNum(); ++i) {
    if (shape.GetDim(i) < 0) return true;
  }
  return false;
}

inline void SetUnknownShape(int64_t rank, gert::Shape& shape) {
  shape.SetDimNum(static_cast<size_t>(rank));
  for (int64_t i = 0; i < rank; ++i) shape.SetDim(static_cast<size_t>(i), kUnknownDim);
}

// Is it an axis of so many, counted from either end? A scalar counts as one axis.
template <typename Count, typename Axis>
bool CheckAxisBounds(Count count, Axis axis) {
  const auto axes = static_cast<int64_t>(count), asked = static_cast<int64_t>(axis);
  return axes == 0 ? asked == 0 : asked >= -axes && asked < axes;
}

inline std::string ToString(const gert::Shape& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.GetDimNum(); ++i) out += (i ? ", " : "") + std::to_string(shape.GetDim(i));
  return out + "]";
}

inline std::string ToString(ge::DataType dtype) { return ge::TypeUtils::DataTypeToSerialString(dtype); }
inline std::string ToString(ge::Format format) { return ge::TypeUtils::FormatToSerialString(format); }

}  // namespace Base
}  // namespace Ops
