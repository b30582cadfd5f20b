"""The mean over the middle axis of [A, R, B]: lanes are B, rows are added; half precision in and out."""

import ascendopt_tune.dsl as tl


@tl.kernel
def middle_mean_kernel(x, y, outer, middle, inner, tile):
    core, cores = tl.program_id(0), tl.num_programs(0)
    chunks = tl.ceil_div(inner, tile)
    for piece in tl.split(outer * chunks, core, cores):
        a = piece // chunks
        at = piece % chunks * tile
        n = min(tile, inner - at)
        total = tl.load(x + a * middle * inner + at + tl.arange(0, n))
        for r in range(1, middle):
            row = tl.load(x + (a * middle + r) * inner + at + tl.arange(0, n))
            total += row
        tl.store(y + a * inner + at + tl.arange(0, n), total / middle)


@tl.host
def middle_mean(x: tl.float16, y: tl.float16):
    outer, middle, inner = x.shape
    tl.output(y, (outer, inner), tl.float16)
    tile = tl.knob("TILE_LENGTH", min(2048, tl.align(inner, 16)))
    middle_mean_kernel[tl.cores(outer * tl.ceil_div(inner, tile))](x, y, outer, middle, inner, tile)
