"""What reaches beyond one element's place: cumsum, cumprod, take, loads with other elements at their ends, products."""

from __future__ import annotations

import re
from pathlib import Path

import lowered
import numpy as np
import pytest

from ascendopt_tune.dsl import DslError, interpret, read_file, read_text
from ascendopt_tune.dsl.lower import lower
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.nouns.outcome import Timed

RNG = np.random.default_rng(11)
KERNEL = """\
import ascendopt_tune.dsl as tl

@tl.kernel
def k(x, y, n):
    line = tl.alloc_ub(n, tl.float32)
    v = tl.load(x + tl.arange(0, n))
    w = tl.cumsum(v)
    tl.store(y + tl.arange(0, n), w)

@tl.host
def f(x, y):
    n = x.numel
    k[1](x, y, n)
"""


@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (5, 77), (60, 300)])
def test_the_interpreter_computes_what_numpy_does(shape: tuple[int, int]) -> None:
    rows, cols = shape
    taken = -(-cols // 2)
    x = RNG.standard_normal(shape).astype(np.float32)
    mask = RNG.random((rows, taken)) < 0.7
    wide = np.pad(x.astype(np.float64), ((0, 0), (1, 2)))
    near = sum(wide[:, k : k + 2 * taken - 1 : 2] for k in range(3)) / 3
    back = np.cumprod(mask[:, ::-1].astype(float), axis=1)[:, ::-1]
    found = interpret(read_file(lowered.PROGRAMS / "smooth_total.py"), {"x": x, "mask": mask})["y"]
    np.testing.assert_allclose(found, np.cumsum(near * mask, axis=1) + back, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("inputs", ["x=float32[7,77] mask=bool[7,39]", "x=float32[50,1001] mask=bool[50,501]"])
def test_the_lowered_program_passes_the_gate(inputs: str, evaluator: Evaluator, tmp_path: Path) -> None:
    operator = lowered.project(read_file(lowered.PROGRAMS / "smooth_total.py"), tmp_path / "smooth_total")
    found = lowered.checked(evaluator, operator, inputs)
    assert isinstance(found.outcome, Timed), found.outcome
    assert not found.hazards


def test_a_scalar_may_be_called_as_a_function_is() -> None:
    text = KERNEL.replace("    w = tl.cumsum(v)", "    sqrt = tl.sqrt(tl.sum(v))\n    w = v * sqrt")
    files = lower(read_text(text)).files
    assert "float sqrt_ = static_cast<float>(sqrt(" in files["op_kernel/f.cpp"]


def test_a_fill_is_as_long_as_it_says() -> None:
    text = KERNEL.replace("w = tl.cumsum(v)", "w = tl.full(min(n, 5), 2.0)").replace("tl.arange(0, n), w)",
                                                                                  "tl.arange(0, 5), w)")  # fmt: skip
    text = text.replace("    n = x.numel\n", "    n = x.numel\n    tl.output(y, (5,), tl.float32)\n")
    assert interpret(read_text(text), {"x": np.ones(9, np.float32)})["y"].tolist() == [2.0] * 5


def test_gather_takes_what_the_index_says() -> None:
    text = KERNEL.replace(
        "w = tl.cumsum(v)", "where = tl.load(i + tl.arange(0, n), dtype=tl.int32)\n    w = tl.gather(v, where)"
    )
    text = text.replace("def k(x, y, n)", "def k(x, i, y, n)").replace("def f(x, y)", "def f(x, i: tl.int64, y)")
    program = read_text(text.replace("k[1](x, y, n)", "k[1](x, i, y, n)"), "program.py")
    x, index = RNG.standard_normal(9).astype(np.float32), RNG.integers(0, 9, 9)
    np.testing.assert_array_equal(interpret(program, {"x": x, "i": index})["y"], x[index])
    with pytest.raises(DslError, match="element 9 of v, of which 9 are in use") as caught:
        interpret(program, {"x": x, "i": np.full(9, 9)})
    assert caught.value.line == 8
    assert "Gather(" in lower(program).files["op_kernel/f.cpp"]


def rows_taken(start: int, step: int) -> str:
    """Rows of x, ``step`` apart, and the first columns of these from places that begin with the second row."""
    text = KERNEL.replace("(x, y, n)", "(x, y, n, rows, cols, out)")
    sizes = "    rows, cols = x.shape\n    out = tl.ceil_div(rows, 2)\n    n = out * cols\n"
    text = text.replace("    n = x.numel\n", sizes + "    tl.output(y, (out, cols), tl.float32)\n")
    text = text.replace("    line = tl.alloc_ub(n, tl.float32)\n", "")
    text = text.replace("tl.arange(0, n))", "tl.arange(0, rows)[:, None] * cols + tl.arange(0, cols)[None, :])", 1)
    text = text.replace("w = tl.cumsum(v)", f"taken = tl.take_rows(v, {start}, {step}, out, 7.0)\n"
        "    place = tl.iota(cols)\n    w = tl.gather(taken, place) + 1.0")  # fmt: skip
    return text.replace("tl.arange(0, n), w)", "tl.arange(0, cols), w)\n    tl.store(y + cols + "
        "tl.arange(0, out - 1)[:, None] * cols + tl.arange(0, cols)[None, :], taken)")  # fmt: skip


def test_rows_are_taken_a_step_apart() -> None:
    x = RNG.standard_normal((5, 12)).astype(np.float32)
    found = interpret(read_text(rows_taken(-2, 2)), {"x": x})["y"]
    np.testing.assert_array_equal(found[0], np.full(12, 8.0))
    np.testing.assert_array_equal(found[1:], [[7.0] * 12, x[0]])
    with pytest.raises(DslError, match="in steps of 0"):
        interpret(read_text(rows_taken(0, 0)), {"x": x})
    with pytest.raises(DslError, match="element 12 of taken, of which 3 by 12 are in use"):
        interpret(read_text(rows_taken(0, 1).replace("iota(cols)", "iota(cols + 4)")), {"x": x})


@pytest.mark.parametrize(
    ("start", "step", "shape"), [(-1, 3, "7,70"), (1, 1, "9,13"), (-9, 2, "8,8"), (2, 6, "11,404")]
)
def test_taken_rows_on_the_device(start: int, step: int, shape: str, evaluator: Evaluator, tmp_path: Path) -> None:
    """With masks, tails, nothing inside, and rows too far apart for a stride of an instruction."""
    operator = lowered.project(read_text(rows_taken(start, step), "program.py"), tmp_path / "op")
    result = lowered.checked(evaluator, operator, f"x=float32[{shape}]")
    assert isinstance(result.outcome, Timed), result.outcome
    assert not result.hazards


PART = "index = tl.iota(n)\n    {more}w = tl.gather(v, index, 2, n - 2) + tl.gather(v, index, 1, n - 2)"


def parted(more: str = "") -> str:
    text = KERNEL.replace("w = tl.cumsum(v)", PART.format(more=more)).replace(
        "tl.arange(0, n), w)", "tl.arange(0, n - 2), w)"
    )
    return text.replace("    n = x.numel\n", "    n = x.shape[0]\n    tl.output(y, (x.shape[0] - 2,), tl.float32)\n")


def test_gather_takes_a_part_from_a_start_on() -> None:
    x = RNG.standard_normal(30).astype(np.float32)
    program = read_text(parted(), "program.py")
    np.testing.assert_array_equal(interpret(program, {"x": x})["y"], x[2:] + x[1:-1])
    with pytest.raises(DslError, match="element 30 of v, of which 30 are in use"):
        interpret(read_text(parted().replace("index, 2,", "index, 3,")), {"x": x})
    with pytest.raises(DslError, match="29 places of index, of which 28 are in use"):
        interpret(
            read_text(parted().replace("tl.iota(n)", "tl.iota(n - 2)").replace("1, n - 2)", "1, n - 1)")), {"x": x}
        )


def test_offsets_of_the_same_places_are_computed_once() -> None:
    once = lower(read_text(parted())).files["op_kernel/f.cpp"]
    assert once.count("Gather(") == 2
    assert once.count("Muls(offsetTile, ") == 1
    changed = parted().replace("    w = tl.gather(v, index, 2, n - 2) + ", "    u = tl.gather(v, index, 2, n - 2)\n"
                               "    index = tl.minimum(index, 5)\n    w = u + ")  # fmt: skip
    again = lower(read_text(changed)).files["op_kernel/f.cpp"]
    assert again.count("Muls(offsetTile, ") == 2


def test_names_and_texts_don_t_meet_those_of_the_printed_text() -> None:
    """Members that the lowering makes have names of their own, and no text leaves its line."""
    steps = "index = tl.cast(v, tl.int32)\n    xGm = tl.gather(v, index)\n    w = tl.cumsum(xGm)"
    text = KERNEL.replace("w = tl.cumsum(v)", steps).replace("(x, y, n)\n", "(x, y, n)  # \\\n", 1)
    knob = 'n = x.numel\n    tile = tl.knob("TILE", 8, why="a\\nint x; \\\\")\n'
    files = lower(read_text(text.replace("n = x.numel\n", knob), "program.py")).files
    kernel = files["op_kernel/f.cpp"]
    members = re.findall(r"\w+(?=[,;])", "".join(re.findall(r"TBuf<.*|(?:Local|Global)Tensor<.*> \w+;", kernel)))
    assert {"indexBuf", "indexTileBuf", "xGm", "xGm_"} <= set(members)
    assert len(members) == len(set(members))
    assert "TILE = 8;  // a int x;\n" in files["op_host/f.cpp"]
    assert not any(line.endswith("\\") for line in kernel.splitlines() if "//" in line)
    with pytest.raises(DslError, match="no name of a knob"):
        read_text(KERNEL.replace("n = x.numel", 'n = tl.knob("T = 1; int x", 8)'), "program.py")


READ = [
    ("tl.cumsum(v)", "tl.gather(v, v)", "a float32 tile, and an int32 tile"),
    ("tl.cumsum(v)", "tl.gather(v, v, 1)", "a start and a count"),
    ("tl.cumsum(v)", "tl.iota(n, 2)", "takes a length"),
    ("tl.cumsum(v)", "tl.cumsum(v, v)", "takes a tile, and reverse"),
    ("tl.cumsum(v)", "tl.take(v, 0, 2)", "a start, a step and a count"),
    ("tl.cumsum(v)", "tl.take_rows(v, 0, 2, n)", "what stands where there are no rows"),
    ("tl.cumsum(v)", "tl.take_rows(v, 0, 2, n, 0.0)", "has one axis"),
    ("w = tl.cumsum(v)", "tl.load(x + tl.arange(0, n), line, before=1)", "need a buffer and other="),
    ("w = tl.cumsum(v)", "w = tl.reduce_prod(v)", "a product is taken over the rows"),
]
RUN = [
    ("tl.cumsum(v)", "tl.take(v, 1, 1, n)", "of which 20 are in use"),
    ("tl.cumsum(v)", "tl.take(v, 0, 0, n)", "in steps of 0"),
    ("w = tl.cumsum(v)", "tl.load(x + tl.arange(0, n), line, before=9, after=0, other=0.0)\n    w = v * 1.0", "0 to 8"),
]


@pytest.mark.parametrize(("old", "new", "text"), READ)
def test_what_the_reader_refuses(old: str, new: str, text: str) -> None:
    with pytest.raises(DslError, match=text) as caught:
        read_text(KERNEL.replace(old, new), "program.py")
    assert caught.value.line == 7


@pytest.mark.parametrize(("old", "new", "text"), RUN)
def test_what_the_interpreter_finds(old: str, new: str, text: str) -> None:
    with pytest.raises(DslError, match=text) as caught:
        interpret(read_text(KERNEL.replace(old, new), "program.py"), {"x": np.ones(20, np.float32)})
    assert caught.value.line == 7
