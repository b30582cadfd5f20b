// Registration of operator definitions, functions and tiling structs into the library being loaded.
#include "host.h"

namespace vnpu_host {
namespace {

thread_local Registry* current = nullptr;

}  // namespace

Registry& CurrentRegistry() {
  static Registry unowned;  // of a program that links this library instead of being opened by it
  return current == nullptr ? unowned : *current;
}

void SetCurrentRegistry(Registry* registry) { current = registry; }

OpFunctions& FunctionsOf(const char* op_type) { return CurrentRegistry().functions[op_type]; }

bool RegisterOpDef(const char* op_type, OpDefMaker make) {
  for (auto& [name, maker] : CurrentRegistry().op_defs) {
    if (name == op_type) {
      maker = make;
      return true;
    }
  }
  CurrentRegistry().op_defs.emplace_back(op_type, make);
  return true;
}

OpFunctions ResolveFunctions(const Registry& registry, const std::string& op_type) {
  OpFunctions functions;
  if (auto it = registry.functions.find(op_type); it != registry.functions.end()) functions = it->second;
  for (const auto& [name, make] : registry.op_defs) {
    if (name != op_type) continue;
    const auto def = make(name.c_str());
    if (functions.tiling == nullptr) functions.tiling = def->ai_core.tiling;
    if (functions.infer_shape == nullptr) functions.infer_shape = def->infer_shape;
    if (functions.infer_data_type == nullptr) functions.infer_data_type = def->infer_data_type;
  }
  return functions;
}

}  // namespace vnpu_host

namespace optiling {

bool RegisterTilingClass(const char* name, TilingClassMaker make) {
  auto& classes = vnpu_host::CurrentRegistry().tiling_classes;
  for (auto& [known, maker] : classes) {
    if (known == name) {
      maker = make;  // a header registers once per source that includes it
      return true;
    }
  }
  classes.emplace_back(name, make);
  return true;
}

}  // namespace optiling
