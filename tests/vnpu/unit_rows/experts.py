"""Networks of experts, as rows of the table of units."""

from __future__ import annotations

from typing import Any

import torch
from cann_ops.table import Row

Tensor = torch.Tensor


def nibbles(packed: Tensor) -> Tensor:
    """int32[..., n] as signed four-bit numbers [..., 8 n]."""
    halves = torch.stack([(packed.long() >> (4 * i)) & 15 for i in range(8)], -1).flatten(-2)
    return (halves - 16 * (halves > 7)).double()


def experts(x: Tensor, up: Tensor, up_scale: Tensor, down: Tensor, down_scale: Tensor, chosen: Tensor, rows: Tensor,
            places: Tensor, shares: Tensor, *_: Any, scale_group_size: int, **__: Any) -> Tensor:  # fmt: skip
    """A row goes to ``topk`` experts, each two products with SwiGLU between them; weights have four bits, in squares of
    16, and a scale for each group of rows. ``chosen``: experts in order, ``rows``: whose they are, ``places``: where a
    row's own are in that order."""

    def whole(weight: Tensor, scale: Tensor) -> Tensor:
        count, high, wide = weight.shape[:3]
        numbers = nibbles(weight).permute(0, 1, 3, 2, 4).reshape(count, high * 16, wide * 16)
        return numbers * scale.repeat_interleave(scale_group_size, 1)

    first, second = whole(up, up_scale), whole(down, down_scale)
    made = []
    for expert, row in zip(chosen.tolist(), rows.tolist(), strict=True):
        gate, value = (x[row] @ first[expert]).chunk(2)
        made.append((torch.nn.functional.silu(gate) * value) @ second[expert])
    return (torch.stack(made)[places.long()] * shares[..., None]).sum(1)


def moe_ffn(rows: int, dtypes: tuple[str, ...], width: int = 256, hidden: int = 256) -> Row:
    count, topk, group = 4, 2, 64
    random = torch.Generator().manual_seed(rows)
    asked = torch.stack([torch.randperm(count, generator=random)[:topk] for _ in range(rows)]).flatten()
    order = asked.sort(stable=True)[1]
    places = torch.empty_like(order)
    places[order] = torch.arange(rows * topk)
    kept = f"int32[{rows * topk}] int32[{rows * topk}] int32[{rows},{topk}] T[{rows},{topk}] - -"
    return Row(
        "experimental/moe/moe_ffn",
        (f"T[{rows},{width}] int32[{count},{width // 16},{hidden // 16},16,2] T[{count},{width // group},{hidden}] "
         f"int32[{count},{hidden // 32},{width // 16},16,2] T[{count},{hidden // 2 // group},{width}] {kept} "
         f"-> T[{rows},{width}]"),
        experts, dtypes, attrs={"scale_group_size": group, "topk": topk},
        values={5: asked[order].tolist(), 6: (order // topk).tolist(), 7: places.reshape(rows, topk).tolist()},
        domain={1: (-(2**31), 2**31 - 1), 3: (-(2**31), 2**31 - 1), 2: (0.0, 0.02), 4: (0.0, 0.02)},
        tolerance={"bfloat16": 2e-2, "float16": 4e-3},  # weights and what is between the products are rounded
    )  # fmt: skip


ROWS: dict[str, tuple[Row, ...]] = {"ops-transformer": (moe_ffn(12, ("bfloat16", "float16")),)}
