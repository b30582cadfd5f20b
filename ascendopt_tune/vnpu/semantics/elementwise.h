// Walking the lanes of an elementwise instruction: the loops under Add, Muls, Exp, Cast, Select, ...
//
// A repeat reads all of its lanes before it writes any, as the vector unit does; that is what the copies below are for
// when operands overlap. Operands that are one and the same need none.
#pragma once
#include "../core/vector.h"
#include "float16.h"

#if defined(__clang__)
#define VNPU_NO_CARRIED_DEPENDENCE _Pragma("clang loop vectorize(assume_safety)")
#else
#define VNPU_NO_CARRIED_DEPENDENCE _Pragma("GCC ivdep")
#endif

namespace vnpu {

// What a lane computes in: half and bfloat16 in float, everything else in itself.
template <typename T>
struct Compute {
  using Type = T;
};
template <>
struct Compute<f16> {
  using Type = float;
};
template <>
struct Compute<bf16> {
  using Type = float;
};
template <typename T>
using compute_t = typename Compute<T>::Type;
template <typename T>
constexpr bool is_native = std::is_same_v<compute_t<T>, T>;

// Max and Min: NaN wins over any number (IEEE 754-2019 maximum), as the reference frameworks have it; the AscendC
// reference says nothing.
template <typename C>
C maximum(C x, C y) {
  if constexpr (std::is_floating_point_v<C>)
    return x > y || x != x ? x : y;
  else
    return x > y ? x : y;
}
template <typename C>
C minimum(C x, C y) {
  if constexpr (std::is_floating_point_v<C>)
    return x < y || x != x ? x : y;
  else
    return x < y ? x : y;
}

namespace detail {

constexpr uint32_t kChunk = 256;  // lanes converted at a time; no repeat has more

template <typename T>
struct Buffer {
  Buffer() {}  // not initialized
  compute_t<T> lanes[kChunk];
};

template <typename T>
const compute_t<T>* load(const T* p, compute_t<T>* buffer, uint32_t n, bool copy) {
  if constexpr (!is_native<T>) {
    widen(p, buffer, n);
    return buffer;
  } else {
    if (!copy) return p;
    std::memcpy(buffer, p, n * sizeof(T));
    return buffer;
  }
}

template <typename C, typename F, typename... A>
inline void compute(uint32_t n, F f, C* out, const A*... in) {
  VNPU_NO_CARRIED_DEPENDENCE
  for (uint32_t i = 0; i < n; i++) out[i] = static_cast<C>(f(in[i]...));
}

// Partial overlap; the same run of bytes is not one.
template <typename D, typename S>
bool overlaps(const D* d, const S* s, uint32_t n) {
  auto a = reinterpret_cast<uintptr_t>(d), b = reinterpret_cast<uintptr_t>(s);
  if (a == b && sizeof(D) == sizeof(S)) return false;
  return a < b + n * sizeof(S) && b < a + n * sizeof(D);
}

// n lanes that follow each other, `per_repeat` of them at a time when operands overlap.
template <typename F, typename D, typename... S>
void run(uint32_t n, uint32_t per_repeat, F f, D* d, const S*... s) {
  bool copy = (overlaps(d, s, n) || ...);
  uint32_t step = copy ? per_repeat : kChunk;
  for (uint32_t i = 0; i < n; i += step) {
    uint32_t m = std::min(step, n - i);
    if constexpr (is_native<D>) {
      compute(m, f, d + i, load(s + i, Buffer<S>().lanes, m, copy)...);
    } else {
      Buffer<D> out;
      compute(m, f, out.lanes, load(s + i, Buffer<S>().lanes, m, copy)...);
      narrow(out.lanes, d + i, m);
    }
  }
}

template <typename D, typename C>
void store(D& d, C value) {
  d = static_cast<compute_t<D>>(value);
}

// Whether the repeats of an operand of `T` follow each other without a gap.
template <typename T>
bool gapless(const Operand& o, uint32_t per_repeat) {
  return o.blk_stride == 1 && o.rep_stride * kBlockBytes == per_repeat * sizeof(T);
}

}  // namespace detail

namespace detail {

// How many lanes, from the first on, are all that is enabled of a repeat; 0 when there are holes.
inline uint32_t enabled_prefix(const VectorCall& call) {
  const uint32_t per_repeat = call.lanes_per_repeat();
  if (call.contiguous()) return per_repeat;
  uint32_t prefix = 0;
  while (prefix < per_repeat && call.enabled(prefix)) prefix++;
  for (uint32_t l = prefix; l < per_repeat; l++)
    if (call.enabled(l)) return 0;
  return prefix;
}

// The first `lanes` lanes of repeat r: all at once where they follow each other in every operand, else by blocks of the
// widest type.
template <typename D, typename... S, typename F, typename... O>
void run_prefix(uint32_t r, uint32_t lanes, uint32_t per_repeat, F f, const Operand& d, const O&... s) {
  const bool adjacent = d.blk_stride == 1 && ((s.blk_stride == 1) && ...);
  const uint32_t step = adjacent ? per_repeat : kBlockBytes / std::max({sizeof(D), sizeof(S)...});
  for (uint32_t l = 0; l < lanes; l += step)
    run(std::min(step, lanes - l), per_repeat, f, VectorCall::at<D>(d, r, l), VectorCall::at<S>(s, r, l)...);
}

// The enabled ones among the first `lanes` lanes of repeat r, one by one.
template <typename D, typename... S, typename F, typename... O>
void run_enabled(const VectorCall& call, uint32_t r, uint32_t lanes, F f, const Operand& d, const O&... s) {
  for (uint32_t l = 0; l < lanes; l++)
    if (call.contiguous() || call.enabled(l))
      store(*VectorCall::at<D>(d, r, l), f(static_cast<compute_t<S>>(*VectorCall::at<S>(s, r, l))...));
}

}  // namespace detail

// destination lane = f(source lanes...) for every enabled lane. D and S are the element types of the operands; f takes
// and gives compute_t of them. In the count form (and in counter mode) operands keep their strides.
template <typename D, typename... S, typename F, typename... O>
void elementwise(const VectorCall& call, F f, const Operand& d, const O&... s) {
  static_assert(sizeof...(S) == sizeof...(O));
  const uint32_t per_repeat = call.lanes_per_repeat();
  auto first = [](const Operand& o, auto tag) { return static_cast<decltype(tag)*>(o.ptr); };
  if (call.contiguous() && detail::gapless<D>(d, per_repeat) && (detail::gapless<S>(s, per_repeat) && ...)) {
    detail::run(call.count(), per_repeat, f, first(d, D()), first(s, S())...);
    return;
  }
  const uint32_t prefix = detail::enabled_prefix(call);
  for (uint32_t r = 0, n = call.repeats(); r < n; r++) {
    const uint32_t lanes = call.contiguous() ? std::min(per_repeat, call.count() - r * per_repeat) : per_repeat;
    if (prefix)
      detail::run_prefix<D, S...>(r, std::min(lanes, prefix), per_repeat, f, d, s...);
    else
      detail::run_enabled<D, S...>(call, r, lanes, f, d, s...);
  }
}

// The mask register after an instruction that sets it: the count form leaves the default behind (AscendC reference,
// mask).
inline void leave_mask(const Lanes& lanes) {
  Core& c = core();
  if (lanes.use_set_mask) return;
  if (lanes.count && lanes.repeat == 0) {
    c.mask[0] = c.mask[1] = ~0ull;
    c.counter_mode = false;
  } else {
    c.mask[0] = lanes.count ? lanes.count : lanes.mask[0];
    c.mask[1] = lanes.count ? 0 : lanes.mask[1];
  }
}

}  // namespace vnpu
