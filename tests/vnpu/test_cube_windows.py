"""LoadData of a convolution's windows against numpy: pad, slide, take points, transpose."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_cube import NAMES, clean, default_options, device, launch, up

from ascendopt_tune.device.acl import Binary
from ascendopt_tune.errors import DeviceError
from ascendopt_tune.nouns.chip import DEFAULT_CHIP, load_chip

__all__ = ["default_options"]
SOURCE = Path(__file__).resolve().parent / "kernels" / "cube_windows.cpp"
Array = np.ndarray[Any, Any]
FIELDS = (
    *("bytes", "height", "width", "channels", "left", "right", "top", "bottom"),
    *("first_row", "rows", "first_column", "columns"),
    *("step_x", "step_y", "window_w", "window_h", "dilation_x", "dilation_y", "to_b", "transpose", "by"),
    *("repeat_stride", "repeat_times", "repeat_mode", "boundary", "m", "n", "k", "leave_out"),
)
PLAIN = dict.fromkeys(["step_x", "step_y", "window_w", "window_h", "dilation_x", "dilation_y", "repeat_times"], 1)


class WindowCase(ctypes.Structure):
    _fields_ = [*((n, ctypes.c_uint32) for n in FIELDS), ("padding", ctypes.c_int32)]


@cache
def kernels() -> Binary:
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


def matrix(image: Array, case: dict[str, int]) -> Array:
    """The matrix of windows of an image [c1, height, width, c0]: [places, c1 x window_h x window_w x c0]."""
    margins = ((0, 0), (case["top"], case["bottom"]), (case["left"], case["right"]), (0, 0))
    padded = np.pad(image, margins, constant_values=case["padding"])
    reach = [(case[f"window_{a}"] - 1) * case[f"dilation_{b}"] + 1 for a, b in (("h", "y"), ("w", "x"))]
    seen = np.lib.stride_tricks.sliding_window_view(padded, reach, (1, 2))  # [c1, y, x, c0, window, window]
    points = seen[:, :: case["step_y"], :: case["step_x"], :, :: case["dilation_y"], :: case["dilation_x"]]
    rows = points.shape[1] * points.shape[2]
    return points.transpose(1, 2, 0, 4, 5, 3).reshape(rows, -1)


def image_of(case: dict[str, int], dtype: str) -> Array:
    c0 = 32 // np.dtype(NAMES[dtype]).itemsize
    rng = np.random.default_rng(case["height"] * 100 + case["width"])
    shape = (case["channels"] // c0, case["height"], case["width"], c0)
    return rng.integers(-100, 100, shape).astype(NAMES[dtype])


def run(case: dict[str, int], dtype: str, image: Array, m: int, n: int, more: int = 0) -> tuple[Array, dict[str, Any]]:
    """What was loaded, [m, n]. ``more``: rows of it that nobody may look at."""
    k = m if case["to_b"] else n
    one = np.eye(k).astype(NAMES[dtype])
    out = np.zeros((m + more, n), np.int32 if dtype == "int8" else np.float32)
    full = {"bytes": image.nbytes, "m": m + more, "n": n, "k": k}
    report = launch(f"windows_{dtype}", [image, one], out, WindowCase(**{**case, **full}), binary=kernels())
    return out, report


def check(case: dict[str, int], dtype: str, image: Array, expected: Array) -> None:
    if case["transpose"] and not case["to_b"]:
        expected = expected.T
    out, report = run(case, dtype, image, *expected.shape)
    clean(report)
    np.testing.assert_array_equal(out, expected.astype(out.dtype))


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, int], str]:
    def number(low: int, high: int) -> int:
        return draw(st.integers(low, high))

    dtype = draw(st.sampled_from(["float16", "bfloat16", "float32", "int8"]))
    c0 = 32 // np.dtype(NAMES[dtype]).itemsize
    case = {n: number(0, 3) for n in ("left", "right", "top", "bottom")}
    case |= {n: number(1, 3) for n in ("step_x", "step_y", "window_w", "window_h")}
    case |= {n: number(1, 2) for n in ("dilation_x", "dilation_y")}
    for size, before, after, window, dilation in (("height", "top", "bottom", "window_h", "dilation_y"),
                                                  ("width", "left", "right", "window_w", "dilation_x")):  # fmt: skip
        least = (case[window] - 1) * case[dilation] + 1 - case[before] - case[after]
        case[size] = number(max(1, least), 12)
    case |= {"channels": number(1, 3) * c0, "padding": number(-5, 5), "by": number(0, 2)}
    case["to_b"] = number(0, 1) if dtype != "int8" else 0
    case["transpose"] = number(0, 1) if dtype != "int8" else 0
    case |= {"repeat_times": 1, "repeat_stride": 0, "repeat_mode": 0, "boundary": 0, "leave_out": 0}
    rows, columns = matrix(image_of(case, dtype), case).shape
    case["first_row"] = number(0, rows - 1)
    rest = rows - case["first_row"]
    case["rows"] = 16 * number(1, rest // 16) if rest >= 16 and draw(st.booleans()) else rest
    case["rows"] = min(case["rows"], 96 + rest % 16 if rest <= 112 else 96)
    blocks = columns // c0
    first = number(0, blocks - 1)
    case |= {"first_column": first * c0, "columns": number(1, min(blocks - first, 128 // c0)) * c0}
    return case, dtype


def plain(height: int, width: int, channels: int, dtype: str = "float16", **more: int) -> dict[str, int]:
    """A matrix of height x width rows, as products want it."""
    case = {**dict.fromkeys(FIELDS, 0), "padding": 0, **PLAIN, "height": height, "width": width, "channels": channels}
    return {**case, "rows": height * width, "columns": channels, **more}


TALL = plain(6, 3, 8, "float32", to_b=1, transpose=1)  # 18 rows: an odd number of 8 columns in the matrix beside it


@given(cases())
@example((TALL, "float32"))
@settings(max_examples=150, deadline=None)
def test_windows_are_numpys(drawn: tuple[dict[str, int], str]) -> None:
    case, dtype = drawn
    image = image_of(case, dtype)
    part = matrix(image, case)[case["first_row"] :, case["first_column"] :][: case["rows"], : case["columns"]]
    if min(part.shape if case["transpose"] and not case["to_b"] else part.shape[:1]) < 2:
        return  # one row is a vector, and no tile
    check(case, dtype, image, part)


@pytest.mark.parametrize(("to_b", "transpose"), [(0, 0), (0, 1), (1, 0)])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("along", [0, 1])
def test_repeats_make_one_matrix(dtype: str, to_b: int, transpose: int, along: int) -> None:
    c0 = 32 // np.dtype(NAMES[dtype]).itemsize
    case = plain(1, 112, 6 * c0, dtype, to_b=to_b, transpose=transpose) | {"rows": 16, "columns": c0}
    case |= {"repeat_mode": along, "repeat_stride": 2, "repeat_times": 3}
    image = image_of(case, dtype)
    if along and not to_b and not transpose:
        with pytest.raises(DeviceError, match="repeats along k that are not transposed"):
            run(case, dtype, image, 16, 3 * c0)
        return
    whole = matrix(image, case)
    rows = np.concatenate([np.arange(16) + (0 if along else 32 * i) for i in range(1 if along else 3)])
    columns = np.concatenate([np.arange(c0) + (2 * c0 * i if along else 0) for i in range(3 if along else 1)])
    check(case, dtype, image, whole[np.ix_(rows, columns)])


def test_loads_that_meet_the_boundary_go_on_at_the_begin_of_l1() -> None:
    case = plain(4, 16, 32, boundary=1024)
    image = image_of(case, "float16")
    wrapped = np.resize(image.reshape(-1, 16)[:32], (image.size // 16, 16)).reshape(image.shape)
    check(case, "float16", image, matrix(wrapped, case))


@pytest.mark.parametrize(("rows", "looked_at"), [(10, 0), (10, 6), (16, 0)])
def test_rows_behind_the_last_place_are_not_written(rows: int, looked_at: int) -> None:
    case = plain(1, rows, 16, rows=16)
    image = image_of(case, "float16")
    out, report = run(case, "float16", image, rows, 16, looked_at)
    assert bool(report["unwritten"]) == bool(looked_at)
    np.testing.assert_array_equal(out[:rows], matrix(image, case))


@pytest.mark.parametrize("to_b", [0, 1])
@pytest.mark.parametrize(("leave_out", "missing", "memory"), [(1, "MTE2_MTE1", "L1"), (2, "MTE1_M", "L0")])
def test_a_flag_left_out_is_missed(leave_out: int, missing: str, memory: str, to_b: int) -> None:
    case = plain(4, 16, 32, to_b=to_b, leave_out=leave_out)
    _, report = run(case, "float16", image_of(case, "float16"), 64, 32)
    assert {missing in h["missing"] for h in report["hazards"]} == {True}
    assert any(h["memory"].startswith(memory) for h in report["hazards"])


WRONG = [
    ({"channels": 20}, "channelSize has to be a multiple of 16"),
    ({"first_column": 8}, "kStartPt has to be a multiple of 16"),
    ({"step_x": 0}, "strideW and strideH may not be 0"),
    ({"step_y": 64}, "at most 63"),
    ({"window_w": 40}, "the window is larger than the image"),
    ({"rows": 20}, "mExtension has to be a multiple of 16"),
    ({"columns": 5}, "kExtension has to be a multiple of 16"),
    ({"boundary": 512}, "a boundary has at least 1024 bytes"),
    ({"by": 1, "leave_out": 4}, "nobody has called SetFmatrix"),
    ({"height": 300, "width": 300, "first_row": 80000, "rows": 16}, "past the end of L1"),
    ({"repeat_times": 80, "repeat_stride": 0}, "past the end of L0A"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[m for _, m in WRONG])
def test_what_no_load_may_be(change: dict[str, int], message: str) -> None:
    image = image_of(plain(4, 16, 32), "float16")
    with pytest.raises(DeviceError, match=message):
        run(plain(4, 16, 32) | change, "float16", image, 64, 32)


def test_bytes_go_to_l0a_alone_and_as_they_are() -> None:
    case = plain(2, 16, 32, "int8", transpose=1)
    with pytest.raises(DeviceError, match="1-byte elements can't be transposed"):
        run(case, "int8", image_of(case, "int8"), 32, 32)
    with pytest.raises(DeviceError, match="1-byte elements can't be loaded to L0B"):
        launch("windows_wrong", [np.zeros(32), np.zeros(32)], np.zeros(32), WindowCase(**case), binary=kernels())


@pytest.mark.parametrize("change", ["channels", "height", "width", "rows", "columns", "window_h", "repeat_times"])
def test_a_size_of_0_loads_nothing(change: str) -> None:
    report = launch("windows_alone", [], np.zeros(8), WindowCase(**(plain(4, 16, 32) | {change: 0})), binary=kernels())
    assert report["profile"]["counters"]["mte1_instructions"] == 0


@pytest.mark.parametrize(
    ("height", "width", "step", "to_b", "tile"),
    [(1, 128, 1, 0, 2), (1, 128, 1, 1, 4), (8, 16, 1, 0, 2), (16, 8, 1, 0, 4), (16, 8, 1, 1, 6), (128, 1, 1, 0, 16),
     (128, 1, 1, 1, 18), (1, 512, 4, 0, 8), (1, 512, 4, 1, 10), (1, 384, 3, 0, 16)],
)  # fmt: skip
def test_time_is_the_documented_one(height: int, width: int, step: int, to_b: int, tile: int) -> None:
    """asc-devkit, theoretical performance: 50 cycles and a tile's, by the window's step and a tile's rows of places."""
    case = plain(height, width, 32, rows=128, step_x=step, to_b=to_b)
    report = launch("windows_alone", [], np.zeros(8), WindowCase(**case), binary=kernels())
    clock = float(load_chip(DEFAULT_CHIP).values["core.clock_mhz"])
    cycles = report["profile"]["aic_mte1_time_us"] * clock
    assert cycles == pytest.approx(50 + up(128, 16) // 16 * 2 * tile, rel=0.02)
