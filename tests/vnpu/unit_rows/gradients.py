"""Gradients of attention, from what its forward pass has left: the largest score and the sum of a row."""

from __future__ import annotations

from typing import Any

import torch
from cann_ops.table import Row

Tensor = torch.Tensor


def rows_of(value: float, *shape: int) -> Any:
    return torch.full(shape, value).tolist()


def attention_gradient(q: Tensor, k: Tensor, v: Tensor, dy: Tensor, *rest: Any, scale_value: float, **_: Any) -> Any:
    """[batch, heads, tokens, elements]; softmax with what is given as its maximum and its sum."""
    most, total, out = rest[4], rest[5], rest[7]
    p = torch.exp(q @ k.mT * scale_value - most[..., :1]) / total[..., :1]
    ds = p * (dy @ v.mT - (dy * out).sum(-1, keepdim=True))
    return ds @ k * scale_value, ds.mT @ q * scale_value, p.mT @ dy, torch.zeros(0), None, None, None


def gradient(tokens: int, size: int, dtypes: tuple[str, ...], heads: int = 2) -> Row:
    x = f"T[1,{heads},{tokens},{size}]"
    left = f"float32[1,{heads},{tokens},8]"
    case = f"{x} {x} {x} {x} - - - - {left} {left} - {x} {'- ' * 15}-> {x} {x} {x} T[0] - - -"
    return Row("attention/flash_attention_score_grad", case, attention_gradient, dtypes,
               attrs={"scale_value": size**-0.5, "head_num": heads, "input_layout": "BNSD"},
               domain=dict.fromkeys((0, 1, 2, 3, 11), (-1, 1)),
               values={8: rows_of(1.0, 1, heads, tokens, 8), 9: rows_of(tokens, 1, heads, tokens, 8)})  # fmt: skip


KINDS = ("float16", "bfloat16")
ROWS: dict[str, tuple[Row, ...]] = {"ops-transformer": (gradient(256, 64, KINDS),)}
