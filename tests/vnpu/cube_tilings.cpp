// The tiling classes of the high-level matrix multiplication, for a test that asks with numbers.
#include "tiling/tiling_api.h"

using matmul_tiling::CubeFormat;
using matmul_tiling::DataType;
using matmul_tiling::TPosition;

// `wish`: m, n, k, cores, type of A and B, of C, A transposed, B transposed, bias, split k, single m, n, k, base m, n,
// L1 bytes (or -1). `out`: a TCubeTiling.
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
  optiling::TCubeTiling data;
  if (t.GetTiling(data) == -1) return -1;
  data.SaveToBuffer(out, sizeof *out);
  int32_t cores = 0, down = 0, across = 0;
  return t.GetCoreNum(cores, down, across) == 0 && data.GetDataSize() == sizeof *out ? cores : -2;
}
