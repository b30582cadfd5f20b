"""Gradients of attention, from what its forward pass has left: the largest score and the sum of a row."""

from __future__ import annotations

import itertools
from dataclasses import replace
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


# Two tokens choose 1024 of 1100 keys each.
TOKENS, KEYS, CHOSEN = 2, 1100, 1024
_random = torch.Generator().manual_seed(5)
PLACES = [[[torch.randperm(KEYS - 1, generator=_random)[:CHOSEN].tolist()] for _ in range(TOKENS)]]
_wanted = torch.rand(1, TOKENS, 1, CHOSEN, generator=_random)
WANTED = (_wanted / _wanted.sum(-1, keepdim=True)).tolist()


def indexer_gradient(q: Tensor, k: Tensor, w: Tensor, places: Tensor, wanted: Tensor, *_: Any, **__: Any) -> Any:
    """Of the divergence between ``wanted`` and the softmax of what the heads think of the chosen keys, weighted:
    [batch, tokens, heads, elements], and the softmax itself."""
    dq, dk, dw, found = (torch.zeros_like(x) for x in (q, k, w, wanted))
    for b, s in itertools.product(range(q.shape[0]), range(q.shape[1])):
        chosen = places[b, s, 0].long()
        keys = k[b, chosen, 0]
        thought = (q[b, s] @ keys.T).relu()
        y = (w[b, s] @ thought).softmax(-1)
        back = (y - wanted[b, s, 0]) * w[b, s][:, None] * (thought > 0)
        dq[b, s], dw[b, s], found[b, s, 0] = back @ keys, thought @ (y - wanted[b, s, 0]), y
        dk[b, :, 0].index_add_(0, chosen, back.T @ q[b, s])
    return dq, dk, dw, found


INDEXER = Row("attention/sparse_lightning_indexer_kl_loss_grad",
    f"T[1,{TOKENS},8,128] T[1,{KEYS},1,128] float32[1,{TOKENS},8] int32[1,{TOKENS},1,{CHOSEN}] "
    f"float32[1,{TOKENS},1,{CHOSEN}] - - - - - - -> T[1,{TOKENS},8,128] T[1,{KEYS},1,128] float32[1,{TOKENS},8] "
    f"float32[1,{TOKENS},1,{CHOSEN}]", indexer_gradient,
    attrs={"layout_q": "BSND", "layout_k": "BSND", "mask_mode": 3, "cmp_ratio": 1}, values={3: PLACES, 4: WANTED},
    domain=dict.fromkeys(range(3), (-1, 1)), tolerance={"float32": 5e-3, "float16": 5e-3, "bfloat16": 2e-2},
)  # fmt: skip
KINDS = ("float16", "bfloat16")
ROWS: dict[str, tuple[Row, ...]] = {"ops-transformer": (gradient(256, 64, KINDS), replace(INDEXER, dtypes=KINDS))}
