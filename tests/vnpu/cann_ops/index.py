"""Operators of cann-ops's folder ``index``."""

from __future__ import annotations

import numpy as np
import torch

from .table import FLOATS, Fault, Row, dynamic_quant

Index = torch.Tensor


def dynamic_quant_update_scatter(
    var: torch.Tensor,
    scale: torch.Tensor,
    indices: Index,
    updates: torch.Tensor,
    smooth: torch.Tensor | None,
    reduce: str,
    axis: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantizes ``updates`` row by row and puts them behind ``indices`` of axis 2: [batch], or [batch, where]."""
    rows, scales = dynamic_quant(updates if smooth is None else updates * smooth)
    var, scale = var.clone(), scale.clone()
    n = updates.shape[2]
    for i, place in enumerate(indices.tolist()):
        batch, start = place if isinstance(place, list) else (i, place)
        var[batch, :, start : start + n] = rows[i]
        scale[batch, :, start : start + n] = scales[i].reshape(scale[batch, :, start : start + n].shape)
    return var, scale


def embedding_bag(
    weight: torch.Tensor, indices: Index, offsets: Index, per_sample: torch.Tensor | None, mode: str, **_: object
) -> tuple[torch.Tensor, ...]:
    y = torch.nn.functional.embedding_bag(
        indices.long(), weight, offsets.long(), mode=mode, per_sample_weights=per_sample
    )
    ends = [*offsets.tolist()[1:], len(indices)]
    size = torch.tensor([end - start for start, end in zip(offsets.tolist(), ends, strict=True)])
    bag = torch.repeat_interleave(torch.arange(len(size)), size)
    if mode == "sum":
        size = torch.zeros_like(size)  # as in torch: nobody needs it
    largest = size
    if mode == "max":
        bags = [indices[start:end] for start, end in zip(offsets.tolist(), ends, strict=True)]
        largest = torch.stack([bag[weight[bag.long()].argmax(0)] for bag in bags])
    return y, bag, size, largest


def embedding_dense_grad(
    grad: torch.Tensor,
    sorted_indices: Index,
    position: Index,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> torch.Tensor:
    where = sorted_indices.long()
    y = torch.zeros(num_weights, grad.shape[1], dtype=grad.dtype).index_add_(0, where, grad[position.long()])
    if scale_grad_by_freq:
        y = y / torch.bincount(where, minlength=num_weights).clamp(min=1)[:, None]
    if padding_idx >= 0:
        y[padding_idx] = 0
    return y


def gather(x: torch.Tensor, indices: Index, axis: Index, **_: object) -> torch.Tensor:
    return torch.from_numpy(np.take(x.numpy(), indices.numpy(), int(axis)))


def scatter_elements(
    var: torch.Tensor, indices: Index, updates: torch.Tensor, axis: int, reduction: str
) -> torch.Tensor:
    updates = updates[tuple(slice(n) for n in indices.shape)]
    if reduction == "add":
        return var.scatter_add(axis, indices.long(), updates)
    return var.scatter(axis, indices.long(), updates)


def scatter_list(
    var: list[torch.Tensor],
    where: Index,
    updates: torch.Tensor,
    mask: torch.Tensor | None,
    reduce: str,
    axis: int,
) -> list[torch.Tensor]:
    """Puts ``updates[i]`` into ``var[i]`` behind where[i]: a start, or (start, length), along ``axis``."""
    result = [v.clone() for v in var]
    for i, place in enumerate(where.tolist()):
        start, length = place if isinstance(place, list) else (place, updates[i].shape[axis])
        if mask is None or mask[i]:
            result[i].movedim(axis, 0)[start : start + length] = updates[i].movedim(axis, 0)[:length]
    return result


def different(rows: int, length: int, highest: int) -> np.ndarray:
    """``rows`` times ``length`` different whole numbers below ``highest``."""
    rng = np.random.default_rng(0)
    return np.stack([rng.permutation(highest)[:length] for _ in range(rows)])


def several(count: int, highest: int) -> np.ndarray:
    """``count`` sorted whole numbers below ``highest``, with repeats."""
    return np.sort(np.random.default_rng(0).integers(0, highest, count))


BAG = {"scale_grad_by_freq": False, "sparse": False, "include_last_offset": False, "padding_idx": -1}
INDEX = ("int32", "int64")
HALVES = ("float16", "bfloat16")
SMALL = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
GATHERED = tuple(f"{t}/{i}" for i in INDEX for t in ("float32", *HALVES, *SMALL, "int64", "uint64", "bool"))
ELEMENTS = tuple(f"{t}/{i}" for i in INDEX for t in ("float32", *HALVES, "int32", "uint8", "int8"))
LISTED = tuple(f"{t}/{i}" for i in INDEX for t in (*SMALL, *HALVES, "float32"))
LIST3 = "(T[5,3,64] T[5,3,64] T[5,3,64])"

ROWS = (
    Row("index/dynamic_quant_update_scatter",
        "int8[4,8,64,128] float32[4,8,64,1] S[4] T[4,8,1,128] T[128] -> int8[4,8,64,128] float32[4,8,64,1]",
        dynamic_quant_update_scatter, tuple(f"{t}/{i}" for t in HALVES for i in INDEX),
        attrs={"reduce": "update", "axis": -2}, domain={2: (0, 63)}, tolerance={"int8": 1}),
    Row("index/dynamic_quant_update_scatter",
        "int8[5,3,17,96] float32[5,3,17,1] S[2,2] T[2,3,5,96] - -> int8[5,3,17,96] float32[5,3,17,1]",
        dynamic_quant_update_scatter, ("float16/int32",),
        attrs={"reduce": "update", "axis": -2}, values={2: ((3, 0), (1, 12))}, tolerance={"int8": 1}),
    Row("index/embedding_bag", "T[1000,128] int32[512] int32[64] - -> T[64,128] int32[512] int32[64] int32[64]",
        embedding_bag, FLOATS, attrs={**BAG, "mode": "mean"}, domain={1: (0, 999)}, values={2: 8 * np.arange(64)}),
    Row("index/embedding_bag", "T[50,37] int32[100] int32[7] T[100] -> T[7,37] int32[100] int32[7] int32[7]",
        embedding_bag, FLOATS, attrs={**BAG, "mode": "sum"}, domain={1: (0, 49)},
        values={2: (0, 3, 10, 33, 34, 70, 99)}),
    Row("index/embedding_bag", "T[50,37] int32[100] int32[7] - -> T[7,37] int32[100] int32[7] int32[7,37]",
        embedding_bag, FLOATS, attrs={**BAG, "mode": "max"}, values={1: np.random.default_rng(1).permutation(100) // 2,
        2: (0, 3, 10, 33, 34, 70, 99)}),
    # Rows of up to 512 elements are taken in their own order, whatever the positions say.
    Row("index/embedding_dense_grad_v2", "T[256,128] int32[256] int32[256] -> T[64,128]", embedding_dense_grad,
        ("float32",), attrs={"num_weights": 64, "padding_idx": -1, "scale_grad_by_freq": False},
        domain={1: (0, 63)}, values={2: np.arange(256)}),
    Row("index/embedding_dense_grad_v2", "T[100,1001] int32[100] int32[100] -> T[33,1001]", embedding_dense_grad,
        ("float32",), attrs={"num_weights": 33, "padding_idx": 5, "scale_grad_by_freq": True},
        values={1: several(100, 33), 2: different(1, 100, 100)}),
    Row("index/gather_v3", "T[512,256] S[128] int64[1] -> T[128,256]", gather, GATHERED,
        attrs={"batchDims": 0, "negativeIndexSupport": False}, domain={1: (0, 511)}, values={2: 0}),
    Row("index/gather_v3", "T[17,33,7] S[20] int64[1] -> T[17,20,7]", gather, ("float16/int64", "int8/int32"),
        attrs={"batchDims": 0, "negativeIndexSupport": False}, domain={1: (0, 32)}, values={2: 1}),
    Row("index/scatter_elements_v2", "T[16,256] S[16,64] T[16,64] -> T[16,256]", scatter_elements, ELEMENTS,
        attrs={"axis": -1, "reduction": "none"}, values={1: different(16, 64, 256)}),
    Row("index/scatter_elements_v2", "T[3,5,37] S[3,5,29] T[3,5,31] -> T[3,5,37]", scatter_elements,
        ("float32/int32", "int32/int64", "float16/int32"), attrs={"axis": -1, "reduction": "add"}, domain={1: (0, 36)},
        tolerance={"float16": 4e-3}),
    Row("index/scatter_list", "(T[32,16,64] T[32,16,64]) S[2,2] T[2,32,16,64] - -> (T[32,16,64] T[32,16,64])",
        scatter_list, LISTED, attrs={"reduce": "update", "axis": -2}, values={1: ((0, 16), (3, 8))}),
    Row("index/scatter_list", f"{LIST3} S[3] T[3,5,2,64] uint8[3] -> {LIST3}",
        scatter_list, ("float32/int64",), attrs={"reduce": "update", "axis": -2}, domain={1: (0, 1), 3: (0, 1)}),
)  # fmt: skip

FAULTS = (
    # Casts 32 elements to int64 in a buffer of 32 bytes.
    Fault("index/feeds_repeat", "T[64,256] int32[64] -> T[500,256]", "past the end of its buffer",
        attrs={"output_feeds_size": 500}, domain={1: (0, 7)}),
    # Its tiling data class isn't registered, so no kernel header declares it.
    Fault("index/scatter_add_with_sorted", "T[64,32] T[128,32] int32[128] int32[128] -> T[64,32]",
        "'ScatterAddWithSortedTilingData' does not name a type", attrs={"reduction": "add"}, domain={2: (0, 63)}),
)  # fmt: skip
