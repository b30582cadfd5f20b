"""What C++ knows a call by: the fast path's key of its arguments."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from .binding import Pick

_PLAIN_FORMATS = (0, 2, 30)  # NCHW, ND, NCDHW: elements lie in the order of their indices (acl_base.h)


@dataclass(frozen=True)
class CallForm:
    """What C++ knows a call's case by.

    ``key``: of each argument, its value, or shape and dtype of a tensor; ``places``: where in it an argument is that
    the Python call has at a position or by a keyword.
    """

    key: tuple[Hashable, ...]
    places: Mapping[Pick, int]

    @classmethod
    def of(cls, schema: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], device: torch.device) -> CallForm | None:
        """Of a call like this one. None if C++ doesn't serve such calls.

        Args:
            schema: of the operator; None for a plain function, whose calls have no keywords.
        """
        values = list(args)
        places: dict[Pick, int] = {i: i for i in range(len(args))}
        if isinstance(schema, torch._C.FunctionSchema):
            values = [a.default_value if a.has_default_value() else None for a in schema.arguments]
            values[: len(args)] = args
            numbers = {argument.name: i for i, argument in enumerate(schema.arguments)}
            for name, value in kwargs.items():
                values[numbers[name]] = value
            places |= {name: numbers[name] for name in kwargs}
            if any(str(value.type) != "Tensor" for value in schema.returns):
                return None
        elif kwargs:
            return None
        key = [_part(value, device) for value in values]
        return None if _OTHER in key else cls(tuple(key), places)


_OTHER = object()


def _part(value: Any, device: torch.device) -> Any:
    import torch_npu

    if isinstance(value, torch.Tensor):
        plain = value.device == device and torch_npu.get_npu_format(value) in _PLAIN_FORMATS
        if not plain or not value.is_contiguous() or value.dtype.is_complex:
            return _OTHER
        return tuple(value.shape), value.dtype
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        kinds = {type(item) for item in value}
        return list(value) if kinds in ({int}, {float}) else _OTHER
    return _OTHER
