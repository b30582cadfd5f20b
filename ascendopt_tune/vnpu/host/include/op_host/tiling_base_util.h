// Small questions that tiling programs of CANN's open operator repositories ask (opbase,
// op_common/op_host/tiling_base_util.h).
#pragma once
#include "platform/soc_spec.h"
#include "register/op_impl_registry.h"

namespace Ops {
namespace Base {

// Are vector registers something that code can name? Not on architecture 2201.
inline bool IsRegbaseSocVersion(const gert::TilingParseContext*) { return false; }
inline bool IsRegbaseSocVersion(const gert::TilingContext*) { return false; }

// The shape, or of a scalar that of one element.
inline const gert::Shape& EnsureNotScalar(const gert::Shape& shape) {
  static const gert::Shape one = {1};
  return shape.IsScalar() ? one : shape;
}

}  // namespace Base
}  // namespace Ops
