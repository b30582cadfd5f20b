"""Products of int4 on cube cores against numpy: two elements a byte on every way to the matrix unit."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cube import KERNEL, TENSORS, clean, default_options, device, launch

from ascendopt_tune.device.acl import Binary
from ascendopt_tune.errors import DeviceError, KernelCompileError
from ascendopt_tune.nouns.chip import DEFAULT_CHIP, load_chip

__all__ = ["default_options"]
SOURCE = Path(__file__).resolve().parent / "kernels" / "cube_int4.cpp"
Array = np.ndarray[Any, Any]
CLOCK = float(load_chip(DEFAULT_CHIP).values["core.clock_mhz"])
HEAD = 8  # cycles of a product beside its tiles, architecture/2201.toml
FIELDS = ("m", "n", "k", "a_windows", "b_columns", "start", "k_short")


class Int4Case(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint32) for n in FIELDS]


@cache
def kernels() -> Binary:
    return device().load(device().compile(SOURCE.read_text(), SOURCE.name, ["--cce-auto-sync=off"]))


def packed(x: Array) -> Array:
    """Rows of an even number of elements, the first of each two in the low half of their byte."""
    low, high = x[:, 0::2].astype(np.int16), x[:, 1::2].astype(np.int16)
    return np.ascontiguousarray((low & 15 | (high & 15) << 4).astype(np.uint8))


def int4(m: int, n: int, k: int, *, a_windows: int = 0, b_columns: int = 1, start: int = 0,
         k_short: int = 0) -> tuple[Array, Array, dict[str, Any]]:  # fmt: skip
    """(what the kernel makes of random operands, what it has to be, the report)."""
    rng = np.random.default_rng(m * 10007 + n * 101 + k)
    a, b = rng.integers(-8, 8, (m, k)), rng.integers(-8, 8, (k, n))
    bias, out = rng.integers(-1000, 1000, n).astype(np.int32), np.zeros((m, n), np.int32)
    case = Int4Case(m, n, k, a_windows, b_columns, start, k_short)
    report = launch("int4", [packed(a), packed(b.T if b_columns else b), bias], out, case, binary=kernels())
    return out, a @ b * (2 if start == 1 else 1) + (bias if start == 2 else 0), report


@pytest.mark.parametrize("start", [0, 1, 2], ids=["zero", "added", "bias"])
@pytest.mark.parametrize(("m", "n", "k"), [(16, 16, 64), (32, 48, 128), (17, 33, 70), (1, 24, 130), (100, 7, 2)])
def test_products(m: int, n: int, k: int, start: int) -> None:
    got, expected, report = int4(m, n, k, start=start)
    clean(report)
    np.testing.assert_array_equal(got, expected)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 120), st.integers(1, 60), st.integers(1, 90), st.integers(0, 1), st.integers(0, 1))
def test_products_of_any_shape(m: int, half_n: int, half_k: int, a_windows: int, b_columns: int) -> None:
    """Both loads of A; B as columns, and as rows, of which 64 x 64 are turned at once."""
    got, expected, report = int4(m, 2 * half_n, 2 * half_k, a_windows=a_windows, b_columns=b_columns)
    clean(report)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("gap", [0, 2])
def test_a_square_that_is_turned_may_be_spread_out(gap: int) -> None:
    b = np.random.default_rng(gap).integers(-8, 8, (64, 64))
    out = np.zeros((64, 64), np.int32)
    clean(launch("spread", [packed(np.eye(64, dtype=np.int8)), packed(b)], out, ctypes.c_uint32(gap), binary=kernels()))
    np.testing.assert_array_equal(out, b)


@pytest.mark.parametrize("b_columns", [0, 1])
def test_what_nobody_has_written_is_followed_through_halves_of_bytes(b_columns: int) -> None:
    """The last two rows of B are in nobody's copy: every product needs them. As columns nothing is left out."""
    *_, report = int4(32, 64, 64, b_columns=b_columns, k_short=2)
    assert bool(report["unwritten"]) != bool(b_columns)
    assert not report["hazards"]


def test_a_step_takes_64_elements_of_k() -> None:
    """asc-devkit, theoretical performance of Mmad, table 1: k0 is 64, so 64 x 64 x 256 take 64 cycles."""
    cycles = []
    for count in (4, 8):
        report = launch("paced", [], np.zeros(256, np.int32), ctypes.c_uint32(count), binary=kernels())
        cycles.append(float(report["profile"]["aic_mac_time_us"]) * CLOCK)
    assert (cycles[1] - cycles[0]) / 4 == pytest.approx(64 + HEAD, rel=0.02)


@pytest.mark.parametrize(
    ("which", "message"),
    [
        (0, "k has to be even with int4b_t"),
        (1, "int4b_t can be turned on the way to L0B alone"),
        (2, "1-byte elements can't be loaded to L0B this way"),
        (3, "channelSize has to be a multiple of 64"),
        (4, "kStartPt has to be a multiple of 64"),
        (5, "an offset has to be even"),
        (6, "LoadData"),
    ],
)
def test_what_the_device_cant_is_refused(which: int, message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        launch("refused", [], np.zeros(256, np.int32), ctypes.c_uint32(which), binary=kernels())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            TENSORS % "int4b_t" + "LocalTensor<int32_t> d(TPosition::CO1, 0, 64); Mmad(d, a, b, d, MmadParams());",
            "AscendC::Mmad of these types is not covered",
        ),
        (
            TENSORS % "int4b_t" + "LoadData(a, GlobalTensor<int4b_t>(), LoadData2DParams());",
            "AscendC::LoadData from global memory: this type is not covered",
        ),
        (TENSORS % "int4b_t" + "a.GetValue(0);", "single elements of int4b_t are not covered"),
    ],
)
def test_what_is_missing_is_refused_by_name_when_a_kernel_is_built(body: str, message: str) -> None:
    with pytest.raises(KernelCompileError) as error:
        device().compile(KERNEL % body, "k.cpp")
    assert message in error.value.log
