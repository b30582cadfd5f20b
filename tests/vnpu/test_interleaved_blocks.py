"""Vector instructions whose blocks lie between those of another one: what each touches, block by block."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
import pytest
from test_cube import default_options, device, launch

from ascendopt_tune.device.acl import Binary

__all__ = ["default_options"]
# Every other block of 32 bytes of 16 blocks, in repeats that are `apart` blocks apart, from block 0 and from block
# `second`: no barrier between them. `counted`: by counter mode, whose last repeat ends early.
SOURCE = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __vector__ void woven(GM_ADDR x, GM_ADDR y, uint32_t apart, uint32_t second, uint32_t counted) {
  constexpr uint32_t all = 4096;
  LocalTensor<float> a(TPosition::VECCALC, 0, all), b(TPosition::VECCALC, 65536, all);
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x);
  to.SetGlobalBuffer((__gm__ float*)y);
  DataCopy(a, from, all);
  DataCopy(b, to, all);
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
  UnaryRepeatParams p(2, 2, apart, apart);
  if (counted) {
    SetMaskCount();
    SetVectorMask<float, MaskMode::COUNTER>(0, 7 * 64 + 24);
  } else {
    SetMaskNorm();
    ResetMask();
  }
  Muls<float, false>(b, a, 2.0f, MASK_PLACEHOLDER, 8, p);
  Muls<float, false>(b[second * 8], a[second * 8], 3.0f, MASK_PLACEHOLDER, 8, p);
  SetMaskNorm();
  ResetMask();
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(to, b, all);
}
"""


@cache
def kernels() -> Binary:
    return device().load(device().compile(SOURCE, "woven.cpp", ["--cce-auto-sync=off"]))


@pytest.mark.parametrize("counted", [0, 1])
@pytest.mark.parametrize(("apart", "second", "meet"), [(32, 1, False), (24, 15, False), (32, 2, True), (20, 20, True)])
def test_blocks_between_blocks(apart: int, second: int, meet: bool, counted: int) -> None:
    x = np.arange(1, 4097, dtype=np.float32)
    out, expected = np.zeros(4096, np.float32), np.zeros((512, 8), np.float32)
    for first, factor in ((0, 2), (second, 3)):
        for repeat in range(8):
            for block in range(3 if counted and repeat == 7 else 8):
                at = first + repeat * apart + 2 * block
                expected[at] = x.reshape(512, 8)[at] * factor
    report = launch("woven", [x], out, *map(ctypes.c_uint32, (apart, second, counted)), binary=kernels())
    assert bool(report["hazards"]) == meet, report["hazards"][:1]
    if meet:
        assert {h["first"]["pipe"] for h in report["hazards"]} == {"V"}
    np.testing.assert_array_equal(out.reshape(512, 8), expected)
