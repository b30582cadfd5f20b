// y = x * w + b, a row an instruction, on tensors that are seen as float
// case: x=bfloat16[512,64] w=bfloat16[64] b=bfloat16[64] -> y=bfloat16[512,64], 4 blocks
// motif: merged-rows, 1 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 64, SHARE = 512 / 4, ROWS = 32, TILE = ROWS * WIDTH;

class RowsOfViews {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR w, GM_ADDR b, GM_ADDR y, TPipe* pipe) {
    source.SetGlobalBuffer((__gm__ bfloat16_t*)x + GetBlockIdx() * SHARE * WIDTH);
    target.SetGlobalBuffer((__gm__ bfloat16_t*)y + GetBlockIdx() * SHARE * WIDTH);
    weights.SetGlobalBuffer((__gm__ bfloat16_t*)w);
    offsets.SetGlobalBuffer((__gm__ bfloat16_t*)b);
    pipe->InitBuffer(inQueue, 2, 2 * TILE * sizeof(bfloat16_t));
    pipe->InitBuffer(outQueue, 2, 2 * TILE * sizeof(bfloat16_t));
    pipe->InitBuffer(rowQueue, 1, 8 * WIDTH * sizeof(bfloat16_t));
  }
  __aicore__ inline void Process() {
    LocalTensor<bfloat16_t> rows = rowQueue.AllocTensor<bfloat16_t>();
    DataCopy(rows[4 * WIDTH], weights, WIDTH);
    DataCopy(rows[6 * WIDTH], offsets, WIDTH);
    rowQueue.EnQue(rows);
    rows = rowQueue.DeQue<bfloat16_t>();
    auto weight = rows.template ReinterpretCast<float>();
    auto offset = rows[2 * WIDTH].template ReinterpretCast<float>();
    Cast(weight, rows[4 * WIDTH], RoundMode::CAST_NONE, WIDTH);
    Cast(offset, rows[6 * WIDTH], RoundMode::CAST_NONE, WIDTH);
    for (uint32_t i = 0; i < SHARE / ROWS; i++) {
      LocalTensor<bfloat16_t> in = inQueue.AllocTensor<bfloat16_t>();
      DataCopy(in[TILE], source[i * TILE], TILE);
      inQueue.EnQue(in);
      LocalTensor<bfloat16_t> given = inQueue.DeQue<bfloat16_t>();
      LocalTensor<bfloat16_t> out = outQueue.AllocTensor<bfloat16_t>();
      auto wide = given.template ReinterpretCast<float>();
      auto made = out.template ReinterpretCast<float>();
      Cast(wide, given[TILE], RoundMode::CAST_NONE, TILE);
      PipeBarrier<PIPE_V>();
      for (uint32_t row = 0; row < ROWS; row++) {
        Mul(wide[row * WIDTH], wide[row * WIDTH], weight, WIDTH);
        PipeBarrier<PIPE_V>();
        Add(made[row * WIDTH], wide[row * WIDTH], offset, WIDTH);
      }
      PipeBarrier<PIPE_V>();
      Cast(out, made, RoundMode::CAST_RINT, TILE);
      inQueue.FreeTensor(given);
      outQueue.EnQue(out);
      out = outQueue.DeQue<bfloat16_t>();
      DataCopy(target[i * TILE], out, TILE);
      outQueue.FreeTensor(out);
    }
    rowQueue.FreeTensor(rows);
  }

 private:
  TQue<QuePosition::VECIN, 2> inQueue;
  TQue<QuePosition::VECOUT, 2> outQueue;
  TQue<QuePosition::VECIN, 1> rowQueue;
  GlobalTensor<bfloat16_t> source, target, weights, offsets;
};

extern "C" __global__ __aicore__ void rows_of_views(GM_ADDR x, GM_ADDR w, GM_ADDR b, GM_ADDR y) {
  TPipe pipe;
  RowsOfViews op;
  op.Init(x, w, b, y, &pipe);
  op.Process();
}
