"""What flash_attention computes: softmax(q k^T scale) v for each head; causal: the last query sees the last key."""

import torch
from torch import Tensor


def reference(q: Tensor, k: Tensor, v: Tensor, scale: float = 1.0, causal: bool = False) -> Tensor:
    scores = q.double() @ k.double().transpose(1, 2) * scale
    if causal:
        behind = torch.ones(scores.shape[1:], dtype=torch.bool, device=q.device).tril(k.shape[1] - q.shape[1])
        scores = scores.masked_fill(~behind, float("-inf"))
    return (scores.softmax(-1) @ v.double()).to(q.dtype)
