// Comparison and selection. Data types: AscendC reference, tables of Atlas A2; 128 (half) or 64 elements a cycle, one
// repeat a cycle: theoretical throughput table, arch 2201.
#include "vnpu/compare.h"

#include <string>

#include "composite.h"
#include "elementwise.h"
#include "local_call.h"

namespace vnpu {
namespace {

template <typename C>
bool holds(CompareMode mode, C x, C y) {
  switch (mode) {
    case CompareMode::LT:
      return x < y;
    case CompareMode::GT:
      return x > y;
    case CompareMode::EQ:
      return x == y;
    case CompareMode::LE:
      return x <= y;
    case CompareMode::GE:
      return x >= y;
    case CompareMode::NE:
      return !(x == y);
  }
  return false;
}

// Eight results a byte, first lane in the lowest bit.
void pack_flags(const uint8_t* flags, uint32_t n, uint8_t* bytes) {
  for (uint32_t i = 0; i + 8 <= n; i += 8) {
    uint64_t eight;
    std::memcpy(&eight, flags + i, 8);
    bytes[i / 8] = static_cast<uint8_t>(eight * 0x0102040810204080ull >> 56);
  }
}

// f(mode as a constant), so that the loops below vectorize.
template <typename F>
void with_mode(CompareMode mode, F f) {
  switch (mode) {
    case CompareMode::LT:
      return f(std::integral_constant<CompareMode, CompareMode::LT>());
    case CompareMode::GT:
      return f(std::integral_constant<CompareMode, CompareMode::GT>());
    case CompareMode::EQ:
      return f(std::integral_constant<CompareMode, CompareMode::EQ>());
    case CompareMode::LE:
      return f(std::integral_constant<CompareMode, CompareMode::LE>());
    case CompareMode::GE:
      return f(std::integral_constant<CompareMode, CompareMode::GE>());
    case CompareMode::NE:
      return f(std::integral_constant<CompareMode, CompareMode::NE>());
  }
}

// Lanes of a comparison: every lane of whole repeats, whatever the mask says.
Lanes whole_repeats(const Lanes& lanes, uint32_t per_repeat) {
  Lanes whole;
  bool counted = lanes.count || (lanes.use_set_mask && core().counter_mode);
  uint32_t count = lanes.count ? lanes.count : static_cast<uint32_t>(core().mask[0]);
  if (counted)
    whole.count = count / per_repeat * per_repeat;
  else
    whole.repeat = lanes.repeat;
  whole.mask[0] = whole.mask[1] = ~0ull;
  return whole;
}

// Operands of one repeat, as flags.
template <typename T>
void flags_of(CompareMode mode, uint8_t* flags, uint32_t n, const compute_t<T>* x, const compute_t<T>* y) {
  with_mode(mode, [&](auto m) {
    for (uint32_t i = 0; i < n; i++) flags[i] = holds<compute_t<T>>(decltype(m)::value, x[i], y[i]);
  });
}

template <typename T>
void gather_repeat(const Operand& o, uint32_t r, uint32_t n, compute_t<T>* out) {
  for (uint32_t l = 0; l < n; l++) out[l] = static_cast<compute_t<T>>(*VectorCall::at<T>(o, r, l));
}

template <typename T>
void compare_repeats(uint8_t* dst, const Operand& a, const Operand* b, const Scalar& scalar, CompareMode mode,
                     uint32_t repeats, bool gapless) {
  constexpr uint32_t n = kRepeatBytes / sizeof(T);
  using C = compute_t<T>;
  C x[n], y[n];
  uint8_t flags[n];
  if (!b)
    for (C& v : y) v = std::is_integral_v<C> ? static_cast<C>(scalar.i) : static_cast<C>(scalar.f);
  for (uint32_t r = 0; r < repeats; r++) {
    if (gapless) {
      detail::load(static_cast<const T*>(a.ptr) + uint64_t(r) * n, x, n, true);
      if (b) detail::load(static_cast<const T*>(b->ptr) + uint64_t(r) * n, y, n, true);
    } else {
      gather_repeat<T>(a, r, n, x);
      if (b) gather_repeat<T>(*b, r, n, y);
    }
    flags_of<T>(mode, flags, n, x, y);
    pack_flags(flags, n, dst + r * (n / 8));
  }
}

void compare_any(void* dst, const Operand& a, const Operand* b, const Scalar& scalar, CompareMode mode,
                 const Lanes& lanes, const char* api, const void* pc) {
  if (a.dtype != DType::F32 && a.dtype != DType::F16 && !(a.dtype == DType::I32 && mode == CompareMode::EQ)) {
    if (a.dtype == DType::I32)
      throw KernelError(KernelError::kUnsupported,
                        std::string(api) + " of int32_t takes CMPMODE::EQ only on architecture 2201", api, pc);
    unsupported_dtype(api, a.dtype, pc);
  }
  const uint32_t per_repeat = kRepeatBytes / dtype_size(a.dtype);
  const Lanes whole = whole_repeats(lanes, per_repeat);
  if (whole.count == 0 && whole.repeat == 0) return;
  VectorCall call(whole, api, pc);
  call.operand(a, false, b ? "first source" : "source");
  if (b) call.operand(*b, false, "second source");
  const uint32_t repeats = call.repeats();
  call.touch(dst, uint64_t(repeats) * per_repeat / 8, true, "destination");
  auto natural = [](const Operand& o) { return o.blk_stride == 1 && o.rep_stride == 8; };
  const bool gapless = natural(a) && (!b || natural(*b));
  auto* bits = static_cast<uint8_t*>(dst);
  if (a.dtype == DType::F32)
    compare_repeats<float>(bits, a, b, scalar, mode, repeats, gapless);
  else if (a.dtype == DType::F16)
    compare_repeats<f16>(bits, a, b, scalar, mode, repeats, gapless);
  else
    compare_repeats<int32_t>(bits, a, b, scalar, mode, repeats, gapless);
  call.issue();  // no mask is set, whatever the form (dav_c220, VcmpvImpl)
}

// out[i] = bit i of `bits` ? a[i] : b[i]. T is a type of the element's size: selection moves bits.
template <typename T>
void blend(T* out, const uint8_t* bits, const T* a, const T* b, uint32_t n) {
  for (uint32_t i = 0; i < n; i += 8)
    for (uint32_t k = 0; k < 8; k++) {
      const T mask = static_cast<T>(-static_cast<T>(bits[i / 8] >> k & 1));
      out[i + k] = static_cast<T>((a[i + k] & mask) | (b[i + k] & ~mask));
    }
}

bool adjacent(const Operand& o) { return o.blk_stride == 1; }

// The first lanes of repeat r.
template <typename T>
void fetch(const Operand& o, uint32_t r, uint32_t lanes, T* to) {
  if (adjacent(o))
    std::memcpy(to, VectorCall::at<T>(o, r, 0), lanes * sizeof(T));
  else
    for (uint32_t l = 0; l < lanes; l++) to[l] = *VectorCall::at<T>(o, r, l);
}

template <typename T>
void select_lanes(const VectorCall& call, const Operand& d, const uint8_t* bits, bool same_bits, const Operand& a,
                  const Operand* b, T scalar) {
  constexpr uint32_t per_repeat = kRepeatBytes / sizeof(T);
  T x[per_repeat] = {}, y[per_repeat] = {}, out[per_repeat];
  if (!b) std::fill_n(y, per_repeat, scalar);
  const bool all = call.all_enabled();
  for (uint32_t r = 0, n = call.repeats(); r < n; r++) {
    const uint32_t lanes = call.contiguous() ? std::min(per_repeat, call.count() - r * per_repeat) : per_repeat;
    uint8_t chosen[per_repeat / 8] = {};
    std::memcpy(chosen, bits + (same_bits ? 0 : uint64_t(r) * per_repeat / 8), (lanes + 7) / 8);
    fetch(a, r, lanes, x);
    if (b) fetch(*b, r, lanes, y);
    blend(out, chosen, x, y, per_repeat);
    if (all && adjacent(d)) {
      std::memcpy(VectorCall::at<T>(d, r, 0), out, lanes * sizeof(T));
      continue;
    }
    for (uint32_t l = 0; l < lanes; l++)
      if (call.contiguous() || call.enabled(l)) *VectorCall::at<T>(d, r, l) = out[l];
  }
}

void select_any(const Operand& d, const void* bits, const Operand& a, const Operand* b, uint64_t scalar,
                const Lanes& lanes, const void* pc) {
  const char* api = "Select";
  if (d.dtype != DType::F32 && d.dtype != DType::F16) unsupported_dtype(api, d.dtype, pc);
  VectorCall call(lanes, api, pc);
  call.operand(d, true, "destination");
  call.operand(a, false, "first source");
  if (b) call.operand(*b, false, "second source");
  const uint32_t per_repeat = call.lanes_per_repeat();
  if (bits) {
    uint64_t used = call.contiguous() ? call.count() : uint64_t(call.repeats()) * per_repeat;
    call.touch(bits, (used + 7) / 8, false, "selection mask");
  }
  const auto* from = bits ? static_cast<const uint8_t*>(bits) : reinterpret_cast<uint8_t*>(call.core().compare_mask);
  if (d.dtype == DType::F32)
    select_lanes<uint32_t>(call, d, from, !bits, a, b, static_cast<uint32_t>(scalar));
  else
    select_lanes<uint16_t>(call, d, from, !bits, a, b, static_cast<uint16_t>(scalar));
  call.issue();
  leave_mask(lanes);
}

uint64_t scalar_bits(DType t, const Scalar& s) {
  float v = static_cast<float>(s.f);
  return t == DType::F16 ? float_to_half(v) : float_to_bits(v);
}

}  // namespace

void compare(void* dst, const Operand& src0, const Operand& src1, CompareMode mode, const Lanes& lanes,
             const char* api) {
  compare_any(dst, src0, &src1, {}, mode, lanes, api, VNPU_PC);
}
void compare_scalar(void* dst, const Operand& src, const Scalar& scalar, CompareMode mode, const Lanes& lanes,
                    const char* api) {
  compare_any(dst, src, nullptr, scalar, mode, lanes, api, VNPU_PC);
}

void compare_to_register(const Operand& src0, const Operand& src1, CompareMode mode, const Lanes& lanes) {
  const void* pc = VNPU_PC;
  const char* api = "Compare";
  VectorCall call(lanes, api, pc);
  call.operand(src0, false, "first source");
  call.operand(src1, false, "second source");
  auto run = [&](auto tag) {
    using T = decltype(tag);
    for (uint32_t l = 0; l < call.lanes_per_repeat(); l++) {
      if (call.contiguous() ? l >= call.count() : !call.enabled(l)) continue;
      bool set = holds<float>(mode, *VectorCall::at<T>(src0, 0, l), *VectorCall::at<T>(src1, 0, l));
      uint64_t& word = call.core().compare_mask[l / 64];
      word = (word & ~(1ull << l % 64)) | static_cast<uint64_t>(set) << l % 64;
    }
  };
  if (src0.dtype == DType::F32)
    run(float());
  else if (src0.dtype == DType::F16)
    run(f16());
  else
    unsupported_dtype(api, src0.dtype, pc);
  call.issue();
  leave_mask(lanes);
}

void read_compare_mask(void* dst) {
  LocalCall call("GetCmpMask", VNPU_PC);
  call.write(dst, sizeof(Core::compare_mask), "destination", 16);
  std::memcpy(dst, call.core.compare_mask, sizeof(Core::compare_mask));
  call.issue("GetCmpMask", DType::None, 1);
}
void write_compare_mask(const void* src) {
  LocalCall call("SetCmpMask", VNPU_PC);
  call.read(src, sizeof(Core::compare_mask), "source", 16);
  std::memcpy(call.core.compare_mask, src, sizeof(Core::compare_mask));
  call.issue("SetCmpMask", DType::None, 1);
}

namespace {

// What lies in that part of the Unified Buffer is lost: 32 elements, as many as the device fills (TMP_UB_OFFSET of
// kernel_utils_constants.h, which is 8 KB from its end).
template <typename T>
void fill_reserved(T value, const Lanes& lanes, const void* pc) {
  constexpr uint32_t kReserved = 8192, kElements = 32;
  LocalCall call("Select", pc);
  call.require(!call.core.counter_mode || (lanes.count && lanes.repeat == 0),
               "in counter mode the form with a mask fills local memory beyond its end first; use the form with count");
  const Region& ub = call.core.map[Memory::UB];
  T* to = reinterpret_cast<T*>(call.core.local() + ub.offset + ub.bytes - kReserved);
  std::fill_n(to, kElements, value);
  const Range range{reinterpret_cast<uint64_t>(to), kElements * sizeof(T), 1, 0};
  if (call.core.unwritten.on()) {
    call.core.unwritten.forget(range);
    call.core.unwritten.write(range, call.core.unwritten.origin_of({Pipe::V, call.api, pc, false}, range));
  }
  call.core.issue(Pipe::V, call.api, pc, Work{call.core.chip.instruction("Duplicate", DType::None), 1, 1, 0},
                  {{range, true, false, false, 0}});
  call.core.barrier(Pipe::V);
  std::memcpy(call.core.compare_mask, to, sizeof(Core::compare_mask));
  call.core.issue(Pipe::V, call.api, pc, Work{call.core.chip.instruction("SetCmpMask", DType::None), 1, 1, 0},
                  {{range, false, false, false, 0}});
  call.core.barrier(Pipe::V);
}

}  // namespace

void prepare_select(const void* bits, const Lanes& lanes) { fill_reserved(core().local_offset(bits), lanes, VNPU_PC); }
void prepare_select_scalar(const Scalar& scalar, DType dtype, const Lanes& lanes) {
  const uint64_t bits = scalar_bits(dtype, scalar);
  if (dtype_size(dtype) == 2)
    fill_reserved(static_cast<uint16_t>(bits), lanes, VNPU_PC);
  else
    fill_reserved(static_cast<uint32_t>(bits), lanes, VNPU_PC);
}

void select(const Operand& dst, const void* bits, const Operand& src0, const Operand& src1, const Lanes& lanes) {
  select_any(dst, bits, src0, &src1, 0, lanes, VNPU_PC);
}
void select_scalar(const Operand& dst, const void* bits, const Operand& src0, const Scalar& src1, const Lanes& lanes) {
  select_any(dst, bits, src0, nullptr, scalar_bits(dst.dtype, src1), lanes, VNPU_PC);
}
void select_register(const Operand& dst, const void* bits, const Operand& src0, const Lanes& lanes) {
  select_any(dst, bits, src0, nullptr, core().compare_mask[0], lanes, VNPU_PC);
}

void select_bytes(const Operand& dst, const Operand& src, const Scalar& scalar, const BytesMask& form) {
  LocalCall call("SelectWithBytesMask", VNPU_PC);
  if (dst.dtype != DType::F32 && dst.dtype != DType::F16) unsupported_dtype(call.api, dst.dtype, call.pc);
  const uint32_t size = dtype_size(dst.dtype), mask_size = dtype_size(form.mask_dtype);
  call.require(form.src_last * size % kBlockBytes == 0, "srcLastAxis must be a multiple of 32 bytes");
  call.require(form.mask_last * mask_size % kBlockBytes == 0 && form.mask_last % 16 == 0,
               "maskLastAxis must be a multiple of 32 bytes and of 16 elements");
  call.require(form.mask_last >= form.src_last, "maskLastAxis must not be below srcLastAxis");
  const uint64_t n = uint64_t(form.rows) * form.src_last;
  call.read(src.ptr, n * size, "source");
  call.read(form.mask, uint64_t(form.rows) * form.mask_last * mask_size, "mask");
  call.write(const_cast<void*>(form.shared), form.shared_bytes, "temporary buffer");
  call.write(dst.ptr, n * size, "destination");
  const uint64_t value = scalar_bits(dst.dtype, scalar);
  for (uint32_t row = 0; row < form.rows; row++)
    for (uint32_t i = 0; i < form.src_last; i++) {
      const auto* m = static_cast<const uint8_t*>(form.mask) + (uint64_t(row) * form.mask_last + i) * mask_size;
      bool zero = std::all_of(m, m + mask_size, [](uint8_t b) { return b == 0; });
      uint64_t at = (uint64_t(row) * form.src_last + i) * size;
      if (zero == form.scalar_where_zero)
        std::memcpy(static_cast<uint8_t*>(dst.ptr) + at, &value, size);
      else
        std::memmove(static_cast<uint8_t*>(dst.ptr) + at, static_cast<const uint8_t*>(src.ptr) + at, size);
    }
  // Mask to half, compare with zero, select: about 1.5 repeats a repeat of half and two more heads (an estimate).
  const double repeats = static_cast<double>(n) * size / kRepeatBytes;
  Composite cost(call.core);
  cost.add_heads("Cast", 1, repeats);
  cost.add_heads("CompareScalar", 1, repeats);
  cost.add_heads("Select", 1, 1.5 * repeats);
  call.issue(cost.work());
}

}  // namespace vnpu
