"""Flags between cores (CrossCoreSetFlag, CrossCoreWaitFlag): values, order, deadlocks and modelled time."""

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

SOURCE = Path(__file__).resolve().parent / "kernels" / "cross_core.cpp"
COUNT = 256  # floats a tile, as in the kernels
FLAG, EARLY, WAITS_LATE, NOT_SET, NOT_AWAITED = 1, 2, 4, 8, 16


@cache
def device() -> Acl:
    return Acl(toolkit.virtual())


@cache
def kernels() -> Binary:
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


def launch(name: str, number: int, cores: int, tensors: int) -> tuple[list[np.ndarray[Any, Any]], dict[str, Any]]:
    """(the tensors afterwards; the first counts up and the others are -1 before, the report)."""
    acl = device()
    arrays = [np.arange(cores * COUNT, dtype=np.float32), *[np.full(cores * COUNT, -1, np.float32)] * (tensors - 1)]
    pointers = [acl.malloc(a.nbytes) for a in arrays]
    try:
        for pointer, array in zip(pointers, arrays, strict=True):
            acl.memcpy_h2d(pointer, array)
        acl.launch(kernels().function(name), cores, [*pointers, ctypes.c_uint32(number)])
        acl.synchronize()
        results = [np.empty_like(a) for a in arrays]
        for pointer, result in zip(pointers, results, strict=True):
            acl.memcpy_d2h(result, pointer)
        return results, acl.report()
    finally:
        for pointer in pointers:
            acl.free(pointer)


def rotated(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.roll(x, -COUNT)


@pytest.mark.parametrize("cores", [2, 7, 40])
def test_a_store_before_the_flag_is_seen_by_every_core(cores: int) -> None:
    (x, _, z), report = launch("rotate", FLAG, cores, 3)
    assert report["hazards"] == []
    np.testing.assert_array_equal(z, rotated(x))


@pytest.mark.parametrize("bits", [0, FLAG | EARLY, FLAG | WAITS_LATE])
def test_a_flag_orders_only_what_is_before_it_with_what_is_behind_the_wait(bits: int) -> None:
    _, report = launch("rotate", bits, 4, 3)
    assert {frozenset((h["first"]["pipe"], h["second"]["pipe"])) for h in report["hazards"]} == {
        frozenset(("MTE3", "MTE2"))
    }


def test_the_wait_of_one_core_needs_the_flags_of_all() -> None:
    with pytest.raises(DeviceError, match=r"no CrossCoreSetFlag before it on its own core"):
        launch("rotate", FLAG | NOT_SET, 4, 3)
    with pytest.raises(DeviceError, match=r"CrossCoreSetFlag\(3\) was reached by 3 of 4 cores"):
        launch("rotate", FLAG | NOT_SET | NOT_AWAITED, 4, 3)


def test_more_blocks_than_cores_wait_for_ever() -> None:
    with pytest.raises(DeviceError, match="it needs all of them running at once"):
        launch("rotate", FLAG, 1000, 3)


def test_a_core_that_does_not_wait_goes_on() -> None:
    (x, _, z), report = launch("rotate", FLAG | NOT_AWAITED, 4, 3)
    np.testing.assert_array_equal(z[COUNT:], rotated(x)[COUNT:])
    assert report["hazards"]


def test_all_cores_wait_for_the_last() -> None:
    def duration(cores: int, loops: int) -> float:
        _, report = launch("late", loops, cores, 1)
        return float(report["profile"]["task_duration_us"])

    alone = duration(1, 500) - duration(1, 0)
    together = duration(8, 500) - duration(8, 0)
    assert together == pytest.approx(alone, rel=0.05)
    _, report = launch("late", 500, 8, 1)
    assert report["profile"]["aiv_time_us"] > alone
