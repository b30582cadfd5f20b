"""The cores of a launch on several threads: the same as on one, byte for byte, and on several only where it may be.

Compared are all memory, the whole report (hazards, unwritten bytes, modelled times) and the timeline.
"""

from __future__ import annotations

import ctypes
import json
import os
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendopt_tune.build import toolkit
from ascendopt_tune.device.acl import Acl
from ascendopt_tune.device.options import LaunchOptions
from ascendopt_tune.errors import DeviceError

SOURCE = Path(__file__).resolve().parent / "kernels" / "beside.cpp"
TILE = 64  # floats, as in the kernels
CORES = 12
(NOTHING, ATOMIC, SYNC_ALL, FLAG, SET_VALUE, POINTER, VARIABLE, PRINT, ERROR, POLL, FILL, READ_BACK, SAME, MUCH) = (
    range(14)
)


@cache
def device() -> Acl:
    return Acl(toolkit.virtual())


@cache
def binary(variable: bool) -> bytes:
    """``variable``: with one in the binary, so that its kernels never run beside each other."""
    options = ["--cce-auto-sync=on", *(["-DWITH_VARIABLE"] if variable else [])]
    return device().compile(SOURCE.read_text(), SOURCE.name, options)


def run(
    name: str, cores: int, arrays: Sequence[np.ndarray[Any, Any]], *more: int, threads: int, options: dict[str, int]
) -> tuple[dict[str, Any], int]:
    """(everything one launch left behind, how many cores ran beside others).

    The second array is declared unwritten. A binary of its own: its variables begin at their initial values.
    """
    acl = device()
    pointers = [acl.malloc(a.nbytes) for a in arrays]
    chosen = LaunchOptions(**{"trace": True, "threads": threads} | {name: bool(on) for name, on in options.items()})
    timeline = Path(tempfile.gettempdir(), f"timeline-{os.getpid()}.json")
    try:
        for pointer, array in zip(pointers, arrays, strict=True):
            acl.memcpy_h2d(pointer, array)
        acl.unwritten(pointers[1], arrays[1].nbytes)
        with acl.load(binary(more[0] == VARIABLE and name == "and_more")) as loaded:
            error = ""
            acl.launch(loaded.function(name), cores, [*pointers, *map(ctypes.c_uint32, more)], options=chosen)
            try:
                acl.synchronize()
            except DeviceError as e:
                error = str(e)
            report, beside = acl.report(), acl.cores_beside()
            written = acl.write_trace(timeline)
        after = [np.empty_like(a) for a in arrays]
        for pointer, array in zip(pointers, after, strict=True):
            acl.memcpy_d2h(array, pointer)
        left = {
            "memory": [a.tobytes() for a in after],
            "report": json.dumps(report),
            "error": error,
            "timeline": timeline.read_bytes() if written else None,
        }
        return left, beside
    finally:
        timeline.unlink(missing_ok=True)
        for pointer in pointers:
            acl.free(pointer)


def same(name: str, cores: int, arrays: Sequence[np.ndarray[Any, Any]], *more: int, **options: int) -> int:
    """How many cores ran beside others on two threads; fails when they left something else than in turn."""
    alone, _ = run(name, cores, arrays, *more, threads=1, options=options)
    together, beside = run(name, cores, arrays, *more, threads=2, options=options)
    for key, value in alone.items():
        assert together[key] == value, key
    return beside


def tiles(count: int) -> list[np.ndarray[Any, Any]]:
    x = np.random.default_rng(count).standard_normal(count * TILE).astype(np.float32)
    return [x, np.full_like(x, -1)]


@pytest.mark.parametrize(
    ("what", "beside"),
    [
        (NOTHING, CORES), (FILL, CORES), (ATOMIC, 0), (SYNC_ALL, 0), (FLAG, 0), (SET_VALUE, 0), (POINTER, 0),
        (VARIABLE, 0), (PRINT, 0), (ERROR, 0), (POLL, 0), (READ_BACK, 0), (SAME, 0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("observers", [0, 1])
def test_cores_run_beside_each_other_where_their_order_cannot_matter(
    what: int, beside: int, observers: int, capfd: pytest.CaptureFixture[str]
) -> None:
    assert same("and_more", CORES, tiles(2 * CORES), what, timing=observers, hazards=observers) == beside
    printed = capfd.readouterr().out
    assert printed.split() == ([str(i) for i in range(CORES)] * 2 if what == PRINT else [])


def test_an_error_ends_the_launch_where_it_would_in_turn() -> None:
    x, y = tiles(2 * CORES)
    left, _ = run("and_more", CORES, [x, y], ERROR, threads=3, options={})
    assert "DataCopy: the destination is in no allocation" in left["error"]
    after = np.frombuffer(left["memory"][1], np.float32)[: CORES * TILE].reshape(CORES, TILE)
    assert [bool((row != -1).any()) for row in after] == [i <= CORES // 2 for i in range(CORES)]


def test_what_is_kept_goes_to_memory_now_and_then() -> None:
    assert same("and_more", 6, tiles(12), MUCH, trace=0) == 6  # 31 MB, twice what one attempt keeps


def test_blocks_beyond_the_cores_of_the_chip() -> None:
    assert same("and_more", 61, tiles(61), NOTHING) == 61


@pytest.mark.parametrize("elements", [1, 8, 13, TILE])
def test_bytes_nobody_wrote_are_followed(elements: int) -> None:
    assert same("ragged", CORES, tiles(CORES), elements) == CORES


@st.composite
def tables(draw: st.DrawFn) -> tuple[int, int, list[int]]:
    """(cores, tiles a core moves, the tiles from and to): from next to no sharing to nothing but."""
    cores, count, room = draw(st.integers(2, 9)), draw(st.integers(1, 3)), draw(st.sampled_from([4, 32, 1024]))
    return (
        cores,
        count,
        draw(st.lists(st.integers(0, room - 1), min_size=2 * cores * count, max_size=2 * cores * count)),
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(table=tables(), in_place=st.booleans(), threads=st.integers(2, 4))
def test_whatever_cores_share(table: tuple[int, int, list[int]], in_place: bool, threads: int) -> None:
    cores, count, pairs = table
    x, y = tiles(1024)
    arrays = [x, y, np.array(pairs, np.int32)]
    moved = [(c, *pairs[2 * i : 2 * i + 2]) for c in range(cores) for i in range(c * count, (c + 1) * count)]
    alone, none = run("by_table", cores, arrays, count, int(in_place), threads=1, options={})
    together, beside = run("by_table", cores, arrays, count, int(in_place), threads=threads, options={})
    assert none == 0
    assert together == alone
    readers = {(c, source) for c, source, _ in moved if in_place}
    shared = any(a != b and i == j for a, _, i in moved for b, j in {*readers, *((c, t) for c, _, t in moved)})
    back = any(a == b and i == j and m < n for m, (a, _, i) in enumerate(moved) for n, (b, j, _) in enumerate(moved))
    if not shared and not (in_place and back):
        assert beside == cores
