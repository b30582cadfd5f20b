"""Forms beside the public ones that kernels of CANN's open repositories use, against numpy."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from test_cube import clean, default_options, device, launch

from ascendopt_tune.device.acl import Binary

__all__ = ["default_options"]
SOURCE = Path(__file__).resolve().parent / "kernels" / "bulk_forms.cpp"


@cache
def kernels() -> Binary:
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


@pytest.mark.parametrize("bits", [0b10110, 0xFFFFFFFF, 0x80000001])
def test_what_gather_mask_kept_goes_out_by_addresses(bits: int) -> None:
    x = np.arange(100, 164, dtype=np.uint32)
    pattern = np.array([bits, bits] + [0] * 6, np.uint32)
    out = np.full(2 * (8 + 2) + 2, 7, np.uint32)
    clean(launch("kept", [x, pattern], out, *map(ctypes.c_uint32, (2, 8, 0)), binary=kernels()))
    kept = x[[bool(bits >> (i % 32) & 1) for i in range(64)]]
    rows = np.concatenate([kept, np.zeros(64, np.uint32)])[:16].reshape(2, 8)
    expected = np.full((2, 10), 7, np.uint32)
    expected[:, :8] = rows
    np.testing.assert_array_equal(out[:20].reshape(2, 10), expected)
    assert out[20:].tolist() == [len(kept), len(kept)]


def test_a_dump_with_a_shape(capfd: pytest.CaptureFixture[str]) -> None:
    out = np.zeros(22, np.uint32)
    pattern = np.array([0b1111] + [0] * 7, np.uint32)
    arguments = map(ctypes.c_uint32, (2, 8, 1))
    clean(launch("kept", [np.arange(64, dtype=np.uint32), pattern], out, *arguments, binary=kernels()))
    printed = capfd.readouterr().out
    assert "desc=5 size=4" in printed
    words = printed.replace(",", " ").replace("\n", " ").split()
    assert " ".join(words).count("0 1 2 3") == 1
    assert "DumpAccChkPoint: block=0 desc=6 size=2" in printed
    assert "DumpAccChkPoint: block=0 desc=7 size=2" in printed
