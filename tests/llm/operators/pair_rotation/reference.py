"""What pair_rotation computes."""

import torch
from torch import Tensor


def reference(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    even, odd = x.double()[:, 0::2], x.double()[:, 1::2]
    pairs = (even * cosine.double() - odd * sine.double(), odd * cosine.double() + even * sine.double())
    return torch.stack(pairs, dim=-1).flatten(1).to(x.dtype)
