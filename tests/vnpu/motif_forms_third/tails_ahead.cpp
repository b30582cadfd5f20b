// y = sum of x over each tile's elements, told row by row: tiles of 512, of which the last has 320; a tile a turn
// case: x=float32[8,4416] -> y=float32[8,16], 8 blocks
// motif: early-fetch, 1 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 4416, TILE = 512, TILES = (WIDTH + TILE - 1) / TILE, RESULTS = 16;

class TailsAhead {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    source.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * WIDTH);
    target.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * RESULTS);
    pipe->InitBuffer(tileQueue, 2, TILE * sizeof(float));
    pipe->InitBuffer(outQueue, 1, RESULTS * sizeof(float));
    pipe->InitBuffer(work, TILE * sizeof(float));
  }
  __aicore__ inline void Process() {
    LocalTensor<float> out = outQueue.AllocTensor<float>();
    Duplicate(out, 0.0f, RESULTS);
    length = TILE;
    uint32_t offset = 0;
    for (uint32_t i = 0; i < TILES; i++) {
      if (i == TILES - 1) {
        length = WIDTH - (TILES - 1) * TILE;
      }
      CopyIn(offset);
      Sum(out, i);
      offset += length;
    }
    outQueue.EnQue(out);
    out = outQueue.DeQue<float>();
    DataCopy(target, out, RESULTS);
    outQueue.FreeTensor(out);
  }

 private:
  __aicore__ inline void CopyIn(uint32_t offset) {
    LocalTensor<float> tile = tileQueue.AllocTensor<float>();
    DataCopy(tile, source[offset], length);
    tileQueue.EnQue(tile);
  }
  __aicore__ inline void Sum(LocalTensor<float>& out, uint32_t i) {
    LocalTensor<float> tile = tileQueue.DeQue<float>();
    LocalTensor<float> room = work.Get<float>();
    ReduceSum(tile, tile, room, length);
    event_t summed = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::V_S));
    SetFlag<HardEvent::V_S>(summed);
    WaitFlag<HardEvent::V_S>(summed);
    out.SetValue(i, tile.GetValue(0));
    tileQueue.FreeTensor(tile);
  }
  TQue<QuePosition::VECIN, 2> tileQueue;
  TQue<QuePosition::VECOUT, 1> outQueue;
  TBuf<QuePosition::VECCALC> work;
  GlobalTensor<float> source, target;
  uint32_t length;
};

extern "C" __global__ __aicore__ void tails_ahead(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TailsAhead op;
  op.Init(x, y, &pipe);
  op.Process();
}
