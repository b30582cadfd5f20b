// Words every AscendC kernel uses: address qualifiers, scalar types, pipes and events, positions.
// Source of names and numbers: AscendC API reference (data structures, synchronization), CANN ge::DataType numbering.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "vnpu/device.h"

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 12
#error "the virtual NPU needs g++ 12 or newer (or clang++ 15 or newer): older compilers have no _Float16"
#endif

#define __VNPU__ 1  // this is the virtual NPU's toolkit
#define __aicore__
#define __gm__
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __fbuf__
#define __host_aicore__
// Which pipes a function of the kernel's own takes from and gives to, for CANN's automatic synchronization; here the
// calls in it say so themselves.
#define __in_pipe__(...)
#define __out_pipe__(...)
#define __inout_pipe__(...)
// A variable that every core has for itself. Cores of one kind share it here: one that reads what it hasn't set itself
// reads another's value.
#define __BLOCK_LOCAL__
// Which cores a kernel is for: of a group of cores, as the run-time compiler sees it, which makes the passes.
#define __vector__ VNPU_CORES_MARK(0, 1)
#define __cube__ VNPU_CORES_MARK(1, 0)
#define __mix__(cubes, vectors) VNPU_CORES_MARK(cubes, vectors)
#define VNPU_CORES_MARK(cubes, vectors)
#define __inline__ inline
#define ASCENDC_INLINE __attribute__((always_inline)) inline
#define __forceinline__ ASCENDC_INLINE
// Device constants describing architecture 2201, vector pass (mechanics of the device compiler); vnpu_cube_pass.h has
// those of the cube pass.
#ifndef __CCE_AICORE__
#define __CCE_AICORE__ 220
#endif
#ifndef __NPU_ARCH__
#define __NPU_ARCH__ 2201
#endif
#ifndef __DAV_C220_VEC__
#define __DAV_C220_VEC__ 1
#endif
#ifndef __DAV_VEC__
#define __DAV_VEC__ 1
#endif

// A macro, as in CANN: a `const GM_ADDR` points to constant bytes.
#define GM_ADDR __gm__ uint8_t*
typedef _Float16 half;
typedef half float16_t;
typedef float float32_t;

// bfloat16: storage with explicit arithmetic through float, round to nearest even.
struct bfloat16_t {
  uint16_t bits;
  bfloat16_t() = default;
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T> || std::is_same_v<T, half>>>
  constexpr bfloat16_t(T value) : bits(round(static_cast<float>(value))) {}
  constexpr operator float() const { return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16); }

 private:
  static constexpr uint16_t round(float f) {
    uint32_t x = __builtin_bit_cast(uint32_t, f);
    if ((x & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(x >> 16 | 0x40);
    return static_cast<uint16_t>((x + 0x7fff + (x >> 16 & 1)) >> 16);
  }
};
// The device compiler's own name of it.
#define __bf16 bfloat16_t
// What a program may define for its loader, which has no use of it here.
struct OpSystemRunCfg {
  uint64_t l2Cacheoffset;
};
// Of other models; declarations name it.
struct fp8_e8m0_t {
  uint8_t bits;
};
namespace AscendC {
using ::fp8_e8m0_t;
}
struct int4b_t {
  int4b_t() = default;
  constexpr int4b_t(int32_t value) : bits(static_cast<uint8_t>(value & 15)) {}
  constexpr int4b_t(uint32_t value) : bits(static_cast<uint8_t>(value & 15)) {}
  constexpr operator int8_t() const { return static_cast<int8_t>(bits < 8 ? bits : bits - 16); }
  uint8_t bits;
};
struct complex32 {
  half real, imag;
};
struct complex64 {
  float real, imag;
};

// The compiler's numbers: kernels say PIPE_FIX as (pipe_t)10, too. Between them are pipes that 2201 doesn't have.
typedef enum { PIPE_S = 0, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_ALL, PIPE_FIX = 10 } pipe_t;
typedef enum { EVENT_ID0 = 0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 } event_t;

// ge::DataType and ge::Format numbers: kernels compare them in #if, so they are macros.
#define DT_FLOAT 0
#define DT_FLOAT16 1
#define DT_INT8 2
#define DT_INT32 3
#define DT_UINT8 4
#define DT_INT16 6
#define DT_UINT16 7
#define DT_UINT32 8
#define DT_INT64 9
#define DT_UINT64 10
#define DT_DOUBLE 11
#define DT_BOOL 12
#define DT_COMPLEX64 16
#define DT_BF16 27
#define DT_INT4 29
#define DT_COMPLEX32 33
#define FORMAT_NCHW 0
#define FORMAT_NHWC 1
#define FORMAT_ND 2
#define FORMAT_NC1HWC0 3
#define FORMAT_NCDHW 30
#define FORMAT_NDHWC 27
#define FORMAT_FRACTAL_NZ 29

namespace vnpu {

// Of an integer type, by its size and sign.
template <typename U>
constexpr DType integer_dtype() {
  constexpr bool s = std::is_signed_v<U>;
  switch (sizeof(U)) {
    case 1:
      return s ? DType::I8 : DType::U8;
    case 2:
      return s ? DType::I16 : DType::U16;
    case 4:
      return s ? DType::I32 : DType::U32;
    case 8:
      return s ? DType::I64 : DType::U64;
    default:
      return DType::None;
  }
}

template <typename T>
constexpr DType dtype_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, float>) return DType::F32;
  if constexpr (std::is_same_v<U, half>) return DType::F16;
  if constexpr (std::is_same_v<U, bfloat16_t>) return DType::BF16;
  if constexpr (std::is_same_v<U, double>) return DType::F64;
  if constexpr (std::is_same_v<U, bool>) return DType::Bool;
  if constexpr (std::is_same_v<U, complex64>) return DType::C64;
  if constexpr (std::is_same_v<U, int4b_t>) return DType::I4;
  if constexpr (std::is_integral_v<U> && !std::is_same_v<U, bool>) return integer_dtype<U>();
  return DType::None;
}

// int4b_t has two elements in a byte, the first in the low half; a byte is the least that has an address.
template <typename T>
constexpr bool is_half_byte = std::is_same_v<std::remove_cv_t<T>, int4b_t>;
template <typename T>
constexpr uint64_t bytes_of(uint64_t elements) {
  return is_half_byte<T> ? (elements + 1) / 2 : elements * sizeof(T);
}
template <typename T>
constexpr uint64_t elements_in(uint64_t bytes) {
  return is_half_byte<T> ? bytes * 2 : bytes / sizeof(T);
}

constexpr Pipe to_pipe(pipe_t p) {
  constexpr Pipe table[] = {Pipe::S, Pipe::V, Pipe::M, Pipe::MTE1, Pipe::MTE2, Pipe::MTE3, Pipe::S};
  if (p == PIPE_FIX) return Pipe::FIX;
  if (p > PIPE_ALL) vnpu::misuse("pipe_t", "architecture 2201 has no pipe of this number");
  return table[p];
}

// An immediate operand as the machine takes it.
template <typename T>
Scalar to_scalar(T v) {
  Scalar s;
  if constexpr (std::is_integral_v<T>) {
    s.i = static_cast<int64_t>(v);
    s.f = static_cast<double>(v);
  } else {
    s.f = static_cast<double>(static_cast<float>(v));
    s.i = static_cast<int64_t>(s.f);
  }
  return s;
}

}  // namespace vnpu

namespace AscendC {

using ::int4b_t;

#ifndef VNPU_ONE_BLK_SIZE  // both sides have it, and some files are for both
#define VNPU_ONE_BLK_SIZE
constexpr int32_t ONE_BLK_SIZE = 32;
#endif
constexpr int32_t DEFAULT_BLK_NUM = 8;
constexpr int32_t DEFAULT_BLK_STRIDE = 1;
constexpr uint8_t DEFAULT_REPEAT_STRIDE = 8;
constexpr int32_t DEFAULT_C0_SIZE = 32;
constexpr int32_t ONE_REPEAT_BYTE_SIZE = 256;
constexpr int32_t MASK_PLACEHOLDER = 0;
constexpr int32_t TOTAL_UB_SIZE = 196608, CUBE_MAX_SIZE = 256;
constexpr uint32_t TOTAL_L1_SIZE = 524288, TOTAL_L0C_SIZE = 131072;
constexpr uint32_t RESERVED_WORKSPACE = 16 * 1024 * 1024, VECTOR_REG_WIDTH = 256;  // the second is other models'
class ProcessLock;                                                                 // of CANN's own debugging
constexpr int32_t TOTAL_VEC_LOCAL_SIZE = 184 * 1024;  // of them what CANN's own APIs reckon with

enum class TPosition : uint8_t {
  GM,
  A1,
  A2,
  B1,
  B2,
  C1,
  C2,
  CO1,
  CO2,
  VECIN,
  VECOUT,
  VECCALC,
  LCM = VECCALC,
  SPM,
  SHM = SPM,
  TSCM,
  C2PIPE2GM,
  C2PIPE2LOCAL,
  MAX,
};
using QuePosition = TPosition;
namespace detail {
// The memory that a position is in (AscendC reference, TPosition).
constexpr vnpu::Memory memory_of(TPosition p) {
  switch (p) {
    case TPosition::A1:
    case TPosition::B1:
    case TPosition::C1:
    case TPosition::TSCM:
      return vnpu::Memory::L1;
    case TPosition::A2:
      return vnpu::Memory::L0A;
    case TPosition::B2:
      return vnpu::Memory::L0B;
    case TPosition::CO1:
      return vnpu::Memory::L0C;
    case TPosition::C2:
      return vnpu::Memory::BT;
    case TPosition::C2PIPE2GM:
      return vnpu::Memory::FB;
    default:
      return vnpu::Memory::UB;
  }
}
}  // namespace detail
enum class Hardware : uint8_t { GM, UB, L1, L0A, L0B, L0C, BIAS, FIXBUF, MAX };

// Source and destination pipe of a synchronization (AscendC reference, SetFlag/WaitFlag).
enum class HardEvent : uint8_t {
  MTE2_MTE1,
  MTE1_MTE2,
  MTE1_M,
  M_MTE1,
  MTE2_V,
  V_MTE2,
  MTE3_V,
  V_MTE3,
  M_V,
  V_M,
  V_V,
  MTE3_MTE1,
  MTE1_MTE3,
  MTE1_V,
  MTE2_M,
  M_MTE2,
  V_MTE1,
  M_FIX,
  FIX_M,
  MTE3_MTE2,
  MTE2_MTE3,
  S_V,
  V_S,
  S_MTE2,
  MTE2_S,
  S_MTE3,
  MTE3_S,
  MTE2_FIX,
  FIX_MTE2,
  FIX_S,
  M_S,
  FIX_MTE3,
  MTE1_FIX,
  FIX_MTE1,
  FIX_FIX,
  MAX,
};

enum class CacheLine : uint64_t { SINGLE_CACHE_LINE = 0, ENTIRE_DATA_CACHE };
enum class DcciDst : uint64_t { CACHELINE_ALL = 0, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };
enum class CacheMode { CACHE_MODE_DISABLE = 0, CACHE_MODE_NORMAL = 1, CACHE_MODE_LAST = 2, CACHE_MODE_PERSISTENT = 4 };
enum class CacheRwMode { READ = 1, WRITE = 2, RW = 3 };
enum class MaskMode : uint8_t { NORMAL = 0, COUNTER };
enum class RoundMode : uint8_t {
  CAST_NONE = 0,
  CAST_RINT,
  CAST_FLOOR,
  CAST_CEIL,
  CAST_ROUND,
  CAST_TRUNC,
  CAST_ODD,
  CAST_HYBRID,
};
enum class CMPMODE : uint8_t { LT = 0, GT, EQ, LE, GE, NE };
enum class SELMODE : uint8_t { VSEL_CMPMASK_SPR = 0, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };
enum class ReduceMode : uint8_t { REDUCE_MAX = 0, REDUCE_MIN, REDUCE_SUM };
enum class ReduceOrder : uint8_t { ORDER_VALUE_INDEX = 0, ORDER_INDEX_VALUE, ORDER_ONLY_VALUE, ORDER_ONLY_INDEX };

// Strides in 32-byte blocks: between the blocks of a repeat, and from one repeat to the next.
struct UnaryRepeatParams {
  UnaryRepeatParams() = default;
  UnaryRepeatParams(uint16_t dstBlk, uint16_t srcBlk, uint8_t dstRep, uint8_t srcRep)
      : dstBlkStride(dstBlk), srcBlkStride(srcBlk), dstRepStride(dstRep), srcRepStride(srcRep) {}
  uint32_t blockNumber = DEFAULT_BLK_NUM;
  uint16_t dstBlkStride = DEFAULT_BLK_STRIDE, srcBlkStride = DEFAULT_BLK_STRIDE;
  uint8_t dstRepStride = DEFAULT_REPEAT_STRIDE, srcRepStride = DEFAULT_REPEAT_STRIDE;
  bool repeatStrideMode = false, strideSizeMode = false, halfBlock = false;
};
struct BinaryRepeatParams {
  BinaryRepeatParams() = default;
  BinaryRepeatParams(uint8_t dstBlk, uint8_t src0Blk, uint8_t src1Blk, uint8_t dstRep, uint8_t src0Rep, uint8_t src1Rep)
      : dstBlkStride(dstBlk),
        src0BlkStride(src0Blk),
        src1BlkStride(src1Blk),
        dstRepStride(dstRep),
        src0RepStride(src0Rep),
        src1RepStride(src1Rep) {}
  uint32_t blockNumber = DEFAULT_BLK_NUM;
  uint8_t dstBlkStride = DEFAULT_BLK_STRIDE, src0BlkStride = DEFAULT_BLK_STRIDE, src1BlkStride = DEFAULT_BLK_STRIDE;
  uint8_t dstRepStride = DEFAULT_REPEAT_STRIDE, src0RepStride = DEFAULT_REPEAT_STRIDE,
          src1RepStride = DEFAULT_REPEAT_STRIDE;
  bool repeatStrideMode = false, strideSizeMode = false;
};

}  // namespace AscendC
