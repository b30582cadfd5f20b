"""Operators of cann-ops's folder ``objdetect``."""

from __future__ import annotations

import math

import numpy as np
import torch

from .table import Fault, Row


def _corners(at: float, size: int) -> list[tuple[int, float]] | None:
    """(pixel, weight) of the two neighbours of a coordinate; None where it is too far outside."""
    if at < -1 or at > size:
        return None
    at = max(at, 0.0)
    low = int(at)
    if low >= size - 1:
        return [(size - 1, 1.0)]
    return [(low, 1 - (at - low)), (low + 1, at - low)]


def roi_align_rotated_grad(
    grad: torch.Tensor,
    rois: torch.Tensor,
    y_grad_shape: tuple[int, ...],
    pooled_h: int,
    pooled_w: int,
    spatial_scale: float,
    sampling_ratio: int,
    aligned: bool,
    clockwise: bool,
) -> torch.Tensor:
    """Spreads every bin's gradient over the pixels its samples came from.

    grad [n,pooled_h,pooled_w,C]; rois [6,n]: image, center x and y, width, height, angle; result [N,H,W,C].
    """
    result = torch.zeros(y_grad_shape, dtype=grad.dtype)
    _, height, width, _ = y_grad_shape
    for roi, (image, x, y, w, h, angle) in enumerate(rois.T.tolist()):
        x, y, w, h = (v * spatial_scale for v in (x, y, w, h))
        x, y = (x - 0.5, y - 0.5) if aligned else (x, y)
        w, h = (w, h) if aligned else (max(w, 1.0), max(h, 1.0))
        angle = -angle if clockwise else angle
        rows = sampling_ratio or math.ceil(h / pooled_h)
        columns = sampling_ratio or math.ceil(w / pooled_w)
        for i, j in np.ndindex(pooled_h * rows, pooled_w * columns):
            down = -h / 2 + (i + 0.5) * h / (pooled_h * rows)
            right = -w / 2 + (j + 0.5) * w / (pooled_w * columns)
            ys = _corners(down * math.cos(angle) - right * math.sin(angle) + y, height)
            xs = _corners(down * math.sin(angle) + right * math.cos(angle) + x, width)
            share = grad[roi, i // rows, j // columns] / (rows * columns)
            for row, a in ys or ():
                for column, b in xs or ():
                    result[round(image), row, column] += a * b * share
    return result


def boxes(n: int, images: int, height: int, width: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    sizes = rng.uniform(3, 20, (2, n))
    place = rng.uniform(0, (height, width), (n, 2)).T[::-1]
    return np.stack([rng.integers(0, images, n), *place, *sizes, rng.uniform(0, np.pi, n)])


NO_BARRIER = "Duplicate"  # hardly a PipeBarrier between instructions that depend on each other

ROTATED = {"spatial_scale": 0.5, "aligned": True, "clockwise": False}

ROWS = (
    Row("objdetect/roi_align_rotated_grad", "T[8,4,4,32] T[6,8] -> T[2,32,32,32]", roi_align_rotated_grad, ("float32",),
        attrs={**ROTATED, "y_grad_shape": (2, 32, 32, 32), "pooled_h": 4, "pooled_w": 4, "sampling_ratio": 2},
        values={1: boxes(8, 2, 64, 64)}, initial={0: 0.0}, hazard=NO_BARRIER),
    Row("objdetect/roi_align_rotated_grad", "T[16,3,5,24] T[6,16] -> T[1,33,37,24]", roi_align_rotated_grad,
        ("float32",), attrs={**ROTATED, "y_grad_shape": (1, 33, 37, 24), "pooled_h": 3, "pooled_w": 5,
        "sampling_ratio": 0, "clockwise": True}, values={1: boxes(16, 1, 66, 74)}, initial={0: 0.0}, hazard=NO_BARRIER),
)  # fmt: skip

FAULTS = (
    # The kernel's class stands in a namespace that its caller doesn't name.
    Fault("objdetect/roi_align_rotated", "T[1,32,32,8] T[6,8] -> T[8,2,2,8]",
        "'RoiAlignRotated' was not declared in this scope", attrs={"pooled_h": 2, "pooled_w": 2, "spatial_scale": 1.0}),
)  # fmt: skip
