"""From the arguments of a Python call to the operator's inputs, attributes and outputs, by name.

What the original's schema says it changes decides where an output of the kernel goes: into a tensor the caller gave
(``out=`` forms), over an input (in-place forms), or into a new tensor.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ...errors import CaseError
from ...nouns.case import DTYPES, Argument, Case, TensorSpec
from ...nouns.operator import Signature
from ...service.described import Described, case_of

TORCH_DTYPES = {name: getattr(torch, name) for name in DTYPES}
DTYPE_NAMES = {dtype: name for name, dtype in TORCH_DTYPES.items()}

#: Where a call's arguments hold a value: a position, or a keyword.
Pick = int | str


@dataclass(frozen=True)
class BoundCall:
    """A call by the operator's own names, before its definition is known.

    ``picks`` tells where a like call has each value; what the call leaves to a default has none. ``written`` are the
    parameters the original's schema says it changes.
    """

    values: Mapping[str, Described]
    picks: Mapping[str, Pick]
    written: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fresh:
    """The output is a new tensor."""


@dataclass(frozen=True)
class Given:
    """The output goes into a tensor of the caller's; ``copied``: by way of a new one, since that is an input, too."""

    pick: Pick
    copied: bool = False


@dataclass(frozen=True)
class Shared:
    """The kernel changes input number ``position`` in place; ``listed``: by a parameter of the output's own, too."""

    position: int
    listed: bool


Destination = Fresh | Given | Shared


@dataclass(frozen=True)
class CallPlan:
    """How a kernel serves calls like one. ``case`` has no outputs.

    ``returned``: what the call returns, in order: an output's number, or (as a 1-tuple) where an argument is.
    """

    case: Case
    inputs: tuple[Pick | None, ...]
    outputs: tuple[Destination, ...]
    returned: tuple[int | tuple[Pick], ...]

    @property
    def changed(self) -> tuple[Pick, ...]:
        """Arguments the call changes."""
        shared = [self.inputs[d.position] for d in self.outputs if isinstance(d, Shared)]
        return tuple(p for p in [*shared, *(d.pick for d in self.outputs if isinstance(d, Given))] if p is not None)


def schema_of(function: Callable[..., Any]) -> Any:
    """torch's schema of an operator; None for a plain function."""
    overload = getattr(function, "_opoverload", function)
    return getattr(getattr(overload, "default", overload), "_schema", None)


def parameters_of(function: Callable[..., Any]) -> inspect.Signature:
    """The Python signature of a function, a ``torch.library.custom_op``, or an operator of ``torch.ops``."""
    schema = schema_of(function)
    return inspect.signature(function) if schema is None else parameters_of_schema(schema)


def parameters_of_schema(schema: Any) -> inspect.Signature:
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


def bind(
    parameters: inspect.Signature,
    schema: Any,
    names: Mapping[str, str],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> BoundCall:
    """The call by the operator's names.

    Args:
        names: the operator's name of a Python parameter that is called otherwise.

    Raises:
        CaseError: a parameter that takes any number of arguments, or a value no operator can take.
    """
    call = parameters.bind(*args, **kwargs)
    given = set(call.arguments)
    call.apply_defaults()
    positions = {name: i for i, name in enumerate(parameters.parameters)}
    values: dict[str, Described] = {}
    picks: dict[str, Pick] = {}
    for name, value in call.arguments.items():
        if parameters.parameters[name].kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise CaseError(f"parameter {name!r} takes any number of arguments.", "Name every parameter.")
        own = names.get(name, name)
        values[own] = described(value)
        if name in given:
            picks[own] = name if name in kwargs else positions[name]
    written = [a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write] if schema else []
    return BoundCall(values, picks, tuple(names.get(n, n) for n in written if n in given))


def described(value: Any) -> Described:
    """A Python value as data. Raises CaseError for a kind of value that operators don't have."""
    if isinstance(value, torch.Tensor):
        return spec_of(value)
    if isinstance(value, (list, tuple)):
        return tuple(described(v) for v in value)  # type: ignore[return-value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise CaseError(f"an argument is a {type(value).__name__}.")


def spec_of(tensor: torch.Tensor) -> TensorSpec:
    """Raises CaseError for a dtype that operators don't have."""
    return TensorSpec(DTYPE_NAMES.get(tensor.dtype, str(tensor.dtype)), tuple(tensor.shape))


def specs_of(result: Any) -> tuple[Argument, ...] | None:
    """What the original returned, flat; None if it isn't tensors."""
    values = list(result) if isinstance(result, (tuple, list)) else [result]
    if not all(isinstance(v, torch.Tensor) for v in values):
        return None
    return tuple(spec_of(v) for v in values)


def plan(
    signature: Signature,
    call: BoundCall,
    schema: Any,
    *,
    in_place: Sequence[str] = (),
    returns: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
) -> CallPlan:
    """How a kernel of ``signature`` serves calls like this one.

    Args:
        in_place: inputs the kernel changes without the definition having an output for them.
        returns: names of the outputs the original returns, where it doesn't return all.

    Raises:
        CaseError: the call doesn't fit the operator, or the original and the operator don't change the same arguments.
    """
    inputs = [p.name for p in signature.inputs]
    outputs = [*(p.name for p in signature.outputs), *in_place]
    buffers = [name for name in call.written if name not in inputs]
    case = case_of(signature, {k: v for k, v in call.values.items() if k not in buffers})
    places: list[Destination] = [
        Shared(inputs.index(name), i < len(signature.outputs)) if name in inputs else Fresh()
        for i, name in enumerate(outputs)
    ]
    for name in outputs:
        if name in inputs and name not in call.written:
            raise CaseError(f"{signature.op_type} changes {name} in place; the original doesn't say that it does.")
    loose = []
    for name in call.written:
        if name not in outputs:
            loose.append(name)
        elif name not in inputs:
            places[outputs.index(name)] = Given(call.picks[name])
    free = [i for i, place in enumerate(places) if isinstance(place, Fresh)]
    if len(loose) > len(free):
        raise CaseError(f"the original changes {loose[len(free)]}, and {signature.op_type} has no output for that.")
    for i, name in zip(free, loose, strict=False):
        places[i] = Given(call.picks[name], copied=name in inputs)
    return CallPlan(
        case,
        tuple(call.picks.get(name) if call.values.get(name) is not None else None for name in inputs),
        tuple(places),
        _returned(signature, call, schema, outputs, places, returns, names or {}),
    )


def _returned(
    signature: Signature,
    call: BoundCall,
    schema: Any,
    outputs: Sequence[str],
    places: Sequence[Destination],
    returns: Sequence[str],
    names: Mapping[str, str],
) -> tuple[int | tuple[Pick], ...]:
    for name in returns:
        if name not in outputs:
            raise CaseError(f"returns: {signature.op_type} has no output {name!r}.", f"It has {', '.join(outputs)}.")
    fresh = [outputs.index(n) for n in returns] or [i for i, place in enumerate(places) if isinstance(place, Fresh)]
    if schema is None or not schema.is_mutable:
        return tuple(fresh)
    out: list[int | tuple[Pick]] = []
    for value in schema.returns:
        if value.alias_info is None:
            if not fresh:
                raise CaseError(f"the original returns more tensors than {signature.op_type} has outputs.")
            out.append(fresh.pop(0))
            continue
        same = [
            a.name for a in schema.arguments if a.alias_info and a.alias_info.before_set == value.alias_info.before_set
        ]
        own = names.get(same[0], same[0]) if same else ""
        if own not in call.picks:
            raise CaseError("the original returns an alias of an argument that the call doesn't give.")
        out.append((call.picks[own],))
    return tuple(out)
