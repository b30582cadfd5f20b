"""C++ that printed kernels begin with: small numbers, transfers, and what takes more than one instruction."""

from __future__ import annotations

HELPERS = """\
template <typename T>
__aicore__ inline T MinOf(T a, T b) {
  return a < b ? a : b;
}
template <typename T>
__aicore__ inline T MaxOf(T a, T b) {
  return a > b ? a : b;
}
__aicore__ inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
__aicore__ inline int64_t CeilAlign(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

// The second pipe of the pair waits for what the first was given so far.
template <HardEvent event>
__aicore__ inline void WaitPipe() {
  const event_t id = static_cast<event_t>(GetTPipePtr()->FetchEventID(event));
  SetFlag<event>(id);
  WaitFlag<event>(id);
}

// `count` elements from `offset` on; with `rows` that many times, `stride` elements apart, `pitch` apart in UB.
template <typename T>
__aicore__ inline void CopyIn(const LocalTensor<T>& dst, const GlobalTensor<T>& src, int64_t offset, int64_t count,
                              int64_t rows = 1, int64_t stride = 0, int64_t pitch = 0) {
  constexpr int64_t block = 32 / sizeof(T);
  if (rows > 1 && stride == count && pitch == count) {  // rows without gaps are one piece
    count *= rows;
    rows = 1;
  }
  const int64_t sourceGap = rows > 1 ? (stride - count) * static_cast<int64_t>(sizeof(T)) : 0;
  const int64_t targetGap = rows > 1 ? (pitch - CeilAlign(count, block)) / block : 0;
  DataCopyExtParams params{static_cast<uint16_t>(rows), static_cast<uint32_t>(count * sizeof(T)),
                           static_cast<uint32_t>(sourceGap), static_cast<uint32_t>(targetGap), 0};
  DataCopyPadExtParams<T> pad{false, 0, 0, 0};
  DataCopyPad(dst, src[offset], params, pad);
}

template <typename T>
__aicore__ inline void CopyOut(const GlobalTensor<T>& dst, const LocalTensor<T>& src, int64_t offset, int64_t count,
                               int64_t rows = 1, int64_t stride = 0, int64_t pitch = 0) {
  constexpr int64_t block = 32 / sizeof(T);
  if (rows > 1 && stride == count && pitch == count) {
    count *= rows;
    rows = 1;
  }
  const int64_t sourceGap = rows > 1 ? (pitch - CeilAlign(count, block)) / block : 0;
  const int64_t targetGap = rows > 1 ? (stride - count) * static_cast<int64_t>(sizeof(T)) : 0;
  DataCopyExtParams params{static_cast<uint16_t>(rows), static_cast<uint32_t>(count * sizeof(T)),
                           static_cast<uint32_t>(sourceGap), static_cast<uint32_t>(targetGap), 0};
  DataCopyPad(dst[offset], src, params);
}
"""

REDUCE_TILE = """\
// dst[0] = the sum (kind 's'), the largest ('x') or the smallest ('n') of `count` elements: blocks of eight become one
// element again and again (64 elements a cycle; a repeat to one element would take seven cycles), then the last repeat.
template <char kind>
__aicore__ inline void ReduceBlocks(const LocalTensor<float>& dst, const LocalTensor<float>& src, int64_t repeats,
                                    int64_t lanes) {
  const int32_t n = static_cast<int32_t>(repeats), mask = static_cast<int32_t>(lanes);
  if constexpr (kind == 's') {
    BlockReduceSum<float>(dst, src, n, mask, 1, 1, 8);
  } else if constexpr (kind == 'x') {
    BlockReduceMax<float>(dst, src, n, mask, 1, 1, 8);
  } else {
    BlockReduceMin<float>(dst, src, n, mask, 1, 1, 8);
  }
}

template <char kind>
__aicore__ inline void ReduceTile(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                                  const LocalTensor<float>& work, int64_t count) {
  constexpr int64_t lanes = 64, repeatsMax = 248;
  const int64_t second = CeilAlign(CeilDiv(count, lanes) * 8, lanes);  // results go to two parts of `work` in turn
  LocalTensor<float> from = src;
  bool odd = false;
  while (count > lanes) {
    LocalTensor<float> to = work[odd ? second : 0];
    const int64_t full = count / lanes, tail = count % lanes;
    for (int64_t at = 0; at < full; at += repeatsMax) {
      ReduceBlocks<kind>(to[at * 8], from[at * lanes], MinOf<int64_t>(repeatsMax, full - at), lanes);
    }
    if (tail > 0) {
      ReduceBlocks<kind>(to[full * 8], from[full * lanes], 1, tail);
    }
    PipeBarrier<PIPE_V>();
    count = full * 8 + CeilDiv(tail, 8);
    from = to;
    odd = !odd;
  }
  const int32_t mask = static_cast<int32_t>(count);
  if constexpr (kind == 's') {
    WholeReduceSum<float>(dst, from, mask, 1, 1, 1, 8);
  } else if constexpr (kind == 'x') {
    WholeReduceMax<float>(dst, from, mask, 1, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);
  } else {
    WholeReduceMin<float>(dst, from, mask, 1, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);
  }
}
"""

REDUCE_ROWS = """\
// dst[r] = the sum (kind 's'), the largest ('x') or the smallest ('n') element of row r; `part` is as long as dst.
template <char kind>
__aicore__ inline void ReduceRows(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                                  const LocalTensor<float>& part, int64_t rows, int64_t cols, int64_t pitch) {
  constexpr int64_t lanes = 64, repeatsMax = 248;
  const int32_t stride = static_cast<int32_t>(pitch / 8);
  for (int64_t at = 0; at < cols; at += lanes) {
    const int32_t mask = static_cast<int32_t>(MinOf<int64_t>(lanes, cols - at));
    LocalTensor<float> to = at == 0 ? dst : part;
    for (int64_t row = 0; row < rows; row += repeatsMax) {
      const int32_t repeats = static_cast<int32_t>(MinOf<int64_t>(repeatsMax, rows - row));
      if constexpr (kind == 's') {
        WholeReduceSum<float>(to[row], src[row * pitch + at], mask, repeats, 1, 1, stride);
      } else if constexpr (kind == 'x') {
        WholeReduceMax<float>(to[row], src[row * pitch + at], mask, repeats, 1, 1, stride,
                              ReduceOrder::ORDER_ONLY_VALUE);
      } else {
        WholeReduceMin<float>(to[row], src[row * pitch + at], mask, repeats, 1, 1, stride,
                              ReduceOrder::ORDER_ONLY_VALUE);
      }
    }
    PipeBarrier<PIPE_V>();
    if (at == 0) {
      continue;
    }
    if constexpr (kind == 's') {
      Add(dst, dst, part, static_cast<int32_t>(rows));
    } else if constexpr (kind == 'x') {
      Max(dst, dst, part, static_cast<int32_t>(rows));
    } else {
      Min(dst, dst, part, static_cast<int32_t>(rows));
    }
    PipeBarrier<PIPE_V>();
  }
}
"""
REDUCE_COLUMNS = """\
// dst = the rows of src joined: their sum (kind 's'), product ('p'), largest ('x') or smallest ('n') elements. The last
// half of the rows goes to the first half, again and again; `work` holds half of them.
template <char kind>
__aicore__ inline void Join(const LocalTensor<float>& dst, const LocalTensor<float>& a, const LocalTensor<float>& b,
                            int64_t count) {
  const int32_t n = static_cast<int32_t>(count);
  if constexpr (kind == 's') {
    Add(dst, a, b, n);
  } else if constexpr (kind == 'p') {
    Mul(dst, a, b, n);
  } else if constexpr (kind == 'x') {
    Max(dst, a, b, n);
  } else {
    Min(dst, a, b, n);
  }
}

template <char kind>
__aicore__ inline void ReduceColumns(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                                     const LocalTensor<float>& work, int64_t rows, int64_t cols, int64_t pitch) {
  const int32_t n = static_cast<int32_t>(cols);
  PipeBarrier<PIPE_V>();
  if (rows == 1) {
    Adds(dst, src, 0.0f, n);
    PipeBarrier<PIPE_V>();
    return;
  }
  int64_t left = rows - rows / 2;
  if (rows % 2 != 0) {  // the row in the middle has no other
    Adds(work[(left - 1) * pitch], src[(left - 1) * pitch], 0.0f, n);
  }
  Join<kind>(work, src, src[left * pitch], (rows / 2 - 1) * pitch + cols);
  PipeBarrier<PIPE_V>();
  while (left > 1) {
    const int64_t half = left / 2;
    left -= half;
    Join<kind>(work, work, work[left * pitch], (half - 1) * pitch + cols);
    PipeBarrier<PIPE_V>();
  }
  Adds(dst, work, 0.0f, n);
  PipeBarrier<PIPE_V>();
}
"""

COPY_IN_PADDED = """\
// `count` elements from `offset` on, with `before` and `after` elements of `value` at the ends.
template <typename T>
__aicore__ inline void CopyInPadded(const LocalTensor<T>& dst, const GlobalTensor<T>& src, int64_t offset,
                                    int64_t count, int64_t before, int64_t after, T value) {
  DataCopyExtParams params{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
  DataCopyPadExtParams<T> pad{true, static_cast<uint8_t>(before), static_cast<uint8_t>(after), value};
  DataCopyPad(dst, src[offset], params, pad);
}
"""

SCAN_TILE = """\
// dst[i] = the sum (kind 's') or product ('p') of src[0] to src[i]; `back`: of src[i] to the last. By doubling steps:
// what lies k elements before is gathered where k is less than a block, and read at its own address where it isn't.
template <char kind>
__aicore__ inline void ScanJoin(const LocalTensor<float>& dst, const LocalTensor<float>& a, const LocalTensor<float>& b,
                                int64_t count) {
  if constexpr (kind == 's') {
    Add(dst, a, b, static_cast<int32_t>(count));
  } else {
    Mul(dst, a, b, static_cast<int32_t>(count));
  }
}

template <char kind, bool back>
__aicore__ inline void ScanTile(const LocalTensor<float>& dst, const LocalTensor<float>& src,
                                const LocalTensor<int32_t>& index, const LocalTensor<int32_t>& offset,
                                const LocalTensor<float>& work, int64_t count) {
  constexpr int64_t front = back ? 0 : 8;  // neutral elements before the first one, or behind the last
  const int32_t n = static_cast<int32_t>(count);
  PipeBarrier<PIPE_V>();
  const int64_t edge = back ? count / 8 * 8 : 0;
  Duplicate(work[edge], kind == 's' ? 0.0f : 1.0f, static_cast<int32_t>(back ? CeilAlign(count, 8) + 8 - edge : 8));
  Muls(offset, index, static_cast<int32_t>(4), n);
  PipeBarrier<PIPE_V>();
  Adds(work[front], src, 0.0f, n);
  PipeBarrier<PIPE_V>();
  for (int64_t k = 1; k < 8 && k < count; k *= 2) {
    Gather(dst, work, offset.ReinterpretCast<uint32_t>(), static_cast<uint32_t>((back ? k : 8 - k) * 4), n);
    PipeBarrier<PIPE_V>();
    ScanJoin<kind>(work[front], work[front], dst, count);
    PipeBarrier<PIPE_V>();
  }
  LocalTensor<float> from = work[front], to = dst;
  bool done = false;
  for (int64_t k = 8; k < count; k *= 2) {  // to and fro; the k elements that have nothing to take are copied
    const int64_t joined = back ? 0 : k, alone = back ? (count - k) / 8 * 8 : 0;
    Adds(to[alone], from[alone], 0.0f, static_cast<int32_t>(back ? count - alone : k));
    if constexpr (back) {
      PipeBarrier<PIPE_V>();
    }
    ScanJoin<kind>(to[joined], from[joined], from[back ? k : 0], count - k);
    PipeBarrier<PIPE_V>();
    LocalTensor<float> last = from;
    from = to;
    to = last;
    done = !done;
  }
  if (!done) {
    Adds(dst, from, 0.0f, n);
    PipeBarrier<PIPE_V>();
  }
}
"""

TAKE_ROWS = """\
// dst = `count` rows of src from `start` on, `step` apart; `value` where src, which has `rows` of them, has none.
__aicore__ inline void TakeRows(const LocalTensor<float>& dst, const LocalTensor<float>& src, int64_t start,
                                int64_t step, int64_t count, float value, int64_t rows, int64_t cols, int64_t pitch) {
  constexpr int64_t lanes = 64, repeatsMax = 248, strideMax = 255;
  const int64_t first = start < 0 ? MinOf<int64_t>(count, CeilDiv(-start, step)) : 0;
  const int64_t last = start < rows ? MaxOf<int64_t>(first, MinOf<int64_t>(count, CeilDiv(rows - start, step))) : first;
  if (first > 0) {
    Duplicate(dst, value, static_cast<int32_t>(first * pitch));
  }
  if (last < count) {
    Duplicate(dst[last * pitch], value, static_cast<int32_t>((count - last) * pitch));
  }
  const int64_t far = step * pitch / 8;
  if (far > strideMax) {
    for (int64_t row = first; row < last; row++) {
      Muls(dst[row * pitch], src[(start + row * step) * pitch], 1.0f, static_cast<int32_t>(cols));
    }
    return;
  }
  const UnaryRepeatParams strides{1, 1, static_cast<uint8_t>(pitch / 8), static_cast<uint8_t>(far)};
  for (int64_t at = 0; at < cols; at += lanes) {  // rows are repeats
    const uint64_t mask = static_cast<uint64_t>(MinOf<int64_t>(lanes, cols - at));
    for (int64_t row = first; row < last; row += repeatsMax) {
      const uint8_t repeats = static_cast<uint8_t>(MinOf<int64_t>(repeatsMax, last - row));
      Muls(dst[row * pitch + at], src[(start + row * step) * pitch + at], 1.0f, mask, repeats, strides);
    }
  }
}
"""
