// Copies on cube cores that make, bring or turn tiles: global memory to L1, L1 to L0A, L0B and the tables. Limits and
// units: asc-devkit, pages of matrix computation.
#include <algorithm>
#include <cstring>
#include <vector>

#include "../core/transfers.h"
#include "../core/vector.h"
#include "float16.h"
#include "vnpu/cube.h"

namespace vnpu {
namespace {

// One matrix of ND2NZ in L1: dense columns of tiles are one run of equal pieces.
void note_tiles(std::vector<Access>& accesses, void* dst, const RowsToTiles& s, uint32_t columns) {
  if (s.tile_row_stride == kBlockBytes) {
    accesses.push_back({pieces(dst, uint64_t(s.rows) * kBlockBytes, columns, s.column_stride), true});
    return;
  }
  for (uint32_t c = 0; c < columns; c++)
    accesses.push_back({pieces(byte_at(dst, c * s.column_stride), kBlockBytes, s.rows, s.tile_row_stride), true});
}

// Values of one matrix; what is behind a row's last element becomes 0 up to the next block, as the device does.
void make_tiles(Core& c, const AccessSite& site, void* dst, const void* src, const RowsToTiles& s,
                const Allocation& from, uint64_t begin) {
  const bool tracked = from.unwritten.load(std::memory_order_acquire) != nullptr;
  for (uint32_t r = 0; r < s.rows; r++)
    for (uint64_t done = 0; done < s.row_bytes; done += kBlockBytes) {
      uint8_t* to = byte_at(dst, done / kBlockBytes * s.column_stride + r * s.tile_row_stride);
      const uint64_t there = std::min<uint64_t>(kBlockBytes, s.row_bytes - done);
      std::memcpy(to, byte_at(src, r * s.row_stride + done), there);
      std::memset(to + there, 0, kBlockBytes - there);
      if (!tracked) continue;
      c.unwritten.write(pieces(to, kBlockBytes, 1, 0));
      c.unwritten.load(site, to, from, begin + r * s.row_stride + done, there);
    }
}

// How rows that become tiles lie in the windows of global memory.
void note_rows(Transfer& t, uint64_t canonical, const CopyShape& s, uint64_t stride, const Chip& chip) {
  const auto window = static_cast<uint64_t>(chip.gm_request_bytes);
  t.rearranged = true;
  if (t.pieces != s.bursts) return;  // short rows without gaps are one run
  for (uint32_t r = 0; r < s.bursts; r++) {
    const uint64_t begin = canonical + r * stride, end = begin + s.burst_bytes;
    const auto touched = static_cast<uint32_t>((end - 1) / window - begin / window + 1);
    t.crossing += touched > 1 && begin % window != 0;
    if (begin % chip.gm_cut_bytes == 0) continue;
    t.off_cuts++;
    t.off_requests += touched;
  }
}

// What the memory system sees of matrices whose rows lie `row_stride` apart.
Transfer transfer_of_rows(uint64_t canonical, const RowsToTiles& s, const Chip& chip) {
  CopyShape shape;
  const bool one_run = s.matrices == 1 || s.matrix_stride == s.rows * s.row_stride;
  shape.bursts = one_run ? s.rows * s.matrices : s.rows;
  shape.burst_bytes = s.row_bytes;
  shape.cached = s.cached;
  Transfer t = transfer_of(canonical, shape, s.row_stride, false, chip);
  note_rows(t, canonical, shape, s.row_stride, chip);
  if (one_run) return t;
  t.bytes *= s.matrices;  // as the first one's; to L2 a matrix is all from its first row to its last
  t.requests *= s.matrices;
  t.gm_bytes *= s.matrices;
  t.pieces *= s.matrices;
  t.same_line *= s.matrices;
  t.off_cuts *= s.matrices;
  t.off_requests *= s.matrices;
  t.crossing *= s.matrices;
  t.bursts = s.matrices;
  t.burst_bytes = static_cast<uint32_t>((s.rows - 1) * s.row_stride + s.row_bytes);
  t.burst_stride = s.matrix_stride;
  return t;
}

// Where the tiles of a load lie at its source.
Range source_tiles(const void* src, uint64_t tile_bytes, uint32_t start, uint32_t repeats, uint32_t stride,
                   bool descending) {
  const uint64_t reach = uint64_t(repeats - 1) * stride * tile_bytes, first = start * tile_bytes;
  return pieces(byte_at(src, descending ? first - reach : first), tile_bytes, repeats, stride * tile_bytes);
}

const uint8_t* source_tile(const void* src, uint64_t tile_bytes, uint32_t start, uint32_t i, uint32_t stride,
                           bool descending) {
  const auto step = static_cast<int64_t>(uint64_t(i) * stride * tile_bytes);
  return static_cast<const uint8_t*>(src) + start * tile_bytes + (descending ? -step : step);
}

// One tile or square, byte by byte: f(byte of the destination) is the byte of the source. Unwritten bytes go along.
template <typename F>
void move_elements(Core& c, const AccessSite& site, uint8_t* to, const uint8_t* from, uint32_t elements, uint32_t size,
                   bool dirty, F f) {
  for (uint32_t i = 0; i < elements; i++) {
    const auto [d, s] = f(i);
    std::memcpy(to + d, from + s, size);
    if (dirty) c.unwritten.move(site, to + d, from + s, size);
  }
}

// The same of a square of 64 x 64 elements of half a byte, two in a byte: f(row, column) is the byte of the element in
// a square whose tiles lie `tile` bytes apart. A byte that nobody has written is handed on by either of its elements.
template <typename F>
void turn_halves(Core& c, const AccessSite& site, uint8_t* to, const uint8_t* from, uint64_t next, bool dirty, F f) {
  constexpr uint32_t kSide = 64;
  for (uint32_t r = 0; r < kSide; r++)
    for (uint32_t column = 0; column < kSide; column += 2) {
      uint8_t* const byte = to + f(r, column, next);
      const uint8_t* const low = from + f(column, r, uint64_t{kFractalBytes});
      const uint8_t* const high = from + f(column + 1, r, uint64_t{kFractalBytes});
      const uint32_t shift = r % 2 * 4;
      *byte = static_cast<uint8_t>((*low >> shift & 15) | (*high >> shift & 15) << 4);
      if (dirty) c.unwritten.move(site, byte, c.unwritten.any(pieces(low, 1, 1, 0)) ? low : high, 1);
    }
}

struct Places {
  uint64_t to, from;
};

// A square that is turned at once.
struct Square {
  uint32_t side, tiles;
  explicit Square(DType t) : side(t == DType::I4 ? 64 : dtype_size(t) == 1 ? 32 : 16), tiles(side / kFractalRows) {
    if (dtype_size(t) == 4) tiles = 2;
  }
};

float cycles_to(Memory to, uint64_t bytes) { return static_cast<float>(bytes) / (to == Memory::L0A ? 256.0f : 128.0f); }

}  // namespace

void copy_rows_to_tiles(void* dst, const void* src, const RowsToTiles& s, const char* api) {
  const void* pc = VNPU_PC;
  if (s.matrices == 0 || s.rows == 0 || s.row_bytes == 0) return;
  Core& c = core();
  c.needs(CoreKind::Cube, api, pc);
  const auto columns = static_cast<uint32_t>((s.row_bytes + kBlockBytes - 1) / kBlockBytes);
  std::vector<Access> accesses;
  uint64_t first = 0;
  for (uint32_t m = 0; m < s.matrices; m++) {
    void* to = byte_at(dst, m * s.tiled_matrix_stride);
    const void* from = byte_at(src, m * s.matrix_stride);
    const size_t noted = accesses.size();
    note_tiles(accesses, to, s, columns);
    for (size_t i = noted; i < accesses.size(); i++)
      c.check_local(accesses[i].range, kBlockBytes, api, pc, "destination", Memory::L1);
    const Range rows = pieces(from, s.row_bytes, s.rows, s.row_stride);
    const Allocation* in = nullptr;
    const uint64_t canonical = c.check_gm(rows, false, api, pc, "source", &in);
    for (size_t i = noted; i < accesses.size(); i++) c.unwritten.write(accesses[i].range);
    make_tiles(c, {Pipe::MTE2, api, pc, true}, to, from, s, *in, canonical - in->canonical);
    accesses.push_back({rows, false, true, false, canonical});
    if (m == 0) first = canonical;
  }
  const Transfer t = transfer_of_rows(first, s, c.chip);
  c.issue(Pipe::MTE2, api, pc, Work{}, accesses.data(), accesses.size(), &t);
}

void load_tiles(Memory to, void* dst, const void* src, const TileLoad& l, DType dtype, const char* api) {
  const void* pc = VNPU_PC;
  if (l.repeats == 0) return;
  Core& c = core();
  c.needs(CoreKind::Cube, api, pc);
  if (l.transpose && dtype_size(dtype) != 2) misused(api, "only tiles of 2-byte elements can be transposed", pc);
  const Range from = source_tiles(src, kFractalBytes, l.start, l.repeats, l.src_stride, l.descending);
  const Range into = pieces(dst, kFractalBytes, l.repeats, (1 + uint64_t(l.dst_gap)) * kFractalBytes);
  c.check_local(into, kFractalBytes, api, pc, "destination", to);
  c.check_local(from, kBlockBytes, api, pc, "source", Memory::L1);
  const AccessSite site{Pipe::MTE1, api, pc, false};
  const bool dirty = c.unwritten.any(from);
  if (!dirty) c.unwritten.write(into);
  for (uint32_t i = 0; i < l.repeats; i++) {
    uint8_t* d = byte_at(dst, i * into.stride);
    const uint8_t* s = source_tile(src, kFractalBytes, l.start, i, l.src_stride, l.descending);
    if (l.transpose) {
      move_elements(c, site, d, s, 256, 2, dirty, [](uint64_t e) { return Places{e * 2, (e % 16 * 16 + e / 16) * 2}; });
    } else {
      std::memcpy(d, s, kFractalBytes);
      if (dirty) c.unwritten.move(site, d, s, kFractalBytes);
    }
  }
  const Work work{c.chip.instruction("LoadData", dtype), 1, cycles_to(to, uint64_t(l.repeats) * kFractalBytes), 0};
  c.issue(Pipe::MTE1, api, pc, work, {{into, true}, {from, false}});
}

void load_tiles_and_places(void* dst, const void* src, const void* places, uint32_t start, uint32_t repeats,
                           const char* api) {
  const void* pc = VNPU_PC;
  if (repeats == 0) return;
  Core& c = core();
  c.needs(CoreKind::Cube, api, pc);
  constexpr uint32_t kPlaces = kFractalBytes / 4;  // bytes of a tile of places
  const Range from = pieces(byte_at(src, uint64_t(start) * kFractalBytes), uint64_t(repeats) * kFractalBytes, 1, 0);
  const Range where = pieces(byte_at(places, uint64_t(start) * kPlaces), uint64_t(repeats) * kPlaces, 1, 0);
  const Range into = pieces(dst, from.bytes, 1, 0);
  c.check_local(into, kFractalBytes, api, pc, "destination", Memory::L0B);
  c.check_local(from, kBlockBytes, api, pc, "source", Memory::L1);
  c.check_local(where, kBlockBytes, api, pc, "places", Memory::L1);
  const AccessSite site{Pipe::MTE1, api, pc, false};
  const bool dirty = c.unwritten.any(from), lost = c.unwritten.any(where);
  if (!dirty) c.unwritten.write(into);
  std::memcpy(dst, reinterpret_cast<const void*>(from.addr), from.bytes);
  if (dirty) c.unwritten.move(site, dst, reinterpret_cast<const void*>(from.addr), from.bytes);
  if (lost) c.unwritten.write(into, c.unwritten.origin_of(site, where));
  c.places.resize(c.chip.l0b_bytes / 4);
  std::memcpy(&c.places[(c.local_offset(dst) - c.map[Memory::L0B].offset) / 4],
              reinterpret_cast<const void*>(where.addr), where.bytes);
  const Work work{c.chip.instruction("LoadDataWithSparse", DType::I8), 1, cycles_to(Memory::L0B, from.bytes), 0};
  c.issue(Pipe::MTE1, api, pc, work, {{into, true}, {from, false}, {where, false}});
}

void load_tiles_from_gm(Memory to, void* dst, const void* src, const TileLoad& l, const char* api) {
  const void* pc = VNPU_PC;
  if (l.repeats == 0) return;
  Core& c = core();
  c.needs(CoreKind::Cube, api, pc);
  const Range from = source_tiles(src, kFractalBytes, l.start, l.repeats, l.src_stride, l.descending);
  const Range into = pieces(dst, kFractalBytes, l.repeats, (1 + uint64_t(l.dst_gap)) * kFractalBytes);
  c.check_local(into, to == Memory::L1 ? kBlockBytes : kFractalBytes, api, pc, "destination", to);
  const Allocation* in = nullptr;
  const uint64_t canonical = c.check_gm(from, false, api, pc, "source", &in);
  for (uint32_t i = 0; i < l.repeats; i++) {
    uint8_t* d = byte_at(dst, i * into.stride);
    const uint8_t* s = source_tile(src, kFractalBytes, l.start, i, l.src_stride, l.descending);
    std::memcpy(d, s, kFractalBytes);
    c.unwritten.load({Pipe::MTE2, api, pc, true}, d, *in,
                     static_cast<uint64_t>(s - reinterpret_cast<const uint8_t*>(in->base)), kFractalBytes);
  }
  CopyShape shape;
  shape.bursts = l.repeats;
  shape.burst_bytes = kFractalBytes;
  const Transfer t = transfer_of(canonical, shape, from.stride, false, c.chip);
  c.issue(Pipe::MTE2, api, pc, Work{}, {{into, true}, {from, false, true, false, canonical}}, &t);
}

void load_squares(Memory to, void* dst, const void* src, const SquareLoad& l, DType dtype, const char* api) {
  const void* pc = VNPU_PC;
  if (l.repeats == 0) return;
  Core& c = core();
  c.needs(CoreKind::Cube, api, pc);
  const uint32_t size = dtype_size(dtype);
  if (size != 1 && size != 2 && size != 4) unsupported_dtype(api, dtype, pc);
  const bool halves = dtype == DType::I4;
  if (halves && to != Memory::L0B) misused(api, "int4b_t can be turned on the way to L0B alone", pc);
  const auto [side, tiles] = Square(dtype);
  const uint64_t square = uint64_t(tiles) * kFractalBytes;
  const Range from = source_tiles(src, square, l.start, l.repeats, l.src_stride, l.descending);
  c.check_local(from, kBlockBytes, api, pc, "source", Memory::L1);
  const uint64_t step = (1 + uint64_t(l.dst_gap)) * kFractalBytes;
  const uint64_t next = (1 + uint64_t(l.tile_gap)) * kFractalBytes;
  Access accesses[5] = {{from, false}};
  for (uint32_t t = 0; t < tiles; t++) {
    accesses[1 + t] = {pieces(byte_at(dst, t * next), kFractalBytes, l.repeats, step), true};
    c.check_local(accesses[1 + t].range, kFractalBytes, api, pc, "destination", to);
  }
  const bool dirty = c.unwritten.any(from);
  // Where element (r, c) of a square lies when its tiles are side by side (4 bytes), or one below the other.
  const auto place = [size = size, halves](uint64_t r, uint64_t col, uint64_t tile) {
    return size == 4 ? col / 8 * tile + r * kBlockBytes + col % 8 * 4
                     : r / 16 * tile + r % 16 * kBlockBytes + (halves ? col / 2 : col * size);
  };
  for (uint32_t i = 0; i < l.repeats; i++) {
    for (uint32_t t = 0; t < tiles && !dirty; t++)
      c.unwritten.write(pieces(byte_at(dst, i * step + t * next), kFractalBytes, 1, 0));
    const AccessSite site{Pipe::MTE1, api, pc, false};
    const uint8_t* const one = source_tile(src, square, l.start, i, l.src_stride, l.descending);
    if (halves)
      turn_halves(c, site, byte_at(dst, i * step), one, next, dirty, place);
    else
      move_elements(c, site, byte_at(dst, i * step), one, side * side, size, dirty, [&, n = side](uint64_t e) {
        return Places{place(e / n, e % n, next), place(e % n, e / n, kFractalBytes)};
      });
  }
  const Work work{c.chip.instruction("LoadData", dtype), 1, cycles_to(to, l.repeats * square), 0};
  c.issue(Pipe::MTE1, api, pc, work, accesses, 1 + tiles);
}

void fill_blocks(Memory to, void* dst, uint32_t repeats, uint32_t blocks, uint32_t gap, uint32_t value,
                 uint32_t element_bytes, const char* api) {
  const void* pc = VNPU_PC;
  if (repeats == 0 || blocks == 0) return;
  Core& c = core();
  c.needs(CoreKind::Cube, api, pc);
  const bool l1 = to == Memory::L1;
  if (!l1 && to != Memory::L0A && to != Memory::L0B) misused(api, "the destination has to be in L1, L0A or L0B", pc);
  const uint32_t block = l1 ? kBlockBytes : kFractalBytes;
  const Range into = pieces(dst, uint64_t(blocks) * block, repeats, (uint64_t(blocks) + gap) * block);
  c.check_local(into, block, api, pc, "destination", to);
  for (uint32_t i = 0; i < repeats; i++)
    for (uint64_t b = 0; b < into.bytes; b += element_bytes)
      std::memcpy(byte_at(dst, i * into.stride + b), &value, element_bytes);
  c.unwritten.write(into);
  const float bytes = static_cast<float>(repeats) * static_cast<float>(into.bytes);
  const Work work{c.chip.instruction("Fill", DType::None), 1,
                  bytes / (l1                  ? 32.0f
                           : to == Memory::L0A ? 256.0f
                                               : 128.0f),
                  0};
  c.issue(l1 ? Pipe::MTE2 : Pipe::MTE1, api, pc, work, {{into, true}});
}

void copy_to_table(Memory to, void* dst, const void* src, const TableCopy& s, DType dst_dtype, DType src_dtype,
                   const char* api) {
  const void* pc = VNPU_PC;
  if (s.pieces == 0 || s.bytes == 0) return;
  Core& c = core();
  c.needs(CoreKind::Cube, api, pc);
  const bool widens = dst_dtype == DType::F32 && src_dtype == DType::F16;
  if (!widens && dtype_size(dst_dtype) != dtype_size(src_dtype)) unsupported_dtype(api, src_dtype, pc);
  const uint64_t read = widens ? s.bytes / 2 : s.bytes;
  const Range from = pieces(src, read, s.pieces, s.src_stride), into = pieces(dst, s.bytes, s.pieces, s.dst_stride);
  c.check_local(into, to == Memory::BT ? 64 : 128, api, pc, "destination", to);
  c.check_local(from, kBlockBytes, api, pc, "source", Memory::L1);
  const Pipe pipe = to == Memory::BT ? Pipe::MTE1 : Pipe::FIX;
  const bool dirty = c.unwritten.any(from);
  const AccessSite site{pipe, api, pc, false};
  if (!dirty) c.unwritten.write(into);
  for (uint32_t i = 0; i < s.pieces; i++) {
    uint8_t* d = byte_at(dst, i * s.dst_stride);
    const uint8_t* f = byte_at(src, i * s.src_stride);
    if (widens)
      widen(reinterpret_cast<const f16*>(f), reinterpret_cast<float*>(d), read / 2);
    else
      std::memcpy(d, f, s.bytes);
    for (uint64_t e = 0; dirty && e < read; e += 2)  // of 2 bytes each: an element's, or a part of one
      widens ? c.unwritten.write(pieces(d + 2 * e, 4, 1, 0), c.unwritten.origin_of(site, pieces(f + e, 2, 1, 0)))
             : c.unwritten.move(site, d + e, f + e, 2);
  }
  const Work work{c.chip.instruction("CopyToTable", DType::None), 1,
                  static_cast<float>(s.pieces) * static_cast<float>(s.bytes) / 32.0f, 0};
  c.issue(pipe, api, pc, work, {{into, true}, {from, false}});
}

}  // namespace vnpu
