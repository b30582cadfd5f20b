"""A Case: one concrete call of an operator (shapes, dtypes, formats, attribute values).

dtypes are spelled as torch spells them (``float16``, ``bfloat16``, ``int8``, ...); shapes are tuples of element counts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import CaseError, did_you_mean

# name -> (bytes per element in an array, CANN's ge::DataType number, C type in a kernel).
# Source of the numbers: CANN aclDataType / ge::DataType documentation.
DTYPES: dict[str, tuple[int, int, str]] = {
    "float32": (4, 0, "float"),
    "float16": (2, 1, "half"),
    "int8": (1, 2, "int8_t"),
    "int32": (4, 3, "int32_t"),
    "uint8": (1, 4, "uint8_t"),
    "int16": (2, 6, "int16_t"),
    "uint16": (2, 7, "uint16_t"),
    "uint32": (4, 8, "uint32_t"),
    "int64": (8, 9, "int64_t"),
    "uint64": (8, 10, "uint64_t"),
    "float64": (8, 11, "double"),
    "bool": (1, 12, "bool"),
    "complex64": (8, 16, "complex64"),
    "bfloat16": (2, 27, "bfloat16_t"),
    "int4": (1, 29, "int4b_t"),
}

AttrValue = bool | int | float | str | tuple[int, ...] | tuple[float, ...]


@dataclass(frozen=True)
class TensorSpec:
    """Shape (elements per axis), dtype and CANN storage format of one tensor."""

    dtype: str
    shape: tuple[int, ...]
    format: str = "ND"

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise CaseError(
                f"unknown dtype {self.dtype!r}.{did_you_mean(self.dtype, DTYPES)}",
                f"Known dtypes: {', '.join(DTYPES)}.",
            )
        if any(not isinstance(n, int) or n < 0 for n in self.shape):
            raise CaseError(
                f"shape {self.shape} has a negative or non-integer axis.", "Give every axis as a count >= 0."
            )

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes on the device, where two elements of int4 share a byte."""
        if self.dtype == "int4":
            return -(-self.numel // 2)
        return self.numel * DTYPES[self.dtype][0]

    @staticmethod
    def parse(text: str) -> TensorSpec:
        """Inverse of ``str``: ``float16[64,4096]``, ``float16[1,16,2,2]:NC1HWC0``."""
        dtype, _, rest = text.partition("[")
        shape, _, form = rest.partition("]")
        return TensorSpec(dtype, tuple(int(n) for n in shape.split(",") if n), form.removeprefix(":") or "ND")

    def __str__(self) -> str:
        suffix = "" if self.format == "ND" else f":{self.format}"
        return f"{self.dtype}[{','.join(map(str, self.shape))}]{suffix}"


# One parameter of an operator: a tensor, a tensor list (dynamic parameter), or None (an optional one that is absent).
Argument = TensorSpec | tuple[TensorSpec, ...] | None


@dataclass(frozen=True)
class Case:
    """Arguments in the operator definition's order, attributes sorted by name."""

    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    attrs: tuple[tuple[str, AttrValue], ...] = ()

    def to_json(self) -> dict[str, object]:
        """The canonical JSON form: part of the cache key, never changed without a new schema number."""

        def arg(a: Argument) -> object:
            if a is None:
                return None
            return str(a) if isinstance(a, TensorSpec) else [str(t) for t in a]

        return {
            "inputs": [arg(a) for a in self.inputs],
            "outputs": [arg(a) for a in self.outputs],
            "attrs": {k: list(v) if isinstance(v, tuple) else v for k, v in self.attrs},
        }

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Case:
        """Inverse of :meth:`to_json`."""

        def arg(value: Any) -> Argument:
            if value is None:
                return None
            return tuple(map(TensorSpec.parse, value)) if isinstance(value, list) else TensorSpec.parse(value)

        attrs = {k: tuple(v) if isinstance(v, list) else v for k, v in document["attrs"].items()}
        return Case(
            tuple(map(arg, document["inputs"])), tuple(map(arg, document["outputs"])), tuple(sorted(attrs.items()))
        )

    def __str__(self) -> str:
        def arg(a: Argument) -> str:
            if a is None:
                return "-"
            return str(a) if isinstance(a, TensorSpec) else "(" + " ".join(map(str, a)) + ")"

        # Without outputs: they are not known yet, or the operator writes its inputs in place.
        outputs = ("->", *map(arg, self.outputs)) if self.outputs else ()
        return " ".join((*map(arg, self.inputs), *outputs, *(f"{k}={json.dumps(v)}" for k, v in self.attrs)))


def flatten(arguments: Iterable[Argument]) -> list[TensorSpec]:
    """The tensors of the arguments in order; lists are opened, absent ones skipped."""
    out: list[TensorSpec] = []
    for a in arguments:
        if isinstance(a, TensorSpec):
            out.append(a)
        elif a is not None:
            out.extend(a)
    return out
