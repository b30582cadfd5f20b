"""LayerNorm in its two forms, Normalize, WelfordUpdate and WelfordFinalize against numpy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from api_kernel import DTYPES, ApiKernel
from hypothesis import given, settings
from hypothesis import strategies as st
from norm_tiling import FIFTH, LEFT, SECOND, THIRD, area, at, bits, call_with, close, room_of, sizes, tiling, values

from ascendopt_tune.errors import DeviceError

FEW = settings(max_examples=30, deadline=None)
FLOATS = st.sampled_from(["float32", "float16"])
LAYER_NORM, LAYER_NORM_RSTD, NORMALIZE, UPDATE, FINALIZE = range(5)
#: Of the temporary memory: what is left behind the kernel's buffers, a tensor of the least, of the most.
ROOM = st.integers(0, 2)


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("norm")


@FEW
@given(dtype=FLOATS, b=st.integers(1, 3), s=st.integers(1, 5), blocks=st.integers(1, 20), reuse=st.booleans(),
       kind=ROOM, seed=st.integers(0, 99))  # fmt: skip
def test_layer_norm(
    kernel: ApiKernel, dtype: str, b: int, s: int, blocks: int, reuse: bool, kind: int, seed: int
) -> None:
    h, rows, reuse = blocks * (16 if dtype == "float16" else 8), b * s, reuse and dtype == "float32"
    x, gamma, beta = values(seed, (rows, h), dtype), values(seed + 1, h, dtype, 1), values(seed + 2, h, dtype, 1)
    shape = (x.itemsize, int(reuse), b, s, h, h)
    room = room_of(kind, sizes("layer_norm", *shape))
    head = [LAYER_NORM, DTYPES[dtype], room, int(reuse), 0, bits(1e-3)]
    call = call_with(head, tiling("layer_norm", room or LEFT, *shape))
    raw = kernel.run(call, area(first=x, third=gamma, fourth=beta), np.zeros(65536, np.uint8))
    wide = x.astype(np.float64)
    mean, variance = wide.mean(1), wide.var(1)
    want = (wide - mean[:, None]) / np.sqrt(variance[:, None] + float(np.dtype(dtype).type(1e-3))) * gamma + beta
    close(at(raw, 0, x.size, dtype).reshape(x.shape), want, dtype, 4)
    close(at(raw, THIRD, rows, dtype), mean, dtype)
    close(at(raw, FIFTH, rows, dtype), variance, dtype, 4)


@FEW
@given(dtype=FLOATS, rows=st.integers(1, 12), r=st.integers(1, 300), more=st.integers(0, 3), form=st.integers(0, 3),
       kind=ROOM, normalize=st.booleans(), seed=st.integers(0, 99))  # fmt: skip
def test_layer_norm_with_rstd_and_normalize(
    kernel: ApiKernel, dtype: str, rows: int, r: int, more: int, form: int, kind: int, normalize: bool, seed: int
) -> None:
    per_block = 16 if dtype == "float16" else 8
    padded, weights = -(-r // per_block) * per_block, "float32" if form == 1 else dtype
    x = np.zeros((rows + more, padded), dtype)
    x[:, :r] = values(seed, (rows + more, r), dtype)
    x[:, r:] = 7  # set to zero by LayerNorm, and left alone by Normalize
    gamma, beta = values(seed + 1, r, weights, 1), values(seed + 2, r, weights, 1)
    if not normalize and padded != r:
        x[rows:] = 0  # rows that the tiling counts and para doesn't are not cleared behind their end
    wide = x[:, :r].astype(np.float64)
    mean, variance = wide.mean(1), wide.var(1)
    shape = (rows + more, r)
    found = sizes("normalize", x.itemsize, gamma.itemsize, *shape)
    if not normalize:
        found = sizes("layer_norm_rstd", x.itemsize, 0, *shape)
    room = room_of(kind, found)
    head = [NORMALIZE if normalize else LAYER_NORM_RSTD, DTYPES[dtype], room, 0, form, bits(1e-3), rows, r, padded]
    call = call_with(head, tiling("layer_norm_rstd", room or LEFT, x.itemsize, 0, *shape))
    source = area(first=x, third=gamma, fourth=beta, fifth=mean.astype("f"), sixth=variance.astype("f"))
    raw = kernel.run(call, source, np.zeros(65536, np.uint8))
    rstd = 1 / np.sqrt(variance + np.float32(1e-3))
    want = (wide - mean[:, None]) * rstd[:, None]
    want = want * (1 if form == 2 else gamma) + (0 if form in (2, 3) else beta)
    got = at(raw, 0, rows * padded, dtype).reshape(rows, padded)[:, :r]
    close(got, want[:rows], dtype, 8)
    close(at(raw, FIFTH, rows, "float32"), rstd[:rows], "float32", 4)
    if not normalize:
        close(at(raw, THIRD, rows + more, "float32"), mean, "float32")


@FEW
@given(dtype=FLOATS, blocks=st.integers(1, 60), share=st.floats(0.01, 1), reuse=st.booleans(), in_place=st.booleans(),
       kind=ROOM, i=st.integers(1, 9), seed=st.integers(0, 99))  # fmt: skip
def test_welford_update(
    kernel: ApiKernel, dtype: str, blocks: int, share: float, reuse: bool, in_place: bool, kind: int, i: int, seed: int
) -> None:
    n = blocks * (16 if dtype == "float16" else 8)
    compute = max(1, int(n * share))
    x = values(seed, n, dtype)
    mean, variance = values(seed + 1, n, "float32"), np.abs(values(seed + 2, n, "float32"))
    room = room_of(kind, sizes("update", x.itemsize, int(reuse), 1, n))
    out = np.full(65536 // 4, 7, np.float32).view(np.uint8)
    call = [UPDATE, DTYPES[dtype], room, int(reuse), int(in_place), 0, 1, n, compute, bits(1 / i)]
    raw = kernel.run(call, area(first=x, second=mean, third=variance), out)
    wide, old = x.astype(np.float64), mean.astype(np.float64)
    new = old + (wide - old) / i
    spread = variance + (wide - old) * (wide - new)
    rest_mean, rest_variance = (mean, variance) if in_place else (np.full(n, 7), np.full(n, 7))
    close(at(raw, 0, compute, "float32"), new[:compute], "float32")
    close(at(raw, SECOND, compute, "float32"), spread[:compute], "float32", 4)
    np.testing.assert_array_equal(at(raw, 0, n, "float32")[compute:], rest_mean[compute:])
    np.testing.assert_array_equal(at(raw, SECOND, n, "float32")[compute:], rest_variance[compute:])


@FEW
@given(blocks=st.integers(1, 60), which=st.integers(0, 2), rounds=st.integers(1, 6), head=st.floats(0, 1), kind=ROOM,
       seed=st.integers(0, 99))  # fmt: skip
def test_welford_finalize(
    kernel: ApiKernel, blocks: int, which: int, rounds: int, head: float, kind: int, seed: int
) -> None:
    n = blocks * 8
    mean, variance = values(seed, n, "float32"), np.abs(values(seed + 1, n, "float32"))
    first = int(n * head) if which == 2 else n
    counts = np.full(n, rounds)
    if which == 1:
        counts = np.random.default_rng(seed).integers(1, 9, n)
    elif which == 2:
        counts[first:] = rounds + 1
    total = counts.sum()
    room = room_of(kind, sizes("finalize", 4, 0, n))
    tail = [rounds + 1, n - first] if which == 2 else [0, 0]
    call = [FINALIZE, 0, room, 0, 0, 0, int(which == 1), rounds, n, rounds, first, *tail, bits(1 / total)]
    source = area(first=mean, second=variance, third=counts.astype(np.int32))
    raw = kernel.run(call, source, np.full(65536, 9, np.uint8))
    wide = mean.astype(np.float64)
    all_mean = (wide * counts).sum() / total
    spread = ((wide - all_mean) ** 2 * counts + variance).sum() / total
    close(at(raw, 0, 8, "float32"), np.array([all_mean] + [0] * 7), "float32", 4)
    close(at(raw, SECOND, 8, "float32"), np.array([spread] + [0] * 7), "float32", 4)


PLAIN = (4, 0, 1, 1, 8, 8)


@pytest.mark.parametrize(
    ("head", "asked", "rule"),
    [
        ([LAYER_NORM], (LEFT, 4, 0, 1, 1, 9, 9), "multiple of 32 B"),
        ([LAYER_NORM], None, "GetLayerNormNDTilingInfo"),
        ([LAYER_NORM, 0, 0, 0, 0, 0, 1], (LEFT, *PLAIN), "output and gamma may not share"),
        ([LAYER_NORM, 0, 64], (LEFT, *PLAIN), "of 64 B is too small: 65280 B are what the tiling was made for"),
        ([LAYER_NORM, 1, 0, 1], (LEFT, 2, 0, 1, 1, 16, 16), "has to be false for half"),
        ([LAYER_NORM_RSTD, 0, 0, 0, 0, 0, 3, 8, 8], (LEFT, 4, 0, 2, 8), "at most the tiling's, 2"),
        ([LAYER_NORM_RSTD, 0, 0, 0, 0, 0, 2, 7, 8], (LEFT, 4, 0, 2, 8), "those of the tiling"),
        ([LAYER_NORM_RSTD, 0, 0, 0, 0, 0, 2, 8, 8], None, "GetLayerNormNDTilingInfo"),
        ([NORMALIZE, 0, 32, 0, 0, 0, 2, 8, 8], None, "of 32 B is too small: 64 B are the least"),
        ([NORMALIZE, 0, 0, 0, 0, 0, 2, 9, 8], None, "rLength has to be"),
        ([UPDATE, 0, 0, 0, 0, 0, 2, 8, 8], None, "rnLength has to be 1"),
        ([UPDATE, 0, 0, 0, 0, 0, 1, 9, 8], None, "multiple of 32 B"),
        ([UPDATE, 0, 0, 0, 0, 0, 1, 8, 0], None, "abComputeLength"),
        ([UPDATE, 0, 480, 0, 0, 0, 1, 8, 8], None, "512 B are the least"),
        ([FINALIZE, 0, 0, 0, 0, 0, 0, 1, 8, 1, 4, 0, 4], None, "tailCountLength has to be 0"),
        ([FINALIZE, 0, 0, 0, 0, 0, 0, 1, 8, 1, 4, 1, 3], None, "abLength together"),
        ([FINALIZE, 0, 992, 0, 0, 0, 0, 1, 8, 1, 8], None, "1024 B are the least"),
    ],
)
def test_rules_of_norms(kernel: ApiKernel, head: list[int], asked: tuple[int, ...] | None, rule: str) -> None:
    name = "layer_norm" if head[0] == LAYER_NORM else "layer_norm_rstd"
    call = call_with([*head, *[0] * (6 - len(head))], tiling(name, *asked) if asked else None)
    with pytest.raises(DeviceError, match=rule):
        kernel.run(call, np.zeros(16, np.float32), np.zeros(16, np.float32))


def test_more_memory_costs_less(kernel: ApiKernel) -> None:
    x, row = values(1, (12, 64), "float32"), values(2, 64, "float32")
    cycles = []
    shape = (4, 0, 3, 4, 64, 64)
    for room in reversed(sizes("layer_norm", *shape)):
        call = call_with([LAYER_NORM, 0, room, 0, 0, bits(1e-3)], tiling("layer_norm", room, *shape))
        kernel.run(call, area(first=x, third=row, fourth=row), np.zeros(65536, np.uint8))
        cycles.append(kernel.report["profile"]["aiv_vec_time_us"])
    assert cycles[1] < cycles[0] / 2
