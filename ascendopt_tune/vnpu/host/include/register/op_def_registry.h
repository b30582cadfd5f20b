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

// Which question about an operator a function of its own answers; nobody asks it of single operators.
#define FUNC_CHECK_SUPPORTED "check_supported"
#define FUNC_OP_SELECT_FORMAT "op_select_format"
#define FUNC_GET_OP_SUPPORT_INFO "get_op_support_info"
#define FUNC_GET_SPECIFIC_INFO "get_op_specific_info"
namespace optiling {
struct OpCheckFuncHelper {
  template <typename F>
  OpCheckFuncHelper(const ge::AscendString& /*question*/, const ge::AscendString& /*op_type*/, F) {}
};
}  // namespace optiling

// Older programs name the structure of their compile information behind the operator.
#define OP_ADD(op_type, ...)                                                                       \
  [[maybe_unused]] static const bool g_vnpu_op_def_##op_type =                                     \
      ::vnpu_host::RegisterOpDef(#op_type, [](const char* name) -> std::unique_ptr<::ops::OpDef> { \
        return std::unique_ptr<::ops::OpDef>(new op_type(name));                                   \
      })
