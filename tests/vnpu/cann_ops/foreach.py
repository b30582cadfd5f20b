"""Operators of cann-ops's folder ``foreach``: the same arithmetic for every tensor of a list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .table import FLOATS, POSITIVE, Reference, Row

Tensor = torch.Tensor


def lists(pattern: str) -> tuple[str, str]:
    """The pattern with ``L`` for a list: of three tensors that end inside a block, and of two that don't."""
    return pattern.replace("L", "(T[3,37] T[1024] T[5])"), pattern.replace("L", "(T[16,256] T[2048])").replace(
        "[3]", "[2]"
    )


def each(function: Callable[..., Tensor]) -> Reference:
    """The function of one tensor (and what else there is) for every tensor of the list."""

    def apply(tensors: list[Tensor], *rest: Any) -> list[Tensor]:
        def at(i: int, argument: Any) -> Any:
            return argument[i] if isinstance(argument, list) else argument

        return [function(t, *(at(i, r) for r in rest)) for i, t in enumerate(tensors)]

    return apply


def paired(function: Callable[..., Tensor]) -> Reference:
    """The last input is a tensor with one number for every tensor of the lists."""
    one = each(function)
    return lambda *arguments: one(*arguments[:-1], list(arguments[-1]))


def norms(tensors: list[Tensor], p: Tensor) -> list[Tensor]:
    return [torch.linalg.vector_norm(t, float(p)) for t in tensors]


def unscale(grads: list[Tensor], found_inf: Tensor, inv_scale: Tensor) -> tuple[list[Tensor], Tensor]:
    finite = all(bool(torch.isfinite(g).all()) for g in grads)
    return [g * inv_scale for g in grads], found_inf if finite else torch.ones_like(found_inf)


def truncated_power(x: Tensor, y: Tensor) -> Tensor:
    return torch.pow(x.double(), y.double()).trunc()


UNARY, BINARY, SCALAR = lists("L -> L"), lists("L L -> L"), lists("L S[1] -> L")
TERNARY, TERNARY_LIST = lists("L L L S[1] -> L"), lists("L L L S[3] -> L")
# bfloat16 lists take their scalar as float32 in most operators.
FLOATS_SCALAR = ("float16", "float32", "bfloat16/float32")

ROWS = (
    Row("foreach/foreach_abs", UNARY, each(torch.abs), FLOATS),
    Row("foreach/foreach_asin", UNARY, each(torch.asin), FLOATS, domain={0: (-1, 1)}),
    Row("foreach/foreach_atan", UNARY, each(torch.atan), FLOATS),
    Row("foreach/foreach_copy", UNARY, each(torch.clone), (
        *FLOATS, "int32", "int8", "uint8", "int16", "uint16", "uint32", "float64", "bool", "int64")),
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
    Row("foreach/foreach_pow_scalar", SCALAR, each(torch.pow), ("int32",), domain={0: (-5, 5), 1: (1, 5)}),
    Row("foreach/foreach_pow_scalar_and_tensor", lists("S[1] L -> L"), lambda s, x: [torch.pow(s, t) for t in x],
        ("float16/float32", "float32", "bfloat16/float32"), domain={0: (0.5, 3)}),
    Row("foreach/foreach_pow_scalar_and_tensor", lists("S[1] L -> L"),
        lambda s, x: [truncated_power(s, t) for t in x], ("int32/int64",), domain={0: (1, 5), 1: (0, 5)}),
    Row("foreach/foreach_lerp_scalar", lists("L L float32[1] -> L"), each(torch.lerp), FLOATS),
    Row("foreach/foreach_addcmul_scalar", TERNARY, each(lambda x, a, b, s: x + s * a * b),
        (*FLOATS_SCALAR, "int32")),
    Row("foreach/foreach_addcdiv_scalar", TERNARY, each(lambda x, a, b, s: x + s * a / b), FLOATS_SCALAR,
        domain={2: (0.5, 4)}),
    Row("foreach/foreach_addcmul_list", TERNARY_LIST, paired(lambda x, a, b, s: x + s * a * b), (*FLOATS, "int32")),
    Row("foreach/foreach_addcdiv_list", TERNARY_LIST, paired(lambda x, a, b, s: x + s * a / b), FLOATS,
        domain={2: (0.5, 4)}),
    Row("foreach/foreach_addcmul_scalar_list", TERNARY_LIST, paired(lambda x, a, b, s: x + s * a * b),
        (*FLOATS, "int32")),
    Row("foreach/foreach_addcdiv_scalar_list", TERNARY_LIST, paired(lambda x, a, b, s: x + s * a / b), FLOATS,
        domain={2: (0.5, 4)}),
    Row("foreach/foreach_add_scalar_list", lists("L S[3] -> L"), paired(torch.add),
        ("float16/float32", "float32", "bfloat16/float32", "int32/int64")),
    Row("foreach/foreach_div_scalar_list", lists("L float32[3] -> L"), paired(torch.div), FLOATS,
        domain={1: (0.5, 4)}),
    Row("foreach/foreach_norm", ("(T[3,37] T[1024] T[5]) S[1] -> (T[1] T[1] T[1])",
        "(T[16,256] T[2048]) S[1] -> (T[1] T[1])"), norms,
        tuple(f"{t}/{s}" for t in FLOATS for s in ("float32", "int64")), values={1: 2}),
    Row("foreach/foreach_norm", "(T[3,37] T[1024] T[5]) float32[1] -> (T[1] T[1] T[1])", norms,
        values={1: 1}),  # in float32 it copies 256 elements into a buffer of 32 bytes
    Row("common/foreach_v2_example/foreach_norm", ("(T[3,37] T[1024] T[5]) S[1] -> (T[1] T[1] T[1])",
        "(T[16,256] T[2048]) S[1] -> (T[1] T[1])"), norms,
        tuple(f"{t}/{s}" for t in FLOATS for s in ("float32", "int64")), values={1: 2}),
    Row("common/foreach_v2_example/foreach_custom", UNARY, each(lambda x: x * x - x.abs()), FLOATS),
    Row("foreach/foreach_non_finite_check_and_unscale", lists("L float32[1] float32[1] -> L float32[1]"), unscale,
        FLOATS, domain={2: (0.25, 2)}, values={1: 0}, in_place=(0, 1)),
    Row("foreach/foreach_round_off_number", lists("L int8[1] -> L"), each(lambda x, _: torch.round(x)), FLOATS,
        values={1: 1}),
)  # fmt: skip
