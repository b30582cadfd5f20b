// The tiling classes of the high-level matrix multiplication, for a test that asks with numbers.
#include "tiling/tiling_api.h"

using matmul_tiling::CubeFormat;
using matmul_tiling::DataType;
using matmul_tiling::TPosition;

// `wish`: m, n, k, cores, type of A and B, of C, A transposed, B transposed, bias, split k, single m, n, k, base m, n,
// L1 bytes (or -1), sparse. `out`: a TCubeTiling.
extern "C" int choose(const int32_t* wish, AscendC::tiling::TCubeTiling* out) {
  matmul_tiling::MultiCoreMatmulTiling t;
  const auto in = static_cast<DataType>(wish[4]), result = static_cast<DataType>(wish[5]);
  if (t.SetDim(wish[3]) != 0) return -1;
  t.SetAType(TPosition::GM, CubeFormat::ND, in, wish[6] != 0);
  t.SetBType(TPosition::GM, CubeFormat::ND, in, wish[7] != 0);
  t.SetCType(TPosition::GM, CubeFormat::ND, result);
  t.SetBiasType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT);
  t.SetShape(wish[0], wish[1], wish[2]);
  t.SetOrgShape(wish[0], wish[1], wish[2]);
  t.EnableBias(wish[8] != 0);
  t.EnableMultiCoreSplitK(wish[9] != 0);
  t.SetSingleShape(wish[10], wish[11], wish[12]);
  if (t.SetFixSplit(wish[13], wish[14], -1) != 0) return -1;
  t.SetBufferSpace(wish[15], -1, -1);
  t.SetSparse(wish[16] != 0);
  optiling::TCubeTiling data;
  if (t.GetTiling(data) == -1) return -1;
  data.SaveToBuffer(out, sizeof *out);
  int32_t cores = 0, down = 0, across = 0;
  return t.GetCoreNum(cores, down, across) == 0 && data.GetDataSize() == sizeof *out ? cores : -2;
}

// `wish`: m, n, k, bias, then B, S, N, G, D of A, of B and of C, or, where `normal` isn't 0, how many of A and B; and
// SetBatchNum's number. `needs`: bytes of the Unified Buffer, L1 and L0C. -1: a setter refuses, -2: no tiling.
extern "C" int choose_batch(const int32_t* wish, int32_t normal, AscendC::tiling::TCubeTiling* out, int32_t* needs) {
  matmul_tiling::BatchMatmulTiling t;
  t.SetAType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT16);
  t.SetBType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT16, true);
  t.SetCType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT);
  t.SetShape(wish[0], wish[1], wish[2]);
  t.SetOrgShape(wish[0], wish[1], wish[2]);
  t.EnableBias(wish[3] != 0);
  const int32_t* x = wish + 4;
  if (normal != 0) {
    if (t.SetBatchInfoForNormal(x[0], x[5], wish[0], wish[1], wish[2]) != 0) return -1;
  } else if (t.SetALayout(x[0], x[1], x[2], x[3], x[4]) != 0 || t.SetBLayout(x[5], x[6], x[7], x[8], x[9]) != 0 ||
             t.SetCLayout(x[10], x[11], x[12], x[13], x[14]) != 0) {
    return -1;
  }
  if (t.SetBatchNum(wish[19]) != 0) return -1;
  if (t.GetTiling(*out) == -1) return -2;
  optiling::TCubeTiling data;
  matmul_tiling::SysTilingTempBufSize plain, size;
  if (t.GetTiling(data) == -1 || BatchMatmulGetTmpBufSize(data, size) != 0 ||
      BatchMatmulGetTmpBufSizeV2(*out, plain) != 0)
    return -2;
  if (size.l1Size != plain.l1Size || size.l0cSize != plain.l0cSize || size.ubSize != plain.ubSize) return -3;
  needs[0] = size.ubSize;
  needs[1] = size.l1Size;
  needs[2] = size.l0cSize;
  int32_t cores = 0, down = 0, across = 0, batches_m = 0, batches_n = 0;
  t.GetCoreNum(cores, down, across, batches_m, batches_n);
  return cores == 1 && down == 1 && across == 1 && batches_m == 1 && batches_n == 1 ? 0 : -3;
}
