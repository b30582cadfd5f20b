"""Batches that vector cores ask for, whose products the cube core of their group makes."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from test_cube import default_options, device
from test_matmul import near
from test_matmul_batch import batches, lie

from ascendopt_tune.device.acl import Binary
from ascendopt_tune.errors import DeviceError

__all__ = ["default_options"]
SOURCE = Path(__file__).resolve().parent / "kernels" / "matmul_batch_mixed.cpp"
WAYS = ["to global memory", "waited for later", "to the Unified Buffer", "several", "several, waited for later",
        "several, one by one", "several, one by one to the Unified Buffer"]  # fmt: skip


class MixedBatch(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint32) for n in ("way", "count_a", "count_b", "loops", "step_a", "step_b", "step_c",
                                               "bytes")]  # fmt: skip


@cache
def kernels() -> Binary:
    acl = device()
    return acl.load(acl.compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


def run(kernel: str, way: int, g_of_b: int = 2, spare: int = 0) -> None:
    """Two vector cores with A of their own, three calls each, of 3 x 2 products."""
    m, n, k, loops, axes = 20, 24, 40, 3, (1, 3, 2)
    layout = "BSNGD" if kernel == "rows" else "BNGS1S2"
    a, b = (loops, *axes[1:]), (loops, axes[1], g_of_b)
    rng = np.random.default_rng(way)
    left = rng.standard_normal((2, *a, m, k)).astype(np.float16)
    right = rng.standard_normal((*b, k, n)).astype(np.float16)
    lie_a, lie_b = np.stack([lie(x, layout) for x in left]), lie(right.swapaxes(3, 4), layout)
    exact = np.stack([lie(x, layout) for x in left.astype(np.float64) @ right.astype(np.float64)])
    out, ahead = np.zeros(exact.shape, np.float32), np.zeros(exact.shape, np.float32)
    t = batches(m, n, k, a, b, a, (32, 32, 32), 0, 1, BatchNum=6)
    case = MixedBatch(way=way, count_a=6, count_b=3 * g_of_b, loops=loops, step_a=6 * m * k, step_b=3 * g_of_b * k * n,
                      step_c=6 * m * n, bytes=6 * m * n * 4 - spare)  # fmt: skip
    acl, arrays = device(), [lie_a, lie_b, out, ahead]
    pointers = [acl.malloc(x.nbytes) for x in arrays]
    for p, x in zip(pointers, arrays, strict=True):
        acl.memcpy_h2d(p, np.ascontiguousarray(x).view(np.uint8))
    try:
        acl.launch(kernels().function(kernel), 1, [*pointers, t, case])
        acl.synchronize()
        acl.memcpy_d2h(out.view(np.uint8), pointers[2])
    finally:
        for p in pointers:
            acl.free(p)
    report = acl.report()
    near(out, exact, k)
    assert not report["hazards"], report["hazards"][:1]
    assert not report["unwritten"], report["unwritten"][:1]


@pytest.mark.parametrize("way", [0, 1, 3, 4, 5, 6], ids=lambda w: WAYS[w])
@pytest.mark.parametrize("kernel", ["rows", "matrices"])
def test_vector_cores_ask_for_batches(kernel: str, way: int) -> None:
    run(kernel, way)


def test_results_in_the_unified_buffer() -> None:
    run("to_vector_core", 2)


def test_they_share_an_axis() -> None:
    run("rows", 3, g_of_b=1)
    run("to_vector_core", 2, g_of_b=1)


def test_a_tensor_that_is_too_small() -> None:
    with pytest.raises(DeviceError, match="C takes 11520 bytes, the tensor in the Unified Buffer has 11488"):
        run("to_vector_core", 2, spare=32)
