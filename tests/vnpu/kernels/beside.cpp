// What cores of one launch may do to each other, by number; see test_core_threads.py.
#include "kernel_operator.h"
using namespace AscendC;

constexpr uint32_t TILE = 64;  // floats

namespace {

#ifdef WITH_VARIABLE
int32_t shared_count = 0;
#endif

class Mover {
 public:
  __aicore__ inline Mover(GM_ADDR x, GM_ADDR y) {
    pipe_.InitBuffer(in_, 1, TILE * sizeof(float));
    pipe_.InitBuffer(out_, 1, TILE * sizeof(float));
    x_.SetGlobalBuffer((__gm__ float*)x);
    y_.SetGlobalBuffer((__gm__ float*)y);
  }
  // Tile `to` of y becomes tile `from` of x times the factor. Returns the first number that was read.
  __aicore__ inline float Move(uint32_t from, uint32_t to, float factor, bool back = false) {
    LocalTensor<float> a = in_.AllocTensor<float>();
    DataCopy(a, (back ? y_ : x_)[from * TILE], TILE);
    in_.EnQue(a);
    a = in_.DeQue<float>();
    const float first = a.GetValue(0);
    LocalTensor<float> b = out_.AllocTensor<float>();
    Muls(b, a, factor, TILE);
    out_.EnQue(b);
    in_.FreeTensor(a);
    b = out_.DeQue<float>();
    DataCopy(y_[to * TILE], b, TILE);
    out_.FreeTensor(b);
    return first;
  }
  GlobalTensor<float>& y() { return y_; }

 private:
  TPipe pipe_;
  TQue<QuePosition::VECIN, 1> in_;
  TQue<QuePosition::VECOUT, 1> out_;
  GlobalTensor<float> x_, y_;
};

}  // namespace

// Every core moves `tiles` tiles, from and to where the table sends it: pairs of tile numbers of x and y, or
// of y alone.
extern "C" __global__ __aicore__ void by_table(GM_ADDR x, GM_ADDR y, GM_ADDR table, uint32_t tiles, uint32_t in_place) {
  Mover mover(in_place ? y : x, y);
  GlobalTensor<int32_t> pairs;
  pairs.SetGlobalBuffer((__gm__ int32_t*)table + GetBlockIdx() * tiles * 2);
  for (uint32_t i = 0; i < tiles; i++)
    mover.Move(static_cast<uint32_t>(pairs.GetValue(2 * i)), static_cast<uint32_t>(pairs.GetValue(2 * i + 1)), 1.5f);
}

// Every core moves the tile of its number, and does one thing more.
extern "C" __global__ __aicore__ void and_more(GM_ADDR x, GM_ADDR y, uint32_t what) {
  const uint32_t block = GetBlockIdx(), blocks = GetBlockNum();
  Mover mover(x, y);
  float first = mover.Move(block, block, 2.0f);
  switch (what) {
    case 1:  // sums into one place
      SetAtomicAdd<float>();
      mover.Move(block, blocks, 1.0f / 3);
      SetAtomicNone();
      break;
    case 2:
      SyncAll();
      mover.Move((block + 1) % blocks, block, 0.5f, true);
      break;
    case 3:
      CrossCoreSetFlag<0, PIPE_MTE3>(1);
      CrossCoreWaitFlag(1);
      mover.Move((block + 1) % blocks, block, 0.5f, true);
      break;
    case 4:
      mover.y().SetValue(blocks * TILE + block, first);
      break;
    case 5:  // through a pointer
      *((__gm__ float*)y + blocks * TILE + block) = first;
      break;
#ifdef WITH_VARIABLE
    case 6:  // a variable of the binary: the order of the cores shows
      mover.Move(block, block, static_cast<float>(++shared_count));
      break;
#endif
    case 7:
      printf("%u", block);
      printf(" ");
      break;
    case 8:  // one core is wrong: those before it have written, those behind it have not
      if (block == blocks / 2) {
        mover.y().SetGlobalBuffer((__gm__ float*)4096);  // no allocation is ever there
        mover.Move(block, 0, 1.0f);
      }
      break;
    case 9:  // polls what the core before it writes
      while (block > 0 && mover.Move(block - 1, block, 1.0f, true) == -1.0f) {
      }
      break;
    case 10: {
      GlobalTensor<float> more = mover.y()[(blocks + block) * TILE];
      InitGlobalMemory(more, TILE, first);
      break;
    }
    case 11:
      mover.Move(block, block, 0.5f, true);
      break;
    case 12:  // all cores write the same place
      mover.Move(block, blocks, 1.0f);
      break;
    case 13:  // more than one attempt keeps
      for (uint32_t i = 0; i < 20000; i++) mover.Move(block, blocks + block, 1.0f);
      break;
    default:
      break;
  }
}

// Copies `elements` of a tile nobody filled behind them, so that whole blocks hold what nobody wrote.
extern "C" __global__ __aicore__ void ragged(GM_ADDR x, GM_ADDR y, uint32_t elements) {
  TPipe pipe;
  TBuf<> buffer;
  pipe.InitBuffer(buffer, TILE * sizeof(float));
  LocalTensor<float> tile = buffer.Get<float>();
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * TILE);
  to.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * TILE);
  DataCopyPad(tile, from, {1, static_cast<uint32_t>(elements * sizeof(float)), 0, 0, 0}, {false, 0, 0, 0});
  DataCopy(to, tile, TILE);
}
