// Internals of libvnpu_host.so: one loaded host program (its registry) and one call of it (a node).
#pragma once
#pragma GCC visibility push(default)
#include "exe_graph/runtime/infer_datatype_context.h"
#include "exe_graph/runtime/infer_shape_context.h"
#include "exe_graph/runtime/tiling_context.h"
#include "exe_graph/runtime/tiling_parse_context.h"
#include "platform/platform_infos_def.h"
#include "register/op_def_registry.h"
#include "register/op_impl_registry.h"
#include "register/tilingdata_base.h"
#pragma GCC visibility pop

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace vnpu_host {

// Everything the sources of one .so registered while it was loaded, and the values of the knobs they read.
struct Registry {
  std::vector<uint64_t> knobs;
  std::map<std::string, OpFunctions> functions;
  std::vector<std::pair<std::string, OpDefMaker>> op_defs;
  std::vector<std::pair<std::string, optiling::TilingClassMaker>> tiling_classes;
};

// The registry that registrations go to: that of the library being loaded.
Registry& CurrentRegistry();
void SetCurrentRegistry(Registry* registry);

// The functions of an operator type: those of IMPL_OP*, and the definition's where those are missing.
OpFunctions ResolveFunctions(const Registry& registry, const std::string& op_type);

// JSON text of everything registered; `soc` ("ascend910b") picks the definition where an operator has one per chip.
std::string Describe(const Registry& registry, const std::string& soc);

// Values of a chip under flattened names ("core.aiv").
struct Chip {
  std::map<std::string, std::string> values;
  uint64_t Number(const std::string& key) const;  // 0 when absent
  std::string Text(const std::string& key) const;
};

// Tensors of a call and which parameter of the definition each belongs to.
struct Tensors {
  std::vector<gert::Tensor> tensors;
  std::vector<gert::CompileTimeTensorDesc> descs;
  std::vector<gert::AnchorInstanceInfo> parameters;
  void Add(size_t ir_index, const gert::Tensor& tensor);
  gert::Tensor* At(size_t index) { return index < tensors.size() ? &tensors[index] : nullptr; }
  gert::Tensor* At(size_t ir_index, size_t k);
};

struct Node {
  explicit Node(std::string type) : op_type(std::move(type)), platform(&chip) {}
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  std::string op_type;
  OpFunctions functions;
  Chip chip;
  fe::PlatFormInfos platform;
  Tensors inputs, outputs;
  std::vector<std::vector<uint64_t>> attrs;  // one blob per attribute, aligned to 8 bytes

  void* compile_info = nullptr;
  std::unique_ptr<gert::TilingData> tiling_data;
  std::vector<size_t> workspaces;
  uint64_t tiling_key = 0;
  uint32_t block_dim = 0;
  uint32_t schedule_mode = 0;
  int32_t tiling_condition = 0;
  bool need_atomic = false;
};

// What the program printed or logged on this thread since the last ClearLog.
std::string& Log();
void ClearLog();

}  // namespace vnpu_host
