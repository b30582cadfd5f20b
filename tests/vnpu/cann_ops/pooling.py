"""Operators of cann-ops's folder ``pooling``."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from .table import FLOATS, Row

Triple = tuple[int, ...]


def avg_pool3d(
    x: torch.Tensor, ksize: Triple, strides: Triple, pads: Triple, data_format: str, **options: int | bool
) -> torch.Tensor:
    options["divisor_override"] = options["divisor_override"] or None
    last = data_format == "NDHWC"
    y = functional.avg_pool3d(x.movedim(-1, 1) if last else x, ksize, strides, pads, **options)
    return y.movedim(1, -1) if last else y


def backward(forward: functional, shape: Triple, grad: torch.Tensor) -> torch.Tensor:
    x = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
    (result,) = torch.autograd.grad(forward(x), x, grad)
    return result


def avg_pool3d_grad(shape: torch.Tensor, grad: torch.Tensor, **attrs: Triple | int | bool | str) -> torch.Tensor:
    """``shape`` is [N,C,D,H,W] whatever the format."""
    n, c, *size = shape.tolist()
    return backward(lambda x: avg_pool3d(x, **attrs), (n, *size, c), grad)


def adaptive_avg_pool3d_grad(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """``grad`` and the result are [D,H,W,N*C]."""
    *size, nc = grad.shape
    y = backward(lambda x: functional.adaptive_avg_pool3d(x, size), (nc, *x.shape[-3:]), grad.movedim(-1, 0))
    return y.movedim(0, -1)


def scatter_max(x: torch.Tensor, grad: torch.Tensor, argmax: torch.Tensor, **_: object) -> torch.Tensor:
    """Every gradient goes to the element its maximum came from: an index into [D,H,W]."""
    return torch.zeros_like(x).flatten(2).scatter_add_(2, argmax.long().flatten(2), grad.flatten(2))


def somewhere(shape: Triple, starts: list[list[int]], ends: list[list[int]]) -> np.ndarray:
    """An element of each window [start, end) of D, H, W: int32[N,C,windows ...] of indices into [D,H,W]."""
    rng = np.random.default_rng(0)
    n, c, _, height, width = shape
    size = (n, c, *map(len, starts))
    axes = []
    for axis, (low, high) in enumerate(zip(starts, ends, strict=True)):
        view = [1, 1, 1, 1, 1]
        view[2 + axis] = -1
        axes.append(rng.integers(np.reshape(low, view), np.reshape(high, view), size))
    return (axes[0] * height + axes[1]) * width + axes[2]


def adaptive_windows(shape: Triple, size: Triple) -> np.ndarray:
    starts = [[i * n // m for i in range(m)] for n, m in zip(shape[2:], size, strict=True)]
    ends = [[-(-(i + 1) * n // m) for i in range(m)] for n, m in zip(shape[2:], size, strict=True)]
    return somewhere(shape, starts, ends)


def strided_windows(shape: Triple, ksize: Triple, strides: Triple, pads: Triple) -> np.ndarray:
    starts, ends = [], []
    for n, k, s, p in zip(shape[2:], ksize, strides, pads, strict=True):
        first = [i * s - p for i in range((n + 2 * p - k) // s + 1)]
        starts.append([max(i, 0) for i in first])
        ends.append([min(i + k, n) for i in first])
    return somewhere(shape, starts, ends)


POOL = {"ceil_mode": False, "count_include_pad": True, "divisor_override": 0, "data_format": "NDHWC"}

NO_BARRIER = "CalcIndices"  # no PipeBarrier between TransDataTo5HD of the indices and Cast of its result

ROWS = (
    Row("pooling/adaptive_avg_pool3d_grad", ("T[2,2,4,64] T[64,4,4,8] -> T[4,4,8,64]",
        "T[3,2,5,13] T[13,4,3,7] -> T[4,3,7,13]"), adaptive_avg_pool3d_grad, ("float32",),
        columns_left_out=dict.fromkeys((0, 2), "the tiling function never sets the dtype's key: half data are floats")),
    Row("pooling/adaptive_max_pool3d", "T[2,32,8,16,16] -> T[2,32,4,4,4] int32[2,32,4,4,4]",
        lambda x, output_size: functional.adaptive_max_pool3d(x, output_size, return_indices=True), ("float32",),
        attrs={"output_size": (4, 4, 4)}, columns_left_out=dict.fromkeys((1, 2), "Adds onto a part of its own source")),
    Row("pooling/adaptive_max_pool3d", "T[1,3,5,7,9] -> T[1,3,2,3,4] int32[1,3,2,3,4]",
        lambda x, output_size: functional.adaptive_max_pool3d(x, output_size, return_indices=True), ("float32",),
        attrs={"output_size": (2, 3, 4)}),
    Row("pooling/adaptive_max_pool3d_grad", "T[2,32,4,8,8]:NCDHW T[2,32,2,4,4]:NCDHW int32[2,32,2,4,4]:NCDHW -> "
        "T[2,32,4,8,8]:NCDHW", scatter_max, FLOATS, hazard=NO_BARRIER,
        values={2: adaptive_windows((2, 32, 4, 8, 8), (2, 4, 4))}),
    Row("pooling/adaptive_max_pool3d_grad", "T[1,3,5,7,9]:NCDHW T[1,3,2,3,4]:NCDHW int32[1,3,2,3,4]:NCDHW -> "
        "T[1,3,5,7,9]:NCDHW", scatter_max, FLOATS, hazard=NO_BARRIER,
        values={2: adaptive_windows((1, 3, 5, 7, 9), (2, 3, 4))}),
    Row("pooling/avg_pool3_d", "T[2,8,16,16,32] -> T[2,4,8,8,32]", avg_pool3d, FLOATS,
        attrs={**POOL, "ksize": (2, 2, 2), "strides": (2, 2, 2), "pads": (0, 0, 0)}),
    Row("pooling/avg_pool3_d", "T[1,5,7,9,13] -> T[1,3,4,5,13]", avg_pool3d, FLOATS,
        attrs={**POOL, "ksize": (3, 3, 3), "strides": (2, 2, 2), "pads": (1, 1, 1), "count_include_pad": False}),
    Row("pooling/avg_pool3_d", "T[2,3,5,7,9] -> T[2,3,2,7,9]", avg_pool3d, FLOATS,
        attrs={**POOL, "ksize": (3, 1, 1), "strides": (2, 1, 1), "pads": (0, 0, 0), "data_format": "NCDHW"}),
    Row("pooling/avg_pool3_d_grad", "int32[5] T[1,4,8,8,32] -> T[1,8,16,16,32]", avg_pool3d_grad, FLOATS,
        attrs={**POOL, "ksize": (2, 2, 2), "strides": (2, 2, 2), "pads": (0, 0, 0)}, values={0: (1, 32, 8, 16, 16)}),
    Row("pooling/avg_pool3_d_grad", "int32[5] T[1,3,4,5,13] -> T[1,5,7,9,13]", avg_pool3d_grad, FLOATS,
        attrs={**POOL, "ksize": (3, 3, 3), "strides": (2, 2, 2), "pads": (1, 1, 1)}, values={0: (1, 13, 5, 7, 9)}),
    Row("pooling/global_avg_pool", ("T[2,16,16,16] -> T[2,16,1,1]", "T[3,5,7,9] -> T[3,5,1,1]"),
        lambda x: x.mean((2, 3)), ("float32", "float16")),
    Row("pooling/max_pool3d_grad_with_argmax", "T[2,32,4,8,8]:NCDHW T[2,32,2,4,4]:NCDHW int32[2,32,2,4,4]:NCDHW -> "
        "T[2,32,4,8,8]:NCDHW", scatter_max, FLOATS,
        attrs={"ksize": (2, 2, 2), "strides": (2, 2, 2), "pads": (0, 0, 0), "dilation": (1, 1, 1), "ceil_mode": False},
        values={2: strided_windows((2, 32, 4, 8, 8), (2, 2, 2), (2, 2, 2), (0, 0, 0))}),
    Row("pooling/max_pool3d_grad_with_argmax", "T[1,3,5,7,9]:NCDHW T[1,3,3,4,5]:NCDHW int32[1,3,3,4,5]:NCDHW -> "
        "T[1,3,5,7,9]:NCDHW", scatter_max, FLOATS,
        attrs={"ksize": (3, 3, 3), "strides": (2, 2, 2), "pads": (1, 1, 1), "dilation": (1, 1, 1), "ceil_mode": False},
        values={2: strided_windows((1, 3, 5, 7, 9), (3, 3, 3), (2, 2, 2), (1, 1, 1))}),
)  # fmt: skip
