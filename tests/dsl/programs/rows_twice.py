"""Rows twice: the forward pass of ``mhc_expand``, several rows a transfer."""

import ascendopt_tune.dsl as tl


@tl.kernel
def rows_twice_kernel(x, z, rows, cols, several):
    core, cores = tl.program_id(0), tl.num_programs(0)
    first, last = tl.split(rows, core, cores)
    for row in range(first, last, several):
        n = min(several, last - row)
        v = tl.load(x + row * cols + tl.arange(0, n)[:, None] * cols + tl.arange(0, cols)[None, :], dtype=tl.float16)
        tl.store(z + row * 2 * cols + tl.arange(0, n)[:, None] * (2 * cols) + tl.arange(0, cols)[None, :], v)
        tl.store(z + (row * 2 + 1) * cols + tl.arange(0, n)[:, None] * (2 * cols) + tl.arange(0, cols)[None, :], v)


@tl.host
def rows_twice(x: tl.float16, z: tl.float16, per_core: int = 8):
    """Every row twice; ``per_core``: rows of one core."""
    rows, cols = x.shape
    tl.output(z, (rows, 2, cols), tl.float16)
    several = tl.knob("ROWS", 4, why="rows of one transfer")
    rows_twice_kernel[tl.cores(tl.ceil_div(rows, per_core))](x, z, rows, cols, several)
