"""What kernels and tiling programs of people outside take for granted (``kernels/taken_for_granted.cpp``)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from test_cube import clean, default_options, device, launch
from test_matmul_order import SIDE, T, operands

from ascendopt_tune.device.acl import Binary

__all__ = ["default_options"]
SOURCE = Path(__file__).resolve().parent / "kernels" / "taken_for_granted.cpp"


@cache
def kernels() -> Binary:
    """Launches in a header that the kernel includes are host code: nothing of them is compiled."""
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


def test_the_type_of_an_atomic_operation_is_set_by_itself() -> None:
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    clean(launch("add_of_another_type", [x], y, binary=kernels()))
    np.testing.assert_array_equal(y, x + 1)


def test_objects_may_be_registered_without_a_tiling() -> None:
    a, b = operands()
    out = np.zeros((2, SIDE, SIDE), np.float32)
    clean(launch("tilings_later", [a, b], out, T, binary=kernels()))
    wide = [x.astype(np.float64) for x in (a, b)]
    np.testing.assert_allclose(out, [wide[0] @ wide[1], wide[1] @ wide[0]], atol=1e-4)
