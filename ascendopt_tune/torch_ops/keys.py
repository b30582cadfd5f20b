"""The dispatch table's key of a call: equal for calls that the same launcher may serve. A microsecond, so code is made.

A key holds, of each tensor, shape, dtype, device, whether it is contiguous, and whether a gradient is wanted where that
matters; of anything else type and value. What operators of torch take is known from their schema, so their key is one
expression for each number of arguments; a plain function's arguments are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import torch

from ..errors import CaseError
from .resolve import private_formats

KeyFunction = Callable[[tuple[Any, ...], Mapping[str, Any]], Hashable]

_SCALARS = frozenset({int, float, bool, str, type(None)})


def of_function(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Hashable:
    """For any function. Raises CaseError for an argument of a kind that operators don't have."""
    grad = torch.is_grad_enabled()
    key = tuple([_part(value, grad) for value in args])
    return (key, tuple([(name, _part(value, grad)) for name, value in kwargs.items()])) if kwargs else key


def of_operator(schema: Any, grad: bool) -> tuple[KeyFunction, Mapping[Hashable, KeyFunction]]:
    """For an operator with this schema: the key of any call, and, by the number of arguments, what makes it for calls
    without keywords, as far as such were met. ``grad``: the key tells calls apart in which a gradient is wanted."""
    kinds = [str(argument.type) for argument in schema.arguments]
    by_name = {argument.name: str(argument.type) for argument in schema.arguments}
    made: dict[Hashable, KeyFunction] = {}

    def key(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Hashable:
        form = (len(args), *kwargs) if kwargs else len(args)
        function = made.get(form)
        if function is None:
            values = [(f"a[{i}]", kinds[i]) for i in range(len(args))]
            values += [(f"k[{name!r}]", by_name[name]) for name in kwargs]
            function = made[form] = _compiled(values, grad)
        return function(args, kwargs)

    return key, made


def _compiled(values: list[tuple[str, str]], grad: bool) -> KeyFunction:
    parts, tensors = [], []
    for text, kind in values:
        if kind == "Tensor":
            parts += [f"{text}.shape", f"{text}.dtype", f"{text}.get_device()", f"{text}.is_contiguous()"]
            parts += [f"grad() and {text}.requires_grad"] if grad else []
            tensors.append(text)
        elif kind in ("int", "bool", "str", "SymInt"):
            parts.append(text)
        else:
            parts.append(f"part({text}, grad())")
    import torch_npu

    # Where torch_npu allows private formats, in which elements lie in another order, they are part of the key.
    formats = "".join(f"{text}.device.type == 'npu' and format({text}), " for text in tensors)
    parts.append(f"None if option('ALLOW_INTERNAL_FORMAT') == b'disable' else ({formats})")
    names = {
        "part": _part,
        "grad": torch.is_grad_enabled,
        "option": torch_npu._C._npu_getOption,
        "format": _format,
    }
    function: KeyFunction = eval(f"lambda a, k: ({', '.join(parts)},)", names)
    return function


def _format(tensor: torch.Tensor) -> int:
    import torch_npu

    return int(torch_npu.get_npu_format(tensor))


def _part(value: Any, grad: bool) -> Hashable:
    kind = type(value)
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        form = value.shape, value.dtype, value.get_device(), value.is_contiguous(), grad and value.requires_grad
        if value.dtype.is_complex:
            return *form, value.is_conj(), value.is_neg()
        return (*form, _format(value)) if value.device.type == "npu" and private_formats() else form
    if kind in _SCALARS:
        return kind, value  # the type too: 1, 1.0 and True are equal
    if kind is list or kind is tuple or kind is torch.Size:
        return tuple([_part(item, grad) for item in value])
    raise CaseError(f"an argument is a {kind.__name__}.")
