// AscendAntiQuant in its forms: with a scale for each channel, or for groups along k, with and without offsets, and
// with one for all.
#include "kernel_operator.h"
using namespace AscendC;

struct Case {
  uint32_t k, n, groups;  // of src [k, n], transposed [n, k]; how many scales lie along k
  uint32_t offset, one, own_work;
};

template <typename S, typename D, bool transposed>
__aicore__ inline void make(GM_ADDR x, GM_ADDR scales, GM_ADDR y, const Case& c) {
  TPipe pipe;
  TBuf<> src_buffer, scale_buffer, offset_buffer, dst_buffer, work_buffer;
  const uint32_t elements = c.k * c.n, shared = c.groups * c.n;
  const uint32_t bytes = std::is_same_v<S, int4b_t> ? elements / 2 : elements;
  pipe.InitBuffer(src_buffer, bytes);
  pipe.InitBuffer(scale_buffer, shared * 2);
  pipe.InitBuffer(offset_buffer, shared * 2);
  pipe.InitBuffer(dst_buffer, elements * 2);
  pipe.InitBuffer(work_buffer, 32 * 1024);
  auto bits = src_buffer.Get<int8_t>();
  auto src = src_buffer.Get<S>();
  auto scale = scale_buffer.Get<D>(), offset = offset_buffer.Get<D>(), dst = dst_buffer.Get<D>();
  GlobalTensor<int8_t> in;
  GlobalTensor<D> numbers, out;
  in.SetGlobalBuffer((__gm__ int8_t*)x);
  numbers.SetGlobalBuffer((__gm__ D*)scales);
  out.SetGlobalBuffer((__gm__ D*)y);
  DataCopy(bits, in, bytes);
  DataCopy(scale, numbers, shared);
  DataCopy(offset, numbers[shared], shared);
  PipeBarrier<PIPE_ALL>();
  const AntiQuantShapeInfo info{c.groups, c.n, c.groups, c.n}, turned{c.n, c.groups, c.n, c.groups};
  const AntiQuantShapeInfo& shape = transposed ? turned : info;
  auto work = work_buffer.Get<uint8_t>();
  if (c.one) {
    const D first = scale.GetValue(0), shift = offset.GetValue(0);
    if (c.offset)
      AscendAntiQuant<S, D, transposed>(dst, src, shift, first, work, c.k, shape);
    else
      AscendAntiQuant<S, D, transposed>(dst, src, first, work, c.k, shape);
  } else if (!c.offset) {
    AscendAntiQuant<S, D, transposed>(dst, src, scale, work, c.k, shape);
  } else if (c.own_work) {
    AscendAntiQuant<S, D, transposed>(dst, src, offset, scale, work, c.k, shape);
  } else {
    AscendAntiQuant<S, D, transposed>(dst, src, offset, scale, c.k, shape);
  }
  PipeBarrier<PIPE_ALL>();
  DataCopy(out, dst, elements);
}

#define FORM(name, S, D, transposed)                                                         \
  extern "C" __global__ __aicore__ void name(GM_ADDR x, GM_ADDR scales, GM_ADDR y, Case c) { \
    make<S, D, transposed>(x, scales, y, c);                                                 \
  }
FORM(int8_half, int8_t, half, false)
FORM(int8_half_turned, int8_t, half, true)
FORM(int8_bfloat, int8_t, bfloat16_t, false)
FORM(int4_half, int4b_t, half, false)
FORM(int4_bfloat_turned, int4b_t, bfloat16_t, true)
