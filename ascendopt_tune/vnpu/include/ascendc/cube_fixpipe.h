// Cube cores: results on their way out of L0C (AscendC reference, matrix computation, bringing matrices out).
#pragma once
#include "data_copy.h"
#include "vnpu/untimed.h"

// How results are converted; V...: a word per column (AscendC reference, quantization on the way).
enum QuantMode_t {
  NoQuant = 0,
  F322F16,
  F322BF16,
  DEQF16,
  VDEQF16,
  QF322B8_PRE,
  VQF322B8_PRE,
  REQ8,
  VREQ8,
  // Of other architectures: kernels for several name them.
  QF322F16_PRE,
  VQF322F16_PRE,
  QF322BF16_PRE,
  VQF322BF16_PRE,
  QF322F32_PRE,
  VQF322F32_PRE,
  QF322FP8_PRE,
  VQF322FP8_PRE,
  QF322HIF8_PRE,
  VQF322HIF8_PRE,
  QS322BF16_PRE,
  VQS322BF16_PRE,
};

namespace AscendC {

enum class CO2Layout : uint8_t { NZ = 0, ROW_MAJOR, COLUMN_MAJOR };
struct FixpipeConfig {
  CO2Layout format;
  bool isToUB = false;
};
constexpr FixpipeConfig CFG_NZ{CO2Layout::NZ};
constexpr FixpipeConfig CFG_ROW_MAJOR{CO2Layout::ROW_MAJOR};
constexpr FixpipeConfig CFG_COLUMN_MAJOR{CO2Layout::COLUMN_MAJOR};  // refused: of other architectures

// srcStride in rows of 16 elements; dstStride in elements (rows) or 32-byte blocks (tiles).
struct FixpipeParamsV220 {
  FixpipeParamsV220() = default;
  FixpipeParamsV220(uint16_t n, uint16_t m, uint16_t src, uint32_t dst, bool relu)
      : nSize(n), mSize(m), srcStride(src), dstStride(dst), reluEn(relu) {}
  FixpipeParamsV220(uint16_t n, uint16_t m, uint16_t src, uint32_t dst, bool relu, QuantMode_t quant, int64_t scalar,
                    uint16_t num, uint16_t srcNd, uint16_t dstNd, uint8_t flag)
      : nSize(n),
        mSize(m),
        srcStride(src),
        dstStride(dst),
        quantPre(quant),
        deqScalar(static_cast<uint64_t>(scalar)),
        ndNum(num),
        srcNdStride(srcNd),
        dstNdStride(dstNd),
        reluEn(relu),
        unitFlag(flag) {}
  uint16_t nSize = 0, mSize = 0, srcStride = 0;
  uint32_t dstStride = 0;
  QuantMode_t quantPre = NoQuant;
  uint64_t deqScalar = 0;
  uint16_t ndNum = 1, srcNdStride = 0, dstNdStride = 0;
  bool reluEn = false;
  uint8_t unitFlag = 0;
  bool isChannelSplit = false;
};
// The older way to say it: columns in rows of 16 by 16 elements (cburstNum), their rows as 32-byte blocks of 16 sums
// each (burstLen), gaps in place of strides.
struct QuantParams {
  QuantParams() = default;
  QuantParams(QuantMode_t quant) : quantPre(quant) {}
  QuantParams(QuantMode_t quant, uint64_t scalar) : quantPre(quant), deqScalar(scalar) {}
  QuantMode_t quantPre = NoQuant;
  uint64_t deqScalar = 0;
};
struct Nz2NdParams {
  Nz2NdParams() = default;
  Nz2NdParams(bool rows, uint16_t num, uint16_t srcNd, uint16_t dstNd, uint16_t n)
      : nz2ndEn(rows), ndNum(num), srcNdStride(srcNd), dstNdStride(dstNd), originalNSize(n) {}
  bool nz2ndEn = false;
  uint16_t ndNum = 1, srcNdStride = 0, dstNdStride = 0, originalNSize = 0;
};
template <typename T = int32_t>
struct FixpipeParams {
  FixpipeParams() = default;
  FixpipeParams(uint16_t count, uint16_t len, uint16_t src, uint32_t dst)
      : cburstNum(count), burstLen(len), dstStride(dst), srcStride(src) {}
  uint16_t cburstNum = 1, burstLen = 1;
  uint32_t dstStride = 0;
  uint16_t srcStride = 0;
  QuantParams quantParams;
  bool reluEn = false;
  Nz2NdParams nz2ndParams;
  uint8_t unitFlag = 0;
};
// As FixpipeParamsV220; SetFixpipeNz2ndFlag and SetFixpipePreQuantFlag say the rest.
struct DataCopyCO12DstParams {
  DataCopyCO12DstParams() = default;
  DataCopyCO12DstParams(uint16_t n, uint16_t m, uint32_t dst, uint16_t src, QuantMode_t quant, uint8_t relu, bool split,
                        bool rows)
      : nSize(n),
        mSize(m),
        dstStride(dst),
        srcStride(src),
        quantPre(quant),
        reluPre(relu),
        channelSplit(split),
        nz2ndEn(rows) {}
  uint8_t sid = 0;
  uint16_t nSize = 0, mSize = 0;
  uint32_t dstStride = 0;
  uint16_t srcStride = 0;
  uint8_t unitFlag = 0, clipReluPre = 0, eltWiseOp = 0;
  QuantMode_t quantPre = NoQuant;
  uint8_t reluPre = 0;
  bool channelSplit = false, nz2ndEn = false;
};

namespace detail {

ASCENDC_INLINE vnpu::Requantize requantize_of(QuantMode_t mode) {
  using R = vnpu::Requantize;
  constexpr R table[] = {R::None,   R::F32ToF16,   R::F32ToBF16, R::I32ToF16,  R::I32ToF16Each,
                         R::F32To8, R::F32To8Each, R::I32To8,    R::I32To8Each};
  if (mode < 0 || static_cast<size_t>(mode) >= sizeof table / sizeof *table)
    vnpu::misuse("Fixpipe", "a way of quantization that is unknown, or not on architecture 2201");
  return table[mode];
}
template <typename T>
ASCENDC_INLINE vnpu::Outgoing outgoing_of(const FixpipeParamsV220& p, bool rows) {
  vnpu::Outgoing o;
  o.m = p.mSize;
  o.n = p.nSize;
  o.src_stride = p.srcStride;
  o.dst_stride = p.dstStride * (rows ? sizeof(T) : uint64_t(32));
  o.rows = rows;
  o.matrices = rows ? p.ndNum : 1;
  o.src_matrix_stride = p.srcNdStride * uint64_t(1024);
  o.dst_matrix_stride = p.dstNdStride * sizeof(T);
  o.how = requantize_of(p.quantPre);
  o.word = p.deqScalar;
  o.relu = p.reluEn;
  o.split = p.isChannelSplit;
  o.unit_flag = p.unitFlag;
  return o;
}
// `width` bytes an element of the destination has; sums have four (asc-devkit, FixpipeInfoParams).
template <typename S>
ASCENDC_INLINE FixpipeParamsV220 newer_params(const FixpipeParams<S>& p, uint64_t width) {
  const Nz2NdParams& rows = p.nz2ndParams;
  if (rows.nz2ndEn && rows.originalNSize == 0)
    vnpu::misuse("Fixpipe", "nz2ndParams.originalNSize is 0: with nz2ndEn it says how many columns there are");
  const uint32_t m = uint32_t(p.burstLen) * 32 / 4 / 16, whole = (m + 15) / 16 * 16;
  FixpipeParamsV220 f;
  f.mSize = static_cast<uint16_t>(m);
  f.nSize = rows.nz2ndEn ? rows.originalNSize : static_cast<uint16_t>(p.cburstNum * 16);
  f.srcStride = static_cast<uint16_t>(p.srcStride * 16 + whole);
  f.dstStride = rows.nz2ndEn ? p.dstStride : p.dstStride + static_cast<uint32_t>(p.burstLen * width / 4);
  f.quantPre = p.quantParams.quantPre;
  f.deqScalar = p.quantParams.deqScalar;
  f.ndNum = rows.ndNum;
  f.srcNdStride = rows.srcNdStride;
  f.dstNdStride = rows.dstNdStride;
  f.reluEn = p.reluEn;
  f.unitFlag = p.unitFlag;
  return f;
}
template <typename T>
ASCENDC_INLINE vnpu::Outgoing outgoing_of(const DataCopyCO12DstParams& p) {
  const vnpu::OutgoingRegisters r = vnpu::outgoing_registers();
  if (p.clipReluPre != 0 || p.eltWiseOp != 0)
    vnpu::unsupported("DataCopy", "clipReluPre and eltWiseOp don't exist on architecture 2201");
  FixpipeParamsV220 f(p.nSize, p.mSize, p.srcStride, p.dstStride, p.reluPre != 0);
  f.quantPre = p.quantPre;
  f.deqScalar = r.word;
  f.ndNum = static_cast<uint16_t>(r.matrices);
  f.srcNdStride = static_cast<uint16_t>(r.src_stride_tiles);
  f.dstNdStride = static_cast<uint16_t>(r.dst_stride);
  f.unitFlag = p.unitFlag;
  f.isChannelSplit = p.channelSplit;
  return outgoing_of<T>(f, p.nz2ndEn);
}
// Words for each column, from L1 to the begin of the outgoing pipe's table.
ASCENDC_INLINE void bring_words(const LocalTensor<uint64_t>& words, uint32_t columns) {
  vnpu::TableCopy t;
  t.bytes = (uint64_t(columns) * 8 + 127) / 128 * 128;
  void* table = vnpu::local_base(vnpu::Memory::FB);
  vnpu::copy_to_table(vnpu::Memory::FB, table, words.pointer_in(vnpu::Memory::L1), t, vnpu::DType::U64,
                      vnpu::DType::U64, "Fixpipe");
  vnpu::set_outgoing_words(table);
  vnpu::barrier(vnpu::Pipe::FIX);
}

}  // namespace detail

// ---- L0C -> GM ----
template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR>
ASCENDC_INLINE void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParamsV220& params) {
  static_assert(config.format != CO2Layout::COLUMN_MAJOR,
                "AscendC::Fixpipe: NZ2DN does not exist on architecture 2201");
  vnpu::Outgoing o = detail::outgoing_of<T>(params, config.format == CO2Layout::ROW_MAJOR);
  o.cached = dst.IsCached();
  vnpu::order_within(vnpu::Pipe::FIX);  // Fixpipe to global memory begins with it (asc-devkit, fixpipe_v2_impl.h)
  vnpu::bring_out(dst.pointer(), src.pointer_in(vnpu::Memory::L0C), o, vnpu::dtype_of<U>(), vnpu::dtype_of<T>(),
                  "Fixpipe");
}
// With words, but of a way of quantization that takes none, Fixpipe does nothing (asc-devkit, fixpipe_v2_impl.h).
namespace detail {
constexpr bool takes_words(QuantMode_t q) { return q == VDEQF16 || q == VQF322B8_PRE || q == VREQ8; }
}  // namespace detail
template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR>
ASCENDC_INLINE void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src,
                            const LocalTensor<uint64_t>& cbufWorkspace, const FixpipeParamsV220& params) {
  if (!detail::takes_words(params.quantPre)) return;
  detail::bring_words(cbufWorkspace, params.nSize);
  Fixpipe<T, U, config>(dst, src, params);
}
template <typename T, typename U, typename S>
ASCENDC_INLINE void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParams<S>& params) {
  const FixpipeParamsV220 f = detail::newer_params(params, sizeof(T));
  params.nz2ndParams.nz2ndEn ? Fixpipe<T, U, CFG_ROW_MAJOR>(dst, src, f) : Fixpipe<T, U, CFG_NZ>(dst, src, f);
}
template <typename T, typename U, typename W, typename S>
ASCENDC_INLINE void Fixpipe(const GlobalTensor<T>& dst, const LocalTensor<U>& src, const LocalTensor<W>& cbufWorkspace,
                            const FixpipeParams<S>& params) {
  if (detail::takes_words(params.quantParams.quantPre))
    detail::bring_words(cbufWorkspace.template ReinterpretCast<uint64_t>(),
                        detail::newer_params(params, sizeof(T)).nSize);
  Fixpipe(dst, src, params);
}
template <typename T, typename U>
ASCENDC_INLINE void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<U>& src,
                             const DataCopyCO12DstParams& params) {
  vnpu::Outgoing o = detail::outgoing_of<T>(params);
  o.cached = dst.IsCached();
  vnpu::bring_out(dst.pointer(), src.pointer_in(vnpu::Memory::L0C), o, vnpu::dtype_of<U>(), vnpu::dtype_of<T>(),
                  "DataCopy");
}

// ---- L0C -> L1 ----
template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR>
ASCENDC_INLINE void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParamsV220& params) {
  static_assert(config.format == CO2Layout::NZ, "AscendC::Fixpipe to L1: only CFG_NZ on architecture 2201");
  vnpu::bring_to_l1(dst.pointer_in(vnpu::Memory::L1), src.pointer_in(vnpu::Memory::L0C),
                    detail::outgoing_of<T>(params, false), vnpu::dtype_of<U>(), vnpu::dtype_of<T>(), "Fixpipe");
}
template <typename T, typename U, const FixpipeConfig& config = CFG_ROW_MAJOR>
ASCENDC_INLINE void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src,
                            const LocalTensor<uint64_t>& cbufWorkspace, const FixpipeParamsV220& params) {
  if (!detail::takes_words(params.quantPre)) return;
  detail::bring_words(cbufWorkspace, params.nSize);
  Fixpipe<T, U, config>(dst, src, params);
}
template <typename T, typename U, typename S>
ASCENDC_INLINE void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src, const FixpipeParams<S>& params) {
  if (params.nz2ndParams.nz2ndEn) vnpu::unsupported("Fixpipe", "to L1 tiles alone can be brought, not rows (nz2ndEn)");
  Fixpipe<T, U, CFG_NZ>(dst, src, detail::newer_params(params, sizeof(T)));
}
template <typename T, typename U, typename W, typename S>
ASCENDC_INLINE void Fixpipe(const LocalTensor<T>& dst, const LocalTensor<U>& src, const LocalTensor<W>& cbufWorkspace,
                            const FixpipeParams<S>& params) {
  if (detail::takes_words(params.quantParams.quantPre))
    detail::bring_words(cbufWorkspace.template ReinterpretCast<uint64_t>(),
                        detail::newer_params(params, sizeof(T)).nSize);
  Fixpipe(dst, src, params);
}
template <typename T, typename U>
ASCENDC_INLINE void DataCopy(const LocalTensor<T>& dst, const LocalTensor<U>& src,
                             const DataCopyCO12DstParams& params) {
  vnpu::bring_to_l1(dst.pointer_in(vnpu::Memory::L1), src.pointer_in(vnpu::Memory::L0C), detail::outgoing_of<T>(params),
                    vnpu::dtype_of<U>(), vnpu::dtype_of<T>(), "DataCopy");
}

// ---- registers ----
template <typename T>
ASCENDC_INLINE void SetFixPipeConfig(const LocalTensor<T>&, const LocalTensor<T>& quantPre, bool isUnitFlag = false) {
  if (isUnitFlag) vnpu::clear_unit_flags();
  vnpu::set_outgoing_words(quantPre.pointer());
}
template <typename T, bool setRelu = false>
ASCENDC_INLINE void SetFixPipeConfig(const LocalTensor<T>& preData, bool isUnitFlag = false) {
  static_assert(!setRelu, "AscendC::SetFixPipeConfig: setRelu has to be false on architecture 2201");
  if (isUnitFlag) vnpu::clear_unit_flags();
  if (preData.position() == TPosition::C2PIPE2GM) vnpu::set_outgoing_words(preData.pointer());
}
// What code written before there was a public form calls.
template <typename T, bool setRelu = false>
ASCENDC_INLINE void SetFixPipeConfigImpl(const LocalTensor<T>& pre, bool isUnitFlag = false) {
  SetFixPipeConfig<T, setRelu>(pre, isUnitFlag);
}
ASCENDC_INLINE void SetFixpipeNz2ndFlag(uint16_t ndNum, uint16_t srcNdStride, uint16_t dstNdStride) {
  vnpu::set_outgoing_matrices(ndNum, srcNdStride, dstNdStride);
}
ASCENDC_INLINE void SetNdParaImpl(uint64_t config) {  // the same as one word, by its inner name
  SetFixpipeNz2ndFlag(static_cast<uint16_t>(config), static_cast<uint16_t>(config >> 16),
                      static_cast<uint16_t>(config >> 32));
}
ASCENDC_INLINE void SetFixpipePreQuantFlag(uint64_t config) { vnpu::set_outgoing_word(config); }

}  // namespace AscendC
