"""Products of which two in four elements are there, against a formula of numpy."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_cube import default_options, device, launch, tiled, up
from test_cube_timing import busy

from ascendopt_tune.device.acl import Binary
from ascendopt_tune.device.options import LaunchOptions
from ascendopt_tune.errors import DeviceError

__all__ = ["default_options"]
SOURCE = Path(__file__).resolve().parent / "kernels" / "cube_sparse.cpp"
Array = np.ndarray[Any, Any]


class SparseCase(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint32) for n in ("m", "n", "k", "twice", "places", "start")]


@cache
def kernels() -> Binary:
    acl = device()
    return acl.load(acl.compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


def halved(b: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """(b with two of four elements left along its rows, those two, where they were as AscendC counts it)."""
    n, k = b.shape
    kept = np.sort(np.argsort(rng.random((n, k // 4, 4)), axis=2)[:, :, :2], axis=2)
    groups = b.reshape(n, k // 4, 4)
    left = np.zeros_like(groups)
    np.put_along_axis(left, kept, np.take_along_axis(groups, kept, 2), 2)
    those = np.take_along_axis(groups, kept, 2)
    return left.reshape(n, k), those.reshape(n, k // 2), (kept - [0, 1]).reshape(n, k // 2)


def packed(places: Array) -> Array:
    """Four places a byte, the first in the lowest bits."""
    rows, columns = places.shape
    padded = np.zeros((rows, up(columns, 4)), np.uint8)
    padded[:, :columns] = places
    four = padded.reshape(rows, -1, 4)
    return (four << np.array([0, 2, 4, 6], np.uint8)).sum(axis=2).astype(np.uint8)


def run(
    m: int, n: int, k: int, twice: int = 0, places: int = 1, start: int = 0, wrong: bool = False, said: int = 0
) -> Any:
    rng = np.random.default_rng(m * 1009 + n * 11 + k)
    a, b = (rng.integers(-128, 128, s).astype(np.int8) for s in ((m, k), (n, k)))
    left, kept, where = halved(b, rng)
    if wrong:
        where[n // 2, 3] = 3
    # Rows of tiles of b [k, n] are columns of tiles of its transpose.
    tiles_b, tiles_p = (tiled(x, width, up(n, 16)).reshape(-1) for x, width in ((kept, 32), (packed(where), 8)))
    before = np.full(start * 512, 7, np.int8)
    c = np.zeros((m, n), np.int32)
    arrays = [np.ascontiguousarray(tiled(a, 32, up(m, 16))), np.concatenate([before, tiles_b]),
              np.concatenate([before[: start * 128].view(np.uint8), tiles_p])]  # fmt: skip
    report = launch("sparse", arrays, c, SparseCase(m, n, said or k, twice, places, start), binary=kernels())
    return c, a.astype(np.int32) @ left.T.astype(np.int32) * (1 + twice), report


@pytest.mark.parametrize(
    ("m", "n", "k", "twice", "start"),
    [(16, 16, 64, 0, 0), (128, 128, 64, 0, 0), (50, 37, 192, 0, 0), (1, 16, 64, 0, 0), (32, 48, 100, 1, 2)],
)
def test_two_in_four(m: int, n: int, k: int, twice: int, start: int) -> None:
    c, exact, report = run(m, n, k, twice, start=start)
    assert not report["hazards"]
    assert not report["unwritten"]
    np.testing.assert_array_equal(c, exact)


def test_places_that_nobody_wrote_are_reported() -> None:
    device().options = LaunchOptions(fill=0)
    *_, report = run(16, 16, 64, places=0)
    assert report["unwritten"]


def test_a_place_is_one_of_three() -> None:
    with pytest.raises(DeviceError, match="a place in four elements is 0, 1 or 2"):
        run(16, 16, 64, wrong=True)


def test_k_is_the_left_matrix() -> None:
    with pytest.raises(DeviceError, match="k counts the left matrix' columns"):
        run(16, 16, 64, said=62)


def test_time() -> None:
    """asc-devkit: a product as without it (16 x 16 x 32 a cycle), loads of 128 bytes a cycle and 30 cycles besides."""
    *_, report = run(128, 128, 256)
    assert busy(report, "mac") == pytest.approx(8 * 8 * 8 + 61, abs=2)
    loads_of_a = 8 * 1 + 8 * 8 * 512 / 256
    assert busy(report, "mte1") == pytest.approx(loads_of_a + 4 * 8 * 512 / 128 + 30, abs=2)
