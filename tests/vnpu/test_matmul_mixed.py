"""Matmul objects of vector cores, whose products the cube core of their group makes."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cube_tiling import CubeTiling
from test_cube import default_options, device

from ascendopt_tune.device.acl import Binary

__all__ = ["default_options"]
SOURCE = Path(__file__).resolve().parent / "kernels" / "matmul_mixed.cpp"


@cache
def kernels() -> Binary:
    acl = device()
    return acl.load(acl.compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


@pytest.mark.parametrize("way", range(4), ids=["block by block", "ahead", "all", "all, waited for later"])
@pytest.mark.parametrize(("kernel", "dtype", "vectors"), [("relu_1_2", np.float32, 2), ("relu_1_1", np.float16, 1)])
def test_vector_cores_ask_for_products(kernel: str, dtype: type, vectors: int, way: int) -> None:
    m, n, k, blocks = 96 * vectors - 20, 80, 70, 2
    t = CubeTiling(usedCoreNum=2 * vectors, M=m, N=n, Ka=k, Kb=k, singleCoreM=48, singleCoreN=n, singleCoreK=k,
                   baseM=32, baseN=48, baseK=32, depthA1=2, depthB1=2, stepM=1, stepN=1, stepKa=1, stepKb=1, dbL0A=2,
                   dbL0B=2, dbL0C=1, isBias=1)  # fmt: skip
    rng = np.random.default_rng(way)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n)))
    bias = rng.standard_normal(n).astype(np.float32)
    out, workspace = np.zeros((m, n), dtype), np.zeros((2 * vectors, 2 * 48 * n), dtype)
    acl, arrays = device(), [a, b, bias, out, workspace]
    pointers = [acl.malloc(x.nbytes) for x in arrays]
    for p, x in zip(pointers, arrays, strict=True):
        acl.memcpy_h2d(p, x.view(np.uint8))
    acl.launch(kernels().function(kernel), blocks, [*pointers, t, ctypes.c_uint32(way)])
    acl.synchronize()
    acl.memcpy_d2h(out.view(np.uint8), pointers[3])
    for p in pointers:
        acl.free(p)
    report = acl.report()
    exact = np.maximum(a.astype(np.float64) @ b.astype(np.float64) + bias, 0)
    step = 1e-3 if dtype is np.float16 else 1e-5
    np.testing.assert_allclose(out.astype(np.float64), exact, rtol=step, atol=step * np.abs(exact).max())
    assert not report["hazards"], report["hazards"][:1]
    assert not report["unwritten"], report["unwritten"][:1]
    assert report["profile"]["aic_mac_time_us"] > 0


@pytest.mark.parametrize("k", [31, 48])
def test_a_comes_from_the_unified_buffer(k: int) -> None:
    m, n = 31, 20
    t = CubeTiling(usedCoreNum=1, M=m, N=n, Ka=k, Kb=k, singleCoreM=m, singleCoreN=n, singleCoreK=k, baseM=32, baseN=32,
                   baseK=48, depthA1=1, depthB1=1, stepM=1, stepN=1, stepKa=1, stepKb=1, dbL0A=2, dbL0B=2,
                   dbL0C=1)  # fmt: skip
    rng = np.random.default_rng(k)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n)))
    out, acl = np.zeros((m, n), np.float32), device()
    arrays = [a, b, out, np.zeros(64, np.uint8)]
    pointers = [acl.malloc(x.nbytes) for x in arrays]
    for p, x in zip(pointers, arrays, strict=True):
        acl.memcpy_h2d(p, x.view(np.uint8))
    acl.launch(kernels().function("left_in_ub"), 1, [*pointers, t])
    acl.synchronize()
    acl.memcpy_d2h(out.view(np.uint8), pointers[2])
    for p in pointers:
        acl.free(p)
    np.testing.assert_allclose(out, 2 * a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-5)
    assert not acl.report()["hazards"]
