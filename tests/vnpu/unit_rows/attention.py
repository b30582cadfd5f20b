"""Attention, and what chooses its keys."""

from __future__ import annotations

from cann_ops.table import Row
from vllm_ops.cubes import LAYOUTS, pick_quantized_keys

ROWS: dict[str, tuple[Row, ...]] = {
    "ops-transformer": (
        # Few keys: of many two may be as good as each other in half, and either order is right.
        Row("attention/quant_lightning_indexer",
            ("int8[1,4,64,128] int8[1,8,1,128] T[1,4,64] T[1,4,64] T[1,8,1] - - - -> int32[1,4,1,2048]",
             "int8[2,2,64,128] int8[2,10,1,128] T[2,2,64] T[2,2,64] T[2,10,1] - - - -> int32[2,2,1,2048]"),
            pick_quantized_keys, ("float16",), attrs=LAYOUTS | {"query_quant_mode": 0, "key_quant_mode": 0}),
    ),
}  # fmt: skip
