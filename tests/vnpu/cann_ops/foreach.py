"""Operators of cann-ops's folder ``foreach``."""

from __future__ import annotations

import torch

from .table import BINARY, FLOATS, FLOATS_SCALAR, HF, LIST, POSITIVE, SCALAR, TERNARY, UNARY, Row, each

ROWS = (
    Row("foreach/foreach_abs", UNARY, each(torch.abs), FLOATS),
    Row("foreach/foreach_asin", UNARY, each(torch.asin), FLOATS, domain={0: (-1, 1)}),
    Row("foreach/foreach_atan", UNARY, each(torch.atan), FLOATS),
    Row("foreach/foreach_copy", UNARY, each(torch.clone), (*FLOATS, "int32", "int8", "int16")),
    Row("foreach/foreach_cos", UNARY, each(torch.cos), FLOATS),
    Row("foreach/foreach_cosh", UNARY, each(torch.cosh), FLOATS),
    Row("foreach/foreach_erf", UNARY, each(torch.erf), FLOATS),
    Row("foreach/foreach_erfc", UNARY, each(torch.erfc), FLOATS),
    Row("foreach/foreach_exp", UNARY, each(torch.exp), FLOATS),
    Row("foreach/foreach_expm1", UNARY, each(torch.expm1), FLOATS),
    Row("foreach/foreach_log10", UNARY, each(torch.log10), FLOATS, domain=POSITIVE),
    Row("foreach/foreach_log1p", UNARY, each(torch.log1p), FLOATS, domain=POSITIVE),
    Row("foreach/foreach_log2", UNARY, each(torch.log2), FLOATS, domain=POSITIVE),
    Row("foreach/foreach_neg", UNARY, each(torch.neg), (*FLOATS, "int32")),
    Row("foreach/foreach_reciprocal", UNARY, each(torch.reciprocal), FLOATS, domain=POSITIVE),
    Row("foreach/foreach_sigmoid", UNARY, each(torch.sigmoid), FLOATS),
    Row("foreach/foreach_sign", UNARY, each(torch.sign), (*FLOATS, "int8", "int32", "int64")),
    Row("foreach/foreach_sqrt", UNARY, each(torch.sqrt), FLOATS, domain={0: (0, 8)}),
    Row("foreach/foreach_tan", UNARY, each(torch.tan), FLOATS, domain={0: (-1.2, 1.2)}),
    Row("foreach/foreach_tanh", UNARY, each(torch.tanh), FLOATS),
    Row("foreach/foreach_mul_list", BINARY, each(torch.mul), (*FLOATS, "int32")),
    Row("foreach/foreach_div_list", BINARY, each(torch.div), FLOATS, domain={1: (0.5, 4)}),
    Row("foreach/foreach_mul_scalar", SCALAR, each(torch.mul), (*FLOATS_SCALAR, "int32/int32")),
    Row("foreach/foreach_sub_scalar", SCALAR, each(torch.sub), (*FLOATS_SCALAR, "int32/int32")),
    Row("foreach/foreach_maximum_scalar", SCALAR, each(torch.maximum), (*FLOATS_SCALAR, "int32/int32")),
    Row("foreach/foreach_pow_scalar", SCALAR, each(torch.pow), FLOATS_SCALAR, domain={0: (0.2, 3)}),
    Row("foreach/foreach_pow_scalar_and_tensor", f"S[1] {LIST} -> {LIST}", lambda s, x: [torch.pow(s, t) for t in x],
        ("float16/float32", "float32", "bfloat16/float32"), domain={0: (0.5, 3)}),
    Row("foreach/foreach_lerp_scalar", f"{LIST} {LIST} float32[1] -> {LIST}", each(torch.lerp), FLOATS),
    Row("foreach/foreach_addcmul_scalar", TERNARY, each(lambda x, a, b, s: x + s * a * b), FLOATS_SCALAR),
    Row("foreach/foreach_addcdiv_scalar", TERNARY, each(lambda x, a, b, s: x + s * a / b), FLOATS_SCALAR,
        domain={2: (0.5, 4)}),
    Row("foreach/foreach_addcmul_list", f"{LIST} {LIST} {LIST} T[3] -> {LIST}",
        lambda x, a, b, s: [t + v * u * w for t, u, w, v in zip(x, a, b, s, strict=True)], HF),
    Row("foreach/foreach_add_scalar_list", f"{LIST} float32[3] -> {LIST}",
        lambda x, s: [t + v for t, v in zip(x, s, strict=True)], FLOATS),
    Row("foreach/foreach_div_scalar_list", f"{LIST} float32[3] -> {LIST}",
        lambda x, s: [t / v for t, v in zip(x, s, strict=True)], FLOATS, domain={1: (0.5, 4)}),
)  # fmt: skip
