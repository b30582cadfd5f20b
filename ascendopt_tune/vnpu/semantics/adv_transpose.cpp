// The high-level Transpose of tiles: one body, with the summed cost of the instructions that its page names
// (asc-devkit): each tile is turned twice by TransDataTo5HD, and copied in between where the last axis is split or
// joined.
#include "vnpu/adv_transpose.h"

#include "composite.h"
#include "local_call.h"

namespace vnpu {
namespace {

constexpr uint32_t kTile = 16;
constexpr uint8_t kRest = 0xA5;  // what is in a tile behind the last column, which nobody promises

uint32_t filled(uint32_t columns) { return (columns + kTile - 1) / kTile * kTile; }

// Element (s, c) of the tiles of one matrix of `rows` rows.
uint64_t in_tiles(uint32_t rows, uint32_t s, uint32_t c) {
  return (uint64_t(c / kTile) * rows + s) * kTile + c % kTile;
}

bool splits(const LayoutTranspose& t) {
  return t.kind == LayoutTranspose::kSplitToNz || t.kind == LayoutTranspose::kSplitToNd;
}
bool joins(const LayoutTranspose& t) {
  return t.kind == LayoutTranspose::kJoinToNz || t.kind == LayoutTranspose::kJoinToNd;
}

uint64_t place_in_source(const LayoutTranspose& t, uint32_t b, uint32_t n, uint32_t s, uint32_t d) {
  if (splits(t)) return uint64_t(b) * t.s * filled(t.n * t.d) + in_tiles(t.s, s, n * t.d + d);
  return (uint64_t(b) * t.n + n) * t.s * filled(t.d) + in_tiles(t.s, s, d);
}

uint64_t place_in_result(const LayoutTranspose& t, uint32_t b, uint32_t n, uint32_t s, uint32_t d) {
  const uint32_t wide = filled(t.d), joined = filled(t.n * t.d);
  switch (t.kind) {
    case LayoutTranspose::kSwapToNd:
      return ((uint64_t(b) * t.s + s) * t.n + n) * wide + d;
    case LayoutTranspose::kSwapToNz:
      return (uint64_t(b) * t.s + s) * t.n * wide + in_tiles(t.n, n, d);
    case LayoutTranspose::kSplitToNz:
      return (uint64_t(b) * t.n + n) * t.s * wide + in_tiles(t.s, s, d);
    case LayoutTranspose::kSplitToNd:
      return ((uint64_t(b) * t.n + n) * t.s + s) * wide + d;
    case LayoutTranspose::kJoinToNd:
      return (uint64_t(b) * t.s + s) * joined + n * t.d + d;
    case LayoutTranspose::kJoinToNz:
      return uint64_t(b) * t.s * joined + in_tiles(t.s, s, n * t.d + d);
  }
  return 0;
}

uint64_t elements(const LayoutTranspose& t, bool of_one_matrix) {
  return uint64_t(t.b) * t.s * (of_one_matrix ? filled(t.n * t.d) : t.n * filled(t.d));
}

template <typename T>
void move(const LayoutTranspose& t, uint64_t written) {
  T* dst = static_cast<T*>(t.dst);
  const T* src = static_cast<const T*>(t.src);
  const std::vector<T> in(src, src + elements(t, splits(t)));
  std::memset(dst, kRest, written * sizeof(T));
  for (uint32_t b = 0; b < t.b; b++)
    for (uint32_t n = 0; n < t.n; n++)
      for (uint32_t s = 0; s < t.s; s++)
        for (uint32_t d = 0; d < t.d; d++) dst[place_in_result(t, b, n, s, d)] = in[place_in_source(t, b, n, s, d)];
}

// A repeat turns 16 blocks of 32 bytes, in 3 cycles where its rows lie in different groups of banks, as in a tile.
Work turning_cost(const LayoutTranspose& t, Core& core) {
  constexpr double kCycles = 3;
  const uint32_t size = dtype_size(t.dtype);
  const double tiles = static_cast<double>(std::max(elements(t, splits(t)), elements(t, joins(t)))) / (kTile * kTile);
  const double repeats = tiles * size / 2, columns = tiles / (t.s / kTile);
  Composite cost(core);
  cost.add_heads("TransDataTo5HD", 2 * columns, 2 * repeats * kCycles, DType::None);
  if (splits(t) || joins(t)) cost.add("Copy", tiles * repeats_of(kTile * kTile, size));
  return cost.work();
}

}  // namespace

void transpose_layout(const LayoutTranspose& t, const char* api) {
  LocalCall call(api, VNPU_PC);
  if (t.b == 0 || t.n == 0 || t.s == 0 || t.d == 0) return;
  call.require(t.s % kTile == 0, "S has to fill tiles of 16 rows");
  const uint32_t size = dtype_size(t.dtype);
  const uint64_t written = elements(t, joins(t));
  call.read(t.src, elements(t, splits(t)) * size, "src");
  call.write(t.dst, written * size, "dst");
  call.write(t.work, uint64_t(t.temporary) * size, "sharedTmpBuffer");
  size == 2 ? move<uint16_t>(t, written) : move<uint32_t>(t, written);
  call.issue(turning_cost(t, call.core));
}

}  // namespace vnpu
