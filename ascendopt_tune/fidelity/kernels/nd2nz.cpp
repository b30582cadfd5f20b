// half [8192, 8192] from rows (ND) to columns of 32-byte blocks (NZ), in tiles of 144 x 128: copy in, Copy within UB,
// copy out; ping and pong. GAP: blocks left out between two columns of a tile in UB, against bank conflicts.
#include "kernel_operator.h"

using namespace AscendC;

constexpr uint32_t kSize = 8192, kRows = 144, kColumns = 128, kBlock = 16;  // elements; a block is 16 halves
constexpr uint32_t kRowGroups = 6, kColumnGroups = 8;
constexpr uint32_t kBlocksWide = kColumns / kBlock, kPitch = kRows + GAP;
constexpr uint32_t kNdBytes = kRows * kColumns * 2,
                   kNzBytes = ((kRows - 1) + (kBlocksWide - 1) * kPitch + 1 + GAP) * 32;

extern "C" __global__ __aicore__ void nd2nz(GM_ADDR x, GM_ADDR z) {
  GlobalTensor<half> from, to;
  from.SetGlobalBuffer((__gm__ half*)x, kSize * kSize);
  to.SetGlobalBuffer((__gm__ half*)z, kSize * kSize);
  const uint32_t block = GetBlockIdx(), group = block / kColumnGroups;
  const uint32_t tall = (kSize + kRows - 1) / kRows, wide = kSize / kColumns / kColumnGroups;
  const uint32_t each = tall / kRowGroups, more = tall % kRowGroups;
  const uint32_t first = group * each + (group < more ? group : more), tiles = (each + (group < more ? 1 : 0)) * wide;
  for (int32_t id = 0; id < 2; id++) {
    SetFlag<HardEvent::V_MTE2>(id);
    SetFlag<HardEvent::MTE3_V>(id);
  }
  for (uint32_t i = 0; i < tiles; i++) {
    const int32_t id = static_cast<int32_t>(i % 2);
    LocalTensor<half> nd(TPosition::VECIN, id * kNdBytes, kNdBytes / 2);
    LocalTensor<half> nz(TPosition::VECOUT, 2 * kNdBytes + id * kNzBytes, kNzBytes / 2);
    const uint32_t row = (first + i / wide) * kRows, column = (block % kColumnGroups * wide + i % wide) * kColumns;
    const uint32_t rows = kSize - row < kRows ? kSize - row : kRows;
    WaitFlag<HardEvent::V_MTE2>(id);
    DataCopy(nd, from[row * kSize + column], DataCopyParams(rows, kBlocksWide, (kSize - kColumns) / kBlock, 0));
    SetFlag<HardEvent::MTE2_V>(id);
    WaitFlag<HardEvent::MTE2_V>(id);
    WaitFlag<HardEvent::MTE3_V>(id);
    Copy(nz, nd, kColumns, static_cast<uint8_t>(rows), CopyRepeatParams(kPitch, 1, 1, kBlocksWide));
    SetFlag<HardEvent::V_MTE2>(id);
    SetFlag<HardEvent::V_MTE3>(id);
    WaitFlag<HardEvent::V_MTE3>(id);
    DataCopy(to[(row + column / kBlock * kSize) * kBlock], nz,
             DataCopyParams(kBlocksWide, rows, kPitch - rows, kSize - rows));
    SetFlag<HardEvent::MTE3_V>(id);
  }
  for (int32_t id = 0; id < 2; id++) {
    WaitFlag<HardEvent::V_MTE2>(id);
    WaitFlag<HardEvent::MTE3_V>(id);
  }
  PipeBarrier<PIPE_ALL>();
}
