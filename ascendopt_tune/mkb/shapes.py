"""How a binding allocates an output: C++ for its shape that holds for the case and for other shapes of its inputs.

A shape function is a program; what a binding says of it is found by asking it, with every axis of every input doubled
in turn. An axis of the output is then the first of a few expressions that agrees each time (``x.size(0)``,
``x.size(1) / 2``, ``index.numel()``), else the case's number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..nouns.case import Argument, Case, TensorSpec
from ..nouns.operator import Signature

_KINDS = {
    "float32": "kFloat", "float16": "kHalf", "bfloat16": "kBFloat16", "float64": "kDouble", "int8": "kChar",
    "uint8": "kByte", "int16": "kShort", "int32": "kInt", "int64": "kLong", "bool": "kBool",
}  # fmt: skip
_FACTORS = (2, 3, 4, 8, 16, 32)

Probe = Callable[[tuple[Argument, ...]], tuple[Argument, ...] | None]


@dataclass(frozen=True)
class _Observed:
    """Shapes of the inputs (by name; lists are left out) and of one output."""

    inputs: dict[str, tuple[int, ...]]
    output: tuple[int, ...]


def allocation(signature: Signature, case: Case, output: int, probe: Probe, initial: float | None) -> list[str]:
    """C++ statements that declare and allocate output number ``output`` of the operator."""
    parameter, argument = signature.outputs[output], case.outputs[output]
    if isinstance(argument, tuple):  # a list: as many tensors as the list of inputs it comes from, of their shapes
        lists = [p.name for p, a in zip(signature.inputs, case.inputs, strict=True) if a == argument]
        source = lists[0] if lists else signature.inputs[0].name
        return [
            f"std::vector<at::Tensor> {parameter.name};",
            f"for (const at::Tensor& one : {source}) {{",
            f"    {parameter.name}.push_back(at::empty_like(one));",
            "}",
        ]
    assert argument is not None, "an output of a case is there"
    observed = list(_observations(signature, case, output, probe))
    source, options = _options(signature, case, output, argument)
    like = next((n for n in observed[0].inputs if all(o.inputs[n] == o.output for o in observed)), None)
    maker = "empty" if initial is None else "zeros" if initial == 0 else "full"
    value = f", {initial!r}" if maker == "full" else ""
    if like is not None:
        suffix = "" if like == source and options == f"{source}.options()" else f", {options}"
        return [f"at::Tensor {parameter.name} = at::{maker}_like({like}{value}{suffix});"]
    sizes = ", ".join(_axis(observed, axis) for axis in range(len(argument.shape)))
    return [f"at::Tensor {parameter.name} = at::{maker}({{{sizes}}}{value}, {options});"]


def _observations(signature: Signature, case: Case, output: int, probe: Probe) -> Iterator[_Observed]:
    names = [p.name for p in signature.inputs]

    def observed(inputs: Sequence[Argument], outputs: Sequence[Argument]) -> _Observed | None:
        found = outputs[output]
        if not isinstance(found, TensorSpec):
            return None
        return _Observed(
            {n: a.shape for n, a in zip(names, inputs, strict=True) if isinstance(a, TensorSpec)}, found.shape
        )

    first = observed(case.inputs, case.outputs)
    assert first is not None
    yield first
    for k, argument in enumerate(case.inputs):
        for axis in range(len(argument.shape)) if isinstance(argument, TensorSpec) else ():
            doubled = list(case.inputs)
            assert isinstance(argument, TensorSpec)
            shape = (*argument.shape[:axis], 2 * argument.shape[axis], *argument.shape[axis + 1 :])
            doubled[k] = replace(argument, shape=shape)
            outputs = probe(tuple(doubled))
            other = observed(doubled, outputs) if outputs is not None else None
            if other is not None and len(other.output) == len(first.output):
                yield other


def _axis(observed: Sequence[_Observed], axis: int) -> str:
    """C++ of one axis of the output."""
    first = observed[0]
    wanted = [o.output[axis] for o in observed]
    plain: list[tuple[str, list[float]]] = []
    for name, shape in first.inputs.items():
        order = sorted(range(len(shape)), key=lambda i: i != axis)
        plain += [(f"{name}.size({i})", [o.inputs[name][i] for o in observed]) for i in order]
    candidates = [*plain, *((f"{n}.numel()", [math.prod(o.inputs[n]) for o in observed]) for n in first.inputs)]
    for text, values in plain:
        candidates += [(f"{text} / {k}", [v / k for v in values]) for k in _FACTORS]
        candidates += [(f"{text} * {k}", [v * k for v in values]) for k in _FACTORS]
    return next((text for text, values in candidates if values == wanted), str(first.output[axis]))


def _options(signature: Signature, case: Case, output: int, argument: TensorSpec) -> tuple[str, str]:
    """(input, C++ of the options of an output allocated after it): of its dtype where they agree in every column."""
    dtypes = signature.outputs[output].dtypes
    tensors = [p for p, a in zip(signature.inputs, case.inputs, strict=True) if isinstance(a, TensorSpec)]
    for p in tensors:
        if p.dtypes == dtypes:
            return p.name, f"{p.name}.options()"
    name = tensors[0].name if tensors else ""
    base = f"{name}.options()" if name else "at::TensorOptions()"
    return name, f"{base}.dtype(at::{_KINDS[argument.dtype]})"
