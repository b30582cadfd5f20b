// Products of int8 by groups, with scales of columns and rows and GELU on the vector cores, as asc-devkit's page about
// GroupedMatmul describes it: blocks of sums through global memory, in `slots` places that take turns. The page's
// functions are those of its sample quant_group_matmul_high_performance, and so are the steps of a piece: 24 rows,
// their scales copied and broadcast, the columns', the rows', FasterGelu.
#define ASCENDC_CUBE_ONLY
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

struct Grouped {
  uint32_t groups, rows, n, k;  // rows: of each group
  uint32_t slots, buffers;      // of sums in global memory; of what the vector cores read and write
};

constexpr uint32_t kHigh = 128, kWide = 256, kBlock = kHigh * kWide;  // of a block of sums
constexpr uint32_t kTall = 24, kPiece = kTall * kWide;                // of what a vector core takes at a time
constexpr uint32_t kRegister = 64;                                    // floats of an instruction's repeat
constexpr uint32_t kProduct = 0, kTaken = 1;                          // flags between the cores of a group

template <typename T>
__aicore__ inline GlobalTensor<T> global(GM_ADDR p) {
  GlobalTensor<T> t;
  t.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(p));
  return t;
}

__aicore__ inline void Products(GM_ADDR x, GM_ADDR weight, GM_ADDR bias, GM_ADDR sums, const TCubeTiling& tiling,
                                const Grouped& p) {
  TPipe pipe;
  Matmul<MatmulType<TPosition::GM, CubeFormat::ND, int8_t>, MatmulType<TPosition::GM, CubeFormat::NZ, int8_t>,
         MatmulType<TPosition::GM, CubeFormat::ND, int32_t>, MatmulType<TPosition::GM, CubeFormat::ND, int32_t>,
         CFG_MDL>
      mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &tiling);
  const auto left = global<int8_t>(x), right = global<int8_t>(weight);
  const auto row = global<int32_t>(bias), out = global<int32_t>(sums);
  const uint32_t across = p.n / kWide, down = (p.rows + kHigh - 1) / kHigh;
  uint32_t turn = 0;
  for (uint32_t i = GetBlockIdx(); i < p.groups * down * across; i += GetBlockNum()) {
    const uint32_t group = i / (down * across), m = i % down * kHigh, n = i / down % across * kWide;
    if (turn >= p.slots) CrossCoreWaitFlag(kTaken);
    mm.SetOrgShape(p.rows, p.n, p.k);
    mm.SetSingleShape(min(kHigh, p.rows - m), kWide, p.k);
    mm.SetTensorA(left[static_cast<uint64_t>(group * p.rows + m) * p.k]);
    mm.SetTensorB(right[static_cast<uint64_t>(group) * p.n * p.k + n * p.k]);
    mm.SetBias(row[group * p.n + n]);
    mm.Iterate();
    mm.GetTensorC(out[(GetBlockIdx() * p.slots + turn % p.slots) * kBlock], 0, true);
    CrossCoreSetFlag<2, PIPE_FIX>(kProduct);
    turn++;
  }
  mm.End();
}

class Epilogue {
 public:
  __aicore__ inline Epilogue(GM_ADDR sums, GM_ADDR scale, GM_ADDR scaleOfRow, GM_ADDR y, const Grouped& p) : p_(p) {
    sums_ = global<int32_t>(sums);
    scale_ = global<float>(scale);
    scaleOfRow_ = global<float>(scaleOfRow);
    y_ = global<half>(y);
    pipe_.InitBuffer(in_, p.buffers, kPiece * sizeof(int32_t));
    pipe_.InitBuffer(out_, p.buffers, kPiece * sizeof(half));
    pipe_.InitBuffer(columns_, p.buffers, kWide * sizeof(float));
    pipe_.InitBuffer(rows_, p.buffers, kTall * sizeof(float));
    pipe_.InitBuffer(work_, 3 * kPiece * sizeof(float));
  }

  __aicore__ inline void Run() {
    const uint32_t across = p_.n / kWide, down = (p_.rows + kHigh - 1) / kHigh, ratio = GetTaskRatio();
    const uint32_t core = GetBlockIdx() / ratio, blocks = GetBlockNum();
    uint32_t turn = 0, pieces = 0;
    for (uint32_t i = core; i < p_.groups * down * across; i += blocks) {
      const uint32_t group = i / (down * across), m = i % down * kHigh, n = i / down % across * kWide;
      const uint32_t high = min(kHigh, p_.rows - m), first = group * p_.rows + m;
      LocalTensor<float> columns = Bring(columns_, scale_[group * p_.n + n], kWide);
      CrossCoreWaitFlag(kProduct);
      for (uint32_t r = 0; r < high; r += kTall) {
        if (pieces++ % ratio != GetSubBlockIdx()) continue;  // the vector cores of a group take turns
        const uint32_t tall = min(kTall, high - r);
        Piece(sums_[(core * p_.slots + turn % p_.slots) * kBlock + r * kWide], columns, scaleOfRow_[first + r], tall,
              y_[static_cast<uint64_t>(first + r) * p_.n + n]);
      }
      CrossCoreSetFlag<2, PIPE_MTE2>(kTaken);
      columns_.FreeTensor(columns);
      turn++;
    }
  }

 private:
  __aicore__ inline LocalTensor<float> Bring(TQue<TPosition::VECIN, 2>& queue, const GlobalTensor<float>& from,
                                             uint32_t count) {
    LocalTensor<float> t = queue.AllocTensor<float>();
    DataCopy(t, from, count);
    queue.EnQue(t);
    return queue.DeQue<float>();
  }

  __aicore__ inline void Piece(const GlobalTensor<int32_t>& from, const LocalTensor<float>& columns,
                               const GlobalTensor<float>& scales, uint32_t tall, const GlobalTensor<half>& to) {
    const uint32_t count = tall * kWide;
    const auto repeats = static_cast<uint8_t>(tall);
    LocalTensor<int32_t> sums = in_.AllocTensor<int32_t>();
    DataCopy(sums, from, count);
    in_.EnQue(sums);
    sums = in_.DeQue<int32_t>();
    LocalTensor<float> a = work_.Get<float>(), b = a[kPiece], wide = b[kPiece];
    LocalTensor<float> rows = Bring(rows_, scales, (tall + 7) / 8 * 8);
    const uint32_t to_shape[] = {tall, kWide}, from_shape[] = {tall, 1};
    BroadCast<float, 2, 1>(wide, rows, to_shape, from_shape);
    rows_.FreeTensor(rows);
    Cast(a, sums, RoundMode::CAST_NONE, count);
    PipeBarrier<PIPE_V>();
    in_.FreeTensor(sums);
    for (uint32_t c = 0; c < kWide; c += kRegister) {
      Mul(b[c], a[c], columns[c], kRegister, repeats, BinaryRepeatParams(1, 1, 1, kWide / 8, kWide / 8, 0));
    }
    PipeBarrier<PIPE_V>();
    Mul(a, b, wide, count);
    PipeBarrier<PIPE_V>();
    FasterGelu(b, a, count);
    PipeBarrier<PIPE_V>();
    LocalTensor<half> y = out_.AllocTensor<half>();
    Cast(y, b, RoundMode::CAST_RINT, count);
    PipeBarrier<PIPE_V>();
    out_.EnQue(y);
    y = out_.DeQue<half>();
    DataCopy(to, y, DataCopyParams(tall, kWide * sizeof(half) / 32, 0, (p_.n - kWide) * sizeof(half) / 32));
    out_.FreeTensor(y);
  }

  Grouped p_;
  TPipe pipe_;
  TQue<TPosition::VECIN, 2> in_, columns_, rows_;
  TQue<TPosition::VECOUT, 2> out_;
  TBuf<TPosition::VECCALC> work_;
  GlobalTensor<int32_t> sums_;
  GlobalTensor<float> scale_, scaleOfRow_;
  GlobalTensor<half> y_;
};

#define KERNEL(NAME, RATIO)                                                                                          \
  extern "C" __global__ __mix__(1, RATIO) void NAME(GM_ADDR x, GM_ADDR weight, GM_ADDR bias, GM_ADDR scale,          \
                                                    GM_ADDR scaleOfRow, GM_ADDR sums, GM_ADDR y, TCubeTiling tiling, \
                                                    Grouped p) {                                                     \
    if ASCEND_IS_AIC {                                                                                               \
      Products(x, weight, bias, sums, tiling, p);                                                                    \
    }                                                                                                                \
    if ASCEND_IS_AIV {                                                                                               \
      Epilogue(sums, scale, scaleOfRow, y, p).Run();                                                                 \
    }                                                                                                                \
  }
KERNEL(one_vector_core, 1)
KERNEL(two_vector_cores, 2)
