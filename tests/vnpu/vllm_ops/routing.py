"""vllm-ascend's routing of tokens to experts, and the quantization behind it."""

from __future__ import annotations

from typing import Any

import torch
from cann_ops.table import Fault, Row, clip_int8

Tensor = torch.Tensor

GATE = {"k_group": 1, "group_count": 1, "group_select_mode": 0, "renorm": 0, "norm_type": 0, "out_flag": False,
        "routed_scaling_factor": 1.0, "eps": 1e-20}  # fmt: skip
GROUPS = {"k_group": 4, "group_count": 8, "group_select_mode": 1, "norm_type": 1, "routed_scaling_factor": 2.5}
EXPERTS_OF_TOKENS = [3, 1, 0, 2, 5, 7, 6, 4, 3, 0, 7, 2, 1, 1, 5, 3, 0, 6, 2, 2]  # 10 tokens, 2 experts each


def gate(x: Tensor, bias: Tensor | None, k: int, k_group: int = 1, group_count: int = 1, group_select_mode: int = 0,
         renorm: int = 0, norm_type: int = 0, out_flag: bool = False, routed_scaling_factor: float = 1.0,
         eps: float = 1e-20) -> Any:  # fmt: skip
    """The k best experts of the best groups, by score and bias; their weights are scores alone."""
    scores = x.softmax(-1) if norm_type == 0 else x.sigmoid()
    rated = scores if bias is None else scores + bias
    if group_count > 1:
        groups = rated.unflatten(-1, (group_count, -1))
        best = groups.amax(-1) if group_select_mode == 0 else groups.topk(2, -1).values.sum(-1)
        kept = torch.sort(best, dim=-1, descending=True, stable=True).indices[:, :k_group]
        out = torch.ones_like(best, dtype=torch.bool).scatter(-1, kept, False)
        rated = groups.masked_fill(out[..., None], float("-inf")).flatten(-2)
    chosen = torch.sort(rated, dim=-1, descending=True, stable=True).indices[:, :k]
    y = scores.gather(-1, chosen)
    if norm_type == 1 or renorm == 1:
        y = y / (y.sum(-1, keepdim=True) + eps)
    return y * routed_scaling_factor, chosen.int(), scores if out_flag else torch.zeros_like(scores)


def gate_by_table(x: Tensor, bias: Tensor | None, ids: Tensor | None, table: Tensor | None, k: int,
                  routed_scaling_factor: float = 1.0, eps: float = 1e-20, **_: Any) -> Any:  # fmt: skip
    """Experts that a table names for each token, or the best by score and bias; weighted by their shares."""
    scores = torch.nn.functional.softplus(x).sqrt()
    rated = scores if bias is None else scores + bias
    if ids is None or table is None:
        chosen = torch.sort(rated, dim=-1, descending=True, stable=True).indices[:, :k]
    else:
        chosen = table[ids.long()].long()
    y = scores.gather(-1, chosen)
    return y / (y.sum(-1, keepdim=True) + eps) * routed_scaling_factor, chosen.int(), torch.zeros_like(scores)


def route(x: Tensor, experts: Tensor, scale: Tensor | None, _: Any, expert_num: int, **__: Any) -> Any:
    """Tokens in the order of their experts, where each went, how many every expert gets, and their scales."""
    order = torch.argsort(experts.flatten(), stable=True)
    went = torch.empty_like(order)
    went[order] = torch.arange(len(order))
    rows = order // experts.shape[1]
    counts = experts.flatten().long().bincount(minlength=expert_num)
    return x[rows], went.int(), counts, torch.zeros(len(order)) if scale is None else scale[rows]


def dequant_swiglu_quant(x: Tensor, weight_scale: Tensor, activation_scale: Tensor, *_: Any, **__: Any) -> Any:
    half = x.shape[-1] // 2
    whole = x.double() * weight_scale * activation_scale.reshape(-1, 1)
    y = torch.nn.functional.silu(whole[:, :half]) * whole[:, half:]
    scale = y.abs().amax(-1) / 127
    return clip_int8(y / scale[:, None]), scale


ROWS = (
    # As many experts as its buffers for the chosen ones have room for; with others it writes behind them (FAULTS).
    Row("moe/moe_gating_top_k",
        ("T[16,32] T[32] -> T[16,32] int32[16,32] float32[16,32]",
         "T[7,32] - -> T[7,32] int32[7,32] float32[7,32]"),
        gate, ("float32", "float16", "bfloat16"), attrs=GATE | {"k": 32, "renorm": 1, "out_flag": True}),
    Row("moe/moe_gating_top_k", "T[16,256] T[256] -> T[16,32] int32[16,32] float32[16,256]",
        gate, ("float32", "float16", "bfloat16"), initial={2: 0}, attrs=GATE | GROUPS | {"k": 32}),
    Row("moe/moe_gating_top_k_hash", "T[10,256] T[256] int64[10] int32[32,6] -> T[10,6] int32[10,6] float32[10,256]",
        gate_by_table, ("float32", "float16", "bfloat16"), domain={2: (0, 31), 3: (0, 255)}, initial={2: 0},
        attrs=GATE | {"k": 6, "group_select_mode": 1, "norm_type": 2, "routed_scaling_factor": 1.5}),
    Row("moe/moe_init_routing_custom",
        "T[10,64] int32[10,2] float32[10] - -> T[20,64] int32[20] int64[8] float32[20]",
        route, ("float32", "float16", "bfloat16"), values={1: EXPERTS_OF_TOKENS},
        attrs={"active_num": 20, "expert_capacity": -1, "expert_num": 8, "drop_pad_mode": 0,
               "expert_tokens_num_type": 1, "expert_tokens_num_flag": True, "quant_mode": -1,
               "active_expert_range": (0, 8), "row_idx_type": 0}),
    Row("moe/dequant_swiglu_quant",
        ("int32[16,512] float32[512] float32[16] - - - - -> int8[16,256] float32[16]",),
        dequant_swiglu_quant, ("float32",), domain={0: (-100, 100), 1: (0.01, 0.2), 2: (0.1, 1.0)},
        attrs={"activate_left": True, "quant_mode": "dynamic"}),
)  # fmt: skip

#: Its buffers for k indices are k wide; GatherMask writes 32 indices and DataCopy as many as there are experts. With
#: groups it is so, too, for 256 experts (moe_gating_top_k_e_k_fullload.h) and for others (.._generalized.h). The
#: versions in ops-transformer (hicann, da7cb68) have the same buffers and the same calls.
FAULTS = (
    Fault("moe/moe_gating_top_k", "T[16,64] T[64] -> T[16,4] int32[16,4] float32[16,64]",
          "GatherMask: the destination covers UB bytes", attrs=GATE | {"k": 4}),
    Fault("moe/moe_gating_top_k", "T[16,256] T[256] -> T[16,8] int32[16,8] float32[16,256]",
          "GatherMask: the destination covers UB bytes", attrs=GATE | GROUPS | {"k": 8}),
    Fault("moe/moe_gating_top_k", "T[16,128] T[128] -> T[16,8] int32[16,8] float32[16,128]",
          "GatherMask: the destination covers UB bytes", attrs=GATE | GROUPS | {"k": 8, "group_count": 4}),
)  # fmt: skip
