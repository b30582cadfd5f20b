"""From the arguments of a Python call to the operator's inputs and attributes, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from ..build.host_signature import attribute_values
from ..case import Argument, AttrValue, Case, TensorSpec
from ..errors import CaseError
from ..operator import ParamDef, Signature
from .launcher import DTYPE_NAMES, Pick


@dataclass(frozen=True)
class Bound:
    """A call in the operator's terms. ``case`` has no outputs yet; ``picks`` get each input out of a like call."""

    case: Case
    picks: tuple[Pick, ...]


def parameters_of(function: Callable[..., Any]) -> inspect.Signature:
    """The Python signature of a function, a ``torch.library.custom_op``, or an operator of ``torch.ops``."""
    schema = schema_of(function)
    if schema is None:
        return inspect.signature(function)
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return inspect.Signature(
        [
            inspect.Parameter(
                argument.name,
                kinds[argument.kwarg_only],
                default=argument.default_value if argument.has_default_value() else inspect.Parameter.empty,
            )
            for argument in schema.arguments
        ]
    )


def schema_of(function: Callable[..., Any]) -> Any:
    """torch's schema of an operator; None for a plain function."""
    overload = getattr(function, "_opoverload", function)
    return getattr(getattr(overload, "default", overload), "_schema", None)


def bind(
    signature: Signature,
    parameters: inspect.Signature,
    names: Mapping[str, str],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Bound:
    """The call as the operator sees it.

    Args:
        names: the operator's name of a Python parameter that is called otherwise.

    Raises:
        CaseError: a parameter that is neither input nor attribute, a missing input, a value of a wrong kind.
    """
    call = parameters.bind(*args, **kwargs)
    given = set(call.arguments)
    call.apply_defaults()
    positions = {name: i for i, name in enumerate(parameters.parameters)}
    values: dict[str, Any] = {}
    picks: dict[str, Pick] = {}
    for name, value in call.arguments.items():
        if parameters.parameters[name].kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise CaseError(f"parameter {name!r} takes any number of arguments.", "Name every parameter.")
        own = names.get(name, name)
        values[own] = value
        picks[own] = _pick(name, positions[name], name in kwargs) if name in given else _nothing
    inputs = tuple(_argument(signature, p, values.pop(p.name, None)) for p in signature.inputs)
    unknown = sorted(set(values) - {a.name for a in signature.attrs})
    if unknown:
        raise CaseError(
            f"parameter {unknown[0]!r} is neither an input nor an attribute of {signature.to_text()}.",
            "Rename it, or give names={'parameter': 'operator name'}.",
        )
    attrs = {name: _plain(value) for name, value in values.items() if value is not None}
    typed = attribute_values(signature, attrs)
    case = Case(
        inputs, (), tuple(sorted((a.name, value) for a, (_, value) in zip(signature.attrs, typed, strict=True)))
    )
    return Bound(case, tuple(picks.get(p.name, _nothing) for p in signature.inputs))


def specs_of(signature: Signature, result: Any) -> tuple[Argument, ...]:
    """The operator's outputs as the original returned them. Raises CaseError if there are more or fewer."""
    values = list(result) if isinstance(result, (tuple, list)) else [result]
    if len(signature.outputs) == 1 and signature.outputs[0].kind == "dynamic":
        values = [values]
    if len(values) != len(signature.outputs):
        raise CaseError(
            f"{signature.op_type} has no shape function, {len(signature.outputs)} outputs, and the function returned "
            f"{len(values)}.",
            "Give the operator an InferShape.",
        )
    return tuple(_argument(signature, p, v) for p, v in zip(signature.outputs, values, strict=True))


def _pick(name: str, position: int, by_name: bool) -> Pick:
    if by_name:
        return lambda args, kwargs: kwargs[name]
    return lambda args, kwargs: args[position]


def _nothing(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    return None


def _argument(signature: Signature, param: ParamDef, value: Any) -> Argument:
    if value is None:
        if param.kind == "required":
            raise CaseError(f"{signature.op_type} needs {param.name}, which the call doesn't give.")
        return None
    if param.kind == "dynamic":
        if not isinstance(value, (tuple, list)):
            raise CaseError(f"{param.name} is a tensor list of {signature.op_type}.")
        return tuple(_spec(param, tensor) for tensor in value)
    return _spec(param, value)


def _spec(param: ParamDef, value: Any) -> TensorSpec:
    if not isinstance(value, torch.Tensor):
        raise CaseError(f"{param.name} must be a tensor, not {type(value).__name__}.")
    if param.value_depend:
        raise CaseError(f"the tiling function reads the values of {param.name}, so no result fits all of them.")
    if value.numel() == 0:
        raise CaseError(f"{param.name} is empty.")
    return TensorSpec(DTYPE_NAMES.get(value.dtype, str(value.dtype)), tuple(value.shape))


def _plain(value: Any) -> AttrValue:
    return tuple(value) if isinstance(value, list) else value
