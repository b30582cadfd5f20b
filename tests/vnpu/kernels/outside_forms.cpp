// What kernels of people outside say in the words of CANN's compiler and inner headers: instructions, tensors that
// nobody has placed, DropOut, with its registers set by the kernel, too.
#include "kernel_operator.h"
using namespace AscendC;

namespace {

template <typename T>
GlobalTensor<T> global(GM_ADDR p) {
  GlobalTensor<T> t;
  t.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(p));
  return t;
}

}  // namespace

// y = exp(max(x, 0) * 2 + x) / x as 64 floats a repeat; sums of repeats and largest of blocks; half and back.
extern "C" __global__ __vector__ void instructions(GM_ADDR x, GM_ADDR y) {
  auto* in = reinterpret_cast<__ubuf__ float*>(get_imm(0));
  auto* out = reinterpret_cast<__ubuf__ float*>(get_imm(4096));
  auto* other = reinterpret_cast<__ubuf__ float*>(get_imm(8192));
  auto* halves = reinterpret_cast<__ubuf__ half*>(get_imm(12288));
  auto* least = reinterpret_cast<__ubuf__ float*>(get_imm(16384));
  set_vector_mask(uint64_t(-1), uint64_t(-1));
  copy_gm_to_ubuf((__ubuf__ void*)in, (__gm__ void*)x, 0, 1, 512 * 4 / 32, 0, 0);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  vector_dup(LocalTensor<float>(4096).pointer(), 0.0f, 8, 1, 1, 8, 8);
  pipe_barrier(PIPE_V);
  vmax(out, in, out, 8, 1, 1, 1, 8, 8, 8);
  pipe_barrier(PIPE_V);
  vmuls(out, out, 2.0f, 8, 1, 1, 8, 8);
  pipe_barrier(PIPE_V);
  vadd(out, out, in, 8, 1, 1, 1, 8, 8, 8);
  pipe_barrier(PIPE_V);
  vexp(out, out, 8, 1, 1, 8, 8);
  pipe_barrier(PIPE_V);
  vdiv(out, out, in, 8, 1, 1, 1, 8, 8, 8);
  vconv_f322f16(halves, in, 8, 1, 1, 4, 8);
  pipe_barrier(PIPE_V);
  vconv_f162f32(other, halves, 8, 1, 1, 8, 4);
  vcgmax(least, in, 8, 1, 1, 8);
  vcmin(least + 64, in, 8, 1, 1, 8, Order_t::ONLY_VALUE);
  pipe_barrier(PIPE_V);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  copy_ubuf_to_gm((__gm__ void*)y, (__ubuf__ void*)out, 0, 1, 512 * 4 / 32, 0, 0);
  copy_ubuf_to_gm((__gm__ void*)(y + 2048), (__ubuf__ void*)other, 0, 1, 512 * 4 / 32, 0, 0);
  copy_ubuf_to_gm((__gm__ void*)(y + 4096), (__ubuf__ void*)least, 0, 1, 9, 0, 0);
}

// c = a b, tiles of 16: from rows to tiles, to L0A and L0B, multiplied; what C lies in nobody has placed.
extern "C" __global__ __cube__ void cubes(GM_ADDR a, GM_ADDR b, GM_ADDR c, uint32_t side, uint32_t placed) {
  auto* l1 = reinterpret_cast<__cbuf__ half*>(get_imm(0));
  auto* right = reinterpret_cast<__cbuf__ half*>(get_imm(65536));
  auto* l0a = reinterpret_cast<__ca__ half*>(get_imm(0));
  auto* l0b = reinterpret_cast<__cb__ half*>(get_imm(0));
  auto* l0c = reinterpret_cast<__cc__ float*>(get_imm(0));
  const auto n = static_cast<uint16_t>(side);
  copy_gm_to_cbuf_multi_nd2nz_b16(l1, (__gm__ half*)a, 0, 1, n, n, 0, n, n, 1, 0);
  copy_gm_to_cbuf_multi_nd2nz_b16(right, (__gm__ half*)b, 0, 1, n, n, 0, n, n, 1, 0);
  set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
  const uint16_t tiles = n / 16;
  for (uint16_t i = 0; i < tiles; i++) {
    load_cbuf_to_ca(l0a + i * side * 16, l1 + i * 256, 0, static_cast<uint8_t>(tiles), tiles, 0, 0, false, inc);
    load_cbuf_to_cb(l0b + i * side * 16, right + i * 256, 0, static_cast<uint8_t>(tiles), tiles, 0, 0, true, inc);
  }
  set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
  wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
  LocalTensor<float> sums;
  if (placed != 0) {
    mad(l0c, l0a, l0b, n, n, n, 0, false, false, true);
  } else {
    LocalTensor<half> left(TPosition::A2, 0, side * side), other;
    MmadParams p;
    p.m = p.n = p.k = n;
    Mmad(sums, left, other, p);
  }
  set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
  Fixpipe(global<float>(c), sums, FixpipeParamsV220(n, n, n, n, false));
}

// On a vector core what nobody has placed begins at byte 0 of the Unified Buffer.
extern "C" __global__ __vector__ void unplaced(GM_ADDR x, GM_ADDR y, uint32_t elements) {
  LocalTensor<float> nobody, behind = nobody[elements];
  LocalTensor<float> said(TPosition::VECCALC, elements * 4, elements);
  DataCopy(nobody, global<float>(x), elements);
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
  Adds(behind, nobody, 1.0f, elements);
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(global<float>(y), said, elements);
}

struct DropCase {
  uint32_t rows, columns, mask, mode, half_type, work;
  float keep;
  uint32_t prepared;
};

namespace {

template <typename T, uint32_t mode>
void drop(GM_ADDR x, GM_ADDR mask, GM_ADDR y, const DropCase& p) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> buffers;
  pipe.InitBuffer(buffers, 160 * 1024);  // what an API takes by itself lies behind
  const uint32_t all = p.rows * p.columns;
  LocalTensor<T> in(TPosition::VECCALC, 0, all), out(TPosition::VECCALC, 65536, all);
  LocalTensor<uint8_t> kept(TPosition::VECCALC, 32768, p.rows * p.mask), work(TPosition::VECCALC, 131072, p.work);
  DataCopy(in, global<T>(x), all);
  DataCopy(kept, global<uint8_t>(mask), (p.rows * p.mask + 31) / 32 * 32);
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
  DropOutShapeInfo info;
  info.firstAxis = p.rows;
  info.srcLastAxis = p.columns;
  info.maskLastAxis = p.mask;
  if (p.prepared != 0) {
    p.prepared == 1 ? DropOutBitModeInit(work) : DropOutBitModeInit();
    DropOut<T, true, mode>(out, in, kept, work, p.keep, info);
  } else {
    DropOut<T, false, mode>(out, in, kept, work, p.keep, info);
  }
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(global<T>(y), out, all);
}

}  // namespace

extern "C" __global__ __vector__ void drop_out(GM_ADDR x, GM_ADDR mask, GM_ADDR y, DropCase p) {
  if (p.mode == DROPOUT_MODE_BIT_MISALIGN)
    p.half_type ? drop<half, 4>(x, mask, y, p) : drop<float, 4>(x, mask, y, p);
  else
    p.half_type ? drop<half, 0>(x, mask, y, p) : drop<float, 0>(x, mask, y, p);
}
