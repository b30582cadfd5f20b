"""Where a lowered program's buffers lie, and what is in them before it begins: read from its text."""

from __future__ import annotations

import re

import pytest

from ascendopt_tune.dsl import DslError, launch_of, read_text
from ascendopt_tune.dsl.lower import lower

KERNEL = """\
import ascendopt_tune.dsl as tl

@tl.kernel
def k(x, y, n, tile):
    for at in range(0, n, tile):
        m = min(tile, n - at)
        v = tl.load(x + at + tl.arange(0, m))
        tl.store(y + at + tl.arange(0, m), {value})

@tl.host
def f(x, y):
    n = x.numel
    tile = tl.knob("TILE", 1000)
    {knob}
    k[1](x, y, n, tile)
"""


def text(value: str, knob: str = "pass") -> str:
    return KERNEL.format(value=value, knob=knob)


def kernel(value: str) -> str:
    return lower(read_text(text(value))).files["op_kernel/f.cpp"]


def test_a_knob_says_how_many_buffers_queues_have() -> None:
    single = text("v * 2.0", 'buffers = tl.knob("BUFFER_NUM", 1, why="one tile a core")')
    host = lower(read_text(single)).files["op_host/f.cpp"]
    assert "constexpr uint32_t BUFFER_NUM = 1;  // one tile a core" in host
    assert host.count("BUFFER_NUM = ") == 1
    shapes = {"x": (1 << 20,)}
    one = launch_of(read_text(single), shapes)
    assert launch_of(read_text(single), shapes, knobs={"BUFFER_NUM": 3}).ub_bytes == 3 * one.ub_bytes - 2 * 256
    assert launch_of(read_text(text("v * 2.0")), shapes).ub_bytes == 2 * one.ub_bytes - 256
    with pytest.raises(DslError, match="queues are single"):
        launch_of(read_text(single), shapes, knobs={"TILE": 40000})


def test_the_only_number_that_becomes_a_tile_is_written_once() -> None:
    once = kernel("tl.sigmoid(tl.sigmoid(v))")
    assert re.findall(r"Duplicate\(fillTile, ([^,]+),", once) == ["1.0f"]
    assert once.index("Duplicate(") < once.index("void Process()")
    several = kernel("tl.sigmoid(2.0 / (tl.abs(v) + 1.0))")
    assert several.index("Duplicate(") > several.index("void Process()")


def test_tiles_that_are_read_together_begin_in_other_banks() -> None:
    product = kernel("tl.exp(v) * v")
    begin, end = product.index("gapBuf, 256"), product.index("void Process()")
    (one, two) = re.search(r"Mul\((?:\w+), (\w+), (\w+),", product).groups()  # type: ignore[union-attr]
    behind = product[begin:end]
    queue = {"v": "xIn"}
    assert (f"({queue.get(one, one)}" in behind) != (f"({queue.get(two, two)}" in behind)
    assert "gapBuf" not in kernel("tl.exp(v)")
