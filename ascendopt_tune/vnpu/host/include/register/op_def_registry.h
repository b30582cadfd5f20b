// OP_ADD: registers an operator definition.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/ascend_string.h"
#include "graph/operator.h"
#include "register/op_def.h"
#include "register/op_impl_registry.h"

namespace vnpu_host {

using OpDefMaker = std::unique_ptr<ops::OpDef> (*)(const char* op_type);
bool RegisterOpDef(const char* op_type, OpDefMaker make);

}  // namespace vnpu_host

// Older programs name the structure of their compile information behind the operator.
#define OP_ADD(op_type, ...)                                                                       \
  [[maybe_unused]] static const bool g_vnpu_op_def_##op_type =                                     \
      ::vnpu_host::RegisterOpDef(#op_type, [](const char* name) -> std::unique_ptr<::ops::OpDef> { \
        return std::unique_ptr<::ops::OpDef>(new op_type(name));                                   \
      })
