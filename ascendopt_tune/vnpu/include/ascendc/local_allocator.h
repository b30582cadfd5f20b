// LocalMemAllocator: hands out Unified Buffer piece by piece where a kernel does without TPipe (AscendC reference,
// static tensor programming). One object in a kernel's life.
#pragma once
#include "tensor.h"

namespace AscendC {

template <Hardware hard = Hardware::UB>
class LocalMemAllocator {
  static_assert(hard == Hardware::UB,
                "AscendC::LocalMemAllocator of a cube core's memory: cube and mix kernels are not covered");

 public:
  template <TPosition pos, typename DataType>
  ASCENDC_INLINE LocalTensor<DataType> Alloc(uint32_t tileSize) {
    const auto* at = static_cast<const uint8_t*>(vnpu::local_allocate(tileSize * sizeof(DataType)));
    const auto offset = static_cast<uint32_t>(at - static_cast<const uint8_t*>(vnpu::local_base()));
    free_ = offset + (tileSize * static_cast<uint32_t>(sizeof(DataType)) + 31) / 32 * 32;
    if (free_ > vnpu::local_bytes()) vnpu::misuse("LocalMemAllocator::Alloc", "the Unified Buffer is full");
    return LocalTensor<DataType>(pos, offset, tileSize);
  }
  template <typename DataType>
  ASCENDC_INLINE LocalTensor<DataType> Alloc(uint32_t tileSize) {
    return Alloc<TPosition::VECCALC, DataType>(tileSize);
  }
  template <TPosition pos, typename DataType, uint32_t tileSize>
  ASCENDC_INLINE LocalTensor<DataType> Alloc() {
    return Alloc<pos, DataType>(tileSize);
  }
  template <typename DataType, uint32_t tileSize>
  ASCENDC_INLINE LocalTensor<DataType> Alloc() {
    return Alloc<TPosition::VECCALC, DataType>(tileSize);
  }
  // First byte that is not handed out.
  uint32_t GetCurAddr() const { return free_; }

 private:
  uint32_t free_ = 0;
};

}  // namespace AscendC
