"""Matmul in programs of others, unmodified: asc-devkit's samples as they are, host and kernel, and cann-ops' operators.

The sources are found through ``ASCENDOPT_ASC_DEVKIT`` and ``ASCENDOPT_CANN_OPS``; without them these tests are skipped.
A sample's own scripts make its inputs and say what has to come out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_cube import device

from ascendopt_tune.build import toolkit
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import DEFAULT_CHIP
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.settings import settings
from ascendopt_tune.sources.project import load_project

HERE = Path(__file__).resolve().parent
EXAMPLES = "examples/01_simd_cpp_api"
CUBE_ONLY = [
    "matmul", "matmul_callback", "matmul_channelsplit_output", "matmul_co1_output", "matmul_constant_tiling",
    "matmul_format_gemv", "matmul_format_nd_align", "matmul_l0cache", "matmul_mn_double_buffer",
    "matmul_multi_core_unaligned", "matmul_nbuffer33", "matmul_preload", "matmul_quant", "matmul_triangle",
    "matmul_unitflag",
]  # fmt: skip
MIXED = [
    "matmul_async_iterate", "matmul_async_iterate_all", "matmul_fused", "matmul_fused_manual",
    "matmul_k_reorder_load", "matmul_vecout",
]  # fmt: skip
SAMPLES = [
    "00_introduction/02_matrix/matmul_advanced_api",
    *(f"04_advanced_api/00_matmul/{name}" for name in (*CUBE_ONLY, *MIXED)),
]
LAUNCH = re.compile(r"\b(\w+)\s*<<<([^;{}]*?),[^,;{}]*,\s*(\w+)\s*>>>\s*\(")
HEAD = "#define main aot_host_main\n#define AOT_HOST_LAUNCH(...) ((void)0)\n#include <string>\n#include <vector>\n"


def build(folder: Path, work: Path) -> None:
    """The kernels as a binary, and the program around them: ``<<<>>>`` becomes a call (direct_program.h)."""
    source, prefix = next(folder.glob("*.asc")), toolkit.virtual().prefix
    text = source.read_text()
    options = ["--cce-auto-sync=off", "--npu-arch=dav-2201", f"-I{folder}"]
    kernels = HEAD + LAUNCH.sub("AOT_HOST_LAUNCH(", text)
    (work / "kernels.o").write_bytes(device().compile(kernels, source.name, options))
    program = LAUNCH.sub(r'(DirectLaunch{"\1", static_cast<uint32_t>(\2), \3})(', text)
    (work / "program.cpp").write_text('#include "direct_program.h"\n#include "kernel_operator.h"\n' + program)
    command = ["g++", "-std=c++17", "-O0", "-w", "-DTILING_KEY_VAR=0", "-DVNPU_AUTO_SYNC=0", f"-I{prefix}/include",
               f"-I{folder}", f"-I{HERE}", str(work / "program.cpp"), f"-L{prefix}/lib64", "-lascendcl", "-lvnpu",
               "-lvnpu_host", f"-Wl,-rpath,{prefix}/lib64", "-o", str(work / "program")]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.rsplit("/", 1)[1])
def test_samples_of_asc_devkit(sample: str, tmp_path: Path) -> None:
    checkout = settings().asc_devkit
    if checkout is None or not (checkout / EXAMPLES / sample / "scripts").is_dir():
        pytest.skip("ASCENDOPT_ASC_DEVKIT is not set, or has no such sample")
    folder = checkout / EXAMPLES / sample
    for name in ("input", "output"):
        (tmp_path / name).mkdir()
    build(folder, tmp_path)
    subprocess.run([sys.executable, str(folder / "scripts/gen_data.py")], cwd=tmp_path, check=True, capture_output=True)
    environment = {**os.environ, "AOT_BINARY": str(tmp_path / "kernels.o")}
    done = subprocess.run([str(tmp_path / "program")], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = (tmp_path / "output/golden.bin").read_bytes()
    got = (tmp_path / "output/output.bin").read_bytes()
    assert len(got) == len(expected)
    verify = next((folder / "scripts").glob("verify*.py"))
    told = subprocess.run([sys.executable, str(verify), "output/output.bin", "output/golden.bin"], cwd=tmp_path,
                          capture_output=True, text=True)  # fmt: skip
    assert "pass" in told.stdout.lower(), told.stdout[-400:]


def leaky(a: Any, b: Any, bias: Any) -> Any:
    x = a.double() @ b.double() + bias.double()
    return x.where(x > 0, 0.001 * x)


def product(a: Any, b: Any, bias: Any) -> Any:
    return a.double() @ b.double() + bias.double()


@pytest.mark.parametrize(
    ("operator", "reference"), [("math/matmul_leakyrelu", leaky), ("math/matmul_api_constant", product)]
)
def test_operators_of_cann_ops(operator: str, reference: Any, tmp_path: Path) -> None:
    """In the one shape that their tiling functions are written for."""
    checkout = settings().cann_ops
    if checkout is None:
        pytest.skip("ASCENDOPT_CANN_OPS is not set")
    m, n, k = 1024, 640, 256
    loaded = replace(load_project(checkout / "src" / operator), reference=reference)
    inputs = (TensorSpec("float16", (m, k)), TensorSpec("float16", (k, n)), TensorSpec("float32", (n,)))
    case = Case(inputs, (TensorSpec("float32", (m, n)),), ())
    with Evaluator(toolkit.virtual(), DEFAULT_CHIP, workers=1, build_dir=tmp_path) as evaluator:
        signature = evaluator.describe(loaded).signature
        outcome = Gate(loaded, case, evaluator, signature=signature).evaluate(loaded.baseline).outcome
    assert isinstance(outcome, Timed), outcome
    assert np.isfinite(outcome.profile.task_duration_us)
