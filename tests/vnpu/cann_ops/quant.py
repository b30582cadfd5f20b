"""Operators of cann-ops's folder ``quant``."""

from __future__ import annotations

from .table import FLOATS, Row, clip_int8

ROWS = (
    Row("quant/ascend_quant_v2", "T[16,512] T[512] T[512] -> int8[16,512]",
        lambda x, s, o, **_: clip_int8(x * s + o), FLOATS,
        attrs={"sqrt_mode": False, "round_mode": "round", "dst_type": 2, "axis": -1}),
)  # fmt: skip
