"""Of every row of a narrow matrix the sum, the largest and the smallest element; several rows a tile."""

import ascendopt_tune.dsl as tl


@tl.kernel
def row_statistics_kernel(x, sums, large, small, rows, cols, height):
    core, cores = tl.program_id(0), tl.num_programs(0)
    first, last = tl.split(rows, core, cores, unit=8)
    for row in range(first, last, height):
        n = min(height, last - row)
        with tl.copyin():
            v = tl.load(x + row * cols + tl.arange(0, n)[:, None] * cols + tl.arange(0, cols)[None, :])
        with tl.compute():
            s = tl.reduce_sum(v, axis=1)
            g = tl.reduce_max(v, axis=1)
            m = tl.reduce_min(v, axis=1)
        with tl.copyout():
            tl.store(sums + row + tl.arange(0, n), s)
            tl.store(large + row + tl.arange(0, n), g)
            tl.store(small + row + tl.arange(0, n), m)


@tl.host
def row_statistics(x, sums, large, small):
    rows, cols = x.shape
    assert cols <= 512, "rows of at most 512 elements"
    tl.output(sums, (rows,), tl.float32)
    tl.output(large, (rows,), tl.float32)
    tl.output(small, (rows,), tl.float32)
    height = tl.knob("ROWS_PER_TILE", 32)
    row_statistics_kernel[tl.cores(tl.ceil_div(rows, 8))](x, sums, large, small, rows, cols, height)
