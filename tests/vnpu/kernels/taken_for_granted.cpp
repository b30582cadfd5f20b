// What kernels of people outside take for granted: headers with host code, a type of atomic operations that is set by
// itself, objects that get their tilings later.
#include "adv_api/utils/init_global_memory.h"
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;

namespace device {
template <class Kernel>
struct Adapter {};
}  // namespace device
template <class Kernel>
struct Program {
  Kernel kernel;
  int run(void* stream, uint32_t blocks, uint64_t address) {
    if (address == 0) {
      device::Adapter<Kernel><<<blocks, nullptr, stream>>>(kernel);
    } else {
      device::Adapter<Kernel><<<blocks, nullptr, stream>>>(kernel, address);
    }
    return 1 << 2;
  }
};

constexpr uint32_t kCount = 64;
static_assert(TOTAL_VEC_LOCAL_SIZE == 188416, "what CANN's APIs leave of UB");

// y = 1 + x, in float: the type that was set first is half's.
extern "C" __global__ __vector__ void add_of_another_type(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TBuf<> buffer;
  pipe.InitBuffer(buffer, kCount * sizeof(float));
  auto a = buffer.Get<float>();
  GlobalTensor<float> in, out;
  in.SetGlobalBuffer((__gm__ float*)x);
  out.SetGlobalBuffer((__gm__ float*)y);
  Duplicate(a, 1.0f, kCount);
  PipeBarrier<PIPE_ALL>();
  DataCopy(out, a, kCount);
  PipeBarrier<PIPE_ALL>();
  DataCopy(a, in, kCount);
  PipeBarrier<PIPE_ALL>();
  SetAtomicAdd<half>();
  SetAtomicType<float>();
  DataCopy(out, a, kCount);
  SetAtomicNone();
}

using Rows = MatmulType<TPosition::GM, CubeFormat::ND, half>;
using Sums = MatmulType<TPosition::GM, CubeFormat::ND, float>;

// Two products by two objects that are registered without a tiling.
extern "C" __global__ __mix__(1, 1) void tilings_later(GM_ADDR a, GM_ADDR b, GM_ADDR c, TCubeTiling t) {
  TPipe pipe;
  Matmul<Rows, Rows, Sums> first;
  Matmul<Rows, Rows, Sums> second;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), first, second);
  GlobalTensor<half> left, right;
  GlobalTensor<float> out;
  left.SetGlobalBuffer((__gm__ half*)a);
  right.SetGlobalBuffer((__gm__ half*)b);
  out.SetGlobalBuffer((__gm__ float*)c);
  first.Init(&t);
  second.Init(&t);
  first.SetTensorA(left);
  first.SetTensorB(right);
  first.IterateAll(out);
  second.SetTensorA(right);
  second.SetTensorB(left);
  second.IterateAll(out[t.M * t.N]);
  first.End();
  second.End();
}
