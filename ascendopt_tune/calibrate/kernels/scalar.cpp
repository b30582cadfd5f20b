// What the scalar unit does, and what waits for it, `times` times: the case `which`, by the names that follow CASE.
// microbenchmarks.py reads them here. `data` is global memory of at least 1 MiB.
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t kLine = 64, kSpan = 1 << 20;  // bytes of a line of the data cache, and of the memory that is walked

#define CASE(NUMBER, NAME, ...)            \
  case NUMBER:                             \
    for (uint32_t i = 0; i < times; i++) { \
      __VA_ARGS__                          \
    }                                      \
    break;

extern "C" __global__ __aicore__ void scalar(GM_ADDR data, uint32_t which, uint32_t times) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  GlobalTensor<int32_t> gm;
  gm.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(data), kSpan / 4);
  LocalTensor<int32_t> ub(TPosition::VECCALC, 0, 64);
  LocalTensor<float> x(TPosition::VECCALC, 1024, 4096), y(TPosition::VECCALC, 65536 + 256, 4096),
      z(TPosition::VECCALC, 131072 + 256, 4096);
  const BinaryRepeatParams two(1, 1, 1, 8, 8, 8);
  uint32_t at = 0;
  int32_t sum = 0;
  float value = 0, index = 0;
  Duplicate(x, 0.0f, 4096);
  Duplicate(y, 0.0f, 4096);
  Duplicate(ub, 0, 64);
  WholeReduceMax(z, x, 64, 1, 1, 1, 8);
  PipeBarrier<PIPE_ALL>();
  switch (which) {
    CASE(0, "flag", SetFlag<HardEvent::V_MTE2>(0); WaitFlag<HardEvent::V_MTE2>(0);)
    CASE(1, "vector_to_scalar", Add(z, x, y, 64, 1, two); SetFlag<HardEvent::V_S>(0); WaitFlag<HardEvent::V_S>(0);)
    CASE(2, "vector_by_count", Add(z, x, y, 64); SetFlag<HardEvent::V_S>(0); WaitFlag<HardEvent::V_S>(0);)
    CASE(3, "vector_barrier", Add(x, x, y, 64, 1, two); PipeBarrier<PIPE_V>();)
    CASE(4, "all_barrier", Add(z, x, y, 64, 1, two); PipeBarrier<PIPE_ALL>();)
    CASE(5, "register", GetReduceMaxMinCount(value, index); sum += static_cast<int32_t>(index);)
    CASE(6, "ub", sum += ub.GetValue(i % 8);)
    CASE(7, "gm_hit", sum += gm.GetValue(i % 8);)
    CASE(8, "gm_miss", sum += gm.GetValue(at); at = at + kLine < kSpan / 4 ? at + kLine : 0;)
    CASE(9, "sync_all", SyncAll();)
    CASE(10, "vector_barriers", Add(x, x, y, 64, 1, two); PipeBarrier<PIPE_V>(); PipeBarrier<PIPE_V>();
         PipeBarrier<PIPE_V>(); PipeBarrier<PIPE_V>();)
    CASE(11, "ub_store", ub.SetValue(i % 8, sum);)
    CASE(12, "ub_move", ub.SetValue(i % 8, ub.GetValue(8 + i % 8));)
    CASE(13, "gm_miss_move", ub.SetValue(i % 8, gm.GetValue(at)); at = at + kLine < kSpan / 4 ? at + kLine : 0;)
  }
  ub.SetValue(0, sum + static_cast<int32_t>(value));
  PipeBarrier<PIPE_ALL>();
}
