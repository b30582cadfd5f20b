"""Kernels of asc-devkit for direct launch (``<<<>>>``), unmodified, against formulas written here.

The sources are found through ``ASCENDOPT_ASC_DEVKIT``, a checkout of asc-devkit; without it these tests are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import ascendopt_tune  # noqa: F401  # isort: skip  (before torch, which loads torch_npu)
import torch
from direct_launch import Direct, run_kernel

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.settings import settings

_API = "examples/01_simd_cpp_api"
KERNELS: tuple[Direct, ...] = (
    Direct(f"{_API}/00_introduction/01_add/add_tpipe_tque/add_tpipe_tque.asc", "add_custom", 8,
           "x=float32[16384] y=float32[16384]", "z=float32[16384]", torch.add, {"totalLength": 16384}),
    Direct(f"{_API}/03_basic_api/07_tpipe_tque/tpipe_reuse/tpipe_reuse.asc", "tpipe_reuse_custom", 1,
           "x=float32[128]", "z=float32[128]", lambda x: 3 * x),
)  # fmt: skip


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    with Evaluator(toolkit.virtual(), workers=1, build_dir=tmp_path_factory.mktemp("build")) as opened:
        yield opened


@pytest.mark.parametrize("kernel", [pytest.param(k, id=f"{Path(k.path).stem}-{k.entry}") for k in KERNELS])
def test_direct_launch(kernel: Direct, evaluator: Evaluator) -> None:
    root = settings().asc_devkit
    if root is None:
        pytest.skip("ASCENDOPT_ASC_DEVKIT is not set")
    run_kernel(kernel, evaluator, root)
