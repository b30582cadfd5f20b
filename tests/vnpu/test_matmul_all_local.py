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
from ascendopt_tune.errors import DeviceError

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


def test_tilings_may_be_restricted_pointers() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((48, 32)).astype(np.float16) for _ in range(2))
    out = np.zeros((2, 48, 48), np.float32)
    report = launch("restricted", [a, b], out, tiling(48, 48, 32), binary=kernels())
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_allclose(out, np.stack([exact, exact.T]), atol=1e-4)
    assert not report["hazards"], report["hazards"][:1]


def test_vector_cores_that_share_a_and_b_ask_for_one_product() -> None:
    """IBSHARE of both: the first one's call is the group's, and both may wait for it."""
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal((64, 32)).astype(np.float16) for _ in range(2))
    made, out = np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32)
    t, waits = tiling(64, 64, 32), ctypes.c_uint32(1)
    report = launch("shared", [a, b, made], out, t, waits, binary=kernels())
    np.testing.assert_allclose(out, a.astype(np.float64) @ b.astype(np.float64).T, atol=1e-4)
    assert not report["hazards"], report["hazards"][:1]
    twice = launch("not_shared", [a, b, made], out, t, waits, binary=kernels())
    assert twice["profile"]["aic_mac_time_us"] == pytest.approx(2 * report["profile"]["aic_mac_time_us"], rel=0.01)
    # the second product goes where the first one is being read
    assert any("CrossCore" in h["missing"] for h in twice["hazards"])


def test_each_vector_core_that_shares_has_to_wait() -> None:
    a = b = np.ones((64, 32), np.float16)
    made, out = np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32)
    report = launch("shared", [a, b, made], out, tiling(64, 64, 32), ctypes.c_uint32(0), binary=kernels())
    assert any("CrossCore" in h["missing"] for h in report["hazards"]), report["hazards"]


def test_shared_products_are_asked_for_as_a_whole() -> None:
    a = b = np.ones((32, 32), np.float16)
    with pytest.raises(DeviceError, match="IBSHARE of A and B"):
        launch("shared_block", [a, b], np.zeros((32, 32), np.float32), tiling(32, 32, 32), binary=kernels())
