"""Tiling data as constants: as fast as constants by hand, right for every case, none where a list is long."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import one_core
import pytest

from ascendopt_tune.build.constants import ASKED, asked_for, tiling_constants
from ascendopt_tune.build.host_signature import TilingField, TilingStruct
from ascendopt_tune.build.plain_structs import plain_structs
from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.operator import Operator, Pair
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.search.kernel.motifs import find
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram
from ascendopt_tune.sources.arguments import build_case, parse_tensor
from ascendopt_tune.sources.project import load_project

KERNEL = "op_kernel/grow_scale.cpp"
LOADED = "GET_TILING_DATA(data, tiling);"
LIST = "END_TILING_DATA_DEF"
ASK = f"#define {ASKED}\n"


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(virtual(), workers=1) as opened:
        yield opened


def times(evaluator: Evaluator, operator: Operator, pairs: list[Pair], length: int) -> list[float]:
    """Of the pairs, the first of which is the reference, through the gate."""
    signature = evaluator.describe(operator).signature
    inputs = dict([parse_tensor(f"x=float32[{length}]")])
    case = build_case(signature, inputs, {}, {}, lambda i, a: evaluator.infer_outputs(operator, i, a))
    gate = Gate(operator, case, evaluator, signature=signature)
    found = {}
    for number, checked in gate.evaluate_many(dict(enumerate(pairs))):
        assert isinstance(checked.outcome, Timed), checked.outcome.reason
        found[number] = checked.outcome.profile.task_duration_us
    return [found[i] for i in range(len(pairs))]


def with_kernel(pair: Pair, text: str) -> Pair:
    return replace(pair, kernel={**pair.kernel, KERNEL: text})


def optimized(operator: Operator) -> Pair:
    base = operator.baseline
    program = KernelProgram(base.kernel, base.tiling, None, operator.auto_sync)
    (rewrite,) = find("constant-tiling").optimize(program)
    return replace(base, kernel=rewrite.kernel(program))


@pytest.mark.parametrize("length", [4096, 1000])
def test_as_fast_as_constants_by_hand_and_right_for_each_case(
    tmp_path: Path, evaluator: Evaluator, length: int
) -> None:
    operator = load_project(one_core.write(tmp_path))
    base = operator.baseline
    numbers = f"{-(-length // 512)}, 512, {length - (-(-length // 512) - 1) * 512}"
    by_hand = with_kernel(base, one_core.kernel().replace(LOADED, f"GrowScaleTilingData data{{{numbers}}};"))
    slow, ours, hand = times(evaluator, operator, [base, optimized(operator), by_hand], length)
    assert ours == pytest.approx(hand, rel=1e-3)
    assert ours < slow


def test_a_long_list_stays_in_memory(tmp_path: Path, evaluator: Evaluator) -> None:
    root = one_core.write(tmp_path)
    header = root / "op_host/grow_scale_tiling.h"
    header.write_text(header.read_text().replace(LIST, f"TILING_DATA_FIELD_DEF_ARR(uint32_t, 40, ends);\n{LIST}", 1))
    operator = load_project(root)
    base = operator.baseline
    program = KernelProgram(base.kernel, base.tiling, None, operator.auto_sync)
    assert not list(find("constant-tiling").optimize(program))
    asking = with_kernel(base, ASK + one_core.kernel())
    slow, same = times(evaluator, operator, [base, asking], 4096)
    assert same == slow


@pytest.mark.parametrize(
    ("texts", "asks"),
    [([ASK], True), ([f"  # define {ASKED} 1\n"], True), ([f"// {ASK}"], False), (["int a;"], False), ([], False)],
)
def test_who_asks(texts: list[str], asks: bool) -> None:
    assert asked_for(texts) == asks


def layout(*fields: tuple[str, str, int, str, int], name: str = "S", size: int = 64) -> TilingStruct:
    return TilingStruct(name, None, size, tuple(TilingField(*f) for f in fields))


def test_values_are_those_of_the_data() -> None:
    inner = replace(layout(("n", "int16_t", 0, "", 0), name="Inner", size=8), nested=True)
    outer = layout(
        ("a", "uint64_t", 0, "", 0), ("low", "int64_t", 0, "", 8), ("f", "float", 0, "", 16), ("b", "bool", 0, "", 20),
        ("bPH", "uint8_t", 3, "", 21), ("dims", "uint8_t", 2, "", 24), ("in", "", 0, "Inner", 32),
    )  # fmt: skip
    data = struct.pack("<QqfB3x2B6xh", 2**64 - 1, -(2**63), 0.1, 1, 7, 9, -3).ljust(64, b"\0")
    text = tiling_constants([inner, outer], data)
    for line in (
        "to.a = static_cast<uint64_t>(18446744073709551615ULL);",
        "to.low = static_cast<int64_t>(-9223372036854775807LL - 1);",
        f"to.f = static_cast<float>({struct.unpack('<f', struct.pack('<f', 0.1))[0].hex()});",
        "to.b = true;",
        "to.dims[0] = static_cast<uint8_t>(7ULL);",
        "to.dims[1] = static_cast<uint8_t>(9ULL);",
        "to.in.n = static_cast<int16_t>(-3LL);",
    ):
        assert line in text
    assert "bPH" not in text
    assert "AotTilingConstants(Inner&" not in text


@pytest.mark.parametrize(
    "s",
    [
        layout(("list", "int64_t", 9, "", 0), size=72),  # long
        layout(("h", "half", 0, "", 0)),  # of a type that has no literal here
        layout(("in", "", 0, "Unknown", 0)),
        layout(("in", "", 2, "S", 0)),  # a list of structs
        layout(("f", "float", 0, "", 0)),  # not a number, below
        layout(("a", "int32_t", 0, "", 0), size=128),  # of another key: longer than the data
    ],
)
def test_what_has_no_constant_is_loaded(s: TilingStruct) -> None:
    data = struct.pack("<f", math.nan).ljust(72, b"\0")
    assert f"AotTilingConstants({s.name}& to, GM_ADDR)" not in tiling_constants([s], data)


# -- a struct that both programs include -------------------------------------------------------------------------------

OWN = """\
#pragma once
#include <cstdint>
constexpr uint32_t PLACES = 2;
namespace grown {{
struct Ends {{ uint32_t last; }};
struct GrowScaleTilingData {{
  uint32_t tiles = 0;  // of all
  uint32_t tileLength{more};
  double factors[PLACES];
  Ends ends;
}};
}}
"""


def shared_struct(root: Path, more: str, loads: str) -> Operator:
    """The one-core operator with a plain struct of the kernel's for its tiling data."""
    folder = one_core.write(root)
    (folder / "op_kernel/data.h").write_text(OWN.format(more=more))
    (folder / "op_host/grow_scale_tiling.h").write_text('#include "../op_kernel/data.h"\n')
    host = (folder / "op_host/grow_scale.cpp").read_text()
    for old, new in (
        ("GrowScaleTilingData tiling;", "auto& tiling = *context->GetTilingData<grown::GrowScaleTilingData>();"),
        ("tiling.set_tiles(tiles)", "tiling.tiles = tiles"),
        ("tiling.set_tileLength(tile)", "tiling.tileLength = tile"),
        ("tiling.set_lastLength(", "tiling.ends.last = ("),
    ):
        assert old in host
        host = host.replace(old, new)
    lines = [line for line in host.split("\n") if "SaveToBuffer" not in line and "SetDataSize" not in line]
    (folder / "op_host/grow_scale.cpp").write_text("\n".join(lines))
    kernel = one_core.kernel().replace(LOADED, loads).replace(".lastLength", ".ends.last")
    (folder / KERNEL).write_text(f'#include "data.h"\nusing grown::GrowScaleTilingData;\n{kernel}')
    return load_project(folder)


@pytest.mark.parametrize(
    "loads",
    [
        "GET_TILING_DATA_WITH_STRUCT(grown::GrowScaleTilingData, data, tiling);",
        f"REGISTER_TILING_DEFAULT(grown::GrowScaleTilingData); {LOADED}",
    ],
)
def test_a_plain_struct_of_the_kernels_own_becomes_constants(tmp_path: Path, evaluator: Evaluator, loads: str) -> None:
    operator = shared_struct(tmp_path, "", loads)
    base = operator.baseline
    numbers = "8, 512, {}, {416}"  # of 4000 elements
    by_hand = with_kernel(base, base.kernel[KERNEL].replace(loads, f"grown::GrowScaleTilingData data{{{numbers}}};"))
    slow, ours, hand = times(evaluator, operator, [base, optimized(operator), by_hand], 4000)
    assert ours == pytest.approx(hand, rel=1e-3)
    assert ours < slow


@pytest.mark.parametrize(
    ("struct", "plain"),
    [
        ("struct S { uint32_t a; std::int64_t b = 3; float c[16]; };", {"S"}),
        ("struct S { int a; unsigned long long b; std::size_t c; };", {"S"}),
        ("struct S { uint32_t a; float c[17]; };", set()),  # a long list
        ("struct S { uint32_t a; float c[UNKNOWN]; };", set()),
        ("#define FEW 4\nstruct S { uint32_t c[FEW]; };", {"S"}),
        ("struct S { uint8_t* a; };", set()),
        ("struct S { uint32_t a : 3; };", set()),
        ("struct S { uint32_t a; void Set() {} };", set()),
        ("struct S : B { uint32_t a; };", set()),
        ("struct S { TCubeTiling a; };", set()),
        ("struct S { I a; }; struct I { bool x; };", {"S", "I"}),
        ("struct S { I a[2]; }; struct I { bool x; };", {"I"}),
        ("namespace A { struct S { bool x; }; } namespace B { struct S { int8_t x; }; }", set()),  # which one?
        ("struct S {};", set()),
    ],
)
def test_which_structs_are_plain(struct: str, plain: set[str]) -> None:
    assert plain_structs({"k.h": struct}) == plain
