"""BatchOutMode: matrices of C that leave L0C several at once lie where they lie when they leave one by one."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cube_tiling import CubeTiling
from test_cube import default_options, device, launch
from test_matmul_batch import batches

from ascendopt_tune.device.acl import Binary
from ascendopt_tune.errors import DeviceError

__all__ = ["default_options"]
SOURCE = Path(__file__).resolve().parent / "kernels" / "matmul_batch_out.cpp"


class Batch(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint32) for n in ("count", "at_once", "bias")]


@cache
def kernels() -> Binary:
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


def tiling(count: int, m: int, n: int, k: int, base: tuple[int, int, int]) -> CubeTiling:
    axes = (count, 1, 1)
    return batches(m, n, k, axes, axes, axes, base, isBias=1)


def run(kernel: str, count: int, at_once: int, m: int, n: int, k: int, base: tuple[int, int, int], bias: int) -> Any:
    rng = np.random.default_rng(count)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((count, m, k), (count, k, n)))
    rows = rng.standard_normal((1 if kernel.endswith("shared") else count, n)).astype(np.float32)
    out = np.zeros((count, m, n), np.float32)
    case = Batch(count, at_once, bias)
    report = launch(kernel, [a, b, rows], out, tiling(count, m, n, k, base), case, binary=kernels())
    return out, a.astype(np.float64) @ b.astype(np.float64) + bias * rows[:, None], report


@pytest.mark.parametrize("bias", [0, 1])
@pytest.mark.parametrize("kernel", ["of_dynamic", "of_dynamic_shared", "of_multi"])
@pytest.mark.parametrize(("count", "at_once"), [(4, 1), (6, 4), (3, 8)])
def test_each_matrix_gets_to_its_place(kernel: str, count: int, at_once: int, bias: int) -> None:
    out, exact, report = run(kernel, count, at_once, 32, 48, 64, (32, 48, 32), bias)
    np.testing.assert_allclose(out, exact, atol=1e-3)
    assert not report["hazards"], report["hazards"][:1]
    assert not report["unwritten"], report["unwritten"][:1]


def test_one_by_one_a_matrix_may_have_several_blocks() -> None:
    out, exact, _ = run("of_dynamic", 2, 1, 48, 48, 64, (32, 48, 32), 0)
    np.testing.assert_allclose(out, exact, atol=1e-3)


@pytest.mark.parametrize(("kernel", "at_once"), [("of_dynamic", 2), ("of_multi", 1)])
def test_matrices_that_leave_together_are_one_block_each(kernel: str, at_once: int) -> None:
    with pytest.raises(DeviceError, match="one base block"):
        run(kernel, 2, at_once, 48, 48, 64, (32, 48, 32), 0)


def test_they_fit_in_l0c_together() -> None:
    with pytest.raises(DeviceError, match="fit in L0C"):
        run("of_dynamic", 8, 8, 128, 64, 32, (128, 64, 32), 0)
