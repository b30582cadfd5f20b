"""Every rule of the language has a message with file, line and next step."""

from __future__ import annotations

import contextvars
import gc
import re

import numpy as np
import pytest

from ascendopt_tune.dsl import DslError, Machine, interpret, read_text

KERNEL = """\
import ascendopt_tune.dsl as tl

@tl.kernel
def k(x, y, n, tile):
    core, cores = tl.program_id(0), tl.num_programs(0)
    first, last = tl.split(n, core, cores, unit=8)
    for at in range(first, last, tile):
        count = min(tile, last - at)
        v = tl.load(x + at + tl.arange(0, count))
        tl.store(y + at + tl.arange(0, count), v * 2.0)

@tl.host
def double(x, y):
    n = x.numel
    tile = tl.knob("TILE", 64)
    k[tl.cores(tl.ceil_div(n, 8))](x, y, n, tile)
"""


def error_of(text: str, run: bool = False, n: int = 1000, machine: Machine | None = None) -> DslError:
    if not run:
        with pytest.raises(DslError) as caught:
            read_text(text, "program.py")
    else:
        program = read_text(text, "program.py")
        with pytest.raises(DslError) as caught:
            interpret(program, {"x": np.ones(n, np.float32)}, machine=machine)
    assert caught.value.file == "program.py"
    return caught.value


def test_the_program_that_the_rules_are_broken_in() -> None:
    x = np.arange(1000, dtype=np.float32)
    np.testing.assert_array_equal(interpret(read_text(KERNEL), {"x": x})["y"], 2 * x)


READ = [
    ("v * 2.0)", "v ** 2.0)", 10, "is no scalar|isn't in the language|operator"),
    ("v * 2.0)", "w * 2.0)", 10, "no scalar 'w'"),
    ("v * 2.0)", "tl.frobnicate(v))", 10, "function of scalars"),
    ("v = tl.load", "n = tl.load", 9, "parameter"),
    ("v = tl.load(x + at + tl.arange(0, count))", "v = tl.load(x + at)", 9, "no pointer"),
    ("v = tl.load(x + at + tl.arange(0, count))", "v = tl.load(x + at + tl.arange(1, count))", 9, "count from 0"),
    ("v = tl.load(x + at + tl.arange(0, count))", "v = tl.load(x + 8 * tl.arange(0, count))", 9, "single elements"),
    ("count = min(tile, last - at)", "count = last - at", 9, "how long"),
    ("count = min(tile, last - at)", "count = min(tile, last / at)", 9, "no integer"),
    ("count = min(tile, last - at)", "while at: pass", 8, "no statement"),
    ("for at in range(first, last, tile):", "for at in x:", 7, "loop is"),
    ("for at in range(first, last, tile):", "for n in range(first, last, tile):", 7, "another meaning"),
    ("v * 2.0)", "tl.cast(v, tl.float99))", 10, "no dtype"),
    ("v * 2.0)", "v > 2.0)", 10, "tl.where"),
    ("v * 2.0)", "tl.where(v, 1.0, 2.0))", 10, "one comparison"),
    ("v * 2.0)", "v * tl.cast(v, tl.int32))", 10, "several dtypes"),
    ("v * 2.0)", "tl.exp(tl.cast(v, tl.int32)))", 10, "isn't in the language"),
    ("first, last = tl.split(n, core, cores, unit=8)", "first, last = tl.split(n, core)", 6, "three arguments"),
    ("first, last = tl.split(n, core, cores, unit=8)", "first = 0.5; last = n // first", 6, "for integers"),
    ("tl.store(y + at", "tl.store(x + at", 10, None),
    ("tl.arange(0, count))\n", "tl.arange(0, count), dtype=tl.int64)\n", 9, "to int64"),
    ("def double(x, y):", "def double(x, y: tl.uint8):", 10, "float32 can't be converted to uint8"),
    ("n = x.numel", "n = x.numel\n    m = n + tl.num_cores()\n    tl.output(y, (m,), tl.float32)", 13, "num_cores"),
    ("    k[tl", "    tl.output(y, (n + tile,), tl.float32)\n    k[tl", 13, "'tile'"),
    ("k[tl.cores(tl.ceil_div(n, 8))](x, y, n, tile)", "k[tl.cores(n)](x, y, n)", 16, "4 parameters"),
    ("k[tl.cores(tl.ceil_div(n, 8))](x, y, n, tile)", "q[tl.cores(n)](x, y, n, tile)", 16, "no kernel"),
    ("    k[tl.cores(tl.ceil_div(n, 8))](x, y, n, tile)", "    pass", 13, "launches nothing"),
    ("n = x.numel", "n = x.numel; n = 3", 14, "assigned twice"),
    ("n = x.numel", "for i in range(3): pass", 14, "host function"),
    ('tl.knob("TILE", 64)', 'tl.knob("TILE", n)', 15, "default"),
    ("def double(x, y):", "def double(x, y, *more):", 13, r"\*args"),
    ("@tl.host\n", "", 1, "one host function"),
    ("def k(x, y, n, tile):", "def k(x, y, n, tile:", 4, "syntax"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "text"), READ)
def test_a_rule_of_the_reader(old: str, new: str, line: int, text: str | None) -> None:
    assert old in KERNEL
    if text is None:  # only known when it runs: x is an input no longer, and nothing is
        error_of(KERNEL.replace(old, new))
        return
    error = error_of(KERNEL.replace(old, new, 1))
    assert error.line in (line, line + 1), str(error)
    assert str(error).startswith(f"program.py:{error.line}: ")
    assert re.search(text, str(error)), str(error)


RUN = [
    ("count = min(tile, last - at)", "count = tile", 1000, 10, "as core"),
    ("unit=8)", "unit=8)\n    last = n", 1000, 11, "stores element"),
    ("tl.store(y + at + tl.arange(0, count)", "tl.store(y + at + tl.arange(0, count - 1)", 1000, 13, "never stored"),
    ('tl.knob("TILE", 64)', 'tl.knob("TILE", 640000)', 1000, 4, "Unified Buffer"),
    ("k[tl.cores(tl.ceil_div(n, 8))]", "k[tl.ceil_div(n, 8)]", 1000, 13, "cores are launched"),
    ("n = x.numel", 'n = x.numel\n    assert n > 5000, "too short"', 1000, 15, "too short"),
    ('tl.knob("TILE", 64)', '64\n    b = tl.knob("BUFFER_NUM", 9)', 1000, 4, "need an event id"),
    ("n = x.numel", "n = x.shape[1]", 1000, 13, "no axis"),
    ("n = x.numel", "n, m = x.shape", 1000, 14, "needs 2"),
    ("        v = ", "        if core == 0:\n            tl.sync_all()\n        v = ", 1000, 10, "Every core"),
    ("v * 2.0)", "v + tl.load(y + at + tl.arange(0, count)))", 1000, 10, "never written"),
    ("range(first, last, tile)", "range(first, last, tile - 64)", 1000, 7, "step is 0"),
    ("k[tl.cores(tl.ceil_div(n, 8))](x, y, n, tile)", "k[1](x, y, n + 8, tile)", 1000, 9, "which has 1000"),
    ("range(first, last, tile)", "range(first, last // (n - n), tile)", 1000, 7, "division by zero"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "n", "line", "text"), RUN)
def test_a_rule_of_the_interpreter(old: str, new: str, n: int, line: int, text: str | None) -> None:
    assert old in KERNEL
    error = error_of(KERNEL.replace(old, new, 1), run=True, n=n)
    if text is not None:
        assert text in str(error)
        assert error.line == line, str(error)


def test_cores_that_wait_for_ever_leave_numpy_as_it_was() -> None:
    """They are closed wherever the garbage collector finds them: a state that they had set could not be taken back."""
    waiting = KERNEL.replace("        v = ", "        if core == 0:\n            tl.sync_all()\n        v = ", 1)
    before = np.geterr()
    held = [error_of(waiting, run=True, n=1000)]
    assert np.geterr() == before
    contextvars.copy_context().run(held.clear)
    gc.collect()  # what couldn't be closed is an error of this test


def test_blocks_hold_what_belongs_there() -> None:
    blocks = KERNEL.replace(
        "        v = tl.load(x + at + tl.arange(0, count))\n        tl.store(y + at + tl.arange(0, count), v * 2.0)\n",
        "        with tl.copyin():\n            v = tl.load(x + at + tl.arange(0, count))\n"
        "        with tl.compute():\n            w = v * 2.0\n"
        "        with tl.copyout():\n            tl.store(y + at + tl.arange(0, count), w)\n",
    )
    x = np.arange(100, dtype=np.float32)
    np.testing.assert_array_equal(interpret(read_text(blocks), {"x": x})["y"], 2 * x)
    assert "tl.compute" in str(error_of(blocks.replace("tl.compute", "tl.copyin", 1)))
    assert "in a block" in str(
        error_of(blocks.replace("            w = v * 2.0", "            with tl.copyin(): pass"))
    )


def test_cores_may_not_touch_one_element() -> None:
    racy = KERNEL.replace("tl.store(y + at", "tl.store(y + at - first", 1)
    assert "as core 0 did" in str(error_of(racy, run=True))
    assert "one core" in str(error_of(racy, run=True))
    assert error_of(racy, run=True, machine=Machine(cores=2)).line == 10
