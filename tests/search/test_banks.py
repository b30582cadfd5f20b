"""Buffers that one instruction reads together, in different bank groups: as fast as by hand, and only such buffers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import one_core
import pytest

from ascendopt_tune.build.toolkit import virtual
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.nouns.operator import Operator
from ascendopt_tune.nouns.outcome import Timed
from ascendopt_tune.search.kernel.motifs import Rewrite, find
from ascendopt_tune.search.kernel.reading.kernel_program import KernelProgram
from ascendopt_tune.sources.arguments import build_case, parse_tensor
from ascendopt_tune.sources.project import load_project

MULS = "    Muls(y, x, factor, n);\n"
MORE = "".join(f"    {name}(y, x, y, n);\n" for name in ("Add", "Max", "Sub", "Min") * 5)
MADE = "    pipe->InitBuffer(inQueue, BUFFER_NUM, TILE_LENGTH * sizeof(float));\n"
BY_HAND = MADE.replace("sizeof(float)", "sizeof(float) + 256")


def kernel(tile: int = 2048) -> str:
    text = one_core.kernel().replace("TILE_LENGTH = 512", f"TILE_LENGTH = {tile}")
    assert MULS in text
    assert MADE in text
    return text.replace(MULS, MULS + MORE)


def program(text: str, host: str = "") -> KernelProgram:
    return KernelProgram({"k.cpp": text}, {"h.cpp": host})


def apart(text: str, host: str = "") -> list[Rewrite]:
    return [r for r in find("bank-groups").optimize(program(text, host)) if r.site.startswith("apart")]


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(virtual(), workers=1) as opened:
        yield opened


def operator_in(folder: Path, tile: int) -> Operator:
    root = one_core.write(folder)
    (root / "op_kernel/grow_scale.cpp").write_text(kernel(tile))
    host = root / "op_host/grow_scale.cpp"
    host.write_text(host.read_text().replace("TILE_LENGTH = 512", f"TILE_LENGTH = {tile}"))
    return load_project(root)


@pytest.mark.parametrize("tile", [2048, 2040])
def test_as_fast_as_by_hand(tmp_path: Path, evaluator: Evaluator, tile: int) -> None:
    operator = operator_in(tmp_path, tile)
    base = operator.baseline
    before = KernelProgram(base.kernel, base.tiling, None, operator.auto_sync)
    rewrite = next(r for r in find("bank-groups").optimize(before) if r.site == "apart")
    by_hand = {p: t.replace(MADE, BY_HAND) for p, t in base.kernel.items()}
    pairs = {0: base, 1: replace(base, kernel=rewrite.kernel(before)), 2: replace(base, kernel=by_hand)}
    signature = evaluator.describe(operator).signature
    inputs = dict([parse_tensor("x=float32[16384]")])
    case = build_case(signature, inputs, {}, {}, lambda i, a: evaluator.infer_outputs(operator, i, a))
    gate, times = Gate(operator, case, evaluator, signature=signature), {}
    for number, checked in gate.evaluate_many(pairs):
        assert isinstance(checked.outcome, Timed), checked.outcome.reason
        times[number] = checked.outcome.profile.task_duration_us
    assert times[1] < 0.95 * times[0]
    assert times[1] <= 1.01 * times[2], "where a tile isn't whole 512 bytes, 256 more are not enough"


def test_one_set_then_256_bytes_then_the_other() -> None:
    (rewrite,) = apart(kernel())
    lines = [line.strip() for line in rewrite.kernel(program(kernel()))["k.cpp"].splitlines()]
    size = "((TILE_LENGTH * sizeof(float)) + 511) / 512 * 512"
    assert [line for line in lines if "InitBuffer" in line] == [
        f"pipe->InitBuffer(inQueue, BUFFER_NUM, {size});",
        "pipe->InitBuffer(banksApart0, 256);",
        f"pipe->InitBuffer(outQueue, BUFFER_NUM, {size});",
        "pipe->InitBuffer(banksApart0End, 256);",
    ]


def test_tiles_are_shorter_where_the_tiling_program_asks_for_the_length() -> None:
    host = "void f() { platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, info->ubSize); }"
    assert [r.site for r in apart(kernel(), host)] == ["apart", "apart/room"]
    (_, rewrite) = apart(kernel(), host)
    assert "info->ubSize); info->ubSize -= 2560; }" in rewrite.tiling(program(kernel(), host))["h.cpp"]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (MORE, "", 0),  # nothing reads both
        (MORE, "    Add(y, x, x, n);\n", 0),
        (MORE, "    Other(y, x, n);\n", 0),  # no function of this kernel
        (MADE, "    for (int i = 0; i < 2; i++) { pipe->InitBuffer(inQueue, 1, 64); }\n", 1),
        (MADE, MADE + "    Use(inQueue);\n", 1),  # two runs
    ],
)
def test_only_what_is_read_together(old: str, new: str, found: int) -> None:
    assert len(apart(kernel().replace(old, new))) == found


def test_tensors_are_followed_into_functions() -> None:
    text = kernel().replace(MORE, "    Both(y, x, n);\n")
    text = text.replace(
        " private:\n",
        " private:\n  __aicore__ inline void Both(LocalTensor<float>& to, const LocalTensor<float>& of, uint32_t n) {\n"
        "    Add(to, to, of, n);\n  }\n",
    )
    assert len(apart(text)) == 1


def test_once_is_enough() -> None:
    (rewrite,) = apart(kernel())
    assert not apart(rewrite.kernel(program(kernel()))["k.cpp"])
