"""IterateAll to the Unified Buffer: all of C as it lies in global memory, and what orders it."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cube_tiling import CubeTiling
from test_cube import default_options, device, launch

from ascendopt_tune.device.acl import Binary

__all__ = ["default_options"]
SOURCE = Path(__file__).resolve().parent / "kernels" / "matmul_all_local.cpp"


@cache
def kernels() -> Binary:
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


def tiling(m: int, n: int, k: int) -> CubeTiling:
    return CubeTiling(usedCoreNum=1, M=m, N=n, Ka=k, Kb=k, singleCoreM=m, singleCoreN=n, singleCoreK=k, baseM=32,
                      baseN=48, baseK=32, depthA1=1, depthB1=1, stepM=1, stepN=1, stepKa=1, stepKb=1, dbL0A=2, dbL0B=2,
                      dbL0C=1)  # fmt: skip


@pytest.mark.parametrize(("m", "n", "k"), [(32, 48, 32), (70, 112, 50), (33, 160, 64)])
@pytest.mark.parametrize(("kernel", "dtype"), [("in_half", np.float16), ("in_float", np.float32)])
def test_all_of_c_comes(kernel: str, dtype: type, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(m)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (n, k)))
    out = np.zeros((m, n), dtype)
    report = launch(kernel, [a, b], out, tiling(m, n, k), ctypes.c_uint32(1), binary=kernels())
    exact = 2 * (a.astype(np.float64) @ b.astype(np.float64).T)
    step = 2e-3 if dtype is np.float16 else 1e-5
    np.testing.assert_allclose(out.astype(np.float64), exact, rtol=step, atol=step * np.abs(exact).max())
    assert not report["hazards"], report["hazards"][:1]
    assert not report["unwritten"], report["unwritten"][:1]


def test_v_has_to_be_through_with_the_buffer() -> None:
    a = b = np.ones((32, 32), np.float16)
    out = np.zeros((32, 32), np.float32)
    report = launch("in_float", [a, b], out, tiling(32, 32, 32), ctypes.c_uint32(0), binary=kernels())
    assert any("V_MTE2" in h["missing"] for h in report["hazards"]), report["hazards"]
