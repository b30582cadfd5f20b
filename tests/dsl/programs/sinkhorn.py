"""Rows and columns of 8 x 8 matrices normalized in turn: ``mhc_sinkhorn``, many matrices at a time."""

import ascendopt_tune.dsl as tl


@tl.kernel
def sinkhorn_kernel(x, z, matrices, several, iterations, epsilon):
    core, cores = tl.program_id(0), tl.num_programs(0)
    first, last = tl.split(matrices, core, cores)
    # Whose place differs in one bit: of the column (1, 2, 4) and of the row (8, 16, 32). Sums over three bits are in
    # every place at once. A quotient is rounded down by half a step less.
    place = tl.iota(several * 64)
    real = tl.cast(place, tl.float32)
    part = real * 0.5 - 0.25
    by2 = tl.cast(part, tl.int32)
    part = real * 0.25 - 0.375
    by4 = tl.cast(part, tl.int32)
    part = real * 0.125 - 0.4375
    by8 = tl.cast(part, tl.int32)
    part = real * 0.0625 - 0.46875
    by16 = tl.cast(part, tl.int32)
    part = real * 0.03125 - 0.484375
    by32 = tl.cast(part, tl.int32)
    part = real * 0.015625 - 0.4921875
    by64 = tl.cast(part, tl.int32)
    c1 = place + 1 - (place - by2 * 2) * 2
    c2 = place + 2 - (by2 - by4 * 2) * 4
    c4 = place + 4 - (by4 - by8 * 2) * 8
    r1 = place + 8 - (by8 - by16 * 2) * 16
    r2 = place + 16 - (by16 - by32 * 2) * 32
    r4 = place + 32 - (by32 - by64 * 2) * 64
    for at in range(first, last, several):
        n = min(several * 64, (last - at) * 64)
        v = tl.load(x + at * 64 + tl.arange(0, n))
        most = tl.maximum(v, tl.gather(v, c1, 0, n))
        most = tl.maximum(most, tl.gather(most, c2, 0, n))
        most = tl.maximum(most, tl.gather(most, c4, 0, n))
        m = tl.exp(v - most)
        for _ in range(iterations):
            s = m + tl.gather(m, c1, 0, n)
            s = s + tl.gather(s, c2, 0, n)
            s = s + tl.gather(s, c4, 0, n)
            m = m / (s + epsilon)
            s = m + tl.gather(m, r1, 0, n)
            s = s + tl.gather(s, r2, 0, n)
            s = s + tl.gather(s, r4, 0, n)
            m = m / (s + epsilon)
        tl.store(z + at * 64 + tl.arange(0, n), m)


@tl.host
def sinkhorn(x, iterations: int = 20, epsilon: float = 1e-6, per_core: int = 1):
    """exp(x - the row's largest), then rows and columns divided by their sums, ``iterations`` times each.

    ``per_core``: matrices of one core.
    """
    matrices, rows, cols = x.shape
    assert rows == 8, "matrices are 8 x 8"
    assert cols == 8, "matrices are 8 x 8"
    z = tl.empty_like(x)
    several = tl.knob("MATRICES", min(26, per_core), why="at a time: tables and tiles of so many in the Unified Buffer")
    sinkhorn_kernel[tl.cores(tl.ceil_div(matrices, per_core))](x, z, matrices, several, iterations, epsilon)
