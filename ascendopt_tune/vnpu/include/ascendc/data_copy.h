// DataCopy, DataCopyPad and atomic accumulation on the way to GM (AscendC reference, data movement).
#pragma once
#include "tensor.h"
#include "vnpu/cube.h"
#include "vnpu/tscm.h"

enum pad_t { PAD_NONE = 0, PAD_MODE1, PAD_MODE2, PAD_MODE3, PAD_MODE4, PAD_MODE5 };

namespace AscendC {

// Lengths and gaps in 32-byte blocks; a gap is from the end of one piece to the start of the next.
struct DataCopyParams {
  DataCopyParams() = default;
  DataCopyParams(uint16_t count, uint16_t len, uint16_t src, uint16_t dst)
      : blockCount(count), blockLen(len), srcStride(src), dstStride(dst) {}
  uint16_t blockCount = 1, blockLen = 0;
  union {
    uint16_t srcStride = 0;
    uint16_t srcGap;
  };
  union {
    uint16_t dstStride = 0;
    uint16_t dstGap;
  };
};
// What older calls say about copies from L0C; the other copies, which are all that architecture 2201 has of them, don't
// heed it.
enum class BlockMode : uint8_t {
  BLOCK_MODE_NORMAL = 0,
  BLOCK_MODE_MATRIX,
  BLOCK_MODE_VECTOR,
  BLOCK_MODE_SMALL_CHANNEL,
  BLOCK_MODE_DEPTHWISE,
};
enum class DeqScale : uint8_t { DEQ_NONE = 0, DEQ, VDEQ, DEQ8, VDEQ8, DEQ16, VDEQ16 };
struct DataCopyEnhancedParams {
  DataCopyEnhancedParams() = default;
  DataCopyEnhancedParams(BlockMode block, DeqScale scale, uint64_t value, uint8_t sid, bool relu, pad_t pad,
                         uint64_t pad_value)
      : blockMode(block),
        deqScale(scale),
        deqValue(value),
        sidStoreMode(sid),
        isRelu(relu),
        padMode(pad),
        padValue(pad_value) {}
  BlockMode blockMode = BlockMode::BLOCK_MODE_NORMAL;
  DeqScale deqScale = DeqScale::DEQ_NONE;
  uint64_t deqValue = 0;
  uint8_t sidStoreMode = 0;
  bool isRelu = false;
  pad_t padMode = pad_t::PAD_NONE;
  uint64_t padValue = 0, deqTensorAddr = 0;
};
// Lengths in bytes; gaps in bytes on the GM side and in 32-byte blocks on the UB side.
constexpr uint8_t DEFAULT_DATA_COPY_NBURST = 1;
constexpr uint8_t DEFAULT_DATA_COPY_STRIDE = 0;

struct DataCopyExtParams {
  DataCopyExtParams() = default;
  DataCopyExtParams(uint16_t count, uint32_t len, uint32_t src, uint32_t dst, uint32_t reserved)
      : blockCount(count), blockLen(len), srcStride(src), dstStride(dst), rsv(reserved) {}
  uint16_t blockCount = 1;
  uint32_t blockLen = 0, srcStride = 0, dstStride = 0, rsv = 0;
};
struct DataCopyPadParams {
  DataCopyPadParams() = default;
  DataCopyPadParams(bool pad, uint8_t left, uint8_t right, uint64_t value)
      : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value) {}
  bool isPad = false;
  uint8_t leftPadding = 0, rightPadding = 0;
  uint64_t paddingValue = 0;
};
template <typename T>
struct DataCopyPadExtParams {
  DataCopyPadExtParams() = default;
  DataCopyPadExtParams(bool pad, uint8_t left, uint8_t right, T value)
      : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value) {}
  bool isPad = false;
  uint8_t leftPadding = 0, rightPadding = 0;
  T paddingValue = {};
};

namespace detail {

ASCENDC_INLINE vnpu::CopyShape shape_of(const DataCopyParams& p) {
  vnpu::CopyShape s;
  s.bursts = p.blockCount;
  s.burst_bytes = uint64_t(p.blockLen) * 32;
  s.src_stride = s.burst_bytes + uint64_t(p.srcStride) * 32;
  s.dst_stride = s.burst_bytes + uint64_t(p.dstStride) * 32;
  return s;
}
// `count` elements, cut down to whole 32-byte blocks as the device does.
template <typename T>
ASCENDC_INLINE vnpu::CopyShape shape_of_count(uint32_t count) {
  vnpu::CopyShape s;
  s.burst_bytes = vnpu::bytes_of<T>(count) / 32 * 32;
  return s;
}
// DataCopyPad: GM pieces are byte exact, every UB piece starts on a 32-byte block.
template <typename P>
ASCENDC_INLINE vnpu::CopyShape shape_of_pad(const P& p, bool to_local) {
  vnpu::CopyShape s;
  s.bursts = p.blockCount;
  s.burst_bytes = p.blockLen;
  s.byte_exact = true;
  uint64_t local = (uint64_t(p.blockLen) + 31) / 32 * 32;
  s.src_stride = to_local ? p.blockLen + uint64_t(p.srcStride) : local + uint64_t(p.srcStride) * 32;
  s.dst_stride = to_local ? local + uint64_t(p.dstStride) * 32 : p.blockLen + uint64_t(p.dstStride);
  return s;
}
// The L2 policy of the global tensor that is read or written.
template <typename T>
ASCENDC_INLINE vnpu::CopyShape cached_as(const GlobalTensor<T>& gm, vnpu::CopyShape s) {
  s.cached = gm.IsCached();
  return s;
}
template <typename T, typename P>
ASCENDC_INLINE void add_padding(vnpu::CopyShape& s, const P& pad, uint32_t dst_gap_blocks) {
  // Values of 8 bytes are put together of the low half twice (asc-devkit, DataCopyPadGm2UBImpl), so they have to be 0.
  if constexpr (sizeof(T) == 8)
    if (pad.isPad && (pad.leftPadding || pad.rightPadding) && pad.paddingValue != 0)
      vnpu::misuse("DataCopyPad", "paddingValue of elements of 8 bytes has to be 0 (AscendC reference, DataCopyPad)");
  s.element_bytes = sizeof(T);
  s.left_pad = pad.leftPadding;
  s.right_pad = pad.rightPadding;
  // AscendC reference, DataCopyPad: without padding what fills up the last block are copies of the piece's first
  // element; padding has the value given, or a random one.
  using Fill = vnpu::CopyShape::Fill;
  bool pads = s.left_pad || s.right_pad;
  s.fill = !pads ? Fill::FirstElement : pad.isPad ? Fill::Value : Fill::Random;
  std::memcpy(&s.pad_value, &pad.paddingValue, sizeof(pad.paddingValue) < 8 ? sizeof(pad.paddingValue) : 8);
  if (pads) {
    vnpu::PadRegister& own = *vnpu::pad_register();
    if (pad.isPad) {
      own.set = false;
    } else if (own.set) {
      s.fill = Fill::Value;
      s.pad_value = own.value;
    }
  }
  uint64_t used = s.burst_bytes + (uint64_t(s.left_pad) + s.right_pad) * sizeof(T), padded = (used + 31) / 32 * 32;
  s.dst_stride = padded + uint64_t(dst_gap_blocks) * 32;
}

}  // namespace detail

// The value of padding for copies that have none of their own (isPad is false), until one has.
template <typename T, TPosition pos = TPosition::MAX>
ASCENDC_INLINE void SetPadValue(T paddingValue) {
  static_assert(pos == TPosition::MAX || pos == TPosition::VECIN || pos == TPosition::VECOUT,
                "SetPadValue takes VECIN and VECOUT");
  static_assert(sizeof(T) <= 8, "SetPadValue takes a number");
  if (sizeof(T) == 8 && paddingValue != 0)
    vnpu::misuse("SetPadValue", "the value of elements of 8 bytes has to be 0 (AscendC reference, DataCopyPad)");
  vnpu::PadRegister& own = *vnpu::pad_register();
  own = {true, 0};
  std::memcpy(&own.value, &paddingValue, sizeof(T));
  vnpu::scalar_cost(1);
}

// Limit of DataCopy: not the slices of several dimensions (SliceInfo).

namespace detail {
// L1 of a vector core is its cube core's.
template <typename T>
ASCENDC_INLINE bool is_l1_of_other(const LocalTensor<T>& t) {
  return memory_of(t.position()) == vnpu::Memory::L1 && vnpu::asks_for_l1();
}
template <typename T>
ASCENDC_INLINE void copy_in(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const vnpu::CopyShape& s) {
  if (is_l1_of_other(dst)) return vnpu::ask_for_l1(dst.pointer(), src.pointer(), s, "DataCopy");
  vnpu::copy_gm_to_local(dst.pointer(), src.pointer(), s, "DataCopy");
}
template <typename T>
ASCENDC_INLINE void copy_local(const LocalTensor<T>& dst, const LocalTensor<T>& src, const vnpu::CopyShape& s) {
  if (is_l1_of_other(dst)) return vnpu::ask_for_l1_from_local(dst.pointer(), src.pointer(), s, "DataCopy");
  vnpu::copy_local_to_local(dst.pointer(), src.pointer(), s, "DataCopy");
}
}  // namespace detail

// ---- GM -> UB, GM -> L1 ----
template <typename T>
ASCENDC_INLINE void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const uint32_t count) {
  detail::copy_in(dst, src, detail::cached_as(src, detail::shape_of_count<T>(count)));
}
template <typename T>
ASCENDC_INLINE void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& params) {
  detail::copy_in(dst, src, detail::cached_as(src, detail::shape_of(params)));
}
template <typename T>
ASCENDC_INLINE void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& params,
                                const DataCopyPadParams& pad) {
  vnpu::CopyShape s = detail::cached_as(src, detail::shape_of_pad(params, true));
  detail::add_padding<T>(s, pad, params.dstStride);
  vnpu::copy_gm_to_local(dst.pointer(), src.pointer(), s, "DataCopyPad");
}
template <typename T>
ASCENDC_INLINE void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyExtParams& params,
                                const DataCopyPadExtParams<T>& pad) {
  vnpu::CopyShape s = detail::cached_as(src, detail::shape_of_pad(params, true));
  detail::add_padding<T>(s, pad, params.dstStride);
  vnpu::copy_gm_to_local(dst.pointer(), src.pointer(), s, "DataCopyPad");
}

// ---- UB -> GM, L1 -> GM ----
namespace detail {
// L1 is brought out by the cube core; vector cores of its kernel pass that by (asc-devkit, DataCopyL12GMImpl).
template <typename T>
ASCENDC_INLINE bool is_of_other_core(const LocalTensor<T>& src) {
  return memory_of(src.position()) == vnpu::Memory::L1 && vnpu::asks_for_l1();
}
}  // namespace detail
template <typename T>
ASCENDC_INLINE void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count) {
  if (detail::is_of_other_core(src)) return;
  vnpu::copy_local_to_gm(dst.pointer(), src.pointer(), detail::cached_as(dst, detail::shape_of_count<T>(count)),
                         "DataCopy");
}
template <typename T>
ASCENDC_INLINE void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& params) {
  if (detail::is_of_other_core(src)) return;
  vnpu::copy_local_to_gm(dst.pointer(), src.pointer(), detail::cached_as(dst, detail::shape_of(params)), "DataCopy");
}
template <typename T>
ASCENDC_INLINE void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& params) {
  vnpu::copy_local_to_gm(dst.pointer(), src.pointer(), detail::cached_as(dst, detail::shape_of_pad(params, false)),
                         "DataCopyPad");
}
template <typename T>
ASCENDC_INLINE void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src,
                                const DataCopyExtParams& params) {
  vnpu::copy_local_to_gm(dst.pointer(), src.pointer(), detail::cached_as(dst, detail::shape_of_pad(params, false)),
                         "DataCopyPad");
}

// ---- UB -> UB, and on cube cores L1 -> table of biases or of the outgoing pipe ----
namespace detail {
constexpr bool is_table(vnpu::Memory m) { return m == vnpu::Memory::BT || m == vnpu::Memory::FB; }
// Biases: lengths in 64 bytes of the source, so that those that widen fill twice as much of the table (as asc-devkit's
// Matmul, load_bias_to_c2.h, and catlass' CopyL1ToBT reckon); gaps of the table's side in 64 bytes. The other table:
// lengths in 128 bytes, strides from start to start.
ASCENDC_INLINE vnpu::TableCopy table_copy(vnpu::Memory to, const DataCopyParams& p, bool widens) {
  vnpu::TableCopy t;
  const bool bias = to == vnpu::Memory::BT;
  t.pieces = p.blockCount;
  const uint64_t source = uint64_t(p.blockLen) * (bias ? 64 : 128);
  t.bytes = source * (widens ? 2 : 1);
  t.src_stride = (bias ? source : 0) + uint64_t(p.srcStride) * 32;
  t.dst_stride = bias ? t.bytes + uint64_t(p.dstStride) * 64 : uint64_t(p.dstStride) * 128;
  return t;
}
}  // namespace detail

template <typename T>
ASCENDC_INLINE void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count) {
  const vnpu::Memory to = detail::memory_of(dst.position());
  if (detail::is_table(to)) {
    vnpu::TableCopy t;
    t.bytes = vnpu::bytes_of<T>(count) / 32 * 32;
    return vnpu::copy_to_table(to, dst.pointer(), src.pointer(), t, vnpu::dtype_of<T>(), vnpu::dtype_of<T>(),
                               "DataCopy");
  }
  detail::copy_local(dst, src, detail::shape_of_count<T>(count));
}
template <typename T>
ASCENDC_INLINE void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& params) {
  const vnpu::Memory to = detail::memory_of(dst.position());
  if (detail::is_table(to))
    return vnpu::copy_to_table(to, dst.pointer(), src.pointer(), detail::table_copy(to, params, false),
                               vnpu::dtype_of<T>(), vnpu::dtype_of<T>(), "DataCopy");
  detail::copy_local(dst, src, detail::shape_of(params));
}

// Biases that become wider on the way.
template <typename T, typename U, std::enable_if_t<!std::is_same_v<T, U>, int> = 0>
ASCENDC_INLINE void DataCopy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const DataCopyParams& params) {
  const vnpu::Memory to = detail::memory_of(dst.position());
  vnpu::copy_to_table(to, dst.pointer(), src.pointer(), detail::table_copy(to, params, sizeof(T) > sizeof(U)),
                      vnpu::dtype_of<T>(), vnpu::dtype_of<U>(), "DataCopy");
}

// ---- with DataCopyEnhancedParams ----
template <typename T>
ASCENDC_INLINE void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& params,
                             const DataCopyEnhancedParams&) {
  DataCopy(dst, src, params);
}
template <typename T>
ASCENDC_INLINE void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& params,
                             const DataCopyEnhancedParams&) {
  DataCopy(dst, src, params);
}
template <typename T, typename U>
ASCENDC_INLINE void DataCopy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const DataCopyParams& params,
                             const DataCopyEnhancedParams&) {
  if (detail::memory_of(src.position()) == vnpu::Memory::L0C)
    vnpu::unsupported("DataCopy", "from L0C to the Unified Buffer there is no way on architecture 2201: use Fixpipe");
  if (detail::memory_of(dst.position()) == vnpu::Memory::L0C)
    vnpu::unsupported("DataCopy", "with DataCopyEnhancedParams to L0C: not covered by the virtual NPU");
  DataCopy(dst, src, params);
}

// ---- accumulation on the way to GM ----
template <typename T>
ASCENDC_INLINE void SetAtomicAdd() {
  vnpu::set_atomic(vnpu::AtomicOp::Add, vnpu::dtype_of<T>());
}
template <typename T>
ASCENDC_INLINE void SetAtomicMax() {
  vnpu::set_atomic(vnpu::AtomicOp::Max, vnpu::dtype_of<T>());
}
template <typename T>
ASCENDC_INLINE void SetAtomicMin() {
  vnpu::set_atomic(vnpu::AtomicOp::Min, vnpu::dtype_of<T>());
}
// Of what an atomic operation is, and not which one.
template <typename T>
ASCENDC_INLINE void SetAtomicType() {
  vnpu::set_atomic_type(vnpu::dtype_of<T>());
}
ASCENDC_INLINE void SetAtomicNone() { vnpu::set_atomic(vnpu::AtomicOp::None, vnpu::DType::None); }
ASCENDC_INLINE void DisableDmaAtomic() { SetAtomicNone(); }

}  // namespace AscendC

// The raw intrinsics of DataCopyPad, for elements of 1, 2 and 4 bytes: lengths and gaps in bytes on the side of GM,
// gaps in 32 bytes on the other.
#define VNPU_RAW_COPY(BITS, TYPE)                                                                                  \
  ASCENDC_INLINE void copy_gm_to_ubuf_align_b##BITS(void* dst, const void* src, uint8_t, uint16_t bursts,          \
                                                    uint32_t bytes, uint8_t left, uint8_t right, uint32_t src_gap, \
                                                    uint32_t dst_gap) {                                            \
    const AscendC::DataCopyExtParams p(bursts, bytes, src_gap, dst_gap, 0);                                        \
    vnpu::CopyShape s = AscendC::detail::shape_of_pad(p, true);                                                    \
    AscendC::detail::add_padding<TYPE>(s, AscendC::DataCopyPadExtParams<TYPE>(false, left, right, 0), dst_gap);    \
    vnpu::copy_gm_to_local(dst, src, s, "copy_gm_to_ubuf_align_b" #BITS);                                          \
  }                                                                                                                \
  ASCENDC_INLINE void copy_ubuf_to_gm_align_b##BITS(void* dst, const void* src, uint8_t, uint16_t bursts,          \
                                                    uint32_t bytes, uint8_t, uint8_t, uint32_t src_gap,            \
                                                    uint32_t dst_gap) {                                            \
    const AscendC::DataCopyExtParams p(bursts, bytes, src_gap, dst_gap, 0);                                        \
    vnpu::copy_local_to_gm(dst, src, AscendC::detail::shape_of_pad(p, false), "copy_ubuf_to_gm_align_b" #BITS);    \
  }
VNPU_RAW_COPY(8, uint8_t)
VNPU_RAW_COPY(16, uint16_t)
VNPU_RAW_COPY(32, uint32_t)
#undef VNPU_RAW_COPY
ASCENDC_INLINE void set_atomic_none() { AscendC::SetAtomicNone(); }
