"""Flags that cores keep in global memory (IBSet, WaitPreBlock, GroupBarrier and their like): values, order, time."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ascendopt_tune.build import toolkit
from ascendopt_tune.device.acl import Acl, Binary
from ascendopt_tune.errors import DeviceError

SOURCE = Path(__file__).resolve().parent / "kernels" / "memory_flags.cpp"
COUNT = 256  # floats a tile, as in the kernels
FLAG, EARLY, LATE, NOT_RAISED, FALLING, NOBODYS, TWICE, AWAITED_TWICE, UNAWAITED = (1 << i for i in range(9))
ORDER, SET_UP, TOO_EARLY, LAST_SILENT = (1 << i for i in range(4))


@cache
def device() -> Acl:
    return Acl(toolkit.virtual())


@cache
def kernels() -> Binary:
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


def launch(name: str, number: int, cores: int, flags: int = 0) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
    """(the tiles afterwards, one for each core; the report). Words of the flags are all ``flags`` before."""
    acl = device()
    tiles = np.zeros(cores * COUNT, np.float32)
    tiles[:COUNT] = np.arange(COUNT) % 7
    words = np.full(2 * cores * 8 + 8, flags, np.int32)
    pointers = [acl.malloc(tiles.nbytes), acl.malloc(words.nbytes)]
    try:
        acl.memcpy_h2d(pointers[0], tiles)
        acl.memcpy_h2d(pointers[1], words)
        acl.launch(kernels().function(name), cores, [*pointers, ctypes.c_uint32(number)])
        acl.synchronize()
        result = np.empty_like(tiles)
        acl.memcpy_d2h(result, pointers[0])
        return result.reshape(cores, COUNT), acl.report()
    finally:
        for pointer in pointers:
            acl.free(pointer)


def pipes(report: dict[str, Any]) -> set[frozenset[str]]:
    return {frozenset((h["first"]["pipe"], h["second"]["pipe"])) for h in report["hazards"]}


@pytest.mark.parametrize("cores", [2, 7, 40])
@pytest.mark.parametrize("falling", [0, FALLING])
def test_what_was_stored_before_a_flag_is_seen_behind_it(cores: int, falling: int) -> None:
    tiles, report = launch("chain", FLAG | falling, cores)
    assert report["hazards"] == []
    assert report["unwritten"] == []
    steps = np.arange(1, cores + 1)[:, None] + (0 if falling else np.arange(COUNT) % 7)
    if falling:  # the last core begins, with zeros
        steps = steps[::-1]
    np.testing.assert_array_equal(tiles, np.broadcast_to(steps, tiles.shape))


@pytest.mark.parametrize("bits", [0, FLAG | EARLY, FLAG | LATE])
def test_the_racy_twins_are_reported(bits: int) -> None:
    _, report = launch("chain", bits, 4)
    assert pipes(report) == {frozenset(("MTE3", "MTE2"))}


def test_a_flag_that_nobody_raises_is_waited_for_for_ever() -> None:
    message = r"IBWait on core 1: flag 0 in global memory holds 0, it waits for 1.*no core changes it any more"
    with pytest.raises(DeviceError, match=message):
        launch("chain", FLAG | NOT_RAISED, 3)
    with pytest.raises(DeviceError, match=message):
        launch("chain", FLAG | AWAITED_TWICE, 3)


def test_a_flag_that_is_up_is_not_raised_before_somebody_has_taken_it() -> None:
    with pytest.raises(DeviceError, match=r"IBSet on core 0: flag 0 in global memory holds 1, it waits for 0"):
        launch("chain", FLAG | TWICE | UNAWAITED, 2)
    for bits in (TWICE, TWICE | AWAITED_TWICE):
        _, report = launch("chain", FLAG | bits, 3)
        assert report["hazards"] == []
    with pytest.raises(DeviceError, match=r"IBSet on core 0: flag 0 in global memory holds 5, it waits for 0"):
        launch("chain", FLAG, 2, flags=5)


def test_a_flag_that_an_earlier_launch_left_up_orders_nothing() -> None:
    _, report = launch("chain", FLAG | NOT_RAISED, 2, flags=1)
    assert pipes(report) == {frozenset(("MTE3", "MTE2"))}


def test_what_the_documentation_forbids() -> None:
    with pytest.raises(DeviceError, match=r"IBWait: blockIdx has to be in \[0, cores - 1\]"):
        launch("chain", FLAG | NOBODYS, 3)
    with pytest.raises(DeviceError, match="it needs all of them running at once"):
        launch("chain", FLAG, 1000)


def in_order(cores: int, rounds: int) -> np.ndarray[Any, Any]:
    tile = (np.arange(COUNT) % 7).astype(np.float32)
    for _ in range(rounds):
        for core in range(cores):
            tile = tile * np.float32(2) + np.float32(core)
    return tile


@pytest.mark.parametrize(("cores", "rounds"), [(1, 3), (2, 4), (3, 3), (16, 1)])
def test_cores_follow_each_other_in_every_round(cores: int, rounds: int) -> None:
    for flags in (0, 99):  # whatever is there before
        tiles, report = launch("in_order", ORDER | SET_UP | rounds << 8, cores, flags)
        np.testing.assert_array_equal(tiles[0], in_order(cores, rounds))
        assert report["hazards"] == []
        assert report["unwritten"] == []


@pytest.mark.parametrize("bits", [SET_UP, SET_UP | ORDER | TOO_EARLY])
def test_cores_out_of_order_are_reported(bits: int) -> None:
    _, report = launch("in_order", bits | 1 << 8, 3)
    assert frozenset(("MTE3", "MTE2")) in pipes(report)


def test_a_core_that_notifies_nobody_and_flags_that_are_not_set_up() -> None:
    _, report = launch("in_order", ORDER | SET_UP | LAST_SILENT | 1 << 8, 3)
    assert report["hazards"] == []
    with pytest.raises(DeviceError, match=r"WaitPreBlock on core 0: flag 0 in global memory holds 1, it waits for 0"):
        launch("in_order", ORDER | SET_UP | LAST_SILENT | 2 << 8, 3)
    with pytest.raises(DeviceError, match=r"WaitPreBlock on core 0: flag 0 in global memory holds 9, it waits for 0"):
        launch("in_order", ORDER | 1 << 8, 3, flags=9)


def duration(name: str, number: int, cores: int) -> float:
    return float(launch(name, number, cores)[1]["profile"]["task_duration_us"])


def test_who_waits_goes_on_when_the_flag_is_there() -> None:
    work = duration("late", 400, 2) - duration("late", 1, 2)
    assert work > 10
    _, report = launch("late", 400, 2)
    waited = report["profile"]["counters"]["stall_sync_all_us"]  # a mean: of two cores, one waits
    assert waited == pytest.approx(work / 2, rel=0.15)


def test_a_chain_takes_longer_with_every_core_and_about_as_long_for_each() -> None:
    times = [duration("chain", FLAG, cores) for cores in (2, 8, 14, 20)]
    steps = np.diff(times)
    assert (steps > 6 * 0.5).all()  # a link is two loads and two stores more than nothing, one after another
    assert steps.max() < 1.3 * steps.min()


def test_a_barrier_of_stores_costs_time() -> None:
    assert duration("stores", 64 | 1 << 31, 1) > duration("stores", 64, 1) + 1


def in_groups(cores: int, rounds: int, bits: int) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
    """(tiles [round, core, element] afterwards, the report); the first ``cores // 3 + 1`` cores arrive."""
    acl = device()
    tiles = np.zeros((rounds, cores, COUNT), np.float32)
    tiles[0] = np.arange(cores)[:, None] * 100
    words = np.zeros(cores * 128 + 16, np.int32)
    pointers = [acl.malloc(tiles.nbytes), acl.malloc(words.nbytes)]
    try:
        acl.memcpy_h2d(pointers[0], tiles)
        acl.memcpy_h2d(pointers[1], words)
        numbers = ctypes.c_uint32(rounds), ctypes.c_uint32(bits)
        acl.launch(kernels().function("in_groups"), cores, [*pointers, *numbers])
        acl.synchronize()
        acl.memcpy_d2h(tiles, pointers[0])
        return tiles, acl.report()
    finally:
        for pointer in pointers:
            acl.free(pointer)


@pytest.mark.parametrize(("cores", "rounds"), [(2, 1), (5, 3), (20, 4)])
def test_a_group_waits_for_all_of_another(cores: int, rounds: int) -> None:
    tiles, report = in_groups(cores, rounds, 1)
    assert report["hazards"] == []
    arrive = cores // 3 + 1
    for r in range(rounds):
        np.testing.assert_array_equal(tiles[r, :arrive, 0], np.arange(arrive) * 100 + r + 1)
        np.testing.assert_array_equal(tiles[r, arrive:, 0], tiles[r, np.arange(cores - arrive) % arrive, 0])


@pytest.mark.parametrize("bits", [0, 1 | 2, 1 | 4], ids=["no barrier", "arrives too early", "waits too late"])
def test_racy_twins_of_groups(bits: int) -> None:
    assert pipes(in_groups(5, 1, bits)[1]) == {frozenset(("MTE3", "MTE2"))}


def test_a_group_that_is_not_complete() -> None:
    with pytest.raises(DeviceError, match=r"GroupBarrier::Wait on core .*holds 1, it waits for 2"):
        in_groups(5, 1, 1 | 8)
    with pytest.raises(DeviceError, match=r"arriveIndex lies in \[0, arriveSizeIn - 1\]"):
        in_groups(5, 1, 1 | 16)
