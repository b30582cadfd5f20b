"""Cube kernels of others, unmodified: cann-ops' mmad through the gate, asc-devkit's samples of single instructions.

The sources are found through ``ASCENDOPT_CANN_OPS`` and ``ASCENDOPT_ASC_DEVKIT``; without them these tests are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from test_cube import default_options, device, factor, tiled, word
from test_cube_int4 import packed as int4
from test_cube_sparse import halved, packed

from ascendopt_tune.build import toolkit
from ascendopt_tune.build.kernel import without_launches
from ascendopt_tune.errors import DeviceError
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.case import Case, TensorSpec
from ascendopt_tune.nouns.chip import DEFAULT_CHIP
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.search.kernel.motifs import find
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram
from ascendopt_tune.settings import settings
from ascendopt_tune.sources.project import load_project

__all__ = ["default_options"]
Array = np.ndarray[Any, Any]
SAMPLES = "examples/01_simd_cpp_api/03_basic_api/03_matrix_compute"


def mmad(a: Any, b: Any, bias: Any) -> Any:
    return a.double() @ b.double() + bias.double()


def test_mmad_of_cann_ops(tmp_path: Path) -> None:
    checkout = settings().cann_ops
    if checkout is None:
        pytest.skip("ASCENDOPT_CANN_OPS is not set")
    operator = replace(load_project(checkout / "src/matmul/mmad"), reference=mmad)
    square = TensorSpec("float16", (32, 32))
    case = Case((square, square, TensorSpec("float32", (1, 32))), (TensorSpec("float32", (32, 32)),), ())
    with Evaluator(toolkit.virtual(), DEFAULT_CHIP, workers=1, build_dir=tmp_path) as evaluator:
        signature = evaluator.describe(operator).signature
        outcome = Gate(operator, case, evaluator, signature=signature).evaluate(operator.baseline).outcome
    assert isinstance(outcome, Timed), outcome
    assert outcome.profile.kind == "aic"


def mat_mul(x1: Any, x2: Any, *_: Any, transpose_x1: bool, transpose_x2: bool, **__: Any) -> Any:
    a, b = x1.double(), x2.double()
    return (a.T if transpose_x1 else a) @ (b.T if transpose_x2 else b)


# Of the last, whose rows have 400 and 600 bytes, vector cores make tiles first.
MAT_MULS = [(64, 64, 64, False), (256, 512, 384, False), (128, 256, 96, True), (100, 200, 300, False)]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the 40 sources of the repository's library for tiling programs are compiled, once for all cases."""
    return tmp_path_factory.mktemp("build")


@pytest.mark.parametrize(("m", "k", "n", "turned"), MAT_MULS)
def test_mat_mul_v3_of_cann_ops(library: Path, m: int, k: int, n: int, turned: bool) -> None:
    checkout = settings().cann_ops
    if checkout is None:
        pytest.skip("ASCENDOPT_CANN_OPS is not set")
    operator = replace(load_project(checkout / "src/matmul/mat_mul_v3"), reference=mat_mul)
    x1, x2 = TensorSpec("float16", (m, k)), TensorSpec("float16", (n, k) if turned else (k, n))
    attrs = {"enable_hf32": False, "offset_x": 0, "transpose_x1": False, "transpose_x2": turned}
    case = Case((x1, x2, None, None), (TensorSpec("float16", (m, n)),), tuple(attrs.items()))
    with Evaluator(toolkit.virtual(), DEFAULT_CHIP, workers=1, build_dir=library) as evaluator:
        signature = evaluator.describe(operator).signature
        outcome = Gate(operator, case, evaluator, signature=signature).evaluate(operator.baseline).outcome
    assert isinstance(outcome, Timed), outcome


@dataclass(frozen=True)
class Sample:
    """A scenario of a sample: ``make`` gives what is handed to the kernel and what its output has to be.

    ``hazard``: what the sample forgot to order, which has to be reported.
    """

    folder: str
    kernel: str
    scenario: int
    make: Callable[[], tuple[list[Array], Array]]
    output: int
    steps: float = 0.0  # by how much the output may be off
    hazard: str = ""
    values: str = ""  # of the template's parameters, where the sample's own take too long
    blocks: int = 1


def operands(dtype: Any, m: int, n: int, k: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(m * n + k)
    make = (lambda *s: rng.integers(1, 10, s)) if dtype == np.int8 else (lambda *s: rng.uniform(-1, 3, s))
    return make(m, k).astype(dtype), make(k, n).astype(dtype), make(n)


def plain(dtype: Any, m: int, n: int, k: int, turn: str = "", bias: bool = False, times: int = 1, unused: bool = False,
          slices: int = 1) -> Callable[[], tuple[list[Array], Array]]:  # fmt: skip
    """``turn``: which operands lie as columns; ``slices``: k is the outermost axis of a, in so many pieces."""

    def make() -> tuple[list[Array], Array]:
        a, b, c = operands(dtype, m, n, k)
        out = np.dtype(np.int32 if dtype == np.int8 else np.float32)
        c = c.astype(out)
        exact = times * (a.astype(np.float64) @ b.astype(np.float64)) + (c if bias else 0)
        a = a.reshape(m, slices, k // slices).transpose(1, 0, 2) if slices > 1 else a.T if "a" in turn else a
        arrays = [np.ascontiguousarray(a), np.ascontiguousarray(b.T if "b" in turn else b)]
        return [*arrays, *([c] if bias or unused else []), np.zeros((m, n), out)], exact

    return make


def halves(m: int, n: int, k: int, turned: bool, unused: bool = False) -> Callable[[], tuple[list[Array], Array]]:
    """int4, two elements a byte; ``turned``: b lies as columns."""

    def make() -> tuple[list[Array], Array]:
        rng = np.random.default_rng(m * n + k)
        a, b = rng.integers(-8, 8, (m, k)), rng.integers(-8, 8, (k, n))
        bias = [np.zeros(n, np.int32)] if unused else []
        return [int4(a), int4(b.T if turned else b), *bias, np.zeros((m, n), np.int32)], a @ b

    return make


def outgoing(
    change: Callable[[Array], Array], dtype: Any, scale: float = 0.1
) -> Callable[[], tuple[list[Array], Array]]:
    def make() -> tuple[list[Array], Array]:
        (a, b, _), exact = plain(np.float16, 128, 256, 128, slices=2)()
        expected = change(exact)
        return [a, b, np.zeros(expected.shape, dtype), np.full(256, word(0.1), np.uint64)], expected

    return make


def wrapped() -> tuple[list[Array], Array]:
    """Of the left matrix, 2 KB in columns of 16, the second KB is read as the first one."""
    a, b, _ = operands(np.float16, 32, 32, 32)
    left = np.concatenate([a[:, :16], a[:, :16]], 1).astype(np.float64)
    return [a, b, np.zeros((32, 32), np.float32)], left @ b.astype(np.float64)


def large() -> tuple[list[Array], Array]:
    a, b, _ = operands(np.float16, 512, 512, 512)
    return [a, np.ascontiguousarray(b.T), np.zeros((512, 512), np.float16)], a.astype(np.float64) @ b


def columns(x: Array, width: int) -> Array:
    return x.reshape(x.shape[0], -1, width).transpose(1, 0, 2)


def sparse() -> tuple[list[Array], Array]:
    rng = np.random.default_rng(5)
    a, b = (rng.integers(1, 10, s).astype(np.int8) for s in ((128, 64), (128, 64)))
    left, kept, where = halved(b, rng)
    arrays = [tiled(a, 32, 128), tiled(kept, 32, 128), tiled(packed(where), 8, 128)]
    return [*map(np.ascontiguousarray, arrays), np.zeros((128, 128), np.int32)], a.astype(np.int64) @ left.T


def quantized(x: Array) -> Array:
    return np.clip(np.rint(x * factor(0.1)), -128, 127)


LOADS = "load_data_l12l0", "KernelLoadDataL12L0"
WINDOWS = "mmad_load3dv2", "mmad_custom"
OUT = "fixpipe_l0c2gm", "fixpipe_l0c2gm"
TABLE = [
    Sample("mmad", "mmad_custom", 1, plain(np.int8, 30, 40, 70, bias=True), 3),
    Sample("mmad", "mmad_custom", 2, plain(ml_dtypes.bfloat16, 30, 40, 70, "b", times=2, unused=True), 3, 1e-3,
           hazard="PipeBarrier<PIPE_M>"),
    Sample("mmad", "mmad_custom", 3, plain(np.float32, 30, 40, 70, "ab", bias=True), 3, 1e-3),
    Sample("mmad", "mmad_custom", 4, halves(30, 40, 70, True, unused=True), 3),
    Sample("mmad_unitflag", "mmad_with_unitflag_custom", 0, plain(np.float16, 128, 256, 512, slices=8), 2, 1e-2),
    Sample("mmad_gemv", "mmad_custom", 0, plain(np.float16, 1, 32, 256, "b"), 2, 1e-2),
    Sample("mmad_with_sparse", "mmad_with_sparse_custom", 0, sparse, 3, hazard="PipeBarrier<PIPE_MTE1>"),
    Sample(*LOADS, 1, halves(40, 50, 70, True), 2),
    Sample(*LOADS, 2, halves(40, 50, 70, False), 2),
    Sample(*LOADS, 3, plain(np.int8, 40, 50, 70, "b"), 2),
    Sample(*LOADS, 4, plain(np.int8, 40, 50, 70, "b"), 2),
    Sample(*LOADS, 5, plain(np.int8, 40, 50, 70, "a"), 2),
    Sample(*LOADS, 6, plain(np.float16, 40, 50, 70, "b"), 2, 1e-3),
    Sample(*LOADS, 7, plain(np.float16, 40, 50, 70, "b"), 2, 1e-3),
    Sample(*LOADS, 8, plain(np.float16, 40, 50, 70, "a"), 2, 1e-3),
    Sample(*LOADS, 9, plain(np.float16, 40, 50, 70, "a"), 2, 1e-3),
    Sample(*LOADS, 10, plain(np.float16, 40, 50, 70, "a"), 2, 1e-3),
    Sample(*LOADS, 11, plain(np.float32, 40, 50, 70, "b"), 2, 1e-3),
    Sample(*LOADS, 12, plain(np.float32, 40, 50, 70, "b"), 2, 1e-3),
    Sample(*LOADS, 13, plain(np.float32, 40, 50, 70, "a"), 2, 1e-3),
    Sample(*WINDOWS, 1, plain(np.float16, 30, 70, 40), 2, 1e-3),
    Sample(*WINDOWS, 2, plain(np.float16, 30, 70, 40, "a"), 2, 1e-3),
    Sample(*WINDOWS, 3, plain(np.float32, 30, 70, 40), 2, 1e-3),
    Sample(*WINDOWS, 4, plain(np.float32, 30, 70, 40, "a"), 2, 1e-3),
    Sample(*WINDOWS, 5, plain(np.int8, 30, 70, 40, "b"), 2),
    Sample("../../06_compatibility_guide/set_loaddata_boundary", "set_loaddata_boundary", 0, wrapped, 2, 1e-3),
    Sample("../../05_best_practices/01_matrix_compute/matmul_basic_api_high_performance", "mmad_custom", 1, large, 2,
           2.0, values="512, 512, 512, 128, 64, 256, 256, 512, 256, 8, 4", blocks=4),
    Sample("../../05_best_practices/01_matrix_compute/matmul_basic_api_high_performance", "mmad_custom", 2, large, 2,
           2.0, values="512, 512, 512, 128, 64, 256, 256, 512, 256, 8, 4", blocks=4),
    Sample(*OUT, 1, outgoing(lambda x: columns(x, 16), np.float32), 2, 1e-3),
    Sample(*OUT, 2, outgoing(lambda x: x, np.float32), 2, 1e-3),
    Sample(*OUT, 5, outgoing(quantized, np.int8), 2, 1.0),  # a float sum may round the other way
    Sample(*OUT, 6, outgoing(lambda x: np.maximum(x, 0), np.float32), 2, 1e-3),
    Sample(*OUT, 7, outgoing(lambda x: columns(x, 8), np.float32), 2, 1e-3),
]  # fmt: skip


def instance(text: str, kernel: str, parameters: int, values: str) -> str:
    """A kernel that calls the sample's; a template's parameters are the sample's own constants, or others."""
    template = re.search(rf"template <([^>]*)>\s*__global__ __cube__ void {kernel}", text)
    names = [f"p{i}" for i in range(parameters)]
    declared = ", ".join(f"GM_ADDR {n}" for n in names)
    entry = f'extern "C" __global__ __cube__ void probe({declared}) {{ {kernel}'
    if template is None:
        return f"{entry}({', '.join(names)}); }}\n"
    constants = {n.lower(): v for n, v in re.findall(r"constexpr\s+u?int\d+_t\s+(\w+)\s*=\s*(\d+);", text)}
    values = values or ", ".join(constants[p.split()[-1].lower()] for p in template[1].split(","))
    return f"{entry}<{values}>({', '.join(names)}); }}\n"


def unit(sample: Sample, folder: Path, parameters: int) -> tuple[str, list[str]]:
    """What is compiled of the sample in ``folder``, and how; its entry is ``probe``."""
    text = next(folder.glob("*.asc")).read_text()
    head = "#define AOT_HOST_LAUNCH(...) ((void)0)\n#define main aot_host_main\n#include <string>\n#include <vector>\n"
    whole = head + without_launches(text) + "\n" + instance(text, sample.kernel, parameters, sample.values)
    return whole, ["--cce-auto-sync=off", f"-I{folder}", f"-DSCENARIO_NUM={sample.scenario}"]


def checkout_of_samples() -> Path:
    checkout = settings().asc_devkit
    if checkout is None or not (checkout / SAMPLES).is_dir():
        pytest.skip("ASCENDOPT_ASC_DEVKIT is not set, or has no examples")
    return checkout / SAMPLES


def run(sample: Sample, folder: Path, changed: Callable[[str], str] = str) -> None:
    """The sample, its text changed: values right, no hazard but the sample's own, nothing left unwritten."""
    acl = device()
    arrays, expected = sample.make()
    text, options = unit(sample, folder, len(arrays))
    function = acl.load(acl.compile(changed(text), f"{folder.name}.cpp", options)).function("probe")
    pointers = [acl.malloc(max(32, x.nbytes)) for x in arrays]
    try:
        for p, x in zip(pointers, arrays, strict=True):
            acl.memcpy_h2d(p, x.view(np.uint8))
        acl.launch(function, sample.blocks, pointers)
        acl.synchronize()
        got = arrays[sample.output]
        acl.memcpy_d2h(got.view(np.uint8), pointers[sample.output])
    finally:
        for p in pointers:
            acl.free(p)
    report = acl.report()
    np.testing.assert_allclose(got.astype(np.float64), expected, rtol=0, atol=sample.steps)
    assert {h["missing"] for h in report["hazards"]} == ({sample.hazard} if sample.hazard else set())
    assert not report["unwritten"]


@pytest.mark.parametrize("sample", TABLE, ids=lambda s: f"{Path(s.folder).name}-{s.scenario}")
def test_samples_of_asc_devkit(sample: Sample) -> None:
    run(sample, checkout_of_samples() / sample.folder)


@pytest.mark.battery
def test_samples_with_unit_flags_in_place_of_their_flag(capsys: pytest.CaptureFixture[str]) -> None:
    """The motif `unit-flag` on code it wasn't made from: right, or refused by name."""
    right, refused = [], {}

    def flagged(text: str) -> str:
        kernel = KernelProgram({"k.cpp": text}, {}, None, False)
        while found := list(find("unit-flag").optimize(kernel)):
            kernel = KernelProgram(found[0].kernel(kernel), {}, None, False)
        return kernel.files["k.cpp"]

    for sample in TABLE:
        folder, name = checkout_of_samples() / sample.folder, f"{Path(sample.folder).name}-{sample.scenario}"
        text, _ = unit(sample, folder, len(sample.make()[0]))
        if flagged(text) == text:
            continue
        try:
            run(sample, folder, flagged)
        except DeviceError as e:
            refused[name] = str(e).rpartition("kernel probe: ")[2]
        else:
            right.append(name)
    with capsys.disabled():
        print(f"\nunit flags: {len(right)} right: {', '.join(right)}; refused: {refused}")
    assert len(right) >= 28
    assert all("unit flags" in why or "without unitFlag" in why for why in refused.values())
