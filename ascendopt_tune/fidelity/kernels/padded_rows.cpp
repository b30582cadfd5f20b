// The sums of the squares of a matrix' columns by one core: COLUMNS of T are a few bytes, a row, and each is filled up
// with zeros to a block of 32 bytes as it comes to UB, ROWS of them a copy. Events between the pipes, one buffer.
//   T, COLUMNS, ROWS  a row's elements; a power of two of rows a copy
//   COPIES            of ROWS rows each
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t kPadded = 32 / sizeof(T), kCount = ROWS * kPadded;

// What was copied as floats: itself, or made of it.
template <typename U>
__aicore__ inline LocalTensor<float> Floats(LocalTensor<U>& in, TBuf<TPosition::VECCALC>& floats) {
  if constexpr (sizeof(U) == sizeof(float)) {
    return in;
  } else {
    LocalTensor<float> made = floats.Get<float>();
    Cast(made, in, RoundMode::CAST_NONE, kCount);
    return made;
  }
}

extern "C" __global__ __aicore__ void padded_rows(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<T> rows;
  GlobalTensor<float> sums;
  rows.SetGlobalBuffer((__gm__ T*)x, ROWS * COPIES * COLUMNS);
  sums.SetGlobalBuffer((__gm__ float*)y, kPadded);
  TPipe pipe;
  TBuf<TPosition::VECCALC> input, floats, total;
  pipe.InitBuffer(input, kCount * sizeof(T));
  pipe.InitBuffer(total, kPadded * sizeof(float));
  if (sizeof(T) != sizeof(float)) pipe.InitBuffer(floats, kCount * sizeof(float));
  LocalTensor<T> in = input.Get<T>();
  LocalTensor<float> sum = total.Get<float>();
  Duplicate(sum, 0.0f, kPadded);
  for (uint32_t copy = 0; copy < COPIES; copy++) {
    SetFlag<HardEvent::V_MTE2>(0);
    WaitFlag<HardEvent::V_MTE2>(0);
    DataCopyPad(in, rows[copy * ROWS * COLUMNS], DataCopyExtParams(ROWS, COLUMNS * sizeof(T), 0, 0, 0),
                DataCopyPadExtParams<T>(true, 0, kPadded - COLUMNS, static_cast<T>(0)));
    SetFlag<HardEvent::MTE2_V>(0);
    WaitFlag<HardEvent::MTE2_V>(0);
    LocalTensor<float> tree = Floats(in, floats);
    Mul(tree, tree, tree, kCount);
    for (uint32_t half_of = ROWS / 2; half_of > 0; half_of /= 2)
      Add(tree, tree, tree[half_of * kPadded], half_of * kPadded);
    Add(sum, sum, tree, kPadded);
  }
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(sums, sum, kPadded);
}
