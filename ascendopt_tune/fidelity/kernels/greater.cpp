// z = x > y, a byte of 0 or 1 for every element: Compare, Select between ones and zeros of half, Cast. An operator with
// tiling data (30 words are read); 256 elements or multiples of them to each core, in pieces of TILE.
//   T, TILE  type and elements of a piece
#include "kernel_operator.h"
#include "tiling.h"

using namespace AscendC;

struct Tiling {
  uint32_t total, cores, rest[28];
};

constexpr uint32_t kUnit = 256;  // elements: what cores share out, and what Compare wants

class Greater {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR z, const Tiling& tiling) {
    t_ = tiling;
    x_.SetGlobalBuffer((__gm__ T*)x, t_.total);
    y_.SetGlobalBuffer((__gm__ T*)y, t_.total);
    z_.SetGlobalBuffer((__gm__ uint8_t*)z, t_.total);
    pipe_.InitBuffer(xs_, 2, TILE * sizeof(T));
    pipe_.InitBuffer(ys_, 2, TILE * sizeof(T));
    pipe_.InitBuffer(zs_, 2, TILE);
    pipe_.InitBuffer(mask_, TILE / 8);
    pipe_.InitBuffer(halves_, TILE * sizeof(half));
    pipe_.InitBuffer(zeros_, TILE * sizeof(half));
    pipe_.InitBuffer(ones_, TILE * sizeof(half));
    pipe_.InitBuffer(spare_x_, TILE * sizeof(T));
    pipe_.InitBuffer(spare_y_, TILE * sizeof(T));
    Duplicate(zeros_.Get<half>(), static_cast<half>(0.0f), TILE);
    Duplicate(ones_.Get<half>(), static_cast<half>(1.0f), TILE);
  }

  __aicore__ inline void Process() {
    const uint64_t units = (t_.total + kUnit - 1) / kUnit, core = GetBlockIdx();
    uint64_t end = units * (core + 1) / t_.cores * kUnit;
    if (end > t_.total) end = t_.total;
    for (uint64_t at = units * core / t_.cores * kUnit; at < end; at += TILE)
      Piece(at, static_cast<uint32_t>(end - at < TILE ? end - at : TILE));
  }

 private:
  __aicore__ inline LocalTensor<T> Read(TQue<QuePosition::VECIN, 2>& queue, const GlobalTensor<T>& from, uint64_t at,
                                        uint32_t n) {
    LocalTensor<T> to = queue.AllocTensor<T>();
    if (at * sizeof(T) % 256 == 0 && n * sizeof(T) % 256 == 0)
      DataCopy(to, from[at], n);
    else
      DataCopyPad(to, from[at], DataCopyExtParams(1, n * sizeof(T), 0, 0, 0),
                  DataCopyPadExtParams<T>(true, 0, 0, static_cast<T>(0)));
    queue.EnQue(to);
    return queue.DeQue<T>();
  }

  __aicore__ inline void Piece(uint64_t at, uint32_t n) {
    const uint32_t whole = (n + kUnit - 1) / kUnit * kUnit;
    LocalTensor<T> a = Read(xs_, x_, at, n), b = Read(ys_, y_, at, n);
    LocalTensor<uint8_t> out = zs_.AllocTensor<uint8_t>(), mask = mask_.Get<uint8_t>();
    LocalTensor<half> halves = halves_.Get<half>();
    Compare(mask, a, b, CMPMODE::GT, whole);
    Select(halves, mask, ones_.Get<half>(), zeros_.Get<half>(), SELMODE::VSEL_TENSOR_TENSOR_MODE, whole);
    Cast(out, halves, RoundMode::CAST_NONE, whole);
    zs_.EnQue(out);
    xs_.FreeTensor(a);
    ys_.FreeTensor(b);
    out = zs_.DeQue<uint8_t>();
    if (at % 256 == 0 && n % 256 == 0)
      DataCopy(z_[at], out, n);
    else
      DataCopyPad(z_[at], out, DataCopyExtParams(1, n, 0, 0, 0));
    zs_.FreeTensor(out);
  }

  TPipe pipe_;
  TQue<QuePosition::VECIN, 2> xs_, ys_;
  TQue<QuePosition::VECOUT, 2> zs_;
  TBuf<TPosition::VECCALC> mask_, halves_, zeros_, ones_, spare_x_, spare_y_;
  GlobalTensor<T> x_, y_;
  GlobalTensor<uint8_t> z_;
  Tiling t_;
};

extern "C" __global__ __aicore__ void greater(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA_WITH_STRUCT(Tiling, t, tiling);
  Greater op;
  op.Init(x, y, z, t);
  op.Process();
}
