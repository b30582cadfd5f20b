// Checks of CANN's own operator library, which some tiling sources include.
#pragma once
#include "exe_graph/runtime/tiling_parse_context.h"
#include "op_log.h"

#define OPS_CHECK_NULL_WITH_CONTEXT(context, ptr)                \
  if ((ptr) == nullptr) {                                        \
    OP_LOGE((context)->GetNodeName(), "%s is a nullptr.", #ptr); \
    return ge::GRAPH_FAILED;                                     \
  }

#define OP_TILING_CHECK(condition, log, action) \
  do {                                          \
    if (condition) {                            \
      log;                                      \
      action;                                   \
    }                                           \
  } while (0)

template <typename T>
T* GetCompileInfoPtr(gert::TilingParseContext* context) {
  return context->GetCompiledInfo<T>();
}
