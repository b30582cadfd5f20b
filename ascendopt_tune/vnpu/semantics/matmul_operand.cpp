#include "matmul_operand.h"

#include <algorithm>
#include <string>

#include "vnpu/cube.h"

namespace vnpu {
namespace {

constexpr int64_t kMostPitch = 65535;   // elements from row to row that one ND2NZ copy can take
constexpr int32_t kMostRows = 16384;    // rows of one
constexpr uint32_t kMostRepeats = 255;  // of a load
constexpr int32_t kPlaces = 8;          // bytes of a sparse tile's row of places: two bits for each element

// Tiles (or squares) of two axes, and by how many tiles (squares at the source) a step along each goes on.
struct Grid {
  int32_t n[2];
  int32_t from[2], to[2];
};

// Calls f(source offset, destination offset, repeats, source stride, destination stride) for as few loads as do.
template <typename F>
void for_loads(const Grid& g, F f) {
  const bool one_run = (g.from[1] == g.n[0] * g.from[0] && g.to[1] == g.n[0] * g.to[0]);
  const bool other_run = (g.from[0] == g.n[1] * g.from[1] && g.to[0] == g.n[1] * g.to[1]);
  const int inner = one_run ? 0 : other_run ? 1 : g.n[0] >= g.n[1] ? 0 : 1, outer = 1 - inner;
  const int32_t loads = one_run || other_run ? 1 : g.n[outer];
  const int32_t repeats = one_run || other_run ? g.n[0] * g.n[1] : g.n[inner];
  for (int32_t o = 0; o < loads; o++)
    for (int32_t i = 0; i < repeats; i += kMostRepeats)
      f(o * g.from[outer] + i * g.from[inner], o * g.to[outer] + i * g.to[inner],
        std::min<int32_t>(repeats - i, kMostRepeats), g.from[inner], g.to[inner]);
}

}  // namespace

Operand2D::Operand2D(Matmul& m, bool left, const char* api)
    : m_(m),
      left_(left),
      api_(api),
      matrix_(left ? m.a : m.b),
      packets_(left ? m.packets_a : m.packets_b),
      outer_all_(left ? m.cut.m : m.cut.n),
      base_outer_(left ? m.cut.base_m : m.cut.base_n),
      step_outer_(!m.configuration.packets ? 1
                  : left                   ? m.cut.step_m
                                           : m.cut.step_n),
      step_inner_(!m.configuration.packets ? 1
                  : left                   ? m.cut.step_ka
                                           : m.cut.step_kb),
      // A sparse B has half as many elements along k.
      inner_all_(m.cut.k / (sparse() ? 2 : 1)),
      base_inner_(m.cut.base_k / (sparse() ? 2 : 1)) {}

uint64_t Operand2D::packet_bytes(bool along_k) const {
  const int32_t outer = step_outer_ * base_outer_, inner = step_inner_ * base_inner_;
  const int32_t rows = up(along_k ? inner : outer, row_unit(along_k));
  const int32_t columns = up(along_k ? outer : inner, column_unit(along_k));
  return bytes(static_cast<int64_t>(rows) * columns);
}

uint64_t Operand2D::plan() {
  if (matrix_.in_l1) return 0;
  const int32_t depth = left_ ? m_.cut.depth_a : m_.cut.depth_b;
  const int32_t blocks = step_outer_ * step_inner_;
  if (blocks > depth) {
    const std::string which = left_ ? "stepM * stepKa is more than depthA1" : "stepN * stepKb is more than depthB1";
    misuse(api_, which.c_str());
  }
  packets_.bytes = packet_bytes(rows_along_k());
  if (matrix_.may_turn) packets_.bytes = std::max(packets_.bytes, packet_bytes(!rows_along_k()));
  if (sparse()) packets_.bytes += packets_.bytes / 4;  // the places lie behind the packet's tiles
  packets_.count = std::min(static_cast<uint32_t>(depth / blocks), MatmulPackets::kMost);
  packets_.next = 0;
  return packets_.bytes * packets_.count;
}

void Operand2D::allocate() {
  const uint64_t needed = plan();
  if (needed <= packets_.capacity) return;
  packets_.base = static_cast<uint8_t*>(local_allocate(Memory::L1, static_cast<uint32_t>(needed)));
  packets_.capacity = needed;
}

int64_t Operand2D::pitch() const {
  if (matrix_.pitch != 0) return matrix_.pitch;
  if (left_) return matrix_.turned ? m_.org_m : m_.org_ka;
  return matrix_.turned ? m_.org_kb / (sparse() ? 2 : 1) : m_.org_n;
}

int32_t Operand2D::outer_tiles(int32_t outer) const {
  const bool pairs = size() == 1 && rows_along_k();
  return pairs ? up(outer, c0()) / 16 : pieces_of(outer, 16);
}

Operand2D::Packet Operand2D::packet(int32_t outer, int32_t inner, uint32_t slot) const {
  Packet p{};
  const int32_t wide = step_outer_ * base_outer_, deep = step_inner_ * base_inner_;
  p.outer = outer / step_outer_ * wide;
  p.inner = inner / step_inner_ * deep;
  const int32_t outers = rest(outer_all_, p.outer, wide), inners = rest(inner_all_, p.inner, deep);
  p.rows = rows_along_k() ? inners : outers;
  p.columns = rows_along_k() ? outers : inners;
  p.at = packets_.base + slot * packets_.bytes;
  p.free = &flag(slot, false);
  return p;
}

uint32_t Operand2D::slot_of(int32_t outer, int32_t inner) const {
  uint32_t slot = 0;
  while (slot < packets_.count &&
         (packets_.outer[slot] != outer / step_outer_ || packets_.inner[slot] != inner / step_inner_))
    slot++;
  return slot;
}

Flag& Operand2D::flag(uint32_t slot, bool filled) const {
  auto& f = core().multiplication;
  return (filled ? left_ ? f.a_copied : f.b_copied : left_ ? f.a : f.b)[slot % MultiplicationFlags::kInputs];
}

// Whoever reads L1 from now on waits for what is under way.
void Operand2D::arrive() {
  if (packets_.coming < packets_.count) await_free(Pipe::MTE2, Pipe::MTE1, flag(packets_.coming, true));
  packets_.coming = MatmulPackets::kMost;
}

void Operand2D::forget() {
  if (!matrix_.in_l1 && packets_.coming < packets_.count) {
    arrive();
    barrier(Pipe::MTE2);  // nobody has read it: what comes next may be copied to the same place
  }
  std::fill(std::begin(packets_.outer), std::end(packets_.outer), -1);
  packets_.used = MatmulPackets::kMost;
}

void Operand2D::bring(int32_t outer, int32_t inner) {
  arrive();
  const bool in_use = packets_.next == packets_.used;
  const uint32_t slot = in_use ? (packets_.next + 1) % packets_.count : packets_.next;
  packets_.next = (slot + 1) % packets_.count;
  packets_.outer[slot] = outer / step_outer_;
  packets_.inner[slot] = inner / step_inner_;
  await_free(Pipe::MTE1, Pipe::MTE2, flag(slot, false));
  copy(packet(outer, inner, slot));
  set_free(Pipe::MTE2, Pipe::MTE1, flag(slot, true));
  packets_.coming = slot;
}

void Operand2D::use(int32_t outer, int32_t inner) {
  if (matrix_.in_l1 || held_ != nullptr) return;
  if (slot_of(outer, inner) == packets_.count) bring(outer, inner);
  packets_.used = slot_of(outer, inner);
  if (packets_.coming == packets_.used) arrive();
}

void Operand2D::expect(int32_t outer, int32_t inner) {
  if (!matrix_.in_l1 && held_ == nullptr && packets_.count > 1 && slot_of(outer, inner) == packets_.count)
    bring(outer, inner);
}

void Operand2D::copy(const Packet& p) const {
  const MatmulCopyIn own = left_ ? m_.copy_a : m_.copy_b;
  if (own != nullptr) {
    const int32_t outer = p.outer / (step_outer_ * base_outer_), inner = p.inner / (step_inner_ * base_inner_);
    const int32_t outers = rows_along_k() ? p.columns : p.rows, inners = rows_along_k() ? p.rows : p.columns;
    own(p.at, packets_.bytes, matrix_.data, left_ ? outer : inner, left_ ? inner : outer, left_ ? outers : inners,
        left_ ? inners : outers, m_.user_tiling, m_.user_data);
    return;
  }
  if (sparse()) copy_places(p);
  if (matrix_.layout == MatrixLayout::Tiles) return copy_tiles(p, static_cast<const uint8_t*>(matrix_.data));
  const int64_t row = rows_along_k() ? p.inner : p.outer, column = rows_along_k() ? p.outer : p.inner;
  check_rows();
  copy_rows(p, static_cast<const uint8_t*>(matrix_.data) + bytes(row * pitch() + column));
}

// The places of a sparse packet's elements, in tiles as the elements are, behind these.
void Operand2D::copy_places(const Packet& p) const {
  const auto all = static_cast<uint64_t>(up(m_.org_n, 16)), rows = static_cast<uint64_t>(up(p.rows, 16));
  CopyShape s;
  s.bursts = static_cast<uint32_t>(pieces_of(p.columns, c0()));
  s.burst_bytes = s.dst_stride = rows * kPlaces;
  s.src_stride = all * kPlaces;
  const uint64_t first = (static_cast<uint64_t>(p.inner / c0()) * all + static_cast<uint64_t>(p.outer)) * kPlaces;
  copy_gm_to_local(p.at + packets_.bytes / 5 * 4, static_cast<const uint8_t*>(m_.places) + first, s, api_);
}

// Rows that begin or end within a byte can't be copied.
void Operand2D::check_rows() const {
  const int32_t columns = rows_along_k() ? outer_all_ : inner_all_;
  if (matrix_.dtype == DType::I4 && (pitch() % 2 != 0 || columns % 2 != 0))
    misuse(api_, "rows of int4b_t have to have an even number of elements: two share a byte");
}

// Rows that have to be turned and have elements of 4 bytes: every 16 of them become squares of their own.
// `count` matrices at once, `stride` elements apart, are those that ND2NZ can take at once.
void Operand2D::copy_rows(const Packet& p, const uint8_t* from, int32_t count, int64_t stride) const {
  const bool squares = rows_along_k() && size() == 4;
  const int32_t high = squares ? 16 : up(p.rows, row_unit(rows_along_k()));
  const uint64_t group = uint64_t(16) * static_cast<uint64_t>(up(p.columns, 16)) * 4;
  RowsToTiles s;
  s.row_bytes = bytes(p.columns);
  s.row_stride = bytes(pitch());
  s.tile_row_stride = kBlockBytes;
  s.column_stride = static_cast<uint64_t>(high) * kBlockBytes;
  s.matrix_stride = 16 * s.row_stride;
  s.tiled_matrix_stride = group;
  s.cached = matrix_.cached;
  const bool far = pitch() > kMostPitch, apart = squares && 16 * pitch() > kMostPitch;
  const int32_t most = far ? 1 : squares ? 16 : kMostRows;
  for (int32_t done = 0; done < p.rows;) {
    int32_t rows = rest(p.rows, done, most);
    const int32_t groups = squares && !apart && done + 16 <= p.rows ? (p.rows - done) / 16 : 1;
    if (squares && !far) rows = rest(p.rows, done, 16);
    s.matrices = static_cast<uint32_t>(groups);
    if (count > 1) {
      s.matrices = static_cast<uint32_t>(count);
      s.matrix_stride = bytes(stride);
      s.tiled_matrix_stride = whole_bytes();
    }
    s.rows = static_cast<uint32_t>(rows);
    uint8_t* to = p.at + (squares ? static_cast<uint64_t>(done / 16) * group + static_cast<uint64_t>(done % 16) * 32
                                  : static_cast<uint64_t>(done) * 32);
    copy_rows_to_tiles(to, from + static_cast<uint64_t>(done) * s.row_stride, s, api_);
    done += rows * groups;
  }
}

// Tiles that lie in global memory already: columns of 32 bytes, all rows of the matrix each.
void Operand2D::copy_tiles(const Packet& p, const uint8_t* from) const {
  const bool along_k = rows_along_k();
  if (along_k && size() == 4) unsupported(api_, "float matrices that lie as tiles and have to be turned");
  const int32_t row = along_k ? p.inner : p.outer, column = along_k ? p.outer : p.inner;
  const int32_t own = rows_along_k() ? inner_all_ : outer_all_;  // of a part that lies by itself
  const int32_t all = up(matrix_.pitch != 0 ? own
                         : left_            ? (matrix_.turned ? m_.org_ka : m_.org_m)
                                            : (matrix_.turned ? m_.org_n : m_.org_kb),
                         16);
  CopyShape s;
  s.bursts = static_cast<uint32_t>(pieces_of(p.columns, c0()));
  s.burst_bytes = static_cast<uint64_t>(up(p.rows, 16)) * kBlockBytes;
  s.src_stride = static_cast<uint64_t>(all) * kBlockBytes;
  s.dst_stride = static_cast<uint64_t>(up(p.rows, row_unit(along_k))) * kBlockBytes;
  s.cached = matrix_.cached;
  s.dtype = matrix_.dtype;
  const int64_t first = (static_cast<int64_t>(column / c0()) * all + row) * kBlockBytes;
  copy_gm_to_local(p.at, from + first, s, api_);
}

uint64_t Operand2D::whole_bytes() const {
  const int32_t rows = up(lying_rows(), row_unit(rows_along_k()));
  return bytes(static_cast<int64_t>(rows) * up(lying_columns(), column_unit(rows_along_k())));
}

void Operand2D::copy_whole(uint8_t* to, const uint8_t* from, int32_t count, int64_t stride) const {
  Packet p{};
  p.rows = lying_rows();
  p.columns = lying_columns();
  const uint64_t one = whole_bytes();
  const bool rows = matrix_.layout != MatrixLayout::Tiles, squares = rows_along_k() && size() == 4;
  const bool near = stride <= kMostPitch && pitch() <= kMostPitch && one / size() <= kMostPitch && p.rows <= kMostRows;
  const int32_t at_once = rows && near && !squares ? count : 1;
  for (int32_t i = 0; i < count; i += at_once) {
    p.at = to + static_cast<uint64_t>(i) * one;
    const uint8_t* first = from + bytes(i * stride);
    if (rows)
      copy_rows(p, first, at_once, stride);
    else
      copy_tiles(p, first);
  }
}

void Operand2D::load(int32_t outer, int32_t inner, uint8_t* to) {
  Packet p{};
  if (matrix_.in_l1 || held_ != nullptr) {
    p.at = const_cast<uint8_t*>(held_ != nullptr ? held_ : static_cast<const uint8_t*>(matrix_.data));
    p.rows = lying_rows();
    p.columns = lying_columns();
    if (matrix_.in_l1 && rows_along_k() && size() == 4)
      unsupported(api_, "float matrices in L1 that have to be turned");
  } else {
    p = packet(outer, inner, packets_.used);
  }
  const int32_t o = outer * base_outer_, i = inner * base_inner_;
  const int32_t outers = rest(outer_all_, o, base_outer_), inners = rest(inner_all_, i, base_inner_);
  if (sparse())
    load_sparse(p, o - p.outer, i - p.inner, outers, inners, to);
  else if (!rows_along_k())
    load_plain(p, o - p.outer, i - p.inner, outers, inners, to);
  else if (size() == 2)
    load_turned_2(p, o - p.outer, i - p.inner, outers, inners, to);
  else
    load_turned_squares(p, o - p.outer, i - p.inner, outers, inners, to);
  if (p.free != nullptr) set_free(Pipe::MTE1, Pipe::MTE2, *p.free);
}

void Operand2D::load_plain(const Packet& p, int32_t outer, int32_t inner, int32_t outers, int32_t inners,
                           uint8_t* to) const {
  const int32_t high = up(p.rows, 16) / 16, tiles = pieces_of(outers, 16), deep = pieces_of(inners, c0());
  const Grid g{{tiles, deep}, {1, high}, {left_ ? deep : 1, left_ ? 1 : tiles}};
  const uint8_t* from = p.at + (static_cast<uint64_t>(inner / c0()) * high + outer / 16) * kFractalBytes;
  for_loads(g, [&](int32_t src, int32_t dst, int32_t repeats, int32_t src_stride, int32_t dst_stride) {
    const TileLoad l{0, static_cast<uint32_t>(repeats), static_cast<uint32_t>(src_stride),
                     static_cast<uint32_t>(dst_stride - 1)};
    load_tiles(left_ ? Memory::L0A : Memory::L0B, to + dst * kFractalBytes, from + src * kFractalBytes, l,
               matrix_.dtype, api_);
  });
}

// Tiles below each other are neighbours in L1; one load takes those of as many columns as lie there without gaps.
void Operand2D::load_sparse(const Packet& p, int32_t outer, int32_t inner, int32_t outers, int32_t inners,
                            uint8_t* to) const {
  const int32_t high = up(p.rows, 16) / 16, tiles = pieces_of(outers, 16), deep = pieces_of(inners, c0());
  const uint8_t* places = p.at + packets_.bytes / 5 * 4;
  const int32_t rows = tiles == high ? tiles * deep : tiles;  // at once
  for (int32_t done = 0; done < tiles * deep;) {
    const int32_t from = (inner / c0() + done / tiles) * high + outer / 16 + done % tiles;
    const int32_t some = std::min<int32_t>(rest(rows, done % rows, rows), kMostRepeats);
    load_tiles_and_places(to + done * kFractalBytes, p.at + from * kFractalBytes, places + from * 16 * kPlaces, 0,
                          static_cast<uint32_t>(some), api_);
    done += some;
  }
}

void Operand2D::load_turned_2(const Packet& p, int32_t outer, int32_t inner, int32_t outers, int32_t inners,
                              uint8_t* to) const {
  const int32_t high = up(p.rows, 16) / 16, tiles = pieces_of(outers, 16), deep = pieces_of(inners, 16);
  const Grid g{{tiles, deep}, {high, 1}, {left_ ? deep : 1, left_ ? 1 : tiles}};
  const uint8_t* from = p.at + (static_cast<uint64_t>(outer / 16) * high + inner / 16) * kFractalBytes;
  for_loads(g, [&](int32_t src, int32_t dst, int32_t repeats, int32_t src_stride, int32_t dst_stride) {
    const TileLoad l{0, static_cast<uint32_t>(repeats), static_cast<uint32_t>(src_stride),
                     static_cast<uint32_t>(dst_stride - 1), true};
    load_tiles(left_ ? Memory::L0A : Memory::L0B, to + dst * kFractalBytes, from + src * kFractalBytes, l,
               matrix_.dtype, api_);
  });
}

void Operand2D::must_begin_a_square(int32_t outer, int32_t side) const {
  if (outer % side == 0) return;
  const std::string which = left_ ? "baseM" : "baseN";
  misuse(api_, (which + " has to be a multiple of " + std::to_string(side) +
                " where several blocks lie side by side in L1 and are turned: a square is turned as a whole")
                   .c_str());
}

// Squares of 32 x 32 bytes (two tiles, one below the other), 64 x 64 halves of bytes (four) or 16 x 16 words (two, side
// by side).
void Operand2D::load_turned_squares(const Packet& p, int32_t outer, int32_t inner, int32_t outers, int32_t inners,
                                    uint8_t* to) const {
  const bool small = size() == 1;
  const int32_t side = small ? c0() : 16, high = small ? side / 16 : 1;  // tiles below each other
  const int32_t square = small ? side / 16 : 2;                          // tiles in all
  must_begin_a_square(outer, side);
  const int32_t across = pieces_of(outers, side), down = pieces_of(inners, side);
  const int32_t stride = small ? up(p.rows, side) / side : up(p.columns, 16) / 16;  // squares to the next row or column
  const int32_t tiles = outer_tiles(outers), deep = small ? down : 2 * down;        // of L0
  Grid g{};
  g.n[0] = across;
  g.n[1] = down;
  g.from[0] = small ? stride : 1;
  g.from[1] = small ? 1 : stride;
  g.to[0] = high * (left_ ? deep : 1);
  g.to[1] = (small ? 1 : 2) * (left_ ? 1 : tiles);
  const int32_t gap = small == left_ ? (left_ ? deep : tiles) - 1 : 0;  // between the tiles of a square
  const int32_t first = outer / side * g.from[0] + inner / side * g.from[1];
  const uint8_t* from = p.at + static_cast<uint64_t>(first * square) * kFractalBytes;
  for_loads(g, [&](int32_t src, int32_t dst, int32_t repeats, int32_t src_stride, int32_t dst_stride) {
    const SquareLoad l{0, static_cast<uint32_t>(repeats), static_cast<uint32_t>(src_stride),
                       static_cast<uint32_t>(dst_stride - 1), static_cast<uint32_t>(gap)};
    load_squares(left_ ? Memory::L0A : Memory::L0B, to + dst * kFractalBytes, from + src * square * kFractalBytes, l,
                 matrix_.dtype, api_);
  });
}

}  // namespace vnpu
