"""Operators of cann-ops's folder ``quant``."""

from __future__ import annotations

from typing import Any

import torch

from .table import FLOATS, Row, clip_int8

Tensor = torch.Tensor
ROUNDED = {"int8": {"atol": 1}, "int4": {"atol": 1}}  # beside a half it rounds either way
INT8, INT4 = 2, 29  # ge::DataType


def quantize(x: Tensor, dst_type: int) -> Tensor:
    return clip_int8(x) if dst_type == INT8 else torch.round(x).clamp(-8, 7).to(torch.int8)


def ascend_quant(x: Tensor, scale: Tensor, offset: Tensor | None, dst_type: int, **_: Any) -> Tensor:
    return quantize(x * scale + (0 if offset is None else offset), dst_type)


def groups_of(x: Tensor, ends: Tensor) -> Tensor:
    """The group of each row: group e ends before row ``ends[e]``."""
    return torch.bucketize(torch.arange(x.shape[0]), ends.long(), right=True)


def group_quant(x: Tensor, scale: Tensor, group: Tensor, offset: Tensor | None, dst_type: int) -> Tensor:
    return quantize(x * scale[groups_of(x, group)] + (0 if offset is None else offset), dst_type)


STATIC = {"sqrt_mode": False, "round_mode": "round", "axis": -1}
ENDS = [3, 7, 8, 16]

ROWS = (
    *(
        row
        for dst, dst_type in (("int8", INT8), ("int4", INT4))
        for row in (
            Row("quant/ascend_quant_v2",
                (f"T[16,512] T[512] T[512] -> {dst}[16,512]", f"T[7,100] T[100] T[100] -> {dst}[7,100]"),
                ascend_quant, FLOATS, attrs={**STATIC, "dst_type": dst_type}, tolerance=ROUNDED),
            *(
                Row("quant/group_quant", f"T[16,512] S[4,512] {index}[4] S[1] -> {dst}[16,512]", group_quant,
                    tuple(f"{t}/{s}" for t in FLOATS for s in FLOATS), attrs={"dst_type": dst_type},
                    values={2: ENDS}, tolerance=ROUNDED)
                for index in ("int32", "int64")
            ),
            Row("quant/group_quant", f"T[16,100] float32[4,100] int32[4] - -> {dst}[16,100]", group_quant,
                attrs={"dst_type": dst_type}, values={2: ENDS}, tolerance=ROUNDED),
        )
    ),
)  # fmt: skip
