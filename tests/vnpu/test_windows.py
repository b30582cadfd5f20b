"""Cores that ask for a few bytes of one window of 512 bytes are served one after another, modelled."""

from __future__ import annotations

import ctypes

import pytest
from api_kernel import device

from ascendopt_tune.device.options import LaunchOptions
from ascendopt_tune.nouns.chip import load_chip

# Each core copies `count` pieces of `bytes` one by one, in (way 0) or out (way 1); the cores' pieces begin `apart` from
# each other, a core's own follow each other.
FEW_BYTES = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void few_bytes(GM_ADDR x, uint32_t bytes, uint32_t apart, uint32_t count,
                                                uint32_t way) {
  GlobalTensor<uint8_t> gm;
  gm.SetGlobalBuffer((__gm__ uint8_t*)x + uint64_t(GetBlockIdx()) * apart, uint64_t(bytes) * count);
  LocalTensor<uint8_t> ub(TPosition::VECCALC, 0, 65536);
  const DataCopyExtParams piece{1, bytes, 0, 0, 0};
  for (uint32_t i = 0; i < count; i++) {
    if (way)
      DataCopyPad(gm[i * bytes], ub[i * 64], piece);
    else
      DataCopyPad(ub[i * 64], gm[i * bytes], piece, DataCopyPadExtParams<uint8_t>{false, 0, 0, 0});
  }
  PipeBarrier<PIPE_ALL>();
}
"""
CHIP = load_chip("ascend910b2")
IN, OUT = 0, 1
COUNT, CORES = 16, 16


def _cycles(cores: int, nbytes: int, apart: int, way: int) -> float:
    """What the task takes, in cycles."""
    acl = device()
    function = acl.load(acl.compile(FEW_BYTES, "few_bytes.cpp", ["--cce-auto-sync=off"])).function("few_bytes")
    x = acl.malloc(1 << 20)
    try:
        arguments = [x, *(ctypes.c_uint32(n) for n in (nbytes, apart, COUNT, way))]
        acl.launch(function, cores, arguments, options=LaunchOptions(hazards=False))
        acl.synchronize()
        return float(acl.report()["profile"]["task_duration_us"]) * float(CHIP.values["core.clock_mhz"])
    finally:
        acl.free(x)


@pytest.mark.parametrize("way", [IN, OUT])
def test_a_window_serves_the_requests_of_several_cores_one_after_another(way: int) -> None:
    """16 cores with 32 bytes each, so 256 requests: to one window, to two, or to windows of their own."""
    name = "memory.few_bytes_write_cycles" if way == OUT else "memory.few_bytes_read_cycles"
    each = CHIP.constants[name].value
    one, two, own = (_cycles(CORES, 2, apart, way) for apart in (32, 64, 512))
    assert one >= CORES * COUNT * each
    assert one - own > CORES * COUNT * each / 2
    assert own < two < one


@pytest.mark.parametrize("way", [IN, OUT])
def test_blocks_and_single_cores_do_not_wait(way: int) -> None:
    """Pieces of 32 bytes: 16 of them are a window. A core alone doesn't wait for itself."""
    assert _cycles(CORES, 32, 512, way) == pytest.approx(_cycles(CORES, 32, 1024, way), rel=0.01)
    assert _cycles(1, 2, 32, way) == _cycles(1, 2, 512, way)
