"""A Matmul's calls order what CANN's client orders, no more: kernels that rely on more are found, their twins are not.

What the client orders stands in asc-devkit (matmul_client.h, dav_c220/kfc/kfc_comm_client.h): a message goes out by
MTE3 behind all that MTE3 has done, the scalar unit waits for its answer, and V waits for a block that was brought.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cube_tiling import CubeTiling
from test_cube import default_options, device, launch

from ascendopt_tune.device.acl import Binary
from ascendopt_tune.errors import DeviceError

__all__ = ["default_options"]
SOURCE = Path(__file__).resolve().parent / "kernels" / "matmul_order.cpp"
SIDE = 32
T = CubeTiling(usedCoreNum=1, M=SIDE, N=SIDE, Ka=SIDE, Kb=SIDE, singleCoreM=SIDE, singleCoreN=SIDE, singleCoreK=SIDE,
               baseM=SIDE, baseN=SIDE, baseK=SIDE, depthA1=1, depthB1=1, stepM=1, stepN=1, stepKa=1, stepKb=1, dbL0A=2,
               dbL0B=2, dbL0C=1)  # fmt: skip


@cache
def kernels() -> Binary:
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


def operands() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((SIDE, SIDE)).astype(np.float16) for _ in range(2))
    return a, b


def found(report: dict[str, Any]) -> set[str]:
    return {h["missing"] for h in report["hazards"]}


@pytest.mark.parametrize("ordered", [0, 1])
@pytest.mark.parametrize(
    ("way", "missing"),
    [(1, "V_MTE2"), (2, None), (3, "MTE3_MTE2"), (4, "MTE2_V"), (5, "MTE2_V"), (6, None), (7, "MTE2_V")],
    ids=[
        "V",
        "MTE3 before the message",
        "MTE3 behind it",
        "nobody waits",
        "MTE2 before the message",
        "to both",
        "where it lies",
    ],
)
def test_a_block_comes_when_the_kernel_says(way: int, missing: str | None, ordered: int) -> None:
    a, b = operands()
    out, scratch = np.zeros((SIDE, SIDE), np.float32), np.zeros(SIDE * SIDE, np.float32)
    report = launch("beside", [a, b, scratch, scratch.copy()], out, T, ctypes.c_uint32(way), ctypes.c_uint32(ordered),
                    binary=kernels())  # fmt: skip
    np.testing.assert_allclose(out, a.astype(np.float64) @ b.astype(np.float64) + 1, atol=1e-4)
    if missing is None or ordered:
        assert not report["hazards"], report["hazards"][:1]
    else:
        assert any(missing in m for m in found(report)), found(report)


@pytest.mark.parametrize("ordered", [0, 1])
def test_what_is_set_is_with_the_cube_core(ordered: int) -> None:
    a, b = operands()
    bias = np.arange(SIDE, dtype=np.float32)
    t = CubeTiling.from_buffer_copy(T)
    t.isBias = 1
    out, second, acl = np.zeros((SIDE, SIDE), np.float32), np.zeros((SIDE, SIDE), np.float32), device()
    arrays = [a, b, bias, second, out]
    pointers = [acl.malloc(x.nbytes) for x in arrays]
    for p, x in zip(pointers, arrays, strict=True):
        acl.memcpy_h2d(p, x.view(np.uint8))
    acl.launch(kernels().function("set_early"), 1, [*pointers, t, ctypes.c_uint32(ordered)])
    acl.synchronize()
    report = acl.report()
    acl.memcpy_d2h(second.view(np.uint8), pointers[3])
    acl.memcpy_d2h(out.view(np.uint8), pointers[4])
    for p in pointers:
        acl.free(p)
    exact = (a + np.float16(1)).astype(np.float64) @ b.astype(np.float64) + bias
    np.testing.assert_allclose(out, exact, atol=1e-3)
    np.testing.assert_allclose(second, np.full((SIDE, SIDE), 2.0) @ b.astype(np.float64), atol=1e-3)
    assert ordered == (not report["hazards"])
    if not ordered:
        assert any("MTE3_V" in m for m in found(report)), found(report)


@pytest.mark.parametrize("awaited", [0, 1, 2], ids=["both", "the other one", "the one that is read"])
def test_each_object_is_answered(awaited: int) -> None:
    rng = np.random.default_rng(awaited)
    m, n = 128, 160  # two results of 80 KB: objects share L0C
    t = CubeTiling.from_buffer_copy(T)
    t.M = t.singleCoreM = t.baseM = m
    t.N = t.singleCoreN = t.baseN = n
    a, b = rng.standard_normal((2, m, SIDE)).astype(np.float16), rng.standard_normal((SIDE, n)).astype(np.float16)
    first, second, out = (np.zeros(m * n, np.float32) for _ in range(3))
    report = launch("two_ahead", [a, b, first, second], out, t, ctypes.c_uint32(awaited), binary=kernels())
    exact = a[1].astype(np.float64) @ b.astype(np.float64)
    assert bool(report["hazards"]) == (awaited == 1), report["hazards"][:1]
    if awaited != 1:
        np.testing.assert_allclose(out[: SIDE * SIDE], exact.reshape(-1)[: SIDE * SIDE], atol=1e-4)


def test_a_tensor_has_what_the_product_takes() -> None:
    a, b = operands()
    with pytest.raises(DeviceError, match="fewer elements than the matrix"):
        launch("too_few", [a, b], np.zeros((SIDE, SIDE), np.float32), T, binary=kernels())
