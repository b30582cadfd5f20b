"""Attention, and what chooses its keys."""

from __future__ import annotations

from typing import Any

import torch
from cann_ops.table import Row
from vllm_ops.cubes import LAYOUTS, LENGTHS, NO_BARRIER, attend_shared, pick_quantized_keys

Tensor = torch.Tensor


def selected_in_pages(q: Tensor, keys: Tensor, values: Tensor, chosen: Tensor, _: Any, pages: Tensor, __: Any,
                      lengths: Tensor, scale_value: float, selected_block_size: int, **___: Any) -> Tensor:  # fmt: skip
    """One token for each sequence, over the chosen blocks of its keys, which lie in pages."""
    out = torch.zeros(*q.shape[:3], values.shape[-1], dtype=q.dtype)
    for b, length in enumerate(lengths.tolist()):
        k, v = (x[pages[b].long()].flatten(0, 1) for x in (keys, values))
        group = q.shape[2] // k.shape[1]
        for h in range(q.shape[2]):
            begins = [block * selected_block_size for block in chosen[b, 0, h // group].tolist()]
            at = torch.cat([torch.arange(i, min(i + selected_block_size, length)) for i in begins])
            weights = torch.softmax(k[at, h // group] @ q[b, 0, h] * scale_value, 0)
            out[b, 0, h] = weights @ v[at, h // group]
    return out


def attend_window(query: Tensor, near: Tensor, *rest: Any, **attrs: Any) -> Any:
    """The last keys, in blocks that a table finds, beside a sink for each head."""
    return attend_shared(query, near, *rest[:5], *rest[5:10], rest[14], **attrs)


def compress(x: Tensor, keys: Tensor, gates: Tensor, kept: Tensor, places: Tensor, blocks: Tensor, *_: Any,
             cmp_ratio: int, coff: int, **__: Any) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Of ``cmp_ratio`` tokens one, its elements weighted by a softmax; with ``coff`` 2 over those before them, too.

    What is weighted is kept as well, in blocks that a table finds.
    """
    tokens, size = x.shape[1], keys.shape[0] // coff
    values, scores = x @ keys.T, x @ gates.T + places.repeat(tokens // cmp_ratio, 1)
    kept, out = kept.clone(), x.new_zeros(x.shape[0], tokens // cmp_ratio, size)
    for b in range(x.shape[0]):
        held = torch.cat([values[b], scores[b]], -1)
        for s in range(tokens):
            kept[blocks[b, s // kept.shape[1]], s % kept.shape[1]] = held[s]
        for i in range(tokens // cmp_ratio):
            v, w = (t[b].unflatten(0, (-1, cmp_ratio))[i, :, -size:] for t in (values, scores))
            if coff == 2 and i > 0:
                before = [t[b].unflatten(0, (-1, cmp_ratio))[i - 1, :, :size] for t in (values, scores)]
                v, w = torch.cat([before[0], v]), torch.cat([before[1], w])
            out[b, i] = (w.softmax(0) * v).sum(0)
    return out, kept


def compressor(batch: int, tokens: int, size: int, coff: int, ratio: int, block: int) -> Row:
    wide, blocks = coff * size, -(-tokens // block)
    state = f"float32[{1 + batch * blocks},{block},{2 * wide}]"
    case = (f"T[{batch},{tokens},1024] T[{wide},1024] T[{wide},1024] {state} float32[{ratio},{wide}] "
            f"int32[{batch},{blocks}] - - int32[{batch}] -> T[{batch},{tokens // ratio},{size}] {state}")  # fmt: skip
    return Row("attention/compressor", case, compress, ("bfloat16", "float16"),
               attrs={"cmp_ratio": ratio, "coff": coff, "cache_mode": 1, "state_cache_stride_dim0": block * 2 * wide},
               values={5: (torch.arange(batch * blocks) + 1).reshape(batch, blocks).tolist(), 8: [0] * batch},
               domain={0: (-1, 1), 1: (-0.1, 0.1), 2: (-0.1, 0.1)},
               tolerance={"bfloat16": 1.2e-2, "float16": 4e-3, "float32": 1e-3})  # fmt: skip


# The cores' shares come from another operator: here each takes a sequence.
SHARES = [n for core in range(2) for n in (1, core, 0, 0, core + 1, 0, 0, 0, 4)] + [0] * 1006
ROWS: dict[str, tuple[Row, ...]] = {
    "ops-transformer": (
        # Few keys: of many two may be as good as each other in half, and either order is right.
        Row("attention/quant_lightning_indexer",
            ("int8[1,4,64,128] int8[1,8,1,128] T[1,4,64] T[1,4,64] T[1,8,1] - - - -> int32[1,4,1,2048]",
             "int8[2,2,64,128] int8[2,10,1,128] T[2,2,64] T[2,2,64] T[2,10,1] - - - -> int32[2,2,1,2048]"),
            pick_quantized_keys, ("float16",), attrs=LAYOUTS | {"query_quant_mode": 0, "key_quant_mode": 0}),
        Row("attention/nsa_selected_attention_infer",
            "T[2,1,4,192] T[8,64,1,192] T[8,64,1,128] int32[2,1,1,2] - int32[2,4] int64[2] int64[2] -> T[2,1,4,128]",
            selected_in_pages, ("float16", "bfloat16"),
            attrs={"input_layout": "BSND", "num_heads": 4, "num_key_value_heads": 1, "selected_block_size": 64,
                   "selected_block_count": 2, "block_size": 64, "scale_value": 192**-0.5, "sparse_mode": 0},
            values={3: [[[[0, 2]]], [[[1, 3]]]], 5: [[0, 1, 2, 3], [4, 5, 6, 7]], 6: [1, 1], 7: [200, 256]}),
        Row("attention/sparse_flash_mla",
            "T[2,2,64,512] T[4,128,1,512] - - - int32[2,2] - - - - - int32[2] - - - - float32[64] int32[1024] "
            "-> T[2,2,64,512] float32[1]", attend_window, ("float16", "bfloat16"),
            attrs={"softmax_scale": 512**-0.5, "cmp_ratio": 1, "ori_mask_mode": 4, "cmp_mask_mode": 3,
                   "ori_win_left": 127, "ori_win_right": 0, "layout_q": "BSND", "layout_kv": "PA_BBND",
                   "topk_value_mode": 1, "return_softmax_lse": False},
            values={5: [[1, 3], [0, 2]], 11: LENGTHS, 17: SHARES}, initial={1: 0}, hazard=NO_BARRIER),
        compressor(1, 128, 512, 1, 128, 128),
        compressor(2, 16, 128, 2, 4, 16),
    ),
}  # fmt: skip
