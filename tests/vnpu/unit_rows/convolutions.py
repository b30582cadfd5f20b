"""Convolutions whose windows are moved point by point."""

from __future__ import annotations

from typing import Any

import torch
from cann_ops.table import Row

Tensor = torch.Tensor


def deformed(x: Tensor, weight: Tensor, offset: Tensor, _: Any, kernel_size: Any, padding: Any,
             **__: Any) -> tuple[Tensor, Tensor]:  # fmt: skip
    """x [batch, height, width, channels]; of each point of a window how far it is moved along both axes, and a weight.

    What lies between four pixels is interpolated; outside of the image there are zeros. Stride and dilation are 1.
    """
    batch, height, width, _channels = x.shape
    high, wide = kernel_size
    moved = offset.unflatten(-1, (3, high, wide))
    across, down, mask = (moved[..., i, :, :] for i in range(3))
    at = across + torch.arange(width)[:, None, None] + torch.arange(wide) - padding[2]
    row = down + torch.arange(height)[:, None, None, None] + torch.arange(high)[:, None] - padding[0]
    points = torch.zeros(*at.shape, x.shape[-1], dtype=x.dtype)
    for y in (row.floor(), row.floor() + 1):
        for c in (at.floor(), at.floor() + 1):
            inside = (y >= 0) & (y < height) & (c >= 0) & (c < width)
            share = (1 - (row - y).abs()) * (1 - (at - c).abs()) * mask * inside
            places = y.clamp(0, height - 1).long(), c.clamp(0, width - 1).long()
            points += share[..., None] * x[torch.arange(batch).view(-1, 1, 1, 1, 1), *places]
    out = torch.einsum("nhwijc,oijc->nhow", points, weight)
    return out, points.permute(0, 1, 3, 2, 4, 5).reshape(batch, height * high, width * wide, -1)


ROWS: dict[str, tuple[Row, ...]] = {
    "ops-nn": (
        # In 16 bits its conversions to float overwrite what they, and those behind them, read.
        Row("conv/deformable_conv2d",
            ("T[1,6,6,16] T[32,3,3,16] T[1,6,6,27] - -> T[1,6,32,6] T[1,18,18,16]",
             "T[2,5,7,32] T[48,3,3,32] T[2,5,7,27] - -> T[2,5,48,7] T[2,15,21,32]"),
            deformed, ("float32",),
            attrs={"kernel_size": (3, 3), "stride": (1, 1, 1, 1), "padding": (1, 1, 1, 1), "dilation": (1, 1, 1, 1),
                   "groups": 1, "deformable_groups": 1, "modulated": True}, tolerance={"float32": 2e-3}),
    ),
}  # fmt: skip
