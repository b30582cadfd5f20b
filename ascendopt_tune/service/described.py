"""A call in the operator's terms, as plain data: what the serving process tells the one that tunes. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from ..build.host_signature import attribute_values
from ..errors import CaseError
from ..nouns.case import Argument, AttrValue, Case, TensorSpec
from ..nouns.operator import ParamDef, Signature

#: The value of one parameter: tensors as specs, lists as tuples.
Described: TypeAlias = "TensorSpec | AttrValue | tuple[TensorSpec, ...] | None"


@dataclass(frozen=True)
class CallDescription:
    """``values``: by the operator's own parameter names. ``written``: those that the original says it changes.
    ``results``: what the original returned, flat; None: it hasn't been asked yet, or no tensors came back."""

    values: Mapping[str, Described]
    written: tuple[str, ...] = ()
    results: tuple[Argument, ...] | None = None

    def without_buffers(self, signature: Signature) -> CallDescription:
        """The call without tensors that are only written; these are the results, if no others are known."""
        inputs = {p.name for p in signature.inputs}
        values = {name: v for name, v in self.values.items() if name in inputs or name not in self.written}
        changed = [self.values[name] for name in self.written]
        results = self.results or tuple(v for v in changed if isinstance(v, TensorSpec) or v is None) or None
        return CallDescription(values, self.written, results)


def holds_tensors(value: Described) -> bool:
    return isinstance(value, TensorSpec) or (isinstance(value, tuple) and any(isinstance(v, TensorSpec) for v in value))


def case_of(signature: Signature, values: Mapping[str, Described]) -> Case:
    """The case, without outputs. None by a name that the operator doesn't have is an argument left out, ``bias=None``.

    Raises:
        CaseError: a value by a name that is neither input nor attribute, a missing input, a value of a wrong kind.
    """
    rest = dict(values)
    inputs = tuple(_argument(signature, p, rest.pop(p.name, None)) for p in signature.inputs)
    unknown = sorted({name for name, value in rest.items() if value is not None} - {a.name for a in signature.attrs})
    if unknown:
        raise CaseError(
            f"parameter {unknown[0]!r} is neither an input nor an attribute of {signature.to_text()}.",
            "Rename it, or give names={'parameter': 'operator name'}.",
        )
    attrs: dict[str, AttrValue] = {}
    for name, value in rest.items():
        if isinstance(value, TensorSpec) or (
            isinstance(value, tuple) and any(isinstance(v, TensorSpec) for v in value)
        ):
            raise CaseError(f"{name} is an attribute of {signature.op_type}, and the call gives a tensor.")
        if value is not None:
            attrs[name] = value  # type: ignore[assignment]
    typed = attribute_values(signature, attrs)
    return Case(inputs, (), tuple(sorted((a.name, v) for a, (_, v) in zip(signature.attrs, typed, strict=True))))


def with_outputs(signature: Signature, case: Case, results: tuple[Argument, ...] | None) -> Case:
    """The case with the outputs the original returned. Raises CaseError if there are more or fewer, or none known."""
    values = list(results) if results is not None else []
    if len(signature.outputs) == 1 and signature.outputs[0].kind == "dynamic":
        values = [tuple(v for v in values if isinstance(v, TensorSpec))]
    if len(values) != len(signature.outputs):
        raise CaseError(
            f"{signature.op_type} has no shape function, {len(signature.outputs)} outputs, and the function returned "
            f"{len(values)}.",
            "Give the operator an InferShape.",
        )
    return replace(case, outputs=tuple(values))


def _argument(signature: Signature, param: ParamDef, value: Described) -> Argument:
    if value is None:
        if param.kind == "required":
            raise CaseError(
                f"{signature.op_type} needs {param.name}, which the call doesn't give.",
                f"If a parameter of another name is meant, say names={{'parameter': '{param.name}'}}.",
            )
        return None
    if param.kind == "dynamic":
        if not isinstance(value, tuple):
            raise CaseError(f"{param.name} is a tensor list of {signature.op_type}.")
        return tuple(_tensor(param, item) for item in value)
    return _tensor(param, value)


def _tensor(param: ParamDef, value: object) -> TensorSpec:
    if not isinstance(value, TensorSpec):
        raise CaseError(f"{param.name} must be a tensor, not {type(value).__name__}.")
    if param.value_depend:
        raise CaseError(f"the tiling function reads the values of {param.name}, so no result fits all of them.")
    if value.numel == 0:
        raise CaseError(f"{param.name} is empty.")
    return value
