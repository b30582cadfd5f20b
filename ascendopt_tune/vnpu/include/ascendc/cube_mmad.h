// Cube cores: the matrix product (AscendC reference, Mmad).
#pragma once
#include "tensor.h"
#include "vnpu/cube.h"

namespace AscendC {

// Values of unitFlag by the names that CANN's compiler has for them: set, and set for the last time.
constexpr uint8_t UFMode2 = 2, UFMode3 = 3;

struct MmadParams {
  MmadParams() = default;
  MmadParams(uint16_t mIn, uint16_t nIn, uint16_t kIn, bool isBiasIn, int32_t offset, bool sparse, bool winogradA,
             bool winogradB)
      : m(mIn),
        n(nIn),
        k(kIn),
        isBias(isBiasIn),
        fmOffset(offset),
        enSsparse(sparse),
        enWinogradA(winogradA),
        enWinogradB(winogradB) {}
  MmadParams(uint16_t mIn, uint16_t nIn, uint16_t kIn, uint8_t flag, bool source, bool initial)
      : m(mIn), n(nIn), k(kIn), unitFlag(flag), cmatrixSource(source), cmatrixInitVal(initial) {}
  uint16_t m = 0, n = 0, k = 0;
  bool isBias = false;  // older: C is added to
  int32_t fmOffset = 0;
  bool enSsparse = false, enWinogradA = false, enWinogradB = false;
  int8_t unitFlag = 0;
  bool kDirectionAlign = false;
  bool cmatrixSource = false;  // with cmatrixInitVal false: from the table of biases
  bool cmatrixInitVal = true;
};

namespace detail {
template <typename T, typename U, typename S>
constexpr bool multiplies() {
  constexpr bool floats = std::is_same_v<U, half> || std::is_same_v<U, bfloat16_t> || std::is_same_v<U, float>;
  constexpr bool integers = std::is_same_v<U, int8_t> || std::is_same_v<U, int4b_t>;
  return std::is_same_v<U, S> && (floats ? std::is_same_v<T, float> : integers && std::is_same_v<T, int32_t>);
}
ASCENDC_INLINE vnpu::Product product_of(const MmadParams& p, vnpu::Product::Start start) {
  vnpu::Product out;
  out.m = p.m;
  out.n = p.n;
  out.k = p.k;
  out.start = start;
  out.unit_flag = static_cast<uint8_t>(p.unitFlag);
  out.pairs_of_columns = p.kDirectionAlign;
  return out;
}
}  // namespace detail

// Limit of Mmad: half, bfloat16_t, float to float, int8_t, int4b_t to int32_t; a tensor of biases not with int4b_t.
template <typename T, typename U, typename S>
ASCENDC_INLINE void Mmad(const LocalTensor<T>& dst, const LocalTensor<U>& fm, const LocalTensor<S>& filter,
                         const MmadParams& params) {
  // CANN compiles it for 2201, too; files for several architectures have it behind a question.
  constexpr bool of_others = std::is_same_v<T, half> && std::is_same_v<U, half> && std::is_same_v<S, half>;
  static_assert(detail::multiplies<T, U, S>() || of_others,
                "AscendC::Mmad of these types is not covered by the virtual NPU, or not on architecture 2201");
  if (of_others) vnpu::misuse("Mmad", "half to half is not on architecture 2201");
  using Start = vnpu::Product::Start;
  const bool zero = params.cmatrixInitVal && !params.isBias;
  const Start start = zero ? Start::Zero : params.cmatrixSource ? Start::Bias : Start::Old;
  vnpu::multiply(dst.pointer_in(vnpu::Memory::L0C), fm.pointer_in(vnpu::Memory::L0A),
                 filter.pointer_in(vnpu::Memory::L0B), nullptr, detail::product_of(params, start), vnpu::dtype_of<U>(),
                 vnpu::dtype_of<T>(), "Mmad");
}
// The bias decides by its position where C begins: in the table of biases, or at what C held.
template <typename T, typename U, typename S, typename V>
ASCENDC_INLINE void Mmad(const LocalTensor<T>& dst, const LocalTensor<U>& fm, const LocalTensor<S>& filter,
                         const LocalTensor<V>& bias, const MmadParams& params) {
  static_assert(detail::multiplies<T, U, S>() && std::is_same_v<T, V> && !std::is_same_v<U, int4b_t>,
                "AscendC::Mmad of these types is not covered by the virtual NPU, or not on architecture 2201");
  using Start = vnpu::Product::Start;
  const bool table = bias.position() == TPosition::C2;
  if (!table && bias.pointer_in(vnpu::Memory::L0C) != dst.pointer_in(vnpu::Memory::L0C))
    vnpu::misuse("Mmad", "a bias has to be in the table of biases (TPosition::C2)");
  const Start start = params.cmatrixInitVal ? Start::Zero : table ? Start::Bias : Start::Old;
  vnpu::multiply(dst.pointer_in(vnpu::Memory::L0C), fm.pointer_in(vnpu::Memory::L0A),
                 filter.pointer_in(vnpu::Memory::L0B), table ? bias.pointer() : nullptr,
                 detail::product_of(params, start), vnpu::dtype_of<U>(), vnpu::dtype_of<T>(), "Mmad");
}

// B has two in four elements along k, brought by LoadDataWithSparse; one row of A is no vector.
template <typename T, typename U>
ASCENDC_INLINE void MmadWithSparse(const LocalTensor<T>& dst, const LocalTensor<U>& fm, const LocalTensor<U>& filter,
                                   const MmadParams& params) {
  static_assert(std::is_same_v<T, int32_t> && std::is_same_v<U, int8_t>,
                "AscendC::MmadWithSparse takes int8_t, to int32_t");
  using Start = vnpu::Product::Start;
  const bool zero = params.cmatrixInitVal && !params.isBias;
  vnpu::Product p = detail::product_of(params, zero ? Start::Zero : params.cmatrixSource ? Start::Bias : Start::Old);
  p.sparse = true;
  vnpu::multiply(dst.pointer_in(vnpu::Memory::L0C), fm.pointer_in(vnpu::Memory::L0A),
                 filter.pointer_in(vnpu::Memory::L0B), nullptr, p, vnpu::DType::I8, vnpu::DType::I32, "MmadWithSparse");
}

// In which order the tiles of C are made: values are the same; unit flags hand them over in this order.
ASCENDC_INLINE void SetMMRowMajor() { vnpu::set_rows_first(true); }
ASCENDC_INLINE void SetMMColumnMajor() { vnpu::set_rows_first(false); }
ASCENDC_INLINE void SetMMLayoutTransform(bool mmLayoutMode) { vnpu::set_rows_first(mmLayoutMode); }  // their older name

// ---- HF32: float inputs are rounded before they are multiplied ----
enum class HF32Mode { ENABLE, DISABLE };
enum class HF32TransMode { NEAREST_ZERO, NEAREST_EVEN };
ASCENDC_INLINE void SetHF32Mode(bool hf32Mode) { vnpu::set_short_floats(hf32Mode); }
ASCENDC_INLINE void SetHF32Mode(HF32Mode mode) { vnpu::set_short_floats(mode == HF32Mode::ENABLE); }
ASCENDC_INLINE void SetHF32TransMode(bool hf32TransMode) { vnpu::set_short_ties_to_zero(hf32TransMode); }
ASCENDC_INLINE void SetHF32TransMode(HF32TransMode mode) {
  vnpu::set_short_ties_to_zero(mode == HF32TransMode::NEAREST_ZERO);
}

}  // namespace AscendC

// The compiler's own names for the register that the functions above change bit by bit.
ASCENDC_INLINE int64_t get_ctrl() { return static_cast<int64_t>(vnpu::control_register()); }
ASCENDC_INLINE void set_ctrl(uint64_t config) { vnpu::set_control_register(config, "set_ctrl"); }
ASCENDC_INLINE uint64_t sbitset0(uint64_t x, int64_t bit) { return x & ~(uint64_t{1} << bit); }
ASCENDC_INLINE uint64_t sbitset1(uint64_t x, int64_t bit) { return x | uint64_t{1} << bit; }
