"""The dispatch table's key of a call: equal for calls that the same launcher may serve. A microsecond, so code is made.

A key holds, of each tensor, shape, dtype, device, whether it is contiguous, and whether a gradient is wanted where that
matters; of anything else type and value, of a 0 its sign. The key is one expression, made for each number of arguments
of an operator of torch, whose schema says what they are, and for each combination of types that a plain function is
called with. What torch's dispatcher takes away from an operator's kernel a plain function meets: tensors that are
negated or conjugated lazily, and autocast, under which it may return something else.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
import torch

from ...errors import CaseError
from .resolve import private_formats

KeyFunction = Callable[[tuple[Any, ...], Mapping[str, Any]], Hashable]

#: By type, the schema's word for it: what is compared by value, once the type is known.
_KINDS: Mapping[type, str] = {
    torch.Tensor: "Tensor",
    torch.nn.Parameter: "Tensor",
    **dict.fromkeys((int, bool, str), "int"),
    float: "float",
}
_MAX_FORMS = 1000
#: What to do where a method was decorated.
SELF = " Decorate a function that the method calls, not the method: operators have no self."
_functions: dict[Hashable, KeyFunction] = {}
_SCALARS = frozenset({int, float, bool, str, type(None)})


def of_function(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Hashable:
    """For any function. Raises CaseError for an argument of a kind that operators don't have."""
    types = tuple(map(type, args))
    form = (types, *[(name, type(value)) for name, value in kwargs.items()]) if kwargs else types
    function = _functions.get(form)
    if function is None:
        values = [(f"a{i}", _KINDS.get(kind, "")) for i, kind in enumerate(types)]
        values += [(f"k[{name!r}]", _KINDS.get(type(value), "")) for name, value in kwargs.items()]
        function = _compiled(len(args), values, True, form)
        if len(_functions) < _MAX_FORMS:
            _functions[form] = function
    return function(args, kwargs)


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
            values = [(f"a{i}", kinds[i]) for i in range(len(args))]
            values += [(f"k[{name!r}]", by_name[name]) for name in kwargs]
            function = made[form] = _compiled(len(args), values, grad)
        return function(args, kwargs)

    return key, made


def _compiled(positional: int, values: list[tuple[str, str]], grad: bool, form: Hashable = None) -> KeyFunction:
    """``form``: types of a plain function's arguments, which are part of the key; tensors may be conjugated lazily."""
    parts, tensors = ["form"] if form is not None else [], []
    for text, kind in values:
        if kind == "Tensor":
            parts += [f"{text}.shape", f"{text}.dtype", f"{text}.get_device()", f"{text}.is_contiguous()"]
            if form is not None:
                parts += [f"{text}.is_neg()", f"{text}.dtype.is_complex and {text}.is_conj()"]
            tensors.append(text)
        elif kind in ("int", "bool", "str", "SymInt"):
            parts.append(text)
        elif kind == "float" and form is not None:
            parts.append(f"({text} if {text} and {text} == {text} else repr({text}))")
        else:
            parts.append(f"part({text}, grad())")
    if grad and tensors:
        parts.append(f"grad() and ({' or '.join(f'{text}.requires_grad' for text in tensors)})")
    if form is not None:
        parts.append("any_autocast() and (autocast('npu'), autocast_dtype('npu'))")
    import torch_npu

    # Where torch_npu allows private formats, in which elements lie in another order, they are part of the key.
    formats = "".join(f"{text}.device.type == 'npu' and format({text}), " for text in tensors)
    parts.append(f"None if option('ALLOW_INTERNAL_FORMAT') == b'disable' else ({formats})")
    names: dict[str, Any] = {
        "form": form,
        "part": _part,
        "any_autocast": torch._C._is_any_autocast_enabled,
        "autocast": torch.is_autocast_enabled,
        "autocast_dtype": torch.get_autocast_dtype,
        "grad": torch.is_grad_enabled,
        "option": torch_npu._C._npu_getOption,
        "format": _format,
    }
    unpack = "".join(f"a{i}, " for i in range(positional)) + "= a" if positional else "pass"
    exec(f"def key(a, k):\n    {unpack}\n    return ({', '.join(parts)},)", names)
    function: KeyFunction = names["key"]
    return function


def _format(tensor: torch.Tensor) -> int:
    import torch_npu

    return int(torch_npu.get_npu_format(tensor))


def _part(value: Any, grad: bool) -> Hashable:
    kind = type(value)
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        form = value.shape, value.dtype, value.get_device(), value.is_contiguous(), grad and value.requires_grad
        if value.dtype.is_complex or value.is_neg():
            return *form, value.is_conj(), value.is_neg()
        return (*form, _format(value)) if value.device.type == "npu" and private_formats() else form
    if kind is float and not (value and value == value):
        return kind, repr(value)  # 0 and -0 are equal, NaN isn't
    if kind in _SCALARS:
        return kind, value  # the type too: 1, 1.0 and True are equal
    if kind is list or kind is tuple or kind is torch.Size:
        return tuple([_part(item, grad) for item in value])
    if issubclass(kind, np.generic) and type(value.item()) in _SCALARS:
        return _part(value.item(), grad)  # numbers of configurations often come out of numpy
    raise CaseError(f"an argument is a {kind.__name__}.{SELF if issubclass(kind, torch.nn.Module) else ''}")
