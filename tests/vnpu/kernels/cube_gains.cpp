// c = a x b on cube cores, as the samples do it whose times are published (test_cube_gains.py): blocks of c dealt to
// the cores in turn, packets of k copied to L1 ahead of the products that need them, two buffers of everything but c.
#include "kernel_operator.h"

using namespace AscendC;

enum Layout : uint32_t { kRowsAlongN, kRowsAlongK, kTiles };  // of b in global memory; tiles as in L1 (NZ)

struct Product {
  uint32_t m, n, k;
  uint32_t blockM, blockN, blockK;    // what a core computes at a time; blockK < k: sums of several are added up in c
  uint32_t l1K, l0K;                  // what of k lies in L1 and in L0
  uint32_t layout, rowsFirst, group;  // order of blocks: `group` rows (or columns) of them, then across
};

constexpr uint32_t kSide = 16;

__aicore__ inline uint32_t Up(uint32_t a, uint32_t b) { return (a + b - 1) / b; }
__aicore__ inline uint32_t Least(uint32_t a, uint32_t b) { return a < b ? a : b; }

struct Part {
  uint32_t begin, size;
};
__aicore__ inline Part PartOf(uint32_t i, uint32_t step, uint32_t whole) {
  return {i * step, Least(step, whole - i * step)};
}

struct Packet {
  Part m, n, k;
  bool first, last;  // of its block
};

template <typename T, typename Out>
class Multiply {
  static constexpr uint32_t kWide = 32 / sizeof(T), kTile = kSide * kWide;

 public:
  __aicore__ inline Multiply(GM_ADDR a, GM_ADDR b, GM_ADDR c, const Product& p) : p_(p) {
    a_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(a));
    b_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(b));
    c_.SetGlobalBuffer(reinterpret_cast<__gm__ Out*>(c));
    tall_ = Up(p.m, p.blockM);
    wide_ = Up(p.n, p.blockN);
    packetsOfBlock_ = Up(Least(p.blockK, p.k), p.l1K);
    const uint32_t blocks = tall_ * wide_ * Up(p.k, p.blockK), own = GetBlockIdx();
    packets_ = own < blocks ? Up(blocks - own, GetBlockNum()) * packetsOfBlock_ : 0;
  }

  __aicore__ inline void Run() {
    for (int32_t i = 0; i < 2; i++) {
      SetFlag<HardEvent::MTE1_MTE2>(i);
      SetFlag<HardEvent::M_MTE1>(i);
    }
    SetFlag<HardEvent::FIX_M>(0);
    if (packets_ != 0) Copy(0);
    for (uint32_t i = 0; i < packets_; i++) {
      if (i + 1 < packets_) Copy(i + 1);
      Compute(i);
    }
    for (int32_t i = 0; i < 2; i++) {
      WaitFlag<HardEvent::MTE1_MTE2>(i);
      WaitFlag<HardEvent::M_MTE1>(i);
    }
    WaitFlag<HardEvent::FIX_M>(0);
  }

 private:
  __aicore__ inline Packet At(uint32_t i) {
    const uint32_t block = GetBlockIdx() + i / packetsOfBlock_ * GetBlockNum(), inner = i % packetsOfBlock_;
    const uint32_t plane = block / (tall_ * wide_), index = block % (tall_ * wide_);
    const uint32_t along = p_.rowsFirst ? tall_ : wide_, across = p_.rowsFirst ? wide_ : tall_;
    const uint32_t band = index / (p_.group * across), within = index % (p_.group * across);
    const uint32_t high = Least(p_.group, along - band * p_.group);
    const uint32_t major = band * p_.group + within % high;
    uint32_t minor = within / high;
    if (band % 2 == 1) minor = across - 1 - minor;
    Packet t;
    t.m = PartOf(p_.rowsFirst ? major : minor, p_.blockM, p_.m);
    t.n = PartOf(p_.rowsFirst ? minor : major, p_.blockN, p_.n);
    const Part k = PartOf(plane, p_.blockK, p_.k);
    t.k = PartOf(inner, p_.l1K, k.size);
    t.k.begin += k.begin;
    t.first = inner == 0;
    t.last = inner + 1 == packetsOfBlock_;
    return t;
  }

  __aicore__ inline LocalTensor<T> InL1(uint32_t slot, bool b) {
    const uint32_t ofA = p_.blockM * p_.l1K, ofB = p_.blockN * p_.l1K;
    return LocalTensor<T>(TPosition::A1, (b ? 2 * ofA + slot * ofB : slot * ofA) * sizeof(T), b ? ofB : ofA);
  }

  // Rows become columns of tiles. Tiles that lie in global memory so already are copied as they are.
  __aicore__ inline void Copy(uint32_t i) {
    const Packet t = At(i);
    const int32_t slot = i % 2;
    WaitFlag<HardEvent::MTE1_MTE2>(slot);
    CopyRows(InL1(slot, false), a_[static_cast<uint64_t>(t.m.begin) * p_.k + t.k.begin], t.m.size, t.k.size, p_.k);
    const LocalTensor<T> b = InL1(slot, true);
    if (p_.layout == kRowsAlongN) {
      CopyRows(b, b_[static_cast<uint64_t>(t.k.begin) * p_.n + t.n.begin], t.k.size, t.n.size, p_.n);
    } else if (p_.layout == kRowsAlongK) {
      CopyRows(b, b_[static_cast<uint64_t>(t.n.begin) * p_.k + t.k.begin], t.n.size, t.k.size, p_.k);
    } else {
      const uint32_t high = Up(p_.k, kSide) * kSide, rows = Up(t.k.size, kSide) * kSide;
      DataCopy(b, b_[static_cast<uint64_t>(t.n.begin) * high + t.k.begin * kWide],
               DataCopyParams(Up(t.n.size, kWide), rows, high - rows, 0));
    }
    SetFlag<HardEvent::MTE2_MTE1>(slot);
  }

  __aicore__ inline void CopyRows(const LocalTensor<T>& l1, const GlobalTensor<T>& from, uint32_t rows,
                                  uint32_t columns, uint32_t pitch) {
    DataCopy(l1, from, Nd2NzParams(1, rows, columns, 0, pitch, Up(rows, kSide) * kSide, 1, 0));
  }

  __aicore__ inline void Compute(uint32_t i) {
    const Packet t = At(i);
    const int32_t slot = i % 2;
    const LocalTensor<T> a = InL1(slot, false), b = InL1(slot, true);
    LocalTensor<float> c(TPosition::CO1, 0, p_.blockM * p_.blockN);
    if (t.first) WaitFlag<HardEvent::FIX_M>(0);
    WaitFlag<HardEvent::MTE2_MTE1>(slot);
    for (uint32_t k = 0; k < t.k.size; k += p_.l0K) {
      const uint32_t deep = Least(p_.l0K, t.k.size - k);
      const int32_t half = turn_++ % 2;
      LocalTensor<T> a2(TPosition::A2, half * 32768, 32768 / sizeof(T));
      LocalTensor<T> b2(TPosition::B2, half * 32768, 32768 / sizeof(T));
      WaitFlag<HardEvent::M_MTE1>(half);
      Load(a2, b2, a, b, t, k, deep);
      SetFlag<HardEvent::MTE1_M>(half);
      if (k + deep == t.k.size) SetFlag<HardEvent::MTE1_MTE2>(slot);
      WaitFlag<HardEvent::MTE1_M>(half);
      MmadParams params;
      params.m = Up(t.m.size, kSide) * kSide;
      params.n = t.n.size;
      params.k = deep;
      params.cmatrixInitVal = t.first && k == 0;
      Mmad(c, a2, b2, params);
      if (Up(t.m.size, kSide) * Up(t.n.size, kSide) < 10) PipeBarrier<PIPE_M>();
      SetFlag<HardEvent::M_MTE1>(half);
    }
    if (t.last) CopyOut(c, t);
  }

  __aicore__ inline void Load(const LocalTensor<T>& a2, const LocalTensor<T>& b2, const LocalTensor<T>& a,
                              const LocalTensor<T>& b, const Packet& t, uint32_t k, uint32_t deep) {
    const uint32_t tall = Up(t.m.size, kSide), wide = Up(t.n.size, kSide), inner = Up(deep, kWide), first = k / kWide;
    for (uint32_t i = 0; i < tall; i++) {
      LoadData(a2[i * inner * kTile], a[(first * tall + i) * kTile], LoadData2DParams(0, inner, tall, 0, 0, false, 0));
    }
    const bool turned = p_.layout != kRowsAlongK;  // its rows are along n
    const uint32_t high = turned ? Up(t.k.size, kSide) : 1;
    for (uint32_t i = 0; i < inner; i++) {
      LoadData(b2[i * wide * kTile], b[(first + i) * (turned ? 1 : wide) * kTile],
               LoadData2DParams(0, wide, high, 0, 0, turned, 0));
    }
  }

  __aicore__ inline void CopyOut(const LocalTensor<float>& c, const Packet& t) {
    SetFlag<HardEvent::M_FIX>(0);
    WaitFlag<HardEvent::M_FIX>(0);
    FixpipeParamsV220 params;
    params.nSize = t.n.size;
    params.mSize = t.m.size;
    params.srcStride = Up(t.m.size, kSide) * kSide;
    params.dstStride = p_.n;
    if constexpr (std::is_same<Out, half>::value) params.quantPre = QuantMode_t::F322F16;
    if (p_.blockK < p_.k) SetAtomicAdd<Out>();
    Fixpipe<Out, float, CFG_ROW_MAJOR>(c_[static_cast<uint64_t>(t.m.begin) * p_.n + t.n.begin], c, params);
    if (p_.blockK < p_.k) SetAtomicNone();
    SetFlag<HardEvent::FIX_M>(0);
  }

  Product p_;
  GlobalTensor<T> a_, b_;
  GlobalTensor<Out> c_;
  uint32_t tall_, wide_, packetsOfBlock_, packets_, turn_ = 0;
};

extern "C" __global__ __cube__ void half_to_half(GM_ADDR a, GM_ADDR b, GM_ADDR c, Product p) {
  Multiply<half, half>(a, b, c, p).Run();
}
extern "C" __global__ __cube__ void half_to_float(GM_ADDR a, GM_ADDR b, GM_ADDR c, Product p) {
  Multiply<half, float>(a, b, c, p).Run();
}
extern "C" __global__ __cube__ void float_to_float(GM_ADDR a, GM_ADDR b, GM_ADDR c, Product p) {
  Multiply<float, float>(a, b, c, p).Run();
}

// ---- b made tiles by the vector cores first ----

constexpr uint32_t kWidest = 1024;  // columns that are taken at a time, of 16 rows

// Rows [row, row + 16) and `columns` columns of b.
__aicore__ inline void ToTiles(const GlobalTensor<half>& rows, const GlobalTensor<half>& tiles, const Product& p,
                               uint32_t row, uint32_t column, uint32_t columns, uint32_t slot) {
  constexpr uint32_t kBytes = kSide * kWidest * sizeof(half);
  const uint32_t high = Least(kSide, p.k - row), wide = Up(columns, kSide), pieces = Up(wide, 8);
  LocalTensor<half> nd(TPosition::VECIN, slot * kBytes, kBytes / 2);
  LocalTensor<half> nz(TPosition::VECOUT, (2 + slot) * kBytes, kBytes / 2);
  WaitFlag<HardEvent::V_MTE2>(slot);
  const DataCopyExtParams in(high, columns * sizeof(half), (p.n - columns) * sizeof(half), (pieces * 8 - wide), 0);
  DataCopyPad(nd, rows[static_cast<uint64_t>(row) * p.n + column], in,
              DataCopyPadExtParams<half>(true, 0, static_cast<uint8_t>(wide * kSide - columns), half(0)));
  SetFlag<HardEvent::MTE2_V>(slot);
  WaitFlag<HardEvent::MTE2_V>(slot);
  WaitFlag<HardEvent::MTE3_V>(slot);
  for (uint32_t i = 0; i < wide; i += 8) {  // a column of tiles is kSide blocks, one for each row
    const uint32_t blocks = Least(8, wide - i);
    Copy(nz[i * kSide * kSide], nd[i * kSide], blocks * kSide, static_cast<uint8_t>(high),
         CopyRepeatParams(kSide, 1, 1, static_cast<uint16_t>(pieces * 8)));
  }
  SetFlag<HardEvent::V_MTE2>(slot);
  SetFlag<HardEvent::V_MTE3>(slot);
  WaitFlag<HardEvent::V_MTE3>(slot);
  DataCopy(tiles[static_cast<uint64_t>(column) * p.k + row * kSide], nz, DataCopyParams(wide, kSide, 0, p.k - kSide));
  SetFlag<HardEvent::MTE3_V>(slot);
}

extern "C" __global__ __mix__(1, 2) void tiles_by_vector_cores(GM_ADDR a, GM_ADDR b, GM_ADDR tiles, GM_ADDR c,
                                                               Product p) {
  if ASCEND_IS_AIV {
    GlobalTensor<half> from, to;
    from.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(b));
    to.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(tiles));
    for (int32_t i = 0; i < 2; i++) {
      SetFlag<HardEvent::V_MTE2>(i);
      SetFlag<HardEvent::MTE3_V>(i);
    }
    const uint32_t across = Up(p.n, kWidest), pieces = Up(p.k, kSide) * across;
    uint32_t turn = 0;
    for (uint32_t i = GetBlockIdx(); i < pieces; i += GetBlockNum() * GetSubBlockNum()) {
      const uint32_t column = i % across * kWidest;
      ToTiles(from, to, p, i / across * kSide, column, Least(kWidest, p.n - column), turn++ % 2);
    }
    for (int32_t i = 0; i < 2; i++) {
      WaitFlag<HardEvent::V_MTE2>(i);
      WaitFlag<HardEvent::MTE3_V>(i);
    }
    SyncAll();
    CrossCoreSetFlag<2, PIPE_MTE3>(0);
  }
  if ASCEND_IS_AIC {
    CrossCoreWaitFlag(0);
    p.layout = kTiles;
    Multiply<half, half>(a, tiles, c, p).Run();
  }
}
