"""Vector instructions by number of elements against the lines that CANN's own operator fusion reckons with.

The lines are facts of hicann/ge@ffdcbc9f (compiler/graph/optimize/autofuse/att, v1/perf_param_v1.cpp), cycles as k a
element + b for what architecture 2201 has; how they were taken isn't said. Where an instruction has two sources, they
are between what the model has without a conflict of banks and with one: where its sources lay isn't said either.
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
COUNTS = (128, 1024, 2048, 4096)
LANES = {"half": 128, "int16_t": 128, "float": 64, "int32_t": 64, "int64_t": 64, "uint8_t": 128}


@dataclass(frozen=True)
class Line:
    """``call`` on tensors of ``t`` with ``n`` elements takes ``k * n + b`` cycles; ``two``: it has two sources."""

    name: str
    call: str
    k: float
    b: float
    two: bool = False


def lines() -> list[Line]:
    found: list[Line] = []

    def add(name: str, call: str, half: tuple[float, float], single: tuple[float, float], two: bool = False) -> None:
        for t, (k, b) in (("half", half), ("float", single)):
            typed = call.replace("$T", t).replace("$L", str(LANES[t])).replace("$B", "16" if t == "half" else "8")
            found.append(Line(f"{name} {t}", typed, k, b, two))

    one, scalar, both = (f"(D<$T>(), X<$T>(){rest}, n);" for rest in ("", ", $T(2)", ", Y<$T>()"))
    add("Abs", "Abs" + one, (0.0077, 20.0153), (0.0147, 20.0592))
    add("Exp", "Exp" + one, (0.0311, 28.0144), (0.0307, 28.0376))
    add("Relu", "Relu" + one, (0.0077, 20.0173), (0.0154, 20.0189))
    add("Rsqrt", "Rsqrt" + one, (0.0071, 21.0970), (0.0143, 21.0979))
    add("Sqrt", "Sqrt" + one, (0.0312, 29.0056), (0.0313, 28.9961))
    add("Reciprocal", "Reciprocal" + one, (0.0078, 21.0076), (0.0146, 21.0639))
    add("Adds", "Adds" + scalar, (0.0071, 22.0938), (0.0141, 22.0936))
    add("Muls", "Muls" + scalar, (0.0071, 23.1006), (0.0142, 23.0966))
    add("Maxs", "Maxs" + scalar, (0.0071, 20.0912), (0.0141, 20.0887))
    add("Mins", "Mins" + scalar, (0.0071, 20.0896), (0.0142, 20.0876))
    add("Add", "Add" + both, (0.0103, 22.2173), (0.0206, 23.2225), two=True)
    add("Sub", "Sub" + both, (0.0107, 22.1226), (0.0213, 22.1254), two=True)
    add("Mul", "Mul" + both, (0.0110, 23.1243), (0.0206, 23.2291), two=True)
    add("Div", "Div" + both, (0.0460, 29.1233), (0.0454, 29.0892), two=True)
    add("Max", "Max" + both, (0.0111, 20.1200), (0.0215, 20.1333), two=True)
    add("Min", "Min" + both, (0.0111, 20.1104), (0.0215, 20.1271), two=True)
    found.append(Line("And int16", "And(D<int16_t>(), X<int16_t>(), Y<int16_t>(), n);", 0.0107, 17.1393, True))
    found.append(Line("Or uint16", "Or(D<uint16_t>(), X<uint16_t>(), Y<uint16_t>(), n);", 0.0132, 12.4018, True))
    found.append(Line("Muls int32", "Muls(D<int32_t>(), X<int32_t>(), 2, n);", 0.0180, 20.7457))
    compared = {
        "EQ": ((0.0081, 21.0340), (0.0157, 21.0316)), "GE": ((0.0079, 21.0279), (0.0156, 21.0309)),
        "GT": ((0.0114, 20.9711), (0.0157, 21.0319)), "LE": ((0.0080, 21.9556), (0.0158, 21.0303)),
        "LT": ((0.0079, 21.0297), (0.0173, 20.9940)), "NE": ((0.0115, 20.9123), (0.0156, 21.0313)),
    }  # fmt: skip
    for mode, (half, single) in compared.items():
        add(f"Compare {mode}", f"Compare(D<uint8_t>(), X<$T>(), Y<$T>(), CMPMODE::{mode}, n);", half, single)
    for mode, half, single in (
        ("EQ", (0.0084, 21.9204), (0.0160, 21.9749)), ("GE", (0.0086, 21.9025), (0.0161, 21.9643)),
        ("GT", (0.0084, 21.9200), (0.0160, 21.9712)), ("LE", (0.0084, 21.9210), (0.0161, 21.9722)),
        ("LT", (0.0084, 21.9381), (0.0161, 22.9860)), ("NE", (0.0084, 21.9114), (0.0161, 22.9690)),
    ):  # fmt: skip
        add(f"CompareScalar {mode}", f"CompareScalar(D<uint8_t>(), X<$T>(), $T(2), CMPMODE::{mode}, n);", half, single)
    for to, source, mode, k, b in (
        ("float", "half", "NONE", 0.0147, 20.1204), ("half", "float", "RINT", 0.0087, 20.4393),
        ("uint8_t", "half", "RINT", 0.0083, 19.9408), ("half", "uint8_t", "NONE", 0.0102, 46.512),
        ("int32_t", "int64_t", "NONE", 0.0332, 18.8690),
    ):  # fmt: skip
        call = f"Cast(D<{to}>(), X<{source}>(), RoundMode::CAST_{mode}, n);"
        found.append(Line(f"Cast {source} to {to}", call, k, b))
    add("Duplicate", "Duplicate(D<$T>(), $T(1), n);", (0.0078, 16.9993), (0.0156, 16.9965))
    add("DataCopy", "DataCopy(D<$T>(), X<$T>(), n);", (0.0076, 11.6372), (0.0152, 11.6372))
    add("Copy", "Copy(D<$T>(), X<$T>(), uint64_t($L), n / $L, {1, 1, 8, 8});", (0.0078, 13.0049), (0.0157, 12.9966))
    add("Brcb", "Brcb(D<$T>(), X<$T>(), n / ($B * 8), {1, 8});", (0.0074, 13.0572), (0.0146, 13.0732))
    repeats, folded = "n / $L, $L, 1, 1, 8", "$L, n / $L, 1, 1, 8"
    add("BlockReduceMax", f"BlockReduceMax(D<$T>(), X<$T>(), {repeats});", (0.0547, 18.0042), (0.0198, 16.7401))
    add("PairReduceSum", f"PairReduceSum(D<$T>(), X<$T>(), {repeats});", (0.0547, 37.159), (0.1094, 36.964))
    add("WholeReduceMax", f"WholeReduceMax(D<$T>(), X<$T>(), {folded});", (0.0547, 21.0027), (0.1094, 20.0051))
    add("WholeReduceSum", f"WholeReduceSum(D<$T>(), X<$T>(), {folded});", (0.0547, 35.0021), (0.1094, 32.0029))
    gathered = "Gather(D<$T>(), X<$T>(), Z<uint32_t>(), uint32_t(0), uint32_t(n));"
    add("Gather", gathered, (0.1873, 17.0248), (0.1875, 15.0000))
    masked = "uint64_t c; GatherMask(D<$T>(), X<$T>(), uint8_t(1), false, 0, {1, uint16_t(n / $L), 8, 0}, c);"
    add("GatherMask", masked, (0.0156, 14.0242), (0.0313, 14.0207))
    chosen = "Select(D<$T>(), Z<uint8_t>(), X<$T>(), Y<$T>(), SELMODE::VSEL_TENSOR_TENSOR_MODE, n);"
    add("Select", chosen, (0.0118, 45.9656), (0.0229, 43.9906), two=True)
    return found


#: What is off by more, and why it was left.
OTHERWISE = {
    "Cast float to half": "0.56 cycles a repeat, where hicann/pto-isa measured 0.90 (test_instructions.py)",
    "Cast uint8_t to half": "a head of 46.5: no other source has a conversion that begins so late",
    "PairReduceSum half": "7 cycles a repeat, where asc-devkit documents one",
    "PairReduceSum float": "7 cycles a repeat, where asc-devkit documents one",
    "BlockReduceMax float": "1.27 cycles a repeat, where asc-devkit documents one",
    "Compare GT half": "1.46 cycles a repeat, where the other comparisons have 1.0",
    "Compare NE half": "1.46 cycles a repeat, where the other comparisons have 1.0",
    "Or uint16": "a head of 12, where And has 17 and hicann/pto-isa measured the same for both",
    "Rsqrt half": "0.91 cycles a repeat, where hicann/pto-isa measured 1.07",
    "Rsqrt float": "0.92 cycles a repeat, where hicann/pto-isa measured 1.07",
    "Muls int32": "a head of 21, where half and float have 23",
}

KERNEL = """
#include "kernel_operator.h"
using namespace AscendC;
template <typename T> __aicore__ inline LocalTensor<T> At(uint32_t byte) {
  return LocalTensor<T>(TPosition::VECCALC, byte, 32768 / sizeof(T));
}
template <typename T> __aicore__ inline LocalTensor<T> X() { return At<T>(0); }
template <typename T> __aicore__ inline LocalTensor<T> Y() { return At<T>(0x8000 + APART); }
template <typename T> __aicore__ inline LocalTensor<T> D() { return At<T>(0x10280); }
template <typename T> __aicore__ inline LocalTensor<T> Z() { return At<T>(0x18400); }
extern "C" __global__ __aicore__ void one(int32_t which, int32_t n) {
  TPipe pipe;
  Duplicate(At<int32_t>(0), 0, 0x2000);
  for (uint32_t i = 1; i < 4; i++) Duplicate(At<int32_t>(0x8000 * i), 0, 0x2000);
  Duplicate(At<int32_t>(0x18400), 0, 0x2000);
  PipeBarrier<PIPE_ALL>();
  switch (which) {
CASES
  }
  PipeBarrier<PIPE_ALL>();
}
"""


@cache
def _cycles(apart: int) -> dict[str, list[float]]:
    """Modelled cycles of each line's call at COUNTS, sources ``apart`` bytes more than two banks' rows from another."""
    acl, clock = device(), float(load_chip(CHIP).values["core.clock_mhz"])
    cases = "\n".join(f"    case {i}: {{ {line.call} break; }}" for i, line in enumerate(lines()))
    text = KERNEL.replace("CASES", cases).replace("APART", str(apart))
    with acl.load(acl.compile(text, "one.cpp", ["--cce-auto-sync=off"])) as loaded:
        function = loaded.function("one")

        def busy(which: int, n: int) -> float:
            acl.launch(function, 1, [ctypes.c_int32(which), ctypes.c_int32(n)], options=LaunchOptions(CHIP))
            acl.synchronize()
            report = acl.report()
            assert not report["errors"], report["errors"]
            return float(report["profile"]["aiv_vec_time_us"]) * clock

        prepared = busy(len(lines()), 1)
        return {line.name: [busy(i, n) - prepared for n in COUNTS] for i, line in enumerate(lines())}


def errors(line: Line) -> list[float]:
    """Of modelled cycles, as shares; 0 where the line lies between what two sources take apart and in conflict."""
    out = []
    for n, free, clash in zip(COUNTS, _cycles(256)[line.name], _cycles(0)[line.name], strict=True):
        wanted = line.k * n + line.b
        nearest = min(max(free, wanted), clash) if line.two else free
        out.append(nearest / wanted - 1)
    return out


@pytest.mark.parametrize("line", lines(), ids=lambda line: line.name)
def test_by_count_it_takes_what_operator_fusion_reckons_with(line: Line) -> None:
    worst = max(errors(line), key=abs)
    assert (abs(worst) <= 0.10) == (line.name not in OTHERWISE), worst


def test_the_mean_error_is_small() -> None:
    alike = [abs(e) for line in lines() for e in errors(line) if line.name not in OTHERWISE]
    assert mean(alike) <= 0.035
    assert mean(abs(e) for line in lines() for e in errors(line)) <= 0.09
