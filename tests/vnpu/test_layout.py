"""Layout and coordinates: indices as the reference's pages have them."""

from __future__ import annotations

import numpy as np
from test_cube import default_options, device, launch

__all__ = ["default_options"]
SOURCE = """#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __cube__ void indices(GM_ADDR in, GM_ADDR out) {
  auto shape = MakeShape(3, 4, 5);
  auto stride = MakeStride(20, 5, 1);
  auto layout = MakeLayout(shape, stride);
  auto two = MakeLayout(MakeShape(MakeShape(2, 4), MakeShape(3, 5)), MakeStride(MakeStride(3, 6), MakeStride(1, 24)));
  static_assert(is_layout<decltype(layout)>::value && !is_layout<decltype(shape)>::value);
  constexpr auto known = MakeLayout(MakeShape(Std::Int<7>{}, Std::Int<8>{}), MakeStride(Std::Int<8>{}, Std::Int<1>{}));
  static_assert(known(MakeCoord(Std::Int<3>{}, Std::Int<2>{})) == 26);
  Coord<int64_t, int64_t, int64_t> coord = MakeCoord(int64_t(1), int64_t(2), int64_t(3));
  const int64_t found[] = {layout(coord), Crd2Idx(coord, layout), Crd2Idx(coord, shape, stride),
                           two(MakeCoord(11, 12)), two(MakeCoord(MakeCoord(1, 5), MakeCoord(0, 4))),
                           Std::get<1>(layout.GetShape()), Std::get<0>(layout.layout().GetStride()),
                           Crd2Idx(7, MakeShape(3, 5), MakeStride(100, 1))};
  for (int i = 0; i < 8; i++) reinterpret_cast<__gm__ int64_t*>(out)[i] = found[i];
}
"""


def test_indices() -> None:
    acl = device()
    binary = acl.load(acl.compile(SOURCE, "indices.cpp", ["--cce-auto-sync=off"]))
    out = np.zeros(8, np.int64)
    launch("indices", [np.zeros(8, np.int64)], out, binary=binary)
    assert out.tolist() == [33, 33, 33, 129, 129, 4, 20, 102]
