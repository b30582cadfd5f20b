"""Attention, and what chooses its keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from cann_ops.table import Row
from vllm_ops import cubes
from vllm_ops.compressors import compressor
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


def attend_chosen(*tensors: Any, **attrs: Any) -> Any:
    """As in vllm-ascend, where there are no sinks."""
    return cubes.attend_sparsely(*tensors[:9], **attrs)


def chosen_alone(dtype: str) -> Row:
    """As in vllm-ascend, where the largest scores and the sums come out as well; with twice as many heads, too."""
    row = cubes.quantized(dtype)
    assert isinstance(row.cases, str)
    attrs = {name: value for name, value in row.attrs.items() if name != "return_softmax_lse"}
    case = f"{row.cases.partition('-> ')[0]}-> T[1,{cubes.TOKENS},{cubes.HEADS},512]"
    more = case.replace(f",{cubes.HEADS},", f",{2 * cubes.HEADS},")
    return replace(row, cases=(case, more), attrs=attrs,
                   reference=lambda *tensors, **given: row.reference(*tensors, **given)[0])  # fmt: skip


def pick_of_pages(query: Tensor, key: Tensor, weights: Tensor, of_query: Tensor, of_key: Tensor, *rest: Any,
                  topk: int, mask_mode: int, **_: Any) -> Any:  # fmt: skip
    found = cubes.pick_of_pages(query, key, weights, of_query, of_key, None, rest[3], rest[5], sparse_count=topk,
                                sparse_mode=mask_mode)  # fmt: skip
    return found[0], torch.zeros(0)


# Operators that vllm-ascend has as well, in another state of their text.
VLLM = {row.path: row for row in cubes.ROWS}
CHOSEN = VLLM["attention/sparse_flash_attention"]
assert isinstance(CHOSEN.cases, str)
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
        VLLM["attention/lightning_indexer"],
        replace(CHOSEN, cases=CHOSEN.cases.replace("->", "- ->"), reference=attend_chosen),
        chosen_alone("float16"),
        chosen_alone("bfloat16"),
        Row("attention/quant_lightning_indexer_v2",
            tuple(f"int8[1,{tokens},64,128] int8[2,16,1,128] T[1,{tokens},64] T[1,{tokens},64] T[2,16,1] - - - "
                  f"int32[1] - int32[1,1] - int32[1024] -> int32[1,{tokens},1,2048] bfloat16[0]" for tokens in (4, 2)),
            pick_of_pages, values={8: [8], 10: [[1]], 12: cubes.ONE_CORE}, hazard=NO_BARRIER,
            attrs={"topk": 2048, "quant_mode": 2, "max_seqlen_q": -1, "layout_q": "BSND", "layout_k": "PA_BBND",
                   "mask_mode": 3, "cmp_ratio": 1, "return_value": 0}),
        Row("experimental/attention/quant_lightning_indexer", cubes.PAGED, cubes.pick_of_pages,
            attrs=cubes.PAGED_ATTRS | {"key_stride0": 16 * 128, "key_dequant_scale_stride0": 16},
            values=cubes.PAGED_VALUES, initial={1: 0}, hazard=NO_BARRIER),
        replace(VLLM["attention/sparse_attn_sharedkv"], path="experimental/attention/sparse_attn_sharedkv"),
        compressor(1, 128, 512, 1, 128, 128),
        compressor(2, 16, 128, 2, 4, 16),
    ),
}  # fmt: skip
