// y = what of x is not above its diagonal, each element by the scalar unit; columns beyond it are zeros
// case: x=float32[64,75] -> y=float32[64,75], 1 blocks
// motif: copied-elements, 1 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr int32_t COLUMNS = 75, ROWS = 64;

class LowerTriangle {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y) {
    first = static_cast<int32_t>(GetBlockIdx()) * ROWS;
    xGm.SetGlobalBuffer((__gm__ float*)x, 64 * COLUMNS);
    yGm.SetGlobalBuffer((__gm__ float*)y, 64 * COLUMNS);
  }
  __aicore__ inline void Process() {
    for (int32_t row = first; row < first + ROWS; ++row) {
      const int32_t begin = row * COLUMNS;
      for (int32_t column = 0; column < COLUMNS; ++column) {
        const int32_t at = begin + column;
        if (column <= row) {
          float value = xGm.GetValue(at);
          yGm.SetValue(at, value);
        } else {
          yGm.SetValue(at, 0.0f);
        }
      }
    }
  }

 private:
  GlobalTensor<float> xGm, yGm;
  int32_t first;
};

extern "C" __global__ __aicore__ void lower_triangle(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  LowerTriangle op;
  op.Init(x, y);
  op.Process();
}
