"""Documented restrictions: kept, a kernel runs; broken, the launch ends with an error that names the rule."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ascendopt_tune.build import toolkit
from ascendopt_tune.device.acl import Acl, Binary
from ascendopt_tune.errors import DeviceError

SOURCE = Path(__file__).resolve().parent / "kernels" / "restrictions.cpp"

#: Number in the kernel, kind of the error, what it says.
RULES = [
    (0, "misuse", "not aligned to 32 B"),
    (3, "misuse", "overlaps the destination in part"),
    (4, "misuse", "a later repeat reads what an earlier one writes"),
    (5, "misuse", "overlapping addresses"),
    (6, "misuse", "at most 64 buffers"),
    (7, "misuse", "1 to 8 buffers"),
    (8, "misuse", "depth is at most 8"),
    (9, "misuse", "above 4095"),
    (10, "misuse", "more than 32 bytes on one side"),
    (11, "misuse", "outside 0..7"),
    (12, "out_of_bounds", "UB overflow"),
    (13, "misuse", "event ids"),
    (14, "deadlock", "all of them running at once"),
    (15, "misuse", "multiple of the element's 4 bytes"),
    (16, "misuse", "not allocated from a queue"),
    (17, "misuse", "TQueConfig says"),
    (18, "misuse", "the queue's depth"),
    (19, "misuse", "has to be 0"),
    (20, "deadlock", "with false it needs cube cores"),
    (21, "deadlock", "hold zeros for every core"),
    (22, "out_of_bounds", "past the end"),
    (23, "misuse", "3 of 2 cores"),
    (24, "misuse", "overlaps the destination in part"),
]


@cache
def device() -> Acl:
    return Acl(toolkit.virtual())


@cache
def kernel() -> Binary:
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


@pytest.mark.parametrize(("number", "kind", "says"), RULES)
@pytest.mark.parametrize("broken", [0, 1])
def test_restriction(number: int, kind: str, says: str, broken: int) -> None:
    acl = device()
    x = acl.malloc(65536)
    acl.memcpy_h2d(x, np.zeros(65536, np.uint8))
    cores = 100 if number == 14 and broken else 2
    args = [x, ctypes.c_uint32(number), ctypes.c_uint32(broken)]
    try:
        acl.launch(kernel().function("restriction"), cores, args)
        if not broken:
            acl.synchronize()
            assert acl.report()["errors"] == []
            return
        with pytest.raises(DeviceError, match=says):
            acl.synchronize()
    finally:
        acl.free(x)
    error = acl.report()["errors"][0]
    assert error["kind"] == kind
    assert says in error["message"]
