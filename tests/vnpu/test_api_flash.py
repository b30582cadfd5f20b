"""SoftmaxFlashV2 against numpy in float64: a step alone, and a row in pieces against softmax of the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from api_kernel import ApiKernel
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_cube import default_options, device, launch

from ascendopt_tune.errors import DeviceError

__all__ = ["default_options"]

Array = npt.NDArray[Any]
FEW = settings(max_examples=30, deadline=None)
#: Types of the rows and of what is kept of them.
TYPES = ((np.float32, np.float32), (np.float16, np.float16), (np.float16, np.float32))
UPDATE, NARROW, BASIC, ROW_MAX, OTHER_SHAPE, UNCHECKED = 1, 2, 4, 8, 16, 32
#: Where kernels/flash.cpp has what it reads and writes, in bytes.
IN_SUM, IN_MAX = 32768, 40960
SUM, MAX, SHRUNK, PEAK = 32768, 36864, 40960, 45056
ROOM = 65536


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("flash")


def place(memory: Array, where: int, values: Array) -> None:
    raw = np.ascontiguousarray(values).view(np.uint8).reshape(-1)
    memory[where : where + raw.size] = raw


def kept(values: Array, dtype: Any, narrow: bool) -> Array:
    """One element for each row, or a block of them."""
    lanes = 1 if narrow else 32 // np.dtype(dtype).itemsize
    return np.repeat(values.astype(dtype)[:, None], lanes, 1)


def step(kernel: ApiKernel, kind: int, x: Array, valid: int, form: int, before: tuple[Array, Array] | None = None,
         room: int = ROOM, asked: int = ROOM) -> dict[str, Array]:  # fmt: skip
    """One call; what it left, with what is kept as one element for each row."""
    dtype, statistics = TYPES[kind]
    rows, columns = x.shape
    source = np.zeros(45056, np.uint8)
    place(source, 0, x.astype(dtype))
    if before is not None:
        place(source, IN_SUM, kept(before[0], statistics, bool(form & NARROW)))
        place(source, IN_MAX, kept(before[1], statistics, bool(form & NARROW)))
    got = kernel.run([kind, rows, columns, valid, form, room, asked], source, np.full(49152, 0x55, np.uint8))

    def column(where: int, t: Any) -> Array:
        lanes = 1 if form & NARROW else 32 // np.dtype(t).itemsize
        size = rows * lanes * np.dtype(t).itemsize
        block = got[where : where + size].view(t).reshape(rows, lanes)
        assert (block == block[:, :1]).all()
        assert (got[where + size : where + size + 32] == 0x55).all()
        return block[:, 0].astype(np.float64)

    out = {"dst": got[: x.size * np.dtype(dtype).itemsize].view(dtype).reshape(x.shape).astype(np.float64)}
    out |= {"sum": column(SUM, statistics), "max": column(MAX, statistics)}
    if form & UPDATE:
        out["shrunk"] = column(SHRUNK, dtype)
    if form & ROW_MAX:
        out["row_max"] = column(PEAK, statistics)
    return out


def values(seed: int, shape: Any, kind: int) -> Array:
    return (np.random.default_rng(seed).standard_normal(shape) * 3).astype(TYPES[kind][0])


def compare(got: dict[str, Array], x: Array, valid: int, before: tuple[Array, Array] | None, kind: int) -> None:
    wide = x.astype(np.float64)
    here = wide[:, :valid].max(1)
    peak = here if before is None else np.maximum(here, before[1])
    dst = np.exp(wide - peak[:, None])
    total = dst[:, :valid].sum(1)
    loose = 1e-3 if kind else 2e-6
    if before is not None:
        shrunk = np.exp(before[1] - peak)
        total = shrunk * before[0] + total
        np.testing.assert_allclose(got["shrunk"], shrunk, rtol=loose, atol=1e-7)
    fits = dst < 6e4 if kind else dst < np.inf  # what lies behind the valid columns may be too much for a half
    np.testing.assert_allclose(got["dst"][fits], dst[fits], rtol=loose, atol=1e-7)
    np.testing.assert_allclose(got["sum"], total, rtol=2e-6 if TYPES[kind][1] is np.float32 else 1e-3)
    np.testing.assert_array_equal(got["max"], peak)
    if "row_max" in got:
        np.testing.assert_array_equal(got["row_max"], here)


@FEW
@example(kind=1, rows=7, n=1, form=0, row_max=False, given_room=False, seed=38)
@given(
    kind=st.integers(0, 2), rows=st.integers(1, 16), n=st.integers(1, 300), form=st.sampled_from([0, 1, 2, 3]),
    row_max=st.booleans(), given_room=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
def test_a_step(
    kernel: ApiKernel, kind: int, rows: int, n: int, form: int, row_max: bool, given_room: bool, seed: int
) -> None:
    columns = -(-n // 16) * 16
    x = values(seed, (rows, columns), kind)
    before = None
    if form & UPDATE:
        before = (
            np.abs(values(seed + 1, rows, kind)).astype(np.float64),
            values(seed + 2, rows, kind).astype(np.float64),
        )
    if row_max and form == UPDATE | NARROW and kind != 2:
        form |= ROW_MAX
    compare(step(kernel, kind, x, n, form, before, ROOM if given_room else 0), x, n, before, kind)


@pytest.mark.parametrize("kind", [0, 1, 2])
@pytest.mark.parametrize("form", [UPDATE | BASIC, UPDATE | BASIC | NARROW])
def test_basic_blocks(kernel: ApiKernel, kind: int, form: int) -> None:
    x = values(5, (16, 128), kind)
    before = (np.full(16, 2.0), values(6, 16, kind).astype(np.float64))
    compare(step(kernel, kind, x, 128, form, before), x, 128, before, kind)


@pytest.mark.parametrize("form", [0, NARROW])
def test_pieces_come_to_the_softmax_of_a_row(kernel: ApiKernel, form: int) -> None:
    """What the steps are for: O = sum of exp(s - max) v, shrunk whenever the maximum grows."""
    x, v = values(7, (8, 192), 0), values(8, (192, 5), 0).astype(np.float64)
    total = np.zeros((8, 5))
    before = None
    for i in range(3):
        piece = slice(64 * i, 64 * i + 64)
        got = step(kernel, 0, x[:, piece], 64, form | (UPDATE if i else 0), before)
        total = total * got.get("shrunk", np.ones(8))[:, None] + got["dst"] @ v[piece]
        before = (got["sum"], got["max"])
    assert before is not None
    wide = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(total / before[0][:, None], wide / wide.sum(1, keepdims=True) @ v, rtol=1e-5, atol=1e-6)


def test_little_room_gives_the_same(kernel: ApiKernel) -> None:
    """Eight rows at a time: 8 x (8 + 64) floats."""
    x = values(9, (16, 64), 0)
    one, two = (step(kernel, 0, x, 50, 0, None, room, room) for room in (ROOM, 2304))
    for name, value in one.items():
        np.testing.assert_array_equal(value, two[name])


@pytest.mark.parametrize(
    ("shape", "form", "room", "asked", "rule"),
    [
        ((4, 20), 0, ROOM, ROOM, "multiple of 32 B"),
        ((4, 64), BASIC | UPDATE, ROOM, ROOM, "isBasicBlock wants"),
        ((4, 64), 0, 64, 64, "no room for a row"),
        ((16, 64), 0, 2304, ROOM, "smaller than the tiling's"),
        ((16, 64), NARROW, ROOM, 12 * 72 * 4, None),
        ((4, 64), NARROW, ROOM, 3 * 72 * 4, "don't fill blocks"),
        ((4, 64), OTHER_SHAPE | UPDATE, ROOM, ROOM, None),
        ((4, 64), UNCHECKED | UPDATE | OTHER_SHAPE, ROOM, ROOM, "another shape's"),
    ],
)
def test_rules(kernel: ApiKernel, shape: tuple[int, int], form: int, room: int, asked: int, rule: str | None) -> None:
    before = (np.ones(shape[0]), np.zeros(shape[0]))
    if rule is None:
        step(kernel, 0, np.ones(shape), shape[1], form, before, room, asked)
        return
    with pytest.raises(DeviceError, match=rule):
        step(kernel, 0, np.ones(shape), shape[1], form, before, room, asked)


ORDER = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void order(GM_ADDR x, GM_ADDR y) {
  TPipe pipe;
  TBuf<TPosition::VECCALC> room;
  pipe.InitBuffer(room, 65536);
  LocalTensor<float> all = room.Get<float>(), rows = all[0], sum = all[2048], most = all[2176], out = all[2304];
  LocalTensor<uint8_t> work = all[4608].ReinterpretCast<uint8_t>();
  work.SetSize(32768);
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x);
  to.SetGlobalBuffer((__gm__ float*)y);
  DataCopy(rows, from, 2048);
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
  const SoftMaxShapeInfo shape{16, 128, 16, 128};
  const SoftMaxTiling tiling = SoftMaxFlashV2TilingFunc(shape, 4, 4, 32768, false, true);
  SoftmaxFlashV2<float, false, true, true>(rows, sum, most, rows, all, sum, most, work, tiling, shape);
  Adds(out, READ, 1.0f, COUNT);
  SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
  WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
  DataCopy(to, out, COUNT);
}
"""


@pytest.mark.parametrize(("read", "count"), [("rows", 2048), ("most", 128), ("sum", 128)])
def test_what_needs_a_barrier_behind_a_step(read: str, count: int) -> None:
    """CANN's own has barriers behind all but its last instruction, which leaves the sums."""
    text = ORDER.replace("READ", read).replace("COUNT", str(count))
    binary = device().load(device().compile(text, "order.cpp", ["--cce-auto-sync=off"]))
    x, out = values(3, 2048, 0), np.zeros(count, np.float32)
    report = launch("order", [x], out, binary=binary)
    assert [h["missing"] for h in report["hazards"]] == (["PipeBarrier<PIPE_V>"] if read == "sum" else [])
