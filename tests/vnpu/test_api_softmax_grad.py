"""SoftmaxGrad, SoftmaxGradFront, SimpleSoftMax, SoftmaxFlash and AdjustSoftMaxRes against numpy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from api_kernel import DTYPES, ApiKernel
from hypothesis import given, settings
from hypothesis import strategies as st
from norm_tiling import LEFT, at, bits, call_with, close, room_of, sizes, tiling, values

from ascendopt_tune.errors import DeviceError

Array = npt.NDArray[Any]
FEW = settings(max_examples=30, deadline=None)
FLOATS = st.sampled_from(["float32", "float16"])
GRAD, SIMPLE, FLASH, ADJUST = range(4)
SECOND, THIRD, FOURTH, FIFTH = 24576, 49152, 53248, 57344  # of both areas (kernels/softmax_grad.cpp)
ROOM = st.integers(0, 2)


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("softmax_grad")


def area(**operands: Array) -> Array:
    places = {"first": 0, "second": SECOND, "third": THIRD, "fourth": FOURTH}
    raw = np.zeros(65536, np.uint8)
    for name, x in operands.items():
        flat = np.ascontiguousarray(x).view(np.uint8).reshape(-1)
        raw[places[name] : places[name] + flat.size] = flat
    return raw


def blocks(x: Array, dtype: str) -> Array:
    """Every number as a block of it."""
    return np.repeat(x.astype(dtype)[:, None], 32 // np.dtype(dtype).itemsize, 1)


def of_blocks(raw: Array, place: int, rows: int, dtype: str) -> Array:
    per_block = 32 // np.dtype(dtype).itemsize
    got = at(raw, place, rows * per_block, dtype).reshape(rows, per_block)
    assert (got == got[:, :1]).all()
    first: Array = got[:, 0]
    return first


@FEW
@given(dtype=FLOATS, rows=st.integers(1, 20), n=st.integers(1, 300), form=st.integers(0, 3), kind=ROOM,
       fits=st.booleans(), seed=st.integers(0, 99))  # fmt: skip
def test_softmax_grad(
    kernel: ApiKernel, dtype: str, rows: int, n: int, form: int, kind: int, fits: bool, seed: int
) -> None:
    size = np.dtype(dtype).itemsize
    padded = -(-n // (32 // size)) * (32 // size)
    grad, src = values(seed, (rows, padded), dtype, 1), values(seed + 1, (rows, padded), dtype, 1)
    room = room_of(kind, sizes("softmax_grad", size, int(form > 0), rows, padded))
    # A tiling of another shape doesn't count: the pieces are worked out anew.
    shape = (rows, padded) if fits else (rows + 1, padded)
    words = tiling("softmax_grad", room or LEFT, size, int(form > 0), *shape)
    call = call_with([GRAD, DTYPES[dtype], room, form, rows, padded, n], words)
    raw = kernel.run(call, area(first=grad, second=src), np.zeros(65536, np.uint8))
    total = (grad[:, :n].astype("d") * src[:, :n]).sum(1)
    if form > 0:
        close(of_blocks(raw, 0, rows, dtype), total, dtype, 8)
    else:
        want = (grad.astype("d") - total[:, None]) * src
        close(at(raw, 0, grad.size, dtype).reshape(grad.shape), want, dtype, 32)


@FEW
@given(dtype=FLOATS, wide=st.booleans(), rows=st.integers(1, 20), n=st.integers(1, 300), kind=ROOM,
       seed=st.integers(0, 99))  # fmt: skip
def test_simple_softmax(kernel: ApiKernel, dtype: str, wide: bool, rows: int, n: int, kind: int, seed: int) -> None:
    wide = wide and dtype == "float16"
    size, kept = np.dtype(dtype).itemsize, "float32" if wide else dtype
    padded = -(-n // (32 // size)) * (32 // size)
    x = values(seed, (rows, padded), dtype, 2)
    max_, sum_ = x.astype("d").max(1).astype(kept), np.exp(x.astype("d") - x.max(1, keepdims=True)).sum(1).astype(kept)
    room = room_of(kind, sizes("softmax_flash", size, 0, rows, padded))
    words = tiling("softmax_flash", room or LEFT, size, 0, rows, padded)
    assert words is not None
    room = 32 if dtype == "float32" and kind else room  # floats take no temporary memory, whatever the tiling's pieces
    call = call_with([SIMPLE, DTYPES[dtype], room, int(wide), rows, padded, n], words)
    source = area(first=x, third=blocks(sum_, kept), fourth=blocks(max_, kept))
    raw = kernel.run(call, source, np.zeros(65536, np.uint8))
    want = np.exp(x.astype("d") - max_.astype("d")[:, None]) / sum_.astype("d")[:, None]
    close(at(raw, 0, x.size, dtype).reshape(x.shape), want, dtype)


@FEW
@given(dtype=FLOATS, wide=st.booleans(), rows=st.integers(1, 20), n=st.integers(1, 280), update=st.booleans(),
       kind=ROOM, seed=st.integers(0, 99))  # fmt: skip
def test_softmax_flash(
    kernel: ApiKernel, dtype: str, wide: bool, rows: int, n: int, update: bool, kind: int, seed: int
) -> None:
    wide = wide and dtype == "float16"
    size, kept = np.dtype(dtype).itemsize, "float32" if wide else dtype
    padded = -(-n // (32 // size)) * (32 // size)
    x = values(seed, (rows, padded), dtype, 2)
    in_max, in_sum = values(seed + 1, rows, kept, 2), np.abs(values(seed + 2, rows, kept, 2)) + np.dtype(kept).type(1)
    room = room_of(kind, sizes("softmax_flash", size, int(update), rows, padded))
    words = tiling("softmax_flash", room or LEFT, size, int(update), rows, padded)
    call = call_with([FLASH, DTYPES[dtype], room, int(wide), rows, padded, n, int(update)], words)
    source = area(first=x, third=blocks(in_sum, kept), fourth=blocks(in_max, kept))
    raw = kernel.run(call, source, np.zeros(65536, np.uint8))
    real = x.astype("d")
    max_ = real[:, :n].max(1)
    if update:
        max_ = np.maximum(max_, in_max.astype("d"))
    exp = np.exp(real - max_[:, None])
    sum_ = exp[:, :n].sum(1)
    if update:
        old = np.exp(in_max.astype("d") - max_) * in_sum.astype("d")
        sum_ += old
        close(of_blocks(raw, FIFTH, rows, dtype), old / sum_, dtype, 2)
    close(at(raw, 0, x.size, dtype).reshape(x.shape)[:, :n], (exp / sum_[:, None])[:, :n], dtype, 2)
    close(of_blocks(raw, THIRD, rows, kept), sum_, kept, 2)
    np.testing.assert_array_equal(of_blocks(raw, FOURTH, rows, kept), max_.astype(kept))


@FEW
@given(dtype=FLOATS, form=st.integers(0, 2), rows=st.integers(1, 20), columns=st.integers(1, 16),
       seed=st.integers(0, 99))  # fmt: skip
def test_adjust_softmax_res(kernel: ApiKernel, dtype: str, form: int, rows: int, columns: int, seed: int) -> None:
    kept, n = ("float16" if form == 2 else "float32"), columns * 16
    picks = np.random.default_rng(seed).integers(0, 4, rows)
    max_ = np.array([-1.5, 0, 1, 2], kept)[picks]
    x = values(seed, (rows, n), dtype)
    wanted = int(np.array([-1.5], kept).view(np.uint16 if form == 2 else np.int32)[0])
    head = [ADJUST, DTYPES[dtype], 32, form, rows, n, n, wanted, bits(0.25)]
    out = np.zeros(65536, np.uint8)
    out[: x.nbytes] = x.view(np.uint8).reshape(-1)
    raw = kernel.run(call_with(head, None), area(first=max_ if form == 1 else blocks(max_, kept)), out)
    want = np.where((picks == 0)[:, None], 0.25, x.astype("d"))
    np.testing.assert_array_equal(at(raw, 0, x.size, dtype).reshape(x.shape), want)
    assert raw[FIFTH:].view(np.int32)[0] == (picks == 0).any()


@pytest.mark.parametrize(
    ("head", "rule"),
    [
        ([GRAD, 0, 0, 0, 1, 9, 9], "multiple of 32 B"),
        ([GRAD, 0, 0, 0, 1, 8, 9], "oriSrcK"),
        ([GRAD, 0, 32, 0, 1, 8, 8], "of 32 B is too small: 352 B"),
        ([SIMPLE, 1, 32, 0, 1, 16, 16], "of 32 B is too small: 128 B"),
        ([SIMPLE, 1, 32, 1, 1, 16, 16], "of 32 B is too small: 64 B"),
        ([FLASH, 0, 32, 0, 1, 8, 8, 1], "of 32 B is too small"),
        ([ADJUST, 0, 32, 0, 1, 9, 9], "multiple of 32 B"),
    ],
)
def test_rules_of_softmax(kernel: ApiKernel, head: list[int], rule: str) -> None:
    with pytest.raises(DeviceError, match=rule):
        kernel.run(call_with(head, None), np.zeros(16, np.float32), np.zeros(16, np.float32))
