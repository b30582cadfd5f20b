"""Mixed kernels of others, unmodified: asc-devkit's samples of fusion and of flags between cores, and operators of
vllm-ascend.

The sources are found through ``ASCENDOPT_ASC_DEVKIT`` and ``ASCENDOPT_VLLM_ASCEND``; without them tests are skipped.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cann_ops.table import Row
from test_mixed import default_options, device
from test_vllm_ascend import check, evaluator
from vllm_ops import cubes

from ascendopt_tune.build.kernel import without_launches
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.settings import settings

__all__ = ["default_options", "evaluator"]
Array = np.ndarray[Any, Any]
FUSION = "examples/01_simd_cpp_api/00_introduction/03_fusion_operation/matmul_leakyrelu_basic_api"
SIMULATED = "examples/01_simd_cpp_api/01_utilities/08_simulator"
FLAGS = "examples/01_simd_cpp_api/03_basic_api/05_sync_control/cross_core_set_wait_flag"
HOST = "#define AOT_HOST_LAUNCH(...) ((void)0)\n#define main aot_host_main\n#include <string>\n#include <vector>\n"


@dataclass(frozen=True)
class Sample:
    """A scenario of a sample. ``make``: what is handed to the kernel, and what its tensor ``output`` has to be.

    ``hazards``: what the sample forgot to order, which has to be reported.
    ``instance``: of a template, the arguments that the sample's host code gives it, and how many parameters it has.
    """

    folder: str
    kernel: str
    blocks: int
    make: Callable[[], tuple[list[Any], Array]]
    scenario: int = 0
    instance: str = ""
    steps: float = 0.0  # by how much the output may be off
    output: int = -1
    hazards: tuple[str, ...] = ()


def leaky(x: Array) -> Array:
    return np.maximum(0.001 * x, x)


def fused() -> tuple[list[Any], Array]:
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, s).astype(np.float16) for s in ((512, 128), (128, 128)))
    return [a, b, np.zeros((512, 128), np.float16)], leaky(a.astype(np.float64) @ b.astype(np.float64))


def gelu() -> tuple[list[Any], Array]:
    rng = np.random.default_rng(1)
    a, b = (rng.uniform(-1, 1, (512, 512)).astype(np.float16) for _ in range(2))
    x = a.astype(np.float64) @ b.astype(np.float64).T
    with np.errstate(over="ignore"):
        expected = x / (1 + np.exp(-1.595769 * (x + 0.044715 * x**3)))
    return [a, b, np.zeros((512, 512), np.float32)], expected


def groups() -> tuple[list[Any], Array]:
    """Two groups of unequal length, int8: scales of columns and of rows, and GELU."""
    rng = np.random.default_rng(2)
    of_groups, n, k = [200, 56], 1024, 1024
    rows = sum(of_groups)
    x = rng.integers(-10, 10, (rows, k)).astype(np.int8)
    weight = rng.integers(-10, 10, (len(of_groups), k, n)).astype(np.int8)
    scale = rng.normal(0, 0.03, (len(of_groups), n)).astype(np.float32)
    of_row = rng.normal(0, 0.1, rows).astype(np.float32)
    parts = np.split(x.astype(np.float64), np.cumsum(of_groups)[:-1])
    products = [part @ w.astype(np.float64) * s for part, w, s in zip(parts, weight, scale, strict=True)]
    h = np.concatenate(products) * of_row[:, None]
    with np.errstate(over="ignore"):
        expected = h / (1 + np.exp(-1.702 * h))
    tiles = np.ascontiguousarray(weight.reshape(len(of_groups), k, n // 32, 32).transpose(0, 2, 1, 3))
    work = np.zeros(4 * 4 * 128 * 256, np.int32)  # four cores, four blocks of sums each
    lengths = np.array(of_groups, np.int64)
    return [x, tiles, np.zeros(8, np.int32), lengths, scale, of_row, np.zeros((rows, n), np.float16), work], expected


def summed(factor: int) -> Callable[[], tuple[list[Any], Array]]:
    """Every core adds its number times the input."""
    x = np.arange(32, dtype=np.float32)
    return lambda: ([x, np.zeros_like(x), ctypes.c_uint32(32)], factor * x)


def nothing_but_zeros() -> tuple[list[Any], Array]:
    """The sample's own input: its buffers overlap (sizes in elements are taken for bytes), so others come out wrong."""
    a, b = (np.zeros(s, np.uint8) for s in ((32, 32), (32, 64)))
    casts = [np.ones(x.size, np.float16) for x in (a, b)]
    return [a, b, *casts, np.zeros((32, 64), np.float32)], np.zeros((32, 64))


GELU = "examples/01_simd_cpp_api/05_best_practices/03_fusion_compute/matmul_gelu_high_performance"
GROUPED = "examples/01_simd_cpp_api/05_best_practices/03_fusion_compute/quant_group_matmul_high_performance"
SIZES = "512, 128, 128, 256, 128, 128, 256, 128, 128"
TABLE = [
    Sample(FUSION, "mmad_vec_custom", 2, fused, instance=SIZES, steps=2e-2),
    Sample(SIMULATED, "mmad_vec_custom", 2, fused, instance=SIZES, steps=2e-2),
    Sample(GELU, "mmad_vector_custom", 8, gelu, scenario=1, steps=2e-3,
           instance="512, 512, 512, 128, 64, 256, 128, 512, 256, 8, 4"),
    # Two blocks a core: its vector cores never wait for the first one's copies before they begin the second.
    Sample(GELU, "mmad_vector_custom", 4, gelu, scenario=1, steps=2e-3,
           instance="512, 512, 512, 128, 64, 256, 256, 512, 256, 8, 4",
           hazards=(*(f"SetFlag<HardEvent::{e}> / WaitFlag<HardEvent::{e}> (or a queue's EnQue / DeQue)"
                      for e in ("V_MTE2", "MTE3_V")), "PipeBarrier<PIPE_MTE2>", "PipeBarrier<PIPE_V>")),
    *(Sample(GROUPED, "quant_group_matmul_custom", 4, groups, scenario=1 + (depth > 1), steps=3e-2, output=-2,
             instance=f"int8_t, int8_t, int32_t, int32_t, 256, 1024, 1024, 128, 256, 128, 128, 1024, 2, 4, {depth}")
      for depth in (1, 4)),
    Sample(FLAGS, "cross_core_set_wait_flag_custom", 8, summed(120)),
    Sample(FLAGS, "cross_core_set_wait_flag_custom", 8, summed(5), scenario=1),
    Sample(FLAGS, "mmad_custom", 8, nothing_but_zeros, scenario=2, hazards=("PipeBarrier<PIPE_MTE2>",)),
]  # fmt: skip


def unit(sample: Sample, folder: Path, parameters: int) -> tuple[str, str, list[str]]:
    """What is compiled of the sample in ``folder``, the name of its entry, and how."""
    text, name = HOST + without_launches(next(folder.glob("*.asc")).read_text()) + "\n", sample.kernel
    if sample.instance:
        names = [f"p{i}" for i in range(parameters)]
        call = f"{sample.kernel}<{sample.instance}>({', '.join(names)});"
        declared = ", ".join(f"GM_ADDR {n}" for n in names)
        text, name = text + f'extern "C" __global__ __mix__(1, 2) void probe({declared}) {{ {call} }}\n', "probe"
    return text, name, ["--cce-auto-sync=off", f"-I{folder}", "-DNPU_ARCH=2201", f"-DSCENARIO_NUM={sample.scenario}"]


@pytest.mark.parametrize("sample", TABLE, ids=lambda s: f"{Path(s.folder).name}-{s.scenario}-{s.blocks}")
def test_samples_of_asc_devkit(sample: Sample) -> None:
    checkout = settings().asc_devkit
    if checkout is None or not (checkout / sample.folder).is_dir():
        pytest.skip("ASCENDOPT_ASC_DEVKIT is not set, or has no examples")
    folder, acl = checkout / sample.folder, device()
    arguments, expected = sample.make()
    text, name, options = unit(sample, folder, len(arguments))
    function = acl.load(acl.compile(text, f"{folder.name}.cpp", options)).function(name)
    arrays = [x for x in arguments if isinstance(x, np.ndarray)]
    places = {id(x): acl.malloc(x.nbytes) for x in arrays}
    for x in arrays:
        acl.memcpy_h2d(places[id(x)], x.view(np.uint8))
    acl.launch(function, sample.blocks, [places.get(id(x), x) for x in arguments])
    acl.synchronize()
    output = arrays[sample.output]
    got = np.empty_like(output)
    acl.memcpy_d2h(got.view(np.uint8), places[id(output)])
    report = acl.report()
    for place in places.values():
        acl.free(place)
    np.testing.assert_allclose(got.astype(np.float64), expected, rtol=0, atol=sample.steps)
    assert {h["missing"] for h in report["hazards"]} == set(sample.hazards)
    assert not report["unwritten"]
    assert report["profile"]["vectors_per_block"] == 2


@pytest.mark.parametrize(
    ("row", "case", "dtype"),
    [
        pytest.param(r, c, d, id=f"{Path(r.path).name}-{d}", marks=[pytest.mark.battery] if i else [])
        for r in cubes.ROWS
        for i, (c, d) in enumerate(r.runs())
    ],
)
def test_operators_of_vllm_ascend(row: Row, case: str, dtype: str, evaluator: Evaluator) -> None:
    """Tiling, kernel and launch as they are, through the gate: right, and clean but for what the row says."""
    assert check(row, case, dtype, evaluator).profile.kind in ("mix", "aic")
