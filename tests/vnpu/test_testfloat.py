"""Casts and arithmetic against Berkeley TestFloat's vectors, in every rounding mode that a call of AscendC has.

``ASCENDOPT_TESTFLOAT`` names the program ``testfloat_gen`` (Berkeley TestFloat, release 3); without it these tests are
skipped, counted. A line holds operands, the result and the exceptions, in hexadecimal. Cases whose operation is invalid
are left out: IEEE 754 doesn't say what a conversion to integers gives then (AscendC saturates, which other tests hold).
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from api_kernel import ApiKernel
from test_api_cast import CAST, CEIL, FLOOR, NONE, ODD, PAIRS, RINT, ROUND, TRUNC
from vector_calls import COUNT, Call, same, two_sources

from ascendopt_tune.settings import settings

Array = npt.NDArray[Any]

#: AscendC's mode -> TestFloat's option.
_MODES = {NONE: "-rnear_even", RINT: "-rnear_even", FLOOR: "-rmin", CEIL: "-rmax", ROUND: "-rnear_maxMag",
          TRUNC: "-rminMag", ODD: "-rodd"}  # fmt: skip
_TYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "i32": "int32", "i64": "int64"}
_NUMBERS = {(source, destination): number for number, source, destination, _ in PAIRS}
_ALLOWED = {(source, destination): modes for _, source, destination, modes in PAIRS}
_INVALID = 0x10
_AT_ONCE = 4096  # elements of one call
#: TestFloat's name -> number of the call in kernels/elementwise.cpp.
_ARITHMETIC = {"add": 20, "sub": 21, "mul": 22, "div": 23, "sqrt": 5}


def _casts() -> Iterator[Any]:
    for source, from_ in _TYPES.items():
        for destination, to in _TYPES.items():
            for mode in _ALLOWED.get((from_, to), ()):
                known = "f" in f"{source[0]}{destination[0]}" or "i" not in (source[0], destination[0])
                if (
                    source != destination and known
                ):  # TestFloat has no casts between integers, nor bfloat16 and integers
                    yield pytest.param(source, destination, mode, id=f"{source}_to_{destination}{_MODES[mode]}-{mode}")


@cache
def _vectors(function: str, *options: str) -> tuple[tuple[int, ...], ...]:
    program = settings().testfloat
    if program is None:
        pytest.skip("ASCENDOPT_TESTFLOAT is not set")
    command = [str(program), *options, function]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if "Invalid" in done.stderr or not done.stdout:
        pytest.skip(f"this TestFloat doesn't have {function}")
    rows = (tuple(int(word, 16) for word in line.split()) for line in done.stdout.splitlines())
    return tuple(row for row in rows if not row[-1] & _INVALID)


def _array(bits: list[int], dtype: str) -> Array:
    size = 2 if dtype in ("float16", "bfloat16") else 8 if dtype == "int64" else 4
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    return np.array(bits, f"u{size}").view(kind)


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("elementwise")


@pytest.mark.parametrize(("source", "destination", "mode"), tuple(_casts()))
def test_casts(kernel: ApiKernel, source: str, destination: str, mode: int) -> None:
    exact = ["-exact"] if destination.startswith("i") else []
    rows = _vectors(f"{source}_to_{destination}", _MODES[mode], *exact)
    pair = _TYPES[source], _TYPES[destination]
    for begin in range(0, len(rows), _AT_ONCE):
        part = rows[begin : begin + _AT_ONCE]
        x, expected = (_array([row[i] for row in part], dtype) for i, dtype in enumerate(pair))
        call = Call(COUNT, len(part), 0, (1, 1, 1), (8, 8, 8), 0)
        params = call.params(CAST, "float32", mode=mode, second=_NUMBERS[pair])
        same(kernel.run(params, x, np.zeros_like(expected)), expected)
    assert len(rows) > 100


@pytest.mark.parametrize("mode", _ALLOWED["float32", "float32"])
def test_rounding_to_a_whole_number(kernel: ApiKernel, mode: int) -> None:
    rows = _vectors("f32_roundToInt", _MODES[mode], "-exact")
    for begin in range(0, len(rows), _AT_ONCE):
        part = rows[begin : begin + _AT_ONCE]
        x, expected = (_array([row[i] for row in part], "float32") for i in range(2))
        call = Call(COUNT, len(part), 0, (1, 1, 1), (8, 8, 8), 0)
        params = call.params(CAST, "float32", mode=mode, second=_NUMBERS["float32", "float32"])
        same(kernel.run(params, x, np.zeros_like(expected)), expected)
    assert len(rows) > 100


@pytest.mark.parametrize("operation", _ARITHMETIC)
@pytest.mark.parametrize("name", ["f16", "f32"])
def test_arithmetic(kernel: ApiKernel, name: str, operation: str) -> None:
    rows = _vectors(f"{name}_{operation}", "-rnear_even")
    dtype = _TYPES[name]
    for begin in range(0, len(rows), _AT_ONCE):
        part = rows[begin : begin + _AT_ONCE]
        *operands, expected = (_array([row[i] for row in part], dtype) for i in range(len(part[0]) - 1))
        raw = two_sources(operands[0], operands[1] if len(operands) > 1 else operands[0][:0])
        call = Call(COUNT, len(part), 0, (1, 1, 1), (8, 8, 8), 0)
        params = call.params(_ARITHMETIC[operation], dtype)
        same(kernel.run(params, raw, np.zeros_like(expected)), expected)
    assert len(rows) > 100
