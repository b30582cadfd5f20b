"""Places and handles of buffers, as CANN's inner headers and some kernels hand them on."""

from __future__ import annotations

import ctypes

import numpy as np
from test_cube import default_options, device
from test_matmul import SOURCE, launch

__all__ = ["default_options"]


def test_a_buffer_by_its_handle_and_its_place() -> None:
    file = SOURCE.with_name("tensor_addresses.cpp")
    binary = device().load(device().compile(file.read_text(), file.name, ["--cce-auto-sync=off"]))
    x, y = np.arange(64, dtype=np.float32), np.zeros(128, np.float32)
    report = launch("tensor_addresses", [x, y], ctypes.c_uint32(64), binary=binary)
    assert not report["hazards"], report["hazards"][:1]
    np.testing.assert_array_equal(y, [*np.zeros(64), *x])
