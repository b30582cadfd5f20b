"""asc-devkit's own Matmul on the virtual NPU, and ours beside it: values, products, copies; modelled times are printed.

Its headers are found through ``ASCENDOPT_ASC_DEVKIT``; without it these tests are skipped.
"""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cube_tiling import CubeTiling
from test_cube import default_options, device
from test_matmul import SOURCE, Array, MatmulCase, as_tiles, launch, near, tiling
from typer.testing import CliRunner

from ascendopt_tune.build import toolkit
from ascendopt_tune.build.matmul_headers import matmul_headers
from ascendopt_tune.cli import app
from ascendopt_tune.device.acl import Binary
from ascendopt_tune.errors import ToolchainError
from ascendopt_tune.settings import override, settings

__all__ = ["default_options"]
KERNELS = {
    "half_blocks": (np.float16, np.float32), "half_packets": (np.float16, np.float32),
    "float_blocks": (np.float32, np.float32), "int8_packets": (np.int8, np.int32),
    "half_tiles": (np.float16, np.float16),
}  # fmt: skip
#: What both have to do alike, whatever the order: products, and the bytes that come and go.
ALIKE = ("mac_instructions", "mte2_bytes", "fixpipe_bytes")


def options() -> list[str]:
    checkout = settings().asc_devkit
    if checkout is None:
        pytest.skip("ASCENDOPT_ASC_DEVKIT is not set")
    return list(matmul_headers(checkout.resolve(), toolkit.virtual().prefix.parent).options)


def source(*kernels: str) -> str:
    """The kernels that are named, of those with one way to call them."""
    text = SOURCE.read_text().partition("// A's rows in the order")[0]
    return re.sub(r"^KERNEL\((\w+),.*\n", lambda m: m[0] if m[1] in kernels else "", text, flags=re.MULTILINE)


@cache
def binaries() -> tuple[Binary, Binary]:
    """(with their Matmul, with ours)."""
    acl, common = device(), ["--cce-auto-sync=off"]
    theirs, ours = (acl.compile(source(*KERNELS), "matmul.cpp", [*common, *more]) for more in (options(), []))
    assert theirs != ours
    return acl.load(theirs), acl.load(ours)


def both(kernel: str, t: CubeTiling, **how: int) -> tuple[Array, dict[str, Any]]:
    """What comes of random matrices, alike with either Matmul, and (theirs, ours) for what the virtual NPU counted."""
    a_type, c_type = KERNELS[kernel]
    rng = np.random.default_rng(t.M * 10007 + t.N * 101 + t.Ka)
    shapes = (t.M, t.Ka), (t.Kb, t.N)
    if a_type is np.int8:
        a, b = (rng.integers(-128, 128, s).astype(np.int8) for s in shapes)
    else:
        a, b = (rng.standard_normal(s).astype(a_type) for s in shapes)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    lie = [np.ascontiguousarray(a.T if how.get("turn_a") else a), np.ascontiguousarray(b.T if how.get("turn_b") else b)]
    if kernel == "half_tiles":
        lie = [as_tiles(x, x.shape[0], 16) for x in lie]
    out, reports = [], []
    for binary in binaries():
        c: Array = np.zeros((t.M, t.N), c_type)
        arrays = [*lie, np.zeros(t.N, np.float32), np.zeros(t.N, np.uint64), c]
        report = launch(kernel, arrays, t, MatmulCase(**how), blocks=t.usedCoreNum, binary=binary)
        assert not report["hazards"], report["hazards"][:1]
        assert not report["unwritten"], report["unwritten"][:1]
        out.append(c.reshape(-1, t.M, 16).transpose(1, 0, 2).reshape(t.M, t.N) if kernel == "half_tiles" else c)
        reports.append(report["profile"])
    np.testing.assert_array_equal(out[0], out[1])
    counted = {name: tuple(r["counters"][name] for r in reports) for name in ALIKE}
    times = tuple(round(r["task_duration_us"], 2) for r in reports)
    print(f"{kernel} {t.M}x{t.N}x{t.Ka} {how}: modelled {times[0]} us with theirs, {times[1]} us with ours; {counted}")
    near(out[0], exact, t.Ka, 2.0**-10 if c_type is np.float16 else 0.0)
    return out[0], counted


@pytest.mark.parametrize("kernel", KERNELS)
def test_values_products_and_copies_are_alike(kernel: str) -> None:
    t = tiling(96, 96, 128, (32, 32, 32), depthA1=4, depthB1=8, stepKa=2, stepKb=4)
    _, counted = both(kernel, t)
    for name, (theirs, ours) in counted.items():
        assert theirs == ours, name


@pytest.mark.parametrize("kernel", ["half_blocks", "half_packets", "float_blocks", "int8_packets"])
@pytest.mark.parametrize(("turn_a", "turn_b"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_tails_and_turned_matrices(kernel: str, turn_a: int, turn_b: int) -> None:
    t = tiling(77, 90, 150, (32, 32, 32), depthA1=4, depthB1=8, stepKa=2, stepKb=4, usedCoreNum=1)
    if "packets" in kernel:
        t.stepKb, t.depthB1 = 2, 4
    both(kernel, t, turn_a=turn_a, turn_b=turn_b)


def test_blocks_one_by_one_on_two_cores() -> None:
    t = tiling(64, 96, 64, (32, 48, 32), usedCoreNum=2, singleCoreM=32)
    both("half_blocks", t, by_block=1)


@pytest.mark.parametrize("kernel", ["half_blocks", "half_packets", "float_blocks"])
def test_any_cut(kernel: str) -> None:
    """40 random ones: what comes in may be more of theirs, which keep less in L1, never less."""
    rng = random.Random(7)
    alike = 0
    for _ in range(40):
        m, n, k = (rng.randint(1, 130) for _ in range(3))
        t = tiling(m, n, k, (rng.choice([16, 32, 48]), rng.choice([16, 32, 64]), rng.choice([32, 64])),
                   iterateOrder=rng.randint(0, 1), dbL0C=rng.randint(1, 2))  # fmt: skip
        t.stepKa = t.stepKb = rng.choice([1, 2, 4])
        t.depthA1 = t.depthB1 = 2 * t.stepKa
        _, counted = both(kernel, t, turn_a=rng.randint(0, 1), turn_b=rng.randint(0, 1), by_block=rng.randint(0, 1))
        theirs, ours = counted["mte2_bytes"]
        assert theirs >= ours
        alike += theirs == ours
        for name in ("mac_instructions", "fixpipe_bytes"):
            assert len(set(counted[name])) == 1, name
    print(f"{kernel}: as many bytes to L1 in {alike} of 40")
    assert alike >= 20


@pytest.mark.parametrize("n", [48, 64])
def test_loads_of_int8_that_overlap_are_reported(n: int) -> None:
    """A square of 32 x 32 at a time, also where half of one is left: the next load writes there again."""
    t = tiling(32, n, 64, (32, 64, 64))
    rng = np.random.default_rng(n)
    a, b = (rng.integers(-128, 128, s).astype(np.int8) for s in ((32, 64), (64, n)))
    c: Array = np.zeros((32, n), np.int32)
    report = launch("int8_packets", [a, b, np.zeros(n, np.float32), np.zeros(n, np.uint64), c], t, MatmulCase(),
                    binary=binaries()[0])  # fmt: skip
    np.testing.assert_array_equal(c, a.astype(np.int32) @ b.astype(np.int32))
    assert [h["first"]["api"] for h in report["hazards"]] == ["LoadDataWithTranspose"] * (n == 48)
    assert all(h["missing"] == "PipeBarrier<PIPE_MTE1>" for h in report["hazards"])


RUN = ["run", "--entry", "product", "--block-dim", "1", "--target", "virtual", "--json", "--kernel",
       str(SOURCE.with_name("product.cpp")), "--output", "c=float32[64,64]",
       *(word for name in "ab" for word in ("--input", f"{name}=float16[64,64]"))]  # fmt: skip


def test_the_command_line_takes_them(tmp_path: Path) -> None:
    """With the checks and limits of every candidate; with another key, and no longer than the command lasts."""
    options()
    checkout = str(settings().asc_devkit)
    results = []
    for more in ([], ["--matmul-headers", checkout]):
        file = tmp_path / f"{len(results)}.npz"
        done = CliRunner().invoke(app, [*RUN, "--outputs", str(file), *more])
        assert done.exit_code == 0, done.output
        results.append(np.load(file)["c"])
        assert settings().matmul_headers is None
    np.testing.assert_array_equal(*results)
    with override(matmul_headers=checkout):
        assert toolkit.find("virtual").version.startswith(toolkit.virtual().version + "-matmul-")
    assert toolkit.find("virtual") == toolkit.virtual()


def test_a_folder_without_a_matmul_is_told(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, [*RUN, "--matmul-headers", str(tmp_path)])
    assert done.exit_code != 0
    assert isinstance(done.exception, ToolchainError | SystemExit)
