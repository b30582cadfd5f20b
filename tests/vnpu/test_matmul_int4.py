"""The high-level Matmul of int4 on cube cores, against products of numpy: two elements in a byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cube_tiling import choose
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cube import clean, default_options, device, factor, launch, word
from test_cube_int4 import packed
from test_matmul import at_once, run, tiling, up

from ascendopt_tune.errors import DeviceError

__all__ = ["default_options"]


@pytest.mark.parametrize("bias", [0, 1])
@pytest.mark.parametrize("turn_b", [0, 1])
@pytest.mark.parametrize("kernel", ["int4_blocks", "int4_packets", "int4_flags"])
def test_matrices_with_tails(kernel: str, turn_b: int, bias: int) -> None:
    """Several blocks along every axis, the last ones smaller."""
    t = tiling(77, 90, 150, (32, 32, 64), depthA1=4, depthB1=8, stepKa=2, stepKb=4, isBias=bias)
    got, exact = run(kernel, "int32", t, turn_b=turn_b)
    np.testing.assert_array_equal(got, exact)


EVEN = st.integers(1, 110).map(lambda n: 2 * n)
STEPS = st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(1, 3), st.integers(1, 3))


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 130), EVEN, EVEN, st.sampled_from([16, 48]), st.sampled_from([16, 64, 80]),
       st.sampled_from([64, 128]), STEPS, st.booleans(), st.integers(0, 1), st.integers(0, 1), st.integers(1, 2),
       st.sampled_from(["int4_blocks", "int4_packets", "int4_flags"]))  # fmt: skip
def test_any_shape_and_cut(m: int, n: int, k: int, bm: int, bn: int, bk: int, steps: tuple[int, ...], turn_b: bool,
                           bias: int, order: int, buffers: int, kernel: str) -> None:  # fmt: skip
    t = tiling(m, n, k, (bm, bn, bk), isBias=bias, iterateOrder=order, dbL0C=buffers, dbL0A=buffers)
    t.stepM, t.stepN, t.stepKa, t.stepKb = steps
    if bn % 64 != 0 and not turn_b:
        t.stepN = 1  # blocks side by side in L1 begin with squares that are turned as a whole
    got, exact = run(kernel, "int32", at_once(t), turn_b=int(turn_b))
    np.testing.assert_array_equal(got, exact)


def test_matrices_that_lie_as_tiles() -> None:
    """Tiles have 16 rows of 64 elements."""
    for turn in (0, 1):
        got, exact = run("int4_tiles", "int32", tiling(48, 128, 192, (32, 64, 64)), turn_b=turn)
        np.testing.assert_array_equal(got, exact)


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize(("m", "n", "k"), [(48, 512, 128), (12, 128, 256)])
def test_matrices_that_the_kernel_has_brought_to_l1(m: int, n: int, k: int, waits: bool) -> None:
    source = Path(__file__).resolve().parent / "kernels" / "matmul_int4_l1.cpp"
    text = source.read_text() if waits else "#define LEFT_OUT\n" + source.read_text()
    rng = np.random.default_rng(k)
    a, b = (rng.integers(-8, 8, shape) for shape in ((m, k), (k, n)))
    out = np.zeros((m, n), np.int32)
    t = tiling(m, n, k, (up(m, 16), min(n, 256), 128))
    binary = device().load(device().compile(text, source.name, ["--cce-auto-sync=off"]))
    report = launch("int4_in_l1", [packed(a), packed(b)], out, t, binary=binary)
    np.testing.assert_array_equal(out, a @ b)
    if waits:
        clean(report)
    else:
        assert {(h["first"]["pipe"], h["second"]["pipe"]) for h in report["hazards"]} == {("MTE2", "MTE1")}


def test_several_cores_share_m_n_and_k() -> None:
    t = tiling(100, 136, 256, (32, 64, 64), usedCoreNum=8, singleCoreM=64, singleCoreN=128, singleCoreK=128)
    got, exact = run("int4_packets", "int32", t, atomic=1)
    np.testing.assert_array_equal(got, exact)


@pytest.mark.parametrize("quant", [1, 2], ids=["one word", "a word for each column"])
def test_quantization(quant: int) -> None:
    got, exact = run("int4_half", "float16", tiling(40, 64, 64, (32, 32, 64)), quant=quant, word=word(0.002))
    scales = np.array([factor(0.001 * (1 + i % 7)) if quant == 2 else factor(0.002) for i in range(64)])
    np.testing.assert_allclose(got.astype(np.float64), exact * scales, rtol=2.0**-9, atol=1e-4)


def test_rows_end_where_bytes_do() -> None:
    """A row with an odd number of elements, and a block of k that is no multiple of a tile's columns."""
    with pytest.raises(DeviceError, match="even number of elements"):
        run("int4_blocks", "int32", tiling(32, 32, 64, (32, 32, 64), singleCoreK=63))
    with pytest.raises(DeviceError, match="baseK has to be"):
        run("int4_blocks", "int32", tiling(32, 32, 64, (32, 32, 32)))


@pytest.mark.parametrize(("kernel", "side"), [("int4_packets", 64), ("int8_packets", 32)])
def test_blocks_side_by_side_begin_with_squares(kernel: str, side: int) -> None:
    with pytest.raises(DeviceError, match=f"baseN has to be a multiple of {side}"):
        run(kernel, "int32", at_once(tiling(32, 32, 64, (32, 16, 64), stepN=2)))
    got, exact = run(kernel, "int32", at_once(tiling(32, 2 * side, 64, (32, side, 64), stepN=2)))
    np.testing.assert_array_equal(got, exact)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tilings")


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 9000), st.integers(1, 4500), st.integers(1, 4500), st.integers(1, 24), st.booleans(),
       st.booleans())  # fmt: skip
def test_tilings_fit_the_memories(built: Path, m: int, half_n: int, half_k: int, cores: int, turn_b: bool,
                                  bias: bool) -> None:  # fmt: skip
    """The constraints of asc-devkit's page of TCubeTiling, with the 64 rows and columns of a square that is turned."""
    t = choose(built, m, 2 * half_n, 2 * half_k, cores, "int4", "int32", turn_b=int(turn_b), bias=int(bias))
    assert t is not None
    bm, bn, bk = t.of("baseM", "baseN", "baseK")
    assert bm % 16 == bn % (16 if turn_b else 64) == bk % 64 == 0
    wide = up(bn, 16 if turn_b else 64)
    assert max(bm, wide) * bk // 2 * t.dbL0A <= 65536
    assert bm * wide * 4 * t.dbL0C <= 131072
    assert not bias or bn * 4 <= 1024
    assert (t.depthA1 * bm + t.depthB1 * wide) * bk // 2 + (bn * 4 if bias else 0) <= 524288


@pytest.mark.parametrize(("m", "n", "k", "cores"), [(256, 1920, 128, 8), (100, 90, 330, 2)])
def test_a_chosen_tiling_computes(built: Path, m: int, n: int, k: int, cores: int) -> None:
    t = choose(built, m, n, k, cores, "int4", "int32", bias=1)
    assert t is not None
    got, exact = run("int4_packets", "int32", t)
    np.testing.assert_array_equal(got, exact)
