"""Softmax over the last axis, a row in tiles: maximum and sum in one pass, the quotient in a second one."""

import ascendopt_tune.dsl as tl


@tl.kernel
def row_softmax_kernel(x, y, rows, cols, tile):
    core, cores = tl.program_id(0), tl.num_programs(0)
    for row in tl.split(rows, core, cores):
        largest = -tl.inf
        total = 0.0
        shift = tl.alloc_ub(8, tl.float32)
        for at in range(0, cols, tile):
            n = min(tile, cols - at)
            v = tl.load(x + row * cols + at + tl.arange(0, n))
            before = largest
            largest = max(largest, tl.max(v))
            tl.duplicate(shift, before - largest)
            tl.exp(shift, shift)
            total = total * tl.extract_scalar(shift, 0) + tl.sum(tl.exp(v - largest))
        for at in range(0, cols, tile):
            n = min(tile, cols - at)
            v = tl.load(x + row * cols + at + tl.arange(0, n))
            tl.store(y + row * cols + at + tl.arange(0, n), tl.exp(v - largest) / total)


@tl.host
def row_softmax(x, y):
    cols = x.shape[-1]
    rows = x.numel // cols
    tile = tl.knob("TILE_LENGTH", min(2048, tl.align(cols, 8)))
    row_softmax_kernel[tl.cores(rows)](x, y, rows, cols, tile)
