"""vllm-ascend's steps of a layer: norms, rotations, streams and the recurrent state."""

from __future__ import annotations

from typing import Any

import torch
from cann_ops.table import Row, clip_int8

Tensor = torch.Tensor


def rms_norm_quant(x: Tensor, gamma: Tensor, smooth: Tensor | None, _: Any, beta: Tensor | None, epsilon: float,
                   **__: Any) -> Any:  # fmt: skip
    y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon) * gamma
    y = y if beta is None else y + beta
    y = y if smooth is None else y * smooth
    scale = y.abs().amax(-1) / 127
    return clip_int8(y / scale[..., None]), torch.zeros(1), scale, torch.zeros_like(scale)


def rotate_part(x: Tensor, cos: Tensor, sin: Tensor, partial_slice: tuple[int, int], **_: Any) -> Tensor:
    """Pairs of neighbours within a slice of the last axis, rotated."""
    out, (begin, end) = x.clone(), partial_slice
    part = x[..., begin:end]
    turned = torch.stack([-part[..., 1::2], part[..., ::2]], -1).flatten(-2)
    out[..., begin:end] = part * cos + turned * sin
    return out


def delta_rule(query: Tensor, key: Tensor, value: Tensor, beta: Tensor, state: Tensor, lengths: Tensor,
               slots: Tensor, g: Tensor | None, gk: Any, accepted: Tensor | None,
               scale_value: float) -> Any:  # fmt: skip
    """State of every head, decayed and corrected by each token: what it holds for the key moves to the value."""
    out, states, begin = torch.zeros_like(value), state.clone(), 0
    heads = torch.arange(value.shape[1]) // (value.shape[1] // key.shape[1])
    for i, length in enumerate(lengths.tolist()[1:]):
        first = begin + (0 if accepted is None else int(accepted[i]) - 1)
        s = states[int(slots[first])].clone()  # head, value, key
        for t in range(begin, begin + length):
            q, k = query[t][heads] * scale_value, key[t][heads]
            s = s if g is None else s * g[t].exp()[:, None, None]
            change = (value[t] - torch.einsum("hvk,hk->hv", s, k)) * beta[t][:, None]
            s = s + torch.einsum("hv,hk->hvk", change, k)
            states[int(slots[t])] = s
            out[t] = torch.einsum("hvk,hk->hv", s, q)
        begin += length
    return out, states


def balance_streams(mixes: Tensor, rsqrt: Tensor, scale: Tensor, base: Tensor, x: Tensor, hc_mult: int,
                    hc_sinkhorn_iters: int, hc_eps: float) -> Any:  # fmt: skip
    """Streams added up by gates, gates for the way back, and a mixing matrix made doubly stochastic by Sinkhorn."""
    m = hc_mult
    whole = mixes * rsqrt
    pre = (whole[:, :m] * scale[0] + base[:m]).sigmoid() + hc_eps
    post = 2 * (whole[:, m : 2 * m] * scale[1] + base[m : 2 * m]).sigmoid()
    comb = (whole[:, 2 * m :] * scale[2] + base[2 * m :]).unflatten(-1, (m, m)).softmax(-1) + hc_eps
    comb = comb / (comb.sum(-2, keepdim=True) + hc_eps)
    for _ in range(hc_sinkhorn_iters - 1):
        comb = comb / (comb.sum(-1, keepdim=True) + hc_eps)
        comb = comb / (comb.sum(-2, keepdim=True) + hc_eps)
    return (pre[..., None] * x).sum(1), post, comb


ROWS = (
    Row("attention/rms_norm_dynamic_quant",
        "T[16,512] T[512] T[512] - T[512] -> int8[16,512] int8[1] float32[16] float32[16]",
        rms_norm_quant, ("float16", "bfloat16"), initial={1: 0, 3: 0},  # for a second smooth scale
        attrs={"epsilon": 1e-6, "output_mask": (), "dst_type": 2}, hazard="Missing: PipeBarrier<PIPE_V>"),
    Row("attention/inplace_partial_rotary_mul",
        "T[3,1,8,192] S[3,1,1,64] S[3,1,1,64] -> T[3,1,8,192]", rotate_part,
        ("bfloat16/float32", "float16/float32", "float16", "bfloat16", "float32"),
        attrs={"mode": 1, "partial_slice": (128, 192)}),
    Row("attention/recurrent_gated_delta_rule",
        "T[6,4,128] T[6,4,128] T[6,8,128] T[6,8] S[6,8,128,128] int32[4] int32[6] float32[6,8] - int32[3] "
        "-> T[6,8,128] S[6,8,128,128]", delta_rule, ("bfloat16", "bfloat16/float32"),
        domain={7: (-2.0, 0.0)}, values={5: [0, 2, 3, 1], 6: [0, 1, 2, 3, 4, 5], 9: [1, 2, 1]},
        attrs={"scale_value": 128**-0.5}),
    Row("moe/hc_pre_sinkhorn",
        ("float32[16,24] float32[16,1] float32[3] float32[24] bfloat16[16,4,1024] "
         "-> bfloat16[16,1024] float32[16,4] float32[16,4,4]",), balance_streams, ("float32",),
        attrs={"hc_mult": 4, "hc_sinkhorn_iters": 20, "hc_eps": 1e-6}),
)  # fmt: skip
