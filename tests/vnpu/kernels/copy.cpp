// params: call, dtype, blockCount (or count), blockLen, srcStride, dstStride, isPad, leftPadding, rightPadding, bits of
// paddingValue, GM offset in elements, atomic operation (0: none). Calls are listed in test_api_copy.py.
#include "api_kernel.h"

template <typename T>
__aicore__ inline void set_atomic(int32_t operation) {
  if (operation == 1) SetAtomicAdd<T>();
  if (operation == 2) SetAtomicMax<T>();
  if (operation == 3) SetAtomicMin<T>();
}

template <typename T>
__aicore__ inline void copy(GM_ADDR in, GM_ADDR out, Params p, uint32_t in_bytes, uint32_t out_bytes) {
  GlobalTensor<T> from, to;
  GlobalTensor<uint8_t> source, destination;
  from.SetGlobalBuffer((__gm__ T*)in);
  to.SetGlobalBuffer((__gm__ T*)out);
  source.SetGlobalBuffer(in, in_bytes);
  destination.SetGlobalBuffer(out, out_bytes);
  T value;
  __builtin_memcpy(&value, p.p + 9, sizeof(T));
  DataCopyParams blocks(p[2], p[3], p[4], p[5]);
  DataCopyExtParams bytes(p[2], p[3], p[4], p[5], 0);
  if (p[0] < 4) {
    DataCopy(output<uint8_t>(), destination, out_bytes);
    PipeBarrier<PIPE_MTE2>();
    if (p[0] == 0) DataCopy(output<T>(), from[p[10]], static_cast<uint32_t>(p[2]));
    if (p[0] == 1) DataCopy(output<T>(), from[p[10]], blocks);
    if (p[0] == 2) DataCopyPad(output<T>(), from[p[10]], bytes, DataCopyPadExtParams<T>(p[6], p[7], p[8], value));
    if (p[0] == 3) {
      uint64_t wide = 0;
      __builtin_memcpy(&wide, &value, sizeof(T));
      DataCopyPad(output<T>(), from[p[10]], blocks, DataCopyPadParams(p[6], p[7], p[8], wide));
    }
    PipeBarrier<PIPE_ALL>();
    DataCopy(destination, output<uint8_t>(), out_bytes);
    return;
  }
  DataCopy(input<uint8_t>(), source, in_bytes);
  PipeBarrier<PIPE_ALL>();
  if (p[0] == 8) {
    DataCopy(output<uint8_t>(), destination, out_bytes);
    PipeBarrier<PIPE_ALL>();
    DataCopy(output<T>(), input<T>(), blocks);
    PipeBarrier<PIPE_ALL>();
    DataCopy(destination, output<uint8_t>(), out_bytes);
    return;
  }
  set_atomic<T>(p[11]);
  if (p[0] == 4) DataCopy(to[p[10]], input<T>(), static_cast<uint32_t>(p[2]));
  if (p[0] == 5) DataCopy(to[p[10]], input<T>(), blocks);
  if (p[0] == 6) DataCopyPad(to[p[10]], input<T>(), bytes);
  if (p[0] == 7) DataCopyPad(to[p[10]], input<T>(), blocks);
  SetAtomicNone();
}

extern "C" __global__ __aicore__ void api(GM_ADDR in, GM_ADDR out, GM_ADDR params, uint64_t bytes) {
  Params p = {reinterpret_cast<const int32_t*>(params)};
  uint32_t in_bytes = static_cast<uint32_t>(bytes), out_bytes = static_cast<uint32_t>(bytes >> 32);
  switch (p[1]) {
    case 0:
      return copy<float>(in, out, p, in_bytes, out_bytes);
    case 1:
      return copy<half>(in, out, p, in_bytes, out_bytes);
    case 2:
      return copy<int32_t>(in, out, p, in_bytes, out_bytes);
    case 3:
      return copy<int16_t>(in, out, p, in_bytes, out_bytes);
    case 6:
      return copy<int8_t>(in, out, p, in_bytes, out_bytes);
    case 8:
      return copy<bfloat16_t>(in, out, p, in_bytes, out_bytes);
  }
}
