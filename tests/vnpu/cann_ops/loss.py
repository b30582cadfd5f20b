"""Operators of cann-ops's folder ``loss``."""

from __future__ import annotations

from .table import FLOATS, Row

ROWS = (
    Row("loss/mse_loss_v2", "T[64,300] T[64,300] -> T[1]", lambda x, t, reduction: ((x - t) ** 2).mean(), FLOATS,
        attrs={"reduction": "mean"}),
    Row("loss/mse_loss_v2", "T[64,300] T[64,300] -> T[64,300]", lambda x, t, reduction: (x - t) ** 2, FLOATS,
        attrs={"reduction": "none"}),
)  # fmt: skip
