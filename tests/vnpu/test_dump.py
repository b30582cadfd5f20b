"""DumpTensor prints what lies in a memory, those too that no load through a pointer reaches."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from test_cube import default_options, device, launch

from ascendopt_tune.errors import DeviceError

__all__ = ["default_options"]
SOURCE = """#include "kernel_operator.h"
#include "utils/debug/asc_dump.h"
using namespace AscendC;
extern "C" __global__ __cube__ void dumped(GM_ADDR in, GM_ADDR out, uint32_t count) {
  GlobalTensor<half> x;
  x.SetGlobalBuffer(reinterpret_cast<__gm__ half*>(in));
  LocalTensor<half> l1(TPosition::A1, 64, 32);
  DataCopy(l1, x, 32);
  SetFlag<HardEvent::MTE2_MTE1>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_MTE1>(EVENT_ID0);
  DumpTensor(l1, 7, 4);
  DumpTensor(x[1], 8, count);
  LocalTensor<int8_t> bytes = l1.ReinterpretCast<int8_t>();
  DumpTensor(bytes[2], 9, 2);
  asc_dump_gm(reinterpret_cast<__gm__ half*>(in), 10, 3);
  asc_dump_l1buf<half>(reinterpret_cast<__cbuf__ half*>(l1.GetPhyAddr()), 11, 2);
  asc_dump(reinterpret_cast<__cbuf__ half*>(l1.GetPhyAddr()), 12, 1);
}
"""


@pytest.mark.parametrize("count", [2, 1000])
def test_tensors_as_text(count: int, capfd: pytest.CaptureFixture[str]) -> None:
    acl = device()
    binary = acl.load(acl.compile(SOURCE, "dumped.cpp", ["--cce-auto-sync=off"]))
    x, out = np.arange(1, 33).astype(np.float16) / 2, np.zeros(32, np.uint8)
    if count > 32:
        with pytest.raises(DeviceError, match="DumpTensor: 1000 elements from there on are not all in one memory"):
            launch("dumped", [x], out, ctypes.c_uint32(count), binary=binary)
        return
    report = launch("dumped", [x], out, ctypes.c_uint32(count), binary=binary)
    ctypes.CDLL(None).fflush(None)
    lines = [line for line in capfd.readouterr().out.splitlines() if "block=0" in line]
    assert lines == [
        "DumpTensor: block=0 desc=7 size=4 0.5 1 1.5 2",
        "DumpTensor: block=0 desc=8 size=2 1 1.5",
        "DumpTensor: block=0 desc=9 size=2 0 60",
        "asc_dump_gm: block=0 desc=10 size=3 0.5 1 1.5",
        "asc_dump_l1buf: block=0 desc=11 size=2 0.5 1",
        "asc_dump: block=0 desc=12 size=1 0.5",
    ]
    assert not report["hazards"]
