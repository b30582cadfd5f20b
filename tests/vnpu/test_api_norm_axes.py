"""LayerNormGrad, LayerNormGradBeta, BatchNorm, DeepNorm and GroupNorm against numpy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from api_kernel import DTYPES, ApiKernel
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from norm_tiling import (
    FIFTH,
    FOURTH,
    LEFT,
    SECOND,
    THIRD,
    area,
    at,
    bits,
    call_with,
    close,
    room_of,
    sizes,
    tiling,
    values,
)  # fmt: skip

from ascendopt_tune.errors import DeviceError

FEW = settings(max_examples=30, deadline=None)
FLOATS = st.sampled_from(["float32", "float16"])
GRAD, GRAD_BETA, BATCH, DEEP, GROUP = range(5)
ROOM = st.integers(0, 2)
EPSILON = 1e-3


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("norm_axes")


def epsilon_of(dtype: str) -> float:
    return float(np.dtype(dtype).type(EPSILON))


@FEW
@given(dtype=FLOATS, b=st.integers(1, 2), s=st.integers(1, 8), blocks=st.integers(1, 12), reuse=st.booleans(),
       shared=st.booleans(), seed=st.integers(0, 99))  # fmt: skip
def test_layer_norm_grad(
    kernel: ApiKernel, dtype: str, b: int, s: int, blocks: int, reuse: bool, shared: bool, seed: int
) -> None:
    h, rows, reuse = blocks * (16 if dtype == "float16" else 8), b * s, reuse and dtype == "float32"
    dy, x, gamma = values(seed, (rows, h), dtype, 1), values(seed + 1, (rows, h), dtype), values(seed + 2, h, dtype, 1)
    mean, variance = x.astype("d").mean(1).astype(dtype), x.astype("d").var(1).astype(dtype)
    room = 65536 if shared else 0
    words = tiling("layer_norm_grad", (room or LEFT) // 2, x.itemsize, int(reuse), b, s, h, h)
    assert words is not None
    # Pieces are rounded up to whole blocks of rows, and may so take more than the tiling was made for.
    last, piece, rounds, rest = words[26 if dtype == "float16" else 20], words[5], words[7], words[8]
    assume(4 * (last + (piece if rounds else rest)) <= LEFT)
    call = call_with([GRAD, DTYPES[dtype], room, int(reuse), 0, bits(EPSILON)], words)
    source = area(first=dy, second=x, third=gamma, fifth=variance, sixth=mean)
    raw = kernel.run(call, source, np.zeros(65536, np.uint8))
    scaled, away = dy.astype("d") * gamma, x.astype("d") - mean.astype("d")[:, None]
    spread = variance.astype("d")[:, None] + epsilon_of(dtype)
    of_variance = (-0.5 * scaled * away * spread**-1.5).sum(1, keepdims=True)
    of_mean = (-scaled * spread**-0.5).sum(1, keepdims=True) + of_variance * (-2 * away).sum(1, keepdims=True) / h
    want = scaled * spread**-0.5 + of_variance * 2 / h * away + of_mean / h
    close(at(raw, 0, x.size, dtype).reshape(x.shape), want, dtype, 8)
    close(at(raw, SECOND, x.size, dtype).reshape(x.shape), away * spread**-0.5, dtype, 4)


@FEW
@given(dtype=FLOATS, b=st.integers(1, 2), s=st.integers(1, 8), blocks=st.integers(1, 12), less=st.integers(0, 7),
       reuse=st.booleans(), kind=ROOM, seed=st.integers(0, 99))  # fmt: skip
def test_layer_norm_grad_beta(
    kernel: ApiKernel, dtype: str, b: int, s: int, blocks: int, less: int, reuse: bool, kind: int, seed: int
) -> None:
    h, rows, reuse = blocks * (16 if dtype == "float16" else 8), b * s, reuse and dtype == "float32"
    res, dy = values(seed, (rows, h), dtype), values(seed + 1, (rows, h), dtype)
    res[:, h - less :] = dy[:, h - less :] = 0
    shape = (res.itemsize, int(reuse), b, s, h, h - less)
    room = room_of(kind, sizes("layer_norm_grad_beta", *shape))
    words = tiling("layer_norm_grad_beta", room or LEFT, *shape)
    call = call_with([GRAD_BETA, DTYPES[dtype], room, int(reuse)], words)
    raw = kernel.run(call, area(first=res, second=dy), np.zeros(65536, np.uint8))
    close(at(raw, THIRD, h, dtype), (dy.astype("d") * res).sum(0), dtype, 4)
    close(at(raw, FOURTH, h, dtype), dy.astype("d").sum(0), dtype, 4)


@FEW
@given(dtype=FLOATS, b=st.integers(1, 24), s=st.integers(1, 3), blocks=st.integers(1, 8), basic=st.booleans(),
       kind=ROOM, in_place=st.booleans(), seed=st.integers(0, 99))  # fmt: skip
def test_batch_norm(
    kernel: ApiKernel, dtype: str, b: int, s: int, blocks: int, basic: bool, kind: int, in_place: bool, seed: int
) -> None:
    h = 64 * min(blocks, 2) if basic else blocks * (16 if dtype == "float16" else 8)
    b = -(-b // 8) * 8 if basic else b
    columns = s * h
    x, gamma, beta = values(seed, (b, columns), dtype), values(seed + 1, b, dtype, 1), values(seed + 2, b, dtype, 1)
    assume(x.nbytes <= SECOND)
    found = sizes("batch_norm", x.itemsize, 0, b, s, h, b, int(basic))
    assume(found[1] <= LEFT)
    room = room_of(kind, found)
    words = tiling("batch_norm", room or LEFT, x.itemsize, 0, b, s, h, b, int(basic))
    head = [BATCH, DTYPES[dtype], room, 0, int(in_place), bits(EPSILON), int(basic), 0, x.size]
    raw = kernel.run(call_with(head, words), area(first=x, third=gamma, fourth=beta), np.zeros(65536, np.uint8))
    wide = x.astype(np.float64)
    mean, variance = wide.mean(0), wide.var(0)
    normal = (wide - mean) / np.sqrt(variance + epsilon_of(dtype))
    close(at(raw, 0, x.size, dtype).reshape(x.shape), normal * gamma[:, None] + beta[:, None], dtype, 8)
    close(at(raw, THIRD, columns, dtype), mean, dtype)
    close(at(raw, FOURTH, columns, dtype), variance, dtype, 4)


@FEW
@given(dtype=FLOATS, b=st.integers(1, 2), s=st.integers(1, 8), blocks=st.integers(1, 12), less=st.integers(0, 7),
       basic=st.booleans(), reuse=st.booleans(), kind=ROOM, seed=st.integers(0, 99))  # fmt: skip
def test_deep_norm(
    kernel: ApiKernel, dtype: str, b: int, s: int, blocks: int, less: int, basic: bool, reuse: bool, kind: int,
    seed: int
) -> None:  # fmt: skip
    h = 64 * min(blocks, 4) if basic else blocks * (16 if dtype == "float16" else 8)
    s, less, reuse = (8 if basic else s), (0 if basic else less), reuse and dtype == "float32"
    rows = b * s
    x, gx = values(seed, (rows, h), dtype), values(seed + 1, (rows, h), dtype)
    assume(x.nbytes <= SECOND)
    x[:, h - less :] = gx[:, h - less :] = 0
    gamma, beta = values(seed + 2, h, dtype, 1), values(seed + 3, h, dtype, 1)
    found = sizes("deep_norm", x.itemsize, int(reuse), b, s, h, h - less, int(basic))
    room = room_of(kind, found)
    words = tiling("deep_norm", room or LEFT, x.itemsize, int(reuse), b, s, h, h - less, int(basic))
    call = call_with([DEEP, DTYPES[dtype], room, int(reuse), 0, bits(EPSILON), int(basic), bits(-1.5)], words)
    raw = kernel.run(call, area(first=x, second=gx, third=gamma, fourth=beta), np.zeros(65536, np.uint8))
    both = x.astype("d") * -1.5 + gx
    mean, variance = both[:, : h - less].mean(1), both[:, : h - less].var(1)
    normal = (both - mean[:, None]) / np.sqrt(variance + epsilon_of(dtype))[:, None]
    close(at(raw, 0, x.size, dtype).reshape(x.shape), normal * gamma + beta, dtype, 8)
    close(at(raw, THIRD, rows, dtype), mean, dtype)
    close(at(raw, FIFTH, rows, dtype), variance, dtype, 4)  # not 1 / sqrt of it: the page's example, and its sample


@FEW
@given(dtype=FLOATS, n=st.integers(1, 3), groups=st.integers(1, 4), depth=st.integers(1, 4), h=st.integers(1, 6),
       w=st.integers(1, 12), reuse=st.booleans(), kind=ROOM, seed=st.integers(0, 99))  # fmt: skip
def test_group_norm(
    kernel: ApiKernel, dtype: str, n: int, groups: int, depth: int, h: int, w: int, reuse: bool, kind: int, seed: int
) -> None:
    channels, hw, reuse = groups * depth, h * w, reuse and dtype == "float32"
    per_block = 16 if dtype == "float16" else 8
    padded = -(-hw // per_block) * per_block
    x = np.zeros((n, channels, padded), dtype)
    x[..., :hw] = values(seed, (n, channels, hw), dtype)
    assume(x.nbytes <= SECOND)
    gamma, beta = values(seed + 1, channels, dtype, 1), values(seed + 2, channels, dtype, 1)
    shape = (x.itemsize, int(reuse), n, channels, h, w, groups)
    room = room_of(kind, sizes("group_norm", *shape))
    words = tiling("group_norm", room or LEFT, *shape)
    assume(words is not None)
    call = call_with([GROUP, DTYPES[dtype], room, int(reuse), 0, bits(EPSILON)], words)
    raw = kernel.run(call, area(first=x, third=gamma, fourth=beta), np.zeros(65536, np.uint8))
    wide = x[..., :hw].astype("d").reshape(n * groups, depth * hw)
    mean, variance = wide.mean(1), wide.var(1)
    normal = ((wide - mean[:, None]) / np.sqrt(variance + epsilon_of(dtype))[:, None]).reshape(n, channels, hw)
    got = at(raw, 0, x.size, dtype).reshape(x.shape)[..., :hw]
    close(got, normal * gamma[:, None] + beta[:, None], dtype, 8)
    close(at(raw, THIRD, n * groups, dtype), mean, dtype, 2)
    close(at(raw, FIFTH, n * groups, dtype), variance, dtype, 8)


NAMES = ("layer_norm_grad", "layer_norm_grad_beta", "batch_norm", "deep_norm", "group_norm")


@pytest.mark.parametrize(
    ("head", "asked", "rule"),
    [
        ([GRAD], None, "GetLayerNormGradNDTilingInfo"),
        ([GRAD, 0, 0, 0, 1], (LEFT, 4, 0, 1, 8, 8, 8), "dataFormat has to be ND"),
        ([GRAD, 1, 0, 1], (LEFT // 2, 2, 0, 1, 16, 16, 16), "has to be false for half"),
        ([GRAD, 0, 512], (LEFT, 4, 0, 1, 8, 8, 8), "of 512 B is too small: 65280 B are what"),
        ([GRAD, 0, 3072], (3072, 4, 0, 1, 2, 64, 64), "10752 B are what the tiling's pieces take"),
        ([GRAD_BETA], None, "GetLayerNormGradBetaNDTilingInfo"),
        ([GRAD_BETA, 0, 32], (LEFT, 4, 0, 1, 8, 8, 8), "of 32 B is too small"),
        ([BATCH], None, "GetBatchNormNDTilingInfo"),
        ([BATCH, 0, 0, 0, 0, 0, 1], (LEFT, 4, 0, 7, 1, 64, 7, 0), "a first axis of 8s"),
        ([BATCH, 0, 32], (LEFT, 4, 0, 8, 1, 64, 8, 0), "of 32 B is too small"),
        ([DEEP], None, "GetDeepNormTilingInfo"),
        ([DEEP, 0, 0, 0, 1], (LEFT, 4, 0, 1, 8, 8, 8, 0), "srcLocal and dstLocal may not share"),
        ([DEEP, 0, 0, 0, 0, 0, 1], (LEFT, 4, 0, 1, 8, 8, 8, 0), "of 8s and H of 64s"),
        ([DEEP, 1, 0, 1], (LEFT, 2, 0, 1, 8, 16, 16, 0), "has to be false for half"),
        ([GROUP], None, "GetGroupNormNDTilingInfo"),
        ([GROUP], (LEFT, 4, 0, 1, 6, 1, 8, 4), "a multiple of the 4 groups"),
        ([GROUP, 0, 32], (LEFT, 4, 0, 1, 6, 1, 8, 3), "of 32 B is too small"),
    ],
)
def test_rules_of_axes(kernel: ApiKernel, head: list[int], asked: tuple[int, ...] | None, rule: str) -> None:
    call = call_with([*head, *[0] * (6 - len(head))], tiling(NAMES[head[0]], *asked) if asked else None)
    with pytest.raises(DeviceError, match=rule):
        kernel.run(call, np.zeros(16, np.float32), np.zeros(16, np.float32))
