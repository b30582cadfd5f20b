"""What CANN's cube operators needed to run: a configuration of LoadData that is a function's own, unit flags by their
names, cores that a MatmulImpl asks for, empty lists of tensors, and functions of CANN's unpublished library."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from test_cube import launch
from test_mixed import default_options, device

from ascendopt_tune.build import toolkit
from ascendopt_tune.device.launch import list_descriptor
from ascendopt_tune.errors import DeviceError

__all__ = ["default_options"]
# As in mhc_pre_sinkhorn: where the function is a class template's, g++ 12 ends in an internal error.
LOADS = """\
#include "kernel_operator.h"
using namespace AscendC;
template <typename T, int N>
struct Loads {
  LocalTensor<float> to, from;
  __aicore__ inline void Go();
};
template <typename T, int N>
__aicore__ inline void Loads<T, N>::Go() {
  static constexpr IsResetLoad3dConfig CONFIG = {true, false};
  LoadData3DParamsV2<float> params;
  LoadData<float, CONFIG>(to[N], from[N], params);
  MmadParams product;
  product.unitFlag = N > 0 ? UFMode3 : UFMode2;
}
extern "C" __global__ __aicore__ void loads(GM_ADDR x) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
  TPipe pipe;
  TBuf<TPosition::A1> l1;
  TBuf<TPosition::A2> l0;
  pipe.InitBuffer(l1, 1024);
  pipe.InitBuffer(l0, 1024);
  Loads<float, 0> op;
  op.from = l1.Get<float>();
  op.to = l0.Get<float>();
  if (x == nullptr) op.Go();
}
"""


def test_a_configuration_of_a_function() -> None:
    acl = device()
    assert acl.load(acl.compile(LOADS, "loads.cpp", [])).function("loads")


def test_an_empty_list_has_a_description() -> None:
    assert list_descriptor([], []) == (8).to_bytes(8, "little")


@pytest.mark.parametrize("name", ["LegacyTilingPrepareForOpCache", "LegacyTilingParsePrepareForOpCache"])
def test_the_cache_of_tilings_is_prepared(name: str) -> None:
    library = ctypes.CDLL(str(toolkit.virtual().lib64 / "libvnpu_host.so"))
    function = getattr(library, name)
    function.restype = ctypes.c_bool
    assert function(None) is True


MULTIPLIES = """\
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
using Matrix = matmul::MatmulType<TPosition::GM, CubeFormat::ND, half>;
extern "C" __global__ __aicore__ void multiplies(GM_ADDR x) {
  matmul::MatmulImpl<Matrix, Matrix, Matrix, Matrix> product;
  if ASCEND_IS_AIV {
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 256);
  }
}
"""


def test_a_matmul_impl_asks_for_groups() -> None:
    acl = device()
    acl.launch(acl.load(acl.compile(MULTIPLIES, "multiplies.cpp", [])).function("multiplies"), 1, [0])
    acl.synchronize()
    assert acl.report()["profile"]["vectors_per_block"] == 2


# cann-ops' batch_mat_mul_v3 sets the order of a product's tiles by the register's bit; ops-nn's asks for L0C's size.
CONTROL = """\
#include "kernel_operator.h"
#define ASCENDC_CUBE_ONLY
#include "lib/matmul_intf.h"
using namespace AscendC;
static_assert(ToMatmulConfig(CFG_MDL).doMultiDataLoad && TOTAL_L0C_SIZE == 128 * 1024);
extern "C" __global__ __cube__ void control(GM_ADDR out, uint64_t bit) {
  GlobalTensor<uint64_t> word;
  word.SetGlobalBuffer(reinterpret_cast<__gm__ uint64_t*>(out));
  SetHF32Mode(true);
  SetMMRowMajor();
  word.SetValue(0, static_cast<uint64_t>(get_ctrl()));
  set_ctrl(sbitset0(get_ctrl(), 46));
  set_ctrl(sbitset1(get_ctrl(), bit));
  word.SetValue(1, static_cast<uint64_t>(get_ctrl()));
  SetMMColumnMajor();
  word.SetValue(2, static_cast<uint64_t>(get_ctrl()));
}
"""


def test_the_control_register_by_its_bits() -> None:
    acl, words = device(), np.zeros(4, np.uint64)
    binary = acl.load(acl.compile(CONTROL, "control.cpp", []))
    launch("control", [], words, ctypes.c_uint64(47), binary=binary)
    infinities = 1 << 48  # which stay what they are, always
    assert words.tolist() == [1 << 46 | 1 << 51 | infinities, 1 << 47 | 1 << 51 | infinities, 1 << 47 | infinities, 0]
    with pytest.raises(DeviceError, match="CTRL with other bits"):
        launch("control", [], words, ctypes.c_uint64(60), binary=binary)
