// Tilings of the high-level matrix multiplication (AscendC reference, Matmul tiling classes). Which tiling is chosen is
// the virtual NPU's own decision; docs/cube.md says how.
#pragma once
#include <cstdint>

#include "graph/types.h"
#include "kernel_tiling/kernel_tiling.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

namespace api_tilings {

BEGIN_TILING_DATA_DEF(TCubeTiling)
#define VNPU_FIELD(name) TILING_DATA_FIELD_DEF(int32_t, name)
VNPU_CUBE_TILING_FIELDS(VNPU_FIELD)
#undef VNPU_FIELD
END_TILING_DATA_DEF

}  // namespace api_tilings

namespace matmul_tiling {

#ifndef __CCE_AICORE__  // beside a kernel the name is the kernel's
using half = double;    // CANN's own: tiling programs that take its size for two bytes ask for workspace of eight
#endif

// Programs name these as matmul_tiling's own, which CANN keeps apart from a kernel's positions and from ge's types.
enum class TPosition : int32_t {
  GM,
  A1,
  A2,
  B1,
  B2,
  C1,
  C2,
  CO1,
  CO2,
  VECIN,
  VECOUT,
  VECCALC,
  LCM = VECCALC,
  SPM,
  SHM = SPM,
  TSCM,
  MAX,
};
enum class CubeFormat { ND = 0, NZ, ZN, ZZ, NN, VECTOR, SCALAR, ND_ALIGN, COLUMN_MAJOR };
// The numbers of ge::DataType.
enum class DataType : int32_t {
  DT_FLOAT = 0,
  DT_FLOAT16 = 1,
  DT_INT8 = 2,
  DT_INT32 = 3,
  DT_UINT8 = 4,
  DT_INT16 = 6,
  DT_UINT16 = 7,
  DT_UINT32 = 8,
  DT_INT64 = 9,
  DT_UINT64 = 10,
  DT_BF16 = 27,
  DT_BFLOAT16 = 27,
  DT_UNDEFINED = 28,  // none has been set
  DT_INT4 = 29,
  DT_HIFLOAT8 = 34,  // from here on of later architectures: programs have them in tables
  DT_FLOAT8_E4M3FN = 35,
  DT_FLOAT8_E5M2 = 36,
  DT_FLOAT4_E2M1 = 37,
  DT_FLOAT8_E8M0 = 38,
  DT_FLOAT4_E1M2 = 39,
};
enum class MatrixTraverse { NOSET = 0, FIRSTM = 1, FIRSTN = 2 };
enum class MatrixMadType { NORMAL = 0, HF32 = 1 };
enum class DequantType { SCALAR = 0, TENSOR = 1 };
enum class ScheduleType { INNER_PRODUCT = 0, OUTER_PRODUCT, N_BUFFER_33 };

struct PlatformInfo {
  platform_ascendc::SocVersion socVersion = platform_ascendc::SocVersion::ASCEND910B;
  uint64_t l1Size = 0, l0CSize = 0, ubSize = 0, l0ASize = 0, l0BSize = 0;
};

struct MatmulConfigParams {
  int32_t mmConfigType;
  bool enableL1CacheUB;
  ScheduleType scheduleType;
  MatrixTraverse traverse;
  bool enVecND2NZ;
  MatmulConfigParams(int32_t mmConfigTypeIn = 1, bool enableL1CacheUBIn = false,
                     ScheduleType scheduleTypeIn = ScheduleType::INNER_PRODUCT,
                     MatrixTraverse traverseIn = MatrixTraverse::NOSET, bool enVecND2NZIn = false)
      : mmConfigType(mmConfigTypeIn),
        enableL1CacheUB(enableL1CacheUBIn),
        scheduleType(scheduleTypeIn),
        traverse(traverseIn),
        enVecND2NZ(enVecND2NZIn) {}
};

// Three lengths, along m, n and k; -1 where nobody has set one.
struct Extents {
  int32_t m = -1, n = -1, k = -1;
};

// How many matrices of a batch lie along each axis, and how long one is: see SetALayout.
struct BatchAxes {
  int32_t b = 0, s = 0, n = 0, g = 0, d = 0;
};

// What a tiling needs of the memories (AscendC reference, MatmulGetTmpBufSize); bytes.
struct SysTilingTempBufSize {
  int32_t ubSize = 0, l1Size = 0, l0cSize = 0;
};

struct MatrixKind {
  TPosition position = TPosition::GM;
  CubeFormat format = CubeFormat::ND;
  DataType type = DataType::DT_FLOAT16;
  bool turned = false;
};

// What all three tiling classes have. Setters return 0, or -1 for what can't be.
class MatmulApiTilingBase {
 public:
  MatmulApiTilingBase();
  explicit MatmulApiTilingBase(const platform_ascendc::PlatformAscendC& ascendcPlatform);
  explicit MatmulApiTilingBase(const PlatformInfo& platform);
  virtual ~MatmulApiTilingBase() = default;

  int32_t SetAType(TPosition pos, CubeFormat type, DataType dataType, bool isTrans = false);
  int32_t SetBType(TPosition pos, CubeFormat type, DataType dataType, bool isTrans = false);
  int32_t SetCType(TPosition pos, CubeFormat type, DataType dataType);
  int32_t SetBiasType(TPosition pos, CubeFormat type, DataType dataType);
  int32_t SetDequantType(DequantType dequantType);
  int32_t SetShape(int32_t m, int32_t n, int32_t k);
  int32_t SetOrgShape(int32_t orgMIn, int32_t orgNIn, int32_t orgKIn);
  int32_t SetOrgShape(int32_t orgMIn, int32_t orgNIn, int32_t orgKaIn, int32_t orgKbIn);
  int32_t EnableBias(bool isBiasIn = false);
  int32_t SetBias(bool isBiasIn = false) { return EnableBias(isBiasIn); }
  int32_t SetFixSplit(int32_t baseMIn = -1, int32_t baseNIn = -1, int32_t baseKIn = -1);
  int32_t SetBufferSpace(int32_t l1Size = -1, int32_t l0CSize = -1, int32_t ubSize = -1, int32_t btSize = -1);
  int32_t SetTraverse(MatrixTraverse traverse);
  int32_t SetMadType(MatrixMadType madType);
  int32_t SetSparse(bool isSparseIn = false);
  int32_t SetSplitRange(int32_t maxBaseM = -1, int32_t maxBaseN = -1, int32_t maxBaseK = -1, int32_t minBaseM = -1,
                        int32_t minBaseN = -1, int32_t minBaseK = -1);
  int32_t SetDoubleBuffer(bool a, bool b, bool c, bool bias, bool transND2NZ = true, bool transNZ2ND = true);
  void SetMatmulConfigParams(int32_t mmConfigTypeIn = 1, bool enableL1CacheUBIn = false,
                             ScheduleType scheduleTypeIn = ScheduleType::INNER_PRODUCT,
                             MatrixTraverse traverseIn = MatrixTraverse::NOSET, bool enVecND2NZIn = false);
  void SetMatmulConfigParams(const MatmulConfigParams& configParams);
  // Batches: B, S, N, G and D of each matrix as MatmulType's LayoutMode orders them (S and D are one matrix's rows and
  // columns), or how many of A and B there are; and how many matrices of C one call makes. All of them above 0.
  int32_t SetALayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d);
  int32_t SetBLayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d);
  int32_t SetCLayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d);
  int32_t SetBatchInfoForNormal(int32_t batchA, int32_t batchB, int32_t m, int32_t n, int32_t k);
  int32_t SetBatchNum(int32_t batch);
  int32_t GetBaseM() const { return chosen_.baseM; }
  int32_t GetBaseN() const { return chosen_.baseN; }
  int32_t GetBaseK() const { return chosen_.baseK; }

  // -1 where no tiling is possible.
  int64_t GetTiling(api_tilings::TCubeTiling& tiling);
  int64_t GetTiling(AscendC::tiling::TCubeTiling& tiling);

 protected:
  // How many cores may share the work, and what a core gets where that is given.
  virtual int32_t Cores() const { return 1; }

  struct Limits {
    int64_t l1 = 524288, l0a = 65536, l0b = 65536, l0c = 131072, ub = 196608, bias = 1024;
  };
  Limits limits_, most_;
  MatrixKind a_, b_, c_, bias_;
  BatchAxes axes_a_, axes_b_, axes_c_;
  int32_t batches_ = 0;
  Extents shape_, org_, base_, single_, align_, most_single_, least_single_;
  int32_t org_kb_ = -1;
  bool with_bias_ = false, split_k_ = false, sparse_ = false;
  MatrixTraverse traverse_ = MatrixTraverse::NOSET;
  AscendC::tiling::TCubeTiling chosen_;

 private:
  friend class Chooser;
};

class MatmulApiTiling : public MatmulApiTilingBase {
 public:
  using MatmulApiTilingBase::MatmulApiTilingBase;
};

class MultiCoreMatmulTiling : public MatmulApiTilingBase {
 public:
  using MatmulApiTilingBase::MatmulApiTilingBase;

  int32_t SetDim(int32_t dim);
  int32_t SetSingleShape(int32_t singleMIn = -1, int32_t singleNIn = -1, int32_t singleKIn = -1);
  int32_t SetSingleRange(int32_t maxM = -1, int32_t maxN = -1, int32_t maxK = -1, int32_t minM = -1, int32_t minN = -1,
                         int32_t minK = -1);
  int32_t SetAlignSplit(int32_t alignM, int32_t alignN, int32_t alignK);
  void EnableMultiCoreSplitK(bool flag) { split_k_ = flag; }
  int32_t SetSplitK(bool flag) {
    split_k_ = flag;
    return 0;
  }
  int32_t GetSingleShape(int32_t& shapeM, int32_t& shapeN, int32_t& shapeK) const;
  int32_t GetCoreNum(int32_t& dim, int32_t& mDim, int32_t& nDim) const;

 protected:
  int32_t Cores() const override { return dim_; }

 private:
  int32_t dim_ = 1;
};

// Of one core's batches; cores share them by the kernel's own rules.
class BatchMatmulTiling : public MatmulApiTilingBase {
 public:
  using MatmulApiTilingBase::MatmulApiTilingBase;
  // All counts are 1.
  int32_t GetCoreNum(int32_t& dim, int32_t& mDim, int32_t& nDim, int32_t& batchCoreM, int32_t& batchCoreN) const;
};

}  // namespace matmul_tiling

// What a tiling needs at least, kept beside what was asked for before; 0.
int32_t MatmulGetTmpBufSize(api_tilings::TCubeTiling& tiling, matmul_tiling::SysTilingTempBufSize& bufSize);
int32_t MultiCoreMatmulGetTmpBufSize(api_tilings::TCubeTiling& tiling, matmul_tiling::SysTilingTempBufSize& bufSize);
int32_t BatchMatmulGetTmpBufSize(api_tilings::TCubeTiling& tiling, matmul_tiling::SysTilingTempBufSize& bufSize);
int32_t MatmulGetTmpBufSizeV2(AscendC::tiling::TCubeTiling& tiling, matmul_tiling::SysTilingTempBufSize& bufSize);
int32_t MultiCoreMatmulGetTmpBufSizeV2(AscendC::tiling::TCubeTiling& tiling,
                                       matmul_tiling::SysTilingTempBufSize& bufSize);
int32_t BatchMatmulGetTmpBufSizeV2(AscendC::tiling::TCubeTiling& tiling, matmul_tiling::SysTilingTempBufSize& bufSize);
