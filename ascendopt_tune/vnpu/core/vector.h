// Helpers for the bodies of vector instructions (semantics/): resolving lanes and operands, checking, cost, issue.
//
// A body computes values for every enabled lane at once and then calls VectorCall::issue, which reports what was
// touched and what it cost. Shape of a body:
//
//   VectorCall call(lanes, api, pc);
//   call.operand(dst, true); call.operand(src0, false);          // order: destination first
//   call.for_each<float, float>(dst, src0, [](float& d, float s) { d = s; });
//   call.issue();
#pragma once
#include <algorithm>
#include <cstring>

#include "vnpu/device.h"
#include "bank.h"
#include "machine.h"

namespace vnpu {

inline uint8_t* byte_at(void* p, uint64_t offset) { return static_cast<uint8_t*>(p) + offset; }
inline const uint8_t* byte_at(const void* p, uint64_t offset) { return static_cast<const uint8_t*>(p) + offset; }

class VectorCall {
 public:
  // Lanes are resolved against the widest operand's lanes per repeat, which the first call of operand() fixes unless
  // `lanes_per_repeat` is given.
  VectorCall(const Lanes& lanes, const char* api, const void* pc, uint32_t lanes_per_repeat = 0);

  // Declares an operand: checks alignment (32 bytes unless `align` says otherwise) and bounds; throws KernelError.
  void operand(const Operand& o, bool write, const char* name, uint32_t align = kBlockBytes);

  // Declares bytes beside the lanes (a selection mask, a table): checked and reported as an operand's are.
  void touch(const void* p, uint64_t bytes, bool write, const char* name, uint32_t align = kBlockBytes);

  // Lanes per repeat (256 bytes of the widest operand), repeats (0 in count form), lanes in all.
  uint32_t lanes_per_repeat() const { return per_repeat_; }
  bool contiguous() const { return count_ > 0; }
  uint32_t count() const { return count_; }
  uint32_t repeats() const { return count_ ? (count_ + per_repeat_ - 1) / per_repeat_ : repeat_; }
  bool all_enabled() const {
    for (uint32_t l = 0; l < per_repeat_ && !count_; l++)
      if (!enabled(l)) return false;
    return true;
  }
  bool enabled(uint32_t lane) const { return mask_[lane / 64] >> (lane % 64) & 1; }

  // Address of lane `lane` of repeat `repeat` of an operand (count form: repeat 0, any lane).
  template <typename T>
  static T* at(const Operand& o, uint32_t repeat, uint32_t lane) {
    constexpr uint32_t per_block = kBlockBytes / sizeof(T);
    uint32_t block = lane / per_block;
    return reinterpret_cast<T*>(static_cast<uint8_t*>(o.ptr) +
                                (uint64_t(repeat) * o.rep_stride + uint64_t(block) * o.blk_stride) * kBlockBytes) +
           lane % per_block;
  }

  // f(dst lane, source lanes...) for every enabled lane. Contiguous operands take a loop the compiler can vectorize.
  template <typename D, typename A, typename F>
  void for_each(const Operand& d, const Operand& a, F f) const {
    if (count_) {
      D* pd = static_cast<D*>(d.ptr);
      const A* pa = static_cast<const A*>(a.ptr);
      for (uint32_t i = 0; i < count_; i++) f(pd[i], pa[i]);
      return;
    }
    masked([&](uint32_t r, uint32_t l) { f(*at<D>(d, r, l), *at<A>(a, r, l)); });
  }
  template <typename D, typename A, typename B, typename F>
  void for_each(const Operand& d, const Operand& a, const Operand& b, F f) const {
    if (count_) {
      D* pd = static_cast<D*>(d.ptr);
      const A* pa = static_cast<const A*>(a.ptr);
      const B* pb = static_cast<const B*>(b.ptr);
      for (uint32_t i = 0; i < count_; i++) f(pd[i], pa[i], pb[i]);
      return;
    }
    masked([&](uint32_t r, uint32_t l) { f(*at<D>(d, r, l), *at<A>(a, r, l), *at<B>(b, r, l)); });
  }
  template <typename D, typename F>
  void for_each(const Operand& d, F f) const {
    if (count_) {
      D* pd = static_cast<D*>(d.ptr);
      for (uint32_t i = 0; i < count_; i++) f(pd[i]);
      return;
    }
    masked([&](uint32_t r, uint32_t l) { f(*at<D>(d, r, l)); });
  }
  // g(repeat, lane) for every enabled lane.
  template <typename G>
  void masked(G g) const {
    for (uint32_t r = 0; r < repeat_; r++)
      for (uint32_t l = 0; l < per_repeat_; l++)
        if (enabled(l)) g(r, l);
  }

  // Repeat after repeat may add to one destination that is the last source as well (general notes of the reference).
  void allow_accumulation() { may_accumulate_ = true; }

  // What the call writes is there already: it takes its time, and touches nothing.
  void leaves_all_as_it_is() { n_accesses_ = 0; }

  // Reports the instruction: its row of the chip's table (call and type of the destination), repeats, and the bank
  // conflicts of the declared operands.
  void issue();
  // A call that is modelled as one piece and costs `work` (composite.h).
  void issue(const Work& work);
  Core& core() { return core_; }

 private:
  // Fixes which lanes are enabled; `widest` is the first operand.
  void resolve(const Operand& widest);
  // Whether every operand is one run of elements (a count was given, no repeats).
  bool linear() const { return lanes_.count && lanes_.repeat == 0; }
  uint32_t enabled_end() const;  // highest enabled lane + 1
  bool has_holes() const;        // whether a lane below it is disabled
  bool reads_unwritten() const;
  // The bytes of `n` lanes from `lane` on, which lie in one block.
  Range lanes(const Operand& o, uint32_t repeat, uint32_t lane, uint32_t n = 1) const;
  // What the first `last` lanes of each of `repeats` repeats of `o` cover.
  Range range_of(const Operand& o, uint32_t repeats, uint32_t last) const;
  void access(const Range& range, bool write, const char* name, uint32_t align);
  void cover(const Operand& o, uint32_t repeats, uint32_t last, bool write, const char* name, uint32_t align);
  BankOperand banks_of(const Operand& o) const;
  double conflicts(double cycles_per_repeat) const;
  // Sources and destinations may share memory only as the reference allows; throws KernelError.
  void check_overlaps() const;
  bool overlaps_badly(const Operand& dst, const Operand& src, bool accumulates) const;
  // Follows unwritten bytes from the sources to the destinations, lane by lane.
  void follow_unwritten();
  void follow_lanes(const AccessSite& site, uint32_t repeat, uint32_t lane, uint32_t n);
  // n lanes at once, which lie in one block of every operand; false where lanes differ.
  bool follow_alike(const AccessSite& site, uint32_t repeat, uint32_t lane, uint32_t n);

  Core& core_;
  const char* api_;
  const void* pc_;
  uint32_t count_ = 0, repeat_ = 0, per_repeat_ = 0;
  uint64_t mask_[2] = {0, 0};
  bool may_accumulate_ = false;
  bool beside_ = false;  // bytes that are no lanes are touched
  Lanes lanes_;
  struct Declared {
    Operand operand;
    bool write;
  };
  Declared operands_[5];
  static constexpr uint32_t kMostAccesses = 40;
  Access accesses_[kMostAccesses];  // an operand: whole repeats, by blocks where these are apart, and a tail
  uint32_t n_ = 0, n_accesses_ = 0;
};

// Calls `f(T{})` with the C++ type of `t`; half types are given as the storage types of semantics/float16.h.
[[noreturn]] void unsupported_dtype(const char* api, DType t, const void* pc);

// Of an API that is made of others, the kernel's call is what counts.
inline const void* call_site(const void* returns_to) {
  const void* caller = core().caller;
  return caller != nullptr ? caller : returns_to;
}

}  // namespace vnpu

// The call site in the kernel: use at the top of every function of device.h.
#define VNPU_PC vnpu::call_site(__builtin_return_address(0))
