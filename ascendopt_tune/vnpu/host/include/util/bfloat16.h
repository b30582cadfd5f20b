// bfloat16 on the host, as CANN's open operator repositories call it (opbase, op_common/op_host/util/bfloat16.h).
#pragma once
#include "opdev/bfloat16.h"

namespace Ops {
namespace Base {

using bfloat16 = op::bfloat16;

}  // namespace Base
}  // namespace Ops
