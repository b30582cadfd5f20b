// y = exp(x), row by row
// case: x=float32[512,1024] -> y=float32[512,1024], 8 blocks
// class: no_double_buffer
#include "kernel_operator.h"
using namespace AscendC;
#define QUEUE_DEPTH 1

template <typename T>
class OneBufferRows {
 public:
  __aicore__ inline OneBufferRows(GM_ADDR x, GM_ADDR y, int32_t rowNum, int32_t rowLen) : rowNum(rowNum), rowLen(rowLen) {
    xGm.SetGlobalBuffer((__gm__ T*)x + GetBlockIdx() * rowNum * rowLen);
    yGm.SetGlobalBuffer((__gm__ T*)y + GetBlockIdx() * rowNum * rowLen);
    pipe.InitBuffer(xQue, QUEUE_DEPTH, rowLen * sizeof(T));
    pipe.InitBuffer(yQue, QUEUE_DEPTH, rowLen * sizeof(T));
  }
  __aicore__ inline void Run() {
    for (int32_t r = 0; r < rowNum; r++) {
      LocalTensor<T> xUb = xQue.template AllocTensor<T>();
      DataCopy(xUb, xGm[r * rowLen], rowLen);
      xQue.EnQue(xUb);
      LocalTensor<T> in = xQue.template DeQue<T>();
      LocalTensor<T> yUb = yQue.template AllocTensor<T>();
      Exp(yUb, in, rowLen);
      yQue.EnQue(yUb);
      xQue.FreeTensor(in);
      LocalTensor<T> result = yQue.template DeQue<T>();
      DataCopy(yGm[r * rowLen], result, rowLen);
      yQue.FreeTensor(result);
    }
  }

 private:
  TPipe pipe;
  TQue<QuePosition::VECIN, 1> xQue;
  TQue<QuePosition::VECOUT, 1> yQue;
  GlobalTensor<T> xGm, yGm;
  int32_t rowNum, rowLen;
};

extern "C" __global__ __aicore__ void one_buffer_rows(GM_ADDR x, GM_ADDR y) {
  OneBufferRows<float> op(x, y, 64, 1024);
  op.Run();
}
