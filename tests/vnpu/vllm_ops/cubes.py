"""vllm-ascend's mixed operators: reference formulas."""

from __future__ import annotations

from typing import Any

import torch
from cann_ops.table import Row

Tensor = torch.Tensor


def seen_keys(scores: Tensor, sparse_mode: int) -> Tensor:
    """Scores [batch, tokens, keys]; with mode 3 a token sees no key behind its own place."""
    tokens, keys = scores.shape[1:]
    if sparse_mode != 3:
        return scores
    ahead = torch.arange(keys) > torch.arange(tokens)[:, None] + keys - tokens
    return scores.masked_fill(ahead, float("-inf"))


def picked(scores: Tensor, count: int) -> Tensor:
    """The keys with the largest scores, from the largest on; -1 where there is none."""
    order = scores.argsort(dim=-1, descending=True, stable=True)
    order = order.masked_fill(scores.gather(-1, order).isinf(), -1)
    out = torch.full((*scores.shape[:2], 1, count), -1, dtype=torch.int32)
    kept = min(count, scores.shape[-1])
    out[:, :, 0, :kept] = order[..., :kept].int()
    return out


def pick_keys(query: Tensor, key: Tensor, weights: Tensor, starts: Any, lengths: Any, blocks: Any,
              sparse_count: int, sparse_mode: int, **_: Any) -> Tensor:  # fmt: skip
    """Of the keys that a token sees, those with the largest weighted sum of what its heads think of them."""
    thought = torch.einsum("bqhd,bkd->bqhk", query, key[:, :, 0]).relu()
    scores = torch.einsum("bqhk,bqh->bqk", thought, weights)
    return picked(seen_keys(scores, sparse_mode), sparse_count)


def pick_keys_with_values(*tensors: Any, **attrs: Any) -> Any:
    return pick_keys(*tensors, **attrs), torch.zeros(1)


def pick_quantized_keys(query: Tensor, key: Tensor, weights: Tensor, query_scale: Tensor, key_scale: Tensor,
                        starts: Any, lengths: Any, blocks: Any, sparse_count: int, sparse_mode: int,
                        **_: Any) -> Tensor:  # fmt: skip
    """The same of 8-bit queries and keys, each row of which has a scale."""
    thought = torch.einsum("bqhd,bkd->bqhk", query.double(), key[:, :, 0].double()).relu()
    scores = torch.einsum("bqhk,bqh->bqk", thought, weights * query_scale) * key_scale[:, None, :, 0]
    return picked(seen_keys(scores, sparse_mode), sparse_count)


LAYOUTS = {"layout_query": "BSND", "layout_key": "BSND", "sparse_count": 2048, "sparse_mode": 3}
ROWS = (
    Row("attention/lightning_indexer_vllm", "T[1,4,64,128] T[1,40,1,128] T[1,4,64] - - - -> int32[1,4,1,2048]",
        pick_keys, ("float16", "bfloat16"), attrs=LAYOUTS),
    Row("attention/lightning_indexer", "T[1,4,64,128] T[1,40,1,128] T[1,4,64] - - - -> int32[1,4,1,2048] T[1]",
        pick_keys_with_values, ("float16", "bfloat16"), initial={1: 0},  # the values, which nobody asks for
        attrs=LAYOUTS | {"pre_tokens": 2**63 - 1, "next_tokens": 2**63 - 1, "return_values": False}),
    Row("attention/lightning_indexer_quant",
        "int8[1,4,64,128] int8[1,8,1,128] T[1,4,64] T[1,4,64] T[1,8,1] - - - -> int32[1,4,1,2048]",
        pick_quantized_keys, ("float16",), attrs=LAYOUTS | {"query_quant_mode": 0, "key_quant_mode": 0}),
)  # fmt: skip
