"""What makes one token of several: ops-transformer's compressor, and vllm-ascend's, which norms and turns it, too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from cann_ops.table import Row

Tensor = torch.Tensor


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


TURNED = 64  # elements at the end of each that are turned, two and two


def compress_and_turn(x: Tensor, keys: Tensor, gates: Tensor, kept: Tensor, places: Tensor, gain: Tensor, sin: Tensor,
                      cos: Tensor, blocks: Tensor, *_: Any, norm_eps: float, **attrs: Any) -> Any:  # fmt: skip
    out, kept = compress(x, keys, gates, kept, places, blocks, **attrs)
    out = out * torch.rsqrt(out.square().mean(-1, keepdim=True) + norm_eps) * gain
    last = out[..., -TURNED:]
    beside = torch.stack([-last[..., 1::2], last[..., ::2]], -1).flatten(-2)
    return torch.cat([out[..., :-TURNED], last * cos + beside * sin], -1), kept


def turning_compressor(batch: int, tokens: int, size: int, coff: int, ratio: int, block: int) -> Row:
    row = compressor(batch, tokens, size, coff, ratio, block)
    assert isinstance(row.cases, str)
    inputs = row.cases.split(" ")
    inputs[5:5] = [f"T[{size}]", *[f"T[{batch},{tokens // ratio},{TURNED}]"] * 2]
    return replace(row, cases=" ".join(inputs), reference=compress_and_turn,
                   attrs=row.attrs | {"rope_head_dim": TURNED, "rotary_mode": 2, "norm_eps": 1e-6},
                   values={8: row.values[5], 11: row.values[8]}, domain=row.domain | {5: (0.5, 1.5)},
                   tolerance=row.tolerance | {"bfloat16": 2e-2})  # fmt: skip
