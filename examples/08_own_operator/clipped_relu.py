"""min(max(x, 0), limit) in the tile language: a host function that looks at shapes, a kernel that one core runs."""

import ascendopt_tune.dsl as tl


@tl.kernel
def clipped_relu_kernel(x, y, n, tile, limit):
    core, cores = tl.program_id(0), tl.num_programs(0)
    first, last = tl.split(n, core, cores, unit=8)
    for at in range(first, last, tile):
        count = min(tile, last - at)
        v = tl.relu(tl.load(x + at + tl.arange(0, count)))
        tl.store(y + at + tl.arange(0, count), tl.minimum(v, limit))


@tl.host
def clipped_relu(x, y, limit=6.0):
    """Zero below zero, limit above limit."""
    n = x.numel
    tile = tl.knob("TILE_LENGTH", 1024)
    clipped_relu_kernel[tl.cores(tl.ceil_div(n, 8))](x, y, n, tile, limit)
