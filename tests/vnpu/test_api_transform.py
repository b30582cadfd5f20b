"""Pad, UnPad, TransData and Arange against numpy."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from api_kernel import ApiKernel
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendopt_tune.build.libraries import VNPU
from ascendopt_tune.errors import DeviceError

Array = npt.NDArray[Any]
FIELDS = 49152  # bytes into the input
NAMES = ["float32", "float16", "int32", "int16"]
PAD, UNPAD, ARANGE, TRANS_DATA = range(4)


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("transform")


def in_order(names: str, fields: dict[str, int]) -> Array:
    """The fields of a tiling as its struct has them."""
    text = (VNPU / "include/kernel_tiling/transform_data.h").read_text()
    listed = re.findall(r"FIELD\((\w+)\)", text.split(f"#define {names}", 1)[1].split("\n\n", 1)[0])
    assert fields.keys() <= set(listed)
    return np.array([fields.get(name, 0) for name in listed], np.uint32)


def with_fields(x: Array, fields: Array) -> Array:
    given = np.zeros(FIELDS + fields.nbytes, np.uint8)
    given[: x.nbytes] = x.reshape(-1).view(np.uint8)
    given[FIELDS:] = fields.view(np.uint8)
    return given


def pad_tiling(rows: int, columns: int, original: int, size: int, groups: int) -> dict[str, int]:
    """What the documentation's PadTilingFunc makes (asc-devkit, pad_tiling_impl.cpp), of `groups` of 16 elements."""
    block, whole = 32 // size, rows // 255
    fields = {"srcHeight": rows, "srcWidth": columns, "srcOriWidth": original,
              "widthWithoutLastBlock": (columns - block) % 2**32, "blocksPerRow": columns * size // 32,
              "heightTiling": 255, "heightFractal": whole, "heightFractalTail": rows % 255,
              "mainLoopOffset": 255 * columns,
              "tailBlockOffset": (whole * 255 * columns + columns - block) % 2**32}  # fmt: skip
    if groups:
        n = 16 * groups
        tail, rest = columns % n, rows * columns % n
        fields |= {"tmpBuffer1BlockNum": groups, "tmpBuffer1RowNum": n, "tmpBuffer2Offset": n * block,
                   "widthTiling": n, "widthFractal": columns // n, "widthFractalTail": tail,
                   "widthFractalTailAlingned": -(-tail // block) * block, "brcbTiling": n,
                   "brcbFractal": rows * columns // n, "brcbFractalTail": rest, "maxRepeatTimes": 254,
                   "brcbTilingRepeatTimes": n // 8 // 254, "brcbTilingRepeatTimesTail": n // 8 % 254,
                   "brcbFractalTailRepeatTimes": rest // 8 // 254,
                   "brcbFractalTailRepeatTimesTail": rest // 8 % 254}  # fmt: skip
    return fields


def numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-999, 999, shape).astype(dtype)


@settings(max_examples=40, deadline=None)
@given(name=st.sampled_from(NAMES), rows=st.integers(1, 300), blocks=st.integers(1, 3), lack=st.integers(1, 16),
       pad=st.integers(0, 16))  # fmt: skip
def test_pad_of_whole_blocks(kernel: ApiKernel, name: str, rows: int, blocks: int, lack: int, pad: int) -> None:
    size = np.dtype(name).itemsize
    block = 32 // size
    lack, columns = min(lack, block), blocks * block
    pad = min(pad, lack)
    rows = min(rows, 49152 // (columns * size))
    x = numbers((rows, columns), name)
    fields = in_order("VNPU_PAD_TILING_FIELDS", pad_tiling(rows, columns, columns - lack, size, 0))
    got = kernel.run([PAD, NAMES.index(name), 0, pad, 321, 0], with_fields(x, fields), np.zeros_like(x))
    want = x.copy()
    want[:, columns - lack : columns - lack + pad] = 321
    np.testing.assert_array_equal(got, want)


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(NAMES), groups=st.integers(1, 4), rows=st.integers(1, 8), blocks=st.integers(0, 9),
       odd=st.integers(1, 15), left=st.integers(0, 15))  # fmt: skip
def test_pad_of_other_widths(
    kernel: ApiKernel, name: str, groups: int, rows: int, blocks: int, odd: int, left: int
) -> None:
    size = np.dtype(name).itemsize
    block = 32 // size
    columns, rows = blocks * block + odd % (block - 1) + 1, rows * block  # the source fills whole blocks
    if columns % block == 0:
        columns += 1
    wide = -(-columns // block) * block
    left = left % (wide - columns + 1)
    x = numbers((rows, columns), name)
    fields = in_order("VNPU_PAD_TILING_FIELDS", pad_tiling(rows, columns, columns, size, groups))
    params = [PAD, NAMES.index(name), left, wide - columns - left, -7, 1024 * groups]
    got = kernel.run(params, with_fields(x, fields), np.zeros((rows, wide), name))
    want = np.full((rows, wide), -7, name)
    want[:, left : left + columns] = x
    np.testing.assert_array_equal(got, want)


def test_what_pad_refuses(kernel: ApiKernel) -> None:
    def run(columns: int, original: int, left: int, right: int, groups: int, room: int) -> None:
        x = numbers((8, columns), "float32")
        fields = in_order("VNPU_PAD_TILING_FIELDS", pad_tiling(8, columns, original, 4, groups))
        kernel.run([PAD, 0, left, right, 0, room], with_fields(x, fields), np.zeros((8, columns + 8), np.float32))

    with pytest.raises(DeviceError, match="Pad: leftPad has to be 0"):
        run(16, 15, 1, 1, 0, 0)
    with pytest.raises(DeviceError, match="Pad: rightPad goes past the 32 B"):
        run(16, 15, 0, 2, 0, 0)
    with pytest.raises(DeviceError, match="Pad: the padded width has to be the width rounded up"):
        run(13, 13, 0, 2, 1, 1024)
    with pytest.raises(DeviceError, match="Pad: sharedTmpBuffer is smaller than the tiling says"):
        run(13, 13, 0, 3, 2, 1024)
    with pytest.raises(DeviceError, match="Pad: tiling is empty"):
        kernel.run([PAD, 0, 0, 3, 0, 0], np.zeros(FIELDS + 128, np.uint8), np.zeros(8, np.float32))


@settings(max_examples=40, deadline=None)
@given(name=st.sampled_from(NAMES), rows=st.integers(1, 40), blocks=st.integers(1, 6), right=st.integers(1, 15))
def test_unpad(kernel: ApiKernel, name: str, rows: int, blocks: int, right: int) -> None:
    size = np.dtype(name).itemsize
    block = 32 // size
    columns, right = blocks * block, right % (block - 1) + 1
    x = numbers((rows, columns), name)
    fields = in_order("VNPU_UNPAD_TILING_FIELDS", {"srcHeight": rows, "srcWidth": columns})
    before = np.zeros((rows, columns - right), name)
    got = kernel.run([UNPAD, NAMES.index(name), 0, right, rows % 2], with_fields(x, fields), before)
    np.testing.assert_array_equal(got, x[:, : columns - right])


def test_what_unpad_refuses(kernel: ApiKernel) -> None:
    x = numbers((4, 16), "float16")
    fields = in_order("VNPU_UNPAD_TILING_FIELDS", {"srcHeight": 4, "srcWidth": 16})
    for right in (0, 16):
        with pytest.raises(DeviceError, match="UnPad: rightPad has to be above 0 and below 32 B"):
            kernel.run([UNPAD, 1, 0, right, 0], with_fields(x, fields), x)
    odd = in_order("VNPU_UNPAD_TILING_FIELDS", {"srcHeight": 4, "srcWidth": 15})
    with pytest.raises(DeviceError, match="UnPad: the width has to fill whole blocks"):
        kernel.run([UNPAD, 1, 0, 1, 0], with_fields(x, odd), x)


@settings(max_examples=40, deadline=None)
@given(name=st.sampled_from(NAMES), first=st.integers(-50, 50), step=st.integers(0, 3), count=st.integers(1, 500))
def test_arange(kernel: ApiKernel, name: str, first: int, step: int, count: int) -> None:
    bits = [first, step] if name == "int32" else np.array([first, step], np.float32).view(np.int32).tolist()
    before = np.full(count + 32, 7, name)
    got = kernel.run([ARANGE, NAMES.index(name), *bits, count], np.zeros(8, np.float32), before)
    # Sums of halves: each block is made of the one before.
    want = first + step * np.arange(count)
    np.testing.assert_array_equal(got[:count], want.astype(name))


def rounded(n: int) -> int:
    return -(-n // 16) * 16


def tiled(x: Array, fractal: bool) -> Array:
    """[N, C, D, H, W] as [N, D, C1, H, W, C0] or [D, C1, H, W, N1, N0, C0]."""
    n, c, d, h, w = x.shape
    full = np.zeros((rounded(n) if fractal else n, rounded(c), d, h, w), x.dtype)
    full[:n, :c] = x
    split = full.reshape(full.shape[0], -1, 16, d, h, w)
    if not fractal:
        return split.transpose(0, 3, 1, 4, 5, 2)
    return split.reshape(-1, 16, split.shape[1], 16, d, h, w).transpose(4, 2, 5, 6, 0, 1, 3)


def plain(x: Array) -> Array:
    """[N, C, D, H * W] with H * W in whole tiles, as local memory has it."""
    n, c, d, h, w = x.shape
    out = np.full((n, c, d, rounded(h * w)), 99, x.dtype)
    out[..., : h * w] = x.reshape(n, c, d, h * w)
    return out


SHAPES = [(1, 32, 2, 2, 8), (1, 16, 1, 4, 4), (2, 20, 2, 3, 5), (1, 5, 1, 1, 7), (16, 16, 1, 2, 8), (17, 18, 1, 2, 3),
          (3, 33, 1, 1, 16)]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["float16", "int16"])
@pytest.mark.parametrize("fractal", [False, True])
@pytest.mark.parametrize("room", [0, 65536])
def test_trans_data(kernel: ApiKernel, shape: tuple[int, ...], name: str, fractal: bool, room: int) -> None:
    x = numbers(shape, name)
    h, w = shape[3:]
    params = [TRANS_DATA, NAMES.index(name), 2 * fractal, *shape, room, 16]
    there = kernel.run(params, plain(x), np.zeros_like(tiled(x, fractal)))
    np.testing.assert_array_equal(there, tiled(x, fractal))
    params[2] += 1
    back = kernel.run(params, np.ascontiguousarray(there), np.zeros_like(plain(x)))
    np.testing.assert_array_equal(back[..., : h * w], plain(x)[..., : h * w])


def test_what_trans_data_refuses(kernel: ApiKernel) -> None:
    x = numbers((1, 16, 1, 4, 4), "float16")
    with pytest.raises(DeviceError, match="TransData: the shapes of source and destination don't go together"):
        kernel.run([TRANS_DATA, 1, 0, *x.shape, 0, 8], plain(x), np.zeros_like(tiled(x, False)))
    many = numbers((1, 16, 20, 14, 14), "float16")[:, :, :1]
    with pytest.raises(DeviceError, match="more than 255 tiles"):
        kernel.run([TRANS_DATA, 1, 0, 1, 16, 20, 14, 14, 0, 16], plain(many), np.zeros(16, np.float16))
