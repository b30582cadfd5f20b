"""Calls for L1 that vector cores of a mixed kernel make, too, do nothing there (asc-devkit, dav_c220); pipes and
addresses may be said by the compiler's numbers."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from test_cube import default_options, device, launch

from ascendopt_tune.device.acl import Binary
from ascendopt_tune.errors import DeviceError

__all__ = ["default_options"]
SOURCE = Path(__file__).resolve().parent / "kernels" / "called_beside.cpp"


@cache
def kernels() -> Binary:
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


def test_the_cube_core_alone_fills_and_copies() -> None:
    out = np.zeros(256, np.int32)
    report = launch("filled", [], out, ctypes.c_uint32(5), binary=kernels())
    assert (out == 5).all()
    assert not report["hazards"], report["hazards"][:1]


def test_numbers_of_pipes() -> None:
    report = launch("pipes_by_number", [], np.zeros(8, np.int32), binary=kernels())
    assert not report["hazards"]
    with pytest.raises(DeviceError, match="no pipe of this number"):
        launch("no_such_pipe", [], np.zeros(8, np.int32), binary=kernels())


def test_numbers_of_addresses() -> None:
    out = np.zeros(16, np.float32)
    report = launch("addresses_by_number", [], out, binary=kernels())
    assert (out == 5).all()
    assert not report["hazards"], report["hazards"][:1]
    assert not report["unwritten"], report["unwritten"][:1]
