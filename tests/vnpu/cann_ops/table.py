"""What a line of the operator tables says, and the references several operators share.

A case is ``"T[8,2048] T[8,2048] -> T[8,2048]"``: inputs and outputs in the definition's order, ``T`` for each dtype of
``dtypes`` in turn (``"float16/float32"`` gives ``S`` a dtype of its own), ``T[8,2]:NHWC`` for a storage format other
than ND, ``(...)`` for a tensor list, ``-`` for an optional input left out. Floating inputs reach a reference as float64
on the CPU.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from ascendopt_tune.nouns.case import Argument, AttrValue, TensorSpec

Reference = Callable[..., Any]
Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Row:
    """An operator and its cases: the first runs with every dtype of ``dtypes``, the others with the first of them.

    An operator needs two cases at least, one aligned and one with a tail (of one row, or of several when attributes
    differ), and every dtype column of its definition in one of them; ``columns_left_out`` names columns that can't run,
    with the reason. ``domain``: position of an input -> (low, high); ``values``: position -> the values it has in every
    trial; ``in_place``: positions of inputs that the kernel changes though the definition has no output for them (the
    case then ends with these); ``initial``: position of an output -> what its caller has to fill it with;
    ``tolerance``: as in op.toml. ``hazard``: what the operator, built without the compiler's automatic synchronization,
    forgot to order; it is checked that this is reported, and values with the automatic one.
    """

    path: str
    cases: str | tuple[str, ...]
    reference: Reference
    dtypes: tuple[str, ...] = ("float16",)
    attrs: dict[str, AttrValue] = field(default_factory=dict)
    domain: dict[int, tuple[float, float]] = field(default_factory=dict)
    values: dict[int, Any] = field(default_factory=dict)
    in_place: tuple[int, ...] = ()
    initial: dict[int, float] = field(default_factory=dict)
    tolerance: dict[str, Any] = field(default_factory=dict)
    columns_left_out: dict[int, str] = field(default_factory=dict)
    hazard: str = ""

    def runs(self) -> list[tuple[str, str]]:
        """(case, dtype) of each run."""
        first, *others = (self.cases,) if isinstance(self.cases, str) else self.cases
        return [(first, dtype) for dtype in self.dtypes] + [(case, self.dtypes[0]) for case in others]


@dataclass(frozen=True)
class Fault:
    """An operator that is left out for a fault of its own: a case of it, and part of the text that tells the fault.

    With ``reference`` the fault may be a wrong result.
    """

    path: str
    case: str
    text: str
    dtype: str = "float32"
    attrs: dict[str, AttrValue] = field(default_factory=dict)
    domain: dict[int, tuple[float, float]] = field(default_factory=dict)
    values: dict[int, Any] = field(default_factory=dict)
    reference: Reference | None = None


FLOATS = ("float16", "float32", "bfloat16")
HF = ("float16", "float32")
POSITIVE = {0: (0.05, 8.0)}
TWICE = {"bfloat16": 1.2e-2, "float32": 1e-3}  # rounds what it normalizes to bfloat16 before it does
COARSE = {"float16": 4e-3}  # computes in float16 throughout, with a rounding at every step


def halves(x: torch.Tensor, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    first, second = x.chunk(2, dim)
    return first, second


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(x, approximate="tanh")


def clip_int8(x: torch.Tensor) -> torch.Tensor:
    return torch.round(x).clamp(-128, 127).to(torch.int8)


def dynamic_quant(x: torch.Tensor, _: Any = None, __: Any = None, **___: Any) -> tuple[torch.Tensor, torch.Tensor]:
    scale = x.abs().amax(-1) / 127
    return clip_int8(x / scale[..., None]), scale


def layer_norm(x: torch.Tensor, epsilon: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    mean = x.mean(-1, keepdim=True)
    rstd = torch.rsqrt(x.var(-1, correction=0, keepdim=True) + epsilon)
    return (x - mean) * rstd, mean, rstd


# ---- from a line to a case ----
_TOKEN = re.compile(r"->|[()-]|(\w+)\[([\d,]*)\](?::(\w+))?")


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
            spec = TensorSpec(dtypes.get(token[1], token[1]), shape, token[3] or "ND")
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
