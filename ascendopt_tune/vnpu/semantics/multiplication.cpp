// The high-level matrix multiplication on one cube core: which block is next, where its operands wait, its products,
// and its way out. Order and buffers as TCubeTiling says (asc-devkit, pages of Matmul); what is left open there:
//   L1 holds blocks (or packets of them) in a ring; a block that is still there is not copied again.
//   L0A and L0B are halved where both are to be double buffered; multiplications of a core share them.
//   A pipe that fills a buffer waits for the latest use of any buffer with the same flag, which is never too early.
#include "multiplication.h"

#include "handed_over.h"
#include "vnpu/cube.h"
#include "vnpu/matmul_begin.h"

namespace vnpu {
namespace {

constexpr int32_t kMostWords = 256;  // of quantization, in one copy out

void allocate(Flag& flag, Pipe src, Pipe dst) { flag.id = event_allocate(src, dst); }

void allocate_flags(MultiplicationFlags& f) {
  if (f.allocated) return;
  f.allocated = true;
  for (Flag* flag : {f.a_copied, f.a_copied + 1, f.b_copied, f.b_copied + 1, &f.copied})
    allocate(*flag, Pipe::MTE2, Pipe::MTE1);
  allocate(f.loaded, Pipe::MTE1, Pipe::M);
  allocate(f.computed, Pipe::M, Pipe::FIX);
  allocate(f.brought, Pipe::MTE2, Pipe::FIX);
  for (Flag* flag : {f.a, f.a + 1, f.b, f.b + 1, &f.bias}) allocate(*flag, Pipe::MTE1, Pipe::MTE2);
  allocate(f.words, Pipe::FIX, Pipe::MTE2);
  for (Flag* flag : {f.inputs, f.inputs + 1, &f.table}) allocate(*flag, Pipe::M, Pipe::MTE1);
  for (Flag& flag : f.results) allocate(flag, Pipe::FIX, Pipe::M);
}

Requantize way_out(DType from, DType to, bool each) {
  const bool integers = from == DType::I32;
  switch (to) {
    case DType::F16:
      return !integers ? Requantize::F32ToF16 : each ? Requantize::I32ToF16Each : Requantize::I32ToF16;
    case DType::BF16:
      return Requantize::F32ToBF16;
    case DType::I8:
    case DType::U8:
      if (integers) return each ? Requantize::I32To8Each : Requantize::I32To8;
      return each ? Requantize::F32To8Each : Requantize::F32To8;
    default:
      return Requantize::None;
  }
}

}  // namespace

void Multiplication::check() const {
  const auto one = [this](int32_t value, const char* name) {
    require(value > 0, std::string(name) + " has to be above 0, it is " + std::to_string(value));
  };
  one(cut_.base_m, "baseM");
  one(cut_.base_n, "baseN");
  one(cut_.base_k, "baseK");
  one(cut_.depth_a, "depthA1");
  one(cut_.depth_b, "depthB1");
  require(m_.a.dtype == m_.b.dtype, "A and B have to be of one type");
  require(cut_.base_m % 16 == 0 && cut_.base_n % 16 == 0, "baseM and baseN have to be multiples of 16");
  const int32_t c0 = tile_columns(m_.a.dtype);
  const bool turns = a_.rows_along_k() || b_.rows_along_k();
  require(cut_.base_k % (turns ? std::max(c0, 16) : c0) == 0, "baseK has to be a multiple of a tile's columns");
  require(!m_.configuration.sparse || cut_.base_k % (2 * c0) == 0,
          "baseK of a sparse B has to be a multiple of 64, of which 32 are there");
}

bool begin_matmul(bool constant_tiling) {
  Core& here = core();
  const bool first = !here.multiplies;
  if (first) here.scalar(ScalarKind::MatmulStart);
  here.multiplies = true;
  if (!constant_tiling) here.scalar(ScalarKind::MatmulTiling);
  return first;
}

// L1 for blocks and the bias: behind other objects', or over them.
void Multiplication::take_rooms() {
  const uint64_t bias = cut_.has_bias ? static_cast<uint64_t>(up(cut_.base_n, 16)) * 4 : 0;
  const auto more = [](uint64_t needed, uint64_t has) { return needed > has ? needed : 0; };
  const uint64_t a = a_.plan(), b = b_.plan();
  const uint64_t missing =
      more(a, m_.packets_a.capacity) + more(b, m_.packets_b.capacity) + more(bias, m_.bias_capacity);
  if (missing == 0) return;
  if (core_.matmul_rooms_open(Memory::L1, missing, a + b + bias)) {
    a_.drop();
    b_.drop();
    m_.bias_capacity = 0;
    if (core_.rooms_in(Memory::L1).turn == &m_)
      core_.rooms_in(Memory::L1).turn = nullptr;  // it lies elsewhere from now on
  }
  a_.allocate();
  b_.allocate();
  if (bias > m_.bias_capacity) {
    m_.bias_slot = static_cast<uint8_t*>(local_allocate(Memory::L1, static_cast<uint32_t>(bias)));
    m_.bias_capacity = bias;
  }
  core_.matmul_rooms_close(Memory::L1);
}

// Where objects lie over each other, the one before has to have ended, and what it still reads is waited for.
void Multiplication::take_turn() {
  Core::MatmulRooms& rooms = core_.rooms_in(Memory::L1);
  if (rooms.together && rooms.turn != &m_) {
    require(rooms.ended || rooms.turn == nullptr,
            "another object's End comes first: L1 is too small for all objects, and they share it");
    order(Pipe::MTE1, Pipe::MTE2);
    barrier(Pipe::MTE2);
    a_.forget();
    b_.forget();
  }
  rooms.turn = &m_;
  rooms.ended = core_.groups.mixed();  // of a vector core's objects the cube core doesn't hear it
}

void Multiplication::init() {
  begin_matmul(m_.configuration.constant_tiling);
  allocate_flags(flags_);
  if (untiled()) return;
  check();
  if (m_.batches.a.layout == BatchLayout::None || m_.batches.room == BatchRoom::Blocks) take_rooms();
  const auto bytes = static_cast<uint32_t>(up(cut_.base_m, 16) / 16 * b_.outer_tiles(cut_.base_n)) * 1024;
  const auto buffers = static_cast<uint32_t>(std::clamp(cut_.buffers_c, 1, MultiplicationFlags::kResults));
  if (m_.c.in_l1 || (bytes <= m_.result_bytes && buffers <= m_.result_buffers)) return;
  m_.result_bytes = bytes;
  m_.result_buffers = buffers;
  m_.result = core_.matmul_results(bytes, buffers);
}

// Along m first, or along n; packets are gone through one by one.
Multiplication::Place Multiplication::place_of(uint32_t block) const {
  const bool m_first = cut_.order == 0;
  int32_t step[2] = {1, 1};
  if (m_.configuration.packets) {
    step[0] = std::max(m_first ? cut_.step_m : cut_.step_n, 1);
    step[1] = std::max(m_first ? cut_.step_n : cut_.step_m, 1);
  }
  const int32_t fast_all = m_first ? rows() : columns(), slow_all = m_first ? columns() : rows();
  auto left = static_cast<int32_t>(block);
  int32_t slow = 0;
  while (left >= fast_all * rest(slow_all, slow, step[1])) {
    left -= fast_all * rest(slow_all, slow, step[1]);
    slow += step[1];
  }
  const int32_t full = step[0] * rest(slow_all, slow, step[1]);
  const int32_t fast = left / full * step[0];
  left -= left / full * full;
  const int32_t wide = rest(fast_all, fast, step[0]);
  const int32_t f = fast + left % wide, s = slow + left / wide;
  return m_first ? Place{f, s} : Place{s, f};
}

// The block behind the latest one; triangles (counted in blocks) leave some out.
bool Multiplication::next_place(Place& p) {
  for (; m_.at < static_cast<uint32_t>(rows() * columns()) * turns(); m_.at++) {
    p = place_of(m_.at / turns());
    if (!left_out(p)) return true;
  }
  return false;
}

// What will be multiplied behind packet `step` of k comes to L1 meanwhile.
void Multiplication::expect_next(int32_t step) {
  const int32_t steps = pieces_of(cut_.k, cut_.base_k);
  for (Operand2D* operand : {&a_, &b_}) {
    const int32_t at_once = operand->blocks_at_once(), next = (step / at_once + 1) * at_once;
    Place p{m_.row, m_.column};
    if (next >= steps && !next_place(p)) continue;
    operand->expect(operand == &a_ ? p.row : p.column, next >= steps ? 0 : next);
  }
}

uint8_t* Multiplication::half(Memory memory) const {
  auto* base = static_cast<uint8_t*>(local_base(memory));
  return base + (halved() ? flags_.input * (local_bytes(memory) / 2) : 0);
}

// The block's part of the bias: to L1, zeros behind it up to a multiple of 32 bytes, and on to the table.
void Multiplication::bring_bias() {
  const auto n = static_cast<uint32_t>(used_n());
  const uint32_t size = dtype_size(m_.bias.dtype);
  const uint64_t first = static_cast<uint64_t>(m_.column) * static_cast<uint64_t>(cut_.base_n) * size;
  const auto* from = static_cast<const uint8_t*>(m_.bias.data) + first;
  if (!m_.bias.in_l1) {
    await_free(Pipe::MTE1, Pipe::MTE2, flags_.bias);
    RowsToTiles s;
    s.rows = 1;
    s.row_bytes = s.row_stride = uint64_t(n) * size;
    s.tile_row_stride = s.column_stride = kBlockBytes;
    copy_rows_to_tiles(m_.bias_slot, from, s, api_);
    hand_over(Pipe::MTE2, Pipe::MTE1, flags_.copied);
    from = m_.bias_slot;
  }
  await_free(Pipe::M, Pipe::MTE1, flags_.table);
  TableCopy t;
  t.bytes = uint64_t(up(static_cast<int32_t>(n), 16)) * 4;
  copy_to_table(Memory::BT, local_base(Memory::BT), from, t, sum_type(), m_.bias.dtype, api_);
  if (!m_.bias.in_l1) set_free(Pipe::MTE1, Pipe::MTE2, flags_.bias);
}

Product Multiplication::product_of(int32_t step, bool add, bool bias, int unit_flag) const {
  Product p;
  p.m = static_cast<uint32_t>(std::max(used_m(), 2));  // a single row would be taken for a vector
  p.n = static_cast<uint32_t>(used_n());
  if (b_.rows_along_k() && multiplies_integers(m_.a.dtype)) p.n = static_cast<uint32_t>(b_.outer_tiles(used_n())) * 16;
  p.k = static_cast<uint32_t>(rest(cut_.k, step * cut_.base_k, cut_.base_k));
  const bool old = (step > 0 && !m_.configuration.partial) || add;
  p.start = bias ? Product::Start::Bias : old ? Product::Start::Old : Product::Start::Zero;
  p.unit_flag = static_cast<uint8_t>(unit_flag);
  p.rows_first = m_.c.layout != MatrixLayout::Tiles;
  p.pairs_of_columns = a_.rows_along_k();
  p.sparse = m_.configuration.sparse;
  return p;
}

// One product: block (row, step) of A, block (step, column) of B.
void Multiplication::multiply_block(int32_t step, bool add, uint8_t* c, int unit_flag) {
  const bool bias = step == 0 && !add && m_.with_bias;
  if (bias) bring_bias();
  if (halved()) flags_.input = 1 - flags_.input;
  for (uint32_t i = 0; i < MultiplicationFlags::kInputs; i++)
    if (!halved() || i == flags_.input) await_free(Pipe::M, Pipe::MTE1, flags_.inputs[i]);
  uint8_t *left = half(Memory::L0A), *right = half(Memory::L0B);
  a_.use(m_.row, step);
  b_.use(m_.column, step);
  expect_next(step);
  a_.load(m_.row, step, left);
  b_.load(m_.column, step, right);
  hand_over(Pipe::MTE1, Pipe::M, flags_.loaded);
  const Product p = product_of(step, add, bias, unit_flag);
  const uint32_t tiles = static_cast<uint32_t>(pieces_of(used_m(), 16) * b_.outer_tiles(used_n()));
  if (p.start == Product::Start::Old && tiles < kHeldByItself) barrier(Pipe::M);
  multiply(c, left, right, bias ? local_base(Memory::BT) : nullptr, p, m_.a.dtype, sum_type(), api_);
  set_free(Pipe::M, Pipe::MTE1, flags_.inputs[halved() ? flags_.input : 0]);
  if (bias) set_free(Pipe::M, Pipe::MTE1, flags_.table);
  core().scalar(ScalarKind::Issue, m_.configuration.scalar_instructions);
}

void Multiplication::notice_changes() {
  if (m_.seen_a == m_.version_a && m_.seen_b == m_.version_b) return;
  if (m_.seen_a != m_.version_a) a_.forget();
  if (m_.seen_b != m_.version_b) b_.forget();
  m_.seen_a = m_.version_a;
  m_.seen_b = m_.version_b;
  m_.at = 0;
}

bool Multiplication::go_on() {
  require(!untiled(), "the tiling that Init was given is all zeros: fill TCubeTiling in the tiling function");
  notice_changes();
  require(cut_.m > 0 && cut_.n > 0 && cut_.k > 0, "singleCoreM, singleCoreN and singleCoreK have to be above 0");
  require(m_.a.data != nullptr && m_.b.data != nullptr, "SetTensorA and SetTensorB come first");
  require(!m_.with_bias || cut_.has_bias, "SetBias needs a tiling with isBias");
  require(!m_.configuration.sparse || m_.places != nullptr, "SetSparseIndex comes first");
  require(!m_.with_bias || !m_.configuration.partial, "isPartialOutput is for products without a bias");
  Place p{};
  if (!next_place(p)) return false;
  m_.row = p.row;
  m_.column = p.column;
  m_.at++;
  return true;
}

// Until a result's place is free: of one that lies over another object's, all that this one may have left there.
void Multiplication::await_room() {
  await_free(Pipe::FIX, Pipe::M, flags_.results[m_.buffer]);
  Core::MatmulRooms& rooms = core_.rooms_in(Memory::L0C);
  if (rooms.together && rooms.turn != &m_)
    for (Flag& flag : flags_.results) await_free(Pipe::FIX, Pipe::M, flag);
  rooms.turn = &m_;
}

bool Multiplication::next(bool add, void* into, bool by_unit_flags) {
  if (!go_on()) return false;
  take_turn();
  if (!add && into == nullptr && m_.result_buffers > 1) m_.buffer = 1 - m_.buffer;
  auto* c = into != nullptr ? static_cast<uint8_t*>(into) : m_.result + m_.buffer * m_.result_bytes;
  if (into == nullptr) await_room();
  const int32_t steps = pieces_of(cut_.k, cut_.base_k);
  const int32_t first = m_.configuration.partial ? static_cast<int32_t>((m_.at - 1) % turns()) : 0;
  const int32_t end = m_.configuration.partial ? first + 1 : steps;
  for (int32_t s = first; s < end; s++) multiply_block(s, add, c, !by_unit_flags ? 0 : s + 1 == end ? 3 : 2);
  m_.ready = into == nullptr;
  return true;
}

// A word for each column of the block: to L1 and on to the outgoing pipe's table.
void Multiplication::bring_words() {
  const int32_t n = used_n();
  require(n <= kMostWords, "SetQuantVector is for blocks of at most 256 columns");
  if (m_.words_slot == nullptr) m_.words_slot = static_cast<uint8_t*>(local_allocate(Memory::L1, kMostWords * 8));
  await_free(Pipe::FIX, Pipe::MTE2, flags_.words);
  RowsToTiles s;
  s.rows = 1;
  s.row_bytes = s.row_stride = static_cast<uint64_t>(n) * 8;
  s.tile_row_stride = s.column_stride = kBlockBytes;
  copy_rows_to_tiles(m_.words_slot, static_cast<const uint64_t*>(m_.words) + int64_t(m_.column) * cut_.base_n, s, api_);
  hand_over(Pipe::MTE2, Pipe::FIX, flags_.brought);
  TableCopy t;
  t.bytes = static_cast<uint64_t>(up(n * 8, 128));
  copy_to_table(Memory::FB, local_base(Memory::FB), m_.words_slot, t, DType::U64, DType::U64, api_);
  set_outgoing_words(local_base(Memory::FB));
  set_free(Pipe::FIX, Pipe::MTE2, flags_.words);
  barrier(Pipe::FIX);
}

Outgoing Multiplication::outgoing(bool in_sequence, uint64_t& offset) const {
  const uint64_t size = dtype_size(m_.c.dtype);
  const int32_t m = used_m(), n = used_n();
  const int32_t row = in_sequence ? 0 : m_.row * cut_.base_m, column = in_sequence ? 0 : m_.column * cut_.base_n;
  Outgoing o;
  o.m = static_cast<uint32_t>(m);
  o.src_stride = static_cast<uint32_t>(up(m, 16));
  o.rows = m_.c.layout != MatrixLayout::Tiles;
  o.how = way_out(sum_type(), m_.c.dtype, m_.words != nullptr);
  o.word = m_.word;
  o.split = m_.configuration.split && !o.rows && m_.c.dtype == DType::F32;
  o.cached = m_.c.cached;
  if (o.rows) {
    const int32_t block = static_cast<int32_t>(32 / size);
    int32_t pitch = in_sequence ? n : m_.c.pitch != 0 ? m_.c.pitch : m_.org_kc != 0 ? m_.org_kc : m_.org_n;
    if (m_.c.layout == MatrixLayout::AlignedRows) pitch = up(pitch, block);
    o.n = static_cast<uint32_t>(n);
    o.dst_stride = static_cast<uint64_t>(pitch) * size;
    offset = (static_cast<uint64_t>(row) * static_cast<uint64_t>(pitch) + static_cast<uint64_t>(column)) * size;
    return o;
  }
  const auto width = o.split ? 8 : size == 1 ? 32 : 16;  // columns of a tile
  const uint64_t high = static_cast<uint64_t>(up(in_sequence ? m : m_.org_m, 16));
  o.n = static_cast<uint32_t>(up(n, width));
  o.dst_stride = high * static_cast<uint64_t>(width) * size;
  offset =
      (static_cast<uint64_t>(column / width) * high + static_cast<uint64_t>(row)) * static_cast<uint64_t>(width) * size;
  return o;
}

// What the kernel's function gets (asc-devkit, copy_cube_out_fixpipe.h, CopyOutImplCB): in tiles the matrix's rows are
// counted as they are, where `o` has them by sixteens.
void Multiplication::own_out(void* to, const uint8_t* from, const Outgoing& o, uint64_t offset,
                             bool in_sequence) const {
  if (m_.words != nullptr || m_.word != 0) unsupported(api_, "DataCopyOut with quantization");
  const uint64_t size = dtype_size(m_.c.dtype);
  MatmulBlockOut block{};
  block.column_blocks = static_cast<uint16_t>(up(used_n(), 16) / 16);
  block.burst_blocks = static_cast<uint16_t>(used_m() * 16 * 4 / 32);
  block.stride = static_cast<uint32_t>(o.dst_stride / (o.rows ? size : 32));
  if (o.rows) {
    block.columns = static_cast<uint16_t>(used_n());
  } else if (!in_sequence && m_.c.pitch == 0) {
    block.stride = static_cast<uint32_t>(static_cast<uint64_t>(m_.org_m) * 16 * size / 32);
    offset =
        static_cast<uint64_t>(int64_t(m_.column) * cut_.base_n * m_.org_m + int64_t(m_.row) * cut_.base_m * 16) * size;
  }
  block.unit_flag = o.unit_flag != 0;
  block.row = m_.row;
  block.column = m_.column;
  m_.copy_out(static_cast<uint8_t*>(to) + offset, from, m_.result_bytes, block, m_.user_tiling, m_.user_data);
}

void Multiplication::out(void* to, bool in_sequence, bool by_unit_flags) {
  require(m_.ready, "there is no block: Iterate has to come first");
  require(in_sequence || !m_.configuration.partial, "with isPartialOutput enSequentialWrite has to be true");
  if (m_.words != nullptr) bring_words();
  if (!by_unit_flags) hand_over(Pipe::M, Pipe::FIX, flags_.computed);
  uint64_t offset = 0;
  Outgoing o = outgoing(in_sequence, offset);
  o.unit_flag = by_unit_flags ? 3 : 0;
  const uint8_t* from = m_.result + m_.buffer * m_.result_bytes;
  if (m_.atomic != 0) set_atomic(static_cast<AtomicOp>(m_.atomic), m_.c.dtype);
  if (m_.copy_out != nullptr)
    own_out(to, from, o, offset, in_sequence);
  else
    bring_out(static_cast<uint8_t*>(to) + offset, from, o, sum_type(), m_.c.dtype, api_);
  if (m_.atomic != 0) set_atomic(AtomicOp::None, m_.c.dtype);
  set_free(Pipe::FIX, Pipe::M, flags_.results[m_.buffer]);
  m_.ready = false;
}

// Unit flags are those of whole tiles: what goes out has to be all that a product has raised.
bool Multiplication::may_hand_over_tiles() const {
  if (!m_.configuration.unit_flag || m_.configuration.split) return false;
  return cut_.m % 16 == 0 && cut_.n % (multiplies_integers(m_.a.dtype) ? tile_columns(m_.a.dtype) : 16) == 0;
}

void Multiplication::all(void* to) {
  const bool by_unit_flags = may_hand_over_tiles();
  while (next(false, nullptr, by_unit_flags)) out(to, false, by_unit_flags);
}

}  // namespace vnpu
