// Instructions as the device's compiler has them, below the basic API: what they take is known from how asc-devkit's
// basic API (impl/basic_api/dav_c220) calls them. Each leads to the function of the API that stands for it. Vector
// instructions heed the mask register; an address is a pointer, or a number of bytes from the begin of the one memory
// that the instruction knows.
#pragma once
#include "cube_fixpipe.h"
#include "cube_load.h"
#include "cube_mmad.h"
#include "scalar_functions.h"
#include "vec_binary.h"
#include "vec_cast.h"
#include "vec_duplicate.h"
#include "vec_reduce.h"
#include "vec_scalar.h"
#include "vec_unary.h"

namespace AscendC::detail {

constexpr uint64_t kMostLocalBytes = 1 << 20;  // no pointer is as small

// What lies at `at`, up to the end of what an instruction may name.
template <typename T>
ASCENDC_INLINE LocalTensor<std::remove_cv_t<T>> seen_at(T* at, TPosition position) {
  using V = std::remove_cv_t<T>;
  const uint64_t number = reinterpret_cast<uint64_t>(at);
  auto* begin = static_cast<uint8_t*>(vnpu::local_base(memory_of(position)));
  LocalTensor<V> t;
  t.Bind(number < kMostLocalBytes ? reinterpret_cast<V*>(begin + number) : const_cast<V*>(at), 0, position, nullptr);
  return t;
}
template <typename T>
ASCENDC_INLINE LocalTensor<std::remove_cv_t<T>> in_ub(T* at) {
  return seen_at(at, TPosition::VECCALC);
}
// Of copies that take any pointer: bytes.
ASCENDC_INLINE LocalTensor<uint8_t> bytes_at(void* at, TPosition position) {
  return seen_at(static_cast<uint8_t*>(at), position);
}
ASCENDC_INLINE GlobalTensor<uint8_t> bytes_of_gm(const void* at) {
  GlobalTensor<uint8_t> t;
  t.SetGlobalBuffer(static_cast<uint8_t*>(const_cast<void*>(at)));
  return t;
}

}  // namespace AscendC::detail

// The special register with the number of cores.
struct BlockNumRegister {
  ASCENDC_INLINE operator int64_t() const { return vnpu::block_num(); }
};
constexpr BlockNumRegister block_num{};
constexpr uint64_t get_imm(uint64_t value) { return value; }
// Where flags between cores lie on the device; here they lie nowhere.
ASCENDC_INLINE void set_ffts_base_addr(uint64_t) {}

// ---- vector ----
#define VNPU_INSTRUCTION(NAME, API)                                                                                    \
  template <typename T>                                                                                                \
  ASCENDC_INLINE void NAME(T* dst, T* src0, T* src1, uint8_t repeat, uint8_t dstBlk, uint8_t src0Blk, uint8_t src1Blk, \
                           uint8_t dstRep, uint8_t src0Rep, uint8_t src1Rep) {                                         \
    using namespace AscendC;                                                                                           \
    API<T, false>(detail::in_ub(dst), detail::in_ub(src0), detail::in_ub(src1), uint64_t(0), repeat,                   \
                  BinaryRepeatParams(dstBlk, src0Blk, src1Blk, dstRep, src0Rep, src1Rep));                             \
  }
VNPU_INSTRUCTION(vadd, Add)
VNPU_INSTRUCTION(vsub, Sub)
VNPU_INSTRUCTION(vmul, Mul)
VNPU_INSTRUCTION(vdiv, Div)
VNPU_INSTRUCTION(vmax, Max)
VNPU_INSTRUCTION(vmin, Min)
VNPU_INSTRUCTION(vand, And)
#undef VNPU_INSTRUCTION
#define VNPU_INSTRUCTION(NAME, API)                                                                               \
  template <typename T, typename S>                                                                               \
  ASCENDC_INLINE void NAME(T* dst, T* src, S scalar, uint8_t repeat, uint16_t dstBlk, uint16_t srcBlk,            \
                           uint16_t dstRep, uint16_t srcRep) {                                                    \
    using namespace AscendC;                                                                                      \
    API<T, false>(detail::in_ub(dst), detail::in_ub(src), static_cast<T>(scalar), uint64_t(0), repeat,            \
                  UnaryRepeatParams(dstBlk, srcBlk, static_cast<uint8_t>(dstRep), static_cast<uint8_t>(srcRep))); \
  }
VNPU_INSTRUCTION(vadds, Adds)
VNPU_INSTRUCTION(vmuls, Muls)
VNPU_INSTRUCTION(vmaxs, Maxs)
VNPU_INSTRUCTION(vmins, Mins)
#undef VNPU_INSTRUCTION
#define VNPU_INSTRUCTION(NAME, API)                                                                               \
  template <typename T>                                                                                           \
  ASCENDC_INLINE void NAME(T* dst, T* src, uint8_t repeat, uint16_t dstBlk, uint16_t srcBlk, uint16_t dstRep,     \
                           uint16_t srcRep) {                                                                     \
    using namespace AscendC;                                                                                      \
    API<T, false>(detail::in_ub(dst), detail::in_ub(src), uint64_t(0), repeat,                                    \
                  UnaryRepeatParams(dstBlk, srcBlk, static_cast<uint8_t>(dstRep), static_cast<uint8_t>(srcRep))); \
  }
VNPU_INSTRUCTION(vexp, Exp)
VNPU_INSTRUCTION(vln, Ln)
VNPU_INSTRUCTION(vabs, Abs)
VNPU_INSTRUCTION(vrec, Reciprocal)
VNPU_INSTRUCTION(vsqrt, Sqrt)
VNPU_INSTRUCTION(vrsqrt, Rsqrt)
VNPU_INSTRUCTION(vrelu, Relu)
VNPU_INSTRUCTION(vnot, Not)
#undef VNPU_INSTRUCTION
#define VNPU_INSTRUCTION(NAME, TO, FROM, ROUND)                                                                   \
  ASCENDC_INLINE void NAME(TO* dst, FROM* src, uint8_t repeat, uint16_t dstBlk, uint16_t srcBlk, uint16_t dstRep, \
                           uint16_t srcRep) {                                                                     \
    using namespace AscendC;                                                                                      \
    Cast<TO, FROM, false>(                                                                                        \
        detail::in_ub(dst), detail::in_ub(src), RoundMode::ROUND, uint64_t(0), repeat,                            \
        UnaryRepeatParams(dstBlk, srcBlk, static_cast<uint8_t>(dstRep), static_cast<uint8_t>(srcRep)));           \
  }
#define VNPU_ROUNDED(NAME, TO, FROM)              \
  VNPU_INSTRUCTION(NAME##r, TO, FROM, CAST_RINT)  \
  VNPU_INSTRUCTION(NAME##f, TO, FROM, CAST_FLOOR) \
  VNPU_INSTRUCTION(NAME##c, TO, FROM, CAST_CEIL)  \
  VNPU_INSTRUCTION(NAME##a, TO, FROM, CAST_ROUND) \
  VNPU_INSTRUCTION(NAME##z, TO, FROM, CAST_TRUNC)
VNPU_INSTRUCTION(vconv_f162f32, float, half, CAST_NONE)
VNPU_INSTRUCTION(vconv_bf162f32, float, bfloat16_t, CAST_NONE)
VNPU_INSTRUCTION(vconv_f322f16, half, float, CAST_NONE)
VNPU_INSTRUCTION(vconv_s322f32, float, int32_t, CAST_NONE)
VNPU_INSTRUCTION(vconv_s162f16, half, int16_t, CAST_NONE)
VNPU_INSTRUCTION(vconv_s82f16, half, int8_t, CAST_NONE)
VNPU_INSTRUCTION(vconv_u82f16, half, uint8_t, CAST_NONE)
VNPU_ROUNDED(vconv_f322f16, half, float)
VNPU_ROUNDED(vconv_f322bf16, bfloat16_t, float)
VNPU_ROUNDED(vconv_f322s32, int32_t, float)
VNPU_ROUNDED(vconv_f162s32, int32_t, half)
VNPU_ROUNDED(vconv_f162s8, int8_t, half)
#undef VNPU_ROUNDED
#undef VNPU_INSTRUCTION
#define VNPU_INSTRUCTION(NAME, API)                                                                             \
  template <typename T>                                                                                         \
  ASCENDC_INLINE void NAME(T* dst, T* src, uint8_t repeat, uint16_t dstRep, uint16_t srcBlk, uint16_t srcRep) { \
    using namespace AscendC;                                                                                    \
    API<T, false>(detail::in_ub(dst), detail::in_ub(src), repeat, int32_t(0), dstRep, srcBlk, srcRep);          \
  }
VNPU_INSTRUCTION(vcgadd, BlockReduceSum)
VNPU_INSTRUCTION(vcgmax, BlockReduceMax)
VNPU_INSTRUCTION(vcgmin, BlockReduceMin)
#undef VNPU_INSTRUCTION
enum class Order_t { VALUE_INDEX = 0, INDEX_VALUE, ONLY_VALUE, ONLY_INDEX };
#define VNPU_INSTRUCTION(NAME, API)                                                                           \
  template <typename T>                                                                                       \
  ASCENDC_INLINE void NAME(T* dst, T* src, uint8_t repeat, uint16_t dstRep, uint16_t srcBlk, uint16_t srcRep, \
                           Order_t order) {                                                                   \
    using namespace AscendC;                                                                                  \
    API<T, false>(detail::in_ub(dst), detail::in_ub(src), int32_t(0), repeat, dstRep, srcBlk, srcRep,         \
                  order == Order_t::VALUE_INDEX   ? ReduceOrder::ORDER_VALUE_INDEX                            \
                  : order == Order_t::INDEX_VALUE ? ReduceOrder::ORDER_INDEX_VALUE                            \
                  : order == Order_t::ONLY_VALUE  ? ReduceOrder::ORDER_ONLY_VALUE                             \
                                                  : ReduceOrder::ORDER_ONLY_INDEX);                           \
  }
VNPU_INSTRUCTION(vcmax, WholeReduceMax)
VNPU_INSTRUCTION(vcmin, WholeReduceMin)
#undef VNPU_INSTRUCTION
template <typename T>
ASCENDC_INLINE void vbrcb(T* dst, T* src, uint16_t dstBlk, uint16_t dstRep, uint8_t repeat) {
  using namespace AscendC;
  Brcb(detail::in_ub(dst), detail::in_ub(src), repeat, BrcbRepeatParams(dstBlk, dstRep));
}

// ---- copies: lengths and gaps in 32-byte blocks ----
ASCENDC_INLINE void copy_gm_to_ubuf(void* dst, const void* src, uint8_t /*sid*/, uint16_t bursts, uint16_t length,
                                    uint16_t srcGap, uint16_t dstGap) {
  using namespace AscendC;
  DataCopy(detail::bytes_at(dst, TPosition::VECIN), detail::bytes_of_gm(src),
           DataCopyParams(bursts, length, srcGap, dstGap));
}
ASCENDC_INLINE void copy_ubuf_to_gm(void* dst, void* src, uint8_t /*sid*/, uint16_t bursts, uint16_t length,
                                    uint16_t srcGap, uint16_t dstGap) {
  using namespace AscendC;
  DataCopy(detail::bytes_of_gm(dst), detail::bytes_at(src, TPosition::VECOUT),
           DataCopyParams(bursts, length, srcGap, dstGap));
}
ASCENDC_INLINE void copy_gm_to_cbuf(void* dst, const void* src, uint8_t /*sid*/, uint16_t bursts, uint16_t length,
                                    uint16_t srcGap, uint16_t dstGap, pad_t pad) {
  using namespace AscendC;
  if (pad != pad_t::PAD_NONE) vnpu::unsupported("copy_gm_to_cbuf", "padding");
  DataCopy(detail::bytes_at(dst, TPosition::A1), detail::bytes_of_gm(src),
           DataCopyParams(bursts, length, srcGap, dstGap));
}
// ---- the cube core ----
#define VNPU_INSTRUCTION(NAME)                                                                                        \
  template <typename T>                                                                                               \
  ASCENDC_INLINE void NAME(T* dst, const T* src, uint8_t /*sid*/, uint16_t matrices, uint16_t rows, uint16_t columns, \
                           uint16_t srcMatrix, uint16_t srcRow, uint16_t dstC0, uint16_t dstN, uint16_t dstMatrix) {  \
    using namespace AscendC;                                                                                          \
    GlobalTensor<T> from;                                                                                             \
    from.SetGlobalBuffer(const_cast<T*>(src));                                                                        \
    DataCopy(detail::seen_at(dst, TPosition::A1), from,                                                               \
             Nd2NzParams(matrices, rows, columns, srcMatrix, srcRow, dstC0, dstN, dstMatrix));                        \
  }
VNPU_INSTRUCTION(copy_gm_to_cbuf_multi_nd2nz_b8)
VNPU_INSTRUCTION(copy_gm_to_cbuf_multi_nd2nz_b16)
VNPU_INSTRUCTION(copy_gm_to_cbuf_multi_nd2nz_b32s)
#undef VNPU_INSTRUCTION
enum addr_cal_mode_t { inc = 0, dec = 1 };
#define VNPU_INSTRUCTION(NAME, POSITION)                                                                        \
  template <typename T>                                                                                         \
  ASCENDC_INLINE void NAME(T* dst, T* src, uint16_t start, uint8_t repeat, uint16_t srcStride, uint16_t dstGap, \
                           uint8_t sid, bool transpose, addr_cal_mode_t mode) {                                 \
    using namespace AscendC;                                                                                    \
    LoadData(detail::seen_at(dst, TPosition::POSITION), detail::seen_at(src, TPosition::A1),                    \
             LoadData2DParams(start, repeat, srcStride, sid, dstGap, transpose, mode == dec));                  \
  }
VNPU_INSTRUCTION(load_cbuf_to_ca, A2)
VNPU_INSTRUCTION(load_cbuf_to_cb, B2)
#undef VNPU_INSTRUCTION
// Lengths and gaps in 32-byte blocks.
template <typename T>
ASCENDC_INLINE void copy_ubuf_to_ubuf(T* dst, T* src, uint8_t /*sid*/, uint16_t bursts, uint16_t lenBurst,
                                      uint16_t srcGap, uint16_t dstGap) {
  vnpu::copy_local_to_local(AscendC::detail::in_ub(dst).pointer(), AscendC::detail::in_ub(src).pointer(),
                            AscendC::detail::shape_of(AscendC::DataCopyParams(bursts, lenBurst, srcGap, dstGap)),
                            "copy_ubuf_to_ubuf");
}
template <typename T, typename U, typename S>
ASCENDC_INLINE void mad(T* c, U* a, S* b, uint16_t m, uint16_t k, uint16_t n, uint8_t unitFlag, bool pairs, bool biases,
                        bool zero) {
  using namespace AscendC;
  MmadParams p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.unitFlag = unitFlag;
  p.kDirectionAlign = pairs;
  p.cmatrixSource = biases;
  p.cmatrixInitVal = zero;
  Mmad(detail::seen_at(c, TPosition::CO1), detail::seen_at(a, TPosition::A2), detail::seen_at(b, TPosition::B2), p);
}
