// Fill, InitGlobalMemory and InitOutput: a value for a range of global memory.
//
// As on the device (asc-devkit, Fill: constraints; init_global_memory_v220_impl.h): a buffer behind the kernel's own is
// filled once, whatever is asked for, and copied out piece by piece. Nothing waits for the copies: what uses that part
// of UB afterwards needs MTE3_MTE2 or MTE3_V, and other cores a meeting. A cube core has no UB, and the call does
// nothing there.
#pragma once
#include "data_copy.h"
#include "kernel_utils.h"
#include "pipe.h"
#include "sync.h"
#include "vec_duplicate.h"

namespace AscendC {

namespace detail {
// `repetition`: bytes of one repetition; 255 of them are the largest copy.
template <typename T>
ASCENDC_INLINE void fill_global(const GlobalTensor<T>& gm, uint64_t size, T value, uint64_t repetition,
                                const char* api) {
  if (vnpu::local_bytes() == 0) return;
  LocalTensor<T> buffer;
  if (!PopStackBuffer<T, TPosition::LCM>(buffer)) vnpu::misuse(api, "no UB is left behind the kernel's buffers");
  const uint64_t room = buffer.GetSize(), largest = MAX_REPEAT_TIMES * repetition / sizeof(T);
  const uint64_t piece = room < largest ? room : largest;
  vnpu::duplicate_again(buffer.operand(), bits_of(value), static_cast<uint32_t>(piece));
  const auto filled = GetTPipePtr()->FetchEventID(HardEvent::V_MTE3);
  SetFlag<HardEvent::V_MTE3>(filled);
  WaitFlag<HardEvent::V_MTE3>(filled);
  for (uint64_t done = 0; done < size; done += piece) {
    const auto bytes = static_cast<uint32_t>((size - done < piece ? size - done : piece) * sizeof(T));
    vnpu::copy_local_to_gm(gm.pointer() + done, buffer.pointer(),
                           cached_as(gm, shape_of_pad(DataCopyExtParams{1, bytes, 0, 0, 0}, false)), api);
  }
}
}  // namespace detail

template <typename T>
ASCENDC_INLINE void InitGlobalMemory(GlobalTensor<T>& gm, const uint64_t size, const T value) {
  detail::fill_global(gm, size, value, 256, "InitGlobalMemory");
  PipeBarrier<PIPE_MTE3>();
}
template <typename T>
ASCENDC_INLINE void Fill(GlobalTensor<T>& gm, const uint64_t size, const T value) {
  detail::fill_global(gm, size, value, 256, "Fill");
  PipeBarrier<PIPE_MTE3>();
}
// The older name, in smaller pieces.
template <typename T>
ASCENDC_INLINE void InitOutput(GlobalTensor<T> gm, uint32_t size, T value = 0) {
  detail::fill_global(gm, size, value, 32, "InitOutput");
}

}  // namespace AscendC
