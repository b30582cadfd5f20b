"""What rope computes for x[T, N, D] with cos and sin[T, D]: in float32, rounded once."""

import torch
from torch import Tensor


def reference(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    wide = x.float()
    first, second = wide.chunk(2, dim=-1)
    rotated = torch.cat((-second, first), dim=-1)
    return (wide * cos.float().unsqueeze(1) + rotated * sin.float().unsqueeze(1)).to(x.dtype)
