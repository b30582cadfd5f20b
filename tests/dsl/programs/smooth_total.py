"""Of every row the running total of the mean of three neighbours in steps of two; zeros stand beyond the ends."""

import ascendopt_tune.dsl as tl


@tl.kernel
def smooth_total_kernel(x, mask, y, rows, cols, taken, wide):
    core, cores = tl.program_id(0), tl.num_programs(0)
    line = tl.alloc_ub(wide, tl.float32)
    for row in tl.split(rows, core, cores):
        tl.load(x + row * cols + tl.arange(0, cols), line, before=1, after=2, other=0.0)
        near = tl.take(line, 0, 2, taken) + tl.take(line, 1, 2, taken) + tl.take(line, 2, 2, taken)
        bits = tl.load(mask + row * taken + tl.arange(0, taken), dtype=tl.float16)
        wanted = tl.cast(bits, tl.float32)
        both = tl.cumsum(near / 3.0 * wanted) + tl.cumprod(wanted, reverse=True)
        tl.store(y + row * taken + tl.arange(0, taken), both)


@tl.host
def smooth_total(x, mask: tl.bool, y):
    rows, cols = x.shape
    taken = tl.ceil_div(cols, 2)
    wide = tl.align(cols + 3, 8)
    tl.output(y, (rows, taken), tl.float32)
    smooth_total_kernel[tl.cores(rows)](x, mask, y, rows, cols, taken, wide)
