"""What every device target promises through the one binding of CANN's C interface; a real NPU where there is one."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest

from ascendopt_tune.build.toolkit import find, real_cann
from ascendopt_tune.device.acl import Acl
from ascendopt_tune.errors import DeviceError, KernelCompileError
from ascendopt_tune.settings import TARGETS

SOURCE = """
#include "kernel_operator.h"
extern "C" __global__ __aicore__ void scale(GM_ADDR x, GM_ADDR y, uint32_t n, float a) {
  AscendC::GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x, n);
  to.SetGlobalBuffer((__gm__ float*)y, n);
  for (uint32_t i = AscendC::GetBlockIdx() * 16; i < n; i += AscendC::GetBlockNum() * 16) {
    for (uint32_t j = i; j < i + 16 && j < n; ++j) {
      to.SetValue(j, from.GetValue(j) * a);
    }
    AscendC::DataCacheCleanAndInvalid<float, AscendC::CacheLine::SINGLE_CACHE_LINE, AscendC::DcciDst::CACHELINE_OUT>(
        to[i]);
  }
}
"""


@pytest.fixture(scope="module", params=[target for target in TARGETS if target != "auto"])
def acl(request: pytest.FixtureRequest) -> Acl:
    if (real_cann() is not None) != (request.param == "npu"):
        pytest.skip("a real CANN and the virtual one don't go into one process, and this machine has one of them")
    return Acl(find(request.param))


@pytest.fixture(scope="module")
def binary(acl: Acl) -> bytes:
    return acl.compile(SOURCE, "scale.cpp", ["--npu-arch=dav-2201"])


@pytest.fixture
def pair(acl: Acl) -> Iterator[tuple[int, int]]:
    x, y = acl.malloc(512), acl.malloc(512)
    acl.memcpy_h2d(x, np.arange(128, dtype=np.float32))
    acl.memset(y, 0, 512)
    yield x, y
    acl.free(x)
    acl.free(y)


def test_it_says_what_it_is(acl: Acl) -> None:
    assert acl.soc_name().startswith("Ascend")


def test_memory_comes_back_as_it_went(acl: Acl) -> None:
    data = np.random.default_rng(0).integers(0, 256, 4096, dtype=np.uint8)
    pointer = acl.malloc(data.nbytes)
    acl.memcpy_h2d(pointer, data)
    back = np.empty_like(data)
    acl.memcpy_d2h(back, pointer)
    np.testing.assert_array_equal(back, data)
    np.testing.assert_array_equal(acl.bytes_at(pointer, 4096), data)
    acl.free(pointer)


@pytest.mark.parametrize("blocks", [1, 8])
def test_a_kernel_computes_and_takes_time(acl: Acl, binary: bytes, pair: tuple[int, int], blocks: int) -> None:
    x, y = pair
    with acl.load(binary) as module:
        stream, start, end = acl.stream(), acl.create_event(), acl.create_event()
        acl.record(start, stream)
        arguments = [x, y, ctypes.c_uint32(128), ctypes.c_float(3)]
        acl.launch(module.function("scale"), blocks, arguments, stream)
        acl.record(end, stream)
        acl.synchronize(stream)
        assert acl.elapsed_us(start, end) > 0
        result = np.empty(128, np.float32)
        acl.memcpy_d2h(result, y)
        np.testing.assert_array_equal(result, np.arange(128, dtype=np.float32) * 3)
        acl.destroy_event(start)
        acl.destroy_event(end)
        acl.destroy_stream(stream)


def test_what_does_not_compile_has_the_users_line(acl: Acl) -> None:
    with pytest.raises(KernelCompileError) as error:
        acl.compile(SOURCE.replace("to.SetValue", "to.NoSuchCall"), "scale.cpp", ["--npu-arch=dav-2201"])
    assert "scale.cpp:9" in str(error.value)


def test_what_is_not_there_is_an_error(acl: Acl, binary: bytes) -> None:
    with acl.load(binary) as module, pytest.raises(DeviceError):
        module.function("no_such_kernel")
    with pytest.raises(DeviceError):
        acl.load(b"not a kernel")
