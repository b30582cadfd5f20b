"""A Matmul whose B is sparse (two of four elements along k are there), and objects for which L1 is too small."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cube_tiling import CubeTiling, choose
from test_cube import default_options, device, launch
from test_matmul import tiling, up

from ascendopt_tune.device.acl import Binary
from ascendopt_tune.errors import DeviceError, KernelCompileError

__all__ = ["default_options"]
SOURCE = Path(__file__).resolve().parent / "kernels" / "matmul_sparse.cpp"
Array = np.ndarray[Any, Any]


@cache
def kernels() -> Binary:
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


def as_tiles(x: Array, width: int) -> Array:
    """[n, k] as columns of tiles of 16 rows."""
    padded = np.zeros((up(x.shape[0], 16), up(x.shape[1], width)), x.dtype)
    padded[: x.shape[0], : x.shape[1]] = x
    return np.ascontiguousarray(padded.reshape(padded.shape[0], -1, width).transpose(1, 0, 2))


def sparse(n: int, k: int) -> tuple[Array, Array, Array]:
    """(B as [n, k] with two zeros in every four, what is left of it, the places of what is left)."""
    rng = np.random.default_rng(n + k)
    whole, left = np.zeros((n, k // 4, 4), np.int8), rng.integers(1, 100, (n, k // 4, 2)).astype(np.int8)
    at = np.sort(np.argsort(rng.random((n, k // 4, 4)), axis=-1)[..., :2], axis=-1)
    np.put_along_axis(whole, at, left, -1)
    pairs = (at[..., 0] | at[..., 1] - 1 << 2).astype(np.uint8)  # the second one counts from the second element on
    return whole.reshape(n, k), left.reshape(n, k // 2), pairs[:, ::2] | pairs[:, 1::2] << 4


@pytest.mark.parametrize("kernel", ["sparse_rows", "sparse_tiles"])
@pytest.mark.parametrize(
    ("m", "n", "k", "how"),
    [(64, 96, 128, {}), (48, 70, 192, {"isBias": 1}),
     (33, 160, 512, {"stepKb": 2, "depthB1": 4, "stepKa": 2, "depthA1": 4}),
     (32, 128, 256, {"stepN": 2, "depthB1": 4})],
)  # fmt: skip
def test_sparse_products(kernel: str, m: int, n: int, k: int, how: dict[str, int]) -> None:
    t = tiling(m, n, k, (32, 64, 64), **how)
    whole, left, places = sparse(n, k)
    rng = np.random.default_rng(m)
    a, bias = rng.integers(-100, 100, (m, k)).astype(np.int8), rng.integers(-99, 99, n).astype(np.int32)
    b = as_tiles(left, 32) if kernel == "sparse_tiles" else left
    out = np.zeros((m, n), np.int32)
    report = launch(kernel, [a, b, as_tiles(places, 8), bias], out, t, ctypes.c_uint32(1), binary=kernels())
    exact = a.astype(np.int64) @ whole.astype(np.int64).T + (bias if t.isBias else 0)
    np.testing.assert_array_equal(out, exact)
    assert not report["hazards"], report["hazards"][:1]
    assert not report["unwritten"]


@pytest.mark.parametrize(
    ("base", "places", "message"),
    [((32, 64, 64), 0, "SetSparseIndex comes first"), ((32, 64, 32), 1, "has to be a multiple of 64")],
)
def test_what_a_sparse_product_needs(base: tuple[int, int, int], places: int, message: str) -> None:
    a, b, index, bias = (np.zeros(64 * 64, np.int8) for _ in range(4))
    with pytest.raises(DeviceError, match=message):
        launch("sparse_rows", [a, b, index, bias], np.zeros((64, 64), np.int32), tiling(64, 64, 64, base),
               ctypes.c_uint32(places), binary=kernels())  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [(("true>;", "false>;"), "SparseMatmulType is for B"), (("CFG_MDL", "CFG_NORM"), "SparseMatmulType is for B"),
     (("#define ASCENDC_CUBE_ONLY\n", ""), "on cube cores alone"),
     (("Sparse<format>, Sums", "MatmulType<TPosition::GM, format, int8_t, true>, Sums"), "has to be SparseMatmulType")],
)  # fmt: skip
def test_where_there_are_no_sparse_products(change: tuple[str, str], message: str) -> None:
    text = SOURCE.read_text()
    assert change[0] in text
    with pytest.raises(KernelCompileError, match=message):
        device().compile(text.replace(*change), SOURCE.name, [])


def test_a_sparse_tiling(tmp_path: Path) -> None:
    found = choose(tmp_path, 256, 512, 1024, dtype="int8", out="int32", turn_b=1, sparse=1)
    assert found is not None
    assert found.baseK % 64 == 0
    either = choose(tmp_path, 256, 512, 1024, dtype="int8", out="int32", turn_b=0, sparse=1)
    assert either is not None
    assert bytes(either) == bytes(found)  # there is one direction
    assert choose(tmp_path, 256, 512, 1024, dtype="float16", turn_b=1, sparse=1) is None


def large(**more: int) -> CubeTiling:
    """Takes over half of L1: six blocks of A and of B, 16 and 32 KB each, and a row of the bias."""
    return tiling(128, 256, 384, (64, 128, 128), depthA1=6, depthB1=6, isBias=1, **more)


def products(first: CubeTiling, second: CubeTiling, ends: int) -> tuple[Array, Array, dict[str, Any]]:
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((128, 384), (384, 256)))
    bias, out = rng.standard_normal(256).astype(np.float32), np.zeros((4, 128, 256), np.float32)
    report = launch("in_turn", [a, b, bias], out, first, second, ctypes.c_uint32(ends), binary=kernels())
    return out, a.astype(np.float64) @ b.astype(np.float64) + bias, report


@pytest.mark.parametrize("second", [large(), tiling(128, 256, 384, (64, 64, 64), isBias=1)], ids=["large", "small"])
def test_objects_take_turns_where_l1_is_too_small(second: CubeTiling) -> None:
    out, exact, report = products(large(), second, 1)
    np.testing.assert_allclose(out, np.broadcast_to(exact, out.shape), atol=1e-3)
    assert not report["hazards"], report["hazards"][:1]
    assert not report["unwritten"]


def test_an_object_has_to_end_before_another_ones_turn() -> None:
    with pytest.raises(DeviceError, match="another object's End comes first"):
        products(large(), large(), 0)


def test_objects_that_fit_keep_what_they_have() -> None:
    small = tiling(128, 256, 384, (64, 64, 64), isBias=1)
    out, exact, _ = products(small, small, 0)
    np.testing.assert_allclose(out, np.broadcast_to(exact, out.shape), atol=1e-3)


@pytest.mark.parametrize(
    ("m", "n", "k", "cores", "one"),
    [(64, 64, 64, 24, True), (96, 64, 128, 24, True), (48, 48, 48, 9, True), (64, 64, 512, 24, True),
     (48, 48, 48, 8, False), (64, 128, 64, 24, False), (16, 384, 128, 24, False)],
)  # fmt: skip
def test_small_products_stay_with_one_core(tmp_path: Path, m: int, n: int, k: int, cores: int, one: bool) -> None:
    """As asc-devkit's own GetTiling has it."""
    found = choose(tmp_path, m, n, k, cores)
    assert found is not None
    assert (found.usedCoreNum == 1) == one
