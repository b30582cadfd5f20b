"""What kernels of people outside say in words of CANN's compiler and inner headers, against numpy."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_cube import clean, default_options, device, launch

from ascendopt_tune.device.acl import Binary
from ascendopt_tune.errors import DeviceError, KernelCompileError

__all__ = ["default_options"]
SOURCE = Path(__file__).resolve().parent / "kernels" / "outside_forms.cpp"


@cache
def kernels() -> Binary:
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


def test_vector_instructions_heed_the_mask_and_take_numbers_as_addresses() -> None:
    x = np.random.default_rng(0).uniform(0.5, 3, 512).astype(np.float32) * np.where(np.arange(512) % 3, 1, -1)
    x = x.astype(np.float32)
    out = np.zeros(512 + 512 + 72, np.float32)
    clean(launch("instructions", [x], out, binary=kernels()))
    np.testing.assert_allclose(out[:512], np.exp(np.maximum(x, 0) * 2 + x) / x, rtol=1e-5)
    np.testing.assert_array_equal(out[512:1024], x.astype(np.float16))
    np.testing.assert_array_equal(out[1024:1088], x.reshape(64, 8).max(1))
    np.testing.assert_array_equal(out[1088:], x.reshape(8, 64).min(1))


@pytest.mark.parametrize("placed", [0, 1], ids=["what nobody has placed", "mad"])
@pytest.mark.parametrize("side", [16, 48])
def test_cube_instructions(side: int, placed: int) -> None:
    rng = np.random.default_rng(side)
    a, b = (rng.standard_normal((side, side)).astype(np.float16) for _ in range(2))
    out = np.zeros((side, side), np.float32)
    clean(launch("cubes", [a, b], out, ctypes.c_uint32(side), ctypes.c_uint32(placed), binary=kernels()))
    np.testing.assert_allclose(out, a.astype(np.float64) @ b.astype(np.float64), atol=1e-4)


def test_what_nobody_has_placed_begins_at_byte_0() -> None:
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    clean(launch("unplaced", [x], out, ctypes.c_uint32(64), binary=kernels()))
    np.testing.assert_array_equal(out, x + 1)


class DropCase(ctypes.Structure):
    _fields_ = [*((n, ctypes.c_uint32) for n in ("rows", "columns", "mask", "mode", "half_type", "work")),
                ("keep", ctypes.c_float), ("prepared", ctypes.c_uint32)]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize(
    ("columns", "mask", "mode", "work"),
    [(64, 64, 0, 4096), (64, 64, 0, 512), (64, 96, 0, 4096), (256, 32, 0, 256), (256, 64, 4, 256)],
    ids=["bytes", "bytes, piece by piece", "bytes with gaps", "bits", "bits with gaps"],
)
def test_drop_out(dtype: type, columns: int, mask: int, mode: int, work: int) -> None:
    rows, rng = 8, np.random.default_rng(columns + mask)
    x, kept = rng.standard_normal((rows, columns)).astype(dtype), rng.random((rows, columns)) < 0.6
    as_bits = columns > mask
    packed = np.packbits(kept, axis=1, bitorder="little") if as_bits else kept.astype(np.uint8)
    given = np.full((rows, mask), 77, np.uint8)
    given[:, : packed.shape[1]] = packed
    out = np.zeros((rows, columns), dtype)
    case = DropCase(rows, columns, mask, mode, dtype is np.float16, work, 0.75)
    clean(launch("drop_out", [x, given], out, case, binary=kernels()))
    exact = np.where(kept, x.astype(np.float64) / 0.75, 0)
    np.testing.assert_allclose(out.astype(np.float64), exact, rtol=2e-3 if dtype is np.float16 else 1e-6)


@pytest.mark.parametrize("prepared", [1, 2], ids=["in a buffer", "behind all buffers"])
def test_drop_out_whose_registers_the_kernel_sets(prepared: int) -> None:
    rng = np.random.default_rng(prepared)
    x, kept = rng.standard_normal((8, 256)).astype(np.float32), rng.random((8, 256)) < 0.6
    out = np.zeros((8, 256), np.float32)
    case = DropCase(8, 256, 32, 0, 0, 256, 0.75, prepared)
    clean(launch("drop_out", [x, np.packbits(kept, axis=1, bitorder="little")], out, case, binary=kernels()))
    np.testing.assert_allclose(out, np.where(kept, x.astype(np.float64) / 0.75, 0), rtol=1e-6)


def test_drop_out_keeps_a_share() -> None:
    case, x = DropCase(1, 64, 64, 0, 0, 4096, 1.5), np.zeros(64, np.float32)
    with pytest.raises(DeviceError, match="keepProb lies between 0 and 1"):
        launch("drop_out", [x, np.zeros(64, np.uint8)], x.copy(), case, binary=kernels())


UNSAID = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void unsaid(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<half> gx, gy;
  gx.SetGlobalBuffer((__gm__ half*)x);
  gy.SetGlobalBuffer((__gm__ half*)y);
  if ASCEND_IS_AIC {
    LocalTensor<half> l1(TPosition::A1, 0, 256);
    DataCopy(l1, gx, 256);
  }
  %s;
  if ASCEND_IS_AIV {
    LocalTensor<half> u(TPosition::VECCALC, 0, 256);
    if (GetBlockIdx() != 0) return;
    Duplicate(u, half(GetSubBlockNum()), 256);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopy(gy, u, 256);
  }
}
"""
RAISED = """if ASCEND_IS_AIC ffts_cross_core_sync(PIPE_MTE2, 0x321);
  if ASCEND_IS_AIV wait_flag_dev(3)"""


@pytest.mark.parametrize("said", ["SyncAll<false>()", "AscendC::SyncAll< false >()", RAISED, "SyncAll()"])
def test_who_meets_both_kinds_of_cores_is_for_both(said: str) -> None:
    text = UNSAID % (said if said != "SyncAll()" else "if ASCEND_IS_AIV SyncAll()")
    binary = device().load(device().compile(text, "unsaid.cpp", ["--cce-auto-sync=off"]))
    x, out = np.zeros(256, np.float16), np.zeros(256, np.float16)
    report: dict[str, Any] = launch("unsaid", [x], out, binary=binary)
    assert (out == (2 if said != "SyncAll()" else 1)).all()
    assert not report["hazards"]


LATER = """
#include "kernel_operator.h"
using namespace AscendC;
enum class Kind : uint32_t { FEW = 3 };
struct Held {
  uint32_t first(Kind k) { return uint32_t(k); }
  static constexpr uint32_t Kind = 4;  // another thing than it was
};
extern "C" __global__ __vector__ void later(GM_ADDR y) {
  GlobalTensor<uint32_t> to;
  to.SetGlobalBuffer((__gm__ uint32_t*)y);
  to.SetValue(0, Held().first(Kind::FEW) + Held::Kind%s);
  DataCacheCleanAndInvalid<uint32_t, CacheLine::SINGLE_CACHE_LINE>(to);
}
"""


def test_a_name_that_means_something_else_behind_its_first_use() -> None:
    """The device's compiler takes it, g++ before version 13 has no option for it."""
    out = np.zeros(16, np.uint32)
    launch("later", [], out, binary=device().load(device().compile(LATER % "", "later.cpp", [])))
    assert out[0] == 7
    with pytest.raises(KernelCompileError) as refused:
        device().compile(LATER % " + nowhere", "later.cpp", [])
    assert "nowhere" in refused.value.log


POINTS = """
#include "kernel_operator.h"
using namespace AscendC;
class Held {
 public:
  __aicore__ inline Held() {}
  __aicore__ inline void Init(const GM_ADDR x) { from_ = x; }
  __aicore__ inline uint32_t First() { return ((const __gm__ uint32_t*)from_)[0]; }

 private:
  const GM_ADDR from_;
};
extern "C" __global__ __vector__ void points(GM_ADDR x, GM_ADDR y) {
  Held held;
  held.Init(x);
  GlobalTensor<uint32_t> to;
  to.SetGlobalBuffer((__gm__ uint32_t*)y);
  to.SetValue(0, held.First() + 1);
  DataCacheCleanAndInvalid<uint32_t, CacheLine::SINGLE_CACHE_LINE>(to);
}
"""


def test_a_constant_address_points_to_constant_bytes() -> None:
    """GM_ADDR is a macro: the member itself may change, and needs no value from the constructor."""
    out = np.zeros(16, np.uint32)
    binary = device().load(device().compile(POINTS, "points.cpp", []))
    launch("points", [np.full(16, 6, np.uint32)], out, binary=binary)
    assert out[0] == 7
