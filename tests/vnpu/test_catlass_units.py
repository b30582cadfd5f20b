"""Examples of catlass, unmodified: program and kernels as they are, each judged by the example's own comparison.

The sources are found through ``ASCENDOPT_CATLASS``; without it these tests are skipped.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from catlass_programs import Program, specializer

from ascendopt_tune.build.toolkit import host_compiler
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
    Example("12_quant_matmul", "256 512 1024", "c++20"),
    Example("31_small_matmul", "200 300 200"),
]


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tools")


#: A class that is an aggregate in C++17 alone, and others that are none or may not be touched.
CLASSES = """
template <class T> struct Pair { __attribute__((always_inline)) Pair() = default; T* p{nullptr}; unsigned n{0}; };
class Later { public: Later() = default; ~Later() = default; int x{1}; };
struct Two { Two() = default; Two(int given) : x(given) {} int x{2}; };
class Hidden { Hidden() = default; public: static Hidden make() { return {}; } int x{3}; };
struct Outer { int x{f()}; static int f() { struct Inner { Inner() = default; int y; }; Inner i = {4}; return i.y; } };
Pair<int> pair = {nullptr, 5u};
Two two = {6};
static_assert(!__is_aggregate(Two) && __is_aggregate(Pair<int>));
"""


@pytest.mark.parametrize("standard", ["c++17", "c++20"])
def test_aggregates_of_one_standard_are_taken_with_the_other(standard: str, tools: Path, tmp_path: Path) -> None:
    text = subprocess.run([specializer(tools)], input=CLASSES, capture_output=True, text=True, check=True).stdout
    assert text.count("\n") == CLASSES.count("\n")
    left = [name for name in ("Pair", "Later", "Two", "Hidden", "Inner") if f" {name}() =" in text]
    assert left == ["Two", "Hidden"]
    (tmp_path / "classes.cpp").write_text(text)
    subprocess.run([host_compiler(), f"-std={standard}", "-fsyntax-only", tmp_path / "classes.cpp"], check=True)


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
