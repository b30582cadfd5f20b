// y[i] = table[index[i]], twice the row where index[i] is even; each index is read three times
// case: table=float32[64,64] index=int32[256] -> y=float32[256,64], 8 blocks
// domain: index=0:63
// class: repeated_scalar_read
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t COLS = 64, ROWS = 32;

extern "C" __global__ __aicore__ void index_twice(GM_ADDR table, GM_ADDR index, GM_ADDR y) {
  TPipe pipe;
  TQue<QuePosition::VECIN, 2> in;
  TQue<QuePosition::VECOUT, 2> out;
  pipe.InitBuffer(in, 2, COLS * sizeof(float));
  pipe.InitBuffer(out, 2, COLS * sizeof(float));
  GlobalTensor<float> tableGm, yGm;
  GlobalTensor<int32_t> indexGm;
  tableGm.SetGlobalBuffer((__gm__ float*)table);
  indexGm.SetGlobalBuffer((__gm__ int32_t*)index + GetBlockIdx() * ROWS);
  yGm.SetGlobalBuffer((__gm__ float*)y + GetBlockIdx() * ROWS * COLS);
  for (int32_t i = 0; i < ROWS; i++) {
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, tableGm[indexGm.GetValue(i) * COLS], COLS);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> b = out.AllocTensor<float>();
    float factor = indexGm.GetValue(i) - indexGm.GetValue(i) / 2 * 2 == 0 ? 2.0f : 1.0f;
    Muls(b, a, factor, COLS);
    in.FreeTensor(a);
    out.EnQue(b);
    b = out.DeQue<float>();
    DataCopy(yGm[i * COLS], b, COLS);
    out.FreeTensor(b);
  }
}
