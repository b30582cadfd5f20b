"""Operators of cann-ops and kernels of asc-devkit, unmodified, against formulas written here.

One line per operator: its case (``T`` stands for each of the dtypes in turn, ``S`` for the dtype of its scalars) and a
reference of CPU tensors; floating inputs arrive as float64. Every case goes through the whole gate: several seeds and
distributions, hazards, bounds, poisoned outputs. The sources are found through ``ASCENDOPT_CANN_OPS`` (a checkout of
cann-ops) and ``ASCENDOPT_ASC_DEVKIT`` (one of asc-devkit); without them the tests are skipped.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import ascendopt_tune  # noqa: F401  # isort: skip  (before torch, which loads torch_npu)
import torch

from ascendopt_tune.build import toolkit
from ascendopt_tune.case import Argument, AttrValue, Case, TensorSpec
from ascendopt_tune.evaluate.evaluator import Evaluator
from ascendopt_tune.evaluate.gate import Gate
from ascendopt_tune.operator import Operator, ParamDef, Signature
from ascendopt_tune.outcome import Timed
from ascendopt_tune.project import load_direct, load_project
from ascendopt_tune.settings import settings

Reference = Callable[..., Any]


@dataclass(frozen=True)
class Row:
    """One operator and case. ``domain``: position of an input -> (low, high); ``tolerance`` as in op.toml."""

    path: str
    case: str
    reference: Reference
    dtypes: tuple[str, ...] = ("float16",)
    attrs: dict[str, AttrValue] = field(default_factory=dict)
    domain: dict[int, tuple[float, float]] = field(default_factory=dict)
    tolerance: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Direct:
    """A kernel for direct launch: file, entry, block dim, inputs and outputs as ``name=dtype[shape]``, attributes."""

    path: str
    entry: str
    block_dim: int
    inputs: str
    outputs: str
    reference: Reference
    attrs: dict[str, AttrValue] = field(default_factory=dict)


FLOATS = ("float16", "float32", "bfloat16")
HF = ("float16", "float32")
LIST = "(T[3,37] T[1024] T[5])"
UNARY = f"{LIST} -> {LIST}"
BINARY = f"{LIST} {LIST} -> {LIST}"
TERNARY = f"{LIST} {LIST} {LIST} S[1] -> {LIST}"
SCALAR = f"{LIST} S[1] -> {LIST}"
# bfloat16 lists take their scalar as float32 in most operators.
FLOATS_SCALAR = ("float16", "float32", "bfloat16/float32")
POSITIVE = {0: (0.05, 8.0)}
TWICE = {"bfloat16": 1.2e-2, "float32": 1e-3}  # rounds what it normalizes to bfloat16 before it does
COARSE = {"float16": 4e-3}  # computes in float16 throughout, with a rounding at every step


def each(function: Callable[..., torch.Tensor]) -> Reference:
    """The function of one tensor (and what else there is) for every tensor of the list."""

    def apply(tensors: list[torch.Tensor], *rest: Any) -> list[torch.Tensor]:
        def at(i: int, argument: Any) -> Any:
            return argument[i] if isinstance(argument, list) else argument

        return [function(t, *(at(i, r) for r in rest)) for i, t in enumerate(tensors)]

    return apply


def halves(x: torch.Tensor, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    first, second = x.chunk(2, dim)
    return first, second


def swi_glu(x: torch.Tensor, dim: int) -> torch.Tensor:
    a, b = halves(x, dim)
    return a * torch.sigmoid(a) * b


def swi_glu_grad(grad: torch.Tensor, x: torch.Tensor, dim: int) -> torch.Tensor:
    a, b = halves(x, dim)
    s = torch.sigmoid(a)
    return torch.cat([grad * b * s * (1 + a * (1 - s)), grad * a * s], dim)


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(x, approximate="tanh")


def gelu_grad(dy: torch.Tensor, x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    leaf = x.clone().requires_grad_()
    return torch.autograd.grad(gelu_tanh(leaf), leaf, dy)[0]


def ge_glu(x: torch.Tensor, dim: int, approximate: int, activate_left: bool) -> tuple[torch.Tensor, torch.Tensor]:
    left, right = halves(x, dim)
    active, other = (left, right) if activate_left else (right, left)
    gelu = gelu_tanh(active) if approximate else torch.nn.functional.gelu(active)
    return other * gelu, gelu


def clip_int8(x: torch.Tensor) -> torch.Tensor:
    return torch.round(x).clamp(-128, 127).to(torch.int8)


def rms(x: torch.Tensor, epsilon: float) -> torch.Tensor:
    return torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon)


def add_rms_norm(a: torch.Tensor, b: torch.Tensor, gamma: torch.Tensor, epsilon: float) -> tuple[torch.Tensor, ...]:
    x = a + b
    return x * rms(x, epsilon) * gamma, rms(x, epsilon), x


def layer_norm(x: torch.Tensor, epsilon: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    mean = x.mean(-1, keepdim=True)
    rstd = torch.rsqrt(x.var(-1, correction=0, keepdim=True) + epsilon)
    return (x - mean) * rstd, mean, rstd


def rms_norm_grad(
    dy: torch.Tensor, x: torch.Tensor, rstd: torch.Tensor, gamma: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    g = dy * gamma
    dx = rstd * (g - x * rstd * (g * x * rstd).mean(-1, keepdim=True))
    return dx, (dy * x * rstd).sum(0)


def group_norm(
    x: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, groups: int, eps: float
) -> tuple[torch.Tensor, ...]:
    flat = x.reshape(x.shape[0], groups, -1)
    _, mean, rstd = layer_norm(flat, eps)
    return torch.nn.functional.group_norm(x, groups, gamma, beta, eps), mean, rstd


def group_norm_silu(
    x: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, num_groups: int, eps: float, activate_silu: bool
) -> tuple[torch.Tensor, ...]:
    y, mean, rstd = group_norm(x, gamma, beta, num_groups, eps)
    return (torch.nn.functional.silu(y) if activate_silu else y), mean, rstd


def dynamic_quant(x: torch.Tensor, _: Any = None, __: Any = None, **___: Any) -> tuple[torch.Tensor, torch.Tensor]:
    scale = x.abs().amax(-1) / 127
    return clip_int8(x / scale[..., None]), scale


ROWS = (
    # ---- math ----
    Row("math/abs", "T[7,1000] -> T[7,1000]", torch.abs, (*FLOATS, "int32", "int64")),
    Row("math/add_custom", "T[8,2048] T[8,2048] -> T[8,2048]", torch.add, (*HF, "int32", "int8"), domain={0: (-50,
        50), 1: (-50, 50)}),
    Row("math/addcdiv", "T[33,77] T[33,77] T[33,77] T[1] -> T[33,77]", lambda x, a, b, v: x + v * a / b, FLOATS,
        domain={2: (0.5, 4)}),
    Row("math/addcmul", "T[33,77] T[33,77] T[33,77] T[1] -> T[33,77]", lambda x, a, b, v: x + v * a * b, FLOATS),
    Row("math/clip_by_value", "T[7,2045] T[1] T[1] -> T[7,2045]", lambda x, a, b: torch.minimum(torch.maximum(x, a),
        b), HF,
        domain={1: (-1, -0.1), 2: (0.1, 1)}),
    Row("math/clip_by_value_v2", "T[7,2045] T[1] T[1] -> T[7,2045]", lambda x, a, b: torch.minimum(torch.maximum(x,
        a), b), FLOATS,
        domain={1: (-1, -0.1), 2: (0.1, 1)}),
    Row("math/cos", "T[17,333] -> T[17,333]", torch.cos, FLOATS),
    Row("math/sin", "T[17,333] -> T[17,333]", torch.sin, FLOATS),
    Row("math/equal", "T[8,2048] T[8,2048] -> bool[8,2048]", torch.eq, (*FLOATS, "int8", "int32")),
    Row("math/less", "T[8,2048] T[8,2048] -> bool[8,2048]", torch.lt, (*FLOATS, "int8", "int32", "int64")),
    Row("math/fast_gelu", "T[7,2045] -> T[7,2045]", lambda x: x * torch.sigmoid(1.702 * x), HF, tolerance=COARSE),
    Row("math/gelu", "T[7,2045] -> T[7,2045]", gelu_tanh, FLOATS, tolerance={"float32": 1e-3}),
    Row("math/is_finite", "T[7,2045] -> bool[7,2045]", torch.isfinite, FLOATS),
    Row("math/is_inf", "T[7,2045] -> bool[7,2045]", torch.isinf, FLOATS),
    Row("math/lerp", "T[33,77] T[33,77] T[33,77] -> T[33,77]", torch.lerp, FLOATS),
    Row("math/logical_not", "bool[7,2045] -> bool[7,2045]", torch.logical_not),
    Row("math/logical_or", "bool[7,2045] bool[7,2045] -> bool[7,2045]", torch.logical_or),
    Row("math/muls", "T[7,2045] float32[1] -> T[7,2045]", torch.mul, FLOATS),
    Row("math/neg", "T[7,2045] -> T[7,2045]", torch.neg, (*HF, "int32", "int8")),
    Row("math/rsqrt", "T[7,2045] -> T[7,2045]", torch.rsqrt, FLOATS, domain=POSITIVE),
    Row("math/sqrt", "T[7,2045] -> T[7,2045]", torch.sqrt, FLOATS, domain={0: (0, 8)}),
    Row("math/swish", "T[7,2045] -> T[7,2045]", lambda x, scale: x * torch.sigmoid(scale * x), FLOATS,
        attrs={"scale": 1.0}),
    Row("math/tanh", "T[7,2045] -> T[7,2045]", torch.tanh, FLOATS),
    Row("math/tril", "T[64,96] -> T[64,96]", torch.tril, HF, attrs={"diagonal": 0}),
    Row("math/triu", "T[64,96] -> T[64,96]", torch.triu, HF, attrs={"diagonal": 0}),
    Row("math/heaviside", "T[7,2048] T[7,2048] -> T[7,2048]", torch.heaviside, HF),
    Row("math/gelu_grad", "T[7,2048] T[7,2048] T[7,2048] -> T[7,2048]", gelu_grad, FLOATS),
    Row("math/snrm2", "T[5000] -> T[1]", lambda x, n, incx: x.norm(), ("float32",), attrs={"n": 5000, "incx": 1}),
    Row("math/scopy", "T[5000] -> T[5000]", lambda x, n, incx, incy: x, ("float32",), attrs={"n": 5000, "incx": 1,
        "incy": 1}),
    Row("math/unalign_add", "T[8,2048] T[8,2048] -> T[8,2048]", torch.add),
    Row("math/sub_frameworklaunch", "T[8,2048] T[8,2048] -> T[8,2048]", torch.sub),
    Row("math/gcd", "T[16,100] T[16,100] -> T[16,100]", torch.gcd, ("int16", "int32")),
    Row("math/cast", "float32[100,100] -> float16[100,100]", lambda x, dst_type: x, attrs={"dst_type": 1}),
    Row("math/cast", "float16[100,100] -> float32[100,100]", lambda x, dst_type: x, attrs={"dst_type": 0}),
    Row("math/cast", "float32[100,100] -> int32[100,100]", lambda x, dst_type: x.trunc().to(torch.int32),
        attrs={"dst_type": 3}),
    Row("math/kl_div_target_backward", "T[32,512] T[32,512] T[32,512] -> T[32,512]",
        lambda g, x, t, reduction, log_target: g * (t.log() + 1 - x), ("float16", "float32"),
        attrs={"reduction": 2, "log_target": False}, domain={2: (0.1, 4)}, tolerance=COARSE),
    # ---- activation ----
    Row("activation/swi_glu", "T[17,768] -> T[17,384]", swi_glu, FLOATS, attrs={"dim": -1}),
    Row("activation/swi_glu", "T[5,62] -> T[5,31]", swi_glu, FLOATS, attrs={"dim": -1}),
    Row("activation/swi_glu_grad", "T[17,384] T[17,768] -> T[17,768]", swi_glu_grad, FLOATS, attrs={"dim": -1}),
    Row("activation/ge_glu_v2", "T[32,512] -> T[32,256] T[32,256]", ge_glu, FLOATS,
        attrs={"dim": -1, "approximate": 1, "activate_left": False}),
    Row("activation/gelu_quant", "T[16,512] T[512] - -> int8[16,512] float32[16]",
        lambda x, s, o, **_: dynamic_quant(gelu_tanh(x) * s), HF, attrs={"approximate": "tanh",
        "quant_mode": "dynamic"},
        domain={1: (0.5, 2)}),
    # ---- foreach ----
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
    # ---- norm ----
    Row("norm/add_rms_norm", "T[16,1024] T[16,1024] T[1024] -> T[16,1024] float32[16,1] T[16,1024]", add_rms_norm,
        FLOATS,
        attrs={"epsilon": 1e-6}, tolerance=TWICE),
    Row("norm/add_rms_norm", "T[7,100] T[7,100] T[100] -> T[7,100] float32[7,1] T[7,100]", add_rms_norm, FLOATS,
        attrs={"epsilon": 1e-6}, tolerance=TWICE),
    Row("norm/add_rms_norm_cast",
        "T[16,1024] T[16,1024] T[1024] -> float32[16,1024] T[16,1024] float32[16,1] T[16,1024]",
        lambda a, b, g, epsilon: (add_rms_norm(a, b, g, epsilon)[0], *add_rms_norm(a, b, g, epsilon)),
        ("float16", "bfloat16"), attrs={"epsilon": 1e-6}, tolerance={"float32": 4e-3}),
    Row("norm/inplace_add_rms_norm", "T[16,1024] T[16,1024] T[1024] -> T[16,1024] float32[16,1] T[16,1024]",
        add_rms_norm,
        FLOATS, attrs={"epsilon": 1e-6}, tolerance=TWICE),
    Row("norm/rms_norm_grad", "T[16,512] T[16,512] float32[16,1] T[512] -> T[16,512] float32[512]", rms_norm_grad,
        FLOATS,
        domain={2: (0.5, 2)}),
    Row("norm/group_norm_silu", "T[2,32,8,8] T[32] T[32] -> T[2,32,8,8] T[2,8] T[2,8]", group_norm_silu, HF,
        attrs={"num_groups": 8, "eps": 1e-5, "activate_silu": True}),
    # ---- quant ----
    Row("quant/ascend_quant_v2", "T[16,512] T[512] T[512] -> int8[16,512]",
        lambda x, s, o, **_: clip_int8(x * s + o), FLOATS,
        attrs={"sqrt_mode": False, "round_mode": "round", "dst_type": 2, "axis": -1}),
    # ---- loss ----
    Row("loss/mse_loss_v2", "T[64,300] T[64,300] -> T[1]", lambda x, t, reduction: ((x - t) ** 2).mean(), FLOATS,
        attrs={"reduction": "mean"}),
    Row("loss/mse_loss_v2", "T[64,300] T[64,300] -> T[64,300]", lambda x, t, reduction: (x - t) ** 2, FLOATS,
        attrs={"reduction": "none"}),
)  # fmt: skip

_API = "examples/01_simd_cpp_api"
KERNELS: tuple[Direct, ...] = (
    Direct(f"{_API}/00_introduction/01_add/add_tpipe_tque/add_tpipe_tque.asc", "add_custom", 8,
           "x=float32[16384] y=float32[16384]", "z=float32[16384]", torch.add, {"totalLength": 16384}),
    Direct(f"{_API}/03_basic_api/07_tpipe_tque/tpipe_reuse/tpipe_reuse.asc", "tpipe_reuse_custom", 1,
           "x=float32[128]", "z=float32[128]", lambda x: 3 * x),
)  # fmt: skip


# ---- from a line to a case ----
_TOKEN = re.compile(r"->|[()-]|(\w+)\[([\d,]*)\]")


def arguments(text: str, dtypes: dict[str, str]) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
    """(inputs, outputs) of a case's text."""
    sides: list[list[Argument]] = [[], []]
    side = 0
    group: list[TensorSpec] | None = None
    for token in _TOKEN.finditer(text):
        if token[0] == "->":
            side = 1
        elif token[0] == "(":
            group = []
        elif token[0] == ")":
            sides[side].append(tuple(group or ()))
            group = None
        elif token[0] == "-":
            sides[side].append(None)
        else:
            shape = tuple(int(n) for n in token[2].split(",") if n)
            spec = TensorSpec(dtypes.get(token[1], token[1]), shape)
            if group is None:
                sides[side].append(spec)
            else:
                group.append(spec)
    return tuple(sides[0]), tuple(sides[1])


def in_float64(reference: Reference) -> Reference:
    """``reference`` with every floating tensor converted on the way in."""

    def convert(value: Any) -> Any:
        if isinstance(value, list):
            return [convert(v) for v in value]
        return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    return lambda *tensors, **attrs: reference(*map(convert, tensors), **attrs)


def cases() -> Iterator[Any]:
    for row in ROWS:
        for dtype in row.dtypes:
            shape = re.sub(r"\W+", "-", row.case.split()[0]).strip("-")
            yield pytest.param(row, dtype, id=f"{row.path}-{dtype.replace('/', '-')}-{shape}")


def check(operator: Operator, case: Case, evaluator: Evaluator, signature: Signature) -> None:
    result = Gate(operator, case, evaluator, signature=signature).evaluate(operator.baseline)
    outcome = result.outcome
    assert isinstance(outcome, Timed), f"{type(outcome).__name__}: {getattr(outcome, 'reason', outcome)}"
    assert result.checks >= 4
    assert outcome.profile.task_duration_us > 0


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    # The chip these operators were written on: several have tables for 40 vector cores and overrun them with more.
    build_dir = tmp_path_factory.mktemp("build")
    with Evaluator(toolkit.virtual(), "ascend910b3", workers=1, build_dir=build_dir) as opened:
        yield opened


def run_row(row: Row, dtype: str, evaluator: Evaluator, root: Path) -> None:
    tensor, _, scalar = dtype.partition("/")
    operator = load_project(root / "src" / row.path)
    signature = evaluator.describe(operator).signature
    inputs, outputs = arguments(row.case, {"T": tensor, "S": scalar or tensor})
    domain = {signature.inputs[i].name: {"low": low, "high": high} for i, (low, high) in row.domain.items()}
    operator = dataclasses.replace(
        operator, reference=in_float64(row.reference), settings={"domain": domain, "tolerance": row.tolerance}
    )
    check(operator, Case(inputs, outputs, tuple(sorted(row.attrs.items()))), evaluator, signature)


@pytest.mark.parametrize(("row", "dtype"), tuple(cases()))
def test_operator(row: Row, dtype: str, evaluator: Evaluator) -> None:
    root = settings().cann_ops
    if root is None:
        pytest.skip("ASCENDOPT_CANN_OPS is not set")
    run_row(row, dtype, evaluator, root)


def run_kernel(kernel: Direct, evaluator: Evaluator, root: Path) -> None:
    def parameters(text: str) -> tuple[tuple[ParamDef, ...], tuple[Argument, ...]]:
        names = [word.split("=")[0] for word in text.split()]
        specs = arguments(" ".join(word.split("=")[1] for word in text.split()), {})[0]
        pairs = zip(names, specs, strict=True)
        return tuple(ParamDef(n, (s.dtype,)) for n, s in pairs if isinstance(s, TensorSpec)), specs

    (inputs, input_specs), (outputs, output_specs) = parameters(kernel.inputs), parameters(kernel.outputs)
    operator = load_direct(root / kernel.path, kernel.entry, kernel.block_dim)
    operator = dataclasses.replace(operator, reference=lambda *x, **_: in_float64(kernel.reference)(*x))
    signature = Signature(kernel.entry, inputs, outputs, has_tiling=False)
    check(operator, Case(input_specs, output_specs, tuple(sorted(kernel.attrs.items()))), evaluator, signature)


@pytest.mark.parametrize("kernel", [pytest.param(k, id=f"{Path(k.path).stem}-{k.entry}") for k in KERNELS])
def test_direct_launch(kernel: Direct, evaluator: Evaluator) -> None:
    root = settings().asc_devkit
    if root is None:
        pytest.skip("ASCENDOPT_ASC_DEVKIT is not set")
    run_kernel(kernel, evaluator, root)
