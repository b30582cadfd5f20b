// TPipe, TQue, TBuf: buffers in local memory and the handshakes between pipes that queues make (AscendC reference,
// resources).
//
// A queue moves buffers through AllocTensor -> (fill) -> EnQue -> DeQue -> (use) -> FreeTensor. EnQue raises a flag
// from the pipe that fills to the pipe that uses, DeQue waits for it; FreeTensor raises one back, the next AllocTensor
// of the same buffer waits for that.
#pragma once
#include "sync.h"

namespace AscendC {

constexpr int32_t kMaxQueueBuffers = 8;  // AscendC reference: at most 8 buffers a queue on 2201

enum class TBufState : uint8_t { FREE = 0, OCCUPIED, ENQUE, DEQUE };

namespace detail {

// Pipes that fill and use a queue from position `src` to position `dst`.
constexpr vnpu::Pipe pipe_into(TPosition p) {
  switch (p) {
    case TPosition::VECIN:
    case TPosition::A1:
    case TPosition::B1:
    case TPosition::C1:
    case TPosition::TSCM:
    case TPosition::GM:
      return vnpu::Pipe::MTE2;
    case TPosition::CO1:
      return vnpu::Pipe::M;
    case TPosition::A2:
    case TPosition::B2:
    case TPosition::C2:
      return vnpu::Pipe::MTE1;
    case TPosition::C2PIPE2GM:
      return vnpu::Pipe::FIX;
    default:
      return vnpu::Pipe::V;  // VECOUT, VECCALC: written by vector instructions
  }
}
constexpr vnpu::Pipe pipe_out_of(TPosition p) {
  switch (memory_of(p)) {
    case vnpu::Memory::L1:
      return vnpu::Pipe::MTE1;
    case vnpu::Memory::L0A:
    case vnpu::Memory::L0B:
    case vnpu::Memory::BT:
      return vnpu::Pipe::M;
    case vnpu::Memory::L0C:
    case vnpu::Memory::FB:
      return vnpu::Pipe::FIX;
    default:
      return p == TPosition::VECOUT || p == TPosition::GM ? vnpu::Pipe::MTE3 : vnpu::Pipe::V;
  }
}

struct Buffer {
  enum State : uint8_t { Free, Taken, Queued, InUse };  // as TBufState counts
  void* address = nullptr;
  uint32_t bytes = 0;
  State state = Free;
  int8_t filled_event = -1;  // raised by EnQue, waited for by DeQue
  int8_t freed_event = -1;   // raised by FreeTensor, waited for by the next AllocTensor
};

}  // namespace detail

// What the last template argument of a queue may point to (AscendC reference, TQue). Lengths repeat InitBuffer's, or
// are 0; formats are converted on other models; the rest is reserved.
struct TQueConfig {
  bool nd2nz = false, nz2nd = false, scmBlockGroup = false;
  uint32_t bufferLen = 0, bufferNumber = 0, consumerSize = 0;
  TPosition consumer[8] = {};
  bool enableStaticEvtId = false, enableLoopQueue = false;
};

namespace detail {
ASCENDC_INLINE void check_config(const TQueConfig& config, uint32_t num, uint32_t len) {
  if (config.nd2nz || config.nz2nd) vnpu::unsupported("TQueConfig", "2201 has no queue that converts formats");
  if ((config.bufferNumber != 0 && config.bufferNumber != num) || (config.bufferLen != 0 && config.bufferLen != len))
    vnpu::misuse("TPipe::InitBuffer", "number or length of the buffers isn't what the queue's TQueConfig says");
}
}  // namespace detail

class TPipe;

// A queue bound to the positions it moves data between; TQue<pos, depth> is the common spelling.
template <TPosition src, TPosition dst, int32_t depth, auto mask = 0>
class TQueBind {
 public:
  template <typename T>
  ASCENDC_INLINE LocalTensor<T> AllocTensor() {
    LocalTensor<T> t;
    AllocTensor(t);
    return t;
  }
  template <typename T>
  ASCENDC_INLINE void AllocTensor(LocalTensor<T>& tensor) {
    vnpu::queue_cost();
    detail::Buffer* b = nullptr;
    for (int32_t i = 0; i < count_ && !b; i++) {
      detail::Buffer* candidate = &buffers_[(next_ + i) % count_];
      if (candidate->state == detail::Buffer::Free) {
        b = candidate;
        next_ = (next_ + i + 1) % count_;
      }
    }
    if (!b)
      vnpu::misuse("TQue::AllocTensor", count_ ? "every buffer of the queue is taken: free a tensor first, or give the "
                                                 "queue more buffers in InitBuffer"
                                               : "the queue has no buffer: call TPipe::InitBuffer first");
    if (b->freed_event >= 0) {
      vnpu::wait_freed_flag(use_pipe, fill_pipe, b->freed_event);
      vnpu::event_release(use_pipe, fill_pipe, b->freed_event);
      b->freed_event = -1;
    }
    b->state = detail::Buffer::Taken;
    tensor.Bind(static_cast<T*>(b->address), static_cast<uint32_t>(vnpu::elements_in<T>(b->bytes)),
                src == TPosition::GM ? dst : src, b);
  }

  template <typename T>
  ASCENDC_INLINE bool EnQue(const LocalTensor<T>& tensor) {
    vnpu::queue_cost();
    detail::Buffer* b = buffer_of(tensor.handle(), "TQue::EnQue");
    if (b->state != detail::Buffer::Taken && b->state != detail::Buffer::InUse)
      vnpu::misuse("TQue::EnQue", "the tensor was not allocated from this queue, or is queued already");
    if (used_ >= (depth > 0 ? depth : count_) && depth > 1)
      vnpu::misuse("TQue::EnQue", "more tensors are queued than the queue's depth");
    if constexpr (fill_pipe == use_pipe) {
      vnpu::barrier(fill_pipe);
    } else {
      b->filled_event = static_cast<int8_t>(vnpu::event_allocate(fill_pipe, use_pipe));
      vnpu::set_flag(fill_pipe, use_pipe, b->filled_event);
    }
    b->state = detail::Buffer::Queued;
    order_[(head_ + used_) % kMaxQueueBuffers] = b;
    used_++;
    return true;
  }
  template <TPosition, TPosition, typename T>
  ASCENDC_INLINE bool EnQue(const LocalTensor<T>& tensor) {
    return EnQue(tensor);
  }

  template <typename T>
  ASCENDC_INLINE LocalTensor<T> DeQue() {
    LocalTensor<T> t;
    DeQue(t);
    return t;
  }
  template <TPosition, TPosition, typename T>
  ASCENDC_INLINE LocalTensor<T> DeQue() {
    return DeQue<T>();
  }
  // Without a type: for who waits for the buffer but has its tensor already.
  ASCENDC_INLINE void DeQue() {
    LocalTensor<uint8_t> t;
    DeQue(t);
  }
  template <typename T>
  ASCENDC_INLINE void DeQue(LocalTensor<T>& tensor) {
    vnpu::queue_cost();
    if (used_ == 0) vnpu::misuse("TQue::DeQue", "the queue is empty: the core would wait for ever");
    detail::Buffer* b = order_[head_];
    head_ = (head_ + 1) % kMaxQueueBuffers;
    used_--;
    if (b->filled_event >= 0) {
      vnpu::wait_flag(fill_pipe, use_pipe, b->filled_event);
      vnpu::event_release(fill_pipe, use_pipe, b->filled_event);
      b->filled_event = -1;
    }
    b->state = detail::Buffer::InUse;
    tensor.Bind(static_cast<T*>(b->address), static_cast<uint32_t>(vnpu::elements_in<T>(b->bytes)),
                dst == TPosition::GM ? src : dst, b);
  }

  template <typename T>
  ASCENDC_INLINE void FreeTensor(const LocalTensor<T>& tensor) {
    vnpu::queue_cost();
    detail::Buffer* b = buffer_of(tensor.handle(), "TQue::FreeTensor");
    if (b->state == detail::Buffer::Free) vnpu::misuse("TQue::FreeTensor", "the tensor was freed already");
    if constexpr (fill_pipe == use_pipe) {
      vnpu::barrier(fill_pipe);
    } else {  // also of one that was never queued (asc-devkit, TQueBind)
      b->freed_event = static_cast<int8_t>(vnpu::event_allocate(use_pipe, fill_pipe));
      vnpu::set_freed_flag(use_pipe, fill_pipe, b->freed_event);
    }
    b->state = detail::Buffer::Free;
  }

  ASCENDC_INLINE bool VacantInQue() const { return used_ < (depth > 0 ? depth : count_); }
  ASCENDC_INLINE bool HasTensorInQue() const { return used_ > 0; }
  ASCENDC_INLINE int32_t GetTensorCountInQue() const { return used_; }
  ASCENDC_INLINE bool HasIdleBuffer() const {
    for (int32_t i = 0; i < count_; i++)
      if (buffers_[i].state == detail::Buffer::Free) return true;
    return false;
  }
  // By the handle of a buffer (LocalTensor::GetBufferHandle), for who has no tensor of it at hand.
  ASCENDC_INLINE void FreeBuffer(TBufHandle buffer) {
    LocalTensor<uint8_t> t;
    t.SetAddr(GetBufferAddr(buffer));
    FreeTensor(t);
  }
  ASCENDC_INLINE TBuffAddr GetBufferAddr(TBufHandle buffer) {
    detail::Buffer* b = buffer_of(buffer, "TQue::GetBufferAddr");
    TBuffAddr address;
    address.logicPos = static_cast<uint8_t>(src == TPosition::GM ? dst : src);
    address.dataLen = b->bytes;
    address.bufferHandle = b;
    address.absAddr = static_cast<uint8_t*>(b->address);
    return address;
  }
  template <typename T>
  ASCENDC_INLINE TBufState GetState(const LocalTensor<T>& tensor) {
    return static_cast<TBufState>(buffer_of(tensor.handle(), "TQue::GetState")->state);
  }
  // Waits for what FreeTensor has raised, as the next AllocTensor of each buffer would.
  ASCENDC_INLINE void FreeAllEvent() {
    for (int32_t i = 0; i < count_; i++) {
      if (buffers_[i].freed_event < 0) continue;
      vnpu::wait_freed_flag(use_pipe, fill_pipe, buffers_[i].freed_event);
      vnpu::event_release(use_pipe, fill_pipe, buffers_[i].freed_event);
      buffers_[i].freed_event = -1;
    }
  }
  ASCENDC_INLINE void InitStartBufHandle(void*, uint8_t, uint32_t) {}

 private:
  friend class TPipe;
  static constexpr vnpu::Pipe fill_pipe = detail::pipe_into(src == TPosition::GM ? dst : src);
  static constexpr vnpu::Pipe use_pipe = detail::pipe_out_of(dst == TPosition::GM ? TPosition::VECOUT : dst);

  ASCENDC_INLINE detail::Buffer* buffer_of(void* handle, const char* api) {
    auto* b = static_cast<detail::Buffer*>(handle);
    if (!b) vnpu::misuse(api, "the tensor was not allocated from a queue");
    return b;
  }

  detail::Buffer buffers_[kMaxQueueBuffers];
  detail::Buffer* order_[kMaxQueueBuffers] = {};
  int32_t count_ = 0, next_ = 0, head_ = 0, used_ = 0;
};

namespace detail {
// Where a TQue's data goes: VECIN is used by V, VECOUT by MTE3, VECCALC stays.
constexpr TPosition source_of(TPosition p) { return p == TPosition::VECIN ? TPosition::GM : p; }
constexpr TPosition destination_of(TPosition p) { return p == TPosition::VECOUT ? TPosition::GM : p; }
}  // namespace detail

template <TPosition pos, int32_t depth, auto mask = 0>
class TQue : public TQueBind<detail::source_of(pos), detail::destination_of(pos), depth, mask> {};

template <TPosition pos = TPosition::LCM>
class TBuf {
 public:
  template <typename T>
  ASCENDC_INLINE LocalTensor<T> Get() {
    return Get<T>(static_cast<uint32_t>(vnpu::elements_in<T>(bytes_)));
  }
  template <typename T>
  ASCENDC_INLINE LocalTensor<T> Get(uint32_t size) {
    return GetWithOffset<T>(size, 0);
  }
  template <typename T>
  ASCENDC_INLINE LocalTensor<T> GetWithOffset(uint32_t size, uint32_t byte_offset) {
    LocalTensor<T> t;  // of a buffer without memory: an error as soon as it is touched
    t.Bind(reinterpret_cast<T*>(static_cast<uint8_t*>(address_) + byte_offset), size, pos, nullptr);
    return t;
  }
  template <typename T>
  ASCENDC_INLINE LocalTensor<T> AllocTensor() {
    return Get<T>();
  }
  template <typename T>
  ASCENDC_INLINE void FreeTensor(LocalTensor<T>&) {}
  ASCENDC_INLINE uint32_t GetBufLen() const { return bytes_; }

 private:
  friend class TPipe;
  void* address_ = nullptr;
  uint32_t bytes_ = 0;
};

class TPipe {
 public:
  ASCENDC_INLINE TPipe() { *vnpu::user_pipe() = this; }

  // `num` buffers of `len` bytes each, rounded up to 32 bytes.
  template <TPosition src, TPosition dst, int32_t depth, auto mask>
  ASCENDC_INLINE bool InitBuffer(TQueBind<src, dst, depth, mask>& que, uint8_t num, uint32_t len) {
    if (num == 0 || num > kMaxQueueBuffers) vnpu::misuse("TPipe::InitBuffer", "a queue has 1 to 8 buffers");
    if (len == 0) vnpu::misuse("TPipe::InitBuffer", "a buffer of 0 bytes");
    if constexpr (std::is_pointer_v<decltype(mask)>) detail::check_config(*mask, num, len);
    if constexpr (depth > kMaxQueueBuffers)
      vnpu::misuse("TPipe::InitBuffer", "a queue's depth is at most 8, one for each event id");
    que.count_ = num;
    que.next_ = que.head_ = que.used_ = 0;
    for (uint8_t i = 0; i < num; i++) {
      que.buffers_[i] = {};
      que.buffers_[i].address = vnpu::local_allocate(detail::memory_of(src == TPosition::GM ? dst : src), len);
      que.buffers_[i].bytes = (len + 31) / 32 * 32;
    }
    return true;
  }
  // 0 bytes are allowed: operators do that where a dtype or attribute needs none of it.
  template <TPosition pos>
  ASCENDC_INLINE bool InitBuffer(TBuf<pos>& buf, uint32_t len) {
    buf.address_ = vnpu::local_allocate(detail::memory_of(pos), len);
    buf.bytes_ = (len + 31) / 32 * 32;
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
  ASCENDC_INLINE void Init() {}
  ASCENDC_INLINE void Reset() { vnpu::local_reset(); }
  // Gives all local memory back, to a TPipe made afterwards.
  ASCENDC_INLINE void Destroy() {
    vnpu::barrier_all();
    vnpu::local_reset();
  }
};

ASCENDC_INLINE TPipe* GetTPipePtr() { return static_cast<TPipe*>(*vnpu::user_pipe()); }

}  // namespace AscendC
