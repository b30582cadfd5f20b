// CreateVecIndex and ArithProgression. There is no instruction for them (asc-devkit, dav_c220,
// kernel_operator_vec_createvecindex_impl.h and arithprogression_common_impl.h): the scalar unit stores the first
// block, waiting for nobody, and one Adds after another makes a block or a repeat of the one before it, each behind a
// barrier.
#include "vnpu/duplicate.h"

#include "elementwise.h"
#include "local_call.h"

namespace vnpu {
namespace {

constexpr uint32_t kBlocks = kBlocksPerRepeat;

Lanes first_lanes(uint64_t n) {
  Lanes l;
  l.repeat = 1;
  l.mask[0] = n >= 64 ? ~0ull : (1ull << n) - 1;
  l.mask[1] = n <= 64 ? 0 : n >= 128 ? ~0ull : (1ull << (n - 64)) - 1;
  return l;
}

// T: element, C: what it computes in.
template <typename T>
class Index {
 public:
  using C = compute_t<T>;
  static constexpr uint32_t kBlock = kBlockBytes / sizeof(T), kRepeat = kRepeatBytes / sizeof(T);

  Index(const Operand& dst, C first, C step, const char* api, const void* pc)
      : dst_(dst), first_(first), step_(step), call_(api, pc) {}

  void elements(uint32_t n) {
    stores(std::min(n, kBlock));
    ordered(Pipe::S, Pipe::V);
    if (n <= kBlock) return;
    const uint32_t in_repeat = std::min(n, kRepeat);
    for (uint32_t i = 1; i < in_repeat / kBlock; i++) block(i, kBlock);
    if (in_repeat % kBlock) block(in_repeat / kBlock, in_repeat % kBlock);
    if (n <= kRepeat) return;
    for (uint32_t i = 1; i < n / kRepeat; i++) repeat(i, first_lanes(kRepeat));
    if (n % kRepeat) repeat(n / kRepeat, first_lanes(n % kRepeat), false);
  }

  void lanes(uint64_t mask, uint32_t repeats) {
    if (mask == 0 || repeats == 0) return;
    call_.require(mask >= kBlock, "a mask of " + std::to_string(mask) + " lanes, less than a block of " +
                                      std::to_string(kBlock) + ", takes its values from the block before dst");
    call_.require(mask <= kRepeat, "a mask has at most " + std::to_string(kRepeat) + " lanes");
    stores(kBlock);
    ordered(Pipe::S, Pipe::V);
    for (uint32_t i = 1; i < mask / kBlock; i++) block(i, kBlock);
    if (mask % kBlock) block(static_cast<uint32_t>(mask) / kBlock, mask % kBlock);
    for (uint32_t i = 1; i < repeats; i++) repeat(i, first_lanes(mask));
  }

  void masked(const uint64_t mask[2], uint32_t repeats) {
    if (repeats == 0) return;
    Lanes l;
    l.repeat = 1;
    l.mask[0] = mask[0];
    l.mask[1] = kRepeat > 64 ? mask[1] : 0;
    for (uint32_t k = 0; k < kRepeat; k++)
      if (l.mask[k / 64] >> k % 64 & 1) store(k);
    ordered(Pipe::S, Pipe::V);
    for (uint32_t i = 1; i < repeats; i++) repeat(i, l);
  }

  // Whole blocks, and the mask register as the device leaves it.
  void progression(uint32_t n) {
    if (n <= kBlock) {
      ordered(Pipe::V, Pipe::S);
      stores(n);
      return ordered(Pipe::S, Pipe::V);
    }
    stores(kBlock);
    ordered(Pipe::S, Pipe::V);
    barrier();
    const uint32_t padded = (n + kBlock - 1) / kBlock * kBlock, rest = padded % kRepeat;
    for (uint32_t i = 1; i < std::min(padded / kBlock, kBlocks); i++) block(i, kBlock);
    if (n <= kRepeat) return;
    leave(first_lanes(2 * uint64_t(64)));
    barrier();
    for (uint32_t i = 1; i < n / kRepeat; i++) repeat(i, first_lanes(kRepeat));
    if (n % kRepeat == 0) return;
    barrier();
    repeat(n / kRepeat, first_lanes(rest ? rest : kRepeat));
  }

 private:
  void ordered(Pipe src, Pipe dst) { call_.order(src, dst); }
  void barrier() { call_.core.barrier(Pipe::V); }
  void leave(const Lanes& lanes) {
    call_.core.mask[0] = lanes.mask[0];
    call_.core.mask[1] = lanes.mask[1];
  }
  T* at(uint32_t lane) const { return VectorCall::at<T>(dst_, lane / kRepeat, lane % kRepeat); }
  void store(uint32_t k) {
    T value;
    value = static_cast<C>(first_ + static_cast<C>(k) * step_);
    call_.store(at(k), value);
  }
  void stores(uint32_t n) {
    for (uint32_t k = 0; k < n; k++) store(k);
  }
  // Block or repeat i: those before it, and as many steps.
  void block(uint32_t i, uint32_t n) { add(at(i * kBlock), at((i - 1) * kBlock), kBlock, first_lanes(n), true); }
  void repeat(uint32_t i, const Lanes& l, bool barrier = true) {
    add(at(i * kRepeat), at((i - 1) * kRepeat), kRepeat, l, barrier);
  }
  void add(T* to, T* from, uint32_t steps, const Lanes& l, bool ordered) {
    call_.require(!call_.core.counter_mode, "needs normal mode for more than a block");
    T by;
    by = static_cast<C>(static_cast<C>(steps) * step_);
    VectorCall call(l, call_.api, call_.pc);
    Operand d = dst_, s = dst_;
    d.ptr = to, s.ptr = from;
    d.rep_stride = s.rep_stride = kBlocks;
    call.operand(d, true, "destination");
    call.operand(s, false, "source");
    elementwise<T, T>(call, [v = static_cast<C>(by)](C x) { return static_cast<C>(x + v); }, d, s);
    call.issue(Work{call.core().chip.instruction("Adds", dst_.dtype), 1, 1, 0});
    leave(l);
    if (ordered) barrier();
  }

  const Operand dst_;
  const C first_, step_;
  LocalCall call_;
};

// f(index) for the type of `dst`.
template <typename F>
void with_index(const Operand& dst, const Scalar& first, const Scalar& step, const char* api, const void* pc, F f) {
  const auto real = [](const Scalar& s) { return static_cast<float>(s.f); };
  switch (dst.dtype) {
    case DType::F32:
      return f(Index<float>(dst, real(first), real(step), api, pc));
    case DType::F16:
      return f(Index<f16>(dst, real(first), real(step), api, pc));
    case DType::I32:
      return f(Index<int32_t>(dst, static_cast<int32_t>(first.i), static_cast<int32_t>(step.i), api, pc));
    case DType::I16:
      return f(Index<int16_t>(dst, static_cast<int16_t>(first.i), static_cast<int16_t>(step.i), api, pc));
    default:
      unsupported_dtype(api, dst.dtype, pc);
  }
}

constexpr const char* kIndex = "CreateVecIndex";

}  // namespace

void index_elements(const Operand& dst, const Scalar& first, uint32_t count) {
  with_index(dst, first, {1, 1}, kIndex, VNPU_PC, [&](auto index) {
    if (count) index.elements(count);
  });
}
void index_lanes(const Operand& dst, const Scalar& first, uint64_t lanes, uint32_t repeat) {
  with_index(dst, first, {1, 1}, kIndex, VNPU_PC, [&](auto index) { index.lanes(lanes, repeat); });
}
void index_masked(const Operand& dst, const Scalar& first, const uint64_t mask[2], uint32_t repeat) {
  with_index(dst, first, {1, 1}, kIndex, VNPU_PC, [&](auto index) { index.masked(mask, repeat); });
}
void progression(const Operand& dst, const Scalar& first, const Scalar& step, uint32_t count) {
  with_index(dst, first, step, "ArithProgression", VNPU_PC, [&](auto index) { index.progression(count); });
}

}  // namespace vnpu
