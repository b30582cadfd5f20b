// Reads the descriptor blocks of tensor lists as the documentation lays them out.
#include "kernel_operator.h"

using namespace AscendC;

__aicore__ inline GM_ADDR TensorOf(GM_ADDR list, uint32_t index) {
  __gm__ uint64_t* words = (__gm__ uint64_t*)list;
  __gm__ uint64_t* pointers = words + (words[0] >> 3);
  return (GM_ADDR)pointers[index];
}

__aicore__ inline void Negate(GM_ADDR to, GM_ADDR from, uint32_t count, LocalTensor<float>& local) {
  GlobalTensor<float> in, out;
  in.SetGlobalBuffer((__gm__ float*)from);
  out.SetGlobalBuffer((__gm__ float*)to);
  DataCopyExtParams params{1, static_cast<uint32_t>(count * sizeof(float)), 0, 0, 0};
  DataCopyPad(local, in, params, DataCopyPadExtParams<float>{false, 0, 0, 0});
  PipeBarrier<PIPE_ALL>();
  Muls(local, local, -1.0f, count);
  PipeBarrier<PIPE_ALL>();
  DataCopyPad(out, local, params);
  PipeBarrier<PIPE_ALL>();
}

extern "C" __global__ __aicore__ void negate_lists(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR y_ref, GM_ADDR workspace,
                                                   GM_ADDR tiling) {
  GET_TILING_DATA(t, tiling);
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffer;
  pipe.InitBuffer(buffer, 4096);
  LocalTensor<float> local = buffer.Get<float>();
  for (uint32_t i = 0; i < t.count; i++) {
    Negate(TensorOf(z, i), TensorOf(x, i), t.lengths[i], local);
    Negate(TensorOf(y_ref, i), TensorOf(y, i), t.lengths[i], local);
  }
}
