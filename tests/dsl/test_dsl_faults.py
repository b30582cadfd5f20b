"""Mistakes put into right programs and into what they lower to: interpreter, hazard check or gate finds each."""

from __future__ import annotations

from pathlib import Path

import lowered
import numpy as np
import pytest

from ascendopt_tune.dsl import DslError, interpret, read_text
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.nouns.outcome import Hazard, Timed, WrongResult

#: program, shape of x, what is replaced, by what, and a text of the message.
PROGRAM = [
    ("total", (1000,), "unit=8)", "unit=8); last = last + 8", "which has 1000"),  # tail
    ("total", (1000,), "    tl.sync_all()\n", "", "never written"),  # synchronization
    ("total", (1000,), "core * 8 + tl", "core * 4 + tl", "core 0"),  # offset
    ("total", (1000,), "range(0, cores)", "range(0, cores + 1)", "which has 384"),
    ("total", (1000,), "if core == 0:", "if core < 2:", "as core 0 did"),
    ("row_softmax", (5, 300), "n = min(tile, cols - at)", "n = tile", "which has 1500"),
    ("row_softmax", (5, 300), "y + row * cols + at", "y + row * tile + at", "which has 1500"),  # stride of a row
    ("row_softmax", (5, 300), "        for at in range(0, cols, tile):\n            n = min(tile, cols - at)\n"
     "            v = tl.load(x + row * cols + at + tl.arange(0, n))\n            tl.store",
     "        for at in range(8, cols, tile):\n            n = min(tile, cols - at)\n"
     "            v = tl.load(x + row * cols + at + tl.arange(0, n))\n            tl.store", "never stored"),
    ("row_statistics", (77, 100), "n = min(height, last - row)", "n = height", "as core 0 did"),
    ("row_statistics", (77, 100), "tl.store(small + row + tl.arange(0, n), m)",
     "tl.store(small + row + tl.arange(0, n + 1), m)", "are in use"),
    ("middle_mean", (3, 5, 333), "(a * middle + r) * inner", "(a * middle + r + 1) * inner", "which has 4995"),
    ("clamp_count", (3001,), "if core == 0:\n        tl.store(count", "if core == 1:\n        tl.load(count", None),
    ("clamp_count", (3001,), "tl.store(count", "tl.store(y", "nobody has set"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "shape", "old", "new", "text"), PROGRAM)
def test_the_interpreter_finds_it(name: str, shape: tuple[int, ...], old: str, new: str, text: str | None) -> None:
    source = (lowered.PROGRAMS / f"{name}.py").read_text()
    assert old in source
    x = np.ones(shape, np.float16 if name == "middle_mean" else np.float32)
    with pytest.raises(DslError) as caught:
        interpret(read_text(source.replace(old, new, 1), f"{name}.py"), {"x": x})
    assert caught.value.line > 0
    assert text is None or text in str(caught.value)


#: program, inputs, what is replaced in the kernel's text, by what.
KERNEL = [
    ("row_softmax", "x=float32[5,300]", "PipeBarrier<PIPE_V>();", ""),
    ("row_softmax", "x=float32[5,300]", "WaitPipe<HardEvent::V_S>();\n        float element2", "float element2"),
    ("middle_mean", "x=float16[3,5,333]", "rowStaged, xGm, (a * middle + r) *", "rowStaged, xGm, a * middle *"),
    ("middle_mean", "x=float16[3,5,333]", "int64_t r = 1; r < middle", "int64_t r = 2; r < middle"),
    ("row_statistics", "x=float32[77,100]", "MinOf<int64_t>(lanes, cols - at)", "lanes"),
    ("clamp_count", "x=float32[3001]", "CMPMODE::EQ", "CMPMODE::NE"),
    ("total", "x=float32[1000]", "SyncAll();", ""),
]


@pytest.mark.parametrize(("name", "inputs", "old", "new"), KERNEL)
def test_hazard_check_or_gate_find_it(
    name: str, inputs: str, old: str, new: str, evaluator: Evaluator, tmp_path: Path
) -> None:
    program = read_text((lowered.PROGRAMS / f"{name}.py").read_text(), f"{name}.py")
    operator = lowered.project(program, tmp_path / name, {f"op_kernel/{name}.cpp": (old, new)})
    found = lowered.checked(evaluator, operator, inputs)
    assert not isinstance(found.outcome, Timed)
    assert isinstance(found.outcome, (Hazard, WrongResult)), found.outcome
