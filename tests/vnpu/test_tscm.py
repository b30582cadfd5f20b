"""Matrices of vector cores in TSCM, which is their cube core's L1."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cube_tiling import CubeTiling
from test_cube import clean, default_options, device, launch

from ascendopt_tune.device.acl import Binary
from ascendopt_tune.errors import DeviceError

__all__ = ["default_options"]
SOURCE = Path(__file__).resolve().parent / "kernels" / "tscm.cpp"
M, N, K = 32, 48, 64
Array = np.ndarray[Any, Any]


@cache
def kernels() -> Binary:
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


def tiling(m: int = M, n: int = N, k: int = K, **more: int) -> CubeTiling:
    parts = {"baseM": 32, "baseN": 48, "baseK": 32, "depthA1": 1, "depthB1": 1}
    return CubeTiling(usedCoreNum=1, M=m, N=n, Ka=k, Kb=k, singleCoreM=m, singleCoreN=n, singleCoreK=k, stepM=1,
                      stepN=1, stepKa=1, stepKb=1, dbL0A=2, dbL0B=2, dbL0C=1, **(parts | more))  # fmt: skip


def halves(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float16)


def tiles(a: Array) -> Array:
    """Columns of 16 elements, one behind the other."""
    return np.ascontiguousarray(a.reshape(*a.shape[:-1], -1, 16).swapaxes(-3, -2))


@pytest.mark.parametrize("way", [0, 1], ids=["tiles", "rows"])
@pytest.mark.parametrize("times", [1, 3])
def test_the_cube_core_copies_what_its_vector_cores_ask_for(way: int, times: int) -> None:
    a, b, out = halves(2 * times, M, K), halves(K, N), np.zeros((2 * times, M, N), np.float32)
    report = launch("from_gm", [a if way else tiles(a), b], out, tiling(), *map(ctypes.c_uint32, (way, times, 1)),
                    binary=kernels())  # fmt: skip
    np.testing.assert_allclose(out, a.astype(np.float64) @ b.astype(np.float64), atol=1e-4)
    clean(report)
    assert not report["relies_on"]  # the buffers are in its cube core's L1, which is large enough
    assert report["profile"]["aic_mte2_time_us"] > 0


def test_a_buffer_has_to_be_read_before_the_next_matrix_comes() -> None:
    a, b, out = halves(4, M, K), halves(K, N), np.zeros((4, M, N), np.float32)
    report = launch("from_gm", [a, b], out, tiling(), *map(ctypes.c_uint32, (1, 2, 0)), binary=kernels())
    told = {(h["first"]["pipe"], h["second"]["pipe"], h["memory"]) for h in report["hazards"]}
    assert ("MTE1", "MTE2", "L1") in told


@pytest.mark.parametrize("way", [0, 1], ids=["tiles", "rows"])
def test_from_the_unified_buffer_by_way_of_global_memory(way: int) -> None:
    a, b, out = halves(M, K), halves(K, N), np.zeros((M, N), np.float32)
    report = launch("from_ub", [a if way else tiles(a), b], out, tiling(), ctypes.c_uint32(way), binary=kernels())
    np.testing.assert_allclose(out, 2 * (a.astype(np.float64) @ b.astype(np.float64)), atol=1e-4)
    clean(report)


def test_somebody_has_to_serve() -> None:
    with pytest.raises(DeviceError, match="REGIST_MATMUL_OBJ of the virtual NPU's own Matmul has to come first"):
        launch("without_object", [], halves(512), binary=kernels())


def test_it_grows_towards_what_the_cube_core_holds() -> None:
    large = tiling(n=512, k=512, baseN=256, baseK=128, depthB1=4)
    with pytest.raises(
        DeviceError, match=r"begins at byte 114688 of L1, where the first \d+ bytes are the cube core's"
    ):
        launch("too_much", [halves(512), halves(512, 512)], np.zeros((M, 512), np.float32), large, binary=kernels())
