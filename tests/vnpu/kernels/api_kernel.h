// Frame of the API tests' kernels: local memory is input | output | work, 64 KiB each.
#pragma once
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t kInput = 0, kOutput = 65536, kWork = 131072, kAreaBytes = 65536;

template <typename T>
__aicore__ inline LocalTensor<T> input(uint32_t byte_offset = 0) {
  return LocalTensor<T>(TPosition::VECCALC, kInput + byte_offset, (kAreaBytes - byte_offset) / sizeof(T));
}
template <typename T>
__aicore__ inline LocalTensor<T> output(uint32_t byte_offset = 0) {
  return LocalTensor<T>(TPosition::VECCALC, kOutput + byte_offset, (kAreaBytes - byte_offset) / sizeof(T));
}
template <typename T>
__aicore__ inline LocalTensor<T> work(uint32_t byte_offset = 0) {
  return LocalTensor<T>(TPosition::VECCALC, kWork + byte_offset, (kAreaBytes - byte_offset) / sizeof(T));
}

struct Params {
  const int32_t* p;
  int32_t operator[](int i) const { return p[i]; }
  float as_float(int i) const { return __builtin_bit_cast(float, p[i]); }
  uint64_t as_u64(int i) const { return uint32_t(p[i]) | uint64_t(uint32_t(p[i + 1])) << 32; }
};

// Copies in, calls body(params), copies out; everything ordered by barriers.
template <typename Body>
__aicore__ inline void run_api(GM_ADDR in, GM_ADDR out, GM_ADDR params, uint64_t bytes, Body body) {
  uint32_t in_bytes = static_cast<uint32_t>(bytes), out_bytes = static_cast<uint32_t>(bytes >> 32);
  GlobalTensor<uint8_t> source, destination;
  source.SetGlobalBuffer(in);
  destination.SetGlobalBuffer(out);
  if (in_bytes) DataCopy(input<uint8_t>(), source, in_bytes);
  DataCopy(output<uint8_t>(), destination, out_bytes);
  PipeBarrier<PIPE_ALL>();
  body(Params{reinterpret_cast<const int32_t*>(params)});
  PipeBarrier<PIPE_ALL>();
  DataCopy(destination, output<uint8_t>(), out_bytes);
}
