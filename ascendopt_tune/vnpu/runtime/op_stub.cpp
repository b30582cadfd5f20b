// Operators by name. Descriptions, buffers, attributes and options can be built and read back; executing an operator is
// an error that names it. Returning success without computing would hand uninitialized memory to the caller.
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "acl/acl_op_compiler.h"
#include "state.h"

using namespace vnpu_acl;

struct aclDataBuffer {
  void* data;
  size_t size;
};

struct aclTensorDesc {
  aclDataType dtype;
  std::vector<int64_t> dims;
  aclFormat format;
  std::string name;
};

struct aclopAttr {};

namespace {

int no_operator(const char* type) {
  return fail(ACL_ERROR_OP_NOT_FOUND,
              "operator %s is not available: no operator library ships with the virtual NPU. Move the tensors to the "
              "CPU for it, or provide it as a custom operator",
              type != nullptr ? type : "(null)");
}

std::map<aclCompileOpt, std::string>& compile_options() {
  // Just-in-time compilation of operators needs a compiler for them, so it is reported as off.
  static auto* const options = new std::map<aclCompileOpt, std::string>{{ACL_OP_JIT_COMPILE, "disable"}};
  return *options;
}

std::string compile_option(aclCompileOpt option) {
  const std::lock_guard<std::mutex> lock(state_mutex());
  return compile_options()[option];
}

}  // namespace

size_t aclDataTypeSize(aclDataType type) {
  static const std::map<aclDataType, size_t> bytes = {
      {ACL_INT8, 1},          {ACL_UINT8, 1},       {ACL_BOOL, 1},    {ACL_HIFLOAT8, 1},  {ACL_FLOAT8_E5M2, 1},
      {ACL_FLOAT8_E4M3FN, 1}, {ACL_FLOAT8_E8M0, 1}, {ACL_FLOAT16, 2}, {ACL_BF16, 2},      {ACL_INT16, 2},
      {ACL_UINT16, 2},        {ACL_FLOAT, 4},       {ACL_INT32, 4},   {ACL_UINT32, 4},    {ACL_COMPLEX32, 4},
      {ACL_DOUBLE, 8},        {ACL_INT64, 8},       {ACL_UINT64, 8},  {ACL_COMPLEX64, 8}, {ACL_COMPLEX128, 16},
  };
  const auto found = bytes.find(type);
  return found == bytes.end() ? 0 : found->second;
}

float aclFloat16ToFloat(aclFloat16 value) {
  const int exponent = value >> 10 & 31;
  const int fraction = value & 1023;
  const float sign = (value & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

aclFloat16 aclFloatToFloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  if (std::isnan(value)) return sign | 0x7E00;
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0F) return sign | 0x7C00;  // half way between the largest half and the next power of two
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  // One unit in the last place of the half: 2^-24 below the normal range. nearbyint rounds to nearest, ties to even.
  const int ulp_exponent = magnitude < 6.103515625e-05F ? -24 : exponent - 11;
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, -ulp_exponent)));
  // Carries into the exponent by itself when rounding reaches the next power of two.
  return static_cast<aclFloat16>(sign | (static_cast<uint32_t>(ulp_exponent + 24) * 1024 + units));
}

aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) { return new aclDataBuffer{data, size}; }

aclError aclDestroyDataBuffer(const aclDataBuffer* buffer) {
  delete buffer;
  return ACL_SUCCESS;
}

void* aclGetDataBufferAddr(const aclDataBuffer* buffer) { return buffer != nullptr ? buffer->data : nullptr; }
size_t aclGetDataBufferSizeV2(const aclDataBuffer* buffer) { return buffer != nullptr ? buffer->size : 0; }

aclTensorDesc* aclCreateTensorDesc(aclDataType type, int rank, const int64_t* dims, aclFormat format) {
  if (rank < 0 || (rank > 0 && dims == nullptr)) return nullptr;
  return new aclTensorDesc{type, std::vector<int64_t>(dims, dims + rank), format, ""};
}

void aclDestroyTensorDesc(const aclTensorDesc* desc) { delete desc; }
aclDataType aclGetTensorDescType(const aclTensorDesc* desc) { return desc != nullptr ? desc->dtype : ACL_DT_UNDEFINED; }

aclFormat aclGetTensorDescFormat(const aclTensorDesc* desc) {
  return desc != nullptr ? desc->format : ACL_FORMAT_UNDEFINED;
}

size_t aclGetTensorDescElementCount(const aclTensorDesc* desc) {
  if (desc == nullptr) return 0;
  size_t count = 1;
  for (const int64_t dim : desc->dims) count *= static_cast<size_t>(dim < 0 ? 0 : dim);
  return count;
}

size_t aclGetTensorDescSize(const aclTensorDesc* desc) {
  return desc != nullptr ? aclGetTensorDescElementCount(desc) * aclDataTypeSize(desc->dtype) : 0;
}

size_t aclGetTensorDescNumDims(const aclTensorDesc* desc) { return desc != nullptr ? desc->dims.size() : 0; }

aclError aclGetTensorDescDimV2(const aclTensorDesc* desc, size_t index, int64_t* size) {
  if (desc == nullptr || index >= desc->dims.size()) {
    return fail(ACL_ERROR_INVALID_PARAM, "aclGetTensorDescDimV2: no dimension %zu", index);
  }
  *size = desc->dims[index];
  return ACL_SUCCESS;
}

void aclSetTensorDescName(aclTensorDesc* desc, const char* name) {
  if (desc != nullptr) desc->name = name != nullptr ? name : "";
}

const char* aclGetTensorDescName(aclTensorDesc* desc) { return desc != nullptr ? desc->name.c_str() : ""; }

aclError aclSetTensorFormat(aclTensorDesc* desc, aclFormat format) {
  if (desc == nullptr) return fail(ACL_ERROR_INVALID_PARAM, "aclSetTensorFormat: no description");
  desc->format = format;
  return ACL_SUCCESS;
}

// Storage shape and placement matter to operators only, and those are refused.
aclError aclSetTensorShape(aclTensorDesc*, int, const int64_t*) { return ACL_SUCCESS; }
aclError aclSetTensorPlaceMent(aclTensorDesc*, aclMemType) { return ACL_SUCCESS; }

// Attributes are for an operator that is refused in any case, so their values are not kept.
aclError aclopSetModelDir(const char*) { return ACL_SUCCESS; }
aclopAttr* aclopCreateAttr() { return new aclopAttr; }
void aclopDestroyAttr(const aclopAttr* attr) { delete attr; }
aclError aclopSetAttrBool(aclopAttr*, const char*, uint8_t) { return ACL_SUCCESS; }
aclError aclopSetAttrInt(aclopAttr*, const char*, int64_t) { return ACL_SUCCESS; }
aclError aclopSetAttrFloat(aclopAttr*, const char*, float) { return ACL_SUCCESS; }
aclError aclopSetAttrString(aclopAttr*, const char*, const char*) { return ACL_SUCCESS; }
aclError aclopSetAttrDataType(aclopAttr*, const char*, aclDataType) { return ACL_SUCCESS; }
aclError aclopSetAttrListBool(aclopAttr*, const char*, int, const uint8_t*) { return ACL_SUCCESS; }
aclError aclopSetAttrListInt(aclopAttr*, const char*, int, const int64_t*) { return ACL_SUCCESS; }
aclError aclopSetAttrListFloat(aclopAttr*, const char*, int, const float*) { return ACL_SUCCESS; }
aclError aclopSetAttrListListInt(aclopAttr*, const char*, int, const int*, const int64_t* const*) {
  return ACL_SUCCESS;
}

aclError aclopExecuteV2(const char* type, int, aclTensorDesc**, aclDataBuffer**, int, aclTensorDesc**, aclDataBuffer**,
                        aclopAttr*, aclrtStream) {
  return no_operator(type);
}

aclError aclopCompileAndExecute(const char* type, int, const aclTensorDesc* const*, const aclDataBuffer* const*, int,
                                const aclTensorDesc* const*, aclDataBuffer* const*, const aclopAttr*, aclopEngineType,
                                aclopCompileType, const char*, aclrtStream) {
  return no_operator(type);
}

aclError aclopCompileAndExecuteV2(const char* type, int, aclTensorDesc**, aclDataBuffer**, int, aclTensorDesc**,
                                  aclDataBuffer**, aclopAttr*, aclopEngineType, aclopCompileType, const char*,
                                  aclrtStream) {
  return no_operator(type);
}

aclError aclSetCompileopt(aclCompileOpt option, const char* value) {
  const std::lock_guard<std::mutex> lock(state_mutex());
  if (option != ACL_OP_JIT_COMPILE) compile_options()[option] = value != nullptr ? value : "";
  return ACL_SUCCESS;
}

size_t aclGetCompileoptSize(aclCompileOpt option) { return compile_option(option).size() + 1; }

aclError aclGetCompileopt(aclCompileOpt option, char* value, size_t length) {
  const std::string text = compile_option(option);
  if (value == nullptr || length < text.size() + 1) {
    return fail(ACL_ERROR_INVALID_PARAM, "aclGetCompileopt: the value needs %zu bytes", text.size() + 1);
  }
  std::memcpy(value, text.c_str(), text.size() + 1);
  return ACL_SUCCESS;
}
