"""Operators of cann-ops's folder ``conversion``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional

from .table import COARSE, FLOATS, TWICE, Row

Reference = Callable[..., torch.Tensor]
INDEX = ("int32", "int64")


def pad(x: torch.Tensor, paddings: torch.Tensor, mode: str) -> torch.Tensor:
    """``paddings``: (before, after) of the last axes, the outermost first; zeros in front of them don't count."""
    pairs = paddings.reshape(-1, 2).flip(0).tolist()
    while len(pairs) > x.ndim - 2:
        assert pairs.pop() == [0, 0]
    return functional.pad(x, [n for pair in pairs for n in pair], mode)


def circular_pad(x: torch.Tensor, paddings: torch.Tensor) -> torch.Tensor:
    return pad(x.double(), paddings, "circular").to(x.dtype)


def pad_grad(mode: str) -> Reference:
    def apply(grad: torch.Tensor, paddings: torch.Tensor, **_: object) -> torch.Tensor:
        pairs = paddings.reshape(-1, 2).sum(1).tolist()
        shape = [n - p for n, p in zip(grad.shape, [0] * (grad.ndim - len(pairs)) + pairs, strict=True)]
        x = torch.zeros(shape, dtype=grad.dtype, requires_grad=True)
        (result,) = torch.autograd.grad(pad(x, paddings, mode), x, grad)
        return result

    return apply


def coalesce(
    _: torch.Tensor, unique: torch.Tensor, indices: torch.Tensor, values: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Row i of both goes to row unique[i]; values that meet there are added."""
    where = unique.long()
    return indices[where.argsort()], torch.zeros_like(values).index_add_(0, where, values)


def strided_slice_assign(
    var: torch.Tensor,
    value: torch.Tensor,
    begin: torch.Tensor,
    end: torch.Tensor,
    strides: torch.Tensor,
    axes: torch.Tensor | None,
) -> torch.Tensor:
    slices = [slice(None)] * var.ndim
    bounds = [torch.arange(len(begin)) if axes is None else axes, begin, end, strides]
    for axis, first, last, step in zip(*(t.tolist() for t in bounds), strict=True):
        slices[axis] = slice(first, last, step)
    result = var.clone()
    result[tuple(slices)] = value
    return result


def permutation(n: int) -> np.ndarray:
    return np.random.default_rng(0).permutation(n)


SPARSE = tuple(
    f"{value}/{kind}" for kind in INDEX for value in ("float32", "int32", "float16")
)  # T: values, S: indices; the unique ones have a row each
SLICES = ("float16", "float32", "bfloat16", "int32", "int64", "float64", "int8")
EDGE = {"mode": "edge", "paddings_contiguous": True}
FLOATS_INDEX = tuple(f"{t}/{i}" for t in FLOATS for i in INDEX)

ROWS = (
    Row("conversion/circular_pad", "T[2,8,32,32] int64[4] -> T[2,8,39,35]", circular_pad, (*FLOATS, "int8", "int32"),
        values={1: (3, 4, 1, 2)}),
    Row("conversion/circular_pad", "T[1,3,20,33] int64[4] -> T[1,3,22,38]", circular_pad, (*FLOATS, "int8", "int32"),
        values={1: (1, 1, 2, 3)}),
    Row("conversion/circular_pad", "T[1,2,5,7,9] int64[6] -> T[1,2,8,10,13]", circular_pad, FLOATS,
        values={1: (1, 2, 2, 1, 3, 1)}),
    Row("conversion/circular_pad_grad", "T[2,8,39,35] int64[4] -> T[2,8,32,32]", pad_grad("circular"), FLOATS,
        tolerance=TWICE, values={1: (3, 4, 1, 2)}),
    Row("conversion/circular_pad_grad", "T[1,3,22,38] int64[4] -> T[1,3,20,33]", pad_grad("circular"), FLOATS,
        tolerance=TWICE, values={1: (1, 1, 2, 3)}),
    *(Row("conversion/coalesce_sparse", f"{u}[64] {u}[64] S[64,8] T[64,32] -> S[64,8] T[64,32]", coalesce, SPARSE,
        values={1: permutation(64)}) for u in INDEX),
    Row("conversion/coalesce_sparse", "int32[37] int32[37] S[37,3] T[37,7] -> S[37,3] T[37,7]", coalesce, SPARSE,
        values={1: permutation(37)}),
    # A corner is a sum of 9 or 20 values, added one by one in float16: partial sums of 4 to 8 are off by 2**-9 each.
    Row("conversion/pad_v3_grad_replicate", "T[2,8,32,32] S[8] -> T[2,8,28,26]", pad_grad("replicate"), FLOATS_INDEX,
        attrs=EDGE, values={1: (0, 0, 0, 0, 1, 3, 2, 4)}, tolerance=COARSE),
    Row("conversion/pad_v3_grad_replicate", "T[1,3,17,23] S[8] -> T[1,3,13,20]", pad_grad("replicate"),
        ("float16/int32", "float32/int32", "bfloat16/int64"), attrs=EDGE, values={1: (0, 0, 0, 0, 2, 2, 1, 2)},
        tolerance=COARSE),
    # Every core clears all of the workspace before they meet: the same bytes.
    Row("conversion/pad_v3_grad_replication", "T[2,4,8,16,32] S[10] -> T[2,4,6,12,28]", pad_grad("replicate"),
        FLOATS_INDEX, values={1: (0, 0, 0, 0, 1, 1, 2, 2, 1, 3)}),
    Row("conversion/pad_v3_grad_replication", "T[1,3,7,9,11] S[10] -> T[1,3,5,6,8]", pad_grad("replicate"),
        ("float16/int32", "float32/int32"), values={1: (0, 0, 0, 0, 1, 1, 2, 1, 1, 2)}),
    Row("conversion/reflection_pad3d_grad", "T[2,4,8,16,32] S[10] -> T[2,4,6,12,28]", pad_grad("reflect"),
        FLOATS_INDEX, values={1: (0, 0, 0, 0, 1, 1, 2, 2, 1, 3)}),
    Row("conversion/reflection_pad3d_grad", "T[1,3,7,9,11] S[10] -> T[1,3,5,6,8]", pad_grad("reflect"),
        ("float16/int32", "float32/int32"), values={1: (0, 0, 0, 0, 1, 1, 2, 1, 1, 2)}),
    Row("conversion/strided_slice_assign_v2",
        "T[256,512] T[64,128] int64[2] int64[2] int64[2] int64[2] -> T[256,512]", strided_slice_assign, SLICES,
        values={2: (0, 0), 3: (256, 128), 4: (4, 1), 5: (0, 1)}),
    Row("conversion/strided_slice_assign_v2",
        "T[5,7,33] T[2,7,29] int64[2] int64[2] int64[2] int64[2] -> T[5,7,33]", strided_slice_assign, SLICES,
        values={2: (1, 3), 3: (5, 32), 4: (2, 1), 5: (0, 2)}),
)  # fmt: skip
