// One core, one tile; the difference takes a detour through the workspace.
#include "kernel_operator.h"

using namespace AscendC;

extern "C" __global__ __aicore__ void pair(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR sum, GM_ADDR difference,
                                           GM_ADDR workspace, GM_ADDR tiling) {
  GET_TILING_DATA(data, tiling);
  TPipe pipe;
  TBuf<TPosition::VECCALC> a, b, c;
  const uint32_t bytes = (data.length * sizeof(float) + 31) / 32 * 32;
  pipe.InitBuffer(a, bytes);
  pipe.InitBuffer(b, bytes);
  pipe.InitBuffer(c, bytes);
  LocalTensor<float> left = a.Get<float>(), right = b.Get<float>(), result = c.Get<float>();
  GlobalTensor<float> from, to, detour;
  detour.SetGlobalBuffer((__gm__ float*)GetUserWorkspace(workspace), data.length);
  const DataCopyExtParams copy{1, static_cast<uint32_t>(data.length * sizeof(float)), 0, 0, 0};
  const DataCopyPadExtParams<float> pad{false, 0, 0, 0};
  from.SetGlobalBuffer((__gm__ float*)x, data.length);
  DataCopyPad(left, from, copy, pad);
  from.SetGlobalBuffer((__gm__ float*)y, data.length);
  DataCopyPad(right, from, copy, pad);
  PipeBarrier<PIPE_ALL>();
  Sub(result, left, right, data.length);
  PipeBarrier<PIPE_ALL>();
  DataCopyPad(detour, result, copy);
  PipeBarrier<PIPE_ALL>();
  DataCopyPad(result, detour, copy, pad);
  PipeBarrier<PIPE_ALL>();
  to.SetGlobalBuffer((__gm__ float*)difference, data.length);
  DataCopyPad(to, result, copy);
  PipeBarrier<PIPE_ALL>();
  Add(result, left, right, data.length);
  PipeBarrier<PIPE_ALL>();
  if (data.three) {
    from.SetGlobalBuffer((__gm__ float*)z, data.length);
    DataCopyPad(left, from, copy, pad);
    PipeBarrier<PIPE_ALL>();
    Add(result, result, left, data.length);
    PipeBarrier<PIPE_ALL>();
  }
  to.SetGlobalBuffer((__gm__ float*)sum, data.length);
  DataCopyPad(to, result, copy);
}
