"""Values that the two readers (of the module and of its C++ binding) pass along, and what tensors can do in both.

A ``Tracked`` is a CPU tensor that knows where it came from and which calls lead back there: the operator's input
``mask.to(at::kFloat)`` is told as "input mask, ``.to(torch.bool)`` back". So the task's module can be asked what is
right for any values of the operator's inputs, not for the module's own only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

#: Rounds of a loop and elements of a list that are followed: those of a shape are eight at most.
LIMIT = 10_000


class Unknown(Exception):
    """Something the readers don't follow; the text says what, who calls adds where."""


#: What a followed program may raise that is its own fault.
FAULTS = (
    RuntimeError, TypeError, ValueError, IndexError, KeyError, AttributeError, ArithmeticError, MemoryError
)  # fmt: skip


@dataclass(frozen=True)
class Origin:
    """``kind``: ``input`` (of the module's forward, by name), ``parameter`` (of the module: an attribute's path),
    ``constructor`` (a parameter of ``__init__``), ``output`` (of the operator, by name), or ``constant``."""

    kind: str
    name: str = ""


CONSTANT = Origin("constant")


class Whole(int):
    """An int that knows its origin, as long as nothing is computed with it."""

    origin: Origin = CONSTANT


class Real(float):
    """A float that knows its origin, as long as nothing is computed with it."""

    origin: Origin = CONSTANT


def with_origin(value: Any, origin: Origin) -> Any:
    """``value`` with its origin, where it is a number or a tensor; else as it is."""
    if isinstance(value, torch.Tensor):
        return Tracked(value.detach(), origin)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    made = Whole(value) if isinstance(value, int) else Real(value)
    made.origin = origin
    return made


@dataclass(frozen=True, eq=False)
class Tracked:
    """``back``: calls on the tensor that give ``origin``'s again, in the order they are made. ``fill``: what a tensor
    made by the binding holds (None: nothing that counts); ``made`` tells one that was made there."""

    tensor: torch.Tensor
    origin: Origin = CONSTANT
    back: tuple[str, ...] = ()
    fill: float | None = None
    made: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    def step(self, tensor: torch.Tensor, back: str = "") -> Tracked:
        """The value after a call that gave ``tensor``; ``back`` undoes it (empty: nothing to undo)."""
        return replace(self, tensor=tensor, back=((back, *self.back) if back else self.back))

    def told(self, name: str) -> str:
        """Python text of the origin's tensor, from a tensor called ``name``."""
        return name + "".join(self.back)


@dataclass(frozen=True)
class TensorOptions:
    """``at::TensorOptions``: the dtype, which is all that counts here."""

    dtype: torch.dtype


def call_method(value: Any, name: str, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """A method of a tensor, of its options or of a list, as both languages spell it. Raises Unknown."""
    if isinstance(value, Tracked):
        if name in _METHODS:
            return _METHODS[name](value, *args, **keywords)
        raise Unknown(f"the tensor's method {name}")
    if isinstance(value, TensorOptions):
        if name == "dtype":
            return TensorOptions(_dtype(args[0])) if args else value.dtype
        if name in ("device", "layout", "requires_grad"):
            return value
    if isinstance(value, list):
        return _list_method(value, name, args)
    raise Unknown(f"the method {name} of {type(value).__name__} {value!r:.40}")


def _list_method(value: list[Any], name: str, args: Sequence[Any]) -> Any:
    """``std::vector``, ``at::IntArrayRef`` and Python's list."""
    if name in ("push_back", "emplace_back", "append"):
        value.append(args[0])
        return None
    if name in ("vec", "begin", "data", "slice"):
        return list(value) if not args else value[args[0] :]
    if name in ("end", "reserve"):
        return None
    if name == "size":
        return len(value)
    if name in ("back", "front", "pop_back") and value:
        return value.pop() if name == "pop_back" else value[-1 if name == "back" else 0]
    raise Unknown(f"the list's method {name}")


def attribute(value: Any, name: str) -> Any:
    """A property of a tensor in Python. Raises Unknown."""
    if isinstance(value, Tracked):
        if name == "shape":
            return value.shape
        if name == "dtype":
            return value.tensor.dtype
        if name == "ndim":
            return value.tensor.dim()
        if name == "T":
            return _permuted(value, list(range(value.tensor.dim()))[::-1])
        if name in ("data", "device"):
            return value if name == "data" else None
        if name == "is_contiguous":
            return True
    raise Unknown(f"the attribute {name} of {type(value).__name__}")


def make(shape: Sequence[int], dtype: torch.dtype, fill: float | None) -> Tracked:
    """A tensor that the binding allocates: ``at::empty`` (fill None), ``at::zeros``, ``at::full``."""
    shape = [int(n) for n in shape]
    tensor = torch.empty(shape, dtype=dtype) if fill is None else torch.full(shape, fill, dtype=dtype)
    return Tracked(tensor, fill=fill, made=True)


def broadcast(values: Sequence[Tracked]) -> list[Tracked]:
    """``broadcast_tensors``."""
    shape = np.broadcast_shapes(*(v.shape for v in values))
    return [v.step(v.tensor.expand(shape)) for v in values]


# -- methods of tensors ------------------------------------------------------------------------------------------------


def _dtype(value: Any) -> torch.dtype:
    if isinstance(value, torch.dtype):
        return value
    if isinstance(value, (Tracked, TensorOptions)):
        return value.tensor.dtype if isinstance(value, Tracked) else value.dtype
    raise Unknown(f"the dtype {value!r:.40}")


def _to(value: Tracked, *args: Any, **keywords: Any) -> Tracked:
    wanted = [a for a in (*args, keywords.get("dtype")) if isinstance(a, (torch.dtype, Tracked, TensorOptions))]
    return _cast(value, _dtype(wanted[0])) if wanted else value


def _cast(value: Tracked, dtype: torch.dtype) -> Tracked:
    if value.tensor.dtype == dtype:
        return value
    return value.step(value.tensor.to(dtype), f".to({value.tensor.dtype})")


def _expanded(value: Tracked, *sizes: Any) -> Tracked:
    """A module broadcasts as its operands need it, so what was broadcast is handed on as it is."""
    return value.step(value.tensor.expand(_flat(sizes)))


def _reshaped(value: Tracked, *sizes: Any, **keywords: Any) -> Tracked:
    return _shaped(value, value.tensor.reshape(_flat(sizes or tuple(keywords.values()))))


def _shaped(value: Tracked, tensor: torch.Tensor) -> Tracked:
    same = tensor.shape == value.tensor.shape
    return value.step(tensor, "" if same else f".reshape({', '.join(map(str, value.shape)) or '()'})")


def _unsqueezed(value: Tracked, dim: int) -> Tracked:
    return value.step(value.tensor.unsqueeze(dim), f".squeeze({int(dim)})")


def _squeezed(value: Tracked, dim: int | None = None) -> Tracked:
    if dim is None:
        return _shaped(value, value.tensor.squeeze())
    removed = value.tensor.shape[dim] == 1
    return value.step(value.tensor.squeeze(dim), f".unsqueeze({int(dim)})" if removed else "")


def _permuted(value: Tracked, *dims: Any) -> Tracked:
    order = [d % value.tensor.dim() for d in _flat(dims)]
    inverse = [order.index(i) for i in range(len(order))]
    return value.step(value.tensor.permute(order), f".permute({', '.join(map(str, inverse))})")


def _transposed(value: Tracked, one: int = 0, other: int = 1) -> Tracked:
    return value.step(value.tensor.transpose(one, other), f".transpose({int(one)}, {int(other)})")


def _compared(name: str) -> Callable[..., Tracked]:
    """A comparison with a number makes a truth value of a result: back it is 0 or 1."""

    def method(value: Tracked, other: Any) -> Tracked:
        if not isinstance(other, (int, float)):
            raise Unknown(f"the tensor's method {name} with a tensor")
        found = getattr(value.tensor, name)(other)
        return value.step(found, f".to({value.tensor.dtype})")

    return method


def shifted(a: Any, b: Any) -> Any:
    """``a << b`` for numbers of 64 bits."""
    if not 0 <= b < 64:
        raise Unknown(f"a shift by {b}")
    return a << b


def _flat(sizes: Sequence[Any]) -> list[int]:
    """Sizes given one by one or as one list."""
    listed = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)) else sizes
    return [int(n) for n in listed]


def _same(value: Tracked, *_: Any, **__: Any) -> Tracked:
    return value


def _item(value: Tracked) -> Any:
    if value.tensor.numel() != 1:
        raise Unknown("item() of a tensor with several elements")
    return value.tensor.item()


_METHODS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("contiguous", "clone", "detach", "cpu", "npu", "cuda", "requires_grad_"), _same),
    "to": _to,
    "type": _to,
    "toType": _to,
    "float": lambda v: _cast(v, torch.float32),
    "half": lambda v: _cast(v, torch.float16),
    "bfloat16": lambda v: _cast(v, torch.bfloat16),
    "double": lambda v: _cast(v, torch.float64),
    "int": lambda v: _cast(v, torch.int32),
    "long": lambda v: _cast(v, torch.int64),
    "bool": lambda v: _cast(v, torch.bool),
    "expand": _expanded,
    "broadcast_to": _expanded,
    "expand_as": lambda v, other: _expanded(v, list(other.shape)),
    "reshape": _reshaped,
    "view": _reshaped,
    "view_as": lambda v, other: _reshaped(v, list(other.shape)),
    "reshape_as": lambda v, other: _reshaped(v, list(other.shape)),
    "flatten": lambda v, start=0, end=-1: _shaped(v, v.tensor.flatten(start, end)),
    "unsqueeze": _unsqueezed,
    "squeeze": _squeezed,
    "permute": _permuted,
    "transpose": _transposed,
    "t": _transposed,
    **{name: _compared(name) for name in ("ne", "eq", "gt", "ge", "lt", "le")},
    "item": _item,
    "size": lambda v, dim=None: list(v.shape) if dim is None else v.shape[dim],
    "sizes": lambda v: list(v.shape),
    "dim": lambda v: v.tensor.dim(),
    "ndimension": lambda v: v.tensor.dim(),
    "numel": lambda v: v.tensor.numel(),
    "scalar_type": lambda v: v.tensor.dtype,
    "dtype": lambda v: v.tensor.dtype,
    "options": lambda v: TensorOptions(v.tensor.dtype),
    "device": lambda v: None,
    "get_device": lambda v: 0,
    "is_contiguous": lambda v, *_: True,
    "is_floating_point": lambda v: v.tensor.is_floating_point(),
    "defined": lambda v: True,
    "has_value": lambda v: True,
    "value": _same,
}
