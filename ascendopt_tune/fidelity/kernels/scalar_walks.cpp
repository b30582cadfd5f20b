// One core's share of kernels that leave all work to the scalar unit, of float, in global memory (x, w, y) or in UB.
//   WAY     which of the walks below; silicon.csv names the kernel that each repeats
//   AMOUNT  columns, rows, channels or elements
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t kCompared = 0, kSummed = 1, kAbreast = 2, kTaps = 3, kThrough = 4, kScan = 5, kProducts = 6;
constexpr uint32_t kRows = 4096, kStep = 4095;  // of a matrix that is walked along its columns

struct Walks {
  GlobalTensor<float> x, w, y;
  LocalTensor<float> a, b;

  // Where the largest of a column stands, an element after another.
  __aicore__ inline void Compared(uint32_t columns) {
    for (uint32_t column = 0; column < columns; column++) {
      float most = -3.4e38f;
      uint32_t where = 0;
      for (uint32_t row = 0; row < kRows; row++) {
        const float value = x.GetValue(column + row * kStep);
        if (value > most) most = value, where = row;
      }
      y.SetValue(column, static_cast<float>(where));
    }
  }

  // The sum of a column, in eight parts.
  __aicore__ inline void Summed(uint32_t columns) {
    for (uint32_t column = 0; column < columns; column++) {
      float sums[8] = {};
      for (uint32_t row = 0; row < kRows; row += 8)
        for (uint32_t i = 0; i < 8; i++) sums[i] += x.GetValue(column + (row + i) * kStep);
      float sum = 0;
      for (float part : sums) sum += part;
      y.SetValue(column, sum);
    }
  }

  // The largest of eight columns next to each other, row by row.
  __aicore__ inline void Abreast(uint32_t columns) {
    for (uint32_t column = 0; column < columns; column += 8) {
      float most[8] = {-3e38f, -3e38f, -3e38f, -3e38f, -3e38f, -3e38f, -3e38f, -3e38f};
      for (uint32_t row = 0; row < kRows; row++)
        for (uint32_t i = 0; i < 8; i++) {
          const float value = x.GetValue(column + row * kStep + i);
          most[i] = value > most[i] ? value : most[i];
        }
      for (uint32_t i = 0; i < 8; i++) y.SetValue(column + i, most[i]);
    }
  }

  // A convolution of one channel with 3 x 7 taps: rows of 256, 250 results a row.
  __aicore__ inline void Taps(uint32_t rows) {
    for (uint32_t row = 0; row < rows; row++)
      for (uint32_t column = 0; column < 250; column++) {
        float sum = 0;
        for (uint32_t i = 0; i < 3; i++)
          for (uint32_t j = 0; j < 7; j++) sum += x.GetValue((row + i) * 256 + column + j) * w.GetValue(i * 7 + j);
        y.SetValue(row * 250 + column, sum);
      }
  }

  // Elements to UB twice, and from UB back: pieces of 256 of as many channels, each with its plane.
  __aicore__ inline void Through(uint32_t channels) {
    for (uint32_t pass = 0; pass < 2; pass++)
      for (uint32_t channel = 0; channel < channels; channel++) {
        for (uint32_t i = 0; i < 256; i++) a.SetValue(i, x.GetValue(channel * 65536 + i));
        if (pass == 0) continue;
        for (uint32_t i = 0; i < 256; i++) y.SetValue(channel * 65536 + i, a.GetValue(i));
      }
  }

  // Running sums in UB: sixteen loads, then sixteen sums and stores.
  __aicore__ inline void Scan(uint32_t count) {
    float sum = 0;
    for (uint32_t at = 0; at < count; at += 16) {
      float values[16];
      for (uint32_t i = 0; i < 16; i++) values[i] = a.GetValue(at % 4096 + i);
      for (uint32_t i = 0; i < 16; i++) b.SetValue(at % 4096 + i, sum += values[i]);
    }
  }

  // Running products in UB, in place: each is loaded, multiplied and stored.
  __aicore__ inline void Products(uint32_t count) {
    float product = 1;
    for (uint32_t at = 0; at < count; at++) a.SetValue(at % 4096, product *= a.GetValue(at % 4096));
  }
};

extern "C" __global__ __aicore__ void scalar_walks(GM_ADDR x, GM_ADDR w, GM_ADDR y) {
  Walks walks;
  TPipe pipe;
  TBuf<TPosition::VECCALC> first, second;
  pipe.InitBuffer(first, 16384);
  pipe.InitBuffer(second, 16384);
  walks.a = first.Get<float>();
  walks.b = second.Get<float>();
  walks.x.SetGlobalBuffer((__gm__ float*)x);
  walks.w.SetGlobalBuffer((__gm__ float*)w);
  walks.y.SetGlobalBuffer((__gm__ float*)y);
  if constexpr (WAY >= kScan) {
    Duplicate(walks.a, 1.0f, 4096);
    Duplicate(walks.b, 1.0f, 4096);
    SetFlag<HardEvent::V_S>(EVENT_ID0);
    WaitFlag<HardEvent::V_S>(EVENT_ID0);
  }
  if constexpr (WAY == kCompared) walks.Compared(AMOUNT);
  if constexpr (WAY == kSummed) walks.Summed(AMOUNT);
  if constexpr (WAY == kAbreast) walks.Abreast(AMOUNT);
  if constexpr (WAY == kTaps) walks.Taps(AMOUNT);
  if constexpr (WAY == kThrough) walks.Through(AMOUNT);
  if constexpr (WAY == kScan) walks.Scan(AMOUNT);
  if constexpr (WAY == kProducts) walks.Products(AMOUNT);
}
