// Order between pipes of one core (SetFlag, WaitFlag, PipeBarrier) and between cores (SyncAll, CrossCoreSetFlag,
// CrossCoreWaitFlag).
#pragma once
#include "tensor.h"

namespace AscendC {
namespace detail {

struct PipePair {
  vnpu::Pipe src, dst;
};
// Source and destination pipe of an event, by its name in the reference.
constexpr PipePair pipes_of(HardEvent e) {
  using P = vnpu::Pipe;
  constexpr PipePair table[] = {
      {P::MTE2, P::MTE1}, {P::MTE1, P::MTE2}, {P::MTE1, P::M},    {P::M, P::MTE1},   {P::MTE2, P::V},
      {P::V, P::MTE2},    {P::MTE3, P::V},    {P::V, P::MTE3},    {P::M, P::V},      {P::V, P::M},
      {P::V, P::V},       {P::MTE3, P::MTE1}, {P::MTE1, P::MTE3}, {P::MTE1, P::V},   {P::MTE2, P::M},
      {P::M, P::MTE2},    {P::V, P::MTE1},    {P::M, P::FIX},     {P::FIX, P::M},    {P::MTE3, P::MTE2},
      {P::MTE2, P::MTE3}, {P::S, P::V},       {P::V, P::S},       {P::S, P::MTE2},   {P::MTE2, P::S},
      {P::S, P::MTE3},    {P::MTE3, P::S},    {P::MTE2, P::FIX},  {P::FIX, P::MTE2}, {P::FIX, P::S},
      {P::M, P::S},       {P::FIX, P::MTE3},  {P::MTE1, P::FIX},  {P::FIX, P::MTE1}, {P::FIX, P::FIX}};
  return table[static_cast<int>(e)];
}

}  // namespace detail

// From a pipe to itself there is no flag: the one to set is a barrier; to wait is nothing on V, and the barrier again
// on FIX (asc-devkit, kernel_event.h).
template <HardEvent event>
ASCENDC_INLINE void SetFlag(int32_t eventID) {
  constexpr detail::PipePair p = detail::pipes_of(event);
  if constexpr (p.src == p.dst)
    vnpu::barrier(p.src);
  else
    vnpu::set_flag(p.src, p.dst, eventID);
}
template <HardEvent event>
ASCENDC_INLINE void WaitFlag(int32_t eventID) {
  constexpr detail::PipePair p = detail::pipes_of(event);
  if constexpr (p.src != p.dst)
    vnpu::wait_flag(p.src, p.dst, eventID);
  else if constexpr (event == HardEvent::FIX_FIX)
    vnpu::barrier(p.src);
}
template <pipe_t pipe>
ASCENDC_INLINE void PipeBarrier() {
  if constexpr (pipe == PIPE_ALL) {
    vnpu::barrier_all();
  } else {
    static_assert(pipe != PIPE_S, "PipeBarrier doesn't take PIPE_S: the scalar unit is ordered by itself");
    vnpu::barrier(vnpu::to_pipe(pipe));
  }
}

// All cores of the caller's kind; with false, which only mixed kernels may say, all cores.
template <bool isAIVOnly = true>
ASCENDC_INLINE void SyncAll() {
  vnpu::barrier_all();
  vnpu::sync_all(isAIVOnly);
}
// Soft form, which cube cores pass by (asc-devkit, dav_c220, SoftSyncAllImpl). The workspaces are where the device
// keeps its counters, 32 bytes a core; here they only have to be as the reference asks for.
template <bool isAIVOnly = true>
ASCENDC_INLINE void SyncAll(const GlobalTensor<int32_t>& gmWorkspace, const LocalTensor<int32_t>& ubWorkspace,
                            const int32_t usedCores = 0) {
  if (vnpu::local_bytes() == 0) return;
  vnpu::barrier_all();
  vnpu::sync_by_counters(gmWorkspace.pointer(), ubWorkspace.pointer(), static_cast<uint32_t>(usedCores));
}

// When the pipe's earlier instructions are complete, this core has raised the flag. The id's low 4 bits count. Mode 0:
// when all cores of its kind have, it is there for them; mode 1: the vector cores of a group, for them; mode 2: the
// cube core of a group for its vector cores, or all those for the cube core.
template <uint8_t modeId, pipe_t pipe>
ASCENDC_INLINE void CrossCoreSetFlag(uint16_t flagId) {
  static_assert(pipe != PIPE_S && pipe != PIPE_ALL, "CrossCoreSetFlag doesn't take PIPE_S and PIPE_ALL");
  static_assert(modeId <= 2, "CrossCoreSetFlag: architecture 2201 has modes 0, 1 and 2");
  vnpu::cross_set(modeId, vnpu::to_pipe(pipe), flagId);
}
// Holds all pipes until the flag is there once more; mode and pipe have no effect on architecture 2201.
template <uint8_t modeId = 0, pipe_t pipe = PIPE_S>
ASCENDC_INLINE void CrossCoreWaitFlag(uint16_t flagId) {
  vnpu::cross_wait(flagId);
}

// Mode 2 by its older names, which kernels of CANN's own operators have.
template <pipe_t pipe, uint8_t modeId = 2>
ASCENDC_INLINE void NotifyEvent(uint16_t flagId) {
  CrossCoreSetFlag<modeId, pipe>(flagId);
}
template <pipe_t pipe = PIPE_S, uint8_t modeId = 2>
ASCENDC_INLINE void WaitEvent(uint16_t flagId) {
  vnpu::cross_wait(flagId);
}

// Of kernels that are fused into one (SuperKernel), which those here never are: the next one may begin, the one before
// has to have ended. Documented to do nothing on Atlas A2.
template <pipe_t AIV_PIPE = PIPE_MTE3, pipe_t AIC_PIPE = PIPE_FIX, bool FORCE = false>
ASCENDC_INLINE void SetNextTaskStart() {}
template <bool FORCE = false>
ASCENDC_INLINE void WaitPreTaskEnd() {}

// Two pipes of one core by their names (AscendC reference, TQueSync).
template <pipe_t src, pipe_t dst>
class TQueSync {
 public:
  ASCENDC_INLINE void SetFlag(uint8_t id) { vnpu::set_flag(vnpu::to_pipe(src), vnpu::to_pipe(dst), id); }
  ASCENDC_INLINE void WaitFlag(uint8_t id) { vnpu::wait_flag(vnpu::to_pipe(src), vnpu::to_pipe(dst), id); }
};

// Inner names: the word that ffts_cross_core_sync takes, and the flags that SyncAll raises (asc-devkit, sync_impl).
constexpr uint16_t SYNC_AIC_FLAG = 11, SYNC_AIV_FLAG = 12, SYNC_AIC_AIV_FLAG = 13, SYNC_AIV_ONLY_ALL = 14;
constexpr uint16_t SYNC_MODE_SHIFT_VALUE = 4, SYNC_FLAG_SHIFT_VALUE = 8;
ASCENDC_INLINE uint16_t GetffstMsg(uint16_t mode, uint16_t flagId) {
  return static_cast<uint16_t>(1 + ((mode & 3) << SYNC_MODE_SHIFT_VALUE) + ((flagId & 15) << SYNC_FLAG_SHIFT_VALUE));
}

}  // namespace AscendC

// The raw intrinsics that some kernels use beside the API.
ASCENDC_INLINE void set_flag(pipe_t src, pipe_t dst, int32_t id) {
  vnpu::set_flag(vnpu::to_pipe(src), vnpu::to_pipe(dst), id);
}
ASCENDC_INLINE void wait_flag(pipe_t src, pipe_t dst, int32_t id) {
  vnpu::wait_flag(vnpu::to_pipe(src), vnpu::to_pipe(dst), id);
}
// Its word: 1, the mode from bit 4 on, the flag from bit 8 on (asc-devkit, GetffstMsg).
ASCENDC_INLINE void ffts_cross_core_sync(pipe_t pipe, uint64_t config) {
  vnpu::cross_set(static_cast<uint32_t>(config >> 4) & 3, vnpu::to_pipe(pipe), static_cast<uint32_t>(config >> 8) & 15);
}
ASCENDC_INLINE void wait_flag_dev(int64_t flag_id) { vnpu::cross_wait(static_cast<uint16_t>(flag_id)); }
ASCENDC_INLINE void pipe_barrier(pipe_t pipe) {
  if (pipe == PIPE_ALL)
    vnpu::barrier_all();
  else
    vnpu::barrier(vnpu::to_pipe(pipe));
}
