"""vllm-ascend's mixed operators: reference formulas."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from cann_ops.table import Fault, Row

from vllm_ops.compressors import turning_compressor

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


def pick_of_pages(query: Tensor, key: Tensor, weights: Tensor, query_scale: Tensor, key_scale: Tensor, _: Any,
                  lengths: Tensor, table: Tensor, *__: Any, **attrs: Any) -> Any:  # fmt: skip
    """The same of one sequence whose keys lie in pages; and the values, which nobody asks for."""
    keys, scales = (x[table[0].long()].flatten(0, 1)[None, : int(lengths[0])] for x in (key, key_scale))
    chosen = pick_quantized_keys(query, keys, weights, query_scale, scales, None, None, None, **attrs)
    return chosen, torch.zeros(1)


# Attention to chosen keys: which ones, for each of the tokens. A key is what its rotated part follows, and the value.
TOKENS, HEADS, KEYS, CHOSEN = 3, 16, 300, 128
_random = torch.Generator().manual_seed(0)
PICKED = [[[sorted(torch.randperm(KEYS - TOKENS + 1 + s, generator=_random)[:CHOSEN].tolist())] for s in range(TOKENS)]]


def attend(query: Tensor, key: Tensor, value: Tensor, places: Any, scale: float) -> Any:
    """One sequence: what comes of it, each head's largest score, and its sum of exponentials."""
    out, most, total = query.new_zeros(*query.shape[:2], value.shape[-1]), [], []
    for s, seen in enumerate(places):
        scores = query[s] @ key[seen].T * scale
        out[s] = scores.softmax(-1) @ value[seen]
        most.append(scores.amax(-1))
        total.append((scores - scores.amax(-1, keepdim=True)).exp().sum(-1))
    return out[None], torch.stack(most)[None, None], torch.stack(total)[None, None]


def attend_sparsely(query: Tensor, key: Tensor, value: Tensor, places: Tensor, table: Any, lengths: Any, more: Any,
                    query_rope: Tensor, key_rope: Tensor, scale_value: float, **_: Any) -> Any:  # fmt: skip
    """MLA-absorb, the only mode: key and value are one tensor, given twice."""
    query, key = torch.cat([query, query_rope], -1)[0], torch.cat([key, key_rope], -1)[0, :, 0]
    return attend(query, key, key[:, :512], places[0, :, 0].long(), scale_value)


ATTENTION = {
    "scale_value": 576**-0.5, "sparse_block_size": 1, "layout_query": "BSND", "layout_kv": "BSND", "sparse_mode": 3,
    "pre_tokens": 2**63 - 1, "next_tokens": 2**63 - 1, "attention_mode": 2, "return_softmax_lse": True,
}  # fmt: skip
ATTENDED = f"-> T[1,{TOKENS},{HEADS},512] float32[1,1,{TOKENS},{HEADS}] float32[1,1,{TOKENS},{HEADS}]"


def quantized(dtype: str) -> Row:
    """8-bit keys with their rotated part and four scales behind them, byte by byte."""
    random = torch.Generator().manual_seed(1)
    whole = torch.randint(-5, 10, (KEYS, 512), dtype=torch.int8, generator=random)
    rope = torch.randn(KEYS, 64, generator=random).to(getattr(torch, dtype))
    scales = torch.rand(KEYS, 4, generator=random) * 0.9 + 0.1
    packed = torch.cat([whole, rope.view(torch.int8), scales.view(torch.int8)], -1)

    def reference(query: Tensor, key: Tensor, value: Tensor, places: Tensor, *_: Any, scale_value: float,
                  **__: Any) -> Any:  # fmt: skip
        # vllm-ascend's own test rounds what a key becomes to the query's type.
        restored = (whole.double() * scales.double().repeat_interleave(128, -1)).to(rope.dtype).double()
        return attend(query[0], torch.cat([restored, rope.double()], -1), restored, places[0, :, 0].long(), scale_value)

    return Row(
        "attention/kv_quant_sparse_flash_attention",
        f"T[1,{TOKENS},{HEADS},576] int8[1,{KEYS},1,656] int8[1,{KEYS},1,512] int32[1,{TOKENS},1,{CHOSEN}] "
        f"- - - - - {ATTENDED}",
        reference, (dtype,), values={1: packed[None, :, None].tolist(), 2: whole[None, :, None].tolist(), 3: PICKED},
        attrs=ATTENTION | {"key_quant_mode": 2, "value_quant_mode": 2, "quant_scale_repo_mode": 1, "tile_size": 128,
                           "rope_head_dim": 64},
        tolerance={"float16": 4e-3, "bfloat16": 2e-2, "float32": 1e-3},  # probabilities are rounded, too
    )  # fmt: skip


# Attention to the last keys and to compressed ones of before, in blocks of 128 that a table finds; a head's sink takes
# part in the sum alone. The cores' shares come from another operator: here each takes a sequence.
LENGTHS = [200, 140]
SHARES = [n for c in range(2) for n in (1, c, 0, 0, c + 1, 0, 0, 0)] + [0] * 1008
SHARED = {
    "softmax_scale": 512**-0.5, "cmp_ratio": 4, "ori_mask_mode": 4, "cmp_mask_mode": 3, "ori_kv_stride": 128 * 512,
    "cmp_kv_stride": 128 * 512, "ori_win_left": 127, "ori_win_right": 0, "layout_q": "BSND", "layout_kv": "PA_ND",
    "return_softmax_lse": False,
}  # fmt: skip


def some_compressed(batch: int, token: int) -> list[int]:
    seen = (LENGTHS[batch] - 2 + token + 1) // 4
    chosen = torch.randperm(seen, generator=_random)[:30].tolist()
    return [*chosen, *[-1] * (512 - len(chosen))]


def attend_shared(query: Tensor, near: Tensor, far: Tensor | None, _: Any, chosen: Tensor | None, near_table: Tensor,
                  far_table: Tensor | None, *rest: Any, softmax_scale: float, cmp_ratio: int, ori_win_left: int,
                  **__: Any) -> Any:  # fmt: skip
    lengths, sinks = rest[4], rest[5]
    out = torch.zeros_like(query)
    for b, s in itertools.product(range(query.shape[0]), range(query.shape[1])):
        place = int(lengths[b]) - query.shape[1] + s
        seen = near[near_table[b].long()].flatten(0, 2)[max(0, place - ori_win_left) : place + 1]
        if far is not None and far_table is not None:
            whole = far[far_table[b].long()].flatten(0, 2)[: (place + 1) // cmp_ratio]
            kept = slice(None) if chosen is None else [i for i in chosen[b, s, 0].tolist() if i >= 0]
            seen = torch.cat([seen, whole[kept]])
        scores = torch.cat([query[b, s] @ seen.T * softmax_scale, sinks[:, None]], 1)
        out[b, s] = scores.softmax(-1)[:, :-1] @ seen
    return out, torch.zeros(1)


SHARED_VALUES = {5: [[1, 3], [0, 2]], 11: LENGTHS, 13: SHARES}
SPARSE_VALUES = {6: [[1], [0]], 4: [[[some_compressed(b, s)] for s in range(2)] for b in range(2)]}
NO_BARRIER = "Missing: PipeBarrier<PIPE_V>"


def multiply_groups(x: Any, weight: Any, groups: Tensor, **_: Any) -> Any:
    """Rows of x follow each other in groups, each of which says which weight is its own."""
    pieces, at = [], 0
    for which, rows in groups.tolist():
        pieces.append(x[0][at : at + rows] @ weight[0][which])
        at += rows
    return [torch.cat(pieces)]


ONE_CORE = [1, 0, 0, 0, 1, 0, 0, 0] + [0] * 1016  # which core takes which sequences: the first one the only one
LAYOUTS = {"layout_query": "BSND", "layout_key": "BSND", "sparse_count": 2048, "sparse_mode": 3}
PAGED = tuple(
    f"int8[1,{tokens},64,128] int8[2,16,1,128] T[1,{tokens},64] T[1,{tokens},64] T[2,16,1] - int32[1] int32[1,1] "
    f"int32[1024] -> int32[1,{tokens},1,2048] float32[1]"
    for tokens in (4, 2)
)
PAGED_ATTRS = LAYOUTS | {
    "layout_key": "PA_BSND",
    "query_quant_mode": 0,
    "key_quant_mode": 0,
    "return_values": False,
    "cmp_ratio": 1,
}
PAGED_VALUES = {6: [8], 7: [[1]], 8: ONE_CORE}
ROWS = (
    Row("attention/vllm_quant_lightning_indexer", PAGED, pick_of_pages, values=PAGED_VALUES, initial={1: 0},
        attrs=PAGED_ATTRS | {"stride": 16 * 128, "scale_stride": 16}, hazard=NO_BARRIER),
    turning_compressor(1, 128, 512, 1, 128, 128),
    Row("attention/lightning_indexer_vllm", "T[1,4,64,128] T[1,40,1,128] T[1,4,64] - - - -> int32[1,4,1,2048]",
        pick_keys, ("float16", "bfloat16"), attrs=LAYOUTS, hazard=NO_BARRIER),
    Row("attention/lightning_indexer", "T[1,4,64,128] T[1,40,1,128] T[1,4,64] - - - -> int32[1,4,1,2048] T[1]",
        pick_keys_with_values, ("float16", "bfloat16"), initial={1: 0},  # the values, which nobody asks for
        attrs=LAYOUTS | {"pre_tokens": 2**63 - 1, "next_tokens": 2**63 - 1, "return_values": False}),
    Row("attention/lightning_indexer_quant",
        "int8[1,4,64,128] int8[1,8,1,128] T[1,4,64] T[1,4,64] T[1,8,1] - - - -> int32[1,4,1,2048]",
        pick_quantized_keys, ("float16",), attrs=LAYOUTS | {"query_quant_mode": 0, "key_quant_mode": 0},
        hazard=NO_BARRIER),
    Row("attention/sparse_flash_attention",
        f"T[1,{TOKENS},{HEADS},512] T[1,{KEYS},1,512] T[1,{KEYS},1,512] int32[1,{TOKENS},1,{CHOSEN}] - - - "
        f"T[1,{TOKENS},{HEADS},64] T[1,{KEYS},1,64] {ATTENDED}",
        attend_sparsely, ("float16", "bfloat16"), attrs=ATTENTION, values={3: PICKED}),
    quantized("float16"),
    quantized("bfloat16"),
    Row("attention/sparse_attn_sharedkv",
        "T[2,2,64,512] T[4,128,1,512] - - - int32[2,2] - - - - - int32[2] float32[64] int32[1024] "
        "-> T[2,2,64,512] float32[1]", attend_shared, ("float16", "bfloat16"), attrs=SHARED, values=SHARED_VALUES,
        initial={1: 0}, hazard=NO_BARRIER),
    Row("moe/moe_grouped_matmul", "(T[64,256]) (T[4,256,512]) int64[4,2] -> (T[64,512])", multiply_groups,
        ("float16", "bfloat16"), values={2: [[0, 20], [2, 30], [3, 14], [0, 0]]}),
)  # fmt: skip

FAULTS = (
    # A buffer of 16 KB takes 16 rows of 512 floats as soon as there is more than one piece of keys.
    Fault("attention/sparse_attn_sharedkv",
          "T[2,2,64,512] T[4,128,1,512] T[2,128,1,512] - - int32[2,2] int32[2,1] - - - - int32[2] float32[64] "
          "int32[1024] -> T[2,2,64,512] float32[1]", "past the end of its buffer", dtype="float16", attrs=SHARED,
          values=SHARED_VALUES | {6: [[1], [0]]}),
    Fault("attention/sparse_attn_sharedkv",
          "T[2,2,64,512] T[4,128,1,512] T[2,128,1,512] - int32[2,2,1,512] int32[2,2] int32[2,1] - - - - int32[2] "
          "float32[64] int32[1024] -> T[2,2,64,512] float32[1]", NO_BARRIER, dtype="float16", attrs=SHARED,
          values=SHARED_VALUES | SPARSE_VALUES),
)  # fmt: skip
