"""Baselines S and C: a module's ATen calls as operators of cann-ops, run one after the other, their times added.

S: every call has an operator with the same function. C: for one call or more there is only one of the same class, with
the same tensors and a similar instruction. A call without either has no baseline, and so has its module. Calls on a few
numbers count with what a launch takes at least. ``avg_pool3_d`` takes channels last, and nothing turns them here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..build import toolkit
from ..errors import AscendOptError, CaseError
from ..evaluate.evaluator import Evaluator, ProcessLimits
from ..evaluate.gate import Gate
from ..generator.module_file import read
from ..generator.roofline import AtenCall, aten_calls, call_us
from ..nouns.case import Case, TensorSpec
from ..nouns.chip import load_chip
from ..nouns.outcome import Timed
from ..sources.arguments import build_case
from ..sources.project import load_project
from ..store.lines import append_lines, read_lines

_FEW = 1024  # bytes of a call that only pays for its launch
_NUMBER = TensorSpec("float32", (1,))


@dataclass(frozen=True)
class StandIn:
    """An operator of cann-ops for a call: where it is below ``src``, whether its function is the same, its inputs (of
    a list ``x.0``) and attributes, and what op.toml would say of their values."""

    path: str
    same: bool
    inputs: Mapping[str, TensorSpec]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    domain: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    outputs: Mapping[str, TensorSpec] = field(default_factory=dict)

    @property
    def results(self) -> Mapping[str, TensorSpec]:
        """Those given; of operators on lists, which have no shape function: as the first list, or a number."""
        first = self.inputs.get("x.0", self.inputs.get("x1.0"))
        if first is None:
            return self.outputs
        return {"y.0": _NUMBER if self.path.endswith("_norm") else first}


@dataclass(frozen=True)
class Baseline:
    """``kind``: S or C, or nothing, and then ``missing`` says why; ``us`` modelled; ``operators`` that ran."""

    task: str
    kind: str = ""
    us: float | None = None
    operators: tuple[str, ...] = ()
    missing: str = ""


Rule = Callable[[AtenCall], StandIn | None]


def _one(path: str, same: bool, numbers: Sequence[str] = ()) -> Rule:
    """One tensor, ``x``; and inputs of one number."""
    listed = path.startswith("foreach/")

    def rule(call: AtenCall) -> StandIn:
        tensor = {"x.0" if listed else "x": _spec(call, 0)}
        return StandIn(path, same, tensor | dict.fromkeys(numbers, _NUMBER))

    return rule


def _two(path: str, number_path: str, same: bool, *more: str) -> Rule:
    """Two tensors as large as the result, or one and a number."""

    def rule(call: AtenCall) -> StandIn:
        out = TensorSpec(*call.results[0])
        if sum(math.prod(shape) > 1 for _, shape in call.tensors) < 2:
            return StandIn(number_path, same, {"x.0": out, "scalar": _NUMBER})
        return StandIn(path, same, {"x1.0": out, "x2.0": out} | dict.fromkeys(more, _NUMBER))

    return rule


def _norm(same: bool) -> Rule:
    """Everything to one number."""

    def rule(call: AtenCall) -> StandIn | None:
        if math.prod(call.results[0][1]) != 1:
            return None
        return StandIn("foreach/foreach_norm", same, {"x.0": _spec(call, 0), "scalar": _NUMBER})

    return rule


def _pool(call: AtenCall) -> StandIn:
    """Average pooling of any rank."""
    batch, channels, *space = _volume(call.tensors[0][1])
    kernel, stride, padding = _window(call, 3)
    x = TensorSpec(call.tensors[0][0], (batch, *space, channels))
    attrs = {
        "ksize": kernel, "strides": stride, "pads": [p for p in padding for _ in range(2)], "ceil_mode": False,
        "count_include_pad": True, "divisor_override": 0, "data_format": "NDHWC",
    }  # fmt: skip
    batch, channels, *space = _volume(call.results[0][1])
    y = TensorSpec(call.results[0][0], (batch, *space, channels))
    return StandIn("pooling/avg_pool3_d", True, {"x": x}, attrs, outputs={"y": y})


def _max_pool(call: AtenCall) -> StandIn:
    """With places, which ATen's call gives, too."""
    kernel, stride, padding, dilation = _window(call, 4)
    x, y = (TensorSpec("float32", _volume(shape)) for _, shape in (call.tensors[0], call.results[0]))
    attrs = {"ksize": kernel, "strides": stride, "pads": padding, "dilation": dilation}
    outputs = {"y": y, "argmax": TensorSpec("int32", y.shape)}
    return StandIn("pooling/max_pool3_d_with_argmax_v2", True, {"x": x}, attrs, outputs=outputs)


def _volume(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Batch, channels and three axes; those that aren't there are of length 1."""
    shape = shape if len(shape) > 3 else (1, *shape)
    return (*shape[:2], *([1] * (5 - len(shape))), *shape[2:])


def _window(call: AtenCall, count: int) -> list[list[int]]:
    """Kernel, stride, padding and dilation over three axes."""
    given = [list(v) if isinstance(v, (list, tuple)) else [] for v in (*call.numbers, [], [], [])][:count]
    found: list[list[int]] = []
    for values, fill in zip(given, (1, 1, 0, 1), strict=False):
        values = values or (given[0] if len(found) == 1 else [fill])
        rank = max(map(len, given))
        found.append([fill] * (3 - rank) + values * (rank if len(values) == 1 else 1))
    return found


def _group_norm(call: AtenCall) -> StandIn:
    x, channels = _spec(call, 0), TensorSpec("float32", (call.tensors[0][1][1],))
    attrs = {"num_groups": call.numbers[-2], "eps": call.numbers[-1], "activate_silu": False}
    groups = TensorSpec("float32", (x.shape[0], int(call.numbers[-2])))
    outputs = {"y": x, "mean": groups, "rstd": groups}
    return StandIn("norm/group_norm_silu", True, {"x": x, "gamma": channels, "beta": channels}, attrs, outputs=outputs)


def _batch_norm(call: AtenCall) -> StandIn:
    dtype, shape = call.tensors[0]
    x, channels = TensorSpec(dtype, shape, "NCHW"), TensorSpec("float32", (shape[1],))
    names = ("weight", "bias", "running_mean", "running_var")
    more = ("running_mean", "running_var", "save_mean", "save_rstd")
    outputs = {"y": x} | dict.fromkeys(more, channels)
    return StandIn("norm/batch_norm_v3", True, {"x": x} | dict.fromkeys(names, channels), outputs=outputs)


def _layer_norm(call: AtenCall) -> StandIn:
    shape = tuple(call.numbers[0])
    of = TensorSpec("float32", shape)
    inputs = {"x": _spec(call, 0), "normalized_shape": TensorSpec("int32", (len(shape),)), "gamma": of, "beta": of}
    return StandIn("norm/layer_norm_v4", True, inputs, {}, {"normalized_shape": {"values": list(shape)}})


def _cross_entropy(call: AtenCall) -> StandIn:
    """Both calls at once; without what the operator gives besides."""
    x, target = _spec(call, 0), _spec(call, 1)
    domain = {"target": {"low": 0, "high": x.shape[-1] - 1}}
    outputs = {"loss": _NUMBER, "log_prob": x} | dict.fromkeys(("zloss", "lse_for_zloss"), _NUMBER)
    return StandIn("loss/cross_entropy_loss", True, {"input": x, "target": target}, {}, domain, outputs)


def _pair(path: str, same: bool, *names: str) -> Rule:
    return lambda call: StandIn(path, same, {n: _spec(call, k) for k, n in enumerate(names)})


_MAXIMUM, _CLIP = "foreach/foreach_maximum_scalar", ("clip_value_min", "clip_value_max")
RULES: dict[str, Rule] = {
    **{name: _one(f"foreach/foreach_{name}", True) for name in ("abs", "sigmoid", "sqrt", "tanh", "exp", "log")},
    **{name: _one(_MAXIMUM, True, ["scalar"]) for name in ("relu", "clamp", "clamp_min", "clamp_min_")},
    "leaky_relu": _one(_MAXIMUM, False, ["scalar"]),
    "elu": _one("foreach/foreach_expm1", False),
    "softplus": _one("foreach/foreach_log1p", False),
    "clone": _one("foreach/foreach_copy", False),
    "gelu": _one("math/gelu", False),
    "hardtanh": _one("math/clip_by_value", True, _CLIP),
    "hardsigmoid": _one("math/clip_by_value", False, _CLIP),
    "pow": _one("foreach/foreach_pow_scalar", True, ["scalar"]),
    "rsub": _one("foreach/foreach_sub_scalar", False, ["scalar"]),
    "mul": _two("foreach/foreach_mul_list", "foreach/foreach_mul_scalar", True),
    "div": _two("foreach/foreach_div_list", "foreach/foreach_div_scalar", True),
    "add": _two("foreach/foreach_mul_list", "foreach/foreach_sub_scalar", False),
    "sub": _two("foreach/foreach_mul_list", "foreach/foreach_sub_scalar", False),
    "xlogy": _pair("math/xlogy", True, "x1", "x2"),
    "smooth_l1_loss": _pair("loss/mse_loss_v2", False, "input", "target"),
    "_log_softmax nll_loss_forward": _cross_entropy,
    "sum": _norm(False),
    "mean": _norm(False),
    "linalg_vector_norm": _norm(True),
    "avg_pool2d": _pool,
    "avg_pool3d": _pool,
    "max_pool2d_with_indices": _max_pool,
    "max_pool3d_with_indices": _max_pool,
    "native_group_norm": _group_norm,
    "native_batch_norm": _batch_norm,
    "native_layer_norm": _layer_norm,
}


def joined(calls: Sequence[AtenCall]) -> Iterator[AtenCall]:
    """Calls, and where one operator does two of them that follow each other, one call for both."""
    left = list(calls)
    while left:
        call = left.pop(0)
        both = f"{call.name} {left[0].name}" if left else ""
        if both in RULES:
            after = left.pop(0)
            yield AtenCall(both, (call.tensors[0], *after.tensors[1:]), after.results, call.numbers, call.bytes)
        else:
            yield call


def baseline(task: str, calls: Sequence[AtenCall], sources: Path, evaluator: Evaluator) -> Baseline:
    """What the calls take as operators of the checkout ``sources`` of cann-ops."""
    total, same, ran = 0.0, True, []
    chip = load_chip(evaluator.chip)
    for call in joined(calls):
        if call.bytes <= _FEW:
            total += call_us(chip, call.bytes)
            continue
        found = RULES[call.name](call) if call.name in RULES else None
        if found is None:
            return Baseline(task, missing=f"{call.name} has no operator")
        try:
            total += timed(found, sources, evaluator)
        except AscendOptError as error:
            return Baseline(task, missing=f"{found.path}: {' '.join(str(error).split())}"[:300])
        same &= found.same
        ran.append(found.path.rpartition("/")[2])
    return Baseline(task, "S" if same else "C", round(total, 3), tuple(ran))


def measured(files: Sequence[Path], results: Path, sources: Path, chip: str, seconds: float) -> Iterator[Baseline]:
    """The baselines of these tasks; what has been measured is a line of ``results`` and not measured again.

    Args:
        sources: a checkout of cann-ops.
        seconds: that an operator's launch may take.
    """
    known = {b.task: b for b in baselines(results)}
    results.parent.mkdir(parents=True, exist_ok=True)
    with Evaluator(toolkit.find("virtual"), chip, ProcessLimits(run_s=seconds)) as evaluator:
        for file in files:
            found = known.get(file.stem)
            if found is None:
                module, inputs = read(file).make()
                found = baseline(file.stem, aten_calls(module, inputs), sources, evaluator)
                append_lines(results, [json.dumps(asdict(found))])
            yield found


def baselines(results: Path) -> Iterator[Baseline]:
    """What has been measured; lines that can't be read are left out."""
    for line in read_lines(results):
        try:
            yield Baseline(**json.loads(line))
        except (ValueError, TypeError):
            continue


def timed(of: StandIn, sources: Path, evaluator: Evaluator) -> float:
    """Its modelled task duration in us. Raises AscendOptError where it doesn't run."""
    operator = load_project(sources / "src" / of.path)
    operator = replace(operator, settings={"domain": dict(of.domain)})
    signature = evaluator.describe(operator).signature
    attrs = {a.name: a.default for a in signature.attrs if a.default is not None} | dict(of.attrs)
    attrs = {name: tuple(value) if isinstance(value, list) else value for name, value in attrs.items()}
    case: Case = build_case(
        signature, of.inputs, attrs, of.results, lambda inputs, given: evaluator.infer_outputs(operator, inputs, given)
    )
    outcome = Gate(operator, case, evaluator).build(operator.baseline).outcome
    if not isinstance(outcome, Timed):
        raise CaseError(outcome.reason)
    return outcome.profile.task_duration_us


def _spec(call: AtenCall, index: int) -> TensorSpec:
    return TensorSpec(*call.tensors[index])
