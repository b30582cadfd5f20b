"""The sum of all elements: partial sums in the workspace, a meeting, one core adds them in order."""

import ascendopt_tune.dsl as tl


@tl.kernel
def total_kernel(x, part, y, n, tile):
    core, cores = tl.program_id(0), tl.num_programs(0)
    first, last = tl.split(n, core, cores, unit=8)
    total = 0.0
    for at in range(first, last, tile):
        count = min(tile, last - at)
        v = tl.load(x + at + tl.arange(0, count))
        total += tl.sum(v)
    mine = tl.full(8, total)
    tl.store(part + core * 8 + tl.arange(0, 8), mine)
    tl.sync_all()
    if core == 0:
        sums = tl.alloc_ub(8, tl.float32)
        whole = 0.0
        for c in range(0, cores):
            tl.load(part + c * 8 + tl.arange(0, 8), sums)
            whole += tl.extract_scalar(sums, 0)
        tl.store(y + tl.arange(0, 1), tl.full(8, whole))


@tl.host
def total(x):
    n = x.numel
    part = tl.workspace(tl.num_cores() * 8, tl.float32)
    y = tl.empty((1,), tl.float32)
    tile = tl.knob("TILE_LENGTH", 4096, why="one tile and its double buffer")
    total_kernel[tl.cores(tl.ceil_div(n, 8))](x, part, y, n, tile)
    return y
