"""Matmul objects of one kernel whose results take more of L0C together than there is: they lie in one place."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cube_tiling import CubeTiling
from test_cube import default_options, device, launch

from ascendopt_tune.device.acl import Binary

__all__ = ["default_options"]
SOURCE = Path(__file__).resolve().parent / "kernels" / "matmul_two.cpp"


@cache
def kernels(cores: str) -> Binary:
    text = f"#define ASCENDC_CUBE_ONLY\n{SOURCE.read_text()}" if cores == "cube" else SOURCE.read_text()
    return device().load(device().compile(text, SOURCE.name, ["--cce-auto-sync=off"]))


def tiling(m: int, n: int, k: int, cores: int, base: tuple[int, int], buffers: int, bias: bool) -> CubeTiling:
    return CubeTiling(usedCoreNum=cores, M=m, N=n, Ka=k, Kb=k, singleCoreM=128, singleCoreN=n, singleCoreK=k,
                      baseM=base[0], baseN=base[1], baseK=32, depthA1=1, depthB1=1, stepM=1, stepN=1, stepKa=1,
                      stepKb=1, dbL0A=2, dbL0B=2, dbL0C=buffers, isBias=bias)  # fmt: skip


@pytest.mark.parametrize("cores", ["cube", "mixed"])
@pytest.mark.parametrize(("buffers", "second"), [(1, (128, 256)), (2, (128, 256)), (2, (64, 256))])
def test_results_of_two_sizes(cores: str, buffers: int, second: tuple[int, int]) -> None:
    """64 KB, once or twice, and 128 KB, or once or twice 64 KB beside twice 32: L0C has 128."""
    rng = np.random.default_rng(buffers)
    a, b, d = (rng.standard_normal(s).astype(np.float16) for s in ((512, 64), (64, 256), (256, 512)))
    bias = rng.standard_normal(256).astype(np.float32)
    between, out = np.zeros((512, 256), np.float16), np.zeros((512, 512), np.float32)
    users = 1 if cores == "cube" else 2
    first = tiling(512, 256, 64, users, (128, 128 if second[0] == 128 else 64), buffers, bias=True)
    then = tiling(512, 512, 256, users, second, 1 if second[0] == 128 else 2, bias=False)
    arrays = [a, b, bias, d, between]
    report = launch("blocks_blocks", arrays, out, first, then, binary=kernels(cores))
    assert not report["hazards"], report["hazards"][:1]
    made = (a.astype(np.float64) @ b.astype(np.float64) + bias).astype(np.float16).astype(np.float64)
    np.testing.assert_allclose(out, made @ d.astype(np.float64), rtol=2e-2, atol=0.3)
