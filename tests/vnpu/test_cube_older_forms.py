"""What older kernels of cube cores say in other words, and how a program's kinds of cores are told by what it asks."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from test_cube import clean, default_options, device, launch

from ascendopt_tune.device.acl import Binary
from ascendopt_tune.errors import DeviceError, KernelCompileError

__all__ = ["default_options"]
SOURCE = Path(__file__).resolve().parent / "kernels" / "older_forms.cpp"
Array = np.ndarray[Any, Any]
QUANT = {"none": 0, "half": 1, "bfloat16": 2, "words": 4}


class FormCase(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint32) for n in ("m", "n", "k", "rows", "relu", "quant")]


@cache
def kernels() -> Binary:
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


def tiles(x: Array, width: int) -> Array:
    """Rows in tiles of 16 x ``width``, one column of tiles after the other; rows that are missing are zeros."""
    rows = -(-x.shape[0] // 16) * 16
    whole = np.zeros((rows, x.shape[1]), x.dtype)
    whole[: x.shape[0]] = x
    return np.ascontiguousarray(whole.reshape(rows, -1, width).transpose(1, 0, 2))


def run(name: str, x: Array, y: Array, out: Array, quant: str, *, rows: int = 1, relu: int = 0,
        words: Array | None = None) -> dict[str, Any]:  # fmt: skip
    width = 32 // x.itemsize
    case = FormCase(x.shape[0], y.shape[1], x.shape[1], rows, relu, QUANT[quant])
    inputs = [tiles(x, width), tiles(np.ascontiguousarray(y.T), width)]
    return launch(name, [*inputs, np.zeros(1, np.uint64) if words is None else words], out, case, binary=kernels())


@pytest.mark.parametrize("relu", [0, 1])
@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 16), (48, 32, 64), (20, 48, 32)])
def test_rows_leave_by_fixpipe_params(m: int, n: int, k: int, relu: int) -> None:
    rng = np.random.default_rng(m)
    x, y = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)
    out = np.zeros((m, n), np.float32)
    clean(run("halves", x, y, out, "none", relu=relu))
    exact = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_allclose(out, np.maximum(exact, 0) if relu else exact, atol=1e-4)


def test_tiles_leave_by_fixpipe_params() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((32, 32)).astype(np.float16), rng.standard_normal((32, 48)).astype(np.float16)
    out = np.zeros((3, 32, 16), np.float32)
    clean(run("halves", x, y, out, "none", rows=0))
    exact = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_allclose(out, exact.reshape(32, 3, 16).transpose(1, 0, 2), atol=1e-4)


def test_tiles_of_a_narrower_type_lie_closer() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((32, 32)).astype(np.float16), rng.standard_normal((32, 48)).astype(np.float16)
    out = np.zeros((3, 32, 16), np.float16)
    clean(run("to_half", x, y, out, "half", rows=0))
    exact = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_allclose(out, exact.reshape(32, 3, 16).transpose(1, 0, 2), rtol=1e-3, atol=1e-3)


def test_the_compilers_own_name_of_bfloat16() -> None:
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal(s).astype(ml_dtypes.bfloat16) for s in ((32, 48), (48, 16)))
    out = np.zeros((32, 16), ml_dtypes.bfloat16)
    clean(run("brains", x, y, out, "bfloat16"))
    exact = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_allclose(out.astype(np.float64), exact, rtol=1e-2, atol=1e-2)


def test_a_word_for_each_column() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.integers(-9, 10, (32, 64)).astype(np.int8), rng.integers(-9, 10, (64, 48)).astype(np.int8)
    scales = 2.0 ** rng.integers(-6, 1, 48).astype(np.float32)
    out = np.zeros((32, 48), np.float16)
    clean(run("bytes", x, y, out, "words", words=scales.view(np.uint32).astype(np.uint64)))
    np.testing.assert_allclose(out, (x.astype(np.float64) @ y.astype(np.float64)) * scales, rtol=1e-3)


def test_rows_want_the_number_of_columns() -> None:
    x = np.zeros((16, 16), np.float16)
    with pytest.raises(DeviceError, match="originalNSize is 0"):
        run("halves", x, x, np.zeros((16, 16), np.float32), "none", rows=2)


@pytest.mark.parametrize(
    ("to_l0c", "message"), [(0, "from L0C to the Unified Buffer there is no way"), (1, "to L0C: not covered")]
)
def test_copies_that_are_not_there(to_l0c: int, message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        launch("no_way", [], np.zeros(8, np.float32), ctypes.c_uint32(to_l0c), binary=kernels())


APART = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void apart(GM_ADDR x, GM_ADDR y) {
  %s
  GlobalTensor<float> gx, gy;
  gx.SetGlobalBuffer((__gm__ float*)x);
  gy.SetGlobalBuffer((__gm__ float*)y);
#ifdef __DAV_C220_CUBE__
  LocalTensor<half> a(TPosition::A2, 0, 256), b(TPosition::B2, 0, 256), from(TPosition::A1, 0, 512);
  LocalTensor<float> c(TPosition::CO1, 0, 256);
  Fill(from, InitConstValueParams<half>(1, 16, 0, half(1)));
  SetFlag<HardEvent::MTE2_MTE1>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_MTE1>(EVENT_ID0);
  LoadData2DParams one;
  one.repeatTimes = 1;
  LoadData(a, from, one);
  LoadData(b, from, one);
  SetFlag<HardEvent::MTE1_M>(EVENT_ID0);
  WaitFlag<HardEvent::MTE1_M>(EVENT_ID0);
  Mmad(c, a, b, {16, 16, 16, false, 0, false, false, false});
  SetFlag<HardEvent::M_FIX>(EVENT_ID0);
  WaitFlag<HardEvent::M_FIX>(EVENT_ID0);
  Fixpipe(gx, c, FixpipeParamsV220(16, 16, 16, 16, false));
  SetLoadDataPaddingValue<uint64_t>(0);  // wider than what is kept of it
  %s;
#else
  CrossCoreWaitFlag(0);
  if (GetSubBlockIdx() == 0) {
    LocalTensor<float> u(TPosition::VECCALC, 0, 256);
    DataCopy(u, gx, 256);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    Adds(u, u, 1.0f, 256);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopy(gy, u, 256);
  }
#endif
}
"""


@pytest.mark.parametrize(
    "send", ["CrossCoreSetFlag<2, PIPE_FIX>(0)", "ffts_cross_core_sync(PIPE_FIX, 1 | 2 << 4 | 0 << 8)"]
)
def test_a_program_that_multiplies_where_it_asks_for_cube_cores_runs_on_both_kinds(send: str) -> None:
    binary = device().load(device().compile(APART % ("", send), "apart.cpp", ["--cce-auto-sync=off"]))
    x, out = np.zeros(256, np.float32), np.zeros(256, np.float32)
    clean(launch("apart", [x], out, binary=binary))
    assert (out == 17).all()


def test_but_not_where_it_says_what_it_is_for() -> None:
    said = APART % ("KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);", "")
    binary = device().load(device().compile(said, "apart.cpp", ["--cce-auto-sync=off"]))
    with pytest.raises(DeviceError, match="the core would wait for ever"):
        launch("apart", [np.zeros(256, np.float32)], np.zeros(256, np.float32), binary=binary)


ONE_OF_EACH = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void one_of_each(GM_ADDR y) {
  if ASCEND_IS_AIC {  // for the compiler's sake alone
    mad((__cc__ float*)0, (__ca__ float*)0, (__cb__ float*)0, 32, 32, 32, 0x0, false, false, true);
  }
  if ASCEND_IS_AIV {
    GlobalTensor<float> out;
    out.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y) + GetBlockIdx() * 8, 8);
    LocalTensor<float> number(TPosition::VECCALC, 0, 8);
    Duplicate(number, float(GetBlockIdx() + 1), 8);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopy(out, number, 8);
  }
}
"""


def test_a_program_with_the_compilers_own_product_runs_on_both_kinds() -> None:
    """ops-transformer's mamba2_causal_conv1d, whose work is all the vector cores'."""
    binary = device().load(device().compile(ONE_OF_EACH, "one_of_each.cpp", ["--cce-auto-sync=off"]))
    out = np.zeros((2, 8), np.float32)
    launch("one_of_each", [], out, binary=binary)
    np.testing.assert_array_equal(out, [[1] * 8, [2] * 8])


BOTH_FILL = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void both(GM_ADDR y) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
  LocalTensor<float> u(TPosition::VECCALC, 0, 64);
  Duplicate(u, 3.0f, 64);
  PipeBarrier<PIPE_V>();
  if ASCEND_IS_AIV {
    if (GetSubBlockIdx() == 1) return;
    GlobalTensor<float> gy;
    gy.SetGlobalBuffer((__gm__ float*)y);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopy(gy, u, 64);
  }
}
"""


def test_what_both_kinds_fill_is_filled_on_vector_cores() -> None:
    binary = device().load(device().compile(BOTH_FILL, "both.cpp", ["--cce-auto-sync=off"]))
    out = np.zeros(64, np.float32)
    clean(launch("both", [], out, binary=binary))
    assert (out == 3).all()


ADDED = """
#include "kernel_operator.h"
using namespace AscendC;
static_assert(sizeof(AscendC::fp8_e8m0_t) == 1, "a type of other models has a name");
static_assert(AscendC::INVALID_TEVENTID == -1, "no event");
inline __gm__ struct OpSystemRunCfg g_opSystemRunCfg{0};
template <typename T>
__aicore__ void asked(T n) {
  ASCENDC_ASSERT(n < what_is_nowhere, { KERNEL_LOG(KERNEL_ERROR, "%d", n); });
}
extern "C" __global__ __aicore__ void added(GM_ADDR y) {
  LocalTensor<float> u(TPosition::VECCALC, 0, 64);
  GlobalTensor<float> gy;
  gy.SetGlobalBuffer((__gm__ float*)y);
  asked(1);
  Duplicate(u, 3.0f, 64);
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(gy, u, 64);
  PipeBarrier<PIPE_MTE3>();
  SetAtomicAdd<float>();
  DataCopy(gy, u, 64);
  set_atomic_none();
  PipeBarrier<PIPE_MTE3>();
  DataCopy(gy, u, 32);
}
"""


def test_the_instruction_that_ends_atomic_additions() -> None:
    binary = device().load(device().compile(ADDED, "added.cpp", ["--cce-auto-sync=off"]))
    out = np.zeros(64, np.float32)
    clean(launch("added", [], out, binary=binary))
    assert out.tolist() == [3] * 32 + [6] * 32


def test_instructions_of_the_compiler_are_called_that() -> None:
    body = '#include "kernel_operator.h"\nextern "C" __global__ __cube__ void k(GM_ADDR x) { %s }'
    with pytest.raises(KernelCompileError) as error:
        device().compile(body % "load_gm_to_cbuf((__cbuf__ void*)0, x, 0, 1, 1, 0, 0); vsel(0);", "k.cpp")
    assert "instructions of CANN's own compiler (load_gm_to_cbuf, vsel) are not covered" in error.value.log
