"""AscendAntiQuant against numpy (asc-devkit, its page and ascend_antiquant_c220_impl.h)."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from test_cube import clean, default_options, device, launch

from ascendopt_tune.device.acl import Binary
from ascendopt_tune.errors import DeviceError

__all__ = ["default_options"]
SOURCE = Path(__file__).resolve().parent / "kernels" / "antiquant.cpp"
Array = np.ndarray[Any, Any]


@cache
def kernels() -> Binary:
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


class AntiQuantCase(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint32) for n in ("k", "n", "groups", "offset", "one", "own_work")]


def numbers_of(name: str, case: AntiQuantCase) -> tuple[Array, Array, Array, Array]:
    """(whole numbers [k, n], scales and offsets [groups, n], what the kernel gets of them)."""
    rng, low = np.random.default_rng(case.k + case.n), 8 if name.startswith("int4") else 128
    dtype = ml_dtypes.bfloat16 if "bfloat" in name else np.float16
    x = rng.integers(-low, low, (case.k, case.n)).astype(np.int8)
    scales = rng.uniform(0.1, 2, (case.groups, case.n)).astype(dtype)
    offsets = rng.uniform(-3, 3, (case.groups, case.n)).astype(dtype)
    if case.one:
        scales[:], offsets[:] = scales[0, 0], offsets[0, 0]
    turned = name.endswith("turned")
    given = np.concatenate([s.T.reshape(-1) if turned else s.reshape(-1) for s in (scales, offsets)])
    return x, scales, offsets, given


@pytest.mark.parametrize("name", ["int8_half", "int8_half_turned", "int8_bfloat", "int4_half", "int4_bfloat_turned"])
@pytest.mark.parametrize(
    ("groups", "offset", "one", "own_work"), [(1, 1, 0, 1), (2, 1, 0, 0), (4, 0, 0, 1), (1, 1, 1, 1), (1, 0, 1, 1)]
)
def test_antiquant(name: str, groups: int, offset: int, one: int, own_work: int) -> None:
    case = AntiQuantCase(64, 128, groups, offset, one, own_work)
    x, scales, offsets, given = numbers_of(name, case)
    laid = np.ascontiguousarray(x.T if name.endswith("turned") else x).reshape(-1)
    if name.startswith("int4"):
        laid = ((laid[0::2] & 15) | (laid[1::2] << 4)).astype(np.int8)
    out = np.zeros(x.size, given.dtype)
    clean(launch(name, [laid, given.view(np.int16)], out.view(np.int16), case, binary=kernels()))
    group = np.repeat(np.arange(groups), case.k // groups)
    shift = offsets[group] if offset else np.zeros_like(scales[group])
    if given.dtype == np.float16:  # rounded after each step
        exact = (x.astype(np.float16) + shift) * scales[group]
    else:
        shifted = x.astype(np.float32) + shift.astype(np.float32)
        exact = (shifted * scales[group].astype(np.float32)).astype(given.dtype)
    got = out.reshape((case.n, case.k)).T if name.endswith("turned") else out.reshape(x.shape)
    np.testing.assert_array_equal(got.astype(np.float32), exact.astype(np.float32))


def test_elements_along_k_are_shared_evenly() -> None:
    case = AntiQuantCase(64, 128, 3, 1, 0, 1)
    x, _, _, given = numbers_of("int8_half", case)
    with pytest.raises(DeviceError, match="k is no multiple of the number of scales"):
        launch("int8_half", [x, given.view(np.int16)], np.zeros(x.size, np.int16), case, binary=kernels())
