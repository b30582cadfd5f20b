// TQue, TQueBind, TBuf: buffers in local memory and the handshakes between pipes that queues make (AscendC reference,
// resources).
//
// A queue moves buffers through AllocTensor -> (fill) -> EnQue -> DeQue -> (use) -> FreeTensor. EnQue raises a flag
// from the pipe that fills to the pipe that uses, DeQue waits for it; FreeTensor raises one back, the next AllocTensor
// of the same buffer waits for that (asc-devkit, kernel_tquebind_impl.h). Buffers are the TPipe's (pipe.h).
#pragma once
#include "queue_ways.h"
#include "vnpu/tscm.h"
#include "vnpu/untimed.h"

namespace AscendC {

constexpr int32_t kMaxQueueBuffers = 8;  // AscendC reference: at most 8 buffers a queue on 2201

enum class TBufState : uint8_t { FREE = 0, OCCUPIED, ENQUE, DEQUE };

namespace detail {
struct Buffer {
  enum State : uint8_t { Free, Taken, Queued, InUse };  // as TBufState counts
  void* address = nullptr;
  uint32_t bytes = 0;
  State state = Free;
  int8_t filled_event = -1;  // raised by EnQue, waited for by DeQue
  int8_t freed_event = -1;   // raised by FreeTensor, waited for by the next AllocTensor
  PipePair freed = {};       // of the queue it was made for
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
template <TPosition pos, uint32_t bufIDSize = 4>
class TBufPool;

// A queue bound to the positions it moves data between; TQue<pos, depth> is the common spelling.
template <TPosition src, TPosition dst, int32_t depth, auto mask = 0>
class TQueBind {
 public:
  // A depth of 0 is for the forms that take the tensor (AscendC reference, AllocTensor and DeQue: constraints).
  template <typename T>
  ASCENDC_INLINE LocalTensor<T> AllocTensor() {
    static_assert(depth != 0, "TQue::AllocTensor: a queue of depth 0 has AllocTensor(tensor)");
    LocalTensor<T> t;
    allocate(t);
    return t;
  }
  template <typename T>
  ASCENDC_INLINE void AllocTensor(LocalTensor<T>& tensor) {
    static_assert(depth == 0, "TQue::AllocTensor(tensor): only with a queue of depth 0");
    allocate(tensor);
  }

  template <typename T>
  ASCENDC_INLINE bool EnQue(const LocalTensor<T>& tensor) {
    return push(pipes, tensor.handle());
  }
  ASCENDC_INLINE bool EnQue(TBufHandle buffer) { return push(pipes, buffer); }
  // Of one half of a way through bound positions: the flag is that half's.
  template <TPosition from, TPosition to, typename T>
  ASCENDC_INLINE bool EnQue(const LocalTensor<T>& tensor) {
    return push(detail::pipes_of_half<from, to, depth>(), tensor.handle());
  }

  template <typename T>
  ASCENDC_INLINE LocalTensor<T> DeQue() {
    static_assert(depth != 0, "TQue::DeQue: a queue of depth 0 has DeQue(tensor)");
    return tensor_of<T>(pull(pipes));
  }
  template <TPosition from, TPosition to, typename T>
  ASCENDC_INLINE LocalTensor<T> DeQue() {
    return tensor_of<T>(pull(detail::pipes_of_half<from, to, depth>()));
  }
  // Without a type: for who waits for the buffer but has its tensor already.
  ASCENDC_INLINE TBufHandle DeQue() { return pull(pipes); }
  template <typename T>
  ASCENDC_INLINE void DeQue(LocalTensor<T>& tensor) {
    static_assert(depth == 0, "TQue::DeQue(tensor): only with a queue of depth 0");
    vnpu::queue_cost(depth > 1);
    detail::Buffer* b = buffer_of(tensor.handle(), "TQue::DeQue");
    if (!of_other_core()) vnpu::wait_flag(pipes.src, pipes.dst, b->filled_event);
    b->state = detail::Buffer::InUse;
  }

  template <typename T>
  ASCENDC_INLINE void FreeTensor(const LocalTensor<T>& tensor) {
    vnpu::queue_cost(depth > 1);
    detail::Buffer* b = buffer_of(tensor.handle(), "TQue::FreeTensor");
    if (b->state == detail::Buffer::Free) vnpu::misuse("TQue::FreeTensor", "the tensor was freed already");
    b->state = detail::Buffer::Free;
    if (of_other_core()) return;
    if constexpr (depth != 0)  // also of one that was never queued (asc-devkit, TQueBind)
      b->freed_event = static_cast<int8_t>(vnpu::event_allocate(pipes.dst, pipes.src));
    vnpu::set_freed_flag(pipes.dst, pipes.src, b->freed_event);
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
    address.logicPos = static_cast<uint8_t>(position);
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
    static_assert(depth != 0, "TQue::FreeAllEvent: not of a queue of depth 0");
    for (int32_t i = 0; i < count_; i++) await_freed(buffers_ + i);
  }
  ASCENDC_INLINE void InitStartBufHandle(void*, uint8_t, uint32_t) {}

 private:
  friend class TPipe;
  template <TPosition, uint32_t>
  friend class TBufPool;
  static constexpr detail::PipePair pipes = detail::pipes_between(src, dst);
  static constexpr TPosition position = detail::position_between(src, dst);
  // L1 of a vector core is its cube core's: messages are in order, and no pipe of its own has a part in it (asc-devkit,
  // TQueBind).
  ASCENDC_INLINE static bool of_other_core() {
    if constexpr (detail::memory_of(position) == vnpu::Memory::L1) return vnpu::asks_for_l1();
    return false;
  }
  // Whether the vector cores of a group have the same bytes.
  static constexpr bool together() {
    if constexpr (std::is_pointer_v<decltype(mask)>)
      return mask->scmBlockGroup;
    else
      return (static_cast<uint32_t>(mask) >> 2 & 1) != 0;
  }

  // Takes `num` buffers, each of `len` bytes rounded up to 32, whose memory allocate(len) gives.
  template <typename Allocate>
  ASCENDC_INLINE void take(detail::Buffer* buffers, uint8_t num, uint32_t len, Allocate allocate) {
    if (len == 0) vnpu::misuse("TPipe::InitBuffer", "a buffer of 0 bytes");
    if constexpr (std::is_pointer_v<decltype(mask)>) detail::check_config(*mask, num, len);
    if constexpr (depth > kMaxQueueBuffers)
      vnpu::misuse("TPipe::InitBuffer", "a queue's depth is at most 8, one for each event id");
    static_assert(!detail::in_global(position), "TPipe::InitBuffer: on 2201 CO2 is global memory");
    count_ = num;
    next_ = head_ = used_ = 0;
    buffers_ = buffers;
    for (uint8_t i = 0; i < num; i++) {
      detail::Buffer& b = buffers[i];
      b = {};
      b.address = allocate(len);
      b.bytes = (len + 31) / 32 * 32;
      b.freed = {pipes.dst, pipes.src};
      if (depth == 0 && !of_other_core()) {  // its event ids are taken for good
        b.filled_event = static_cast<int8_t>(vnpu::event_allocate(pipes.src, pipes.dst));
        b.freed_event = static_cast<int8_t>(vnpu::event_allocate(b.freed.src, b.freed.dst));
        vnpu::set_freed_flag(b.freed.src, b.freed.dst, b.freed_event);
      }
    }
  }
  ASCENDC_INLINE detail::Buffer* buffer_of(void* handle, const char* api) {
    auto* b = static_cast<detail::Buffer*>(handle);
    if (!b) vnpu::misuse(api, "the tensor was not allocated from a queue");
    return b;
  }
  template <typename T>
  ASCENDC_INLINE void bind(LocalTensor<T>& tensor, detail::Buffer* b) {
    tensor.Bind(static_cast<T*>(b->address), static_cast<uint32_t>(vnpu::elements_in<T>(b->bytes)), position, b);
  }
  template <typename T>
  ASCENDC_INLINE LocalTensor<T> tensor_of(detail::Buffer* b) {
    LocalTensor<T> t;
    bind(t, b);
    return t;
  }
  ASCENDC_INLINE void await_freed(detail::Buffer* b) {
    if (b->freed_event < 0) return;
    vnpu::wait_freed_flag(pipes.dst, pipes.src, b->freed_event);
    if constexpr (depth == 0) return;
    vnpu::event_release(pipes.dst, pipes.src, b->freed_event);
    b->freed_event = -1;
  }
  template <typename T>
  ASCENDC_INLINE void allocate(LocalTensor<T>& tensor) {
    vnpu::queue_cost(depth > 1);
    detail::Buffer* b = nullptr;
    for (int32_t i = 0; i < count_ && !b; i++) {
      detail::Buffer* candidate = buffers_ + (next_ + i) % count_;
      if (candidate->state == detail::Buffer::Free) {
        b = candidate;
        next_ = (next_ + i + 1) % count_;
      }
    }
    if (!b)
      vnpu::misuse("TQue::AllocTensor", count_ ? "every buffer of the queue is taken: free a tensor first, or give the "
                                                 "queue more buffers in InitBuffer"
                                               : "the queue has no buffer: call TPipe::InitBuffer first");
    await_freed(b);
    b->state = detail::Buffer::Taken;
    bind(tensor, b);
  }
  ASCENDC_INLINE bool push(detail::PipePair way, TBufHandle buffer) {
    vnpu::queue_cost(depth > 1);
    detail::Buffer* b = buffer_of(buffer, "TQue::EnQue");
    if (b->state != detail::Buffer::Taken && b->state != detail::Buffer::InUse)
      vnpu::misuse("TQue::EnQue", "the tensor was not allocated from this queue, or is queued already");
    const bool other = of_other_core();
    if constexpr (depth != 0) {
      if (used_ >= depth) vnpu::misuse("TQue::EnQue", "more tensors are queued than the queue's depth");
      if (!other) b->filled_event = static_cast<int8_t>(vnpu::event_allocate(way.src, way.dst));
      order_[(head_ + used_) % kMaxQueueBuffers] = b;
      used_++;
    }
    if (!other) vnpu::set_flag(way.src, way.dst, b->filled_event);
    b->state = detail::Buffer::Queued;
    return true;
  }
  ASCENDC_INLINE detail::Buffer* pull(detail::PipePair way) {
    vnpu::queue_cost(depth > 1);
    if (used_ == 0)  // an error by the AscendC reference (DeQue); a device goes on (asc-devkit, kernel_tquebind_impl.h)
      vnpu::misuse("TQue::DeQue",
                   "the queue is empty: CANN's CPU debugging stops here, and a device's core goes on with "
                   "the tensor that was there last, waits for nothing, and miscounts the queue");
    detail::Buffer* b = order_[head_];
    head_ = (head_ + 1) % kMaxQueueBuffers;
    used_--;
    b->state = detail::Buffer::InUse;
    if (of_other_core()) return b;
    vnpu::wait_flag(way.src, way.dst, b->filled_event);
    vnpu::event_release(way.src, way.dst, b->filled_event);
    b->filled_event = -1;
    return b;
  }

  detail::Buffer* buffers_ = nullptr;
  detail::Buffer* order_[kMaxQueueBuffers] = {};
  int32_t count_ = 0, next_ = 0, head_ = 0, used_ = 0;
};

// A way into L1: a cube core's own copies, or what a vector core asks its cube core for (AscendC reference, TSCM).
template <TPosition pos, int32_t depth = 1, auto mask = 0>
using TSCM = TQueBind<pos, TPosition::TSCM, depth, mask>;

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
  // Names of a queue, for code that takes either: they order nothing.
  template <typename T>
  ASCENDC_INLINE void EnQue(const LocalTensor<T>&) {}
  template <typename T>
  ASCENDC_INLINE LocalTensor<T> DeQue() {
    return Get<T>();
  }
  ASCENDC_INLINE uint32_t GetBufLen() const { return bytes_; }

 private:
  friend class TPipe;
  template <TPosition, uint32_t>
  friend class TBufPool;
  void* address_ = nullptr;
  uint32_t bytes_ = 0;
};

}  // namespace AscendC
