"""Random programs of the tile language: text, an input, and whether both sides agree bit for bit."""

from __future__ import annotations

import random
from dataclasses import dataclass

_EXACT = ("{a} + {b}", "{a} - {b}", "{a} * {b}", "tl.maximum({a}, {b})", "tl.minimum({a}, {b})", "tl.abs({a})", "-{a}",
          "tl.relu({a})", "{a} * {s}", "{s} - {a}", "{a} / {s}", "tl.where({a} > {b}, {a}, {s})",
          "tl.where({a} <= {s}, {b}, {a})", "tl.where({b} < {a}, {s}, {b})")  # fmt: skip
_ROUGH = ("tl.exp(tl.minimum({a}, 3.0))", "tl.sigmoid({a})", "tl.tanh({a})", "tl.erf({a})",
          "tl.sqrt(tl.abs({a}))", "tl.log(tl.abs({a}) + 1.0)", "tl.rsqrt(tl.abs({a}) + 0.5)",
          "tl.reciprocal(tl.abs({a}) + 0.5)")  # fmt: skip

_FLAT = """\
    first, last = tl.split(rows * cols, core, cores, unit=8)
    for at in range(first, last, tile):
        n = min(tile, last - at)
        {load} + at + tl.arange(0, n))
{body}
        tl.store(y + at + tl.arange(0, n), {last})
"""
_ROWS = """\
    for row in tl.split(rows, core, cores):
        total = 0.0
        for at in range(0, cols, tile):
            n = min(tile, cols - at)
            v = tl.load(x + row * cols + at + tl.arange(0, n))
            total = {fold}
        for at in range(0, cols, tile):
            n = min(tile, cols - at)
            {load} + row * cols + at + tl.arange(0, n))
{body}
            tl.store(y + row * cols + at + tl.arange(0, n), {last} + total)
"""
_TILES = """\
    first, last = tl.split(rows, core, cores, unit=8)
    for row in range(first, last, 8):
        h = min(8, last - row)
        v = tl.load(x + row * cols + tl.arange(0, h)[:, None] * cols + tl.arange(0, cols)[None, :])
        u = v * 0.5
{body}
        tl.store(y + row * cols + tl.arange(0, h)[:, None] * cols + tl.arange(0, cols)[None, :], {last})
"""
_HOST = """
@tl.host
def program(x: tl.{dtype}, y: tl.{dtype}, scale=0.75):
    rows, cols = x.shape
    tile = tl.knob("TILE_LENGTH", {tile})
    kernel[tl.cores({cores})](x, y, rows, cols, tile, scale)
"""


@dataclass(frozen=True)
class RandomProgram:
    text: str
    inputs: str


def random_program(seed: int) -> RandomProgram:
    """A program over ``x[rows, cols]``: elementwise, in tiles of a row with a fold over it, or in tiles of rows."""
    rng = random.Random(seed)
    shape = (rng.randint(1, 60), rng.randint(1, 300))
    form = rng.choice((_FLAT, _FLAT, _ROWS, _TILES))
    names, lines = ["v", "u"], []
    for i in range(rng.randint(1, 6)):
        rough = i > 3 and rng.random() < 0.7
        pattern = rng.choice(_ROUGH if rough else _EXACT)
        number = rng.choice((f"{rng.uniform(-2, 2):.3f}", "scale"))
        name = rng.choice(("v", "u", f"w{i}")) if rng.random() < 0.4 else f"w{i}"
        lines.append(f"{name} = {pattern.format(a=rng.choice(names), b=rng.choice(names), s=number)}")
        if name not in names:
            names.append(name)
    indent = " " * (12 if form is _ROWS else 8)
    load = "v = tl.load(x" if form is not _TILES else ""
    body = "\n".join(indent + line for line in ["u = v * 0.5", *lines])
    if form is _TILES:
        body = "\n".join(indent + line for line in lines)
    fold = rng.choice(("max(total, tl.max(v))", "min(total, tl.min(v))", "max(total, tl.max(tl.abs(v)))"))
    kernel = form.format(load=load, body=body, last=names[-1], fold=fold)
    head = "import ascendopt_tune.dsl as tl\n\n\n@tl.kernel\ndef kernel(x, y, rows, cols, tile, scale):\n"
    head += "    core, cores = tl.program_id(0), tl.num_programs(0)\n"
    dtype = rng.choice(("float32", "float32", "float16", "bfloat16"))
    host = _HOST.format(
        dtype=dtype, tile=rng.choice((8, 64, 104, 1024)), cores=rng.choice(("rows", "rows * cols", "5"))
    )
    return RandomProgram(head + kernel + host, f"x={dtype}[{shape[0]},{shape[1]}]")
