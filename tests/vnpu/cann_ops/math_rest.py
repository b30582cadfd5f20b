"""Operators of cann-ops's folder ``math`` that reduce, move, scatter or generate."""

from __future__ import annotations

import numpy as np
import torch

from .table import COARSE, FLOATS, HF, Fault, Reference, Row


def blas(path: str, reference: Reference, case: str, hazard: str = "") -> tuple[Row, ...]:
    """A row for 4096 and one for 5003 elements; ``N`` in the case."""
    return tuple(
        Row(path, case.replace("N", str(n)), reference, ("float32",), attrs={"n": n, "incx": 1}, hazard=hazard)
        for n in (4096, 5003)
    )


def one_norm(x: torch.Tensor) -> torch.Tensor:
    return x.real.abs() + x.imag.abs() if x.is_complex() else x.abs()


def diagonal_of(x: torch.Tensor, diagonal: int) -> torch.Tensor:
    return torch.from_numpy(np.diag(x.numpy(), diagonal).copy())


def histogram(x: torch.Tensor, low: torch.Tensor, high: torch.Tensor, bins: int) -> torch.Tensor:
    return torch.histc(x.double(), bins, float(low), float(high)).to(torch.int32)


def eye(y: torch.Tensor, num_rows: int, num_columns: int, **_: object) -> torch.Tensor:
    return torch.eye(num_rows, num_columns).expand(y.shape)


def scatter_max(var: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor, **_: object) -> torch.Tensor:
    for i, row in zip(indices.tolist(), updates, strict=True):
        var[i] = torch.maximum(var[i], row)
    return var


def scatter_sub(var: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor, **_: object) -> torch.Tensor:
    return var.index_add(0, indices, updates, alpha=-1)


def scatter_reduce(
    x: torch.Tensor, index: torch.Tensor, src: torch.Tensor, dim: int, reduce: str, include_self: bool
) -> torch.Tensor:
    return x.scatter_reduce(dim, index.long(), src, reduce, include_self=include_self)


def softmax_top(x: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    values, indices = torch.softmax(x, -1).sort(dim=-1, descending=True, stable=True)
    return values[:, :k], indices[:, :k].to(torch.int32)


def mul_sigmoid(x1: torch.Tensor, x2: torch.Tensor, t1: float, t2: float, t3: float) -> torch.Tensor:
    s = torch.sigmoid(x1 * t1)
    return torch.where(s < t2, s, 2 * s) * x2.reshape(-1) * t3


def pre_layer_norm(
    x: torch.Tensor, y: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, epsilon: float
) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x + y, x.shape[-1:], gamma, beta, epsilon)


def mean_twice(
    a: torch.Tensor, b: torch.Tensor, m: torch.Tensor, eps: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor
) -> torch.Tensor:
    m = a * b * m
    mu = m.mean(1, keepdim=True)
    v = ((m - mu) ** 2).mean(1, keepdim=True)
    return gamma / torch.sqrt(v + eps) * (m - mu) + beta


def negate_second_half(x: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat((first, -second), -1)


def any_not_finite(tensors: list[torch.Tensor]) -> torch.Tensor:
    return torch.tensor([float(any(not bool(t.isfinite().all()) for t in tensors))])


def line(start: torch.Tensor, stop: torch.Tensor, num: torch.Tensor) -> torch.Tensor:
    return torch.linspace(float(start), float(stop), int(num))


def bev_pool(
    depth: torch.Tensor,
    feat: torch.Tensor,
    ranks_depth: torch.Tensor,
    ranks_feat: torch.Tensor,
    ranks_bev: torch.Tensor,
    starts: torch.Tensor,
    lengths: torch.Tensor,
    bev_feat_shape: tuple[int, ...],
) -> torch.Tensor:
    out = torch.zeros(bev_feat_shape, dtype=depth.dtype)
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        for k in range(start, start + length):
            out.view(-1)[ranks_bev[k]] += depth.reshape(-1)[ranks_depth[k]] * feat.reshape(-1)[ranks_feat[k]]
    return out.permute(0, 4, 1, 2, 3)


def radius(
    x: torch.Tensor,
    y: torch.Tensor,
    ptr_x: torch.Tensor | None,
    ptr_y: torch.Tensor | None,
    r: float,
    max_num_neighbors: int,
    ignore_same_index: bool,
) -> torch.Tensor:
    """Indices of x, then of y, of every pair of one batch within ``r``; at most so many for each y."""
    x_ends = [0, len(x)] if ptr_x is None else ptr_x.tolist()
    y_ends = [0, len(y)] if ptr_y is None else ptr_y.tolist()
    pairs = []
    for batch in range(len(y_ends) - 1):
        for i in range(y_ends[batch], y_ends[batch + 1]):
            near = [
                j
                for j in range(x_ends[batch], x_ends[batch + 1])
                if ((x[j] - y[i]) ** 2).sum() <= r * r and not (ignore_same_index and i == j)
            ]
            pairs += [(j, i) for j in near[:max_num_neighbors]]
    return torch.tensor(pairs).permute(1, 0).reshape(-1)


def sum_of_gated(
    x: torch.Tensor, bias: torch.Tensor, scale: torch.Tensor, weight: torch.Tensor, gate: torch.Tensor
) -> torch.Tensor:
    """NHWC and ND (axes after the second are one), or FRACTAL_NZ: [n, columns / 16, d2, d3, 16]."""
    n, rows = weight.shape[:2]

    def plain(t: torch.Tensor) -> torch.Tensor:
        if t.ndim < 5:
            return t.reshape(n, rows, -1)
        return t.reshape(n, t.shape[1], rows, 16).permute(0, 2, 1, 3).reshape(n, rows, -1)

    return (torch.sigmoid((plain(x) + bias.reshape(-1)) * scale) * weight.reshape(n, rows, 1) * plain(gate)).sum(1)


INTS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
ONE_TYPE = {1: "the kernel's type is half whatever the column says", 2: "as column 1"}
INDEXED = tuple(f"{t}/{i}" for t in (*HF, *INTS) for i in ("int32", "int64"))
GRID = [[i % 6, i // 6 % 2, *[0] * 38] for i in range(24)]  # every point twice
UNORDERED = "is not ordered after the write by LocalTensor::SetValue"
UNORDERED_ZERO = "is not ordered after the write by Duplicate"

ROWS_ONCE = (3, 14, 0, 7, 9, 1, 15, 4, 11, 6, 2, 13)

FAULTS = (
    # The two work buffers overlap: GetWithOffset is given elements, it takes bytes.
    Fault("math/mul_sigmoid_mul_add_custom", "T[3,400] T[1] T[1] T[1] -> T[3,400]", "Sigmoid", "float16"),
    # The tiling passes the number of tiles where the kernel takes the length of one: buffers of 0 to 64 bytes.
    Fault("math/trunc", "T[8,2048] -> T[8,2048]", "past the end of its buffer"),
)

ROWS = (
    *blas("math/icamax", lambda x, n, incx: one_norm(x).argmax() + 1, "complex64[N] -> int32[1]", UNORDERED),
    *blas("math/icamin", lambda x, n, incx: one_norm(x).argmin() + 1, "complex64[N] -> int32[1]", UNORDERED),
    *blas("math/isamin", lambda x, n, incx: x.abs().argmin() + 1, "T[N] -> int32[1]", UNORDERED),
    *blas("math/sasum", lambda x, n, incx: x.abs().sum(), "T[N] -> T[1]", UNORDERED_ZERO),
    *blas("math/scasum", lambda x, n, incx: one_norm(x).sum(), "complex64[N] -> T[1]", UNORDERED_ZERO),
    *blas("math/snrm2", lambda x, n, incx: x.norm(), "T[N] -> T[1]"),
    *blas("math/scnrm2", lambda x, n, incx: x.abs().norm(), "complex64[N] -> T[1]"),
    *(Row("math/scopy", f"T[{n}] -> T[{n}]", lambda x, **_: x, ("float32",), {"n": n, "incx": 1, "incy": 1})
        for n in (4096, 5003)),
    *(Row("math/sscal", f"T[{n}] -> T[{n}]", lambda x, alpha, **_: x * alpha, ("float32",),
        {"alpha": 1.5, "n": n, "incx": 1}, in_place=(0,)) for n in (4096, 5003)),
    Row("math/add_sigmoid_mul_reduce_sum_d", ("T[48,16,64] T[1,1,64] T[1] T[48,16,1] T[48,16,64] -> T[48,64]",
        "T[7,16,3,16]:NHWC T[1,1,48]:NHWC T[1]:NHWC T[7,16,1]:NHWC T[7,16,3,16]:NHWC -> T[7,48]:NHWC",
        "T[6,4,2,8,16]:FRACTAL_NZ T[1,1,64]:NHWC T[1]:NHWC T[6,16,1]:NHWC T[6,4,2,8,16]:FRACTAL_NZ -> T[6,64]"),
        sum_of_gated, tolerance={"float16": 2e-2}),
    *(Row("math/bev_pool", f"T[1,2,4,3,5] T[1,2,3,5,8] int32[{n}] int32[{n}] int32[{n}] int32[{len(starts)}] "
        f"int32[{len(starts)}] -> T[1,8,1,6,5]", bev_pool, HF, {"bev_feat_shape": (1, 1, 6, 5, 8)},
        {2: (0, 119), 3: (0, 239), 4: (0, 239)}, values={5: starts, 6: lengths})
        for n, starts, lengths in ((40, [0, 10, 20, 30], [10, 10, 10, 10]), (37, [0, 10, 20], [10, 3, 17]))),
    Row("math/diag_v2", "T[64,64] -> T[64]", diagonal_of, (*INTS, *FLOATS, "float64", "bool", "complex64"),
        {"diagonal": 0}),
    Row("math/diag_v2", "T[70,45] -> T[44]", diagonal_of, HF, {"diagonal": 1}),
    # Copies of less than whole blocks overwrite each other.
    Row("math/expand_v2", "T[1,64] -> T[8,64]", lambda x, shape: x.expand(shape), ("int64",), {"shape": (8, 64)}),
    Row("math/expand_v2", "T[1,7,20] -> T[5,7,20]", lambda x, shape: x.expand(shape), ("int64",),
        {"shape": (5, 7, 20)}),
    # y is the tensor of zeros that the ones are written to.
    *(Row("math/eye_fp64", f"T[{b},{n},{m}] -> T[{b},{n},{m}]", eye, (*HF, "int32", "float64"), {"num_rows": n,
        "num_columns": m, "batch_shape": (b,), "dtype": 0}, values={0: np.zeros(b * n * m)})
        for b, n, m in ((4, 32, 32), (3, 20, 36), (2, 8, 6))),
    Row("math/fill", "int64[2] T[1] -> T[64,60]", lambda dims, v: v.expand(*dims.tolist()),
        (*FLOATS, "int32", "int8", "int64", "bool"), values={0: [64, 60]}),
    Row("math/fill", "int64[2] T[1] -> T[37,41]", lambda dims, v: v.expand(*dims.tolist()), HF,
        values={0: [37, 41]}),
    # Every core gathers everything. Rows that are no whole blocks are stored by the scalar unit: every core writes back
    # the same lines of its cache, which is reported, so the tail is one in the number of rows and blocks.
    Row("math/gather", "T[33,64] S[16] -> T[16,64]", lambda x, i, **_: x[i.long()], INDEXED, domain={1: (0, 32)}),
    Row("math/gather", "T[33,48] S[19] -> T[19,48]", lambda x, i, **_: x[i.long()], ("float16/int32",),
        domain={1: (0, 32)}),
    Row("math/histogram_v2", "T[8192] T[1] T[1] -> int32[64]", histogram,
        ("float32", "float16", "int64", "int32", "int16", "int8", "uint8"), {"bins": 64}, {0: (0, 64)},
        values={1: [0], 2: [64]}),
    Row("math/histogram_v2", "T[3001] T[1] T[1] -> int32[37]", histogram, ("float32",), {"bins": 37}, {0: (0, 37)},
        values={1: [0], 2: [37]}),
    # 1001 numbers: two cores compute the overlap of the last pieces, and differ in the last bits.
    *(Row("math/lin_space", f"float32[1] float32[1] int64[1] -> float32[{n}]", line, domain={0: (-1, 0), 1: (1, 2)},
        values={2: [n]}) for n in (4096, 1000)),
    Row("math/moe_soft_max_topk", "float32[1024,16] -> float32[1024,4] int32[1024,4]", softmax_top, attrs={"k": 4}),
    Row("math/moe_soft_max_topk", "float32[512,32] -> float32[512,2] int32[512,2]", softmax_top, attrs={"k": 2}),
    *(Row("math/mul_mul_reduce_mean_d_twice", f"T[{s}] T[{s}] T[1] T[1] T[{n}] T[{n}] -> T[{s}]", mean_twice,
        domain={3: (0.1, 1)}, tolerance=COARSE, columns_left_out=ONE_TYPE)
        for s, n in (("90,1024", 1024), ("33,512", 512))),
    *(Row("math/mul_sigmoid", f"T[{n},{m}] T[1,{m // 128},128] -> T[{n},{m // 128},128]", mul_sigmoid,
        attrs={"t1": 0.3, "t2": 0.1, "t3": 0.8}, tolerance=COARSE) for n, m in ((25, 8192), (32, 8192))),
    Row("math/non_finite_check", ("(T[8,2048] T[64]) -> float32[1]", "(T[7,1001] T[3]) -> float32[1]"), any_not_finite,
        FLOATS),
    # 2048 rows of 2560, 5120, 10240, ... columns.
    Row("math/pre_layer_norm", tuple(f"T[2048,{n}] T[2048,{n}] T[{n}] T[{n}] -> T[2048,{n}]" for n in (2560, 5120)),
        pre_layer_norm, ("float32",), {"epsilon": 1e-5}),
    *(Row("math/radius", f"T[24,40] T[6,40] {ptr} {ptr} -> T[36]", radius, ("float32", "float16", "int32"),
        {"r": 1.5, "max_num_neighbors": 3, "ignore_same_index": bool(ends)}, values={0: GRID, 1: GRID[:6], **ends})
        for ptr, ends in (("-", {}), ("int32[3]", {2: [0, 12, 24], 3: [0, 3, 6]}))),
    Row("math/reshape", "T[8,2048] S[2] -> T[16,1024]", lambda x, s, **_: x.reshape(*s.tolist()), INDEXED,
        values={1: [16, 1024]}),
    Row("math/reshape", "T[7,208] S[2] -> T[208,7]", lambda x, s, **_: x.reshape(*s.tolist()), ("float16/int32",),
        values={1: [208, 7]}),
    Row("math/scatter_max", ("T[16,64] int32[32] T[32,64] -> T[16,64]", "T[9,48] int32[7] T[7,48] -> T[9,48]"),
        scatter_max, (*HF, "int32", "int8"), domain={1: (0, 8)}, in_place=(0,)),
    # No row twice where rows are whole blocks: the row's next copy in doesn't wait for its last copy out.
    Row("math/scatter_sub", "T[16,64] int32[12] T[12,64] -> T[16,64]", scatter_sub, ("float32", "float16", "int32"),
        values={1: ROWS_ONCE}, in_place=(0,), tolerance=COARSE),
    Row("math/scatter_sub", "T[9,37] int32[7] T[7,37] -> T[9,37]", scatter_sub, ("float32",), domain={1: (0, 8)},
        in_place=(0,), tolerance=COARSE),
    # Saturates.
    Row("math/scatter_sub", "T[16,64] int32[12] T[12,64] -> T[16,64]", scatter_sub, ("int8",),
        domain={0: (-10, 10), 2: (-9, 9)}, values={1: ROWS_ONCE}, in_place=(0,)),
    *(Row("math/scatter_reduce", f"T[{s}] int32[{s}] T[{s}] -> T[{s}]", scatter_reduce, HF,
        {"dim": 1, "reduce": reduce, "include_self": True}, {1: (0, 15)}, tolerance=COARSE)
        for reduce in ("sum", "amax") for s in ("16,64", "9,37")),
    Row("math/strideslice_neg_concat_v2", ("T[2,4,8,64] -> T[2,4,8,64]", "T[1,3,8,96] -> T[1,3,8,96]"),
        negate_second_half, columns_left_out=ONE_TYPE),
    *(Row(f"math/{name}", ("T[64,96] -> T[64,96]", "T[37,45] -> T[37,45]"), function, HF, {"diagonal": k})
        for name, function in (("tril", torch.tril), ("triu", torch.triu)) for k in (0, 1)),
)  # fmt: skip
