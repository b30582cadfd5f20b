// TPipe and TBufPool: whose the buffers of queues and TBufs are. A TPipe takes back what was freed when it is reset or
// destroyed (asc-devkit, kernel_tpipe_impl.h).
#pragma once
#include "queue.h"

namespace AscendC {

constexpr int32_t kMaxBuffers = 64;  // AscendC reference, InitBuffer: of all queues and TBufs

class TPipe {
 public:
  // Where the memory of a position begins.
  uint8_t* GetBaseAddr(int8_t logicPos) {
    return static_cast<uint8_t*>(vnpu::local_base(detail::memory_of(static_cast<TPosition>(logicPos))));
  }
  // A cube core's raises the flags of M_MTE1 that a Matmul waits for first, and takes their ids (asc-devkit,
  // kernel_tpipe_impl.h, TPipe::Init): who sets one of ids 0 to 2 by number, before or after, sets it twice.
  ASCENDC_INLINE TPipe() {
    vnpu::pipe_made(this, true);
    vnpu::raise_matrix_flags();
  }
  // As Destroy, where nobody has called it. A TPipe that is made afterwards begins with all that there is; one that is
  // made before has what this one leaves (AscendC reference, TPipe: there may be one at a time).
  ASCENDC_INLINE ~TPipe() {
    vnpu::FreedFlag freed[kMaxBuffers];
    size_t number = 0;
    for (int32_t i = 0; i < count_; i++) {
      const detail::Buffer& b = buffers_[i];
      if (b.freed_event >= 0 && b.state == detail::Buffer::Free)
        freed[number++] = {b.freed.src, b.freed.dst, b.freed_event};
    }
    vnpu::pipe_ended(this, freed, number);
  }

  // `num` buffers of `len` bytes each, rounded up to 32 bytes.
  template <TPosition src, TPosition dst, int32_t depth, auto mask>
  ASCENDC_INLINE bool InitBuffer(TQueBind<src, dst, depth, mask>& que, uint8_t num, uint32_t len) {
    if (num == 0 || num > kMaxQueueBuffers) vnpu::misuse("TPipe::InitBuffer", "a queue has 1 to 8 buffers");
    if (count_ + num > kMaxBuffers)
      vnpu::misuse("TPipe::InitBuffer", "a kernel has at most 64 buffers in all (AscendC reference, InitBuffer)");
    constexpr vnpu::Memory memory = detail::memory_of(TQueBind<src, dst, depth, mask>::position);
    if (que.of_other_core()) {
      const uint32_t one = (len + 31) / 32 * 32;
      auto* at = static_cast<uint8_t*>(vnpu::l1_room(num * one, que.together()));
      que.take(buffers_ + count_, num, len, [&](uint32_t) { return std::exchange(at, at + one); });
    } else {
      que.take(buffers_ + count_, num, len, [](uint32_t bytes) { return vnpu::local_allocate(memory, bytes); });
    }
    count_ += num;
    return true;
  }
  // 0 bytes are allowed: operators do that where a dtype or attribute needs none of it.
  template <TPosition pos>
  ASCENDC_INLINE bool InitBuffer(TBuf<pos>& buf, uint32_t len) {
    buf.address_ = vnpu::local_allocate(detail::memory_of(pos), len);
    buf.bytes_ = (len + 31) / 32 * 32;
    return true;
  }
  // A part of the memory for a pool that gives it on; another pool may have the same part (TBufPool).
  template <TPosition pos, uint32_t size>
  ASCENDC_INLINE bool InitBufPool(TBufPool<pos, size>& pool, uint32_t len) {
    pool.take(vnpu::local_allocate(detail::memory_of(pos), len), len);
    return true;
  }
  template <TPosition pos, uint32_t size, TPosition other, uint32_t others>
  ASCENDC_INLINE bool InitBufPool(TBufPool<pos, size>& pool, uint32_t len, TBufPool<other, others>& share) {
    pool.take(share.memory_for(detail::memory_of(pos), len), len);
    return true;
  }
  template <HardEvent event>
  ASCENDC_INLINE int8_t AllocEventID() {
    constexpr detail::PipePair p = detail::pipes_of(event);
    return static_cast<int8_t>(vnpu::event_allocate(p.src, p.dst));
  }
  template <HardEvent event>
  ASCENDC_INLINE void ReleaseEventID(int8_t id) {
    constexpr detail::PipePair p = detail::pipes_of(event);
    vnpu::event_release(p.src, p.dst, id);
  }
  // An id that is free now, without taking it.
  ASCENDC_INLINE int8_t FetchEventID(HardEvent event) {
    detail::PipePair p = detail::pipes_of(event);
    int id = vnpu::event_allocate(p.src, p.dst);
    vnpu::event_release(p.src, p.dst, id);
    return static_cast<int8_t>(id);
  }
  template <HardEvent event>
  ASCENDC_INLINE int8_t FetchEventID() {
    return FetchEventID(event);
  }
  // After Destroy.
  ASCENDC_INLINE void Init() {
    vnpu::pipe_made(this, false);
    vnpu::raise_matrix_flags();
  }
  // Gives back all local memory and all event ids. No pipe but those that FreeTensor has raised flags for waits.
  ASCENDC_INLINE void Reset() {
    take_back();
    vnpu::set_atomic(vnpu::AtomicOp::None, vnpu::DType::None);
    vnpu::set_mask_mode(false);
    vnpu::reset_mask();
  }
  // The same, to a TPipe made afterwards; and all pipes wait for each other.
  ASCENDC_INLINE void Destroy() {
    DestroyWithoutPipeAll();
    vnpu::barrier_all();
  }
  // The same, without what all pipes wait for.
  ASCENDC_INLINE void DestroyWithoutPipeAll() {
    vnpu::take_matrix_flags_down();
    take_back();
    vnpu::pipe_destroyed(this);
  }

 private:
  ASCENDC_INLINE void take_back() {
    for (int32_t i = 0; i < count_; i++) {
      const detail::Buffer& b = buffers_[i];
      if (b.freed_event >= 0 && b.state == detail::Buffer::Free)
        vnpu::wait_freed_flag(b.freed.src, b.freed.dst, b.freed_event);
    }
    count_ = 0;
    vnpu::local_reset();
  }

  detail::Buffer buffers_[kMaxBuffers];
  int32_t count_ = 0;
};

// A part of UB or L1 that queues and TBufs get their memory from, in place of the TPipe. Pools that share a part take
// turns: Reset ends one's, and its queues' buffers may be used again when its turn has come.
template <TPosition pos, uint32_t bufIDSize>
class TBufPool {
  static_assert(detail::memory_of(pos) == vnpu::Memory::UB || detail::memory_of(pos) == vnpu::Memory::L1,
                "TBufPool: a pool is a part of UB or L1");
  static_assert(bufIDSize <= 16, "TBufPool: a pool has at most 16 buffers");

 public:
  template <TPosition src, TPosition dst, int32_t depth, auto mask>
  ASCENDC_INLINE bool InitBuffer(TQueBind<src, dst, depth, mask>& que, uint8_t num, uint32_t len) {
    constexpr TPosition position = TQueBind<src, dst, depth, mask>::position;
    static_assert(detail::memory_of(position) == detail::memory_of(pos), "TBufPool: the queue is of another memory");
    if (num == 0 || num > kMaxQueueBuffers) vnpu::misuse("TBufPool::InitBuffer", "a queue has 1 to 8 buffers");
    count(num);
    que.take(buffers_ + count_, num, len, [this](uint32_t bytes) { return cut(bytes); });
    count_ += num;
    return true;
  }
  template <TPosition position>
  ASCENDC_INLINE bool InitBuffer(TBuf<position>& buf, uint32_t len) {
    static_assert(detail::memory_of(position) == detail::memory_of(pos), "TBufPool: the TBuf is of another memory");
    count(1);
    tbufs_++;
    buf.address_ = cut(len);
    buf.bytes_ = (len + 31) / 32 * 32;
    return true;
  }
  template <TPosition position, uint32_t size>
  ASCENDC_INLINE bool InitBufPool(TBufPool<position, size>& pool, uint32_t len) {
    static_assert(detail::memory_of(position) == detail::memory_of(pos), "TBufPool: the pool is of another memory");
    pool.take(cut(len), len);
    return true;
  }
  template <TPosition position, uint32_t size, TPosition other, uint32_t others>
  ASCENDC_INLINE bool InitBufPool(TBufPool<position, size>& pool, uint32_t len, TBufPool<other, others>& share) {
    pool.take(share.memory_for(detail::memory_of(position), len), len);
    return true;
  }
  // Waits for what FreeTensor has raised. What was given out stays as it is; more is not.
  ASCENDC_INLINE void Reset() {
    for (uint32_t i = 0; i < count_; i++) {
      detail::Buffer& b = buffers_[i];
      if (b.freed_event < 0 || b.state != detail::Buffer::Free) continue;
      vnpu::wait_freed_flag(b.freed.src, b.freed.dst, b.freed_event);
      vnpu::event_release(b.freed.src, b.freed.dst, b.freed_event);
      b.freed_event = -1;
    }
    left_ = 0;
  }

 private:
  friend class TPipe;
  template <TPosition, uint32_t>
  friend class TBufPool;

  ASCENDC_INLINE void take(void* memory, uint32_t len) {
    begin_ = next_ = static_cast<uint8_t*>(memory);
    length_ = left_ = (len + 31) / 32 * 32;
    count_ = tbufs_ = 0;
  }
  ASCENDC_INLINE void count(uint32_t more) {
    if (count_ + tbufs_ + more > bufIDSize)
      vnpu::misuse("TBufPool::InitBuffer", "the pool has more buffers than its template argument bufIDSize says (4)");
  }
  ASCENDC_INLINE void* memory_for(vnpu::Memory memory, uint32_t len) {
    if (memory != detail::memory_of(pos) || begin_ == nullptr || len > length_)
      vnpu::misuse("TBufPool::InitBufPool", "the pool to share with is of another memory, has none, or is shorter");
    return begin_;
  }
  ASCENDC_INLINE void* cut(uint32_t len) {
    const uint32_t bytes = (len + 31) / 32 * 32;
    if (bytes > left_)
      vnpu::misuse("TBufPool::InitBuffer", "the pool has less memory left: InitBufPool gives it some, Reset takes it");
    void* memory = next_;
    next_ += bytes;
    left_ -= bytes;
    return memory;
  }

  detail::Buffer buffers_[bufIDSize];
  uint8_t *begin_ = nullptr, *next_ = nullptr;
  uint32_t length_ = 0, left_ = 0;  // bytes
  uint32_t count_ = 0, tbufs_ = 0;  // buffers of queues, and of TBufs
};

ASCENDC_INLINE TPipe* GetTPipePtr() { return static_cast<TPipe*>(*vnpu::user_pipe()); }

}  // namespace AscendC
