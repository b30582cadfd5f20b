"""DataCopy with Nd2NzParams to the Unified Buffer: columns of 32 bytes, one behind the other."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_cube import default_options, device, launch

from ascendopt_tune.device.acl import Binary
from ascendopt_tune.errors import DeviceError

__all__ = ["default_options"]
SOURCE = Path(__file__).resolve().parent / "kernels" / "rows_to_local_tiles.cpp"


class Rows(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint32) for n in ("rows", "columns", "pitch", "high", "step", "waits")]


@cache
def kernels() -> Binary:
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


def run(kernel: str, dtype: Any, rows: int, columns: int, pitch: int, high: int, step: int = 1, waits: int = 1) -> Any:
    x = np.random.default_rng(rows).integers(-9, 10, (rows, pitch)).astype(dtype)
    c0 = 32 // x.itemsize
    tiles = np.zeros((-(-columns // c0), high, c0), dtype)
    out = np.zeros_like(tiles)
    report = launch(kernel, [x], out, Rows(rows, columns, pitch, high, step, waits), binary=kernels())
    for i in range(len(tiles)):
        part = x[:, i * c0 : min((i + 1) * c0, columns)]
        tiles[i, :rows, : part.shape[1]] = part
    return out, tiles, report


@pytest.mark.parametrize(("rows", "columns", "pitch", "high"), [(5, 48, 48, 5), (7, 32, 80, 9), (300, 32, 32, 300)])
@pytest.mark.parametrize(("kernel", "dtype"), [("of_half", np.float16), ("of_int8", np.int8)])
def test_rows_become_columns_of_blocks(kernel: str, dtype: Any, rows: int, columns: int, pitch: int, high: int) -> None:
    out, tiles, report = run(kernel, dtype, rows, columns, pitch, high)
    whole = columns // (32 // np.dtype(dtype).itemsize)
    np.testing.assert_array_equal(out[:whole], tiles[:whole])
    rest = columns % (32 // np.dtype(dtype).itemsize)
    np.testing.assert_array_equal(out[whole:, :, :rest], tiles[whole:, :, :rest])
    assert not report["hazards"], report["hazards"][:1]


def test_v_has_to_be_through_with_the_buffer() -> None:
    *_, report = run("of_half", np.float16, 4, 16, 16, 4, waits=0)
    assert any("V_MTE2" in h["missing"] for h in report["hazards"]), report["hazards"]


@pytest.mark.parametrize(("kernel", "dtype", "how"), [("of_half", np.float16, (4, 16, 16, 4, 2)),
                                                      ("of_float", np.float32, (4, 16, 16, 4, 1)),
                                                      ("of_half", np.float16, (256, 16, 32, 256, 1))])  # fmt: skip
def test_what_page_and_header_tell_apart_is_refused(kernel: str, dtype: Any, how: tuple[int, ...]) -> None:
    with pytest.raises(DeviceError, match="say different things"):
        run(kernel, dtype, *how)
