"""C by the kernel's own function: MatmulCallBackFunc, DataCopyOut."""

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
from ascendopt_tune.errors import DeviceError, KernelCompileError

__all__ = ["default_options"]
Array = np.ndarray[Any, Any]
SOURCE = Path(__file__).resolve().parent / "kernels" / "matmul_ways_out.cpp"
AHEAD = 8  # elements


@cache
def kernels() -> Binary:
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


def tiling(m: int, n: int, k: int, base: tuple[int, int], whole_n: int = 0) -> CubeTiling:
    return CubeTiling(usedCoreNum=1, M=m, N=whole_n or n, Ka=k, Kb=k, singleCoreM=m, singleCoreN=n, singleCoreK=k,
                      baseM=base[0], baseN=base[1], baseK=32, depthA1=1, depthB1=1, stepM=1, stepN=1, stepKa=1,
                      stepKb=1, dbL0A=2, dbL0B=2, dbL0C=1)  # fmt: skip


def operands(m: int, n: int, k: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(m)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (n, k)))
    return a, b, a.astype(np.float64) @ b.astype(np.float64).T


@pytest.mark.parametrize(("m", "n", "k"), [(32, 48, 32), (70, 112, 50), (33, 160, 64), (64, 96, 64)])
@pytest.mark.parametrize("kernel", ["own_rows", "own_rows_mdl", "own_rows_unit", "own_rows_added"])
@pytest.mark.parametrize("relu", [0, 1])
def test_rows(kernel: str, m: int, n: int, k: int, relu: int) -> None:
    a, b, exact = operands(m, n, k)
    before = 7.0 if kernel == "own_rows_added" else 0.0
    out = np.full(m * n + AHEAD, 7, np.float32)
    words = ctypes.c_uint32(relu), ctypes.c_uint32(AHEAD)
    report = launch(kernel, [a, b], out, tiling(m, n, k, (32, 48)), *words, binary=kernels())
    wanted = before + (np.maximum(exact, 0) if relu else exact)
    np.testing.assert_allclose(out[AHEAD:].reshape(m, n), wanted, atol=1e-4)
    assert (out[:AHEAD] == 7).all()
    assert not report["hazards"], report["hazards"][:1]


@pytest.mark.parametrize(("m", "n", "k"), [(32, 48, 32), (96, 112, 64)])
def test_tiles(m: int, n: int, k: int) -> None:
    a, b, exact = operands(m, n, k)
    out = np.zeros((n // 16, m, 16), np.float32)
    words = ctypes.c_uint32(0), ctypes.c_uint32(0)
    report = launch("own_tiles", [a, b], out, tiling(m, n, k, (32, 48)), *words, binary=kernels())
    np.testing.assert_allclose(out.transpose(1, 0, 2).reshape(m, n), exact, atol=1e-4)
    assert not report["hazards"], report["hazards"][:1]


def test_unit_flags_that_nobody_takes() -> None:
    """A function that doesn't say what its parameters say of unit flags leaves them set."""
    text = SOURCE.read_text().replace("  if (p->enUnitFlag) f.unitFlag = 3;\n", "")
    binary = device().load(device().compile(text, "left_set.cpp", ["--cce-auto-sync=off"]))
    a, b, _ = operands(64, 96, 64)
    words = ctypes.c_uint32(0), ctypes.c_uint32(0)
    with pytest.raises(DeviceError, match="unit flags of L0C"):
        launch("own_rows_unit", [a, b], np.zeros((64, 96), np.float32), tiling(64, 96, 64, (32, 48)), *words,
               binary=binary)  # fmt: skip


@pytest.mark.parametrize(
    ("use", "message"),
    [("LocalTensor<float> c; mm.IterateAll(c);", "DataCopyOut is for C in global memory"),
     ("LocalTensor<float> c; mm.GetTensorC(c);", "DataCopyOut is for C in global memory")],
)  # fmt: skip
def test_to_the_unified_buffer_is_refused(use: str, message: str) -> None:
    kernel = f"""
extern "C" __global__ __mix__(1, 1) void refused() {{
  Matmul<Left, Right, MatmulType<TPosition::VECIN, CubeFormat::ND, float>, Rows, CFG_NORM,
         MatmulCallBackFunc<rows_out>> mm;
  mm.Init(nullptr);
  {use}
}}
"""
    with pytest.raises(KernelCompileError) as refused:
        device().compile(SOURCE.read_text() + kernel, "refused.cpp", [])
    assert message in refused.value.hint + str(refused.value) + refused.value.log
