"""Clamps to a range, and counts in an integer what was outside."""

import ascendopt_tune.dsl as tl


@tl.kernel
def clamp_count_kernel(x, y, count, n, tile, low, high):
    core, cores = tl.program_id(0), tl.num_programs(0)
    if core == 0:
        tl.store(count + tl.arange(0, 1), tl.zeros(8))
    tl.sync_all()
    first, last = tl.split(n, core, cores, unit=8)
    outside = tl.zeros(1)
    for at in range(first, last, tile):
        length = min(tile, last - at)
        v = tl.load(x + at + tl.arange(0, length))
        w = tl.minimum(tl.maximum(v, low), high)
        tl.store(y + at + tl.arange(0, length), w)
        outside += tl.reduce_sum(tl.where(v == w, 0.0, 1.0))
    if first < last:
        tl.atomic_add(count + tl.arange(0, 1), outside)


@tl.host
def clamp_count(x, y, count, low=-0.5, high=0.5):
    n = x.numel
    tl.output(count, (1,), tl.float32)
    tile = tl.knob("TILE_LENGTH", 1024)
    clamp_count_kernel[tl.cores(tl.ceil_div(n, 8))](x, y, count, n, tile, low, high)
