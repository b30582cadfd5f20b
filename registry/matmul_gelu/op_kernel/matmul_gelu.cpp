// c = gelu(a x b). Each vector core has a rectangle of c: the cube core of its group multiplies one base block after
// another for it, and the vector core takes what came to the Unified Buffer on from there.
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

constexpr uint32_t REPEAT = 64;  // floats of a vector instruction's turn
constexpr uint32_t ROWS = 128;   // turns of one
constexpr uint32_t FLOATS = 8;   // of a block of 32 bytes
constexpr uint32_t HALVES = 16;
constexpr float CUBED = 0.044715f;
constexpr float FACTOR = -1.5957691216f;  // -2 * sqrt(2 / pi)

__aicore__ inline uint32_t Min(uint32_t a, uint32_t b) { return a < b ? a : b; }
__aicore__ inline uint32_t Align(uint32_t a, uint32_t b) { return (a + b - 1) / b * b; }

template <typename T>
class KernelMatmulGelu {
 public:
  __aicore__ inline KernelMatmulGelu() {}

  __aicore__ inline void Init(GM_ADDR a, GM_ADDR b, GM_ADDR c, const TCubeTiling& tiling, TPipe* pipe) {
    t = tiling;
    const uint32_t alongM = (t.M + t.singleCoreM - 1) / t.singleCoreM;
    const uint32_t firstM = GetBlockIdx() % alongM * t.singleCoreM;
    const uint32_t firstN = GetBlockIdx() / alongM * t.singleCoreN;
    rows = firstM < t.M ? Min(t.singleCoreM, t.M - firstM) : 0;
    columns = firstN < t.N ? Min(t.singleCoreN, t.N - firstN) : 0;
    aGm.SetGlobalBuffer((__gm__ T*)a + static_cast<uint64_t>(firstM) * t.Ka);
    bGm.SetGlobalBuffer((__gm__ T*)b + firstN);
    cGm.SetGlobalBuffer((__gm__ T*)c + static_cast<uint64_t>(firstM) * t.N + firstN);
    pipe->InitBuffer(sums, 1, t.baseM * t.baseN * sizeof(float));
    pipe->InitBuffer(results, 1, t.baseM * t.baseN * sizeof(T));
    pipe->InitBuffer(denominators, t.baseM * t.baseN * sizeof(float));
  }

  __aicore__ inline void Process() {
    if (rows == 0 || columns == 0) {
      return;
    }
    mm.SetTail(rows, columns, t.singleCoreK);
    mm.SetTensorA(aGm);
    mm.SetTensorB(bGm);
    const uint32_t down = (rows + t.baseM - 1) / t.baseM;
    uint32_t block = 0;
    while (mm.template Iterate<true>()) {
      const uint32_t m = block % down * t.baseM, n = block / down * t.baseN;
      const uint32_t high = Min(t.baseM, rows - m), wide = Min(t.baseN, columns - n);
      Receive();
      Compute(high, wide);
      CopyOut(m, n, high, wide);
      block++;
    }
  }

  Matmul<MatmulType<TPosition::GM, CubeFormat::ND, T>, MatmulType<TPosition::GM, CubeFormat::ND, T>,
         MatmulType<TPosition::VECIN, CubeFormat::ND, float>>
      mm;

 private:
  __aicore__ inline void Receive() {
    LocalTensor<float> x = sums.template AllocTensor<float>();
    mm.template GetTensorC<true>(x, false, true);
    sums.EnQue(x);
  }

  // y = x / (1 + exp(FACTOR * (x + CUBED * x^3)))
  __aicore__ inline void Compute(uint32_t high, uint32_t wide) {
    LocalTensor<float> x = sums.template DeQue<float>();
    LocalTensor<T> y = results.template AllocTensor<T>();
    LocalTensor<float> d = denominators.Get<float>();
    const uint32_t pitch = Align(wide, FLOATS), count = high * pitch;
    Mul(d, x, x, count);
    PipeBarrier<PIPE_V>();
    Muls(d, d, CUBED, count);
    PipeBarrier<PIPE_V>();
    Adds(d, d, 1.0f, count);
    PipeBarrier<PIPE_V>();
    Mul(d, d, x, count);
    PipeBarrier<PIPE_V>();
    Muls(d, d, FACTOR, count);
    PipeBarrier<PIPE_V>();
    Exp(d, d, count);
    PipeBarrier<PIPE_V>();
    Adds(d, d, 1.0f, count);
    PipeBarrier<PIPE_V>();
    Div(x, x, d, count);
    PipeBarrier<PIPE_V>();
    // Rows of floats begin at multiples of 32 bytes, and those of the result have to as well.
    const UnaryRepeatParams params(1, 1, Align(wide, HALVES) / HALVES, pitch / FLOATS);
    for (uint32_t column = 0; column < wide; column += REPEAT) {
      for (uint32_t row = 0; row < high; row += ROWS) {
        Cast(y[row * Align(wide, HALVES) + column], x[row * pitch + column], RoundMode::CAST_RINT,
             Min(REPEAT, wide - column), Min(ROWS, high - row), params);
      }
    }
    results.EnQue(y);
    sums.FreeTensor(x);
  }

  __aicore__ inline void CopyOut(uint32_t m, uint32_t n, uint32_t high, uint32_t wide) {
    LocalTensor<T> y = results.template DeQue<T>();
    const DataCopyExtParams params{static_cast<uint16_t>(high), static_cast<uint32_t>(wide * sizeof(T)), 0,
                                   static_cast<uint32_t>((t.N - wide) * sizeof(T)), 0};
    DataCopyPad(cGm[static_cast<uint64_t>(m) * t.N + n], y, params);
    results.FreeTensor(y);
  }

  TQue<TPosition::VECIN, 1> sums;
  TQue<TPosition::VECOUT, 1> results;
  TBuf<TPosition::VECCALC> denominators;
  GlobalTensor<T> aGm, bGm, cGm;
  TCubeTiling t;
  uint32_t rows, columns;
};

extern "C" __global__ __aicore__ void matmul_gelu(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR workspace, GM_ADDR tiling) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
  GET_TILING_DATA(tilingData, tiling);
  TPipe pipe;
  KernelMatmulGelu<DTYPE_A> op;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), op.mm, &tilingData.cube);
  op.Init(a, b, c, tilingData.cube, &pipe);
  op.Process();
  op.mm.End();
}
