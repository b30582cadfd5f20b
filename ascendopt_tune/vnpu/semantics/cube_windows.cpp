// LoadData of a convolution's windows: values and layouts after asc-devkit's page of LoadData 3D and the formula that
// it names; what neither states is refused (channels that fill no block) or counts as not written (behind the last row,
// the last column, and the extension).
#include <algorithm>
#include <cstring>
#include <vector>

#include "../core/transfers.h"
#include "../core/vector.h"
#include "vnpu/cube_windows.h"

namespace vnpu {
namespace {

constexpr uint32_t kMostStep = 63, kMostImage = 32767, kLeastBoundary = 1024;
constexpr uint32_t kHalf = 8;  // columns of a tile of 4-byte elements

uint32_t ceil_div(uint32_t n, uint32_t size) { return (n + size - 1) / size; }

[[noreturn]] void not_covered(const char* api, const std::string& what, const void* pc) {
  throw KernelError(KernelError::kUnsupported, std::string(api) + ": " + what + " on the virtual NPU", api, pc);
}

// The matrix of windows, and where its blocks lie in L1.
class ImageWindows {
 public:
  ImageWindows(const WindowLoad& l, const WindowRegisters& r, uint32_t size, const char* api, const void* pc)
      : l_(l), image_(r.image), c0_(kBlockBytes / size) {
    check(r, api, pc);
    const auto places = [](uint32_t all, uint32_t window, uint32_t dilation, uint32_t step) {
      const uint32_t covered = (window - 1) * dilation + 1;
      return all < covered ? 0 : (all - covered) / step + 1;
    };
    across_ = places(image_.width + image_.left + image_.right, l.window_w, l.dilation_x, l.step_x);
    rows_ = across_ * places(image_.height + image_.top + image_.bottom, l.window_h, l.dilation_y, l.step_y);
    columns_ = l.channels / c0_ * l.window_h * l.window_w;
    if (rows_ == 0) misused(api, "the window is larger than the image with its padding", pc);
    repeat(r, api, pc);
  }

  // Of the part that is loaded: rows, and columns of blocks, whole tiles; how many of them count.
  uint32_t tall() const { return static_cast<uint32_t>(picked_rows_.size()) / kFractalRows; }
  uint32_t wide() const { return static_cast<uint32_t>(picked_columns_.size()); }

  struct Block {
    enum Kind : uint8_t { Unknown, Padding, Image } kind = Unknown;
    uint32_t elements = 0;  // that count
    uint64_t offset = 0;    // in bytes from the image's begin
  };
  Block block(uint32_t row, uint32_t column) const {
    const uint32_t m = picked_rows_[row], k = picked_columns_[column].first;
    if (m >= rows_ || k >= columns_) return {};
    const uint32_t point = k % (l_.window_h * l_.window_w), channel = k / (l_.window_h * l_.window_w);
    const int64_t y = int64_t(m / across_) * l_.step_y + point / l_.window_w * l_.dilation_y - image_.top;
    const int64_t x = int64_t(m % across_) * l_.step_x + point % l_.window_w * l_.dilation_x - image_.left;
    Block b{Block::Padding, picked_columns_[column].second, 0};
    if (y < 0 || x < 0 || y >= image_.height || x >= image_.width) return b;
    b.kind = Block::Image;
    b.offset =
        ((uint64_t(channel) * image_.height + static_cast<uint64_t>(y)) * image_.width + static_cast<uint64_t>(x)) *
        kBlockBytes;
    return b;
  }
  // Cycles that tiles take: two to L0A and four to L0B as long as a tile's rows are neighbours in one row of places.
  float cycles(Memory to) const {
    float all = 0;
    for (uint32_t i = 0; i < tall(); i++) all += static_cast<float>(tile_cycles(to, i * kFractalRows) * wide());
    return all;
  }

 private:
  static constexpr uint32_t kNone = ~0u;

  void check(const WindowRegisters& r, const char* api, const void* pc) const {
    if (!r.has_image) misused(api, "nobody has called SetFmatrix", pc);
    if (std::max(image_.height, image_.width) > kMostImage)
      misused(api, "l1H and l1W are at most " + std::to_string(kMostImage), pc);
    if (std::max(l_.step_x, l_.step_y) > kMostStep)
      misused(api, "strideW and strideH are at most " + std::to_string(kMostStep), pc);
    if (l_.step_x == 0 || l_.step_y == 0) misused(api, "strideW and strideH may not be 0", pc);
    if (l_.first_column % c0_ != 0) misused(api, "kStartPt has to be a multiple of " + std::to_string(c0_), pc);
    if (l_.channels % c0_ != 0)
      not_covered(api, "channelSize has to be a multiple of " + std::to_string(c0_) + " for this type", pc);
    if (r.boundary != 0 && r.boundary < kLeastBoundary) misused(api, "a boundary has at least 1024 bytes", pc);
  }
  // The rows and columns of all repeats, as one matrix.
  void repeat(const WindowRegisters& r, const char* api, const void* pc) {
    const uint32_t rows = ceil_div(l_.rows, kFractalRows) * kFractalRows, columns = ceil_div(l_.columns, c0_);
    const uint32_t down = r.repeat_columns ? 1 : r.repeat_times, along = r.repeat_columns ? r.repeat_times : 1;
    const uint32_t last = l_.first_row + (down - 1) * r.repeat_stride * kFractalRows + rows;
    if (l_.rows % kFractalRows != 0 && c0_ != kHalf && last < rows_)
      misused(api, "mExtension has to be a multiple of 16 where it doesn't reach the last tile", pc);
    if (l_.columns % c0_ != 0 && l_.first_column / c0_ + columns < columns_)
      misused(api,
              "kExtension has to be a multiple of " + std::to_string(c0_) + " where it doesn't reach the last tile",
              pc);
    for (uint32_t i = 0; i < down; i++)
      for (uint32_t m = 0; m < rows; m++)
        picked_rows_.push_back(m < l_.rows ? l_.first_row + i * r.repeat_stride * kFractalRows + m : kNone);
    for (uint32_t i = 0; i < along; i++)
      for (uint32_t k = 0; k < columns; k++)
        picked_columns_.emplace_back(l_.first_column / c0_ + i * r.repeat_stride + k,
                                     std::min(c0_, l_.columns - k * c0_));
  }
  // asc-devkit, theoretical performance of LoadData 3D: a tile's cycles by the step of the window and by the rows of
  // places that its 16 rows are from.
  uint32_t tile_cycles(Memory to, uint32_t row) const {
    const bool left = to == Memory::L0A;
    const uint32_t most = left ? 16 : 18;
    uint32_t first = kNone, last = 0;
    for (uint32_t m = row; m < row + kFractalRows; m++) {
      if (picked_rows_[m] >= rows_) continue;
      first = std::min(first, picked_rows_[m] / across_);
      last = std::max(last, picked_rows_[m] / across_);
    }
    const uint32_t n = first == kNone ? 1 : last - first + 1, more = left ? 0 : 2;
    const uint32_t beyond = n > 1 ? n : 0;
    const uint32_t s = l_.step_x;
    if (s != 1 && s != 2 && s != 4 && s != 8) return most;
    return std::min(most, 2 * s + more + beyond);
  }

  const WindowLoad& l_;
  const WindowImage image_;
  const uint32_t c0_;
  uint32_t across_ = 0, rows_ = 0, columns_ = 0;               // places in a row of them, rows, columns of blocks
  std::vector<uint32_t> picked_rows_;                          // kNone: behind what was asked for
  std::vector<std::pair<uint32_t, uint32_t>> picked_columns_;  // and how many elements of each count
};

// Where element `e` of block (row, column) goes.
class Layout {
 public:
  Layout(Memory to, bool transpose, uint32_t size, uint32_t tall, uint32_t wide)
      : to_(to), turned_(transpose || to == Memory::L0B), size_(size), tall_(tall), wide_(wide) {}
  uint32_t tiles() const {
    if (!turned_ || size_ != 4) return tall_ * wide_;
    return 2 * tall_ * ceil_div(wide_, 2);  // columns of 8 in pairs
  }
  bool turned() const { return turned_; }
  bool has_gaps() const { return turned_ && size_ == 4 && wide_ % 2 != 0; }  // the last 8 rows stay as they were
  uint64_t place(uint32_t row, uint32_t column, uint32_t e) const {
    const uint32_t i = row / kFractalRows, r = row % kFractalRows;
    if (!turned_) return (uint64_t(i) * wide_ + column) * kFractalBytes + r * kBlockBytes + e * size_;
    if (size_ == 4) return of_four(i, r, column * kHalf + e);
    const uint64_t tile = to_ == Memory::L0A ? uint64_t(column) * tall_ + i : uint64_t(i) * wide_ + column;
    return tile * kFractalBytes + e * kBlockBytes + r * size_;
  }

 private:
  // Tiles of 16 columns by 8 rows: two for the 16 rows of a source tile.
  uint64_t of_four(uint32_t i, uint32_t r, uint32_t k) const {
    const uint64_t eight = 2 * uint64_t(i) + r / kHalf, sixteen = k / kFractalRows;
    const uint64_t tile = to_ == Memory::L0A ? sixteen * 2 * tall_ + eight : eight * ceil_div(wide_, 2) + sixteen;
    return tile * kFractalBytes + k % kFractalRows * kBlockBytes + r % kHalf * 4;
  }
  Memory to_;
  bool turned_;
  uint32_t size_, tall_, wide_;
};

// Blocks as few runs of equal pieces: [offset, offset + 32) each.
void note_blocks(std::vector<Access>& accesses, const uint8_t* base, std::vector<uint64_t>& offsets) {
  std::sort(offsets.begin(), offsets.end());
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  std::vector<std::pair<uint64_t, uint64_t>> runs;  // begin, bytes
  for (const uint64_t o : offsets) {
    if (!runs.empty() && runs.back().first + runs.back().second == o)
      runs.back().second += kBlockBytes;
    else
      runs.emplace_back(o, kBlockBytes);
  }
  for (size_t i = 0; i < runs.size();) {
    size_t n = 1;
    const uint64_t step = i + 1 < runs.size() ? runs[i + 1].first - runs[i].first : 0;
    while (i + n < runs.size() && runs[i + n].second == runs[i].second &&
           runs[i + n].first - runs[i + n - 1].first == step)
      n++;
    accesses.push_back({pieces(base + runs[i].first, runs[i].second, n, n > 1 ? step : 0), false});
    i += n;
  }
}

// int4b_t goes as bytes: its blocks are 32 bytes, too, and a block's elements stay together.
WindowLoad as_bytes(WindowLoad l, const char* api, const void* pc) {
  constexpr uint32_t kInABlock = 64;
  if (l.channels % kInABlock != 0) not_covered(api, "channelSize has to be a multiple of 64 for int4b_t", pc);
  if (l.first_column % kInABlock != 0) misused(api, "kStartPt has to be a multiple of 64 for int4b_t", pc);
  if (l.columns % 2 != 0) not_covered(api, "kExtension has to be even for int4b_t", pc);
  l.channels /= 2;
  l.first_column /= 2;
  l.columns /= 2;
  return l;
}

void check_types(Memory to, bool transpose, DType dtype, const char* api, const void* pc) {
  const uint32_t size = dtype_size(dtype);
  if (size != 1 && size != 2 && size != 4) unsupported_dtype(api, dtype, pc);
  if (size == 1 && to == Memory::L0B) misused(api, "1-byte elements can't be loaded to L0B this way", pc);
  if (size == 1 && transpose) misused(api, "1-byte elements can't be transposed on the way", pc);
  if (to != Memory::L0A && to != Memory::L0B) misused(api, "the destination has to be in L0A or L0B", pc);
}

// One load: its blocks, one after another, into L0; bytes that nobody wrote go along.
class Mover {
 public:
  Mover(Core& c, const ImageWindows& w, const Layout& layout, uint8_t* to, const void* image, uint32_t size)
      : c_(c), layout_(layout), to_(to), size_(size), wide_(w.wide()) {
    const WindowRegisters& r = c.windows;
    for (uint32_t b = 0; b < kBlockBytes; b += size) std::memcpy(padding_ + b, &r.padding, size);
    l1_ = static_cast<uint8_t*>(c.local(Memory::L1));
    const auto begin = static_cast<uint64_t>(static_cast<const uint8_t*>(image) - l1_);
    for (uint32_t row = 0; row < w.tall() * kFractalRows; row++)
      for (uint32_t column = 0; column < wide_; column++) {
        blocks_.push_back(w.block(row, column));
        ImageWindows::Block& b = blocks_.back();
        b.offset = r.boundary == 0 ? begin + b.offset : (begin + b.offset) % r.boundary;  // goes on at L1's begin
        complete_ = complete_ && b.kind != ImageWindows::Block::Unknown && b.elements * size == kBlockBytes;
      }
  }
  std::vector<Access> sources() const {
    std::vector<uint64_t> offsets;
    for (const ImageWindows::Block& b : blocks_)
      if (b.kind == ImageWindows::Block::Image) offsets.push_back(b.offset);
    std::vector<Access> out;
    note_blocks(out, l1_, offsets);
    return out;
  }
  bool complete() const { return complete_ && !layout_.has_gaps(); }
  void move() const {
    for_elements([&](const ImageWindows::Block& b, uint32_t e, uint8_t* to, uint32_t n) {
      if (b.kind != ImageWindows::Block::Unknown) std::memcpy(to, source(b) + e * size_, n * size_);
    });
  }
  void follow(const AccessSite& site) const {
    for_elements([&](const ImageWindows::Block& b, uint32_t e, uint8_t* to, uint32_t n) {
      const Range into = pieces(to, uint64_t(n) * size_, 1, 0);
      if (b.kind == ImageWindows::Block::Unknown || e >= b.elements) return c_.unwritten.forget(into);
      c_.unwritten.write(into);
      if (b.kind == ImageWindows::Block::Image) c_.unwritten.move(site, to, source(b) + e * size_, uint64_t(n) * size_);
    });
  }

 private:
  const uint8_t* source(const ImageWindows::Block& b) const {
    return b.kind == ImageWindows::Block::Image ? l1_ + b.offset : padding_;
  }
  // f(block, element, where to, elements that stay together).
  template <typename F>
  void for_elements(F f) const {
    const uint32_t all = kBlockBytes / size_;
    for (size_t i = 0; i < blocks_.size(); i++) {
      const ImageWindows::Block& b = blocks_[i];
      const bool whole = !layout_.turned() && (b.elements == all || b.elements == 0);
      const uint32_t once = whole ? all : 1;
      const auto row = static_cast<uint32_t>(i / wide_), column = static_cast<uint32_t>(i % wide_);
      for (uint32_t e = 0; e < all; e += once) f(b, e, to_ + layout_.place(row, column, e), once);
    }
  }

  Core& c_;
  const Layout& layout_;
  uint8_t *to_, *l1_ = nullptr;
  uint32_t size_, wide_;
  bool complete_ = true;
  std::vector<ImageWindows::Block> blocks_;
  uint8_t padding_[kBlockBytes];
};

bool moves_nothing(const WindowLoad& l, const WindowRegisters& r) {
  return l.channels == 0 || l.rows == 0 || l.columns == 0 || l.window_h == 0 || l.window_w == 0 ||
         r.repeat_times == 0 || (r.has_image && (r.image.height == 0 || r.image.width == 0));
}

}  // namespace

void load_windows(Memory to, void* dst, const void* src, const WindowLoad& asked, DType dtype, const char* api) {
  const void* pc = VNPU_PC;
  Core& c = core();
  WindowRegisters r = c.windows;
  c.needs(CoreKind::Cube, api, pc);
  if (asked.right_image) {
    if (!r.has_right_image) misused(api, "fMatrixCtrl has to be false", pc);
    r.image = r.right_image;
    r.has_image = true;
  }
  if (moves_nothing(asked, r)) return;
  const WindowLoad l = dtype == DType::I4 ? as_bytes(asked, api, pc) : asked;
  check_types(to, l.transpose, dtype, api, pc);
  const uint32_t size = dtype_size(dtype);
  if (r.repeat_times > 1 && r.repeat_columns && !l.transpose && to == Memory::L0A)
    not_covered(api, "repeats along k that are not transposed", pc);
  const ImageWindows windows(l, r, size, api, pc);
  const Layout layout(to, l.transpose, size, windows.tall(), windows.wide());
  const Range into = pieces(dst, uint64_t(layout.tiles()) * kFractalBytes, 1, 0);
  c.check_local(into, kFractalBytes, api, pc, "destination", to);
  c.check_local(pieces(src, kBlockBytes, 1, 0), kBlockBytes, api, pc, "source", Memory::L1);
  const uint64_t begin = c.local_offset(src) - c.map[Memory::L1].offset;
  if (r.boundary != 0 && begin >= r.boundary) misused(api, "the source begins behind the boundary", pc);
  const Mover mover(c, windows, layout, static_cast<uint8_t*>(dst), src, size);
  std::vector<Access> accesses = mover.sources();
  bool dirty = false;
  for (const Access& a : accesses) {
    c.check_local(a.range, kBlockBytes, api, pc, "source", Memory::L1);
    dirty = dirty || c.unwritten.any(a.range);
  }
  if (mover.complete() && !dirty)
    c.unwritten.write(into);
  else
    mover.follow({Pipe::MTE1, api, pc, false});
  mover.move();
  accesses.push_back({into, true});
  const Work work{c.chip.instruction("LoadData3D", dtype), 1, windows.cycles(to), 0};
  c.issue(Pipe::MTE1, api, pc, work, accesses.data(), accesses.size());
}

void set_window_image(const WindowImage& image, bool right) {
  WindowRegisters& r = core().windows;
  (right ? r.right_image : r.image) = image;
  (right ? r.has_right_image : r.has_image) = true;
  core().scalar(ScalarKind::Cycle);
}
void set_window_padding(uint32_t bits) {
  core().windows.padding = bits;
  core().scalar(ScalarKind::Cycle);
}
void set_window_boundary(uint32_t bytes) {
  core().windows.boundary = bytes;
  core().scalar(ScalarKind::Cycle);
}
void set_window_repeat(uint32_t stride, uint32_t times, bool along_columns) {
  WindowRegisters& r = core().windows;
  r.repeat_stride = stride;
  r.repeat_times = times;
  r.repeat_columns = along_columns;
  core().scalar(ScalarKind::Cycle);
}

}  // namespace vnpu
