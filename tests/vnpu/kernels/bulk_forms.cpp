// Forms that kernels of CANN's open repositories use beside the public ones: inner headers by their names, what a
// function says of its pipes, copies with addresses, how many elements a GatherMask kept, a dump with a shape.
#include "basic_api/kernel_operator_utils_intf.h"
#include "basic_api/kernel_tensor.h"
#include "kernel_operator.h"
#include "kernel_operator_dump_tensor_intf_impl.h"
#include "kernel_operator_vec_gather_mask_intf.h"
using namespace AscendC;

namespace {

template <typename T>
__aicore__ inline __inout_pipe__(MTE3) void out_by_address(const GlobalTensor<T>& dst, const LocalTensor<T>& src,
                                                           const DataCopyExtParams& shape) {
  DataCopyPadUB2GMImpl((__gm__ T*)dst.GetPhyAddr(), (__ubuf__ T*)src.GetPhyAddr(), shape);
}

}  // namespace

// The elements of x whose bit is set in a pattern of 32 bits for 32 of them, `rows` pieces of `length` of these apart
// by 8 bytes, and behind them how many were kept, as GatherMask's argument and as its register say it.
extern "C" __global__ __vector__ void kept(GM_ADDR x, GM_ADDR bits, GM_ADDR y, uint32_t rows, uint32_t length,
                                           uint32_t shape) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> in, mask, out, counts;
  pipe.InitBuffer(in, 1024);
  pipe.InitBuffer(mask, 32);
  pipe.InitBuffer(out, 1024);
  pipe.InitBuffer(counts, 32);
  GlobalTensor<uint32_t> from, pattern;
  from.SetGlobalBuffer((__gm__ uint32_t*)x);
  pattern.SetGlobalBuffer((__gm__ uint32_t*)bits);
  LocalTensor<uint32_t> values = in.Get<uint32_t>(), which = mask.Get<uint32_t>(), result = out.Get<uint32_t>();
  LocalTensor<uint32_t> number = counts.Get<uint32_t>();
  DataCopy(values, from, 64);
  DataCopy(which, pattern, 8);
  Duplicate(result, 0u, 256);
  Duplicate(number, 0u, 8);
  PipeBarrier<PIPE_ALL>();
  uint64_t told = 0;
  GatherMask(result, values, which, true, 64, {1, 1, 8, 0}, told);
  const auto again = static_cast<uint32_t>(AscendCUtils::GetRsvdCnt());
  PipeBarrier<PIPE_ALL>();
  Barrier();
  number.SetValue(0, static_cast<uint32_t>(told));
  number.SetValue(1, again);
  PipeBarrier<PIPE_ALL>();
  GlobalTensor<uint32_t> to, behind;
  to.SetGlobalBuffer((__gm__ uint32_t*)y);
  behind.SetGlobalBuffer((__gm__ uint32_t*)y + rows * (length + 2));
  out_by_address(to, result, {static_cast<uint16_t>(rows), length * 4, 0, 8, 0});
  out_by_address(behind, number, {1, 8, 0, 0, 0});
  PipeBarrier<PIPE_ALL>();
  const uint32_t axes[] = {2, 4};
  const ShapeInfo info(2, axes);
  if (shape != 0) {
    DumpTensor(result, 5, 4, info);
    DumpAccChkPoint(result, 6, 2, 2);
    DumpAccChkPoint(to, 7, 1, 2);
  }
}
