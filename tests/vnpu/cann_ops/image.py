"""Operators of cann-ops's folder ``image``."""

from __future__ import annotations

import math

import torch
from torch.nn import functional

from .table import FLOATS, HF, Row


def nearest(x: torch.Tensor, size: tuple[int, ...], axes: tuple[int, ...], exact: bool) -> torch.Tensor:
    """Takes element floor(i * n / m) of n for i of m (exact: floor((i + 0.5) * n / m)) along each axis."""
    for axis, m in zip(axes, size, strict=True):
        n = x.shape[axis]
        source = [(2 * i + 1) * n // (2 * m) if exact else i * n // m for i in range(m)]
        x = x.index_select(axis, torch.tensor(source))
    return x


def upsample_nearest(x: torch.Tensor, output_size: tuple[int, ...], exact_mode: bool, **_: float) -> torch.Tensor:
    return nearest(x, output_size, (1, 2), exact_mode)


def upsample_nearest3d(x: torch.Tensor, output_size: tuple[int, ...], **_: float) -> torch.Tensor:
    return nearest(x, output_size, (2, 3, 4), exact=False)


def upsample_nearest_exact3d(x: torch.Tensor, output_size: tuple[int, ...], **_: float) -> torch.Tensor:
    return nearest(x, output_size, (2, 3, 4), exact=True)


def grid_sample(
    x: torch.Tensor, grid: torch.Tensor, interpolation_mode: str, padding_mode: str, align_corners: bool, **_: object
) -> torch.Tensor:
    return functional.grid_sample(x.movedim(-1, 1), grid, interpolation_mode, padding_mode, align_corners)


def deformable_attention(
    value: torch.Tensor, shapes: torch.Tensor, starts: torch.Tensor, where: torch.Tensor, weight: torch.Tensor
) -> torch.Tensor:
    """[N,Q,heads*C] of value [N,K,heads,C], where [N,heads,levels,points,2,Q], weight [N,heads,levels,points,Q]."""
    n, _, heads, channels = value.shape
    result = torch.zeros(n * heads, channels, where.shape[-1], dtype=value.dtype)
    for level, ((height, width), start) in enumerate(zip(shapes.tolist(), starts.tolist(), strict=True)):
        image = value[:, start : start + height * width].permute(0, 2, 3, 1).reshape(n * heads, channels, height, width)
        grid = 2 * where[:, :, level].permute(0, 1, 2, 4, 3).flatten(0, 1) - 1
        sampled = functional.grid_sample(image, grid, "bilinear", "zeros", align_corners=False)
        result = result + (sampled * weight[:, :, level].flatten(0, 1)[:, None]).sum(2)
    return result.reshape(n, heads * channels, -1).transpose(1, 2)


def deformable_attention_grad(
    value: torch.Tensor,
    shapes: torch.Tensor,
    starts: torch.Tensor,
    where: torch.Tensor,
    weight: torch.Tensor,
    grad: torch.Tensor,
) -> tuple[torch.Tensor, ...]:
    inputs = [t.detach().requires_grad_() for t in (value, where, weight)]
    result = deformable_attention(inputs[0], shapes, starts, *inputs[1:])
    return torch.autograd.grad(result, inputs, grad.reshape(result.shape))


def rotate(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The points v [3,N] turned by the unit quaternions q [4] or [4,N] (w, x, y, z)."""
    w, axis = q[0], q[1:].reshape(3, -1).expand_as(v)
    cross = torch.linalg.cross(axis, v, dim=0)
    return v + 2 * (w * cross + torch.linalg.cross(axis, cross, dim=0))


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Of two quaternions [4]."""
    w = a[0] * b[0] - a[1:] @ b[1:]
    return torch.cat([w[None], a[0] * b[1:] + b[0] * a[1:] + torch.linalg.cross(a[1:], b[1:])])


def motion_compensation(
    points: torch.Tensor,
    timestamp: torch.Tensor,
    timestamp_min: int,
    timestamp_max: int,
    translation_min: tuple[float, ...],
    translation_max: tuple[float, ...],
    quaterniond_min: tuple[float, ...],
    quaterniond_max: tuple[float, ...],
) -> torch.Tensor:
    """Moves each point (rows x, y, z and more of ``points``) by its share of the motion between the two poses."""
    share = (timestamp_max - timestamp.double()) / (timestamp_max - timestamp_min)
    first, last = (torch.tensor(q, dtype=torch.float64) for q in (quaterniond_min, quaterniond_max))
    back = last * torch.tensor([1, -1, -1, -1])
    shift = torch.tensor(translation_min, dtype=torch.float64) - torch.tensor(translation_max, dtype=torch.float64)
    shift = rotate(back, shift[:, None])
    turn = product(back, first)
    turn = turn / turn.norm()
    angle = math.acos(abs(float(turn[0])))
    identity = torch.tensor([1.0, 0, 0, 0], dtype=torch.float64)[:, None]
    between = torch.sin((1 - share) * angle) * identity
    between = between + torch.sin(share * angle) * math.copysign(1, float(turn[0])) * turn[:, None]
    between = between / between.norm(dim=0)
    return torch.cat([rotate(between, points[:3]) + share * shift, points[3:]])


SAMPLE = {"padding_mode": "zeros", "align_corners": False, "channel_last": True, "scheduler_mode": 1}
GRID = {1: (-1.1, 1.1)}
UP = {"scales_h": 0.0, "scales_w": 0.0}
UP3 = {"scale_d": 0.0, "scale_h": 0.0, "scale_w": 0.0}
POSES = {
    "timestamp_min": 1000, "timestamp_max": 2000,
    "translation_min": (1.0, 2.0, -0.5), "translation_max": (1.5, 1.0, 0.25),
    "quaterniond_min": (0.9238795, 0.0, 0.3826834, 0.0), "quaterniond_max": (0.9659258, 0.2588190, 0.0, 0.0),
}  # fmt: skip

ROWS = (
    Row("image/grid_sample", "T[2,16,16,32] T[2,8,16,2] -> T[2,32,8,16]", grid_sample, HF,
        attrs={**SAMPLE, "interpolation_mode": "bilinear"}, domain=GRID),
    Row("image/grid_sample", "T[1,7,9,5] T[1,5,3,2] -> T[1,5,5,3]", grid_sample, HF,
        attrs={**SAMPLE, "interpolation_mode": "bilinear", "padding_mode": "border", "align_corners": True},
        domain=GRID),
    Row("image/grid_sample", "T[1,17,19,33] T[1,5,7,2] -> T[1,33,5,7]", grid_sample, HF,
        attrs={**SAMPLE, "interpolation_mode": "bicubic"}, domain=GRID),
    Row("image/grid_sample", "T[1,17,19,33] T[1,5,7,2] -> T[1,33,5,7]", grid_sample, HF,
        attrs={**SAMPLE, "interpolation_mode": "nearest", "padding_mode": "reflection"}, domain=GRID),
    Row("image/grid_sample", "T[1,4,8,8,16] T[1,3,4,8,3] -> T[1,16,3,4,8]", grid_sample, FLOATS,
        attrs={**SAMPLE, "interpolation_mode": "bilinear", "scheduler_mode": 0}, domain=GRID),
    Row("image/motion_compensation", "float32[5,1024] uint64[1024] -> float32[5,1024]", motion_compensation,
        ("float32",), attrs=POSES, domain={1: (1000, 2000)}),
    Row("image/motion_compensation", "float32[4,192] uint64[192] -> float32[4,192]", motion_compensation,
        ("float32",), attrs=POSES, domain={1: (1000, 2000)}),
    Row("image/multi_scale_deformable_attention_grad",
        "T[2,80,4,32] int32[2,2] int32[2] T[2,4,2,4,2,16] T[2,4,2,4,16] T[2,16,4,32] -> "
        "T[2,80,4,32] T[2,4,2,4,2,16] T[2,4,2,4,16]", deformable_attention_grad, ("float32",), domain={3: (-0.1, 1.1)},
        values={1: (8, 8, 4, 4), 2: (0, 64)}),
    Row("image/multi_scale_deformable_attention_grad",
        "T[1,35,2,16] int32[1,2] int32[1] T[1,2,1,3,2,13] T[1,2,1,3,13] T[1,13,2,16] -> "
        "T[1,35,2,16] T[1,2,1,3,2,13] T[1,2,1,3,13]", deformable_attention_grad, ("float32",), domain={3: (-0.1, 1.1)},
        values={1: (5, 7), 2: (0,)}),
    Row("image/upsample_nearest", "T[2,16,16,64]:NHWC -> T[2,32,32,64]:NHWC", upsample_nearest, FLOATS,
        attrs={**UP, "output_size": (32, 32), "exact_mode": False}),
    Row("image/upsample_nearest", "T[1,7,9,5]:NHWC -> T[1,11,6,5]:NHWC", upsample_nearest, FLOATS,
        attrs={**UP, "output_size": (11, 6), "exact_mode": True}),
    Row("image/upsample_nearest3d", "T[2,8,4,8,8] -> T[2,8,8,16,16]", upsample_nearest3d, FLOATS,
        attrs={**UP3, "output_size": (8, 16, 16)}),
    Row("image/upsample_nearest3d", "T[1,3,5,7,9] -> T[1,3,4,11,13]", upsample_nearest3d, FLOATS,
        attrs={**UP3, "output_size": (4, 11, 13)}),
    Row("image/upsample_nearest_exact3d", "T[2,8,4,8,8] -> T[2,8,8,16,16]", upsample_nearest_exact3d, FLOATS,
        attrs={**UP3, "output_size": (8, 16, 16)}),
    Row("image/upsample_nearest_exact3d", "T[1,3,5,7,9] -> T[1,3,4,11,13]", upsample_nearest_exact3d, FLOATS,
        attrs={**UP3, "output_size": (4, 11, 13)}),
)  # fmt: skip
