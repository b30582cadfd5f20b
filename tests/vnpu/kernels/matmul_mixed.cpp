// Vector cores ask the cube core of their group to multiply: blocks to the Unified Buffer one by one, or computed
// ahead, or all to global memory.
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;

struct MixedCase {
  uint32_t way;  // 0: block by block, 1: ahead, 2: all at once, 3: all at once, waited for later
};

// out = max(a x b + bias, 0) on each vector core's rows.
template <typename T>
__aicore__ inline void relu_of_product(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR out, GM_ADDR workspace,
                                       const TCubeTiling& t, const MixedCase& p) {
  TPipe pipe;
  Matmul<MatmulType<TPosition::GM, CubeFormat::ND, half>, MatmulType<TPosition::GM, CubeFormat::ND, half>,
         MatmulType<TPosition::VECIN, CubeFormat::ND, T>, MatmulType<TPosition::GM, CubeFormat::ND, float>>
      mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  const auto core = static_cast<int32_t>(GetBlockIdx());
  const int32_t first = core * t.singleCoreM, rows = min(t.singleCoreM, t.M - first);
  if (rows <= 0) return;
  GlobalTensor<half> left, right;
  GlobalTensor<float> row;
  GlobalTensor<T> result, ahead;
  left.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(a) + first * t.Ka);
  right.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(b));
  row.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(bias));
  result.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(out) + first * t.N);
  ahead.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(workspace) + core * t.singleCoreM * t.N * 2,
                        t.singleCoreM * t.N * 2);
  TQue<TPosition::VECIN, 1> arrived;
  TQue<TPosition::VECOUT, 1> leaving;
  pipe.InitBuffer(arrived, 2, t.baseM * t.baseN * sizeof(T));
  pipe.InitBuffer(leaving, 2, t.baseM * t.baseN * sizeof(T));
  mm.SetTail(rows, t.singleCoreN, t.singleCoreK);
  mm.SetTensorA(left);
  mm.SetTensorB(right);
  mm.SetBias(row);
  const int32_t down = (rows + t.baseM - 1) / t.baseM, across = (t.N + t.baseN - 1) / t.baseN;
  if (p.way >= 2) {
    if (p.way == 2) {
      mm.IterateAll(result);
    } else {
      mm.template IterateAll<false>(result, 0, false, true);
      mm.WaitIterateAll();
    }
  } else if (p.way == 1) {
    mm.SetWorkspace(ahead);
    mm.template Iterate<false>();
  }
  for (int32_t i = 0; i < down * across; i++) {
    const int32_t m = i % down * t.baseM, n = i / down * t.baseN;
    const auto high = static_cast<uint16_t>(min(t.baseM, rows - m));
    const auto wide = static_cast<uint32_t>(min(t.baseN, t.N - n));
    const uint32_t pitch = (wide * sizeof(T) + 31) / 32 * 32 / sizeof(T);
    LocalTensor<T> block = arrived.AllocTensor<T>();
    if (p.way == 0) {
      mm.Iterate();
      mm.GetTensorC(block, 0, true);
    } else if (p.way == 1) {
      mm.template GetTensorC<false>(block);
    } else {
      const DataCopyExtParams rest{high, static_cast<uint32_t>(wide * sizeof(T)),
                                   static_cast<uint32_t>((t.N - wide) * sizeof(T)), 0, 0};
      DataCopyPad(block, result[m * t.N + n], rest, DataCopyPadExtParams<T>{false, 0, 0, 0});
    }
    arrived.EnQue(block);
    block = arrived.DeQue<T>();
    LocalTensor<T> positive = leaving.AllocTensor<T>();
    Relu(positive, block, high * pitch);
    arrived.FreeTensor(block);
    leaving.EnQue(positive);
    positive = leaving.DeQue<T>();
    const DataCopyExtParams copy{high, static_cast<uint32_t>(wide * sizeof(T)), 0,
                                 static_cast<uint32_t>((t.N - wide) * sizeof(T)), 0};
    DataCopyPad(result[m * t.N + n], positive, copy);
    leaving.FreeTensor(positive);
    if (p.way >= 2) PipeBarrier<PIPE_ALL>();
  }
  mm.End();
}

extern "C" __global__ __mix__(1, 2) void relu_1_2(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR out, GM_ADDR workspace,
                                                  TCubeTiling t, MixedCase p) {
  relu_of_product<float>(a, b, bias, out, workspace, t, p);
}
extern "C" __global__ __mix__(1, 1) void relu_1_1(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR out, GM_ADDR workspace,
                                                  TCubeTiling t, MixedCase p) {
  relu_of_product<half>(a, b, bias, out, workspace, t, p);
}

// 2 x A comes from the Unified Buffer, where its rows begin at multiples of 32 bytes.
extern "C" __global__ __mix__(1, 1) void left_in_ub(GM_ADDR a, GM_ADDR b, GM_ADDR out, GM_ADDR workspace, TCubeTiling t) {
  using Rows = MatmulType<TPosition::GM, CubeFormat::ND, half>;
  using Sums = MatmulType<TPosition::GM, CubeFormat::ND, float>;
  Matmul<MatmulType<TPosition::VECOUT, CubeFormat::ND, half>, Rows, Sums, Sums> mm;
  TPipe pipe;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  GlobalTensor<half> left, right;
  GlobalTensor<float> result;
  left.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(a));
  right.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(b));
  result.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(out));
  TQue<TPosition::VECIN, 1> arrived;
  TQue<TPosition::VECOUT, 1> leaving;
  const uint32_t pitch = (t.Ka + 15) / 16 * 16;
  pipe.InitBuffer(arrived, 1, t.M * pitch * sizeof(half));
  pipe.InitBuffer(leaving, 1, t.M * pitch * sizeof(half));
  LocalTensor<half> rows = arrived.AllocTensor<half>(), twice = leaving.AllocTensor<half>();
  const DataCopyExtParams copy{static_cast<uint16_t>(t.M), static_cast<uint32_t>(t.Ka * sizeof(half)), 0, 0, 0};
  DataCopyPad(rows, left, copy, DataCopyPadExtParams<half>{false, 0, 0, 0});
  arrived.EnQue(rows);
  rows = arrived.DeQue<half>();
  Add(twice, rows, rows, t.M * pitch);
  arrived.FreeTensor(rows);
  leaving.EnQue(twice);
  twice = leaving.DeQue<half>();
  mm.SetTensorA(twice);
  mm.SetTensorB(right);
  mm.IterateAll(result);
  leaving.FreeTensor(twice);
  mm.End();
}
