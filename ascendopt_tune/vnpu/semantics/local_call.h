// A vector instruction whose operands don't all follow the 8-blocks-a-repeat layout of VectorCall (reductions, gathers,
// transposes, sorts): the body declares each byte range itself.
#pragma once
#include "../core/vector.h"
#include "float16.h"

namespace vnpu {

class LocalCall {
 public:
  LocalCall(const char* api, const void* pc) : api(api), pc(pc), core(vnpu::core()) {}

  // Declares `pieces` ranges of `bytes` at p, `stride` bytes apart; checks alignment and bounds; throws KernelError.
  void read(const void* p, uint64_t bytes, const char* name, uint32_t align = kBlockBytes, uint32_t pieces = 1,
            uint64_t stride = 0) {
    declare(p, bytes, name, align, pieces, stride, false);
  }
  void write(const void* p, uint64_t bytes, const char* name, uint32_t align = kBlockBytes, uint32_t pieces = 1,
             uint64_t stride = 0) {
    declare(p, bytes, name, align, pieces, stride, true);
  }
  // The instruction leaves a result in a register.
  void write_register(Register r) { result_ = static_cast<int>(r); }
  // Throws KernelError when a documented rule is broken.
  void require(bool holds, const std::string& rule) const {
    if (!holds) throw KernelError(KernelError::kMisuse, std::string(api) + ": " + rule, api, pc);
  }
  // Issues the instruction on the vector pipe: `units` of the row `instruction`.`type` of the chip's table. What was
  // declared is forgotten: the next instruction of a composite API can follow.
  void issue(const char* instruction, DType type, double units) {
    issue(Work{core.chip.instruction(instruction, type), 1, static_cast<float>(units), 0});
  }
  void issue(const Work& work) {
    core.unwritten.instruction({Pipe::V, api, pc, false}, accesses_, n_, result_);
    if (result_ >= 0) accesses_[n_++] = core.register_access(static_cast<Register>(result_), true);
    core.issue(Pipe::V, api, pc, work, accesses_, n_);
    n_ = 0;
    result_ = -1;
  }
  // `dst` waits for `src` through an event id of its own (FetchEventID, SetFlag, WaitFlag).
  void order(Pipe src, Pipe dst) {
    int id = core.allocate_event(src, dst, pc);
    core.set_flag(src, dst, id, pc);
    core.wait_flag(src, dst, id, pc);
    core.release_event(src, dst, id);
  }
  // Scalar load or store of one element in local memory.
  template <typename T>
  T load(const T* p) {
    core.scalar_access(p, sizeof(T), false, api, pc);
    return *p;
  }
  template <typename T>
  void store(T* p, T value) {
    core.scalar_access(p, sizeof(T), true, api, pc);
    *p = value;
  }
  // The scalar unit stores what the instruction before left in a register.
  template <typename T>
  void store(T* p, T value, Register from) {
    core.read_register(from, api, pc, false);
    store(p, value);
    core.unwritten.register_store(static_cast<int>(from), {reinterpret_cast<uint64_t>(p), sizeof(T), 1, 0});
  }

  const char* const api;
  const void* const pc;
  Core& core;

 private:
  void declare(const void* p, uint64_t bytes, const char* name, uint32_t align, uint32_t pieces, uint64_t stride,
               bool write) {
    if (bytes == 0 || pieces == 0) return;
    Range r{reinterpret_cast<uint64_t>(p), static_cast<uint32_t>(bytes), pieces, stride};
    core.check_local(r, align, api, pc, name);
    require(n_ < kMaxAccesses, "too many operands");
    accesses_[n_++] = {r, write};
  }

  static constexpr size_t kMaxAccesses = 34;  // TransDataTo5HD: 16 source and 16 destination rows
  Access accesses_[kMaxAccesses + 1];         // and a register
  size_t n_ = 0;
  int result_ = -1;  // the register the instruction leaves a result in
};

// Which lanes of which repeats an instruction handles: normal mode (mask bits, `repeat` repeats) or counter mode (a
// number of lanes, the repeat count is ignored; AscendC reference, mask operations).
class RepeatLanes {
 public:
  RepeatLanes(const LocalCall& call, const Lanes& lanes, uint32_t per_repeat) : per_repeat_(per_repeat) {
    if (lanes.count) {
      counter_ = true;
      total_ = lanes.count;
    } else {
      const uint64_t* m = lanes.use_set_mask ? call.core.mask : lanes.mask;
      counter_ = call.core.counter_mode;
      if (counter_) {
        total_ = static_cast<uint32_t>(m[0]);
      } else {
        call.require(lanes.repeat <= 255, "repeatTime " + std::to_string(lanes.repeat) + " is above 255");
        repeats_ = lanes.repeat;
        mask_[0] = m[0];
        mask_[1] = per_repeat > 64 ? m[1] : 0;
        if (per_repeat < 64) mask_[0] &= (1ull << per_repeat) - 1;
      }
    }
    if (counter_) repeats_ = (total_ + per_repeat - 1) / per_repeat;
  }

  uint32_t repeats() const { return repeats_; }
  uint32_t per_repeat() const { return per_repeat_; }
  // Lanes from 0 that are handled when the mask has no holes; otherwise one past the highest.
  uint32_t last(uint32_t repeat) const {
    if (counter_) return std::min(per_repeat_, total_ - repeat * per_repeat_);
    if (mask_[1]) return 128 - static_cast<uint32_t>(__builtin_clzll(mask_[1]));
    return mask_[0] ? 64 - static_cast<uint32_t>(__builtin_clzll(mask_[0])) : 0;
  }
  bool enabled(uint32_t repeat, uint32_t lane) const {
    return counter_ ? lane < last(repeat) : mask_[lane / 64] >> (lane % 64) & 1;
  }
  // Are exactly the lanes below last() enabled?
  bool dense() const {
    if (counter_) return true;
    uint64_t m = mask_[1] ? mask_[1] : mask_[0];
    return (m & (m + 1)) == 0 && (!mask_[1] || mask_[0] == ~0ull);
  }
  bool none() const { return repeats_ == 0 || last(0) == 0; }

 private:
  bool counter_ = false;
  uint32_t per_repeat_, repeats_ = 0, total_ = 0;
  uint64_t mask_[2] = {0, 0};
};

}  // namespace vnpu
