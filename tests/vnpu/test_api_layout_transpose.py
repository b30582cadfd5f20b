"""The high-level Transpose (ConfusionTranspose) against numpy: tiles to rows or tiles, two axes changed on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from api_kernel import INPUT_BYTES, ApiKernel
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ascendopt_tune.errors import DeviceError

Array = npt.NDArray[Any]
FEW = settings(max_examples=30, deadline=None)
TYPES = {2: np.int16, 4: np.float32}
SWAP_ND, SWAP_NZ, SPLIT_NZ, SPLIT_ND, JOIN_ND, JOIN_NZ, MATRIX = range(1, 8)


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("layout_transpose")


def up(n: int) -> int:
    return -(-n // 16) * 16


def filled(x: Array) -> Array:
    """Whole tiles: the last two axes up to multiples of 16."""
    gaps = [(0, 0)] * (x.ndim - 2) + [(0, up(x.shape[-2]) - x.shape[-2]), (0, up(x.shape[-1]) - x.shape[-1])]
    return np.pad(x, gaps)


def tiles(x: Array) -> Array:
    """[..., S, H] as NZ: [..., H / 16, S, 16]."""
    wide = filled(x)
    *outer, s, h = wide.shape
    return np.moveaxis(wide.reshape(*outer, s, h // 16, 16), -2, -3)


def fields(kind: int, size: int, b: int, n: int, s: int, d: int, room: int) -> list[int]:
    """What the tiling holds of these shapes (asc-devkit, Transpose Tiling), where it is looked at."""
    found = [0] * 18
    if kind == MATRIX:
        found[1:3] = [b, n]
        return found
    found[1:4] = [b, n, d]
    if kind in (SWAP_ND, SWAP_NZ):
        found[3:5] = [up(d), up(s)]
        found[6] = room // size // 256 * 256
    else:
        found[7 if kind == SPLIT_NZ else 6] = up(s) // 16
    return found


def run(kernel: ApiKernel, kind: int, x: Array, out_size: int, tiling: list[int], given_room: bool = True,
        older: bool = False) -> Array:  # fmt: skip
    call = [x.dtype.itemsize, kind, int(given_room), int(older), *tiling]
    return kernel.run(call, x.reshape(-1), np.zeros(out_size, x.dtype))


@FEW
@given(size=st.sampled_from([2, 4]), h=st.integers(1, 8), w=st.integers(1, 8), older=st.booleans(),
       room=st.booleans(), seed=st.integers(0, 99))  # fmt: skip
def test_a_matrix(kernel: ApiKernel, size: int, h: int, w: int, older: bool, room: bool, seed: int) -> None:
    x = np.random.default_rng(seed).integers(-999, 999, (16 * h, 16 * w)).astype(TYPES[size])
    got = run(kernel, MATRIX, x, x.size, fields(MATRIX, size, 16 * h, 16 * w, 0, 0, 0), room, older)
    np.testing.assert_array_equal(got.reshape(x.T.shape), x.T)


def test_a_matrix_of_more_blocks_than_an_instruction_repeats(kernel: ApiKernel) -> None:
    x = np.arange(16 * 1024).astype(np.int16).reshape(16, 1024)
    x = np.concatenate([x, x], 0)[:16].reshape(16, 1024)
    got = run(kernel, MATRIX, x, x.size, fields(MATRIX, 2, 16, 1024, 0, 0, 0))
    np.testing.assert_array_equal(got.reshape(1024, 16), x.T)


@FEW
@given(size=st.sampled_from([2, 4]), kind=st.integers(SWAP_ND, JOIN_NZ), b=st.integers(1, 2), n=st.integers(1, 4),
       s=st.integers(1, 3), d=st.integers(1, 40), seed=st.integers(0, 99))  # fmt: skip
def test_tiles(kernel: ApiKernel, size: int, kind: int, b: int, n: int, s: int, d: int, seed: int) -> None:
    """[B, N, S, D] in each of the six ways; what fills tiles isn't looked at."""
    assume(b * n * 16 * s * up(d) * size <= INPUT_BYTES)
    if kind in (SWAP_ND, SWAP_NZ):
        d = up(d)
    s = 16 * s
    x = np.random.default_rng(seed).integers(-999, 999, (b, n, s, d)).astype(TYPES[size])
    joined = np.moveaxis(x, 1, 2).reshape(b, s, n * d)
    source = tiles(joined) if kind in (SPLIT_NZ, SPLIT_ND) else tiles(x)
    swapped = np.moveaxis(x, 1, 2)
    expected = {
        SWAP_ND: swapped,
        SWAP_NZ: np.moveaxis(swapped.reshape(b, s, n, d // 16 if kind == SWAP_NZ else 1, -1), 3, 2),
        SPLIT_NZ: tiles(x), SPLIT_ND: filled(x), JOIN_ND: filled(joined), JOIN_NZ: tiles(joined),
    }[kind]  # fmt: skip
    counts = np.ones_like(x, bool)
    joined_counts = np.ones_like(joined, bool)
    mask = {SPLIT_NZ: tiles(counts), SPLIT_ND: filled(counts), JOIN_ND: filled(joined_counts),
            JOIN_NZ: tiles(joined_counts)}.get(kind, np.ones_like(expected, bool))  # fmt: skip
    got = run(kernel, kind, source, expected.size, fields(kind, size, b, n, s, d, 4096)).reshape(expected.shape)
    np.testing.assert_array_equal(got[mask], expected[mask])


def test_rules(kernel: ApiKernel) -> None:
    x = np.zeros((20, 16), np.float32)
    with pytest.raises(DeviceError, match="multiples of 16"):
        run(kernel, MATRIX, x, x.size, fields(MATRIX, 4, 20, 16, 0, 0, 0))
    with pytest.raises(DeviceError, match="not supported"):
        run(kernel, 13, x, x.size, fields(MATRIX, 4, 16, 16, 0, 0, 0))


@pytest.mark.parametrize("kind", [SWAP_ND, SPLIT_NZ, MATRIX])
def test_more_takes_longer(kernel: ApiKernel, kind: int) -> None:
    times = []
    for n in (16, 64):
        shape = (16, n, 0, 0) if kind == MATRIX else (1, n // 16, 16, 16)
        x = np.zeros(16 * n, np.int16)
        run(kernel, kind, x, x.size, fields(kind, 2, *shape, 4096))
        times.append(kernel.report["profile"]["aiv_vec_time_us"])
    assert times[1] > times[0]
