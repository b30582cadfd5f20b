// What a vector core's own pipes still do beside its Matmul: what asking orders, what bringing a block orders, and what
// the kernel has to say itself.
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;
using Rows = MatmulType<TPosition::GM, CubeFormat::ND, half>;
using InUb = MatmulType<TPosition::VECOUT, CubeFormat::ND, half>;
using Block = MatmulType<TPosition::VECIN, CubeFormat::ND, float>;
using Sums = MatmulType<TPosition::GM, CubeFormat::ND, float>;
using BiasInUb = MatmulType<TPosition::VECOUT, CubeFormat::ND, float>;

namespace {

constexpr int32_t kSide = 32, kAll = kSide * kSide;

template <typename T>
GlobalTensor<T> global(GM_ADDR p) {
  GlobalTensor<T> t;
  t.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(p));
  return t;
}
template <HardEvent event>
void order() {
  SetFlag<event>(EVENT_ID3);
  WaitFlag<event>(EVENT_ID3);
}

}  // namespace

// The block goes where V (1), MTE3 before the message (2), MTE3 after the message (3) still is; `ordered`: the kernel
// says so. 4: V doesn't wait for AsyncGetTensorC. 5: MTE2 of before IterateAll isn't done when that is.
extern "C" __global__ __mix__(1, 1) void beside(GM_ADDR a, GM_ADDR b, GM_ADDR ahead, GM_ADDR mark, GM_ADDR out,
                                                TCubeTiling t, uint32_t way, uint32_t ordered) {
  TPipe pipe;
  Matmul<Rows, Rows, Block, Sums> mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  TBuf<TPosition::VECCALC> memory;
  pipe.InitBuffer(memory, 3 * kAll * sizeof(float));
  LocalTensor<float> block = memory.Get<float>(), one = block[kAll], two = block[2 * kAll];
  GlobalTensor<float> result = global<float>(out), marks = global<float>(mark), room = global<float>(ahead);
  room.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(ahead), kAll);
  mm.SetTensorA(global<half>(a));
  mm.SetTensorB(global<half>(b));
  Duplicate(one, 1.0f, kAll);
  Duplicate(block, 5.0f, kAll);
  order<HardEvent::V_MTE3>();
  order<HardEvent::V_MTE2>();
  if (way == 1) {
    PipeBarrier<PIPE_V>();
    Duplicate(block, 6.0f, kAll);
    if (ordered) order<HardEvent::V_MTE2>();
    mm.Iterate();
    mm.GetTensorC(block);
  } else if (way == 2) {
    DataCopy(marks, block, kAll);
    mm.Iterate();
    mm.GetTensorC(block);
  } else if (way == 3) {
    mm.SetWorkspace(room);
    mm.template Iterate<false>();
    DataCopy(marks, block, kAll);
    if (ordered) order<HardEvent::MTE3_MTE2>();
    mm.template GetTensorC<false>(block);
  } else if (way == 4) {
    mm.SetWorkspace(room);
    mm.template Iterate<false>();
    mm.AsyncGetTensorC(block);
    if (ordered) mm.WaitGetTensorC();
  } else if (way == 5) {
    DataCopy(two, marks, kAll);
    mm.IterateAll(room);
    if (ordered) order<HardEvent::MTE2_V>();
    Muls(two, two, 0.0f, kAll);
    DataCopy(block, room, kAll);
    order<HardEvent::MTE2_V>();
    PipeBarrier<PIPE_V>();
    Add(block, block, two, kAll);
    PipeBarrier<PIPE_V>();
  } else if (way == 7) {  // where it lies in the workspace; no word of sync
    mm.SetWorkspace(room);
    mm.template Iterate<false>();
    if (ordered) order<HardEvent::V_MTE2>();
    DataCopy(block, mm.GetTensorC(), kAll);
    if (ordered) order<HardEvent::MTE2_V>();
  } else {  // to global memory and to the Unified Buffer at once
    mm.Iterate();
    block.SetSize(kAll);
    mm.GetTensorC(room, block);
  }
  Add(block, block, one, kAll);
  order<HardEvent::V_MTE3>();
  DataCopy(result, block, kAll);
  mm.End();
}

// A from the Unified Buffer lies with the cube core as soon as it was set. Its place is filled anew before the product
// is asked for; `ordered`: when MTE3 has read it. A second object has one of its own.
extern "C" __global__ __mix__(1, 1) void set_early(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR second, GM_ADDR out,
                                                   TCubeTiling t, uint32_t ordered) {
  TPipe pipe;
  Matmul<InUb, Rows, Sums, BiasInUb> mm;
  Matmul<InUb, Rows, Sums, BiasInUb> other;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t, other, &t);
  TBuf<TPosition::VECCALC> memory;
  pipe.InitBuffer(memory, kAll * sizeof(half) + kSide * sizeof(float));
  LocalTensor<half> left = memory.Get<half>();
  LocalTensor<float> row = left[kAll].template ReinterpretCast<float>();
  row.SetSize(kSide);
  left.SetSize(kAll);
  DataCopy(left, global<half>(a), kAll);
  DataCopy(row, global<float>(bias), kSide);
  order<HardEvent::MTE2_V>();
  Adds(left, left, half(1), kAll);
  mm.SetTensorA(left);
  mm.SetTensorB(global<half>(b));
  mm.SetBias(row);
  if (ordered) order<HardEvent::MTE3_V>();
  Duplicate(left, half(2), kAll);
  other.SetTensorA(left);
  other.SetTensorB(global<half>(b));
  other.DisableBias();
  mm.IterateAll(global<float>(out));
  other.IterateAll(global<float>(second));
  mm.End();
  other.End();
}

// Two products under way at once: the second one is read when both were awaited, or (`awaited`) one of them.
extern "C" __global__ __mix__(1, 1) void two_ahead(GM_ADDR a, GM_ADDR b, GM_ADDR first, GM_ADDR second, GM_ADDR out,
                                                   TCubeTiling t, uint32_t awaited) {
  TPipe pipe;
  Matmul<Rows, Rows, Sums, Sums> mm;
  Matmul<Rows, Rows, Sums, Sums> other;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t, other, &t);
  TBuf<TPosition::VECCALC> memory;
  pipe.InitBuffer(memory, kAll * sizeof(float));
  LocalTensor<float> block = memory.Get<float>();
  for (int i = 0; i < 2; i++) {
    auto& object = i == 0 ? mm : other;
    object.SetTensorA(global<half>(a)[i * t.M * t.Ka]);
    object.SetTensorB(global<half>(b));
    object.template IterateAll<false>(global<float>(i == 0 ? first : second), 0, false, true);
  }
  if (awaited != 2) mm.WaitIterateAll();
  if (awaited != 1) other.WaitIterateAll();
  DataCopy(block, global<float>(second), kAll);
  order<HardEvent::MTE2_MTE3>();
  DataCopy(global<float>(out), block, kAll);
  if (awaited == 1) other.WaitIterateAll();
  if (awaited == 2) mm.WaitIterateAll();
  mm.End();
  other.End();
}

// A tensor with too few elements.
extern "C" __global__ __mix__(1, 1) void too_few(GM_ADDR a, GM_ADDR b, GM_ADDR out, TCubeTiling t) {
  TPipe pipe;
  Matmul<InUb, Rows, Sums, Sums> mm;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
  TBuf<TPosition::VECCALC> memory;
  pipe.InitBuffer(memory, kAll * sizeof(half));
  LocalTensor<half> left = memory.Get<half>();
  DataCopy(left, global<half>(a), kAll);
  order<HardEvent::MTE2_V>();
  left.SetSize(kAll / 2);
  mm.SetTensorA(left);
  mm.SetTensorB(global<half>(b));
  mm.IterateAll(global<float>(out));
  mm.End();
}
