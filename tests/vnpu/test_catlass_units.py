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
    """``folder``: in the checkout's folder of examples; ``arguments``: of its program.

    ``standard``: of C++, as g++ needs it (the device's compiler mixes both);
    ``sync``: ``on`` for those that rely on the compiler's automatic synchronization, which catlass' build leaves on;
    ``data``: arguments of its script, where one makes inputs and expected outputs.
    """

    folder: str
    arguments: str
    standard: str = "c++17"
    data: str = ""
    sync: str = "off"


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
    Example("04_padding_matmul", "256 300 256"),
    Example("07_grouped_matmul_slice_m_per_token_dequant_moe", "3 256 256 256", "c++20"),
    Example("10_grouped_matmul_slice_m_per_token_dequant", "3 256 256 256", "c++20"),
    Example("11_grouped_matmul_slice_k_per_token_dequant", "3 256 256 256", "c++20"),
    Example("16_group_gemm", "2 128,256 256,128 300,256"),
    Example("19_mla", "1 1 256 16 4 128", data="1 1 256 16 4 128 half"),
    Example("22_padding_splitk_matmul", "256 300 1024"),
    Example("23_flash_attention_infer", "1 64 300 2 1 128 0 0", data="1 64 300 2 1 128 0 0 half 1"),
    Example("24_conv_bias", "2 1 2 9 11 16 32 1 3 3 1 1 1 1 1 1 0 1 1",
            data="2 32 1 9 11 32 1 3 3 1 1 1 1 1 1 0 1 1 float16"),
    Example("27_matmul_gelu", "256 300 256", sync="on"),
    Example("28_matmul_silu", "256 300 256", sync="on"),
    Example("29_a2_fp8_e4m3_matmul", "256 512 1024", data="256 512 1024 0 0"),
    Example("30_w8a16_matmul", "256 512 1024"),
    Example("32_w4a8_matmul", "256 512 1024", data="256 512 1024"),
    Example("33_basic_conv2d", "2 17 19 48 48 3 3 1 1 1 1 1 1 1 1"),
    Example("38_w4a4_matmul_per_token_per_channel_dequant", "256 512 1024", "c++20", "256 512 1024"),
    Example("40_flash_attention_infer_tla", "1 64 300 2 1 128 0 0", data="1 64 300 2 1 128 0 0 half 1"),
    Example("41_sparse_matmul_tla", "256 512 256", data="256 512 256"),
    Example("42_quant_optimized_matmul_tla", "256 512 1024", "c++20"),
    Example("44_quant_matmul_full_loadA_tla", "256 512 1024", "c++20"),
    Example("45_strided_batched_matmul_tla", "3 128 256 256"),
    Example("52_quant_multi_core_splitk_matmul_tla", "256 512 1024", "c++20"),
    Example("../experimental/matmul/78_matrix_inverse", "64", sync="on"),
    Example("../experimental/matmul/planar_complex_matmul", "128 256 256"),
    Example("../experimental/matmul/symm", "256 256 256 0 1 1"),
    Example("../experimental/matmul/trmm", "128 256 0 0 0 0 1.0"),
]  # fmt: skip


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


@pytest.mark.parametrize("example", TABLE, ids=lambda e: Path(e.folder).name)
def test_examples_of_catlass(example: Example, tools: Path, tmp_path: Path) -> None:
    checkout = settings().catlass
    if checkout is None:
        pytest.skip("ASCENDOPT_CATLASS is not set")
    program = Program((checkout / "examples" / example.folder).resolve(), tmp_path, tools, example.standard)
    if example.data:
        program.make(*example.data.split())
    program.build(example.sync)
    reports = program.run(*example.arguments.split())
    assert reports
    for report in reports:
        assert not report["hazards"]
        assert not report["unwritten"]
