// Elements of a memory as text (DumpTensor).
#include "vnpu/dump.h"

#include <cstdio>
#include <cstring>
#include <string>

#include "../core/memory.h"
#include "../core/vector.h"
#include "float16.h"
#include "vnpu/device.h"

namespace vnpu {
namespace {

template <typename T>
T element_at(const uint8_t* data, uint32_t i) {
  T value;
  memcpy(&value, data + i * sizeof(T), sizeof(T));
  return value;
}

double number_at(const uint8_t* data, DType dtype, uint32_t i) {
  switch (dtype) {
    case DType::F32:
      return element_at<float>(data, i);
    case DType::F16:
      return half_to_float(element_at<uint16_t>(data, i));
    case DType::BF16:
      return bfloat16_to_float(element_at<uint16_t>(data, i));
    case DType::I8:
      return element_at<int8_t>(data, i);
    case DType::U8:
    case DType::Bool:
      return element_at<uint8_t>(data, i);
    case DType::I16:
      return element_at<int16_t>(data, i);
    case DType::U16:
      return element_at<uint16_t>(data, i);
    case DType::I32:
      return element_at<int32_t>(data, i);
    case DType::U32:
      return element_at<uint32_t>(data, i);
    case DType::I64:
      return static_cast<double>(element_at<int64_t>(data, i));
    case DType::U64:
      return static_cast<double>(element_at<uint64_t>(data, i));
    default:
      return 0;
  }
}

}  // namespace

void dump(const void* data, DType dtype, uint32_t elements, const char* api) {
  const uint64_t size = dtype == DType::None ? 0 : dtype_size(dtype);
  if (size == 0 || size > 8 || dtype == DType::I4 || dtype == DType::F64 || dtype == DType::C64)
    unsupported(api, "this type of elements");
  Core& c = core();
  c.needs_turn(api, VNPU_PC);
  const auto* first = static_cast<const uint8_t*>(data);
  const uint8_t* last = first + (elements == 0 ? 0 : elements * size - 1);
  const Allocation* global = gm_find(reinterpret_cast<uint64_t>(first));
  const bool local = c.is_local(first) && c.is_local(last);
  if (!local && (global == nullptr || global != gm_find(reinterpret_cast<uint64_t>(last))))
    misuse(api, (std::to_string(elements) + " elements from there on are not all in one memory").c_str());
  for (uint32_t i = 0; i < elements; i++) printf(" %g", number_at(first, dtype, i));
}

}  // namespace vnpu
