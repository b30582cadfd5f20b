// Results on their way out of L0C: to global memory, as rows or as columns of tiles, or to L1; converted, requantized
// and cut at zero as they go. Limits, units and the quantization word: asc-devkit, pages of Fixpipe.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "../core/transfers.h"
#include "../core/vector.h"
#include "float16.h"
#include "vnpu/cube.h"

namespace vnpu {
namespace {

constexpr uint32_t kMostColumns = 4095, kMostRowsOut = 8192, kTableWords = 256;
constexpr uint32_t kColumn = 16;  // elements in a row of a tile of L0C
constexpr uint32_t kRowBytes = kColumn * 4;

using Convert = void (*)(const uint8_t* from, uint8_t* to, uint32_t n, const uint64_t* words, bool each, bool relu);

// What one quantization word says.
struct Word {
  float scale;
  int32_t offset;
  bool is_signed;
  explicit Word(uint64_t w)
      : scale(bits_to_float(static_cast<uint32_t>(w) & 0xffffe000)),  // the device's factors have 10 bits of fraction
        offset(static_cast<int32_t>(static_cast<uint32_t>(w >> 37 & 0x1ff) << 23) >> 23),
        is_signed((w >> 46 & 1) != 0) {}
};

template <typename S>
S rectified(S x, bool relu) {
  return relu && x < S(0) ? S(0) : x;
}

template <typename S>
void unchanged(const uint8_t* from, uint8_t* to, uint32_t n, const uint64_t*, bool, bool relu) {
  for (uint32_t i = 0; i < n; i++) {
    S x;
    std::memcpy(&x, from + i * sizeof x, sizeof x);
    x = rectified(x, relu);
    std::memcpy(to + i * sizeof x, &x, sizeof x);
  }
}

template <typename H>
void to_half(const uint8_t* from, uint8_t* to, uint32_t n, const uint64_t*, bool, bool relu) {
  float row[kColumn];
  std::memcpy(row, from, n * sizeof *row);
  for (uint32_t i = 0; i < n && relu; i++) row[i] = rectified(row[i], relu);
  narrow(row, reinterpret_cast<H*>(to), n);
}

void requantize_to_half(const uint8_t* from, uint8_t* to, uint32_t n, const uint64_t* words, bool each, bool relu) {
  for (uint32_t i = 0; i < n; i++) {
    int32_t x;
    std::memcpy(&x, from + i * sizeof x, sizeof x);
    const float scaled = rectified(static_cast<float>(x) * Word(words[each ? i : 0]).scale, relu);
    const uint16_t half = float_to_half(std::clamp(scaled, -65504.0f, 65504.0f));
    std::memcpy(to + i * sizeof half, &half, sizeof half);
  }
}

template <typename S>
void requantize_to_8(const uint8_t* from, uint8_t* to, uint32_t n, const uint64_t* words, bool each, bool relu) {
  for (uint32_t i = 0; i < n; i++) {
    S x;
    std::memcpy(&x, from + i * sizeof x, sizeof x);
    const Word w(words[each ? i : 0]);
    const float scaled = rectified(static_cast<float>(x) * w.scale, relu);
    const auto nine_bits = static_cast<int32_t>(std::clamp(std::nearbyint(scaled), -256.0f, 255.0f));
    const int32_t low = w.is_signed ? -128 : 0, high = w.is_signed ? 127 : 255;
    to[i] = static_cast<uint8_t>(std::clamp(nine_bits + w.offset, low, high));
  }
}

struct Way {
  Requantize how;
  DType from;
  DType to[2];
  Convert convert;
  bool each;
};
constexpr Way kWays[] = {
    {Requantize::None, DType::F32, {DType::F32, DType::None}, unchanged<float>, false},
    {Requantize::None, DType::I32, {DType::I32, DType::None}, unchanged<int32_t>, false},
    {Requantize::F32ToF16, DType::F32, {DType::F16, DType::None}, to_half<f16>, false},
    {Requantize::F32ToBF16, DType::F32, {DType::BF16, DType::None}, to_half<bf16>, false},
    {Requantize::I32ToF16, DType::I32, {DType::F16, DType::None}, requantize_to_half, false},
    {Requantize::I32ToF16Each, DType::I32, {DType::F16, DType::None}, requantize_to_half, true},
    {Requantize::F32To8, DType::F32, {DType::I8, DType::U8}, requantize_to_8<float>, false},
    {Requantize::F32To8Each, DType::F32, {DType::I8, DType::U8}, requantize_to_8<float>, true},
    {Requantize::I32To8, DType::I32, {DType::I8, DType::U8}, requantize_to_8<int32_t>, false},
    {Requantize::I32To8Each, DType::I32, {DType::I8, DType::U8}, requantize_to_8<int32_t>, true},
};

// One call of the pipe: what it reads, how it converts, and pieces of its result in the order of their addresses.
class Call {
 public:
  Call(const void* src, const Outgoing& o, DType from, DType to, const char* api, const void* pc)
      : c_(core()), src_(static_cast<const uint8_t*>(src)), o_(o), api_(api), pc_(pc), size_(dtype_size(to)) {
    c_.needs(CoreKind::Cube, api, pc);
    for (const Way& w : kWays)
      if (w.how == o.how && w.from == from && (w.to[0] == to || w.to[1] == to)) way_ = &w;
    if (way_ == nullptr) misused(api, "the way of quantization doesn't fit the types of source and destination", pc);
    if (o.n > kMostColumns) misused(api, "nSize is at most " + std::to_string(kMostColumns), pc);
    if (o.rows && o.m > kMostRowsOut) misused(api, "mSize is at most " + std::to_string(kMostRowsOut), pc);
    if (o.dst_stride == 0) misused(api, "dstStride is 0", pc);
    check_columns(from);
    panels_ = (o.n + kColumn - 1) / kColumn;
    words_ = &o.word;
    if (way_->each) find_words();
    if (o.how >= Requantize::I32ToF16 && !way_->each) check_word(o.word);
  }

  Core& machine() { return c_; }
  uint32_t size() const { return size_; }
  // Of one matrix in L0C.
  Range source(uint32_t matrix) const {
    const uint64_t stride = uint64_t(o_.src_stride) * kRowBytes;
    return pieces(src_ + matrix * o_.src_matrix_stride, uint64_t(o_.m) * kRowBytes, panels_, stride);
  }
  // Everything it reads, checked; returns how many accesses.
  void note(std::vector<Access>& accesses) const {
    for (uint32_t i = 0; i < o_.matrices; i++) {
      accesses.push_back({source(i), false});
      c_.check_local(accesses.back().range, 64, api_, pc_, "source", Memory::L0C);
    }
    if (way_->each) accesses.push_back({pieces(words_, uint64_t(o_.n) * 8, 1, 0), false});
  }
  // `n` elements from column `column` on of row `row`, at most to the end of a column of tiles.
  void convert(uint32_t matrix, uint32_t row, uint32_t column, uint32_t n, uint8_t* to) const {
    way_->convert(element(matrix, row, column), to, n, words_ + (way_->each ? column : 0), way_->each, o_.relu);
  }
  Range made_of(uint32_t matrix, uint32_t row, uint32_t column, uint32_t n) const {
    return pieces(element(matrix, row, column), uint64_t(n) * 4, 1, 0);
  }
  bool reads_unwritten() const {
    for (uint32_t i = 0; i < o_.matrices; i++)
      if (c_.unwritten.any(source(i))) return true;
    return false;
  }
  // Columns of a tile that leaves as one of a column of tiles: 8-bit results of two columns become one.
  uint32_t tile_columns() const { return o_.split ? 8 : size_ == 1 ? 32 : kColumn; }

  // Unit flags: what is taken has to be there. Called before and after the instruction is issued.
  void await_unit_flags() const {
    if (o_.unit_flag == 0) return;
    const auto [begin, end] = reach();
    if (!c_.unit_flags.all(begin, end, true))
      throw KernelError(KernelError::kDeadlock,
                        std::string(api_) + ": unit flags of L0C bytes [" + std::to_string(begin) + ", " +
                            std::to_string(end) + ") are not set: no product with unitFlag 3 has been written there",
                        api_, pc_);
    // Rows leave when a row of tiles is made, tiles when a column of them is.
    const uint32_t pieces = c_.unit_flags.pieces(begin, end, o_.rows);
    c_.hold_back(Pipe::FIX, Pipe::M, c_.unit_flags.changed_by(begin, end, true), api_, pc_, pieces);
  }
  void take_unit_flags() const {
    const auto [begin, end] = reach();
    if (o_.unit_flag == 3) c_.unit_flags.change(begin, end, false, {c_.hazards.epoch(), c_.hazards.knew()});
  }

 private:
  const uint8_t* element(uint32_t matrix, uint32_t row, uint32_t column) const {
    return src_ + matrix * o_.src_matrix_stride + uint64_t(column / kColumn) * o_.src_stride * kRowBytes +
           uint64_t(row) * kRowBytes + column % kColumn * 4;
  }
  // What unit flags it takes: of whole tiles, as products raise them (catlass' blocks with any number of rows do so).
  std::pair<uint64_t, uint64_t> reach() const {
    const uint64_t begin = c_.local_offset(src_) - c_.map[Memory::L0C].offset;
    const uint64_t rows = (o_.m + kColumn - 1) / kColumn * kColumn;
    return {begin, begin + uint64_t(panels_ - 1) * o_.src_stride * kRowBytes + rows * kRowBytes};
  }
  void check_columns(DType from) const {
    if (o_.split && (from != DType::F32 || size_ != 4 || o_.rows || o_.unit_flag != 0))
      misused(api_, "channel split is for float results that leave as tiles, without unitFlag", pc_);
    if (o_.rows) return;
    const uint32_t multiple = o_.split ? 8 : kColumn;
    if (o_.n % multiple != 0) misused(api_, "nSize has to be a multiple of " + std::to_string(multiple), pc_);
    if (size_ == 1 && o_.n % 32 != 0)
      throw KernelError(KernelError::kUnsupported,
                        std::string(api_) +
                            ": 8-bit results that leave as tiles need an nSize that is a multiple of 32 "
                            "on the virtual NPU",
                        api_, pc_);
  }
  void check_word(uint64_t word) const {
    if (word >> 36 & 1)
      throw KernelError(KernelError::kUnsupported,
                        std::string(api_) + ": bit 36 of the quantization word (a shift first) is not covered", api_,
                        pc_);
  }
  void find_words() {
    const void* table = c_.outgoing_words ? c_.outgoing_words : c_.local(Memory::FB);
    words_ = static_cast<const uint64_t*>(table);
    if (o_.n > kTableWords) misused(api_, "a word for each column is for 256 columns at most", pc_);
    c_.check_local(pieces(table, uint64_t(o_.n) * 8, 1, 0), 64, api_, pc_, "quantization words", Memory::FB);
    for (uint32_t i = 0; i < o_.n; i++) check_word(words_[i]);
  }

  Core& c_;
  const uint8_t* src_;
  const Outgoing& o_;
  const char* api_;
  const void* pc_;
  uint32_t size_, panels_ = 0;
  const Way* way_ = nullptr;
  const uint64_t* words_ = nullptr;
};

// A piece of the result: bytes that follow each other, made of one row of one matrix, or of one row of a tile.
struct Piece {
  uint64_t offset;
  uint32_t matrix, row, column, columns;
};

// f(piece) for all of them.
template <typename F>
void for_outgoing(const Call& call, const Outgoing& o, F f) {
  if (o.rows) {
    for (uint32_t i = 0; i < o.matrices; i++)
      for (uint32_t r = 0; r < o.m; r++) f(Piece{i * o.dst_matrix_stride + r * o.dst_stride, i, r, 0, o.n});
    return;
  }
  const uint32_t width = call.tile_columns();
  for (uint32_t column = 0; column < o.n; column += width)
    for (uint32_t r = 0; r < o.m; r++)
      f(Piece{column / width * o.dst_stride + uint64_t(r) * width * call.size(), 0, r, column, width});
}

// The values of a piece, and what each was made of: f(first byte, bytes, source).
template <typename F>
void make(const Call& call, const Piece& p, std::vector<uint8_t>& bytes, F f) {
  bytes.resize(size_t(p.columns) * call.size());
  for (uint32_t done = 0; done < p.columns;) {
    const uint32_t n = std::min(p.columns - done, kColumn - (p.column + done) % kColumn);
    call.convert(p.matrix, p.row, p.column + done, n, &bytes[size_t(done) * call.size()]);
    f(uint64_t(done) * call.size(), n);
    done += n;
  }
}

// The windows of global memory that a run of equal pieces covers in part.
uint32_t partial_windows(uint64_t canonical, uint64_t bytes, uint32_t n, uint64_t stride, uint64_t window) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < n; i++) {
    const uint64_t begin = canonical + i * stride, end = begin + bytes;
    const bool head = begin % window != 0, tail = end % window != 0;
    count += head + tail - (head && tail && begin / window == (end - 1) / window);
  }
  return count;
}

// What a call writes: rows, or columns of tiles; of the first matrix.
Range written(void* dst, const Call& call, const Outgoing& o) {
  if (o.rows) return pieces(dst, uint64_t(o.n) * call.size(), o.m, o.dst_stride);
  const uint64_t row = uint64_t(call.tile_columns()) * call.size();
  return pieces(dst, o.m * row, o.n / call.tile_columns(), o.dst_stride);
}

}  // namespace

void bring_out(void* dst, const void* src, const Outgoing& o, DType src_dtype, DType dst_dtype, const char* api) {
  const void* pc = VNPU_PC;
  if (o.m == 0 || o.n == 0 || o.matrices == 0) return;
  Call call(src, o, src_dtype, dst_dtype, api, pc);
  Core& c = call.machine();
  std::vector<Access> accesses;
  call.note(accesses);
  const bool atomic = c.atomic != Atomic::None;
  const Allocation* to = nullptr;
  uint64_t first = 0;
  Range gm{};
  for (uint32_t i = 0; i < o.matrices; i++) {
    gm = written(static_cast<uint8_t*>(dst) + i * o.dst_matrix_stride, call, o);
    const uint64_t canonical = c.check_gm(gm, true, api, pc, "destination", &to);
    accesses.push_back({gm, true, true, atomic, canonical});
    if (i == 0) first = canonical;
  }
  if (!o.rows && first % kBlockBytes != 0) misused(api, "tiles have to begin at a multiple of 32 bytes", pc);
  call.await_unit_flags();
  const bool dirty = call.reads_unwritten(), tracked = dirty || to->unwritten.load(std::memory_order_acquire);
  const AccessSite site{Pipe::FIX, api, pc, true};
  const uint64_t base = first - to->canonical;
  std::vector<uint8_t> bytes;
  for_outgoing(call, o, [&](const Piece& p) {
    make(call, p, bytes, [&](uint64_t begin, uint32_t n) {
      if (!tracked) return;
      const auto column = p.column + static_cast<uint32_t>(begin / call.size());
      for (uint32_t i = 0; i < n; i += dirty ? 1 : n)  // element by element where some are unwritten
        c.unwritten.store_made(site, *to, base + p.offset + begin + i * call.size(), (dirty ? 1 : n) * call.size(),
                               call.made_of(p.matrix, p.row, column + i, dirty ? 1 : n), atomic, c.detached);
    });
    store(c, static_cast<uint8_t*>(dst) + p.offset, bytes.data(), bytes.size(), api, pc);
  });
  CopyShape shape;
  shape.bursts = gm.pieces * o.matrices;
  shape.burst_bytes = gm.bytes;
  shape.cached = o.cached;
  const uint64_t stride = gm.pieces > 1 ? gm.stride : o.dst_matrix_stride;
  Transfer t = transfer_of(first, shape, stride, true, c.chip);
  t.partial = partial_windows(first, gm.bytes, shape.bursts, stride, static_cast<uint64_t>(c.chip.gm_request_bytes));
  c.issue(Pipe::FIX, api, pc, Work{}, accesses.data(), accesses.size(), &t);
  call.take_unit_flags();
}

void bring_to_l1(void* dst, const void* src, const Outgoing& o, DType src_dtype, DType dst_dtype, const char* api) {
  const void* pc = VNPU_PC;
  if (o.m == 0 || o.n == 0) return;
  if (o.rows || o.split || dtype_size(dst_dtype) == 4)
    misused(api, "what goes to L1 are tiles of 1- or 2-byte elements", pc);
  Call call(src, o, src_dtype, dst_dtype, api, pc);
  Core& c = call.machine();
  std::vector<Access> accesses;
  call.note(accesses);
  const Range into = written(dst, call, o);
  c.check_local(into, kBlockBytes, api, pc, "destination", Memory::L1);
  accesses.push_back({into, true});
  call.await_unit_flags();
  const bool dirty = call.reads_unwritten();
  const AccessSite site{Pipe::FIX, api, pc, false};
  if (!dirty) c.unwritten.write(into);
  std::vector<uint8_t> bytes;
  for_outgoing(call, o, [&](const Piece& p) {
    uint8_t* to = static_cast<uint8_t*>(dst) + p.offset;
    make(call, p, bytes, [&](uint64_t begin, uint32_t n) {
      const auto column = p.column + static_cast<uint32_t>(begin / call.size());
      for (uint32_t i = 0; dirty && i < n; i++)
        c.unwritten.write(pieces(to + begin + i * call.size(), call.size(), 1, 0),
                          c.unwritten.origin_of(site, call.made_of(p.matrix, p.row, column + i, 1)));
    });
    std::memcpy(to, bytes.data(), bytes.size());
  });
  const float units = static_cast<float>(o.m) * static_cast<float>(o.n) / 64.0f;
  c.issue(Pipe::FIX, api, pc, Work{c.chip.instruction("CopyToL1", DType::None), 1, units, 0}, accesses.data(),
          accesses.size());
  call.take_unit_flags();
}

void set_outgoing_words(const void* table) {
  core().outgoing_words = table;
  core().scalar(ScalarKind::Cycle);
}
void set_outgoing_word(uint64_t word) {
  core().outgoing.word = word;
  core().scalar(ScalarKind::Cycle);
}
void set_outgoing_matrices(uint32_t matrices, uint32_t src_stride_tiles, uint32_t dst_stride) {
  OutgoingRegisters& r = core().outgoing;
  r.matrices = matrices;
  r.src_stride_tiles = src_stride_tiles;
  r.dst_stride = dst_stride;
  core().scalar(ScalarKind::Cycle);
}
void clear_unit_flags() {
  core().unit_flags.clear();
  core().scalar(ScalarKind::Cycle);
}
OutgoingRegisters outgoing_registers() { return core().outgoing; }

}  // namespace vnpu
