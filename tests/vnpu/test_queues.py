"""Queues: which pipes their flags order, by positions and depth, and what their TPipe takes back (asc-devkit, TQueBind,
TPipe and their documents)."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ascendopt_tune.build import toolkit
from ascendopt_tune.device.acl import Acl, Binary

SOURCE = Path(__file__).resolve().parent / "kernels" / "queues.cpp"
COUNT, TILES = 256, 4


@cache
def device() -> Acl:
    return Acl(toolkit.virtual())


@cache
def kernels() -> Binary:
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


def run(name: str, number: int) -> tuple[np.ndarray[Any, Any], dict[str, Any], set[tuple[str, str]]]:
    """(what the kernel wrote, the report, the edges that are missing)."""
    acl = device()
    x = np.arange(TILES * COUNT, dtype=np.float32)
    y = np.full_like(x, -1)
    px, py = acl.malloc(x.nbytes), acl.malloc(y.nbytes)
    try:
        acl.memcpy_h2d(px, x)
        acl.memcpy_h2d(py, y)
        acl.launch(kernels().function(name), 1, [px, py, ctypes.c_uint32(number)])
        acl.synchronize()
        acl.memcpy_d2h(y, py)
    finally:
        acl.free(px)
        acl.free(py)
    report = acl.report()
    return y, report, {(h["first"]["pipe"], h["second"]["pipe"]) for h in report["hazards"]}


@pytest.mark.parametrize("bits", range(4))
def test_a_bound_queue_orders_the_half_of_its_way_that_is_named(bits: int) -> None:
    """EnQue with positions: from GM to UB MTE2_V, from UB to GM V_MTE3; without, the copies alone."""
    y, _, missing = run("bound", bits)
    expected: set[tuple[str, str]] = set()
    if not bits & 1:  # V hears of nobody, of its own last work on the buffer neither
        expected |= {("MTE2", "V"), ("MTE3", "V"), ("V", "V")}
    if not bits & 2:  # nobody hears of V
        expected |= {("V", "MTE3"), ("V", "MTE2"), ("V", "V")}
    assert missing == expected
    np.testing.assert_array_equal(y, np.arange(TILES * COUNT) + 1)


@pytest.mark.parametrize(("what", "ordered"), [(0, False), (1, True), (2, False)])
def test_what_orders_a_pipe_with_itself(what: int, ordered: bool) -> None:
    """A queue inside of UB orders copies; V_V is a barrier where it is set, and nothing where it is waited for."""
    y, report, missing = run("between", what)
    assert missing == (set() if ordered else {("V", "V")})
    assert report["errors"] == []
    assert (y[:COUNT] == 2).all()


@pytest.mark.parametrize("tiles", range(1, 4))
def test_a_queue_of_depth_0_keeps_its_event_ids(tiles: int) -> None:
    y, report, missing = run("in_place", tiles)
    assert (missing, report["errors"]) == (set(), [])
    np.testing.assert_array_equal(y[: tiles * COUNT], 2 * np.arange(tiles * COUNT))
    assert list(y[3 * COUNT : 3 * COUNT + 4]) == [2, 2, 2, 2]  # two buffers of one queue, an id a buffer and direction


@pytest.mark.parametrize("bits", range(4))
def test_a_pipe_that_is_used_again_waits_for_what_was_freed(bits: int) -> None:
    """Reset takes back event ids and memory, and waits for FreeTensor's flags alone; Destroy waits for all pipes."""
    y, report, missing = run("again", bits)
    assert report["errors"] == []
    assert missing == (set() if bits else {("V", "MTE2"), ("MTE3", "V"), ("MTE2", "MTE2"), ("V", "V")})
    np.testing.assert_array_equal(y[: 2 * COUNT], 2 * np.arange(2 * COUNT))
