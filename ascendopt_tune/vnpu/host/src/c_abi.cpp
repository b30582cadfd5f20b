// The C interface of libvnpu_host.so: open a host program, describe it, run its shape and tiling functions on a case.
//
// A host is not thread safe while it is opened; different contexts may run on different threads. Every context must be
// freed before its host is closed. Strings returned live until the next call on the same object (or thread, for
// vnpu_ctx_log).
#include <dlfcn.h>

#include <cstring>
#include <exception>
#include <mutex>

#include "host.h"

namespace {

struct Host {
  void* library = nullptr;
  std::shared_ptr<vnpu_host::Registry> registry;
  std::string description;
};

std::mutex open_mutex;
const uint64_t* loading_knobs = nullptr;  // of the program being loaded

// The loader runs a library's constructors once, however often it is opened: later opens share its registry.
std::map<void*, std::weak_ptr<vnpu_host::Registry>>& Loaded() {
  static std::map<void*, std::weak_ptr<vnpu_host::Registry>> loaded;
  return loaded;
}

gert::Tensor MakeTensor(int data_type, int format, uint32_t rank, const int64_t* dims, const void* data) {
  gert::Shape shape;
  for (uint32_t i = 0; i < rank; ++i) shape.AppendDim(dims[i]);
  const auto ge_format = static_cast<ge::Format>(format);
  return gert::Tensor(gert::StorageShape(shape, shape), gert::StorageFormat(ge_format, ge_format),
                      static_cast<ge::DataType>(data_type), const_cast<void*>(data));
}

// A tensor in tiles of 16 rows of 32 bytes was a matrix before: [.., N1, M1, M0, N0] was [.., M1 * M0, N1 * N0], and
// operators ask for that (aclnn passes a cast tensor's view as its origin). Where its last tiles weren't full, what it
// was isn't known here.
gert::Tensor MakeInput(int data_type, int format, uint32_t rank, const int64_t* dims, const void* data) {
  gert::Tensor tensor = MakeTensor(data_type, format, rank, dims, data);
  if (format != ge::FORMAT_FRACTAL_NZ || rank < 4) return tensor;
  gert::Shape origin;
  for (uint32_t i = 0; i + 4 < rank; ++i) origin.AppendDim(dims[i]);
  origin.AppendDim(dims[rank - 3] * dims[rank - 2]);
  origin.AppendDim(dims[rank - 4] * dims[rank - 1]);
  tensor.MutableOriginShape() = origin;
  tensor.SetOriginFormat(ge::FORMAT_ND);
  return tensor;
}

void PushAttr(vnpu_host::Node* node, const void* data, size_t bytes) {
  std::vector<uint64_t> blob((bytes + 7) / 8 + 1);
  std::memcpy(blob.data(), data, bytes);
  node->attrs.push_back(std::move(blob));
}

template <typename T>
void PushList(vnpu_host::Node* node, uint32_t count, const T* values) {
  const size_t header = sizeof(gert::ContinuousVector);
  std::vector<uint64_t> blob((header + count * sizeof(T) + 7) / 8 + 1);
  new (blob.data()) gert::ContinuousVector(count);
  if (count > 0) std::memcpy(reinterpret_cast<char*>(blob.data()) + header, values, count * sizeof(T));
  node->attrs.push_back(std::move(blob));
}

// Runs a function of the program; an exception becomes a failure with its text in the log.
template <typename Function>
uint32_t Guarded(Function&& function) {
  try {
    return function();
  } catch (const std::exception& e) {
    vnpu_host::Log() += std::string("exception: ") + e.what();
  } catch (...) {
    vnpu_host::Log() += "exception of an unknown type";
  }
  return ge::GRAPH_FAILED;
}

constexpr uint32_t kNoFunction = 1;  // this operator has no such function

vnpu_host::Node* AsNode(void* context) { return static_cast<vnpu_host::Node*>(context); }

}  // namespace

#define VNPU_API extern "C" __attribute__((visibility("default")))

// Asked by every source of a program while it is loaded: the values of its knobs.
VNPU_API const uint64_t* vnpu_knob_table() { return loading_knobs; }

// nullptr with the loader's text in `error` (at most `error_size` bytes) when the library can't be loaded. `knobs`:
// `knob_count` values that the program reads from then on; a file that is loaded already keeps those it has.
VNPU_API void* vnpu_host_open(const char* path, const uint64_t* knobs, size_t knob_count, char* error,
                              size_t error_size) {
  std::lock_guard<std::mutex> lock(open_mutex);
  auto registry = std::make_shared<vnpu_host::Registry>();
  registry->knobs.assign(knobs, knobs + knob_count);
  loading_knobs = registry->knobs.data();
  vnpu_host::ClearLog();
  vnpu_host::SetCurrentRegistry(registry.get());
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  vnpu_host::SetCurrentRegistry(nullptr);
  if (library == nullptr) {
    const char* text = dlerror();
    if (error != nullptr && error_size > 0) {
      std::strncpy(error, text == nullptr ? "unknown" : text, error_size - 1);
      error[error_size - 1] = '\0';
    }
    return nullptr;
  }
  auto& slot = Loaded()[library];
  if (auto known = slot.lock()) {
    registry = known;
  } else {
    slot = registry;
  }
  return new Host{library, registry, ""};
}

VNPU_API void vnpu_host_close(void* handle) {
  std::lock_guard<std::mutex> lock(open_mutex);
  Host* host = static_cast<Host*>(handle);
  void* library = host->library;
  delete host;
  if (Loaded()[library].expired()) Loaded().erase(library);
  dlclose(library);
}

// JSON, or "" when a definition throws (text in vnpu_ctx_log).
VNPU_API const char* vnpu_host_describe(void* handle, const char* soc) {
  Host* host = static_cast<Host*>(handle);
  vnpu_host::ClearLog();
  host->description.clear();
  Guarded([&] {
    host->description = vnpu_host::Describe(*host->registry, soc);
    return 0U;
  });
  return host->description.c_str();
}

VNPU_API void* vnpu_ctx_new(void* handle, const char* op_type) {
  auto* node = new vnpu_host::Node(op_type);
  node->functions = vnpu_host::ResolveFunctions(*static_cast<Host*>(handle)->registry, op_type);
  return node;
}

VNPU_API void vnpu_ctx_free(void* context) { delete AsNode(context); }

VNPU_API void vnpu_ctx_chip(void* context, const char* key, const char* value) {
  AsNode(context)->chip.values[key] = value;
}

// Tensors in order, each with its parameter's position in the definition; a list is several calls with one position.
// `data`: nullptr, or the values, which must stay alive until the context is freed.
VNPU_API void vnpu_ctx_input(void* context, uint32_t ir_index, int data_type, int format, uint32_t rank,
                             const int64_t* dims, const void* data) {
  AsNode(context)->inputs.Add(ir_index, MakeInput(data_type, format, rank, dims, data));
}

VNPU_API void vnpu_ctx_output(void* context, uint32_t ir_index, int data_type, int format, uint32_t rank,
                              const int64_t* dims) {
  AsNode(context)->outputs.Add(ir_index, MakeTensor(data_type, format, rank, dims, nullptr));
}

// Attributes, in the definition's order, every one of them.
VNPU_API void vnpu_ctx_attr_bool(void* context, int value) {
  const bool flag = value != 0;
  PushAttr(AsNode(context), &flag, sizeof(flag));
}
VNPU_API void vnpu_ctx_attr_int(void* context, int64_t value) { PushAttr(AsNode(context), &value, sizeof(value)); }
VNPU_API void vnpu_ctx_attr_float(void* context, float value) { PushAttr(AsNode(context), &value, sizeof(value)); }
VNPU_API void vnpu_ctx_attr_str(void* context, const char* value) {
  PushAttr(AsNode(context), value, std::strlen(value) + 1);
}
VNPU_API void vnpu_ctx_attr_list_bool(void* context, uint32_t count, const uint8_t* values) {
  PushList(AsNode(context), count, values);
}
VNPU_API void vnpu_ctx_attr_list_int(void* context, uint32_t count, const int64_t* values) {
  PushList(AsNode(context), count, values);
}
VNPU_API void vnpu_ctx_attr_list_float(void* context, uint32_t count, const float* values) {
  PushList(AsNode(context), count, values);
}

// 0: done; 1: the operator has no such function; else what the function returned.
VNPU_API uint32_t vnpu_ctx_infer_shape(void* context) {
  auto* node = AsNode(context);
  vnpu_host::ClearLog();
  if (node->functions.infer_shape == nullptr) return kNoFunction;
  gert::InferShapeContext view(node);
  return Guarded([&] { return node->functions.infer_shape(&view); });
}

VNPU_API uint32_t vnpu_ctx_infer_data_type(void* context) {
  auto* node = AsNode(context);
  vnpu_host::ClearLog();
  if (node->functions.infer_data_type != nullptr) {
    gert::InferDataTypeContext view(node);
    return Guarded([&] { return node->functions.infer_data_type(&view); });
  }
  if (!node->functions.same_type_as_first_input || node->inputs.tensors.empty()) return kNoFunction;
  for (auto& output : node->outputs.tensors) output.SetDataType(node->inputs.tensors[0].GetDataType());
  return ge::GRAPH_SUCCESS;
}

// Runs TilingParse (when there is one) and Tiling. `capacity`: bytes the operator's largest tiling struct needs.
VNPU_API uint32_t vnpu_ctx_tiling(void* context, size_t capacity) {
  auto* node = AsNode(context);
  vnpu_host::ClearLog();
  if (node->functions.tiling == nullptr) return kNoFunction;
  if (node->functions.make_compile_info != nullptr && node->compile_info == nullptr) {
    node->compile_info = node->functions.make_compile_info();
    gert::TilingParseContext parse(node);
    const uint32_t status = Guarded([&] { return node->functions.tiling_parse(&parse); });
    if (status != ge::GRAPH_SUCCESS) return status;
  }
  node->tiling_data = std::make_unique<gert::TilingData>(
      capacity > node->functions.tiling_capacity ? capacity : node->functions.tiling_capacity);
  node->workspaces.clear();
  node->tiling_key = 0;
  node->block_dim = 0;
  node->schedule_mode = 0;
  node->need_atomic = false;
  gert::TilingContext view(node);
  return Guarded([&] { return node->functions.tiling(&view); });
}

VNPU_API const char* vnpu_ctx_log() { return vnpu_host::Log().c_str(); }

VNPU_API uint32_t vnpu_ctx_output_count(void* context) {
  return static_cast<uint32_t>(AsNode(context)->outputs.tensors.size());
}
// Writes at most 25 axes; returns how many.
VNPU_API uint32_t vnpu_ctx_output_shape(void* context, uint32_t index, int64_t* dims) {
  const auto& shape = AsNode(context)->outputs.tensors.at(index).GetOriginShape();
  for (size_t i = 0; i < shape.GetDimNum(); ++i) dims[i] = shape.GetDim(i);
  return static_cast<uint32_t>(shape.GetDimNum());
}
VNPU_API int vnpu_ctx_output_data_type(void* context, uint32_t index) {
  return AsNode(context)->outputs.tensors.at(index).GetDataType();
}
VNPU_API uint32_t vnpu_ctx_block_dim(void* context) { return AsNode(context)->block_dim; }
VNPU_API uint64_t vnpu_ctx_tiling_key(void* context) { return AsNode(context)->tiling_key; }
VNPU_API uint32_t vnpu_ctx_schedule_mode(void* context) { return AsNode(context)->schedule_mode; }
VNPU_API uint32_t vnpu_ctx_need_atomic(void* context) { return AsNode(context)->need_atomic ? 1 : 0; }
VNPU_API uint32_t vnpu_ctx_workspace_count(void* context) {
  return static_cast<uint32_t>(AsNode(context)->workspaces.size());
}
VNPU_API uint64_t vnpu_ctx_workspace(void* context, uint32_t index) { return AsNode(context)->workspaces.at(index); }
VNPU_API uint64_t vnpu_ctx_tiling_size(void* context) { return AsNode(context)->tiling_data->GetDataSize(); }
VNPU_API uint64_t vnpu_ctx_tiling_capacity(void* context) { return AsNode(context)->tiling_data->GetCapacity(); }
VNPU_API const void* vnpu_ctx_tiling_data(void* context) { return AsNode(context)->tiling_data->GetData(); }

#undef VNPU_API
