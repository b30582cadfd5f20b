"""What must hold of modelled times whatever the constants are: more work is never faster, more help never slower."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import pytest
from api_kernel import device
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendopt_tune.device.options import LaunchOptions
from ascendopt_tune.nouns.chip import load_chip

# z = x + 1 in `pieces` pieces of `bytes` a core, `work` additions each. mode: 1 one buffer, 2 ping and pong; +4: x is
# read past L2; +8: every core reads the same x; +16: an extra 32 bytes of distance, off the 512-byte windows.
KERNEL = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void pieces(GM_ADDR x, GM_ADDR z, int32_t bytes, int32_t pieces, int32_t work,
                                             int32_t mode) {
  const int32_t n = bytes / 4, buffers = mode % 4;
  const uint64_t share = uint64_t(n) * pieces, block = GetBlockIdx();
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x + (mode & 8 ? 0 : block * share) + (mode & 16 ? 8 : 0), share);
  to.SetGlobalBuffer((__gm__ float*)z + block * share, share);
  if (mode & 4) from.SetL2CacheHint(CacheMode::CACHE_MODE_DISABLE);
  for (int32_t i = 0; i < pieces; i++) {
    const int32_t id = i % buffers;
    LocalTensor<float> a(TPosition::VECIN, id * 65536, 8192), b(TPosition::VECOUT, id * 65536 + 32768, 8192);
    if (i >= buffers) WaitFlag<HardEvent::V_MTE2>(id);
    DataCopy(a, from[uint64_t(i) * n], n);
    SetFlag<HardEvent::MTE2_V>(id);
    WaitFlag<HardEvent::MTE2_V>(id);
    if (i >= buffers) WaitFlag<HardEvent::MTE3_V>(id);
    for (int32_t k = 0; k < work; k++) Adds(b, a, 1.0f, n);
    if (i + buffers < pieces) SetFlag<HardEvent::V_MTE2>(id);
    SetFlag<HardEvent::V_MTE3>(id);
    WaitFlag<HardEvent::V_MTE3>(id);
    DataCopy(to[uint64_t(i) * n], b, n);
    if (i + buffers < pieces) SetFlag<HardEvent::MTE3_V>(id);
  }
  PipeBarrier<PIPE_ALL>();
}
"""
BYTES = 48 * 64 * 32768  # of x and z: what the largest case moves
FEW = settings(max_examples=15, deadline=None)
ONE, TWO, PAST_L2, SAME, OFF = 1, 2, 4, 8, 16
cores, sizes, counts = st.sampled_from((1, 4, 24, 48)), st.sampled_from((512, 2048, 8192, 32768)), st.integers(2, 16)


@cache
def _pieces() -> Callable[..., float]:
    acl = device()
    function = acl.load(acl.compile(KERNEL, "pieces.cpp", ["--cce-auto-sync=off"])).function("pieces")
    x, z = acl.malloc(BYTES + 64), acl.malloc(BYTES)

    def task(blocks: int, nbytes: int, n: int, work: int, mode: int) -> float:
        with acl.with_options(hazards=False):
            acl.launch(function, blocks, [x, z, *(ctypes.c_int32(v) for v in (nbytes, n, work, mode))])
        acl.synchronize()
        report = acl.report()
        assert not report["errors"], report["errors"]
        return float(report["profile"]["task_duration_us"])

    return task


def task(blocks: int, nbytes: int, n: int, work: int = 1, mode: int = ONE) -> float:
    """Modelled task duration in us."""
    return _pieces()(blocks, nbytes, n, work, mode)


@FEW
@given(blocks=cores, nbytes=sizes, n=counts, mode=st.sampled_from((ONE, TWO, TWO + PAST_L2)))
def test_more_bytes_are_never_faster(blocks: int, nbytes: int, n: int, mode: int) -> None:
    assert task(blocks, nbytes, n, mode=mode) <= task(blocks, nbytes, 2 * n, mode=mode)
    if nbytes < 32768:
        assert task(blocks, nbytes, n, mode=mode) <= task(blocks, 2 * nbytes, n, mode=mode)


@FEW
@given(blocks=cores, nbytes=sizes, n=counts, work=st.integers(1, 20))
def test_more_work_is_never_faster(blocks: int, nbytes: int, n: int, work: int) -> None:
    assert task(blocks, nbytes, n, work) <= task(blocks, nbytes, n, work + 4)


@FEW
@given(nbytes=sizes, n=counts)
def test_more_cores_share_work_that_is_not_bound_by_bandwidth(nbytes: int, n: int) -> None:
    """Vector work alone: twice the cores, each half of it, is never slower when the work outweighs a core's start."""
    assert task(2, nbytes, n, 400) <= task(1, nbytes, 2 * n, 400)


@FEW
@given(blocks=cores, nbytes=sizes, n=counts, work=st.integers(1, 20))
def test_two_buffers_are_never_slower(blocks: int, nbytes: int, n: int, work: int) -> None:
    assert task(blocks, nbytes, n, work, TWO) <= task(blocks, nbytes, n, work, ONE) * 1.01


@FEW
@given(nbytes=st.sampled_from((512, 2048)), n=counts)
def test_addresses_off_the_windows_are_never_faster(nbytes: int, n: int) -> None:
    aligned, off = task(1, nbytes, n, mode=TWO), task(1, nbytes, n, mode=TWO + OFF)
    assert aligned <= off


def test_one_core_reads_small_pieces_off_the_windows_at_about_seventy_per_cent() -> None:
    """asc-devkit on aligning GM addresses to 512 bytes: at worst 70 % of the bandwidth, one core."""
    times = {mode: task(1, 512, 4096, mode=mode + PAST_L2) for mode in (TWO, TWO + OFF)}
    assert 0.55 <= times[TWO] / times[TWO + OFF] <= 1


def test_a_kernel_that_fits_l2_is_faster_warm() -> None:
    acl = device()
    warm = task(48, 32768, 16, mode=TWO)
    with acl.with_options(state="cold"):
        cold = task(48, 32768, 16, mode=TWO)
    assert warm < cold


@pytest.mark.parametrize("nbytes", [2048, 8192])
def test_the_same_addresses_are_served_one_after_another(nbytes: int) -> None:
    """48 cores that read the same pieces in the same order are slower than on pieces that are in L2 and their own."""
    assert task(48, nbytes, 16, mode=TWO + SAME) >= task(48, nbytes, 16, mode=TWO)


# Every core writes its share of `written` bytes, all meet, and `readers` of them read 1 MiB each.
DIRTY = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void dirty(GM_ADDR x, GM_ADDR z, uint32_t written, uint32_t readers) {
  constexpr uint32_t kPiece = 32768, kRead = 1 << 20;
  const uint64_t share = written / GetBlockNum(), block = GetBlockIdx();
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)x + block * (kRead / 4), kRead / 4);
  to.SetGlobalBuffer((__gm__ float*)z + block * (share / 4), share / 4);
  LocalTensor<float> a(TPosition::VECIN, 0, kPiece / 4), b(TPosition::VECOUT, kPiece, kPiece / 4);
  Duplicate(b, 1.0f, kPiece / 4);
  PipeBarrier<PIPE_ALL>();
  for (uint64_t i = 0; i < share; i += kPiece) DataCopy(to[i / 4], b, kPiece / 4);
  SyncAll();
  for (uint32_t i = 0; block < readers && i < kRead; i += kPiece) DataCopy(a, from[i / 4], kPiece / 4);
  PipeBarrier<PIPE_ALL>();
}
"""


def test_dirty_lines_that_make_room_for_a_read_take_bandwidth_of_hbm_not_of_the_core() -> None:
    acl = device()
    function = acl.load(acl.compile(DIRTY, "dirty.cpp", ["--cce-auto-sync=off"])).function("dirty")
    most = 48 * (5 << 20)  # bytes, more than L2 holds
    x, z = acl.malloc(48 << 20), acl.malloc(most)
    options = LaunchOptions(hazards=False, state="cold")

    def reading(written: int, readers: int) -> float:
        acl.launch(function, 48, [x, z, ctypes.c_uint32(written), ctypes.c_uint32(readers)], options=options)
        acl.synchronize()
        return float(acl.report()["profile"]["aiv_mte2_time_us"])

    try:
        assert reading(most, 1) == pytest.approx(reading(48 * 32768, 1), rel=1e-6)
        assert reading(most, 48) > 1.5 * reading(48 * 32768, 48)
    finally:
        acl.free(x)
        acl.free(z)


@pytest.mark.parametrize(("part", "written"), [("ascend910b1", 1.0), ("ascend910b2", 1.27)])
def test_lines_that_the_kernel_before_left_dirty_take_bandwidth_of_hbm(part: str, written: float) -> None:
    """Behind a kernel that filled L2, reads of many cores wait for its output to leave; those of one core don't."""
    acl = device()
    function = acl.load(acl.compile(DIRTY, "dirty.cpp", ["--cce-auto-sync=off"])).function("dirty")
    x, z = acl.malloc(48 << 20), acl.malloc(48 * 32768)
    options = LaunchOptions(chip=load_chip(part).option, hazards=False, state="flushed")

    def slower(readers: int) -> float:
        acl.launch(function, 48, [x, z, ctypes.c_uint32(48 * 32768), ctypes.c_uint32(readers)], options=options)
        acl.synchronize()
        clean, third = acl.replay([{"flushed.dirty_share": 0}, {"flushed.dirty_share": 1 / 3}])
        return third / clean

    try:
        assert slower(1) == pytest.approx(1, abs=0.02)
        assert 1.15 < slower(48) <= 1 + written / 3  # what a byte of it takes of HBM, a read one being 1
    finally:
        acl.free(x)
        acl.free(z)


PIECES = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void pieces(GM_ADDR x, uint32_t count, uint32_t bytes, uint32_t gap) {
  GlobalTensor<uint8_t> from;
  from.SetGlobalBuffer((__gm__ uint8_t*)x + GetBlockIdx() * count * bytes, count * bytes);
  LocalTensor<uint8_t> to(TPosition::VECIN, 0, count * (bytes + gap * 32));
  for (int i = 0; i < 4; i++) {
    DataCopyPad(to, from, {static_cast<uint16_t>(count), bytes, 0, gap, 0}, {false, 0, 0, 0});
    from = from[GetBlockNum() * count * bytes];
  }
  PipeBarrier<PIPE_ALL>();
}
"""


def test_pieces_of_one_stretch_that_are_set_apart_are_read_line_by_line() -> None:
    """A window of global memory is asked for once, however many pieces it is cut into; pieces that aren't set apart
    wait for the line that the one before is in."""
    acl = device()
    function = acl.load(acl.compile(PIECES, "pieces.cpp", ["--cce-auto-sync=off"])).function("pieces")
    x = acl.malloc(4 * 48 * 65536)

    def reading(count: int, size: int, gap: int, cores: int = 48) -> float:
        options = LaunchOptions(hazards=False, state="flushed")
        acl.launch(function, cores, [x, *map(ctypes.c_uint32, (count, size, gap))], options=options)
        acl.synchronize()
        return float(acl.report()["profile"]["aiv_mte2_time_us"])

    try:
        whole = reading(1, 65536, 0)
        assert reading(2048, 32, 1) < 1.5 * whole
        assert reading(1024, 64, 1) == pytest.approx(reading(2048, 32, 1), rel=0.02)
        assert reading(2048, 32, 0) > 5 * reading(2048, 32, 1)
    finally:
        acl.free(x)


STEPS = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void steps(GM_ADDR x, uint32_t step) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  constexpr uint32_t kPiece = 32768, kCopies = 6;
  GlobalTensor<uint8_t> from;
  from.SetGlobalBuffer((__gm__ uint8_t*)x);
  LocalTensor<uint8_t> to(TPosition::VECIN, 0, kPiece);
  for (uint32_t i = 0; i < kCopies; i++) DataCopy(to, from[i * step], kPiece);
  PipeBarrier<PIPE_ALL>();
}
"""


def test_a_core_waits_for_the_address_of_each_page_that_it_comes_to() -> None:
    """Six copies: behind another kernel each page but the first takes its time, unless a copy goes on into it."""
    acl = device()
    function = acl.load(acl.compile(STEPS, "steps.cpp", ["--cce-auto-sync=off"])).function("steps")
    x, apart = acl.malloc(6 * (33 << 16)), 33 << 16  # 2 MiB and 64 KiB: at most one copy lies on two pages
    page_us = load_chip("ascend910b2").values["flushed.page_us"]

    def reading(step: int, state: str) -> float:
        acl.launch(function, 1, [x, ctypes.c_uint32(step)], options=LaunchOptions(hazards=False, state=state))
        acl.synchronize()
        free, charged = acl.replay([{"flushed.page_us": 0}, {"flushed.page_us": page_us}])
        return float(charged - free)

    try:
        assert 3.9 < reading(apart, "flushed") / page_us < 5.1
        assert reading(32768, "flushed") == pytest.approx(0, abs=1e-6)  # one stretch
        assert reading(apart, "warm") == pytest.approx(0, abs=1e-6)
    finally:
        acl.free(x)


def test_what_l2_keeps_for_itself_counts_where_a_launch_needs_nearly_all_of_it() -> None:
    """Two thirds of L2 are confirmed: a launch of less is as fast whatever the rest is, one of more isn't."""
    acl = device()
    function = acl.load(acl.compile(DIRTY, "dirty.cpp", ["--cce-auto-sync=off"])).function("dirty")
    most = 48 * (5 << 19)  # bytes; with 48 MiB that are read 168 of 192 MiB
    x, z = acl.malloc(48 << 20), acl.malloc(most)

    def slower(written: int) -> float:
        options = LaunchOptions(hazards=False)
        acl.launch(function, 48, [x, z, ctypes.c_uint32(written), ctypes.c_uint32(48)], options=options)
        acl.synchronize()
        whole, part = acl.replay([{"memory.l2_lost_share": 0}, {"memory.l2_lost_share": 0.33}])
        return part / whole

    try:
        assert slower(48 << 20) == pytest.approx(1)
        assert slower(most) > 1.2
    finally:
        acl.free(x)
        acl.free(z)


# `count` pieces of `bytes` that lie `pitch` apart in global memory, in (way 0) or out (way 1) by one copy.
SHORT = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void short_pieces(GM_ADDR x, uint32_t bytes, uint32_t pitch, uint32_t count,
                                                   uint32_t way) {
  GlobalTensor<uint8_t> gm;
  gm.SetGlobalBuffer((__gm__ uint8_t*)x, uint64_t(pitch) * count);
  LocalTensor<uint8_t> ub(TPosition::VECCALC, 0, 65536);
  const uint16_t n = static_cast<uint16_t>(count);
  if (way) {
    DataCopyPad(gm, ub, DataCopyExtParams{n, bytes, 0, pitch - bytes, 0});
  } else {
    const DataCopyPadExtParams<uint8_t> none{false, 0, 0, 0};
    DataCopyPad(ub, gm, DataCopyExtParams{n, bytes, pitch - bytes, 0, 0}, none);
  }
  PipeBarrier<PIPE_ALL>();
}
"""


def _cycles_of_a_piece(nbytes: int, pitch: int, way: int) -> float:
    """By what 512 pieces take more than 256, in cycles."""
    acl = device()
    function = acl.load(acl.compile(SHORT, "short.cpp")).function("short_pieces")
    x, times = acl.malloc(512 * 1024), []
    try:
        for count in (256, 512):
            arguments = [x, *(ctypes.c_uint32(n) for n in (nbytes, pitch, count, way))]
            acl.launch(function, 1, arguments, options=LaunchOptions(hazards=False))
            acl.synchronize()
            times.append(float(acl.report()["profile"][f"aiv_mte{3 if way else 2}_time_us"]))
    finally:
        acl.free(x)
    return (times[1] - times[0]) / 256 * float(load_chip("ascend910b2").values["core.clock_mhz"])


@pytest.mark.parametrize(("nbytes", "cycles"), [(1, 80), (6, 56), (14, 38)])
def test_a_short_piece_waits_for_the_line_of_the_one_before(nbytes: int, cycles: float) -> None:
    """What they take on silicon: Transpose new/04, new/24 and new/23, 34 to 41 cycles by what the rest of it takes."""
    assert _cycles_of_a_piece(nbytes, nbytes, way=1) == pytest.approx(cycles, rel=0.2)


def test_pieces_of_lines_of_their_own_do_not_wait() -> None:
    for way in (0, 1):
        apart = _cycles_of_a_piece(1, 256, way)
        assert apart < 16
        assert _cycles_of_a_piece(1, 32, way) > apart + 10
    assert _cycles_of_a_piece(64, 64, way=1) < _cycles_of_a_piece(32, 32, way=1) < _cycles_of_a_piece(16, 16, way=1)


def test_a_read_piece_that_begins_inside_of_a_block_waits_longer() -> None:
    """Rows of two Concats: pieces of 32 bytes take 30 cycles, those of 34 more than 40."""
    assert _cycles_of_a_piece(32, 32, way=0) == pytest.approx(30, rel=0.1)
    assert _cycles_of_a_piece(34, 34, way=0) > 1.4 * _cycles_of_a_piece(32, 32, way=0)
