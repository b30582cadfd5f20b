"""TopK against numpy: the first k by value, of equal ones the first; NaN before all; indices; rows that don't count."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from api_kernel import ApiKernel
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendopt_tune.errors import DeviceError

Array = npt.NDArray[Any]
FEW = settings(max_examples=30, deadline=None)
FLOATS = st.sampled_from(["float32", "float16"])
GIVEN, FINISH, SMALL, SMALLEST, NO_ROOM, AT_ONCE, BEHIND = 1, 2, 4, 8, 16, 32, 64
#: Where kernels/topk.cpp has what it reads and writes, in bytes.
INDICES, FINISHED, OUT_INDICES = 49152, 61440, 32768
LEFT = 0x5A


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("topk")


def up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


def normal_tiling(size: int, rows: int, inner: int, k: int, form: int) -> list[int]:
    """The first 18 fields, as TopKTilingFunc says (asc-devkit, TopK Tiling)."""
    record = 8 // size
    room = 2 * inner * record
    own = not form & GIVEN
    return [
        room + (inner * 4 // size if own else 0), rows * inner, inner * record, inner // 32, inner // 4, up(k, 8),
        up(k, 16), rows * up(k, 32 // size), 2 * k, 4 * k, record, 2 * record, 3 * record, record, inner * 2,
        4 // size, room if own else 0, inner * 8 // 32,
    ]  # fmt: skip


def small_tiling(size: int, rows: int, k: int, form: int) -> list[int]:
    """The first four fields, then the two offsets behind the ones that fit; the size of the values' mask is the 8th."""
    records = rows * 32 * 8 // size
    mask = records + (rows * 32 if form & SMALLEST else 0)
    behind = mask + 64 // size
    own = 0 if form & GIVEN else rows * 32 * 4 // size
    return [behind + own, rows * 32, records, 0, mask, behind if own else 0, 0, rows * k]


def run(kernel: ApiKernel, x: Array, n: int, k: int, form: int, indices: Array | None = None,
        finished: Array | None = None, tiling: list[int] | None = None) -> tuple[Array, Array]:  # fmt: skip
    rows, inner = x.shape
    size = x.dtype.itemsize
    source = np.zeros(65536, np.uint8)
    source[: x.nbytes] = x.view(np.uint8).reshape(-1)
    if indices is not None:
        source[INDICES : INDICES + indices.nbytes] = indices.view(np.uint8).reshape(-1)
    if finished is not None:
        source[FINISHED : FINISHED + finished.size] = finished
    fields = tiling or (
        small_tiling(size, rows, k, form) if form & SMALL else normal_tiling(size, rows, inner, k, form)
    )
    out = np.full(65536, LEFT, np.uint8)
    got = kernel.run([int(size == 2), rows, inner, n, k, form, *fields], source, out)
    pitch, index_pitch = (k, k) if form & SMALL else (up(k, 32 // size), up(k, 8))
    values = got[: rows * pitch * size].view(x.dtype).reshape(rows, pitch)
    places = got[OUT_INDICES : OUT_INDICES + rows * index_pitch * 4].view(np.int32).reshape(rows, index_pitch)
    end = OUT_INDICES + up(rows * index_pitch * 4, 32)
    assert (got[end : end + 64] == LEFT).all()
    return values[:, :k], places[:, :k]


def want(x: Array, n: int, k: int, form: int, indices: Array | None = None) -> tuple[Array, Array]:
    """NaN comes first, whichever way; of equal values the first."""
    wide = x[:, :n].astype(np.float64) * (1 if form & SMALLEST else -1)
    order = np.array([np.lexsort((row, ~np.isnan(row))) for row in wide])[:, :k]
    values = np.take_along_axis(x, order, 1)
    if indices is None:
        return values, order.astype(np.int32)
    return values, np.take_along_axis(np.broadcast_to(indices, x.shape), order, 1)


def scores(rng: np.random.Generator, shape: tuple[int, int], dtype: str, n: int, form: int) -> Array:
    """Many ties, infinities of both signs, a NaN now and then; behind n what doesn't count."""
    x = rng.integers(-9, 9, shape).astype(dtype)
    x[rng.random(shape) < 0.05] = np.inf
    x[rng.random(shape) < 0.05] = -np.inf
    x[rng.random(shape) < 0.02] = np.nan
    x[:, n:] = np.inf if form & SMALLEST else -np.inf
    return x


def compare(got: tuple[Array, Array], expected: tuple[Array, Array]) -> None:
    np.testing.assert_array_equal(got[0], expected[0])
    np.testing.assert_array_equal(got[1], expected[1])


@FEW
@given(dtype=FLOATS, rows=st.integers(1, 3), groups=st.integers(1, 40), short=st.integers(0, 31), data=st.data(),
       form=st.sampled_from([0, GIVEN, SMALLEST, GIVEN | SMALLEST, NO_ROOM, NO_ROOM | SMALLEST]),
       seed=st.integers(0, 999))  # fmt: skip
def test_normal(
    kernel: ApiKernel, dtype: str, rows: int, groups: int, short: int, form: int, seed: int, data: st.DataObject
) -> None:
    inner = 32 * groups
    n = inner - short
    k = data.draw(st.integers(1, min(n, 200)))
    rng = np.random.default_rng(seed)
    x = scores(rng, (rows, inner), dtype, n, form)
    numbers = rng.permutation(5000)[:inner].astype(np.int32) if form & GIVEN else None
    compare(run(kernel, x, n, k, form, numbers), want(x, n, k, form, numbers))


@FEW
@given(dtype=FLOATS, rows=st.integers(1, 40), n=st.integers(1, 32), data=st.data(),
       form=st.sampled_from([0, GIVEN, SMALLEST, GIVEN | SMALLEST]), seed=st.integers(0, 999))  # fmt: skip
def test_small(kernel: ApiKernel, dtype: str, rows: int, n: int, form: int, seed: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, n))
    rng = np.random.default_rng(seed)
    x = scores(rng, (rows, 32), dtype, n, form)
    numbers = rng.permutation(rows * 32).astype(np.int32).reshape(rows, 32) if form & GIVEN else None
    compare(run(kernel, x, n, k, form | SMALL, numbers), want(x, n, k, form, numbers))


def test_rows_that_do_not_count(kernel: ApiKernel) -> None:
    """Their indices are n; values come as they are."""
    x = scores(np.random.default_rng(4), (5, 96), "float32", 90, 0)
    finished = np.array([0, 1, 0, 1, 1], np.uint8)
    values, places = run(kernel, x, 90, 10, FINISH, finished=finished)
    expected = want(x, 90, 10, 0)
    np.testing.assert_array_equal(values, expected[0])
    np.testing.assert_array_equal(places, np.where(finished[:, None] == 1, 90, expected[1]))


def test_the_tiling_of_more_columns_serves_fewer(kernel: ApiKernel) -> None:
    """An operator of CANN's has one tiling for its longest row."""
    x = scores(np.random.default_rng(5), (1, 160), "float32", 150, 0)
    numbers = np.arange(160, dtype=np.int32)
    compare(run(kernel, x, 150, 16, GIVEN, numbers, tiling=normal_tiling(4, 1, 512, 16, GIVEN)), want(x, 150, 16, 0))


@pytest.mark.parametrize(
    ("shape", "n", "k", "form", "rule"),
    [
        ((1, 48), 48, 4, 0, "multiple of 32"),
        ((1, 64), 64, 4, SMALL, "inner is 32"),
        ((1, 64), 65, 4, 0, "1 <= k <= n <= inner"),
        ((1, 64), 8, 9, 0, "1 <= k <= n <= inner"),
        ((1, 64), 8, 0, 0, "1 <= k <= n <= inner"),
        ((1, 8192), 8192, 9, 0, "at most 4096"),
    ],
)
def test_rules(kernel: ApiKernel, shape: tuple[int, int], n: int, k: int, form: int, rule: str) -> None:
    with pytest.raises(DeviceError, match=rule):
        run(kernel, np.zeros(shape, np.float32), n, k, form)


def test_too_little_room_behind_the_buffers(kernel: ApiKernel) -> None:
    x = np.zeros((1, 64), np.float32)
    tiling = normal_tiling(4, 1, 64, 4, 0)
    tiling[0] = 1 << 20
    with pytest.raises(DeviceError, match="temporary memory"):
        run(kernel, x, 64, 4, NO_ROOM, tiling=tiling)


def test_what_follows_waits_for_its_last_instruction(kernel: ApiKernel) -> None:
    """Of the smallest, values are turned round again at the end, without a barrier behind it; as on the device."""
    x = scores(np.random.default_rng(6), (1, 64), "float32", 64, 0)
    with pytest.raises(AssertionError, match="PipeBarrier"):
        run(kernel, x, 64, 8, SMALLEST | AT_ONCE)
    values, _ = run(kernel, x, 64, 8, SMALLEST | BEHIND)
    np.testing.assert_array_equal(values, want(x, 64, 8, SMALLEST)[0] + 1)


def test_its_time_is_that_of_its_instructions(kernel: ApiKernel) -> None:
    """512 scores of one row: 512 records at two a cycle by Sort32, as many twice by MrgSort, and the copies between."""
    x = scores(np.random.default_rng(7), (1, 512), "float32", 512, 0)
    times = []
    for k in (8, 256):
        run(kernel, x, 512, k, 0)
        times.append(kernel.report["profile"]["aiv_vec_time_us"])
    run(kernel, x[:, :128], 128, 8, 0)
    assert times[1] > times[0] > kernel.report["profile"]["aiv_vec_time_us"]
