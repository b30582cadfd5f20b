// y[i, j] = g[j]: the scalar unit goes down each column
// case: g=int32[48] -> y=int32[160,48], 1 blocks
// motif: copied-elements, 1 places
#include "kernel_operator.h"
using namespace AscendC;

class ColumnsOfValues {
 public:
  __aicore__ inline void Init(GM_ADDR g, GM_ADDR y) {
    values.SetGlobalBuffer((__gm__ int32_t*)g);
    table.SetGlobalBuffer((__gm__ int32_t*)y + GetBlockIdx() * ROWS * WIDTH);
  }
  __aicore__ inline void Process() {
    for (int32_t j = 0; j < WIDTH; j++) {
      const int32_t value = values.GetValue(j);
      int32_t place = j;
      for (int32_t i = 0; i < WIDTH * ROWS; i++) {
        if (place >= WIDTH * ROWS) {
          break;
        }
        table.SetValue(place, value);
        place += WIDTH;
      }
    }
  }

 private:
  static constexpr int32_t WIDTH = 48, ROWS = 160;
  GlobalTensor<int32_t> values, table;
};

extern "C" __global__ __aicore__ void columns_of_values(GM_ADDR g, GM_ADDR y) {
  TPipe pipe;
  ColumnsOfValues op;
  op.Init(g, y);
  op.Process();
}
