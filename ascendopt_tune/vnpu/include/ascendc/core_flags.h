// Order between cores by flags in global memory: IBSet and IBWait, and cores one after another (WaitPreBlock,
// NotifyNextBlock). The instructions are those of CANN's own bodies (asc-devkit, dav_c220); of the loop that reads the
// flags only the last turn is one, the waiting before it is vnpu::memory_wait.
#pragma once
#include "data_copy.h"
#include "vec_duplicate.h"

namespace AscendC {
namespace detail {

constexpr int32_t kFlagWords = 8;  // 32 bytes

// `later` goes on when what `first` has been given is complete.
template <vnpu::Pipe first, vnpu::Pipe later>
ASCENDC_INLINE void hand_over() {
  const int id = vnpu::event_allocate(first, later);
  vnpu::set_flag(first, later, id);
  vnpu::wait_flag(first, later, id);
  vnpu::event_release(first, later, id);
}

// A flag that is 0 becomes 1, or one that is 1 becomes 0; `changed` counts who has done so.
ASCENDC_INLINE void change_flag(const GlobalTensor<int32_t>& flag, const LocalTensor<int32_t>& room, bool raise,
                                const char* api) {
  using P = vnpu::Pipe;
  vnpu::barrier_all();
  vnpu::MemoryFlags until;
  until.set = raise ? 0 : 1;
  until.value = 1;
  until.kind = raise ? 1 : 0;
  vnpu::memory_wait(flag.pointer(), until, api);
  DataCopy(room, flag, kFlagWords);
  hand_over<P::MTE2, P::S>();
  if (room.GetValue(0) != (raise ? 0 : 1)) vnpu::misuse(api, "a flag changed while it was read");
  room.SetValue(0, raise ? 1 : 0);
  hand_over<P::S, P::MTE3>();
  DataCopy(flag, room, kFlagWords);
  vnpu::memory_raise(flag.pointer(), raise ? 0 : 1, api);
  vnpu::barrier_all();
}

template <bool isAIVOnly>
ASCENDC_INLINE GlobalTensor<int32_t> flag_of(const GlobalTensor<int32_t>& all, int32_t block, int32_t event,
                                             const char* api) {
  const int32_t cores = static_cast<int32_t>(vnpu::block_num()) * (isAIVOnly ? 1 : 2);
  if (block < 0 || block >= cores || event < 0)
    vnpu::misuse(api, "blockIdx has to be in [0, cores - 1], and eventID not below 0");
  return all[(cores * event + block) * kFlagWords];
}

}  // namespace detail

// On a cube core they do nothing.
template <bool isAIVOnly = true>
ASCENDC_INLINE void IBSet(const GlobalTensor<int32_t>& gmWorkspace, const LocalTensor<int32_t>& ubWorkspace,
                          int32_t blockIdx, int32_t eventID) {
  if (vnpu::local_bytes() == 0) return;
  detail::change_flag(detail::flag_of<isAIVOnly>(gmWorkspace, blockIdx, eventID, "IBSet"), ubWorkspace, true, "IBSet");
}
template <bool isAIVOnly = true>
ASCENDC_INLINE void IBWait(const GlobalTensor<int32_t>& gmWorkspace, const LocalTensor<int32_t>& ubWorkspace,
                           int32_t blockIdx, int32_t eventID) {
  if (vnpu::local_bytes() == 0) return;
  detail::change_flag(detail::flag_of<isAIVOnly>(gmWorkspace, blockIdx, eventID, "IBWait"), ubWorkspace, false,
                      "IBWait");
}

// Cores one after another, in rounds: a core's flag holds the number of the round that it has had; the last core makes
// all of them 0. Which round comes next stands behind the copy of the flags in local memory.
namespace detail {
ASCENDC_INLINE int32_t cores_in_order(const char* api) {
  const auto cores = static_cast<int32_t>(vnpu::block_num());
  if (static_cast<int32_t>(vnpu::block_idx()) >= cores)
    vnpu::unsupported(api, "with two vector cores a block the device's flags don't cover the second ones");
  return cores;
}
}  // namespace detail

ASCENDC_INLINE void InitDetermineComputeWorkspace(GlobalTensor<int32_t>& gmWorkspace,
                                                  LocalTensor<int32_t>& ubWorkspace) {
  using P = vnpu::Pipe;
  if (vnpu::local_bytes() == 0) return;
  const int32_t words = detail::cores_in_order("InitDetermineComputeWorkspace") * detail::kFlagWords;
  vnpu::barrier_all();
  if (vnpu::block_idx() == 0) {
    Duplicate(ubWorkspace, 0, words);
    detail::hand_over<P::V, P::MTE3>();
    DataCopy(gmWorkspace, ubWorkspace, words);
  }
  ubWorkspace.SetValue(words, 1);
  vnpu::barrier_all();
}

ASCENDC_INLINE void WaitPreBlock(GlobalTensor<int32_t>& gmWorkspace, LocalTensor<int32_t>& ubWorkspace) {
  using P = vnpu::Pipe;
  if (vnpu::local_bytes() == 0) return;
  const int32_t cores = detail::cores_in_order("WaitPreBlock"), words = cores * detail::kFlagWords;
  vnpu::barrier_all();
  const uint32_t own = vnpu::block_idx();
  vnpu::MemoryFlags until;
  until.number = static_cast<uint32_t>(cores);
  until.set = own;
  until.value = ubWorkspace.GetValue(words);
  until.of = own == 0 ? until.number - 1 : own - 1;
  vnpu::memory_wait(gmWorkspace.pointer(), until, "WaitPreBlock");
  DataCopy(ubWorkspace, gmWorkspace, words);
  detail::hand_over<P::MTE2, P::S>();
  for (int32_t i = 0; i < words; i += detail::kFlagWords) ubWorkspace.GetValue(i);
  detail::hand_over<P::S, P::MTE2>();
  vnpu::barrier_all();
}

ASCENDC_INLINE void NotifyNextBlock(GlobalTensor<int32_t>& gmWorkspace, LocalTensor<int32_t>& ubWorkspace) {
  using P = vnpu::Pipe;
  if (vnpu::local_bytes() == 0) return;
  const int32_t cores = detail::cores_in_order("NotifyNextBlock"), words = cores * detail::kFlagWords;
  vnpu::barrier_all();
  const auto own = static_cast<int32_t>(vnpu::block_idx()), at = own * detail::kFlagWords;
  const int32_t round = ubWorkspace.GetValue(words);
  if (own + 1 == cores) {
    Duplicate(ubWorkspace, 0, words);
    detail::hand_over<P::V, P::MTE3>();
    DataCopy(gmWorkspace, ubWorkspace, words);
  } else {
    detail::hand_over<P::S, P::V>();
    Duplicate(ubWorkspace[at], round, detail::kFlagWords);
    detail::hand_over<P::V, P::MTE3>();
    DataCopy(gmWorkspace[at], ubWorkspace[at], detail::kFlagWords);
  }
  vnpu::memory_raise(gmWorkspace[at].pointer(), 0, "NotifyNextBlock");
  ubWorkspace.SetValue(words, round + 1);
  vnpu::barrier_all();
}

enum class PipeMode : uint8_t { SCALAR_MODE = 0, MTE3_MODE = 1, MAX };

// A group of vector cores that arrives, and one that waits for all of them, round after round. Each has a word in
// global memory every 512 bytes that those of the other group count up, by ones at the end of the Unified Buffer; the
// words of who waits for arrivals begin the workspace, those of the others lie 64 bytes behind (asc-devkit, dav_c220,
// GroupBarrier).
template <PipeMode pipeMode>
class GroupBarrier {
  static_assert(pipeMode == PipeMode::MTE3_MODE, "AscendC::GroupBarrier: only MTE3_MODE (AscendC reference)");

 public:
  ASCENDC_INLINE GroupBarrier(GM_ADDR groupWorkspace, uint32_t arriveSizeIn, uint32_t waitSizeIn)
      : arrive_(arriveSizeIn), wait_(waitSizeIn) {
    const uint32_t bytes = vnpu::local_bytes();
    if (bytes == 0) return;
    if (arrive_ == 0 || wait_ == 0 || arrive_ > kMost || wait_ > kMost)
      vnpu::misuse("GroupBarrier", "arriveSizeIn and waitSizeIn are 1 to 50");
    arrived_.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(groupWorkspace));
    waited_.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(groupWorkspace + 64));
    ones_ = LocalTensor<int32_t>(TPosition::VECOUT, bytes - kMost * 32, kMost * 8);
    for (uint32_t i = 0; i < kMost; i++) ones_.SetValue(i * 8, 1);
  }
  ASCENDC_INLINE void Arrive(uint32_t arriveIndex) {
    if (vnpu::local_bytes() == 0) return;
    if (arriveIndex >= arrive_) vnpu::misuse("GroupBarrier::Arrive", "arriveIndex lies in [0, arriveSizeIn - 1]");
    if (round_ > 1) await(waited_, arriveIndex, (round_ - 1) * wait_, wait_, "GroupBarrier::Arrive");
    count_up(arrived_, wait_, "GroupBarrier::Arrive");
    round_++;
    has_arrived_ = true;
  }
  ASCENDC_INLINE void Wait(uint32_t waitIndex) {
    if (vnpu::local_bytes() == 0) return;
    if (waitIndex >= wait_) vnpu::misuse("GroupBarrier::Wait", "waitIndex lies in [0, waitSizeIn - 1]");
    await(arrived_, waitIndex, (has_arrived_ ? round_ - 1 : round_) * arrive_, arrive_, "GroupBarrier::Wait");
    count_up(waited_, arrive_, "GroupBarrier::Wait");
    if (!has_arrived_) round_++;
    has_arrived_ = false;
  }
  ASCENDC_INLINE uint64_t GetWorkspaceLen() { return uint64_t(arrive_ > wait_ ? arrive_ : wait_) * kApart * 4; }

 private:
  static constexpr uint32_t kMost = 50, kApart = 128;  // cores; words

  // `others`: how many count a word up.
  ASCENDC_INLINE void await(const GlobalTensor<int32_t>& words, uint32_t index, uint32_t value, uint32_t others,
                            const char* api) {
    vnpu::MemoryFlags until;
    until.set = 1;
    until.value = static_cast<int32_t>(value);
    const GlobalTensor<int32_t> own = words[index * kApart];
    for (uint32_t i = 0; i < others; i++) vnpu::memory_wait(own.pointer(), until, api);
  }
  ASCENDC_INLINE void count_up(const GlobalTensor<int32_t>& words, uint32_t readers, const char* api) {
    const uint32_t all = arrive_ > wait_ ? arrive_ : wait_;
    detail::hand_over<vnpu::Pipe::S, vnpu::Pipe::MTE3>();
    SetAtomicAdd<int32_t>();
    DataCopy(words, ones_, DataCopyParams(static_cast<uint16_t>(all), 1, 0, kApart / 8 - 1));
    SetAtomicNone();
    for (uint32_t i = 0; i < readers; i++) vnpu::memory_raise(words[i * kApart].pointer(), 0, api);
  }

  uint32_t arrive_, wait_, round_ = 1;
  bool has_arrived_ = false;
  GlobalTensor<int32_t> arrived_, waited_;
  LocalTensor<int32_t> ones_;
};

// Which memory the scalar unit waits for.
enum class MemDsbT : uint8_t { ALL = 0, DDR, UB, SEQ };

// The scalar unit goes on when what it has stored is there; here as long as a load takes that finds nothing in its
// cache.
// Limit of DataSyncBarrier: words in global memory by which kernels order cores themselves are not followed: such an
// order is reported as missing
template <MemDsbT arg0>
ASCENDC_INLINE void DataSyncBarrier() {
  vnpu::store_barrier(arg0 != MemDsbT::UB);
}

}  // namespace AscendC
