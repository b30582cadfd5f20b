// y = x * x: whole parts of 64 elements are copied in, the rest goes element by element; so does all that goes out
// case: x=float32[4,1000] -> y=float32[4,1000], 1 blocks
// motif: copied-elements, 2 places
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t LENGTH = 1000, PART = 64;

template <typename T>
class RestByElement {
 public:
  __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, TPipe* pipe) {
    source.SetGlobalBuffer((__gm__ T*)x);
    target.SetGlobalBuffer((__gm__ T*)y);
    pipe->InitBuffer(in, 1, 1024 * sizeof(T));
    pipe->InitBuffer(out, 1, 1024 * sizeof(T));
    whole = LENGTH / PART * PART;
  }
  __aicore__ inline void Process() {
    for (uint32_t i = 0; i < 4; i++) {
      Load(i * LENGTH);
      LocalTensor<T> a = in.template DeQue<T>();
      LocalTensor<T> b = out.template AllocTensor<T>();
      Mul(b, a, a, LENGTH);
      in.FreeTensor(a);
      out.EnQue(b);
      Store(i * LENGTH);
    }
  }

 private:
  __aicore__ inline void Load(uint32_t offset) {
    LocalTensor<T> a = in.template AllocTensor<T>();
    DataCopy(a, source[offset], whole);
    for (uint32_t k = whole; k < LENGTH; k++) {
      a.SetValue(k, source.GetValue(offset + k));
    }
    in.EnQue(a);
  }
  __aicore__ inline void Store(uint32_t offset) {
    LocalTensor<T> b = out.template DeQue<T>();
    uint32_t k = 0;
    while (LENGTH > k) {
      this->target.SetValue(k + offset, static_cast<T>(b.GetValue(k)));
      ++k;
    }
    out.FreeTensor(b);
  }
  TQue<TPosition::VECIN, 1> in;
  TQue<TPosition::VECOUT, 1> out;
  GlobalTensor<T> source, target;
  uint32_t whole;
};

extern "C" __global__ __aicore__ void rest_by_element(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  RestByElement<float> op;
  op.Init(x, y, &pipe);
  op.Process();
}
