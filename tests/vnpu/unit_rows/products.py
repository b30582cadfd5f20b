"""Matrix products and what is fused with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from cann_ops.table import TWICE, Row, dynamic_quant, gelu_tanh
from test_matmul_sparse import as_tiles, sparse

Tensor = torch.Tensor
Order = tuple[int, int, int]


def product(a: Tensor, b: Tensor, bias: Tensor | None, transpose_x1: bool, transpose_x2: bool) -> Tensor:
    found = (a.mT if transpose_x1 else a) @ (b.mT if transpose_x2 else b)
    return found if bias is None else found + bias


def plain_product(a: Tensor, b: Tensor, *_: Any, **__: Any) -> Tensor:
    return a @ b


def product_of_batches(x1: Tensor, x2: Tensor, *_: Any, perm_x1: Order, perm_x2: Order, **__: Any) -> Tensor:
    """Batch by batch; the batches come last but one."""
    return (x1.permute(perm_x1) @ x2.permute(perm_x2)).transpose(0, 1)


def matrix(tiles: Tensor) -> Tensor:
    """[..., columns / c, rows / r, r, c], as FRACTAL_NZ lies, as [..., rows, columns]."""
    *batch, across, down, rows, columns = tiles.shape
    return tiles.movedim(-4, -2).reshape(*batch, down * rows, across * columns)


def product_of_groups(x: list[Tensor], weight: list[Tensor], *rest: Any, **_: Any) -> list[Tensor]:
    """Rows of x follow each other in groups, whose ends are given, each with a weight of its own."""
    ends = [0, *rest[5].tolist()]
    return [torch.cat([x[0][a:b] @ w for a, b, w in zip(ends, ends[1:], weight[0], strict=False)])]


def swiglu_in_int8(product: Tensor) -> tuple[Tensor, Tensor]:
    """Each row by a scale of its own."""
    gate, up = product.chunk(2, -1)
    found = torch.nn.functional.silu(gate) * up
    return dynamic_quant(found)


def swiglu_of_groups(x: Tensor, of_row: Tensor, ends: Tensor, weight: list[Tensor], scale: list[Tensor],
                     *_: Any, **__: Any) -> tuple[Tensor, Tensor]:  # fmt: skip
    at = [0, *ends.tolist()]
    parts = [
        x[a:b].double() @ w.double() * s for a, b, w, s in zip(at, at[1:], matrix(weight[0]), scale[0], strict=False)
    ]
    return swiglu_in_int8(torch.cat(parts) * of_row[:, None])


def products_to_tokens(x: Tensor, weight: Tensor, scale: Tensor, _: Any, of_row: Tensor, counts: Tensor,
                       shared: Tensor | None, share: Tensor, token: Tensor, *__: Any, output_bs: int,
                       shared_input_offset: int, **___: Any) -> Tensor:  # fmt: skip
    """Rows in groups, each row with a token that its product is added to by a share; some have something already."""
    out = torch.zeros(output_bs, scale.shape[1], dtype=torch.float64)
    if shared is not None:
        out[shared_input_offset : shared_input_offset + len(shared)] = shared.double()
    at = [0, *counts.cumsum(0).tolist()]
    parts = [x[a:b].double() @ w * s for a, b, w, s in zip(at, at[1:], matrix(weight).double(), scale, strict=False)]
    return out.index_add(0, token.long(), torch.cat(parts) * (of_row * share)[:, None])


def sum_of_products(x: Tensor, weight: Tensor, _: Tensor, __: Any, of_row: Tensor, of_column: Tensor, *___: Any,
                    **____: Any) -> Tensor:  # fmt: skip
    return ((x.double() @ matrix(weight).double()) * of_row[..., None] * of_column).sum(0)


def product_in_int8(x: Tensor, weight: Tensor, scale: Tensor, _: Any, bias: Tensor | None, of_row: Tensor | None,
                    **__: Any) -> Tensor:  # fmt: skip
    found = x.double() @ weight.double()
    found = (found if bias is None else found + bias) * scale
    return found if of_row is None else found * of_row[:, None]


# Scales as Fixpipe takes them: the bits of a float in 64.
SCALES = np.tile(np.arange(1, 8) * 0.0005, 293)[:2048].astype(np.float32).view(np.uint32)


def product_in_tiles(x: Tensor, weight: Tensor, *_: Any, **__: Any) -> Tensor:
    return x.double() @ matrix(weight).double() * torch.from_numpy(SCALES.view(np.float32)).double()


def quantized_after_rotation(x: Tensor, rotation: Tensor, _: Any, **__: Any) -> tuple[Tensor, Tensor]:
    return dynamic_quant((x.reshape(-1, len(rotation)) @ rotation).reshape(x.shape))


def product_and_sum(a: Tensor, b: Tensor, alpha: Tensor, beta: Tensor, c: Tensor, **_: Any) -> Tensor:
    return alpha * (a @ b) + beta * c


def product_and_added(a: Tensor, b: Tensor, c: Tensor, alpha: float, beta: float, **_: Any) -> Tensor:
    return alpha * (a @ b) + beta * c


def quantized_after_both(x: Tensor, left: Tensor, right: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
    """Each matrix of x between two, then to int4 by a scale of its own."""
    found = left @ x @ right
    scale = found.abs().amax((1, 2)) / 7
    return (found / scale[:, None, None]).round().clamp(-8, 7).to(torch.int8), scale


def feed_forward(x: Tensor, first: Tensor, second: Tensor, _: Any, bias: Tensor | None, more_bias: Tensor | None,
                 *__: Any, **___: Any) -> Tensor:  # fmt: skip
    hidden = (x @ first if bias is None else x @ first + bias).relu()
    return hidden @ second if more_bias is None else hidden @ second + more_bias


def linear_gelu(x: Tensor, weight: Tensor, bias: Tensor | None, approximate: int) -> Tensor:
    found = x @ weight.mT
    found = found if bias is None else found + bias
    return gelu_tanh(found) if approximate else torch.nn.functional.gelu(found)


# Of every four elements along k two are zeros; what is left, and the places of what is left, lie as tiles.
SPARSE, _LEFT, _PLACES = sparse(128, 256)
LEFT, PLACES = as_tiles(_LEFT, 32).reshape(4, 8, 16, 32).tolist(), as_tiles(_PLACES, 8).reshape(4, 8, 16, 8).tolist()


def product_with_sparse(x: Tensor, _: Tensor, __: Tensor, of_row: Tensor, of_column: Tensor, bias: Tensor | None,
                        **___: Any) -> Tensor:  # fmt: skip
    found = x.double() @ torch.from_numpy(SPARSE).double().T * of_row[:, None] * of_column
    return found if bias is None else found + bias


def softmax_backwards(softmax: Tensor, dy: Tensor, values: Tensor) -> Tensor:
    """What comes back through softmax(x) @ values."""
    d = dy @ values.mT
    return softmax * (d - (d * softmax).sum(-1, keepdim=True))


def largest_and_sum(x: Tensor, weight: Tensor, target: Tensor, vocab_start_index: int, vocab_end_index: int,
                    **_: Any) -> tuple[Tensor, ...]:  # fmt: skip
    """Of each row of the products, which are rounded to half first, and of what is wanted of it; a bit for each row."""
    logits = (x @ weight.T).half().double()
    most = logits.amax(-1)
    rest = logits - most[:, None]
    elsewhere = (target < vocab_start_index) | (target > vocab_end_index)
    place = torch.where(elsewhere, 0, target - vocab_start_index)
    found = torch.where(elsewhere, 0, rest.gather(1, place[:, None].long())[:, 0])
    bits = (elsewhere.reshape(-1, 8).int() << torch.arange(8)).sum(-1).to(torch.uint8)
    return most, rest.exp().sum(-1), found, bits, place.to(target.dtype), logits


NONE_OF_FFN = "- - - - - - - -"
ENDS = [20, 50, 64]
QUANTIZED = "-> int8[64,256] float32[64]"
GEMM = Row("matmul/gemm_v2",
    ("T[64,128] T[128,96] T[1] T[1] float32[64,96] -> float32[64,96]",
     "T[200,256] T[256,128] T[1] T[1] float32[200,128] -> float32[200,128]"),
    product_and_sum, ("float16", "bfloat16"), values={2: [1.0], 3: [1.0]},
)  # fmt: skip
SOFTMAX_GRAD = Row("math/inplace_fused_matmul_softmax_grad",
    ("T[128,256] T[128,64] T[256,64] -> T[128,256]", "T[50,96] T[50,32] T[96,32] -> T[50,96]"), softmax_backwards,
    in_place=(0,), domain={0: (0.0, 0.1), 1: (-1.0, 1.0), 2: (-1.0, 1.0)}, tolerance={"float16": 4e-3},
)  # fmt: skip
BATCHES = Row("matmul/batch_mat_mul_v3",
    ("T[4,64,128] T[4,128,96] - - -> T[4,64,96]", "T[3,50,64] T[3,64,80] - - -> T[3,50,80]"), plain_product,
    attrs={"adj_x1": False, "adj_x2": False, "offset_x": 0, "enable_hf32": False},
)  # fmt: skip
IN_INT8 = Row("matmul/quant_batch_matmul_v3",
    ("int8[64,256] int8[256,128] T[128] - - float32[64] -> T[64,128]",
     "int8[70,304] int8[304,192] T[192] - int32[192] float32[70] -> T[70,192]"), product_in_int8, ("bfloat16",),
    attrs={"dtype": 27, "transpose_x1": False, "transpose_x2": False}, domain={2: (0, 0.01), 5: (0.5, 1)},
    tolerance={"bfloat16": 8e-3},
)  # fmt: skip
PRODUCTS: dict[str, tuple[Row, ...]] = {
    "cann-ops": (GEMM, SOFTMAX_GRAD, BATCHES, IN_INT8),
    "ops-nn": (
        Row("experimental/matmul/matmul_fp32",
            ("T[64,128] T[128,96] T[96] -> T[64,96]", "T[256,64] T[64,128] T[128] -> T[256,128]"), product,
            ("float32",), attrs={"transpose_x1": False, "transpose_x2": False}),
        Row("experimental/matmul/fused_matmul_gelu",
            ("T[64,128] T[256,128] T[256] -> T[64,256]", "T[37,96] T[80,96] - -> T[37,80]"), linear_gelu,
            ("float16", "bfloat16"), attrs={"approximate": 1}, tolerance=TWICE),  # rounds the product, too
        Row("matmul/transpose_batch_mat_mul",
            ("T[4,32,128] T[4,128,64] - - -> T[32,4,64]", "T[2,50,128] T[2,128,128] - - -> T[50,2,128]"),
            product_of_batches, ("float16", "bfloat16"),
            attrs={"perm_x1": (0, 1, 2), "perm_x2": (0, 1, 2), "perm_y": (1, 0, 2), "enable_hf32": False,
                   "batch_split_factor": 1}),
        Row("matmul/gemm_v3",
            ("T[64,128] T[128,96] float32[64,96] -> float32[64,96]",
             "T[200,72] T[72,130] float32[200,130] -> float32[200,130]"),
            product_and_added, ("float16", "bfloat16"),
            attrs={"alpha": 1.0, "beta": 1.0, "transpose_a": False, "transpose_b": False, "enable_hf32": False}),
        GEMM,
        Row("matmul/mat_mul_v3",
            ("T[64,128] T[128,96] - - -> T[64,96]", "T[50,72] T[72,130] - - -> T[50,130]"), plain_product,
            attrs={"transpose_x1": False, "transpose_x2": False, "offset_x": 0, "opImplMode": 1}),
        BATCHES,
        # Few rows and weights in tiles; for others it asks CANN's unpublished library.
        Row("matmul/quant_batch_matmul_v3",
            tuple(f"int8[{m},{k}] int8[64,{k // 16},16,32]:FRACTAL_NZ uint64[2048] - - - -> T[{m},2048]"
                  for m, k in ((16, 256), (37, 384))), product_in_tiles, values={2: SCALES.tolist()},
            attrs={"dtype": 1, "transpose_x1": False, "transpose_x2": False, "group_size": 0},
            tolerance={"float16": 2e-3}),
        Row("matmul/sparse4to2quant_matmul",
            tuple(f"int8[{m},256] int8[4,8,16,32]:FRACTAL_NZ uint8[4,8,16,8] float32[{m}] float32[128] bfloat16[128] "
                  f"-> bfloat16[{m},128]" for m in (64, 37)),
            product_with_sparse, ("int8",), attrs={"dtype": 27}, values={1: LEFT, 2: PLACES}),
        Row("matmul/fused_linear_online_max_sum",
            tuple(f"T[{m},{k}] T[{n},{k}] {i}[{m}] -> {' '.join([f'float32[{m}]'] * 3)} uint8[{m // 8}] {i}[{m}] "
                  f"T[{m},{n}]" for m, n, k, i in ((64, 256, 128, "int32"), (40, 200, 96, "int64"))),
            largest_and_sum, domain={0: (-0.5, 0.5), 1: (-0.5, 0.5), 2: (0, 220)},
            attrs={"vocab_start_index": 10, "vocab_end_index": 190, "vocab_parallel_logits_out_flag": True}),
        # The sum is taken in bfloat16.
        Row("matmul/quant_matmul_reduce_sum",
            ("int8[4,64,128] int8[4,4,8,16,32]:FRACTAL_NZ int64[1] - float32[4,64] bfloat16[128] - - - - - - "
             "-> bfloat16[64,128]",
             "int8[2,80,256] int8[2,8,16,16,32]:FRACTAL_NZ int64[1] - float32[2,80] bfloat16[256] - - - - - - "
             "-> bfloat16[80,256]"),
            sum_of_products, ("int8",), values={2: [0]},
            domain={0: (0, 10), 1: (0, 10), 4: (0.1, 1.0), 5: (0.1, 1.0)}, tolerance={"bfloat16": 1.5e-2},
            attrs={"dtype": 27, "compute_type": -1, "transpose_x1": False, "transpose_x2": False, "group_size": -1,
                   "keep_dims": False}),
        # What comes between its two products is rounded to the type of x.
        Row("quant/flat_quant",
            ("T[16,64,64] T[64,64] T[64,64] - -> int4[16,64,64] float32[16]",
             "T[5,32,48] T[32,32] T[48,48] - -> int4[5,32,48] float32[5]"),
            quantized_after_both, ("float16", "bfloat16"), tolerance={"int4": 1, "float32": 4e-3}),
        # The rotated rows are rounded to the type of x before they are quantized.
        Row("matmul/rotate_quant",
            ("T[64,512] T[128,128] - -> int8[64,512] float32[64]", "T[37,256] T[64,64] - -> int8[37,256] float32[37]"),
            quantized_after_rotation, ("bfloat16", "float16"), tolerance={"int8": 1, "float32": 4e-3}),
    ),
    "ops-transformer": (
        # What is hidden is rounded to half, as its attribute for performance asks for.
        Row("ffn/ffn",
            (f"T[64,128] T[128,256] T[256,128] - T[256] T[128] {NONE_OF_FFN} -> T[64,128]",
             f"T[37,96] T[96,160] T[160,96] - - - {NONE_OF_FFN} -> T[37,96]"),
            feed_forward, attrs={"activation": "relu", "inner_precise": 1}, domain=dict.fromkeys(range(3), (-0.5, 0.5)),
            tolerance={"float16": 1e-2}),
        Row("gmm/grouped_matmul",
            ("(T[64,128]) (T[3,128,256]) () () () () () int64[3] - -> (T[64,256])",
             "(T[64,96]) (T[3,96,144]) () () () () () int64[3] - -> (T[64,144])"),
            product_of_groups, ("float16", "bfloat16"),
            attrs={"split_item": 3, "group_type": 0, "group_list_type": 0}, values={7: ENDS}),
        Row("gmm/grouped_matmul_finalize_routing",
            tuple(f"int8[96,{k}] int8[4,{n // 32},{k // 16},16,32]:FRACTAL_NZ float32[4,{n}] - float32[96] int64[4] "
                  f"bfloat16[12,{n}] float32[96] int64[96] - -> float32[48,{n}]" for k, n in ((256, 512), (128, 256))),
            products_to_tokens, ("float32",), tolerance={"float32": 5e-3},
            attrs={"dtype": 0, "shared_input_weight": 1.0, "shared_input_offset": 8, "transpose_x": False,
                   "transpose_w": False, "output_bs": 48, "group_list_type": 1},
            values={5: [30, 0, 40, 26], 8: [*range(48), *range(47, -1, -1)]},
            domain={2: (0, 0.01), 4: (0, 0.01), 6: (-1, 1), 7: (0, 1)}),
        Row("gmm/grouped_matmul_swiglu_quant_v2",
            (f"int8[64,256] float32[64] int64[3] (int8[3,16,16,16,32]:FRACTAL_NZ) (float32[3,512]) () - - {QUANTIZED}",
             f"int8[64,128] float32[64] int64[3] (int8[3,16,8,16,32]:FRACTAL_NZ) (float32[3,512]) () - - {QUANTIZED}"),
            swiglu_of_groups, ("float32",), values={2: ENDS}),
    ),
}  # fmt: skip
