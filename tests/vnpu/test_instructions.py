"""Vector instructions one at a time against published fits: head and pace by instruction, of the chip's table.

The fits are facts of hicann/pto-isa@dd3cb0fb (include/pto/costmodel/a2a3, "measured = slope * repeat + fixed" on 910B3,
repeats 1 to 128). Instructions with two sources were measured with both in one bank group, so a repeat is read twice.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from statistics import mean

import pytest
from api_kernel import device

from ascendopt_tune.device.options import LaunchOptions
from ascendopt_tune.nouns.chip import load_chip

CHIP = "ascend910b3"
REPEATS = (1, 8, 64, 128)


@dataclass(frozen=True)
class Fit:
    """``call`` on float or int16 tensors with ``r`` repeats took ``slope * r + fixed`` cycles."""

    name: str
    call: str
    slope: float
    fixed: float


TWO = "(D<T>(), X<T>(), Y<T>(), uint64_t(L), r, {1, 1, 1, 8, 8, 8});"
ONE = "(D<T>(), X<T>(), uint64_t(L), r, {1, 1, 8, 8});"
SCALAR = "(D<T>(), X<T>(), T(2), uint64_t(L), r, {1, 1, 8, 8});"
FITS = tuple(
    Fit(name, name + form.replace("<T>", f"<{t}>").replace("T(2)", f"{t}(2)").replace("L", lanes), slope, fixed)
    for name, form, t, lanes, slope, fixed in (
        ("Add", TWO, "float", "64", 2.11, 24),
        ("Sub", TWO, "float", "64", 2.11, 24),
        ("Mul", TWO, "float", "64", 2.3, 25),
        ("Max", TWO, "float", "64", 2.01, 23),
        ("Div", TWO, "float", "64", 4.03, 31),
        ("And", TWO, "int16_t", "128", 2.03, 20),
        ("Or", TWO, "int16_t", "128", 2.03, 20),
        ("Exp", ONE, "float", "64", 2.00, 31),
        ("Ln", ONE, "float", "64", 2.00, 33),
        ("Sqrt", ONE, "float", "64", 2.00, 31),
        ("Rsqrt", ONE, "float", "64", 1.07, 24),
        ("Relu", ONE, "float", "64", 1.00, 23),
        ("Muls", SCALAR, "float", "64", 1.00, 26),
        ("Adds", SCALAR, "float", "64", 1.00, 25),
        ("Maxs", SCALAR, "float", "64", 1.00, 23),
        ("LeakyRelu", SCALAR, "float", "64", 1.03, 26),
        (
            "Cast",
            "(D<half>(), X<float>(), RoundMode::CAST_RINT, uint64_t(64), r, {1, 1, 4, 8});",
            "float",
            "",
            0.90,
            27,
        ),
    )
)

KERNEL = """
#include "kernel_operator.h"
using namespace AscendC;
template <typename T> __aicore__ inline LocalTensor<T> At(uint32_t byte) {
  return LocalTensor<T>(TPosition::VECCALC, byte, 32768 / sizeof(T));
}
template <typename T> __aicore__ inline LocalTensor<T> X() { return At<T>(0); }
template <typename T> __aicore__ inline LocalTensor<T> Y() { return At<T>(0x8000); }
template <typename T> __aicore__ inline LocalTensor<T> D() { return At<T>(0x14100); }
extern "C" __global__ __aicore__ void one(int32_t which, int32_t r) {
  Duplicate(X<int32_t>(), 0, 8192);
  Duplicate(Y<int32_t>(), 0, 8192);
  Duplicate(D<int32_t>(), 0, 8192);
  PipeBarrier<PIPE_ALL>();
  switch (which) {
CASES
  }
  PipeBarrier<PIPE_ALL>();
}
"""


@cache
def _cycles() -> dict[str, list[float]]:
    """Modelled cycles of each instruction alone, until its results are there, at REPEATS."""
    acl, chip = device(), load_chip(CHIP)
    cases = "\n".join(f"    case {i}: {{ {fit.call} break; }}" for i, fit in enumerate(FITS))
    binary = acl.compile(KERNEL.replace("CASES", cases), "one.cpp", ["--cce-auto-sync=off"])
    clock, result = (float(chip.values[key]) for key in ("core.clock_mhz", "vector.result_cycles"))
    with acl.load(binary) as loaded:
        function = loaded.function("one")

        def busy(which: int, r: int) -> float:
            acl.launch(function, 1, [ctypes.c_int32(which), ctypes.c_int32(r)], options=LaunchOptions(CHIP))
            acl.synchronize()
            report = acl.report()
            assert not report["errors"], report["errors"]
            return float(report["profile"]["aiv_vec_time_us"]) * clock

        prepared = busy(len(FITS), 1)
        return {f.name: [busy(i, r) - prepared + result for r in REPEATS] for i, f in enumerate(FITS)}


def _error(fit: Fit, r: int, cycles: float) -> float:
    return cycles / (fit.slope * r + fit.fixed) - 1


@pytest.mark.parametrize("fit", FITS, ids=[f.name for f in FITS])
def test_an_instruction_alone_takes_what_was_measured(fit: Fit) -> None:
    for r, cycles in zip(REPEATS, _cycles()[fit.name], strict=True):
        assert abs(_error(fit, r, cycles)) <= 0.10, (r, cycles)


def test_the_mean_error_is_small() -> None:
    errors = [abs(_error(f, r, c)) for f in FITS for r, c in zip(REPEATS, _cycles()[f.name], strict=True)]
    assert mean(errors) <= 0.03
