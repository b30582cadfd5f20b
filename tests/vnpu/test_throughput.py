"""Documented throughputs of architecture 2201: what an instruction costs per element, its head taken off.

The numbers are facts of asc-devkit's appendix "theoretical performance of Vector instructions", tables 6 to 18
(docs/zh/api, Vector指令理论性能汇总), in elements per cycle. Operands lie where no banks conflict.
"""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from functools import cache

import pytest
from api_kernel import device

from ascendopt_tune.device.options import LaunchOptions
from ascendopt_tune.nouns.chip import load_chip

CHIP = "ascend910b1"
#: Where a measurement says otherwise than the documentation, by what factor (hicann/pto-isa, see test_instructions.py).
MEASURED = {"Mul": 1.1, "Rsqrt": 1.07, "Cast": 0.95}
SMALL, LARGE = 1024, 2048  # elements; the difference of two calls has no head


@dataclass(frozen=True)
class Row:
    """``call`` on tensors D (destination), X and Y of a type, for ``n`` elements, is documented at ``per_cycle``."""

    name: str
    call: str
    per_cycle: float
    call_elements: int = 0  # where a call has a fixed size: its elements (as many calls as n needs, each with a head)


def rows() -> list[Row]:
    table: list[Row] = []

    def each(names: str, types: str, arguments: str, per_cycle: float) -> None:
        for name in names.split():
            for t in types.split():
                typed = re.sub(r"\bT\b", t, arguments)
                table.append(Row(f"{name} {t}", f"{name}({typed});", per_cycle))

    wide, narrow = "float int32_t", "half int16_t"
    # Table 6, basic arithmetic
    each("Add Sub Mul Max Min", narrow, "D<T>(), X<T>(), Y<T>(), n", 128)
    each("Add Sub Mul Max Min", wide, "D<T>(), X<T>(), Y<T>(), n", 64)
    each("Adds Muls Maxs Mins", narrow, "D<T>(), X<T>(), T(2), n", 128)
    each("Adds Muls Maxs Mins", wide, "D<T>(), X<T>(), T(2), n", 64)
    each("LeakyRelu", "half", "D<T>(), X<T>(), T(2), n", 128)
    each("LeakyRelu", "float", "D<T>(), X<T>(), T(2), n", 64)
    each("Exp Ln Sqrt", "half float", "D<T>(), X<T>(), n", 32)
    each("Div", "half float", "D<T>(), X<T>(), Y<T>(), n", 32)
    each("Abs Reciprocal Rsqrt Relu", "half", "D<T>(), X<T>(), n", 128)
    each("Abs Reciprocal Rsqrt Relu", "float", "D<T>(), X<T>(), n", 64)
    each("Relu", "int32_t", "D<T>(), X<T>(), n", 64)
    # Table 7, logic
    each("Not", "int16_t uint16_t", "D<T>(), X<T>(), n", 128)
    each("And Or", "int16_t uint16_t", "D<T>(), X<T>(), Y<T>(), n", 128)
    each("ShiftLeft ShiftRight", "int16_t uint16_t", "D<T>(), X<T>(), T(2), n", 128)
    each("ShiftLeft ShiftRight", "int32_t uint32_t", "D<T>(), X<T>(), T(2), n", 64)
    # Table 8, composed
    each("Axpy", "half", "D<T>(), X<T>(), T(2), n", 128)
    each("Axpy", "float", "D<T>(), X<T>(), T(2), n", 64)
    table.append(Row("Axpy half to float", "Axpy(D<float>(), X<half>(), half(2), n);", 64))
    each("MulAddDst", "half", "D<T>(), X<T>(), Y<T>(), n", 64)
    each("MulAddDst", "float", "D<T>(), X<T>(), Y<T>(), n", 32)
    table.append(Row("MulAddDst half to float", "MulAddDst(D<float>(), X<half>(), Y<half>(), n);", 32))
    each("AddRelu SubRelu", "int16_t half", "D<T>(), X<T>(), Y<T>(), n", 128)
    each("AddRelu SubRelu", "float", "D<T>(), X<T>(), Y<T>(), n", 64)
    each("FusedMulAdd", "half", "D<T>(), X<T>(), Y<T>(), n", 128)
    each("FusedMulAdd", "float", "D<T>(), X<T>(), Y<T>(), n", 64)
    for dst, src, per_cycle in (("half", "float", 64), ("int8_t", "half", 128), ("int8_t", "int16_t", 128)):
        for name in ("AddReluCast", "SubReluCast"):
            call = f"{name}(D<{dst}>(), X<{src}>(), Y<{src}>(), n);"
            table.append(Row(f"{name} {src} to {dst}", call, per_cycle))
    # Table 9, comparison and selection
    each("Compare", "half", "D<uint8_t>(), X<T>(), Y<T>(), CMPMODE::EQ, n", 128)
    each("Compare", wide, "D<uint8_t>(), X<T>(), Y<T>(), CMPMODE::EQ, n", 64)
    each("Compares", "half", "D<uint8_t>(), X<T>(), T(1), CMPMODE::EQ, n", 128)
    each("Compares", wide, "D<uint8_t>(), X<T>(), T(1), CMPMODE::EQ, n", 64)
    selection = "D<T>(), Z<uint8_t>(), X<T>(), Y<T>(), SELMODE::VSEL_TENSOR_TENSOR_MODE, n"
    each("Select", "half", selection, 128)
    each("Select", "float", selection, 64)
    for t, per_cycle in (
        ("half", 64),
        ("uint16_t", 64),
        ("int16_t", 64),
        ("float", 32),
        ("uint32_t", 32),
        ("int32_t", 32),
    ):
        call = f"uint64_t kept; GatherMask(D<{t}>(), X<{t}>(), 1, true, n, GatherMaskParams(1, 1, 8, 8), kept);"
        table.append(Row(f"GatherMask {t}", call, per_cycle))
    # Table 10, conversion
    for src, targets, per_cycle in (
        ("uint8_t", "half", 128),
        ("int8_t", "half", 128),
        ("int16_t", "half", 128),
        ("int16_t", "float", 64),
        ("half", "int8_t uint8_t int16_t", 128),
        ("half", "int32_t float", 64),
        ("bfloat16_t", "int32_t float", 64),
        ("int32_t", "int16_t float", 64),
        ("int32_t", "int64_t", 32),
        ("float", "half int16_t bfloat16_t int32_t float", 64),
        ("float", "int64_t", 32),
    ):
        for dst in targets.split():
            rounded = "CAST_NONE" if (src, dst) in _EXACT or src in ("uint8_t", "int8_t") else "CAST_RINT"
            call = f"Cast(D<{dst}>(), X<{src}>(), RoundMode::{rounded}, n);"
            table.append(Row(f"Cast {src} to {dst}", call, per_cycle))
    # Table 11, reduction
    for t, lanes, block, repeat in (("half", 128, 128 / 7, 128 / 7), ("float", 64, 64, 64 / 7)):
        arguments = f"D<{t}>(), X<{t}>(), n / {lanes}, {lanes}, 1, 1, 8"
        table.append(Row(f"ReduceDataBlock {t}", f"BlockReduceSum({arguments});", block))
        table.append(
            Row(f"ReducePairElem {t}", f"PairReduceSum({arguments.replace(', 1, 1, 8', ', 4, 1, 8')});", lanes)
        )
        arguments = f"D<{t}>(), X<{t}>(), {lanes}, n / {lanes}, 1, 1, 8"
        table.append(Row(f"ReduceRepeat {t}", f"WholeReduceSum({arguments});", repeat))
    # Tables 12 and 13, arrangement and filling
    each("Duplicate", "half int16_t uint16_t bfloat16_t", "D<T>(), T(2), n", 128)
    each("Duplicate", "float int32_t uint32_t", "D<T>(), T(2), n", 64)
    # CreateVecIndex is documented to be as fast as Duplicate. asc-devkit's header for 2201 makes it of one Adds a
    # repeat with a barrier behind each (kernel_operator_vec_createvecindex_impl.h), and that is modelled.
    for t, per_cycle in (("half", 128), ("uint16_t", 128), ("float", 64), ("uint32_t", 64)):
        lanes = 8 * 32 // (2 if per_cycle == 128 else 4)
        call = f"Brcb(D<{t}>(), X<{t}>(), n / {lanes}, BrcbRepeatParams(1, 8));"
        table.append(Row(f"Brcb {t}", call, per_cycle))
    for t in ("half", "int16_t", "uint16_t"):
        table.append(Row(f"Transpose {t}", f"Transpose(D<{t}>(), X<{t}>());", 128, 256))
    # Tables 14 and 15, sorting and gathering
    for t in ("half", "float"):
        table.append(Row(f"Sort32 {t}", f"Sort32(D<{t}>(), X<{t}>(), Y<uint32_t>(), n / 32);", 2))
    for t in ("half", "int16_t", "float", "int32_t"):
        table.append(Row(f"Gather {t}", f"Gather(D<{t}>(), X<{t}>(), Z<uint32_t>(), 0, n);", 5))
    # Documented as 42 and 21: a repeat in three cycles, rounded down.
    for t, lanes in (("uint16_t", 128), ("uint32_t", 64)):
        call = f"Gatherb(D<{t}>(), X<{t}>(), Z<uint32_t>(), n / {lanes}, GatherRepeatParams(1, 8));"
        table.append(Row(f"Gatherb {t}", call, lanes / 3))
    return table


_EXACT = {
    ("half", "float"),
    ("bfloat16_t", "float"),
    ("int16_t", "float"),
    ("int32_t", "int16_t"),
    ("int32_t", "int64_t"),
}
ROWS = rows()
#: The page on reusing the global mask: a call in count form sets and resets the mask with four one-cycle instructions.
MASKED = "for (int32_t k = 0; k < 180; k++) Add(D<half>(), X<half>(), Y<half>(), n);"
UNMASKED = (
    "for (int32_t k = 0; k < 180; k++)"
    " Add<half, false>(D<half>(), X<half>(), Y<half>(), MASK_PLACEHOLDER, n / 128, {1, 1, 1, 8, 8, 8});"
)

# x in the first 64 KB of UB (bank 0), y in the second, from the middle of the bank groups on, z and results behind.
KERNEL = """
#include "kernel_operator.h"
using namespace AscendC;
template <typename T> __aicore__ inline LocalTensor<T> At(uint32_t byte, uint32_t bytes) {
  return LocalTensor<T>(TPosition::VECCALC, byte, bytes / sizeof(T));
}
template <typename T> __aicore__ inline LocalTensor<T> X() { return At<T>(0, 16384); }
template <typename T> __aicore__ inline LocalTensor<T> Y() { return At<T>(0x10100, 16384); }
template <typename T> __aicore__ inline LocalTensor<T> Z() { return At<T>(0x18000, 16384); }
template <typename T> __aicore__ inline LocalTensor<T> D() { return At<T>(0x20000, 32768); }
extern "C" __global__ __aicore__ void throughput(int32_t which, int32_t n) {
  Duplicate(X<int32_t>(), 0, 4096);
  Duplicate(Y<int32_t>(), 0, 4096);
  Duplicate(Z<int32_t>(), 0, 4096);
  Duplicate(D<int32_t>(), 0, 4096);
  PipeBarrier<PIPE_ALL>();
  switch (which) {
CASES
  }
  PipeBarrier<PIPE_ALL>();
}
"""


@cache
def _times() -> dict[str, list[float]]:
    """Vector cycles of every row at n = SMALL and LARGE (without what the kernel prepares)."""
    acl = device()
    cases = []
    for i, r in enumerate(ROWS):
        body = r.call
        if r.call_elements:
            body = f"for (int32_t k = 0; k < n / {r.call_elements}; k++) {{ {r.call} }}"
        cases.append(f"    case {i}: {{ {body} break; }}")
    cases += [f"    case -{i}: {{ {call} break; }}" for i, call in ((1, MASKED), (2, UNMASKED))]
    binary = acl.compile(KERNEL.replace("CASES", "\n".join(cases)), "throughput.cpp", ["--cce-auto-sync=off"])
    clock = float(load_chip(CHIP).values["core.clock_mhz"])
    times: dict[str, list[float]] = {}
    options = LaunchOptions(chip=CHIP, hazards=False)
    with acl.load(binary) as loaded:
        function = loaded.function("throughput")

        def cycles(which: int, n: int, pipe: str = "vec") -> float:
            acl.launch(function, 1, [ctypes.c_int32(which), ctypes.c_int32(n)], options=options)
            acl.synchronize()
            report = acl.report()
            assert not report["errors"], (ROWS[which].call, report["errors"])
            return float(report["profile"][f"aiv_{pipe}_time_us"]) * clock

        prepared = cycles(len(ROWS), SMALL)
        times["masks"] = [cycles(which, SMALL, "scalar") for which in (-1, -2)]
        for i, r in enumerate(ROWS):
            times[r.name] = [cycles(i, n) - prepared for n in (SMALL, LARGE)]
    return times


@pytest.mark.parametrize("row", ROWS, ids=[r.name for r in ROWS])
def test_a_call_costs_what_is_documented(row: Row) -> None:
    small, large = _times()[row.name]
    name = row.name.split()[0]
    head = float(load_chip(CHIP).values.get(f"instructions.{name}.any.head", 22))
    heads = head * (LARGE - SMALL) / row.call_elements if row.call_elements else 0
    expected = MEASURED.get(name, 1) / row.per_cycle
    exact = 0.06 if name in MEASURED else 0.01  # banks are played cycle by cycle, so a pace of 1.07 is a pattern
    assert (large - small - heads) / (LARGE - SMALL) == pytest.approx(expected, rel=exact)


def test_mask_setup_is_four_cycles_a_call() -> None:
    masked, unmasked = _times()["masks"]
    assert masked - unmasked == pytest.approx(720)


def test_every_type_is_in_the_table() -> None:
    assert len(ROWS) == len({r.name for r in ROWS}) > 130
