// What others would choose for a matrix product on `cores` cube cores: the platform's tiling class, and the example of
// catlass that chooses a tiling when it runs (only with -DCATLASS, where a checkout is at hand).
#include <array>

#include "tiling/tiling_api.h"

// `out`: share of a core (m, n), base block (m, n, k), base blocks of k in a packet. `type`: as matmul_tiling::DataType.
extern "C" int platform_choice(int m, int n, int k, int cores, int type, int turned, int* out) {
  using namespace matmul_tiling;
  MultiCoreMatmulTiling t;
  const auto in = static_cast<DataType>(type);
  t.SetDim(cores);
  t.SetAType(TPosition::GM, CubeFormat::ND, in, false);
  t.SetBType(TPosition::GM, CubeFormat::ND, in, turned != 0);
  t.SetCType(TPosition::GM, CubeFormat::ND, DataType::DT_FLOAT16);
  t.SetShape(m, n, k);
  t.SetOrgShape(m, n, k);
  t.SetBufferSpace(-1, -1, -1);
  optiling::TCubeTiling data;
  if (t.GetTiling(data) == -1) return -1;
  const std::array<int, 6> chosen = {data.get_singleCoreM(), data.get_singleCoreN(), data.get_baseM(),
                                     data.get_baseN(),       data.get_baseK(),       data.get_stepKa()};
  std::copy(chosen.begin(), chosen.end(), out);
  return 0;
}

#ifdef CATLASS
#include "catlass/catlass.hpp"
using namespace Catlass;
#include "do_tiling_b16.h"

// `out`: the tile of a core in L1 (m, n, k), of 16-bit matrices whose rows lie as they are written.
extern "C" int catlass_choice(int m, int n, int k, int* out) {
  TilingParams wanted{};
  wanted.m = m;
  wanted.n = n;
  wanted.k = k;
  PlatformInfo platform;
  DoTilingB16Layout00(wanted, platform);
  out[0] = wanted.m1;
  out[1] = wanted.n1;
  out[2] = wanted.k1;
  return 0;
}
#endif
