"""The class that kernels get for results of rows: slots for floats that rows are reduced to, and the wait for them."""

from __future__ import annotations

CLASS_NAME = "ResultsOfRows"
CLASS = """\
#ifndef RESULTS_OF_ROWS
#define RESULTS_OF_ROWS
// Sums or largest values of rows, which the scalar unit waits for once. Rows are written over.
class ResultsOfRows {
 public:
  static constexpr uint32_t ROWS = 64;
  __aicore__ inline void Begin() {
    if (!made) {
      AscendC::GetTPipePtr()->InitBuffer(memory, ROWS * sizeof(float));
      made = true;
    }
    event_t taken = static_cast<event_t>(AscendC::GetTPipePtr()->FetchEventID(AscendC::HardEvent::S_V));
    AscendC::SetFlag<AscendC::HardEvent::S_V>(taken);
    AscendC::WaitFlag<AscendC::HardEvent::S_V>(taken);
  }
  // Of rows of count elements, which begin as many elements apart; results begin at number at.
  template <bool SUMS>
  __aicore__ inline void Reduce(const AscendC::LocalTensor<float>& x, uint32_t at, uint32_t rows, uint32_t count,
                                uint32_t apart) {
    const AscendC::LocalTensor<float> results = memory.Get<float>();
    AscendC::PipeBarrier<PIPE_V>();
    if (rows > 1 && apart % 8 == 0 && apart <= 255 * 8) {
      const uint8_t stride = static_cast<uint8_t>(apart / 8);
      for (uint32_t k = 64; k < count; k += 64) {
        Fold<SUMS>(x, x[k], static_cast<uint64_t>(count - k < 64 ? count - k : 64), static_cast<uint8_t>(rows), stride);
      }
      Last<SUMS>(results[at], x, static_cast<int32_t>(count < 64 ? count : 64), static_cast<int32_t>(rows), stride);
    } else {
      for (uint32_t row = 0; row < rows; row++) {
        const AscendC::LocalTensor<float> one = x[row * apart];
        if constexpr (SUMS) {
          AscendC::ReduceSum(results[at + row], one, one, static_cast<int32_t>(count));
        } else {
          AscendC::ReduceMax(results[at + row], one, one, static_cast<int32_t>(count));
        }
      }
    }
    AscendC::PipeBarrier<PIPE_V>();
  }
  __aicore__ inline void Wait() {
    event_t there = static_cast<event_t>(AscendC::GetTPipePtr()->FetchEventID(AscendC::HardEvent::V_S));
    AscendC::SetFlag<AscendC::HardEvent::V_S>(there);
    AscendC::WaitFlag<AscendC::HardEvent::V_S>(there);
  }
  __aicore__ inline float Of(uint32_t row) { return memory.Get<float>().GetValue(row); }

 private:
  template <bool SUMS>
  __aicore__ inline void Fold(const AscendC::LocalTensor<float>& x, const AscendC::LocalTensor<float>& upper,
                              uint64_t lanes, uint8_t rows, uint8_t stride) {
    if constexpr (SUMS) {
      AscendC::Add(x, x, upper, lanes, rows, AscendC::BinaryRepeatParams(1, 1, 1, stride, stride, stride));
    } else {
      AscendC::Max(x, x, upper, lanes, rows, AscendC::BinaryRepeatParams(1, 1, 1, stride, stride, stride));
    }
    AscendC::PipeBarrier<PIPE_V>();
  }
  template <bool SUMS>
  __aicore__ inline void Last(const AscendC::LocalTensor<float>& to, const AscendC::LocalTensor<float>& x,
                              int32_t lanes, int32_t rows, int32_t stride) {
    if constexpr (SUMS) {
      AscendC::WholeReduceSum(to, x, lanes, rows, 1, 1, stride);
    } else {
      AscendC::WholeReduceMax(to, x, lanes, rows, 1, 1, stride, AscendC::ReduceOrder::ORDER_ONLY_VALUE);
    }
  }

  AscendC::TBuf<AscendC::TPosition::VECCALC> memory;
  bool made = false;
};
#endif

"""
