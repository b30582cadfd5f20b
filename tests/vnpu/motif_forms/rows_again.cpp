// each row of x, twelve times
// case: x=float32[512,25] -> y=float32[6144,25], 8 blocks
// motif: repeated-stores, 1 place
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t WIDTH = 25, SHARE = 512 / 8, TIMES = 12;

class Again {
 public:
  __aicore__ inline Again(GM_ADDR x, GM_ADDR y, TPipe& pipe) {
    pipe.InitBuffer(rows, 2, 128);
    xGm.SetGlobalBuffer((__gm__ float*)x + GetBlockIdx() * SHARE * WIDTH);
    yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * SHARE * TIMES * WIDTH);
    length = WIDTH;
    params.blockCount = 1;
    params.blockLen = length * sizeof(float);
  }
  __aicore__ inline void Process() {
    for (uint32_t row = 0; row < SHARE; row++) {
      One(row);
    }
  }

 private:
  __aicore__ inline void One(uint32_t row) {
    LocalTensor<float> a = rows.AllocTensor<float>();
    DataCopyPad(a, xGm[row * length], params, DataCopyPadExtParams<float>{false, 0, 0, 0});
    rows.EnQue(a);
    a = rows.DeQue<float>();
    event_t here = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::MTE2_MTE3));
    SetFlag<HardEvent::MTE2_MTE3>(here);
    WaitFlag<HardEvent::MTE2_MTE3>(here);
    for (uint32_t time = 0; time < TIMES; ++time) {
      const uint32_t place = (row * TIMES + time) * length;
      DataCopyPad(yGm[place], a, params);
    }
    event_t gone = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::MTE3_MTE2));
    SetFlag<HardEvent::MTE3_MTE2>(gone);
    WaitFlag<HardEvent::MTE3_MTE2>(gone);
    rows.FreeTensor(a);
  }
  TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> rows;
  DataCopyExtParams params{1, 0, 0, 0, 0};
  GlobalTensor<float> xGm, yGm;
  uint32_t length;
};

extern "C" __global__ __aicore__ void rows_again(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  Again again(x, y, pipe);
  again.Process();
}
