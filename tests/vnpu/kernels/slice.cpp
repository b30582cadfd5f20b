// params: call, then for the GM slice and the UB slice of each of 2 axes startIndex, endIndex, stride, burstLen,
// shapeValue (20 numbers), dimValue. Call 0: GM slice of `in` -> UB -> `out` as it lies in UB; 1: `in` -> UB -> GM slice
// of `out`; 2: `out` gets a constant table of the binary; 3: `in` -> `out` through LocalMemAllocator's second tensor,
// of params[1] elements behind 5, and the first free address at its end.
#include "api_kernel.h"

static const __gm__ int32_t kTable[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};

__aicore__ inline void slices(Params p, SliceInfo* s) {
  for (int i = 0; i < 4; i++) s[i] = SliceInfo(p[1 + i * 5], p[2 + i * 5], p[3 + i * 5], p[4 + i * 5], p[5 + i * 5]);
}

__aicore__ inline void through_allocator(const GlobalTensor<int32_t>& from, const GlobalTensor<int32_t>& to, Params p,
                                         uint32_t elements) {
  LocalMemAllocator<Hardware::UB> allocator;
  if (allocator.GetCurAddr() != 0) Trap();
  LocalTensor<int32_t> first = allocator.Alloc<int32_t, 5>();
  LocalTensor<int32_t> second = allocator.Alloc<TPosition::VECIN, int32_t>(p[1]);
  if (first.GetSize() != 5) Trap();
  DataCopy(second, from, elements);
  SetFlag<HardEvent::MTE2_S>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_S>(EVENT_ID0);
  second.SetValue(elements - 1, allocator.GetCurAddr());
  SetFlag<HardEvent::S_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::S_MTE3>(EVENT_ID0);
  DataCopy(to, second, elements);
}

extern "C" __global__ __aicore__ void api(GM_ADDR in, GM_ADDR out, GM_ADDR params, uint64_t bytes) {
  GlobalTensor<int32_t> from, to, table;
  from.SetGlobalBuffer((__gm__ int32_t*)in);
  to.SetGlobalBuffer((__gm__ int32_t*)out);
  table.SetGlobalBuffer((__gm__ int32_t*)kTable, 16);
  Params p{reinterpret_cast<const int32_t*>(params)};
  uint32_t in_elements = uint32_t(bytes) / 4, out_elements = uint32_t(bytes >> 32) / 4;
  if (p[0] == 3) return through_allocator(from, to, p, in_elements);
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, 65536);
  LocalTensor<int32_t> local = buffer.Get<int32_t>();
  const int32_t kind = p[0] ASSERT(p[0] < 3)
  SliceInfo s[4];
  slices(p, s);
  if (kind == 0)
    DataCopy(local, from, s + 2, s, p[21]);
  else if (p[0] == 1)
    DataCopy(local, from, in_elements);
  else
    DataCopy(local, table, 16);
  SetFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_MTE3>(EVENT_ID0);
  if (p[0] == 1)
    DataCopy(to, local, s, s + 2, p[21]);
  else
    DataCopy(to, local, out_elements);
}
