// Declarations of graph operators. What REG_OP says repeats the operator's definition (register/op_def.h), which is the
// one that is used: here it declares nothing.
#pragma once
#include "graph/operator.h"
#include "graph/types.h"

namespace ge {

// Takes every clause of a declaration.
struct OperatorDeclaration {
  template <typename... T>
  const OperatorDeclaration& Clause(T&&...) const {
    return *this;
  }
};

}  // namespace ge

#define REG_OP(type) \
  [[maybe_unused]] static const ge::OperatorDeclaration& vnpu_declared_##type = ge::OperatorDeclaration()
#define INPUT(name, ...) Clause()
#define OPTIONAL_INPUT(name, ...) Clause()
#define DYNAMIC_INPUT(name, ...) Clause()
#define OUTPUT(name, ...) Clause()
#define DYNAMIC_OUTPUT(name, ...) Clause()
#define ATTR(name, ...) Clause()
#define REQUIRED_ATTR(name, ...) Clause()
#define DATATYPE(name, ...) Clause()
#define OP_END_FACTORY_REG(type) Clause();
