"""Modelled time of elementwise functions: beside published fits, and beside the instructions they are made of.

The fits are facts of hicann/ge@ffdcbc9f (compiler/graph/optimize/autofuse/att/gen_model_info/api_perf_register/v1/
perf_param_v1.cpp, the cost model of CANN's operator fusion for architecture 2201): cycles are linear in elements, here
in 256 bytes of source. How they were measured isn't said, nor with how much temporary memory; nothing here was fitted
to them. Left out are Sign, whose fit has a head below the sum of its instructions' (on 1024 to 4096 elements modelled
15 to 50 % too slow), and half Power, whose head of 2517 cycles nothing explains (8 to 45 % too fast).
"""

from __future__ import annotations

import ctypes
from functools import cache

import pytest
from api_kernel import device

from ascendopt_tune.device.acl import Binary
from ascendopt_tune.device.options import LaunchOptions
from ascendopt_tune.nouns.chip import load_chip

CHIP = "ascend910b3"
#: Function and type: cycles of 256 bytes of source, and besides.
FITS = {
    ("Sigmoid", "half"): (12.94, 116.0),
    ("Sigmoid", "float"): (8.04, 116.0),
    ("Tanh", "half"): (25.29, 181.7),
    ("Tanh", "float"): (10.05, 153.9),
    ("Erf", "half"): (89.55, 478.4),
    ("Erf", "float"): (38.64, 458.3),
    ("Power", "float"): (39.67, 730.1),
}
BYTES = {"half": 2, "float": 4}
# The temporary memory is 48 KiB: parts for 4096 floats three times over, which all begin in one bank group.
CALLS = {
    **{(f, t): f"{f}(D<{t}>(), X<{t}>(), W(0xc000), n);" for f, t in FITS if f != "Power"},
    ("Power", "float"): "Power(D<float>(), X<float>(), Y<float>(), W(0x14000), n);",
    ("Erf", "written out"): "ErfByHand(D<float>(), X<float>(), Part(0), Part(1), Part(2), n);",
    # Parts of 4000 floats: the first and the third lie 256 bytes apart in their bank groups.
    ("Erf", "apart"): "Erf(D<float>(), X<float>(), W(48000), n);",
    ("Tanh", "written out"): "TanhByHand(D<half>(), X<half>(), Part(0), Wide(), n);",
    ("Tanh", "parts"): "Tanh(D<half>(), X<half>(), W(0xc000), n);",
    ("Gelu", "div"): "Gelu<float>(D<float>(), X<float>(), W(0xc000), n);",
    ("Gelu", "reciprocal"): "Gelu<float, false, true>(D<float>(), X<float>(), W(0xc000), n);",
    ("Gelu", "half"): "Gelu<half>(D<half>(), X<half>(), W(0xc000), n);",
    ("Gelu", "half by float"): "Gelu<half, true>(D<half>(), X<half>(), W(0xc000), n);",
    ("Tanh", "four passes"): "Tanh(D<float>(), X<float>(), W(0x1000), n);",
    ("Exp", "0"): "Exp<float, 0>(D<float>(), X<float>(), W(0xc000), n);",
    ("Exp", "4"): "Exp<float, 4>(D<float>(), X<float>(), W(0xc000), n);",
    ("Exp", "8"): "Exp<float, 8>(D<float>(), X<float>(), W(0xc000), n);",
}
KERNEL = """
#include "kernel_operator.h"
using namespace AscendC;
template <typename T> __aicore__ inline LocalTensor<T> At(uint32_t byte, uint32_t bytes) {
  return LocalTensor<T>(TPosition::VECCALC, byte, bytes / sizeof(T));
}
template <typename T> __aicore__ inline LocalTensor<T> X() { return At<T>(0, 0x4000); }
template <typename T> __aicore__ inline LocalTensor<T> Y() { return At<T>(0x8100, 0x4000); }
template <typename T> __aicore__ inline LocalTensor<T> D() { return At<T>(0x10080, 0x4000); }
__aicore__ inline LocalTensor<uint8_t> W(uint32_t bytes) { return At<uint8_t>(0x18000, bytes); }
__aicore__ inline LocalTensor<float> Part(int i) { return At<float>(0x18000 + 0x4000 * i, 0x4000); }
__aicore__ inline LocalTensor<float> Wide() { return At<float>(0x18000 + 0x6000, 0x4000); }
using F = LocalTensor<float>;
// A quotient of two polynomials in the square, each by Horner's rule.
__aicore__ inline void ErfByHand(F out, F in, F square, F sum, F term, int32_t n) {
  Mins(square, in, 4.0f, n); PipeBarrier<PIPE_V>();
  Maxs(out, square, -4.0f, n); PipeBarrier<PIPE_V>();
  Mul(square, out, out, n); PipeBarrier<PIPE_V>();
  Muls(sum, square, 0.5f, n); PipeBarrier<PIPE_V>();
  for (int i = 0; i < 4; ++i) {
    Adds(term, sum, 1.0f, n); PipeBarrier<PIPE_V>();
    Mul(sum, square, term, n); PipeBarrier<PIPE_V>();
  }
  Adds(term, sum, 1.0f, n); PipeBarrier<PIPE_V>();
  Mul(sum, out, term, n); PipeBarrier<PIPE_V>();
  for (int i = 0; i < 4; ++i) {
    Adds(term, i ? out : square, 1.0f, n); PipeBarrier<PIPE_V>();
    Mul(out, square, term, n); PipeBarrier<PIPE_V>();
  }
  Adds(term, out, 1.0f, n); PipeBarrier<PIPE_V>();
  Div(out, sum, term, n); PipeBarrier<PIPE_V>();
}
__aicore__ inline void TanhByHand(LocalTensor<half> out, LocalTensor<half> in, F y, F x, int32_t n) {
  Cast(y, in, RoundMode::CAST_NONE, n); PipeBarrier<PIPE_V>();
  Mins(x, y, 8.0f, n); PipeBarrier<PIPE_V>();
  Maxs(x, x, -8.0f, n); PipeBarrier<PIPE_V>();
  Muls(x, x, 2.0f, n); PipeBarrier<PIPE_V>();
  Exp(x, x, n); PipeBarrier<PIPE_V>();
  Adds(y, x, -1.0f, n); PipeBarrier<PIPE_V>();
  Adds(x, x, 1.0f, n); PipeBarrier<PIPE_V>();
  Div(y, y, x, n); PipeBarrier<PIPE_V>();
  Cast(out, y, RoundMode::CAST_NONE, n); PipeBarrier<PIPE_V>();
}
extern "C" __global__ __aicore__ void one(int32_t which, int32_t n) {
  for (uint32_t i = 0; i < 22; ++i) Duplicate(At<int32_t>(0x2000 * i, 0x2000), 0, 2048);
  PipeBarrier<PIPE_ALL>();
  switch (which) {
CASES
  }
  PipeBarrier<PIPE_ALL>();
}
"""


@cache
def cycles(function: str, form: str, n: int) -> float:
    """Modelled cycles that the vector unit is busy with a call on ``n`` elements."""
    acl, chip = device(), load_chip(CHIP)
    call, clock = list(CALLS).index((function, form)), float(chip.values["core.clock_mhz"])

    def run(which: int) -> float:
        acl.launch(
            _binary().function("one"), 1, [ctypes.c_int32(which), ctypes.c_int32(n)], options=LaunchOptions(CHIP)
        )
        acl.synchronize()
        report = acl.report()
        assert not report["errors"], report["errors"]
        assert not report["hazards"], report["hazards"]
        return float(report["profile"]["aiv_vec_time_us"]) * clock

    return run(call) - run(len(CALLS))


@cache
def _binary() -> Binary:
    cases = "\n".join(f"    case {i}: {{ {call} break; }}" for i, call in enumerate(CALLS.values()))
    return device().load(device().compile(KERNEL.replace("CASES", cases), "one.cpp", ["--cce-auto-sync=off"]))


@pytest.mark.parametrize("function", FITS, ids=" ".join)
def test_a_function_takes_about_what_the_fit_says(function: tuple[str, str]) -> None:
    pace, head = FITS[function]
    for n in (1024, 2048, 4096):
        expected = pace * n * BYTES[function[1]] / 256 + head
        assert cycles(*function, n) == pytest.approx(expected, rel=0.25), n


@pytest.mark.parametrize("n", [256, 1024, 2048])
@pytest.mark.parametrize(("function", "form"), [("Erf", "float"), ("Tanh", "parts")])
def test_a_function_takes_what_its_instructions_take(function: str, form: str, n: int) -> None:
    assert cycles(function, form, n) == pytest.approx(cycles(function, "written out", n), rel=0.03)


def test_where_the_temporary_memory_is_cut_decides_over_bank_conflicts() -> None:
    assert cycles("Erf", "float", 2048) > cycles("Erf", "apart", 2048) * 1.1


def test_a_pass_more_costs_its_heads() -> None:
    heads = cycles("Tanh", "four passes", 4096) - cycles("Tanh", "float", 4096)
    assert 3 * 120 < heads < 3 * 200


def test_a_form_has_instructions_of_its_own() -> None:
    vector = {key: cycles(*key, 2048) for key in CALLS if key[0] in ("Gelu", "Exp")}
    assert vector["Gelu", "reciprocal"] != vector["Gelu", "div"]
    assert vector["Gelu", "half by float"] > vector["Gelu", "half"]
    steps = vector["Exp", "8"] - vector["Exp", "4"]
    assert 0 < steps < vector["Exp", "4"]
    assert vector["Exp", "0"] < vector["Exp", "4"] / 4
