"""IterateAll with enSequentialWrite: C that is one block, its rows behind each other."""

from __future__ import annotations

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
Array = np.ndarray[Any, Any]
SOURCE = Path(__file__).resolve().parent / "kernels" / "matmul_one_block.cpp"


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


@pytest.mark.parametrize(("m", "n", "k"), [(32, 48, 32), (21, 40, 96)])
@pytest.mark.parametrize("kernel", ["by_itself", "waited_for_later"])
def test_a_block_by_itself(kernel: str, m: int, n: int, k: int) -> None:
    a, b, exact = operands(m, n, k)
    out = np.zeros((m, n), np.float32)
    report = launch(kernel, [a, b], out, tiling(m, n, k, (32, 48), whole_n=200), binary=kernels())
    np.testing.assert_allclose(out, exact, atol=1e-4)
    assert not report["hazards"], report["hazards"][:1]


def test_several_blocks_have_one_place() -> None:
    a, b, _ = operands(64, 48, 32)
    with pytest.raises(DeviceError, match="every block goes to the same place"):
        launch("by_itself", [a, b], np.zeros((64, 48), np.float32), tiling(64, 48, 32, (32, 48)), binary=kernels())
