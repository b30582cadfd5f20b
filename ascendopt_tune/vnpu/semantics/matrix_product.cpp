// The matrix unit: L0C = L0A x L0B. Products are exact, sums are taken in float32 (int32 for integers) in the order of
// k; the order within a step of the device is documented nowhere. What lies behind m, n and k in the last tiles is
// never read, and nobody has written what would come of it.
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "../core/transfers.h"
#include "../core/vector.h"
#include "float16.h"
#include "vnpu/cube.h"

namespace vnpu {
namespace {

constexpr uint32_t kMost = 4095;         // of m, n and k
constexpr uint32_t kTileSums = 256 * 4;  // bytes of a tile of L0C
constexpr uint32_t kSide = kFractalRows;
#ifdef __AVX512F__
constexpr uint32_t kRowsAtOnce = 8;  // as many independent sums as keep the processor's units busy
#else
constexpr uint32_t kRowsAtOnce = 4;  // what its registers hold
#endif

// Products stay exact: one rounding for product and sum, which elsewhere is switched off.
#ifdef __clang__
#define VNPU_FUSED
#define VNPU_FUSED_BODY _Pragma("clang fp contract(fast)")
#else
#define VNPU_FUSED __attribute__((optimize("fp-contract=fast")))
#define VNPU_FUSED_BODY
#endif

// Two elements, the first in the low half.
struct TwoInts {
  uint8_t bits;
};

uint32_t tiles(uint32_t n, uint32_t size) { return (n + size - 1) / size; }

uint32_t in_a_block(DType t) { return t == DType::I4 ? 2 * kBlockBytes : kBlockBytes / dtype_size(t); }

// Sizes of the operands in tiles.
struct Extent {
  uint32_t m1, n1, k1, a_k1, b_k1, c0;  // c0: elements in a row of an input's tile
  bool vector;                          // m is 1: A is k elements in a row, and no tiles
  Extent(const Product& p, DType input)
      : m1(tiles(p.m, kSide)),
        n1(tiles(p.n, kSide)),
        k1(tiles(p.k, in_a_block(input))),
        b_k1(tiles(rows_of_b(p), in_a_block(input))),
        c0(in_a_block(input)),
        vector(p.m == 1 && !p.sparse) {
    a_k1 = p.pairs_of_columns && dtype_size(input) == 4 ? (k1 + 1) / 2 * 2 : k1;
  }
  uint64_t a_row(uint32_t row, uint32_t tile) const {  // bytes to row `row` of column of tiles `tile` of A
    if (vector) return uint64_t(tile) * kBlockBytes;
    return ((row / kSide) * uint64_t(a_k1) + tile) * kFractalBytes + row % kSide * kBlockBytes;
  }
  uint64_t b_column(uint32_t column, uint32_t tile) const {  // bytes to column `column` of row of tiles `tile` of B
    return (tile * uint64_t(n1) + column / kSide) * kFractalBytes + column % kSide * kBlockBytes;
  }
  static uint32_t rows_of_b(const Product& p) { return p.sparse ? p.k / 2 : p.k; }
  uint64_t b_bytes() const { return uint64_t(b_k1) * n1 * kFractalBytes; }
  uint64_t a_bytes() const { return vector ? uint64_t(k1) * kBlockBytes : uint64_t(m1) * a_k1 * kFractalBytes; }
};

template <typename T, typename S>
void unpack(const T* from, S* to, size_t n) {
  if constexpr (std::is_same_v<T, TwoInts>)
    for (size_t i = 0; i < n; i++) to[i] = ((from[i / 2].bits >> (i % 2 * 4) & 15) ^ 8) - 8;
  else if constexpr (std::is_arithmetic_v<T>)
    std::copy(from, from + n, to);
  else
    widen(from, to, n);
}

// The operands, unpacked: rows of A, and of B for every 16 columns k rows of 16.
template <typename T, typename S>
struct Unpacked {
  std::vector<S> a, b;
  Unpacked(const uint8_t* from_a, const uint8_t* from_b, const Product& p, const Extent& e)
      : a(size_t(p.m) * p.k), b(size_t(e.n1) * p.k * kSide) {
    S tile[kSide * kBlockBytes * 2];
    for (uint32_t t = 0; t < e.k1; t++) {
      const uint32_t k0 = t * e.c0, width = std::min(e.c0, p.k - k0);
      for (uint32_t r = 0; r < p.m; r++)
        unpack(reinterpret_cast<const T*>(from_a + e.a_row(r, t)), &a[size_t(r) * p.k + k0], width);
      for (uint32_t n = 0; n < e.n1 && !p.sparse; n++) {
        unpack(reinterpret_cast<const T*>(from_b + e.b_column(n * kSide, t)), tile, size_t(kSide) * e.c0);
        S* to = &b[(size_t(n) * p.k + k0) * kSide];
        for (uint32_t k = 0; k < width; k++)
          for (uint32_t c = 0; c < kSide; c++) to[k * kSide + c] = tile[c * e.c0 + k];
      }
    }
  }
};

// Two places for each four elements along k, of 2 bits each: the first one's among the first three, the second one's
// among the last three (asc-devkit, MmadWithSparse, table 2: where both are one element, it counts for both).
void put_in_place(Unpacked<int8_t, int32_t>& in, const int8_t* b, const uint8_t* places, const Product& p,
                  const Extent& e, const char* api, const void* pc) {
  for (uint32_t n = 0; n < e.n1 * kSide; n++)
    for (uint32_t pair = 0; pair < p.k / 4; pair++) {
      const uint32_t j = pair * 2;  // row of B as it lies there
      const uint64_t lies = e.b_column(n, j / e.c0) + j % e.c0;
      const uint32_t both = places[lies / 4] >> (lies % 4 * 2), first = both & 3, second = (both >> 2 & 3) + 1;
      if (n < p.n && (first == 3 || second == 4))
        throw KernelError(KernelError::kMisuse, std::string(api) + ": a place in four elements is 0, 1 or 2, not 3",
                          api, pc);
      int32_t* to = &in.b[(size_t(n / kSide) * p.k + pair * 4) * kSide + n % kSide];
      to[first % 4 * kSide] += b[lies];
      to[std::min(std::max(first, second), 3u) * kSide] += b[lies + 1];
    }
}

// asc-devkit, HF32: which of the fraction's bits are kept on this architecture is in a picture; taken for 11.
void round_all(std::vector<float>& values, bool ties_to_zero) {
  constexpr uint32_t kDropped = 12, kUnit = 1u << kDropped, kHalfway = kUnit / 2;
  for (float& x : values) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7f800000) == 0x7f800000) continue;  // infinities stay, and what is no number
    const uint32_t rest = bits & (kUnit - 1);
    const bool up = rest > kHalfway || (rest == kHalfway && !ties_to_zero && (bits >> kDropped & 1) != 0);
    bits = bits - rest + (up ? kUnit : 0);
    std::memcpy(&x, &bits, sizeof bits);
  }
}

// `rows` rows of a tile of sums: sums += a x b. Rows are vectors of the compiler, whose own choice is a slow one.
template <uint32_t rows, typename S>
VNPU_FUSED void add_products(S* sums, const S* a, size_t a_stride, const S* b, uint32_t k) {
  VNPU_FUSED_BODY
  typedef S Row __attribute__((vector_size(kSide * sizeof(S))));
  Row held[rows], row;
  std::memcpy(held, sums, sizeof held);
  for (uint32_t i = 0; i < k; i++) {
    std::memcpy(&row, b + i * kSide, sizeof row);
    for (uint32_t r = 0; r < rows; r++) held[r] += a[r * a_stride + i] * row;
  }
  std::memcpy(sums, held, sizeof held);
}
#undef VNPU_FUSED
#undef VNPU_FUSED_BODY

// Integer sums saturate when they are added to what was there; k products alone can't overflow.
void add_start(const int32_t* start, int32_t* sums, size_t n) {
  using Limits = std::numeric_limits<int32_t>;
  for (size_t i = 0; i < n; i++) {
    const int64_t sum = int64_t(start[i]) + sums[i];
    sums[i] = static_cast<int32_t>(std::clamp<int64_t>(sum, Limits::min(), Limits::max()));
  }
}

// One tile of L0C, of `rows` rows and `columns` columns that count.
template <typename S>
void tile_product(S* out, const S* start, const S* a, const S* b, uint32_t k, uint32_t rows, uint32_t columns) {
  S sums[kSide * kSide] = {};
  constexpr bool floats = std::is_same_v<S, float>;
  if (start && floats) std::copy(start, start + kSide * kSide, sums);
  uint32_t r = 0;
  for (; r + kRowsAtOnce <= rows; r += kRowsAtOnce)
    add_products<kRowsAtOnce>(sums + r * kSide, a + size_t(r) * k, k, b, k);
  for (; r < rows; r++) add_products<1>(sums + r * kSide, a + size_t(r) * k, k, b, k);
  if constexpr (!floats)
    if (start) add_start(start, sums, kSide * kSide);
  for (r = 0; r < rows; r++) std::copy(sums + r * kSide, sums + r * kSide + columns, out + r * kSide);
}

template <typename T, typename S>
void product(void* c, const void* a, const void* b, const void* bias, const Product& p, const Extent& e,
             const uint8_t* places, const char* api, const void* pc) {
  Unpacked<T, S> in(static_cast<const uint8_t*>(a), static_cast<const uint8_t*>(b), p, e);
  if constexpr (std::is_same_v<T, int8_t>)
    if (p.sparse) put_in_place(in, static_cast<const int8_t*>(b), places, p, e, api, pc);
  if constexpr (std::is_same_v<T, float>)
    if (const ShortFloats& s = core().short_floats; s.on) {
      round_all(in.a, s.ties_to_zero);
      round_all(in.b, s.ties_to_zero);
    }
  S* out = static_cast<S*>(c);
  for (uint32_t n = 0; n < e.n1; n++) {
    const uint32_t columns = std::min(kSide, p.n - n * kSide);
    S start[kSide * kSide] = {};
    if (p.start == Product::Start::Bias)
      for (uint32_t r = 0; r < kSide; r++)
        std::copy_n(static_cast<const S*>(bias) + n * kSide, columns, start + r * kSide);
    for (uint32_t m = 0; m < e.m1; m++) {
      S* tile = out + (size_t(n) * e.m1 + m) * kSide * kSide;
      const S* from = p.start == Product::Start::Zero ? nullptr : p.start == Product::Start::Old ? tile : start;
      tile_product(tile, from, &in.a[size_t(m) * kSide * p.k], &in.b[size_t(n) * p.k * kSide], p.k,
                   std::min(kSide, p.m - m * kSide), columns);
    }
  }
}

// Who follows what nobody has written: a sum is unwritten when an element of its row of A or its column of B is.
class Follower {
 public:
  Follower(Core& c, const AccessSite& site, const Product& p, const Extent& e) : c_(c), site_(site), p_(p), e_(e) {}

  void follow(void* c, const void* a, const void* b, const void* bias) {
    const bool old = p_.start == Product::Start::Old;
    const bool starts = old ? any_sum(c) : bias && c_.unwritten.any(pieces(bias, p_.n * 4, 1, 0));
    const bool inputs =
        c_.unwritten.any(pieces(a, e_.a_bytes(), 1, 0)) || c_.unwritten.any(pieces(b, e_.b_bytes(), 1, 0));
    const Range results = pieces(c, uint64_t(e_.m1) * e_.n1 * kTileSums, 1, 0);
    const bool tails = p_.m % kSide != 0 || p_.n % kSide != 0;
    if (tails && !old) c_.unwritten.forget(results);
    if (starts || inputs) return by_element(c, a, b, bias);
    if (!tails) return c_.unwritten.write(results);
    for (uint32_t n = 0; n < e_.n1; n++)
      for (uint32_t m = 0; m < e_.m1; m++) c_.unwritten.write(sums(c, m, n));
  }

 private:
  // Those that count of a tile of the result.
  Range sums(void* c, uint32_t m, uint32_t n) const {
    return pieces(static_cast<uint8_t*>(c) + (uint64_t(n) * e_.m1 + m) * kTileSums,
                  std::min(kSide, p_.n - n * kSide) * 4, std::min(kSide, p_.m - m * kSide), kSide * 4);
  }
  bool any_sum(void* c) const {
    for (uint32_t n = 0; n < e_.n1; n++)
      for (uint32_t m = 0; m < e_.m1; m++)
        if (c_.unwritten.any(sums(c, m, n))) return true;
    return false;
  }
  void by_element(void* c, const void* a, const void* b, const void* bias) {
    std::vector<uint32_t> rows(p_.m), columns(p_.n);
    for (uint32_t r = 0; r < p_.m; r++) rows[r] = origin(a, p_.k, [&](uint32_t t) { return e_.a_row(r, t); });
    for (uint32_t n = 0; n < p_.n; n++) {
      columns[n] = origin(b, Extent::rows_of_b(p_), [&](uint32_t t) { return e_.b_column(n, t); });
      if (bias && columns[n] == 0)
        columns[n] = c_.unwritten.origin_of(site_, pieces(static_cast<const uint8_t*>(bias) + n * 4, 4, 1, 0));
    }
    for (uint32_t n = 0; n < p_.n; n++)
      for (uint32_t r = 0; r < p_.m; r++) mark(c, r, n, rows[r] ? rows[r] : columns[n]);
  }
  template <typename F>
  uint32_t origin(const void* operand, uint32_t k, F offset) {
    for (uint32_t t = 0; t * e_.c0 < k; t++) {
      const uint32_t bytes = tiles(std::min(e_.c0, k - t * e_.c0) * kBlockBytes, e_.c0);
      const Range r = pieces(static_cast<const uint8_t*>(operand) + offset(t), bytes, 1, 0);
      if (c_.unwritten.any(r)) return c_.unwritten.origin_of(site_, r);
    }
    return 0;
  }
  void mark(void* c, uint32_t r, uint32_t n, uint32_t origin) {
    const uint64_t tile = uint64_t(n / kSide) * e_.m1 + r / kSide;
    const Range sum =
        pieces(static_cast<uint8_t*>(c) + tile * kTileSums + (r % kSide * kSide + n % kSide) * 4, 4, 1, 0);
    if (origin == 0 && p_.start == Product::Start::Old && c_.unwritten.any(sum)) return;  // stays what it was
    c_.unwritten.write(sum, origin);
  }

  Core& c_;
  const AccessSite site_;
  const Product& p_;
  const Extent& e_;
};

// The pipe that brings results out has to have taken what lies here.
void await_unit_flags(Core& c, uint64_t begin, uint64_t end, const char* api, const void* pc) {
  if (!c.unit_flags.all(begin, end, false))
    throw KernelError(KernelError::kDeadlock,
                      std::string(api) + ": unit flags of L0C bytes [" + std::to_string(begin) + ", " +
                          std::to_string(end) + ") are set: the core would wait for ever for a copy that takes them",
                      api, pc);
  c.hold_back(Pipe::M, Pipe::FIX, c.unit_flags.changed_by(begin, end, false), api, pc);
  c.hold_back(Pipe::M, Pipe::M, c.unit_flags.changed_by(begin, end, true));  // what was taken is complete
}

void compute_product(void* c, const void* a, const void* b, const void* bias, const Product& p, const Extent& e,
                     DType input, const uint8_t* places, const char* api, const void* pc) {
  switch (input) {
    case DType::F16:
      return product<f16, float>(c, a, b, bias, p, e, places, api, pc);
    case DType::BF16:
      return product<bf16, float>(c, a, b, bias, p, e, places, api, pc);
    case DType::F32:
      return product<float, float>(c, a, b, bias, p, e, places, api, pc);
    case DType::I8:
      return product<int8_t, int32_t>(c, a, b, bias, p, e, places, api, pc);
    case DType::I4:
      return product<TwoInts, int32_t>(c, a, b, bias, p, e, places, api, pc);
    default:
      unsupported_dtype(api, input, pc);
  }
}

// Where the elements of B were, of a sparse one.
const uint8_t* places_of(Core& c, const void* b, uint32_t k, const char* api, const void* pc) {
  if (k % 4 != 0) misused(api, "k counts the left matrix' columns, four for each two of the other's rows", pc);
  c.places.resize(c.chip.l0b_bytes / 4);
  return &c.places[(c.local_offset(b) - c.map[Memory::L0B].offset) / 4];
}

void check_product(const Product& p, DType input, DType result, const char* api, const void* pc) {
  if (std::max({p.m, p.n, p.k}) > kMost) misused(api, "m, n and k are at most " + std::to_string(kMost), pc);
  const bool integers = input == DType::I8 || input == DType::I4;
  if (result != (integers ? DType::I32 : DType::F32)) unsupported_dtype(api, result, pc);
  if (input == DType::I4 && p.k % 2 != 0) misused(api, "k has to be even with int4b_t", pc);
}

// What a product touches, checked.
struct Touched {
  Access accesses[5];
  size_t n = 3;
  Touched(Core& core, void* c, const void* a, const void* b, const void* bias, const Product& p, const Extent& e,
          const char* api, const void* pc)
      : accesses{{pieces(c, uint64_t(e.m1) * e.n1 * kTileSums, 1, 0), true},
                 {pieces(a, e.a_bytes(), 1, 0), false},
                 {pieces(b, e.b_bytes(), 1, 0), false}} {
    core.check_local(accesses[0].range, kTileSums, api, pc, "destination", Memory::L0C);
    core.check_local(accesses[1].range, kFractalBytes, api, pc, "left matrix", Memory::L0A);
    core.check_local(accesses[2].range, kFractalBytes, api, pc, "right matrix", Memory::L0B);
    if (bias != nullptr) {
      accesses[n] = {pieces(bias, p.n * 4, 1, 0), false};
      core.check_local(accesses[n++].range, 64, api, pc, "bias", Memory::BT);
    }
    if (p.start == Product::Start::Old) accesses[n++] = {accesses[0].range, false};
  }
};

}  // namespace

void multiply(void* c, const void* a, const void* b, const void* bias, const Product& p, DType input, DType result,
              const char* api) {
  const void* pc = VNPU_PC;
  if (p.m == 0 || p.n == 0 || p.k == 0) return;
  Core& on = core();
  on.needs(CoreKind::Cube, api, pc);
  check_product(p, input, result, api, pc);
  const Extent e(p, input);
  const void* const start = p.start != Product::Start::Bias ? nullptr : bias ? bias : on.local(Memory::BT);
  const Touched touched(on, c, a, b, start, p, e, api, pc);
  const uint64_t begin = on.local_offset(c) - on.map[Memory::L0C].offset;
  const uint64_t end = begin + touched.accesses[0].range.bytes;
  const uint8_t* const places = p.sparse ? places_of(on, b, p.k, api, pc) : nullptr;
  if (p.unit_flag != 0) await_unit_flags(on, begin, end, api, pc);
  Follower(on, {Pipe::M, api, pc, false}, p, e).follow(c, a, b, start);
  compute_product(c, a, b, start, p, e, input, places, api, pc);
  const float units = static_cast<float>(e.m1) * static_cast<float>(e.n1) * static_cast<float>(e.k1);
  const bool rounds = input == DType::F32 && on.short_floats.on;
  const Work work{on.chip.instruction(rounds ? "MmadHF32" : "Mmad", input), 1, units, 0};
  on.issue(Pipe::M, api, pc, work, touched.accesses, touched.n);
  const bool rows_first = p.rows_first || on.rows_first;
  if (p.unit_flag == 3)
    on.unit_flags.change(begin, end, true, {on.hazards.epoch(), on.hazards.knew()},
                         {rows_first, rows_first ? e.m1 : e.n1});
  // The device orders products itself when the next one can't get to a tile before the last one has left it.
  if (e.m1 * e.n1 >= kHeldByItself) on.hold_in_order(Pipe::M);
}

namespace {

// asc-devkit's numbers. Infinities and NaN stay what they are, always.
constexpr uint64_t kShortFloats = 1ull << 46, kTiesToZero = 1ull << 47, kInfinities = 1ull << 48,
                   kRowsFirst = 1ull << 51;

}  // namespace

uint64_t control_register() {
  const Core& c = core();
  return kInfinities | (c.short_floats.on ? kShortFloats : 0) | (c.short_floats.ties_to_zero ? kTiesToZero : 0) |
         (c.rows_first ? kRowsFirst : 0);
}
void set_control_register(uint64_t value, const char* api) {
  Core& c = core();
  if ((value & ~(kShortFloats | kTiesToZero | kRowsFirst)) != kInfinities)
    unsupported(api, "CTRL with other bits than 46, 47 (HF32) and 51 (the order of a product's tiles) changed");
  c.short_floats = {(value & kShortFloats) != 0, (value & kTiesToZero) != 0};
  c.rows_first = (value & kRowsFirst) != 0;
  c.scalar(ScalarKind::Cycle);
}
void set_rows_first(bool on) {
  core().rows_first = on;
  core().scalar(ScalarKind::Cycle);
}
void set_short_floats(bool on) {
  core().short_floats.on = on;
  core().scalar(ScalarKind::Cycle);
}
void set_short_ties_to_zero(bool on) {
  core().short_floats.ties_to_zero = on;
  core().scalar(ScalarKind::Cycle);
}

}  // namespace vnpu
