// LocalMemAllocator: hands out a local memory piece by piece where a kernel does without TPipe (AscendC reference,
// static tensor programming). One object in a kernel's life.
#pragma once
#include "tensor.h"

namespace AscendC {

namespace detail {
constexpr vnpu::Memory memory_of_hardware(Hardware h) {
  constexpr vnpu::Memory table[] = {vnpu::Memory::UB,  vnpu::Memory::UB,  vnpu::Memory::L1, vnpu::Memory::L0A,
                                    vnpu::Memory::L0B, vnpu::Memory::L0C, vnpu::Memory::BT, vnpu::Memory::FB};
  return table[static_cast<int>(h)];
}
// The usual position in a memory.
constexpr TPosition position_in(Hardware h) {
  constexpr TPosition table[] = {TPosition::GM, TPosition::VECCALC, TPosition::A1, TPosition::A2,
                                 TPosition::B2, TPosition::CO1,     TPosition::C2, TPosition::C2PIPE2GM};
  return table[static_cast<int>(h)];
}
}  // namespace detail

template <Hardware hard = Hardware::UB>
class LocalMemAllocator {
  static_assert(hard != Hardware::GM && hard != Hardware::MAX, "AscendC::LocalMemAllocator of a local memory");
  static constexpr vnpu::Memory memory = detail::memory_of_hardware(hard);
  static constexpr TPosition position = detail::position_in(hard);

 public:
  template <TPosition pos, typename DataType>
  ASCENDC_INLINE LocalTensor<DataType> Alloc(uint32_t tileSize) {
    const auto* at = static_cast<const uint8_t*>(vnpu::local_allocate(memory, tileSize * sizeof(DataType)));
    const auto offset = static_cast<uint32_t>(at - static_cast<const uint8_t*>(vnpu::local_base(memory)));
    free_ = offset + (tileSize * static_cast<uint32_t>(sizeof(DataType)) + 31) / 32 * 32;
    if (free_ > vnpu::local_bytes(memory))
      vnpu::misuse("LocalMemAllocator::Alloc", hard == Hardware::UB
                                                   ? "the Unified Buffer is full"
                                                   : "the memory is full, or the core doesn't have it");
    return LocalTensor<DataType>(pos, offset, tileSize);
  }
  template <typename DataType>
  ASCENDC_INLINE LocalTensor<DataType> Alloc(uint32_t tileSize) {
    return Alloc<position, DataType>(tileSize);
  }
  template <TPosition pos, typename DataType, uint32_t tileSize>
  ASCENDC_INLINE LocalTensor<DataType> Alloc() {
    return Alloc<pos, DataType>(tileSize);
  }
  template <typename DataType, uint32_t tileSize>
  ASCENDC_INLINE LocalTensor<DataType> Alloc() {
    return Alloc<position, DataType>(tileSize);
  }
  // First byte that is not handed out.
  uint32_t GetCurAddr() const { return free_; }

 private:
  uint32_t free_ = 0;
};

}  // namespace AscendC
