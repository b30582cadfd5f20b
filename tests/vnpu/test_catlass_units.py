"""Examples of catlass, unmodified: program and kernels as they are, each judged by the example's own comparison.

The sources are found through ``ASCENDOPT_CATLASS``; without it these tests are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from catlass_programs import Program

from ascendopt_tune.settings import settings


@dataclass(frozen=True)
class Example:
    """``arguments``: of its program; ``standard``: of C++, as g++ needs it (the device's compiler mixes both)."""

    folder: str
    arguments: str
    standard: str = "c++17"


TABLE = [
    Example("00_basic_matmul", "256 512 1024"),
    Example("01_batched_matmul", "3 256 256 256"),
    Example("02_grouped_matmul_slice_m", "4 256 256 512", "c++20"),
    Example("03_matmul_add", "256 300 256"),
    Example("09_splitk_matmul", "256 512 1024"),
    Example("06_optimized_matmul", "256 512 1024"),
    Example("17_gemv_aiv", "256 512"),
    Example("18_gemv_aic", "256 512"),
    Example("20_matmul_bias", "256 512 1024"),
    Example("26_matmul_relu", "256 300 256"),
    Example("08_grouped_matmul", "3 256 256 256", "c++20"),
    Example("13_basic_matmul_tla", "256 512 1024"),
    Example("14_optimized_matmul_tla", "256 512 1024"),
    Example("21_basic_matmul_preload_zN", "256 512 1024"),
    Example("05_grouped_matmul_slice_k", "3 256 256 256", "c++20"),
    Example("15_gemm", "256 512 1024"),
    Example("25_matmul_full_loadA", "256 512 1024"),
    Example("34_single_core_splitk_matmul", "256 512 1024", "c++20"),
    Example("37_streamk_matmul", "256 512 1024"),
    Example("31_small_matmul", "200 300 200"),
]


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tools")


@pytest.mark.parametrize("example", TABLE, ids=lambda e: e.folder)
def test_examples_of_catlass(example: Example, tools: Path, tmp_path: Path) -> None:
    checkout = settings().catlass
    if checkout is None:
        pytest.skip("ASCENDOPT_CATLASS is not set")
    program = Program(checkout / "examples" / example.folder, tmp_path, tools, example.standard)
    program.build()
    reports = program.run(*example.arguments.split())
    assert reports
    for report in reports:
        assert not report["hazards"]
        assert not report["unwritten"]
