// half on the host, as CANN's open operator repositories call it (opbase, op_common/op_host/util/fp16.h).
#pragma once
#include "opdev/fp16_t.h"

namespace Ops {
namespace Base {

using fp16_t = op::fp16_t;
using tagFp16 = op::fp16_t;

}  // namespace Base
}  // namespace Ops
