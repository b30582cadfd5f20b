// Which tiling a matrix multiplication gets. Every cut that fits the memories is weighed with a few rates of
// architecture 2201 and the cheapest is taken; docs/cube.md tells the rules, tests hold the limits.
#include "host.h"
#include "tiling/cube_tiling.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace matmul_tiling {

using AscendC::tiling::TCubeTiling;

namespace {

int64_t up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
int64_t pieces(int64_t n, int64_t size) { return (n + size - 1) / size; }

int64_t bytes_of(DataType t) {
  switch (t) {
    case DataType::DT_FLOAT:
    case DataType::DT_INT32:
    case DataType::DT_UINT32:
      return 4;
    case DataType::DT_INT8:
    case DataType::DT_UINT8:
      return 1;
    case DataType::DT_INT64:
    case DataType::DT_UINT64:
      return 8;
    default:
      return 2;
  }
}

int64_t bits_of(DataType t) { return t == DataType::DT_INT4 ? 4 : 8 * bytes_of(t); }

// Cycles of one core: bytes a cycle from global memory to L1 and back, and to L0A and L0B; what a window of 512 bytes,
// a product and a copy cost. Rounded from vnpu/chips/architecture/2201.toml and docs/cube.md; they only rank tilings.
constexpr double kIn = 64, kOut = 64, kLeft = 256, kRight = 128, kRequest = 5, kProduct = 8, kStart = 500;
constexpr int64_t kWindow = 512;
constexpr double kCrossing = 11;  // cycles more for a row that begins within a window and ends in the next
constexpr double kUnevenBlocks = 1.02;
constexpr double kUneven = 1.25;  // what a kernel may lose before cores get different shares

// Windows that `rows` rows touch which begin anywhere, or, if they fill windows, where windows do.
double windows(int64_t rows, int64_t bytes) {
  return static_cast<double>(rows * (bytes / kWindow + (bytes % kWindow != 0)));
}

// Rows of a core's part that are copied to L1 beside those of other cores' parts: shares that don't fill windows cross
// them.
double copied(int64_t rows, int64_t bytes) {
  const double crossing = bytes % kWindow != 0 && kWindow % bytes != 0 ? kCrossing : 0;
  return static_cast<double>(rows) * std::max(static_cast<double>(bytes) / kIn, crossing + kRequest);
}

}  // namespace

// Chooses for one object. No part of what host programs see.
class __attribute__((visibility("hidden"))) Chooser {
 public:
  explicit Chooser(const MatmulApiTilingBase& t)
      : t_(t),
        turned_b_(t.b_.turned || t.sparse_),  // a sparse B has one direction, whatever SetBType says
        bits_(bits_of(t.a_.type)),
        c0_(256 / bits_),
        m_(t.shape_.m > 0 ? t.shape_.m : t.org_.m),
        n_(t.shape_.n > 0 ? t.shape_.n : t.org_.n),
        k_(t.shape_.k > 0 ? t.shape_.k : t.org_.k),
        // Tiles that have to be turned have 16, 32 or 64 rows of k.
        // Of a sparse B half of the elements along k are there.
        k_unit_((t.a_.turned || !turned_b_ ? std::max<int64_t>(c0_, 16) : c0_) * (t.sparse_ ? 2 : 1)),
        n_unit_(bits_ <= 8 && !turned_b_ ? c0_ : 16),
        m_unit_(bits_ <= 8 && t.a_.turned ? c0_ : 16),
        // A batch's matrices lie in L1 whole, and are turned by squares.
        base_unit_(t.axes_a_.b > 0 ? m_unit_ : 16) {}

  bool run(int32_t cores, TCubeTiling& out);

 private:
  struct Cut {
    int64_t m, n, k, cores;
    double cycles;
  };
  struct Base {
    int64_t m = 0, n = 0, k = 0;
    double cycles = std::numeric_limits<double>::infinity();
  };
  bool valid() const;
  bool covers_types() const;
  bool small(int32_t cores) const;
  Cut split(int32_t cores) const;
  int64_t bytes(int64_t elements) const { return (elements * bits_ + 7) / 8; }
  double weigh(int64_t m, int64_t n, int64_t k) const;
  Base choose_base(int64_t m, int64_t n, int64_t k) const;
  int64_t deepest(int64_t base_m, int64_t base_n, int64_t k) const;
  int64_t step(const Base& base, int64_t k) const;
  double requests(const Base& base, int64_t m, int64_t n, int64_t k) const;
  bool fits(int64_t base_m, int64_t base_n) const;
  void choose_steps(const Cut& cut, const Base& base, TCubeTiling& out) const;
  void fill_batches(TCubeTiling& out) const;
  static int64_t limited(int64_t value, int32_t least, int32_t most) {
    if (most > 0) value = std::min<int64_t>(value, most);
    return least > 0 ? std::max<int64_t>(value, least) : value;
  }

  const MatmulApiTilingBase& t_;
  const bool turned_b_;
  const int64_t bits_, c0_, m_, n_, k_, k_unit_, n_unit_, m_unit_, base_unit_;
};

bool Chooser::valid() const { return t_.a_.type == t_.b_.type && m_ > 0 && n_ > 0 && k_ > 0 && covers_types(); }

bool Chooser::covers_types() const {
  const DataType type = t_.a_.type;
  // A sparse B is int8 and lies as [n, k / 2].
  if (t_.sparse_) return type == DataType::DT_INT8 && k_ % 4 == 0;
  // Of int4 two elements share a byte: rows have even numbers of them, and A can't be turned.
  if (type == DataType::DT_INT4) return !t_.a_.turned && k_ % 2 == 0 && (turned_b_ || n_ % 2 == 0);
  return type == DataType::DT_FLOAT || type == DataType::DT_FLOAT16 || type == DataType::DT_BF16 ||
         type == DataType::DT_INT8;
}

// What stays with one core on the device, whatever SetDim says (asc-devkit, PreProcessMiniShape): as many tiles of C as
// cores at most, and A, B and C fit in L0 whole. Kernels take it for granted.
bool Chooser::small(int32_t cores) const {
  const bool free = t_.single_.m <= 0 && t_.single_.n <= 0 && t_.single_.k <= 0 && !t_.split_k_;
  const int64_t down = pieces(m_, 16), across = pieces(n_, 16), deep = bytes(16 * up(k_, c0_));
  return free && down * across <= cores && down * deep <= t_.limits_.l0a && across * deep <= t_.limits_.l0b &&
         down * across * 1024 <= t_.limits_.l0c;
}

// What a product of one core's part costs in all, at the pace of its slowest pipe.
double Chooser::weigh(int64_t m, int64_t n, int64_t k) const {
  const double tiles = static_cast<double>(pieces(m, 16) * pieces(n, 16) * pieces(k, c0_)) * (bits_ == 32 ? 2 : 1);
  const double left = t_.a_.turned && m < m_ ? copied(k, bytes(m)) : static_cast<double>(bytes(m * k)) / kIn;
  const double right = !turned_b_ && n < n_ ? copied(k, bytes(n)) : static_cast<double>(bytes(n * k)) / kIn;
  const double in = left + right;
  const double out = static_cast<double>(m * n * bytes_of(t_.c_.type)) / kOut;
  return std::max({tiles, in, out}) + kStart;
}

// Shares for cores: along m and n, and along k where that was allowed. Of equal ones, that with the fewest cores, then
// that with the most along m.
Chooser::Cut Chooser::split(int32_t cores) const {
  const int64_t unit_m = t_.base_.m > 0 ? t_.base_.m : std::max<int64_t>(16, t_.align_.m);
  const int64_t unit_n = t_.base_.n > 0 ? t_.base_.n : std::max<int64_t>(n_unit_, t_.align_.n);
  const int64_t unit_k = std::max<int64_t>(std::max<int64_t>(k_unit_, 16), t_.align_.k);
  Cut best{m_, n_, k_, 1, std::numeric_limits<double>::infinity()};
  if (small(cores)) return best;
  for (int64_t mi = 1; mi <= cores; mi++)
    for (int64_t ni = 1; mi * ni <= cores; ni++)
      for (int64_t ki = 1; mi * ni * ki <= cores && (ki == 1 || t_.split_k_); ki++) {
        const auto share = [](int64_t all, int64_t among, int64_t unit, int32_t given) {
          return given > 0 ? std::min<int64_t>(given, all) : std::min(all, up(pieces(all, among), unit));
        };
        Cut c{share(m_, mi, unit_m, t_.single_.m), share(n_, ni, unit_n, t_.single_.n),
              share(k_, ki, unit_k, t_.single_.k), 0, 0};
        c.m = limited(c.m, t_.least_single_.m, t_.most_single_.m);
        c.n = limited(c.n, t_.least_single_.n, t_.most_single_.n);
        c.cores = pieces(m_, c.m) * pieces(n_, c.n) * pieces(k_, c.k);
        if (c.cores > cores) continue;
        const bool even = m_ % c.m == 0 && n_ % c.n == 0 && k_ % c.k == 0;
        c.cycles = weigh(c.m, c.n, c.k) * (even ? 1 : kUneven);
        const auto rank = [](const Cut& x) { return std::make_tuple(x.cycles, x.cores, x.m); };
        if (rank(c) < rank(best)) best = c;
      }
  return best;
}

bool Chooser::fits(int64_t base_m, int64_t base_n) const {
  const bool l0c = base_m * up(base_n, n_unit_) * 4 <= t_.limits_.l0c;
  const bool bias = !t_.with_bias_ || base_n * 4 <= t_.limits_.bias;
  const bool words = bytes_of(t_.c_.type) > 1 || base_n <= 256;
  const bool ub = t_.c_.position != TPosition::VECIN || base_m * base_n * bytes_of(t_.c_.type) <= t_.limits_.ub;
  return l0c && bias && words && ub;
}

// The most k that half of L0A and half of L0B hold, and half of L1 four times; 0: none.
int64_t Chooser::deepest(int64_t base_m, int64_t base_n, int64_t k) const {
  const int64_t row = std::max(up(base_m, m_unit_) * t_.limits_.l0b, up(base_n, n_unit_) * t_.limits_.l0a);
  const int64_t l0 = 8 * t_.limits_.l0a * t_.limits_.l0b / (2 * bits_ * row) / k_unit_ * k_unit_;
  const int64_t l1 = 8 * (t_.limits_.l1 - base_n * 4) / (2 * bits_ * (base_m + base_n)) / k_unit_ * k_unit_;
  const int64_t fit = std::min({l0, l1, up(k, k_unit_)});
  if (fit <= 0) return 0;
  return up(pieces(k, pieces(k, fit)), k_unit_);  // as even as can be
}

// Whole tiles that no share wastes, as few bytes into L1 and L0 as possible.
Chooser::Base Chooser::choose_base(int64_t m, int64_t n, int64_t k) const {
  Base best;
  const int64_t most_m = up(m, base_unit_), most_n = up(n, n_unit_);
  const int64_t from_m = t_.base_.m > 0 ? t_.base_.m : base_unit_, to_m = t_.base_.m > 0 ? t_.base_.m : most_m;
  const int64_t from_n = t_.base_.n > 0 ? t_.base_.n : n_unit_, to_n = t_.base_.n > 0 ? t_.base_.n : most_n;
  for (int64_t bm = from_m; bm <= to_m && fits(bm, from_n); bm += base_unit_)
    for (int64_t bn = from_n; bn <= to_n && fits(bm, bn); bn += n_unit_) {
      const int64_t bk = t_.base_.k > 0 ? t_.base_.k : deepest(bm, bn, k);
      if (bk <= 0) continue;
      const int64_t rows = pieces(m, bm), columns = pieces(n, bn), steps = pieces(k, bk);
      const auto products = static_cast<double>(rows * columns * steps);
      const double in = requests({bm, bn, bk, 0}, m, n, k) * kRequest;
      const double tiles = static_cast<double>(rows * up(bm, 16) / 16 * columns * bn / 16 * pieces(k, c0_));
      const double mac = tiles * (bits_ == 32 ? 2 : 1) + products * kProduct;
      const double load = products * static_cast<double>(bytes(bk)) *
                          (static_cast<double>(bm) / kLeft + static_cast<double>(bn) / kRight);
      const double even = m % bm == 0 && n % bn == 0 ? 1 : kUnevenBlocks;
      const double cycles = (std::max({mac, in, load}) + 0.01 * (mac + in + load)) * even;
      if (cycles < best.cycles) best = {bm, bn, bk, cycles};
    }
  return best;
}

// Blocks along k that are copied at once: as many as fill windows, or as fit in L1 twice; all pieces about as long.
int64_t Chooser::step(const Base& base, int64_t k) const {
  const int64_t blocks = pieces(k, base.k), room = t_.limits_.l1 - (t_.with_bias_ ? up(base.n * 4, 64) : 0) - 2048;
  const int64_t both = bytes((up(base.m, m_unit_) + up(base.n, n_unit_)) * base.k);
  const int64_t wanted = std::min(blocks, pieces(kWindow, bytes(base.k)));
  return pieces(blocks, pieces(blocks, std::clamp<int64_t>(room / (2 * both), 1, wanted)));
}

// Windows of global memory that are copied to L1: A again for every column of blocks, B for every row.
double Chooser::requests(const Base& base, int64_t m, int64_t n, int64_t k) const {
  const int64_t deep = std::min(step(base, k) * base.k, k), rows = pieces(m, base.m), columns = pieces(n, base.n);
  const auto matrix = [&](int64_t outer, int64_t block, bool along_k) {
    return along_k ? windows(k * pieces(outer, block), bytes(std::min(block, outer)))
                   : windows(outer * pieces(k, deep), bytes(deep));
  };
  return static_cast<double>(columns) * matrix(m, base.m, t_.a_.turned) +
         static_cast<double>(rows) * matrix(n, base.n, !turned_b_);
}

void Chooser::choose_steps(const Cut& cut, const Base& base, TCubeTiling& out) const {
  const int64_t left = bytes(up(base.m, m_unit_) * base.k), right = bytes(up(base.n, n_unit_) * base.k);
  const int64_t room = t_.limits_.l1 - (t_.with_bias_ ? up(base.n * 4, 64) : 0) - 2048;
  const int64_t steps = step(base, cut.k);
  const bool twice = 2 * steps * (left + right) <= room, all = steps == pieces(cut.k, base.k);
  const auto depth = [&](int64_t single, int64_t one) {
    return static_cast<int32_t>(steps * (!twice || (all && single <= one) ? 1 : 2));
  };
  out.stepM = out.stepN = 1;
  out.stepKa = out.stepKb = static_cast<int32_t>(steps);
  out.depthA1 = depth(cut.m, base.m);
  out.depthB1 = depth(cut.n, base.n);
  out.shareL1Size = static_cast<int32_t>(out.depthA1 * left + out.depthB1 * right + (t_.with_bias_ ? base.n * 4 : 0));
  out.transLength = static_cast<int32_t>(std::max({left, right, base.m * base.n * bytes_of(t_.c_.type)}));
}

// Axes as they were set; without SetBatchNum a call makes as many matrices as SetBatchInfoForNormal has named.
void Chooser::fill_batches(TCubeTiling& out) const {
  const BatchAxes &a = t_.axes_a_, &b = t_.axes_b_, &c = t_.axes_c_;
  std::tie(out.ALayoutInfoB, out.ALayoutInfoS, out.ALayoutInfoN, out.ALayoutInfoG, out.ALayoutInfoD) =
      std::tie(a.b, a.s, a.n, a.g, a.d);
  std::tie(out.BLayoutInfoB, out.BLayoutInfoS, out.BLayoutInfoN, out.BLayoutInfoG, out.BLayoutInfoD) =
      std::tie(b.b, b.s, b.n, b.g, b.d);
  std::tie(out.CLayoutInfoB, out.CLayoutInfoS1, out.CLayoutInfoN, out.CLayoutInfoG, out.CLayoutInfoS2) =
      std::tie(c.b, c.s, c.n, c.g, c.d);
  out.BatchNum = t_.batches_;
}

bool Chooser::run(int32_t cores, TCubeTiling& out) {
  if (!valid()) return false;
  const Cut cut = split(cores);
  if (cut.cores < 1) return false;
  const Base base = choose_base(cut.m, cut.n, cut.k);
  if (base.m == 0) return false;
  out = TCubeTiling{};
  out.usedCoreNum = static_cast<int32_t>(cut.cores);
  out.M = t_.org_.m > 0 ? t_.org_.m : t_.shape_.m;
  out.N = t_.org_.n > 0 ? t_.org_.n : t_.shape_.n;
  out.Ka = t_.org_.k > 0 ? t_.org_.k : t_.shape_.k;
  out.Kb = t_.org_kb_ > 0 ? t_.org_kb_ : out.Ka;
  out.singleCoreM = static_cast<int32_t>(cut.m);
  out.singleCoreN = static_cast<int32_t>(cut.n);
  out.singleCoreK = static_cast<int32_t>(cut.k);
  out.baseM = static_cast<int32_t>(base.m);
  out.baseN = static_cast<int32_t>(base.n);
  out.baseK = static_cast<int32_t>(base.k);
  out.isBias = t_.with_bias_ ? 1 : 0;
  out.dbL0A = out.dbL0B = 2;
  const bool several = pieces(cut.m, base.m) * pieces(cut.n, base.n) > 1;
  const int64_t result = base.m * up(base.n, n_unit_) * 4;
  out.dbL0C = several && 2 * result <= t_.limits_.l0c ? 2 : 1;
  out.shareL0CSize = static_cast<int32_t>(result * out.dbL0C);
  out.batchM = out.batchN = out.singleBatchM = out.singleBatchN = 1;
  choose_steps(cut, base, out);
  fill_batches(out);
  out.iterateOrder = t_.traverse_ == MatrixTraverse::FIRSTN ? 1 : 0;  // kernels count on m first
  return true;
}

MatmulApiTilingBase::MatmulApiTilingBase() : most_(limits_) {}

MatmulApiTilingBase::MatmulApiTilingBase(const platform_ascendc::PlatformAscendC& platform) {
  using platform_ascendc::CoreMemType;
  const auto size = [&platform](CoreMemType type, int64_t otherwise) {
    uint64_t bytes = 0;
    platform.GetCoreMemSize(type, bytes);
    return bytes > 0 ? static_cast<int64_t>(bytes) : otherwise;
  };
  limits_.l1 = size(CoreMemType::L1, limits_.l1);
  limits_.l0a = size(CoreMemType::L0_A, limits_.l0a);
  limits_.l0b = size(CoreMemType::L0_B, limits_.l0b);
  limits_.l0c = size(CoreMemType::L0_C, limits_.l0c);
  limits_.ub = size(CoreMemType::UB, limits_.ub);
  most_ = limits_;
}

MatmulApiTilingBase::MatmulApiTilingBase(const PlatformInfo& platform) {
  const auto take = [](uint64_t bytes, int64_t& limit) {
    if (bytes > 0) limit = static_cast<int64_t>(bytes);
  };
  take(platform.l1Size, limits_.l1);
  take(platform.l0ASize, limits_.l0a);
  take(platform.l0BSize, limits_.l0b);
  take(platform.l0CSize, limits_.l0c);
  take(platform.ubSize, limits_.ub);
  most_ = limits_;
}

int32_t MatmulApiTilingBase::SetAType(TPosition pos, CubeFormat type, DataType dataType, bool isTrans) {
  a_ = {pos, type, dataType, isTrans};
  return 0;
}
int32_t MatmulApiTilingBase::SetBType(TPosition pos, CubeFormat type, DataType dataType, bool isTrans) {
  b_ = {pos, type, dataType, isTrans};
  return 0;
}
int32_t MatmulApiTilingBase::SetCType(TPosition pos, CubeFormat type, DataType dataType) {
  c_ = {pos, type, dataType, false};
  return 0;
}
int32_t MatmulApiTilingBase::SetBiasType(TPosition pos, CubeFormat type, DataType dataType) {
  bias_ = {pos, type, dataType, false};
  return 0;
}
int32_t MatmulApiTilingBase::SetDequantType(DequantType) { return 0; }  // a word or a table: no part of a tiling
int32_t MatmulApiTilingBase::SetShape(int32_t m, int32_t n, int32_t k) {
  shape_ = {m, n, k};
  return 0;
}
int32_t MatmulApiTilingBase::SetOrgShape(int32_t m, int32_t n, int32_t k) { return SetOrgShape(m, n, k, k); }
int32_t MatmulApiTilingBase::SetOrgShape(int32_t m, int32_t n, int32_t ka, int32_t kb) {
  org_ = {m, n, ka};
  org_kb_ = kb;
  return 0;
}
int32_t MatmulApiTilingBase::EnableBias(bool isBiasIn) {
  with_bias_ = isBiasIn;
  return 0;
}
int32_t MatmulApiTilingBase::SetFixSplit(int32_t m, int32_t n, int32_t k) {
  const auto bad = [](int32_t value) { return value == 0 || value < -1 || (value > 0 && value % 16 != 0); };
  if (bad(m) || bad(n) || bad(k)) return -1;
  base_ = {m, n, k};
  return 0;
}
int32_t MatmulApiTilingBase::SetBufferSpace(int32_t l1, int32_t l0c, int32_t ub, int32_t bias) {
  const auto take = [](int32_t bytes, int64_t most, int64_t& limit) {
    limit = bytes < 0 ? most : std::min<int64_t>(bytes, most);
  };
  take(l1, most_.l1, limits_.l1);
  take(l0c, most_.l0c, limits_.l0c);
  take(ub, most_.ub, limits_.ub);
  take(bias, most_.bias, limits_.bias);
  return 0;
}
namespace {

int32_t set_axes(BatchAxes& axes, const BatchAxes& to) {
  if (std::min({to.b, to.s, to.n, to.g, to.d}) < 1) return -1;
  axes = to;
  return 0;
}

}  // namespace

int32_t MatmulApiTilingBase::SetALayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d) {
  return set_axes(axes_a_, {b, s, n, g, d});
}
int32_t MatmulApiTilingBase::SetBLayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d) {
  return set_axes(axes_b_, {b, s, n, g, d});
}
int32_t MatmulApiTilingBase::SetCLayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d) {
  return set_axes(axes_c_, {b, s, n, g, d});
}
int32_t MatmulApiTilingBase::SetBatchInfoForNormal(int32_t batchA, int32_t batchB, int32_t m, int32_t n, int32_t k) {
  if (std::min({batchA, batchB, m, n, k}) < 1) return -1;
  axes_a_ = {batchA, m, 1, 1, k};
  axes_b_ = {batchB, n, 1, 1, k};
  axes_c_ = {std::max(batchA, batchB), m, 1, 1, n};
  return 0;
}
int32_t MatmulApiTilingBase::SetBatchNum(int32_t batch) {
  if (batch < 1) return -1;
  batches_ = batch;
  return 0;
}
int32_t MatmulApiTilingBase::SetTraverse(MatrixTraverse traverse) {
  traverse_ = traverse;
  return 0;
}
// Floats that are rounded first take as much room.
int32_t MatmulApiTilingBase::SetMadType(MatrixMadType) { return 0; }
int32_t MatmulApiTilingBase::SetSparse(bool isSparseIn) {
  sparse_ = isSparseIn;
  return 0;
}
// Neither has an effect (AscendC reference).
int32_t MatmulApiTilingBase::SetSplitRange(int32_t, int32_t, int32_t, int32_t, int32_t, int32_t) { return 0; }
int32_t MatmulApiTilingBase::SetDoubleBuffer(bool, bool, bool, bool, bool, bool) { return 0; }
void MatmulApiTilingBase::SetMatmulConfigParams(int32_t, bool, ScheduleType, MatrixTraverse traverse, bool) {
  if (traverse != MatrixTraverse::NOSET) traverse_ = traverse;
}
void MatmulApiTilingBase::SetMatmulConfigParams(const MatmulConfigParams& p) {
  SetMatmulConfigParams(p.mmConfigType, p.enableL1CacheUB, p.scheduleType, p.traverse, p.enVecND2NZ);
}

int64_t MatmulApiTilingBase::GetTiling(TCubeTiling& tiling) {
  TCubeTiling chosen;
  if (!Chooser(*this).run(Cores(), chosen)) return -1;
  chosen_ = tiling = chosen;
  return 0;
}
int64_t MatmulApiTilingBase::GetTiling(api_tilings::TCubeTiling& tiling) {
  TCubeTiling plain;
  if (GetTiling(plain) == -1) return -1;
#define VNPU_FIELD(name) tiling.set_##name(plain.name);
  VNPU_CUBE_TILING_FIELDS(VNPU_FIELD)
#undef VNPU_FIELD
  return 0;
}

int32_t MultiCoreMatmulTiling::SetDim(int32_t dim) {
  if (dim < 1) return -1;
  dim_ = dim;
  return 0;
}
int32_t MultiCoreMatmulTiling::SetSingleShape(int32_t m, int32_t n, int32_t k) {
  single_ = {m, n, k};
  return 0;
}
int32_t MultiCoreMatmulTiling::SetSingleRange(int32_t max_m, int32_t max_n, int32_t max_k, int32_t min_m, int32_t min_n,
                                              int32_t min_k) {
  most_single_ = {max_m, max_n, max_k};
  least_single_ = {min_m, min_n, min_k};
  return 0;
}
int32_t MultiCoreMatmulTiling::SetAlignSplit(int32_t m, int32_t n, int32_t k) {
  align_ = {m, n, k};
  return 0;
}
int32_t MultiCoreMatmulTiling::GetSingleShape(int32_t& m, int32_t& n, int32_t& k) const {
  if (chosen_.baseM == 0) return -1;
  m = chosen_.singleCoreM;
  n = chosen_.singleCoreN;
  k = chosen_.singleCoreK;
  return 0;
}
int32_t MultiCoreMatmulTiling::GetCoreNum(int32_t& dim, int32_t& m_dim, int32_t& n_dim) const {
  if (chosen_.baseM == 0) return -1;
  dim = chosen_.usedCoreNum;
  m_dim = static_cast<int32_t>(pieces(chosen_.M, chosen_.singleCoreM));
  n_dim = static_cast<int32_t>(pieces(chosen_.N, chosen_.singleCoreN));
  return 0;
}

int32_t BatchMatmulTiling::GetCoreNum(int32_t& dim, int32_t& m_dim, int32_t& n_dim, int32_t& batch_m,
                                      int32_t& batch_n) const {
  if (chosen_.baseM == 0) return -1;
  dim = chosen_.usedCoreNum;
  m_dim = static_cast<int32_t>(pieces(chosen_.M, chosen_.singleCoreM));
  n_dim = static_cast<int32_t>(pieces(chosen_.N, chosen_.singleCoreN));
  batch_m = batch_n = 1;
  return 0;
}

}  // namespace matmul_tiling

// Twice a block's bytes are what other architectures need of the Unified Buffer; asked for all the same.
int32_t MatmulGetTmpBufSizeV2(AscendC::tiling::TCubeTiling& t, matmul_tiling::SysTilingTempBufSize& size) {
  size.l1Size = std::max(size.l1Size, t.shareL1Size);
  size.l0cSize = std::max(size.l0cSize, t.shareL0CSize);
  size.ubSize = std::max({size.ubSize, t.shareUbSize, 2 * t.transLength});
  return 0;
}
int32_t MultiCoreMatmulGetTmpBufSizeV2(AscendC::tiling::TCubeTiling& t, matmul_tiling::SysTilingTempBufSize& size) {
  return MatmulGetTmpBufSizeV2(t, size);
}
int32_t BatchMatmulGetTmpBufSizeV2(AscendC::tiling::TCubeTiling& t, matmul_tiling::SysTilingTempBufSize& size) {
  return MatmulGetTmpBufSizeV2(t, size);
}
int32_t MatmulGetTmpBufSize(api_tilings::TCubeTiling& tiling, matmul_tiling::SysTilingTempBufSize& size) {
  AscendC::tiling::TCubeTiling plain;
  tiling.SaveToBuffer(&plain, sizeof plain);
  return MatmulGetTmpBufSizeV2(plain, size);
}
int32_t MultiCoreMatmulGetTmpBufSize(api_tilings::TCubeTiling& tiling, matmul_tiling::SysTilingTempBufSize& size) {
  return MatmulGetTmpBufSize(tiling, size);
}
int32_t BatchMatmulGetTmpBufSize(api_tilings::TCubeTiling& tiling, matmul_tiling::SysTilingTempBufSize& size) {
  return MatmulGetTmpBufSize(tiling, size);
}
