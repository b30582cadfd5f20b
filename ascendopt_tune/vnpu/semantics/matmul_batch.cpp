// IterateBatch: whole matrices of A and B come to L1 side by side, one copy for as many as ND2NZ takes, and products
// take their blocks from there (asc-devkit, pages of IterateBatch and MatmulConfig). What is left open there:
//   A call whose matrices fit in L1 is halved where their number is even: the second half is copied while the first
//   one is multiplied. Where they don't fit, as many products at once as fit twice.
//   A matrix that several products share is copied once where all of them fit, or while its products follow each other.
#include "matmul_batch.h"

#include <tuple>

#include "vnpu/cube.h"

namespace vnpu {
namespace {

constexpr int kHalves = MultiplicationFlags::kInputs;

bool in_lines(BatchLayout l) { return l == BatchLayout::BSNGD || l == BatchLayout::SBNGD; }
int32_t block_of(DType t) { return 32 / static_cast<int32_t>(dtype_size(t)); }
// Rows of the Unified Buffer, and those that were asked for, begin at multiples of 32 bytes.
int64_t wide_of(const Matrix& c, int32_t n, bool local) {
  return local || c.layout == MatrixLayout::AlignedRows ? up(n, block_of(c.dtype)) : n;
}
bool sums_over_g(const MatmulBatches& x) {
  return x.a.layout != BatchLayout::Normal && x.c.g == 1 && (x.a.g != 1 || x.b.g != 1);
}
int32_t products_of(const BatchCall& call) { return std::max(call.count_a, call.count_b); }
// Matrices of C: those of G are one where C has no such axis.
int32_t results_of(const MatmulBatches& x, const BatchCall& call) {
  const int32_t products = products_of(call);
  return sums_over_g(x) ? products / std::max({x.a.g, x.b.g, 1}) : products;
}

// C's matrices: elements from one to the next and from row to row (0: as a single product's).
struct Results {
  int64_t step = 0;
  int32_t pitch = 0;
};
Results results(const Matmul& m, bool local) {
  const BatchAxes& x = m.batches.c;
  Results r;
  if (in_lines(x.layout)) {
    r.step = wide_of(m.c, m.cut.n, false);
    const int64_t lines = static_cast<int64_t>(x.n) * x.g * (x.layout == BatchLayout::SBNGD ? x.b : 1);
    r.pitch = static_cast<int32_t>(lines * wide_of(m.c, x.d, false));
  } else if (m.c.layout == MatrixLayout::Tiles) {
    r.step = static_cast<int64_t>(up(m.cut.m, 16)) * up(m.cut.n, dtype_size(m.c.dtype) == 1 ? 32 : 16);
  } else {
    r.step = static_cast<int64_t>(m.cut.m) * wide_of(m.c, m.cut.n, local);
  }
  return r;
}

// A's or B's part of a call.
class Side {
 public:
  Side(Matmul& m, Multiplication& on, bool left, const BatchCall& call, const char* api)
      : matrix_(left ? m.a : m.b),
        on_(left ? on.a() : on.b()),
        own_(left ? m.batches.a : m.batches.b),
        other_(left ? m.batches.b : m.batches.a),
        name_(left ? "A" : "B"),
        api_(api),
        count_(left ? call.count_a : call.count_b),
        products_(products_of(call)),
        stride_(left ? call.stride_a : call.stride_b),
        filled_(left ? core().multiplication.a_copied : core().multiplication.b_copied),
        free_(left ? core().multiplication.a : core().multiplication.b) {}

  void check() const;
  // Which of its matrices a product takes.
  int32_t of(int32_t product) const;
  // Elements from the first matrix to the `index`-th.
  int64_t offset(int32_t index) const;
  int32_t pitch() const;
  // Room for `chunk` products at once: in bytes.
  uint64_t plan(int32_t chunk, bool twice);
  void place(uint8_t* at) { base_ = at; }
  const uint8_t* half(int which) const { return base_ + (buffers_ > 1 ? which : 0) * slots_ * on_.whole_bytes(); }
  // What products [from, to) take comes to L1, where it isn't there.
  void bring(int32_t from, int32_t to);
  void hold(int32_t product) const;
  void release() {
    if (!matrix_.in_l1) set_free(Pipe::MTE1, Pipe::MTE2, free_[at_]);
  }
  // No half is in use any more when the next copy begins.
  void clear() {
    for (int i = 0; i < kHalves; i++) await_free(Pipe::MTE1, Pipe::MTE2, free_[i]);
  }

 private:
  std::pair<int32_t, int32_t> range(int32_t from, int32_t to) const;
  void copy(int32_t first, int32_t count) const;

  Matrix& matrix_;
  Operand2D& on_;
  const BatchAxes &own_, &other_;
  const char *const name_, *const api_;
  const int32_t count_, products_;
  const int64_t stride_;
  Flag *const filled_, *const free_;
  uint8_t* base_ = nullptr;
  int32_t slots_ = 0, buffers_ = 1;  // matrices of a half; halves
  bool all_ = false;                 // all of its matrices wait from the beginning
  int32_t first_ = 0, held_ = 0;     // those that wait
  int at_ = 1;                       // in this half
};

void Side::check() const {
  const std::string name(name_);
  if (count_ <= 0)
    misuse(api_, ("batch" + name + " is " + std::to_string(count_) +
                  ": at least 1, from SetBatchNum or the call's own arguments")
                     .c_str());
  if (products_ % count_ != 0)
    misuse(api_, ("batch" + name + " is " + std::to_string(count_) + ", which " + std::to_string(products_) +
                  " is no multiple of: batchA and batchB have to be")
                     .c_str());
  if (own_.layout != BatchLayout::Normal && std::min({own_.b, own_.s, own_.n, own_.g, own_.d}) <= 0)
    misuse(
        api_,
        ("the tiling has no axes of " + name + ": Set" + name + "Layout gives B, S, N, G and D, all above 0").c_str());
  if (stride_ != 0 && matrix_.layout == MatrixLayout::Tiles)
    misuse(api_, ("matrixStride" + name + " is for rows (ND): matrices of tiles lie one behind the other").c_str());
  if (own_.layout == BatchLayout::Normal) return;
  const auto fit = [](int32_t x, int32_t y) { return x == y || x == 1 || y == 1; };
  if (!fit(own_.b, other_.b) || !fit(own_.n, other_.n) || !fit(own_.g, other_.g))
    unsupported(api_, "axes of A and B that differ and are both above 1 (an axis of 1 is shared by the other's)");
  int32_t last = 0;
  for (int32_t i = 0; i < products_; i++) last = std::max(last, of(i));
  if (last >= count_)
    misuse(api_,
           ("batch" + name + " is " + std::to_string(count_) + ", but by the layouts' axes a product takes matrix " +
            std::to_string(last) + " of " + name + ": batchA / batchB has to be what the axes' sizes are")
               .c_str());
}

int32_t Side::of(int32_t product) const {
  if (own_.layout == BatchLayout::Normal) return product / (products_ / count_);
  const int32_t g = std::max(own_.g, other_.g), n = std::max(own_.n, other_.n);
  const auto at = [](int32_t index, int32_t axis, int32_t all) { return axis == 1 && all != 1 ? 0 : index; };
  const int32_t of_g = at(product % g, own_.g, g), of_n = at(product / g % n, own_.n, n);
  const int32_t of_b = at(product / g / n, own_.b, std::max(own_.b, other_.b));
  return (of_b * own_.n + of_n) * own_.g + of_g;
}

int64_t Side::offset(int32_t index) const {
  const int64_t high = on_.lying_rows(), wide = on_.lying_columns();
  const auto c0 = static_cast<int32_t>(32 / dtype_size(matrix_.dtype));
  const bool tiles = matrix_.layout == MatrixLayout::Tiles;
  const int64_t whole =
      tiles ? static_cast<int64_t>(up(on_.lying_rows(), 16)) * up(on_.lying_columns(), c0) : high * wide;
  const int64_t step = stride_ != 0 ? stride_ : in_lines(own_.layout) ? wide : whole;
  if (own_.layout != BatchLayout::BSNGD) return index * step;
  const int64_t line = static_cast<int64_t>(own_.n) * own_.g;
  return index / line * (line * whole) + index % line * step;
}

int32_t Side::pitch() const {
  const int32_t line = own_.n * own_.g * own_.d;
  return own_.layout == BatchLayout::BSNGD   ? line
         : own_.layout == BatchLayout::SBNGD ? line * own_.b
                                             : on_.lying_columns();
}

std::pair<int32_t, int32_t> Side::range(int32_t from, int32_t to) const {
  if (all_) return {0, count_};
  int32_t least = of(from), most = least;
  for (int32_t i = from; i < to; i++)
    std::tie(least, most) = std::make_pair(std::min(least, of(i)), std::max(most, of(i)));
  return {least, most - least + 1};
}

uint64_t Side::plan(int32_t chunk, bool twice) {
  if (matrix_.in_l1) return 0;
  all_ = count_ <= chunk;
  buffers_ = !twice || all_ || chunk >= products_ ? 1 : 2;
  slots_ = 0;
  for (int32_t i = 0; i < products_; i += chunk)
    slots_ = std::max(slots_, range(i, std::min(i + chunk, products_)).second);
  return static_cast<uint64_t>(buffers_) * static_cast<uint64_t>(slots_) * on_.whole_bytes();
}

// As few copies as can be: matrices that lie at even distances come at once.
void Side::copy(int32_t first, int32_t count) const {
  const int32_t line = own_.layout == BatchLayout::BSNGD ? own_.n * own_.g : count_;
  for (int32_t i = 0; i < count;) {
    const int32_t index = first + i, next = std::min(count - i, line - index % line);
    const int64_t stride = next > 1 ? offset(index + 1) - offset(index) : 0;
    const auto* from = static_cast<const uint8_t*>(matrix_.data) + matrix_bytes(matrix_.dtype, offset(index));
    on_.copy_whole(const_cast<uint8_t*>(half(at_)) + i * on_.whole_bytes(), from, next, stride);
    i += next;
  }
}

void Side::bring(int32_t from, int32_t to) {
  if (matrix_.in_l1) return;
  const auto [first, count] = range(from, to);
  if (held_ == count && first_ == first) return;
  at_ = buffers_ > 1 ? 1 - at_ : 0;
  first_ = first;
  held_ = count;
  await_free(Pipe::MTE1, Pipe::MTE2, free_[at_]);
  copy(first, count);
  hand_over(Pipe::MTE2, Pipe::MTE1, filled_[at_]);
}

void Side::hold(int32_t product) const {
  const auto* base = matrix_.in_l1 ? static_cast<const uint8_t*>(matrix_.data) : half(at_);
  on_.hold(base + (of(product) - (matrix_.in_l1 ? 0 : first_)) * on_.whole_bytes());
}

class Batch {
 public:
  Batch(Matmul& m, const BatchCall& call, bool local, const char* api)
      : m_(m),
        call_(call),
        local_(local),
        api_(api),
        before_{m.a, m.b, m.c, m.bias, m.atomic},
        on_(m, api),
        a_(m, on_, true, call, api),
        b_(m, on_, false, call, api),
        products_(products_of(call)) {}
  ~Batch() {
    std::tie(m_.a, m_.b, m_.c, m_.bias, m_.atomic) = before_;
    m_.seen_a = m_.seen_b = 0;  // what waits in L1 is none of the next call's
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void run(void* to);

 private:
  void require(bool holds, const std::string& rule) const {
    if (!holds) misuse(api_, rule.c_str());
  }
  void check() const;
  void check_results() const;
  void check_rows() const;
  int32_t choose_chunk();
  int32_t reserve();
  void bring_bias();
  void multiply(int32_t product, void* to);
  void block_by_block(void* to);

  Matmul& m_;
  const BatchCall& call_;
  const bool local_;
  const char* const api_;
  const std::tuple<Matrix, Matrix, Matrix, Matrix, uint8_t> before_;
  Multiplication on_;
  Side a_, b_;
  const int32_t products_;
  const uint8_t* biases_ = nullptr;
  uint64_t bias_row_ = 0;
};

void Batch::check() const {
  require(std::min({m_.cut.base_m, m_.cut.base_n, m_.cut.base_k, m_.cut.m, m_.cut.n, m_.cut.k}) > 0,
          "the tiling that Init was given has zeros: fill TCubeTiling in the tiling function");
  require(m_.a.data != nullptr && m_.b.data != nullptr, "SetTensorA and SetTensorB come first");
  require(m_.words == nullptr && m_.word == 0, "SetQuantScalar and SetQuantVector are not for batches");
  require(!m_.with_bias || m_.cut.has_bias, "SetBias needs a tiling with isBias");
  if (m_.with_bias && m_.bias.in_l1) unsupported(api_, "a bias in TSCM, with batches");
  a_.check();
  b_.check();
  if (call_.add && products_ > 1)
    unsupported(api_, "enPartialSum with several products: each begins with its own sums");
  check_results();
}

void Batch::check_results() const {
  const BatchAxes& c = m_.batches.c;
  const int32_t count = results_of(m_.batches, call_);
  const bool one = m_.cut.m <= m_.cut.base_m && m_.cut.n <= m_.cut.base_n;
  if (c.layout != BatchLayout::Normal)
    require(std::min({c.b, c.s, c.n, c.g, c.d}) > 0,
            "the tiling has no axes of C: SetCLayout gives B, S, N, G and D, all above 0");
  require(!call_.add || one, "enPartialSum needs baseM and baseN to be no less than singleCoreM and singleCoreN");
  require(!call_.in_sequence || (one && !in_lines(c.layout)),
          "enSequentialWrite is for matrices of one block (baseM, baseN no less than singleCoreM, singleCoreN) that "
          "lie one behind the other");
  if (c.layout == BatchLayout::BSNGD)
    require(count <= c.n * c.g, "a call stays in one row of C's N and G, which has " + std::to_string(c.n * c.g) +
                                    " matrices, not " + std::to_string(count) + ": call once for each B");
  check_rows();
  if (!sums_over_g(m_.batches)) return;
  if (m_.with_bias && count > 1) unsupported(api_, "a bias where several sums over G are made in one call");
  require(products_ % std::max(m_.batches.a.g, m_.batches.b.g) == 0, "a sum over G needs all of G in one call");
}

void Batch::check_rows() const {
  const int32_t m = m_.cut.m, n = m_.cut.n;
  const bool aligned = m_.c.layout == MatrixLayout::AlignedRows, lines = in_lines(m_.batches.c.layout);
  if (m_.c.layout == MatrixLayout::Tiles) {
    require(!lines, "C of BSNGD and SBNGD lies as rows");
    require(m == m_.org_m && m % 16 == 0 && n % 16 == 0, "C of tiles needs whole ones, and M to be singleCoreM");
  }
  if (n % block_of(m_.c.dtype) == 0) return;
  require(!local_ || aligned, "rows that don't fill blocks of 32 bytes go to the Unified Buffer as ND_ALIGN alone");
  if (!local_ && aligned && !lines)
    unsupported(api_, "ND_ALIGN in global memory for matrices that lie one behind the other");
}

// How many products' matrices wait in L1 at once.
int32_t Batch::choose_chunk() {
  const uint64_t room = std::max<uint64_t>(m_.batch_capacity, core().local_left(Memory::L1));
  const auto needs = [this](int32_t chunk, bool twice) { return a_.plan(chunk, twice) + b_.plan(chunk, twice); };
  if (m_.batches.room == BatchRoom::All) {
    const int32_t chunk = products_ % kHalves == 0 ? products_ / kHalves : products_;
    const uint64_t bytes = needs(chunk, true);
    require(bytes <= room, "A and B of " + std::to_string(products_) + " products take " + std::to_string(bytes) +
                               " bytes of L1, of which " + std::to_string(room) +
                               " are left: fewer at once, or (NORMAL) BatchMode::BATCH_LARGE_THAN_L1");
    return chunk;
  }
  for (int32_t chunk = products_; chunk > 0; chunk--)
    if (needs(chunk, true) <= room) return chunk;
  require(needs(1, false) <= room, "A and B of one product take " + std::to_string(needs(1, false)) +
                                       " bytes of L1, of which " + std::to_string(room) +
                                       " are left: BatchMode::SINGLE_LARGE_THAN_L1 is for these");
  return 1;
}

int32_t Batch::reserve() {
  const auto bias_bytes = static_cast<uint64_t>(m_.cut.n) * dtype_size(m_.bias.dtype);
  bias_row_ = (bias_bytes + 63) / 64 * 64;
  const uint64_t biases = m_.with_bias ? bias_row_ * (m_.batches.own_bias ? results_of(m_.batches, call_) : 1) : 0;
  if (biases > m_.bias_capacity) {
    m_.bias_slot = static_cast<uint8_t*>(local_allocate(Memory::L1, static_cast<uint32_t>(biases)));
    m_.bias_capacity = biases;
  }
  const int32_t chunk = choose_chunk();
  const bool twice =
      m_.batches.room == BatchRoom::All || a_.plan(chunk, true) + b_.plan(chunk, true) <=
                                               std::max<uint64_t>(m_.batch_capacity, core().local_left(Memory::L1));
  const uint64_t for_a = a_.plan(chunk, twice), bytes = for_a + b_.plan(chunk, twice);
  if (bytes > m_.batch_capacity) {
    uint64_t most = bytes;  // what the tiling's batches will need, so that calls of more of them find it
    if (m_.batches.most > products_) most = (bytes * m_.batches.most + products_ - 1) / products_;
    m_.batch_capacity = most <= core().local_left(Memory::L1) ? most : bytes;
    m_.batch_room = static_cast<uint8_t*>(local_allocate(Memory::L1, static_cast<uint32_t>(m_.batch_capacity)));
  }
  a_.place(m_.batch_room);
  b_.place(m_.batch_room + for_a);
  const uint8_t* halves[] = {a_.half(0), a_.half(1), b_.half(0), b_.half(1)};
  if (!std::equal(std::begin(halves), std::end(halves), std::begin(m_.batch_halves))) {
    a_.clear();
    b_.clear();
    std::copy(std::begin(halves), std::end(halves), std::begin(m_.batch_halves));
  }
  return chunk;
}

// All biases of the call at once; blocks take theirs from L1.
void Batch::bring_bias() {
  auto& flags = core().multiplication;
  const uint64_t bytes = static_cast<uint64_t>(m_.cut.n) * dtype_size(m_.bias.dtype);
  await_free(Pipe::MTE1, Pipe::MTE2, flags.bias);
  RowsToTiles s;
  s.matrices = m_.batches.own_bias ? static_cast<uint32_t>(results_of(m_.batches, call_)) : 1;
  s.rows = 1;
  s.row_bytes = s.row_stride = s.matrix_stride = bytes;
  s.tile_row_stride = s.column_stride = 32;
  s.tiled_matrix_stride = bias_row_;
  copy_rows_to_tiles(m_.bias_slot, m_.bias.data, s, api_);
  hand_over(Pipe::MTE2, Pipe::MTE1, flags.copied);
  biases_ = m_.bias_slot;
  m_.bias.in_l1 = true;
}

void Batch::multiply(int32_t product, void* to) {
  const int32_t g = std::max(m_.batches.a.g, m_.batches.b.g);
  const bool sums = sums_over_g(m_.batches);
  const int32_t result = sums ? product / g : product;
  const bool bias = m_.with_bias;
  if (sums && product % g != 0) m_.with_bias = false;
  if (m_.with_bias && biases_ != nullptr)
    m_.bias.data = biases_ + (m_.batches.own_bias ? static_cast<uint64_t>(result) * bias_row_ : 0);
  const Results places = results(m_, local_);
  auto* c = static_cast<uint8_t*>(to) + matrix_bytes(m_.c.dtype, result * places.step);
  m_.c.pitch = places.pitch;
  if (local_ && m_.c.layout == MatrixLayout::Rows) m_.c.layout = MatrixLayout::AlignedRows;
  m_.at = 0;
  const bool by_unit_flags = !call_.add && on_.may_hand_over_tiles();
  while (on_.next(call_.add, nullptr, by_unit_flags)) on_.out(c, call_.in_sequence, by_unit_flags);
  m_.at = 0;
  m_.with_bias = bias;
}

// As products by themselves, of which not even one's matrices fit in L1.
void Batch::block_by_block(void* to) {
  const Matrix a = m_.a, b = m_.b, bias = m_.bias;
  const auto at = [](const Matrix& x, int64_t elements) {
    return static_cast<const uint8_t*>(x.data) + matrix_bytes(x.dtype, elements);
  };
  for (int32_t i = 0; i < products_; i++) {
    m_.a.data = at(a, a_.offset(a_.of(i)));
    m_.b.data = at(b, b_.offset(b_.of(i)));
    if (m_.with_bias) m_.bias.data = at(bias, static_cast<int64_t>(i) * m_.cut.n);
    m_.seen_a = m_.seen_b = 0;
    multiply(i, to);
  }
}

void Batch::run(void* to) {
  check();
  if (sums_over_g(m_.batches)) m_.atomic = static_cast<uint8_t>(AtomicOp::Add);
  if (m_.batches.room == BatchRoom::Blocks) return block_by_block(to);
  m_.seen_a = m_.version_a;
  m_.seen_b = m_.version_b;
  m_.a.pitch = a_.pitch();
  m_.b.pitch = b_.pitch();
  const int32_t chunk = reserve();
  if (m_.with_bias) bring_bias();
  for (int32_t from = 0; from < products_; from += chunk) {
    const int32_t end = std::min(from + chunk, products_);
    a_.bring(from, end);
    b_.bring(from, end);
    for (int32_t i = from; i < end; i++) {
      a_.hold(i);
      b_.hold(i);
      multiply(i, to);
    }
    a_.release();
    b_.release();
  }
  if (biases_ != nullptr) set_free(Pipe::MTE1, Pipe::MTE2, core().multiplication.bias);
}

// Elements of the calls before the `loop`-th, `count` matrices each.
int64_t elements_before(const BatchAxes& x, int64_t wide, int32_t count, uint32_t loop) {
  const int64_t at = static_cast<int64_t>(count) * loop, line = static_cast<int64_t>(x.n) * x.g;
  if (x.layout == BatchLayout::SBNGD) return at * wide;
  if (x.layout != BatchLayout::BSNGD) return at * wide * x.s;
  return line == 0 ? 0 : at / line * (line * x.s * wide) + at % line * wide;
}

}  // namespace

void make_batch(Matmul& m, const BatchCall& call, void* to, bool local, const char* api) {
  Batch(m, call, local, api).run(to);
}

void make_batch_of(Matmul& m, const BatchCall& call, uint32_t loop, void* to, const char* api) {
  const MatmulBatches& x = m.batches;
  const auto moved = [](Matrix& one, int64_t elements) {
    one.data = static_cast<const uint8_t*>(one.data) + matrix_bytes(one.dtype, elements);
  };
  const Matrix a = m.a, b = m.b, bias = m.bias;
  const int32_t count = results_of(x, call);
  moved(m.a, elements_before(x.a, x.a.d, call.count_a, loop));
  moved(m.b, elements_before(x.b, x.b.d, call.count_b, loop));
  if (m.with_bias && x.own_bias) moved(m.bias, static_cast<int64_t>(x.c.d) * count * loop);
  const int64_t before = elements_before(x.c, wide_of(m.c, x.c.d, false), count, loop);
  make_batch(m, call, static_cast<uint8_t*>(to) + matrix_bytes(m.c.dtype, before), false, api);
  m.a = a;
  m.b = b;
  m.bias = bias;
}

uint64_t batch_bytes(const Matmul& m, const BatchCall& call, const char* api) {
  if (call.count_a <= 0 || call.count_b <= 0) misuse(api, "batchA and batchB have to be at least 1");
  const Results r = results(m, true);
  const int64_t wide = wide_of(m.c, m.cut.n, true), pitch = r.pitch != 0 ? r.pitch : wide;
  const int64_t count = results_of(m.batches, call);
  const int64_t elements =
      m.c.layout == MatrixLayout::Tiles ? count * r.step : (count - 1) * r.step + (m.cut.m - 1) * pitch + wide;
  return matrix_bytes(m.c.dtype, elements);
}

BatchRows batch_rows(const Matmul& m, const BatchCall& call, uint32_t loop, const char* api) {
  if (call.count_a <= 0 || call.count_b <= 0) misuse(api, "batchA and batchB have to be at least 1");
  const BatchAxes& x = m.batches.c;
  const int32_t count = results_of(m.batches, call);
  const int64_t wide = wide_of(m.c, x.d, false);
  BatchRows r;
  r.offset = matrix_bytes(m.c.dtype, elements_before(x, wide, count, loop));
  r.bytes = matrix_bytes(m.c.dtype, count * wide * (in_lines(x.layout) ? 1 : x.s));
  if (!in_lines(x.layout)) return r;
  r.pieces = static_cast<uint32_t>(m.cut.m);
  r.pitch = matrix_bytes(m.c.dtype, results(m, false).pitch);
  return r;
}

}  // namespace vnpu
