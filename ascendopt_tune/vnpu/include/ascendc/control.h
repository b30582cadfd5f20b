// Control registers: how floating point overflows, and which atomic operation copies out make.
#pragma once
#include "types.h"
#include "vnpu/device.h"

namespace AscendC {

namespace detail {
// Of the register CTRL architecture 2201 gives kernels bit 48 alone: whether infinities and NaN stay what they are.
// They do on the virtual NPU, which is the mode that torch_npu 2.13.0 sets (aclrtSetDeviceSatMode), whatever it was.
template <int8_t startBit, int8_t endBit>
constexpr void check_control() {
  static_assert(startBit == 48 && endBit == 48, "of CTRL, kernels of architecture 2201 have bit 48 alone");
}
ASCENDC_INLINE void keep_infinities(bool keep, const char* api) {
  vnpu::scalar_cost(2);
  if (!keep)
    vnpu::unsupported(api, "the virtual NPU doesn't cover floating point that saturates (bit 48 of CTRL is 0)");
}
}  // namespace detail

// Limit of SetCtrlSpr, SetSaturationFlag: floating point that saturates is refused, and so are conversions to integers
// that don't
template <int8_t startBit, int8_t endBit>
ASCENDC_INLINE void SetCtrlSpr(int64_t value) {
  detail::check_control<startBit, endBit>();
  detail::keep_infinities(value != 0, "SetCtrlSpr");
}
template <int8_t startBit, int8_t endBit>
ASCENDC_INLINE int64_t GetCtrlSpr() {
  detail::check_control<startBit, endBit>();
  vnpu::scalar_cost(1);
  return 1;
}

enum class SaturationMode : uint8_t { FLOAT, INT, CAST };

template <SaturationMode mode>
ASCENDC_INLINE void SetSaturationFlag(bool enableSat) {
  static_assert(mode != SaturationMode::INT, "SetSaturationFlag takes FLOAT and CAST on architecture 2201");
  if constexpr (mode == SaturationMode::FLOAT) {
    detail::keep_infinities(!enableSat, "SetSaturationFlag");
  } else {
    vnpu::scalar_cost(2);
    if (!enableSat)
      vnpu::unsupported("SetSaturationFlag",
                        "the virtual NPU doesn't cover conversions to integers that don't saturate");
  }
}
template <SaturationMode mode>
ASCENDC_INLINE bool GetSaturationFlag() {
  static_assert(mode != SaturationMode::INT, "GetSaturationFlag takes FLOAT and CAST on architecture 2201");
  vnpu::scalar_cost(1);
  return mode == SaturationMode::CAST;
}

enum class AtomicDtype { ATOMIC_NONE = 0, ATOMIC_F32, ATOMIC_F16, ATOMIC_S16, ATOMIC_S32, ATOMIC_S8, ATOMIC_BF16 };
enum class AtomicOp { ATOMIC_SUM = 0 };

namespace detail {
constexpr vnpu::DType atomic_types[] = {vnpu::DType::None, vnpu::DType::F32, vnpu::DType::F16, vnpu::DType::I16,
                                        vnpu::DType::I32,  vnpu::DType::I8,  vnpu::DType::BF16};
}  // namespace detail

template <AtomicDtype type, AtomicOp op>
ASCENDC_INLINE void SetStoreAtomicConfig() {
  constexpr bool on = type != AtomicDtype::ATOMIC_NONE;
  vnpu::set_atomic(on ? vnpu::AtomicOp::Add : vnpu::AtomicOp::None, detail::atomic_types[static_cast<int>(type)]);
}
// Only sums can be told: a maximum or minimum, which other functions switch on, is refused.
ASCENDC_INLINE void GetStoreAtomicConfig(uint16_t& atomicType, uint16_t& atomicOp) {
  vnpu::AtomicOp op = vnpu::AtomicOp::None;
  vnpu::DType type = vnpu::DType::None;
  vnpu::get_atomic(&op, &type);
  if (op != vnpu::AtomicOp::None && op != vnpu::AtomicOp::Add)
    vnpu::unsupported("GetStoreAtomicConfig", "an atomic maximum or minimum has no number here");
  atomicType = atomicOp = 0;
  for (uint16_t i = 1; op == vnpu::AtomicOp::Add && i < 7; i++)
    if (detail::atomic_types[i] == type) atomicType = i;
}

}  // namespace AscendC
