"""asc-devkit's own Matmul where vector cores ask (its client and server), and several objects of a kernel; ours beside.

Its headers are found through ``ASCENDOPT_ASC_DEVKIT``; without it these tests are skipped.
"""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_programs import Sample, run
from test_cube import default_options, device
from test_matmul import Array, near, tiling
from test_matmul_batch import BatchCase, batches, lie
from test_matmul_batch_mixed import MixedBatch
from test_matmul_headers import options
from typer.testing import CliRunner

from ascendopt_tune.cli import app
from ascendopt_tune.device.acl import Binary
from ascendopt_tune.errors import DeviceError, KernelCompileError
from ascendopt_tune.settings import settings

__all__ = ["default_options"]
KERNELS = Path(__file__).resolve().parent / "kernels"


@cache
def binaries(name: str, *defines: str) -> tuple[Binary, Binary]:
    """(with their Matmul, with ours)."""
    acl, text = device(), (KERNELS / f"{name}.cpp").read_text()
    ours = acl.compile(text, f"{name}.cpp", ["--cce-auto-sync=off", *defines])
    theirs = acl.compile(text, f"{name}.cpp", ["--cce-auto-sync=off", *defines, *options()])
    return acl.load(theirs), acl.load(ours)


def launch(
    binary: Binary, kernel: str, blocks: int, arrays: Sequence[Array], out: int, *scalars: Any
) -> dict[str, Any]:
    """Runs a kernel on the arrays; number ``out`` of them gets what it wrote. What the virtual NPU tells of it."""
    acl = device()
    pointers = [acl.malloc(x.nbytes) for x in arrays]
    try:
        for p, x in zip(pointers, arrays, strict=True):
            acl.memcpy_h2d(p, np.ascontiguousarray(x).view(np.uint8))
        acl.launch(binary.function(kernel), blocks, [*pointers, *scalars])
        acl.synchronize()
        acl.memcpy_d2h(arrays[out].view(np.uint8), pointers[out])
        return acl.report()
    finally:
        for p in pointers:
            acl.free(p)


def both(
    pair: tuple[Binary, Binary], kernel: str, blocks: int, arrays: Sequence[Array], out: int, *scalars: Any
) -> Array:
    """What either Matmul makes, which is the same bit for bit, with as many products and no hazard; prints times."""
    results, reports = [], []
    for binary in pair:
        mine = [x.copy() for x in arrays]
        report = launch(binary, kernel, blocks, mine, out, *scalars)
        assert not report["hazards"], report["hazards"][:1]
        assert not report["unwritten"], report["unwritten"][:1]
        results.append(mine[out])
        reports.append(report["profile"])
    np.testing.assert_array_equal(*results)
    counted = [
        {name: value for name, value in r["counters"].items() if name.endswith("mac_instructions")} for r in reports
    ]
    assert counted[0] == counted[1]
    assert any(counted[0].values())
    print(f"{kernel}: modelled {[round(r['task_duration_us'], 2) for r in reports]} us with theirs, with ours")
    return results[0]


WAYS = ["block by block", "ahead", "all", "all, waited for later"]


@pytest.mark.parametrize("way", range(4), ids=WAYS)
@pytest.mark.parametrize(("kernel", "dtype", "vectors"), [("relu_1_2", np.float32, 2), ("relu_1_1", np.float16, 1)])
def test_vector_cores_ask_for_products(kernel: str, dtype: type, vectors: int, way: int) -> None:
    m, n, k, blocks = 96 * vectors - 20, 80, 70, 2
    t = tiling(m, n, k, (32, 48, 32), usedCoreNum=2 * vectors, singleCoreM=48, isBias=1)
    rng = np.random.default_rng(way)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n)))
    bias = rng.standard_normal(n).astype(np.float32)
    arrays = [a, b, bias, np.zeros((m, n), dtype), np.zeros((2 * vectors, 2 * 48 * n), dtype)]
    got = both(binaries("matmul_mixed"), kernel, blocks, arrays, 3, t, ctypes.c_uint32(way))
    exact = np.maximum(a.astype(np.float64) @ b.astype(np.float64) + bias, 0)
    near(got, exact, k, 2.0**-10 if dtype is np.float16 else 0.0)


@pytest.mark.parametrize("k", [32, 48])
def test_a_comes_from_the_unified_buffer(k: int) -> None:
    m, n = 32, 20
    t = tiling(m, n, k, (32, 32, 48), depthA1=1, depthB1=1)
    rng = np.random.default_rng(k)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n)))
    arrays = [a, b, np.zeros((m, n), np.float32), np.zeros(64, np.uint8)]
    got = both(binaries("matmul_mixed"), "left_in_ub", 1, arrays, 2, t)
    near(got, 2 * a.astype(np.float64) @ b.astype(np.float64), k)


@pytest.mark.parametrize("cores", ["-DASCENDC_CUBE_ONLY", "-DMIXED"])
@pytest.mark.parametrize("kernel", ["blocks_blocks", "packets_blocks"])
def test_two_objects_in_turn(cores: str, kernel: str) -> None:
    """They share L1 and L0C; the first one needs more of it than the second one, and the other way round."""
    m, n, k, last = 150, 64, 96, 48
    workers, groups = (2, 2) if cores.endswith("ONLY") else (4, 2)
    t = tiling(m, n, k, (32, 32, 32), usedCoreNum=workers, singleCoreM=20, isBias=1, depthA1=4, depthB1=4, stepKa=2,
               stepKb=2, shareL1Size=4 * 4096, shareL0CSize=4096)  # fmt: skip
    u = tiling(m, last, n, (32, 48, 64), usedCoreNum=workers, singleCoreM=20, shareL1Size=4 * 10240, shareL0CSize=6144)
    if kernel == "blocks_blocks":
        t, u = tiling(m, n, k, (32, 64, 96), usedCoreNum=workers, singleCoreM=20, isBias=1), u
    rng = np.random.default_rng(m)
    a, b, d = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n), (n, last)))
    bias = rng.standard_normal(n).astype(np.float32)
    arrays = [a, b, bias, d, np.zeros((m, n), np.float16), np.zeros((m, last), np.float32)]
    got = both(binaries("matmul_two", cores), kernel, groups, arrays, 5, t, u)
    between = (a.astype(np.float64) @ b.astype(np.float64) + bias).astype(np.float16)
    exact = between.astype(np.float64) @ d.astype(np.float64)
    np.testing.assert_allclose(got, exact, atol=2e-2 * np.abs(exact).max())


ASKED = [("rows", 0), ("rows", 1), ("rows", 3), ("rows", 5), ("matrices", 0), ("matrices", 4), ("matrices", 6),
         ("to_vector_core", 2), ("to_vector_core", 6)]  # fmt: skip


@pytest.mark.parametrize(("kernel", "way"), ASKED)
def test_batches(kernel: str, way: int) -> None:
    m, n, k, loops, a = 16, 24, 40, 3, (3, 3, 2)
    layout = "BSNGD" if kernel == "rows" else "BNGS1S2"
    rng = np.random.default_rng(way)
    left = rng.standard_normal((2, *a, m, k)).astype(np.float16)
    right = rng.standard_normal((*a, k, n)).astype(np.float16)
    lie_a, lie_b = np.stack([lie(x, layout) for x in left]), lie(right.swapaxes(3, 4), layout)
    exact = np.stack([lie(x, layout) for x in left.astype(np.float64) @ right.astype(np.float64)])
    arrays = [lie_a, lie_b, np.zeros(exact.shape, np.float32), np.zeros(exact.shape, np.float32)]
    # Their server does not wait for L1 behind IterateNBatch: the two vector cores' objects get a half each.
    t = batches(m, n, k, a, a, a, (32, 32, 32), 0, 1, BatchNum=6, shareMode=int(way >= 3), shareL1Size=4 * 27648,
                shareL0CSize=4 * 4096)  # fmt: skip
    case = MixedBatch(way=way, count_a=6, count_b=6, loops=loops, step_a=6 * m * k, step_b=6 * k * n, step_c=6 * m * n,
                      bytes=6 * m * n * 4)  # fmt: skip
    got = both(binaries("matmul_batch_mixed"), kernel, 1, arrays, 2, t, case)
    near(got, exact, k)


@pytest.mark.parametrize("kernel", ["float16_NORMAL_NORMAL", "float16_single"])
def test_batches_on_cube_cores_alone(kernel: str) -> None:
    m, n, k, a = 32, 48, 64, (1, 3, 2)
    rng = np.random.default_rng(m)
    left, right = (rng.standard_normal((*a, *s)).astype(np.float16) for s in ((m, k), (k, n)))
    arrays = [left, right, np.zeros(n, np.float32), np.zeros((*a, m, n), np.float32)]
    t = batches(m, n, k, a, a, a, (32, 48, 32), 0, 1, BatchNum=6)
    got = both(batch_binaries(), kernel, 1, arrays, 3, t, BatchCase(count_a=6, count_b=6, calls=1))
    near(got, left.astype(np.float64) @ right.astype(np.float64), k)


@cache
def batch_binaries() -> tuple[Binary, Binary]:
    """Of two kernels of matmul_batch.cpp: (with their Matmul, with ours)."""
    acl, name = device(), "matmul_batch.cpp"
    wanted = r"^KERNEL\((?!float16_NORMAL_NORMAL|float16_single).*\n"
    text = re.sub(wanted, "", (KERNELS / name).read_text(), flags=re.MULTILINE)
    theirs, ours = (acl.compile(text, name, ["--cce-auto-sync=off", *more]) for more in (options(), []))
    return acl.load(theirs), acl.load(ours)


FUSED = ["batch_matmul", "matmul_async_iterate", "matmul_fused"]


@pytest.mark.parametrize("name", FUSED)
def test_samples_of_asc_devkit(name: str, tmp_path: Path) -> None:
    """Mixed kernels as they are: both Matmuls pass the sample's own check, with equal results and no hazard."""
    more, results = options(), []
    for own in (False, True):
        work = tmp_path / ("own" if own else "theirs")
        work.mkdir()
        checkout = settings().asc_devkit
        assert checkout is not None
        reports = run(Sample(f"04_advanced_api/00_matmul/{name}"), checkout, work, () if own else more)
        assert not any(r["hazards"] or r["unwritten"] for r in reports)
        results.append(((work / "output/output.bin").read_bytes(), [r["profile"]["task_duration_us"] for r in reports]))
    assert results[0][0] == results[1][0]
    print(f"{name}: modelled {results[0][1]} us with theirs, {results[1][1]} us with ours")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("Rows = MatmulType<TPosition::GM,", "Rows = MatmulType<TPosition::TSCM,", "matrices of a vector core in TSCM"),
        ("Sums, Sums> mm;", "Sums, Sums, dual> mm;", "enableMixDualMaster"),
        ("Sums, Sums> mm;", "Sums, Sums, intra> mm;", "intraBlockPartSum"),
    ],
)
def test_what_is_not_covered_is_refused_by_name(old: str, new: str, why: str) -> None:
    text = (KERNELS / "matmul_mixed.cpp").read_text()
    head = """
constexpr MatmulConfig dual = GetNormalConfig(false, false, false, BatchMode::BATCH_LESS_THAN_L1, true,
                                              IterateOrder::UNDEF, ScheduleType::INNER_PRODUCT, true, true);
constexpr MatmulConfig changed() {
  MatmulConfig c = GetNormalConfig();
  c.intraBlockPartSum = true;
  return c;
}
constexpr MatmulConfig intra = changed();
"""
    assert old in text
    text = text.replace(old, new).replace("using namespace AscendC;\n", f"using namespace AscendC;\n{head}")
    with pytest.raises(KernelCompileError) as refused:
        device().compile(text, "matmul.cpp", options())
    assert f"AscendC::Matmul: {why}" in str(refused.value.log)


def is_refused(text: str, m: int, way: int, says: str) -> None:
    """A launch of the kernel for m x 32 products on two cores ends in an error that says this."""
    acl = device()
    binary = acl.load(acl.compile(text, "matmul.cpp", ["--cce-auto-sync=off", *options()]))
    t = tiling(m, 32, 32, (32, 32, 32), usedCoreNum=2, singleCoreM=m // 2, isBias=1)
    arrays = [np.zeros((m, 32), np.float16), np.zeros((32, 32), np.float16), np.zeros(32, np.float32),
              np.zeros((m, 32), np.float32), np.zeros((2, m * 32), np.float32)]  # fmt: skip
    with pytest.raises(DeviceError, match=says):
        launch(binary, "relu_1_2", 1, arrays, 3, t, ctypes.c_uint32(way))


def test_a_core_that_ends_early_is_told() -> None:
    """The cube core waits for all vector cores of its group, as on the device."""
    text = (KERNELS / "matmul_mixed.cpp").read_text()
    text = text.replace("  TPipe pipe;\n", "  if (GetSubBlockIdx() == 1) return;\n  TPipe pipe;\n", 1)
    is_refused(text, 96, 2, "each has to get to REGIST_MATMUL_OBJ")


def test_who_waits_for_an_answer_is_told() -> None:
    """WaitIterateAll has to be announced where the products are asked for."""
    text = (KERNELS / "matmul_mixed.cpp").read_text().replace("(result, 0, false, true)", "(result)")
    is_refused(text, 48, 3, "the answer of the cube core, for which Matmul waits, on AIV 0")


def test_an_operator_of_the_registry() -> None:
    """With the checks and limits of every candidate."""
    options()
    run_it = ["run", "matmul_gelu", "--target", "virtual", "--json", "--matmul-headers", str(settings().asc_devkit)]
    done = CliRunner().invoke(app, run_it)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["outcome"] == "Timed"
    assert not told["hazards"]
