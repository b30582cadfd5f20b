"""Scalar functions, tensor lists, assertions, and the refusal of what isn't covered."""

from __future__ import annotations

import math
import platform
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from api_kernel import ApiKernel, device
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendopt_tune.errors import DeviceError, KernelCompileError

Array = npt.NDArray[Any]
FEW = settings(max_examples=60, deadline=None)
CASTS, BITS, LIST, ASSERTIONS, DIVISIONS = range(5)
HEADERS = Path(__file__).resolve().parents[2] / "ascendopt_tune" / "vnpu" / "include" / "ascendc"


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("scalar")


def words(value: int) -> list[int]:
    return [int(w) for w in np.array([value], np.uint64).view(np.int32)]


@FEW
@given(
    value=st.floats(width=32, allow_nan=False, min_value=-70000, max_value=70000)
    | st.sampled_from([0.5, 1.5, -2.5, 3e9, -3e9])
)
def test_casts(kernel: ApiKernel, value: float) -> None:
    x = np.float32(value)
    got = kernel.run([CASTS, int(x.view(np.int32))], np.zeros(8, np.int32), np.zeros(16, np.int32))
    away = math.copysign(math.floor(abs(value) + 0.5), value)
    want = [float(np.rint(x)), math.floor(value), math.ceil(value), away, math.trunc(value)]
    assert list(got[:5]) == [min(max(int(w), -(2**31)), 2**31 - 1) for w in want]
    with np.errstate(over="ignore"):
        nearest = x.astype(np.float16)
    assert got[5] == nearest.view(np.uint16)
    odd = np.array([got[6]], np.uint16).view(np.float16)[0]
    if np.isfinite(nearest) and float(nearest) == value:
        assert odd == nearest
    else:
        assert got[6] & 1
        assert np.isinf(nearest) or abs(float(odd) - value) <= float(np.spacing(abs(nearest)))
    top = int(x.view(np.uint32)) >> 16
    assert got[7] in (top, top + 1)
    assert got.view(np.float32)[8] == np.array([got[7] << 16], np.uint32).view(np.float32)[0]
    assert got[9] == got[8]


@FEW
@given(value=st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**64 - 1, 2**63]))
def test_bits(kernel: ApiKernel, value: int) -> None:
    got = kernel.run([BITS, *words(value)], np.zeros(8, np.int32), np.zeros(8, np.int32))
    text = f"{value:064b}"
    low = text[::-1]
    same = len(text) - len(text.lstrip(text[0])) - 1
    assert list(got[:6]) == [
        text.count("1"),
        text.count("0"),
        64 - value.bit_length(),
        low.find("1"),
        low.find("0"),
        -1 if same == 63 else same,
    ]


def list_block(shapes: list[list[int]] | None, pointers: list[int]) -> Array:
    """The descriptor block of a tensor list, with or without shapes."""
    if shapes is None:
        body = [len(pointers) << 32, 0xFFFFFFFF]
    else:
        body = [word for i, shape in enumerate(shapes) for word in (i << 32 | len(shape), *shape)]
    return np.array([8 * (1 + len(body)), *body, *pointers], np.uint64)


@pytest.mark.parametrize("shapes", [None, [[3, 4], [5, 6]], [[7]], [[2, 3, 4], [8], [9, 10]]])
def test_tensor_list(kernel: ApiKernel, shapes: list[list[int]] | None) -> None:
    pointers = [1000 * (i + 1) for i in range(len(shapes) if shapes else 4)]
    block = list_block(shapes, pointers)
    got = kernel.run([LIST, int(shapes is not None)], block, np.zeros(16, np.int32))
    assert got[0] == len(pointers)
    for i, pointer in enumerate(pointers):
        shape = shapes[i] if shapes else []
        assert list(got[1 + 3 * i : 4 + 3 * i]) == [len(shape), shape[-1] if shape else 0, pointer]
    with pytest.raises(DeviceError, match="no tensor of this index"):
        kernel.run([LIST, 0, 1], block, np.zeros(16, np.int32))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ([2, 1, 1, 0], 'ASSERT: assertion failed: p\\[1\\] == 1 && "the first operand is one"'),
        ([1, 2, 1, 0], "ASSERT_MSG"),
        ([1, 1, 2, 0], "assert: assertion failed: p\\[3\\] == 1"),
        ([1, 1, 1, 1], "Trap"),
    ],
)
def test_assertions(kernel: ApiKernel, call: list[int], text: str) -> None:
    with pytest.raises(DeviceError, match=text):
        kernel.run([ASSERTIONS, *call], np.zeros(8, np.int32), np.zeros(8, np.int32))


@pytest.mark.parametrize(
    "call", ["Mmad(a, a)", "LoadData<half>(a)", "LoadData<half, true>(a)", "Scatter(a, a, a, 0, 1)"]
)
def test_what_is_not_covered_is_named(call: str) -> None:
    source = f"""
    using namespace AscendC;
    extern "C" __global__ __aicore__ void k() {{ LocalTensor<half> a; {call}; }}
    """
    name = re.match(r"\w+", call)
    assert name
    with pytest.raises(KernelCompileError) as error:
        device().compile(source, "k.cpp")
    assert re.search(rf"AscendC::{name[0]}\b", error.value.log)
    assert "virtual NPU" in str(error.value)


def test_nothing_is_covered_and_refused() -> None:
    refused = set(re.findall(r"^VNPU_(?:NOT_\w+|CUBE)\((\w+)", (HEADERS / "not_covered.h").read_text(), re.MULTILINE))
    assert len(refused) > 25
    assert {"AddDeqRelu", "BilinearInterpolation", "DeInterleave"} <= refused
    for header in HEADERS.glob("*.h"):
        if header.name == "not_covered.h":
            continue
        text = re.sub(r"//.*", "", header.read_text())
        both = {name for name in refused if re.search(rf"\b{name}\(", text)}
        assert not both, f"{header.name} covers {sorted(both)}: remove them from not_covered.h"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors give 0 and tell nobody")
@pytest.mark.parametrize("stack", [0, 0xA5])
def test_a_division_by_zero_goes_on_and_is_told(kernel: ApiKernel, stack: int) -> None:
    """What it gives is what the stack holds where nobody has written: launches with two fills tell who uses it."""
    y = np.zeros(8, np.int32)
    right = kernel.run([DIVISIONS, 3, 1, 100, 7, 50], np.zeros(8, np.int32), y)
    assert list(right[:8]) == [33, 1, 33, np.int64((100 << 33) // 3).astype(np.int32), 1, 33, 2, 2]
    assert "integer divisions by zero" not in device().report()["relies_on"]
    with device().with_options(stack=stack):
        got = kernel.run([DIVISIONS, 0, 1, 100, 0], np.zeros(8, np.int32), y)
    assert set(got[:5]) == {np.array([stack * 0x01010101], np.uint32).view(np.int32)[0]}
    assert (got[6], got[7]) == (100, got[0])
    assert "integer divisions by zero" in device().report()["relies_on"]
