"""Objects whose tiling only one program of a mixed kernel has: the cube core multiplies by what its own registers."""

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
SOURCE = Path(__file__).resolve().parent / "kernels" / "matmul_registered.cpp"
M, N, K = 40, 64, 64
Array = np.ndarray[Any, Any]


class Sizes(ctypes.Structure):
    _fields_ = [("m", ctypes.c_int32), ("k", ctypes.c_int32)]


@cache
def kernels() -> Binary:
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


def tiling(base_m: int = 16, base_n: int = 32, base_k: int = 32, **more: int) -> CubeTiling:
    return CubeTiling(usedCoreNum=1, M=M, N=N, Ka=K, Kb=K, singleCoreM=M, singleCoreN=N, singleCoreK=K, baseM=base_m,
                      baseN=base_n, baseK=base_k, depthA1=1, depthB1=1, stepM=1, stepN=1, stepKa=1, stepKb=1, dbL0A=2,
                      dbL0B=2, dbL0C=1, **more)  # fmt: skip


def matrices() -> tuple[Array, Array]:
    rng = np.random.default_rng(1)
    return rng.standard_normal((M, K)).astype(np.float16), rng.standard_normal((N, K)).astype(np.float16)


def product(a: Array, b: Array) -> Array:
    return np.asarray(a.astype(np.float64) @ b.astype(np.float64).T)


def run(kernel: str, out: Array, *scalars: Any) -> dict[str, Any]:
    return launch(kernel, matrices(), out, *scalars, binary=kernels())


def two(kernel: str) -> tuple[Array, dict[str, Any]]:
    out = np.zeros((2, M, N), np.float32)
    second = tiling(32, 16, 16)
    second.M = second.N = second.Ka = second.Kb = 1  # SetOrgShape says it
    return out, run(kernel, out, tiling(), second, Sizes(24, 48))


@pytest.mark.parametrize("kernel", ["both", "only_the_cube_core"])
def test_each_object_has_the_cube_cores_tiling(kernel: str) -> None:
    a, b = matrices()
    out, report = two(kernel)
    np.testing.assert_allclose(out[0], product(a, b), atol=1e-4)
    np.testing.assert_allclose(out[1, :24], product(a[:24, :48], b[:48].T), atol=1e-4)
    assert not out[1, 24:].any()
    clean(report)


def test_it_is_the_same_work() -> None:
    profiles = [two(kernel)[1]["profile"] for kernel in ("both", "only_the_cube_core")]
    assert profiles[0] == profiles[1]


@pytest.mark.parametrize(("kernel", "more"), [("only_the_vector_core", "multiplies by it$"),
                                              ("neither", "and none in the vector core's")])  # fmt: skip
def test_the_cube_cores_program_has_to_have_one(kernel: str, more: str) -> None:
    with pytest.raises(DeviceError, match=f"(?m)object 1 has no tiling in the cube core's program.*{more}"):
        two(kernel)


def test_all_of_c_to_the_unified_buffer_needs_no_tiling_there() -> None:
    a, b = matrices()
    out = np.zeros((M, N), np.float32)
    report = run("blocks", out, tiling(), ctypes.c_uint32(0))
    np.testing.assert_allclose(out, product(a, b), atol=1e-4)
    clean(report)


@pytest.mark.parametrize("way", [1, 2], ids=["block by block", "ahead"])
def test_who_counts_blocks_has_to_have_a_tiling(way: int) -> None:
    with pytest.raises(DeviceError, match="Iterate: this vector core has registered the object without a tiling"):
        run("blocks", np.zeros((M, N), np.float32), tiling(), ctypes.c_uint32(way))


@pytest.mark.parametrize(
    ("kernel", "scalars"),
    [
        pytest.param("blocks", [ctypes.c_uint32(3)], id="Init brings it later"),
        pytest.param("own_copy", [], id="own copies are the cube core's"),
        pytest.param("left_in_ub", [], id="A in the Unified Buffer"),
    ],
)
def test_what_else_comes_from_either_core(kernel: str, scalars: list[Any]) -> None:
    a, b = matrices()
    out = np.zeros((M, N), np.float32)
    report = run(kernel, out, tiling(48, 64, 64) if kernel == "own_copy" else tiling(), *scalars)
    np.testing.assert_allclose(out, product(a, b), atol=1e-4)
    clean(report)
