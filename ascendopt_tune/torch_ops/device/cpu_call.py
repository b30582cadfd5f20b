"""One ATen operator on npu tensors of the virtual NPU, run by torch's CPU kernel over the same bytes.

Device memory is host memory, so an npu tensor and its CPU alias share storage, and nothing is copied in. What a kernel
does to its arguments' shapes, and which results are arguments or views of them, is carried back to the npu tensors.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from . import faults
from .devices import Hosts, same_device

Kernel = Callable[..., Any]

#: Calls so far by operator: work that took place on the CPU, and that no modelled time stands for.
calls: Counter[str] = Counter()

#: Told of each call's operator and the bytes of its tensors, while somebody listens (recording.py).
listener: Callable[[str, int], None] | None = None

_CPU = torch.device("cpu")
_default_generator_lock = threading.RLock()


def alias(tensor: torch.Tensor) -> torch.Tensor:
    """A CPU tensor over the bytes of an npu tensor: same dtype, size, strides, offset. Valid while its storage is.

    Raises:
        NotImplementedError: the tensor has no storage of its own kind (sparse layouts).
    """
    if tensor.layout != torch.strided:
        raise NotImplementedError(
            f"{tensor.layout} tensors can't be computed on the virtual NPU; move them to the CPU."
        )
    storage = tensor.untyped_storage()
    if storage.nbytes() == 0:
        return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=_CPU)
    view = torch._C._construct_storage_from_data_pointer(storage.data_ptr(), _CPU, storage.nbytes())
    result = torch.empty(0, dtype=tensor.dtype, device=_CPU)
    result.set_(view, tensor.storage_offset(), tensor.size(), tensor.stride())
    if tensor.is_conj():
        result = torch.conj(result)
    if tensor.is_neg():
        result = torch._neg_view(result)
    return result


def run_on_cpu(op: Any) -> Kernel:
    """The kernel for npu tensors that runs ``op``, an overload of ``torch.ops.aten``, over aliases."""
    schema = op._schema
    name = schema.name.removeprefix("aten::") + (f".{schema.overload_name}" if schema.overload_name else "")
    parameters = [(argument.name, str(argument.type)) for argument in schema.arguments]
    names_device = any(parameter == "device" for parameter, _ in parameters)
    takes_generator = any(parameter == "generator" for parameter, _ in parameters)
    random = takes_generator or torch.Tag.nondeterministic_seeded in op.tags
    tensors = {i for i, (_, kind) in enumerate(parameters) if kind == "Tensor"}
    hosts = Hosts.of(schema)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        same_device(schema.name, args, kwargs, hosts)
        faults.look()
        calls[name] += 1
        call = _Call()
        device = kwargs.get("device")
        stays = device is not None and torch.device(device).type != "npu"  # _to_copy to the CPU, empty_like on it
        inputs = [call.enter(argument) for argument in args]
        named = {name: call.enter(argument) for name, argument in kwargs.items()}
        if names_device:
            if stays:
                named["device"] = device
            elif device is not None or not call.has_npu_tensors():
                named["device"] = _CPU
            if named.get("pin_memory"):
                named["pin_memory"] = False
        # A number of Python's comes where the schema has a tensor; most overloads take it back, some don't (copysign).
        target = (
            op if all(isinstance(inputs[i], torch.Tensor) for i in tensors if i < len(inputs)) else op.overloadpacket
        )
        if not random:
            result = target(*inputs, **named)
        elif takes_generator:
            result = target(*inputs, **{**named, "generator": _cpu_generator(kwargs.get("generator"))})
        else:
            with _seeded(_cpu_generator(None)):
                result = target(*inputs, **named)
        if not stays:
            result = call.leave(result)
        call.settle()
        if listener is not None:
            listener(name, call.nbytes(result))
        return result

    return kernel


class _Call:
    """One operator call: npu tensors become aliases on the way in, results find their way back."""

    def __init__(self) -> None:
        self._aliases: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # id(alias) -> alias, npu tensor

    def has_npu_tensors(self) -> bool:
        return bool(self._aliases)

    def nbytes(self, result: Any) -> int:
        """Of the npu tensors that went in and of the new ones that came out."""
        inside = {id(outside): outside.nbytes for _, outside in self._aliases.values()}
        made = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor) and id(t) not in inside]
        return sum(inside.values()) + sum(t.nbytes for t in made)

    def enter(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if value.device.type != "npu":
                return value
            if faults.lost:
                faults.refuse(value)
            inside = alias(value)
            self._aliases[id(inside)] = (inside, value)
            return inside
        if isinstance(value, (list, tuple)):
            return [self.enter(item) for item in value]
        return value

    def leave(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            items = [self.leave(item) for item in value]
            return items if isinstance(value, list) else tuple(items)
        if not isinstance(value, torch.Tensor) or value.device.type != "cpu":
            return value
        if id(value) in self._aliases:  # in-place and out= variants
            return self._aliases[id(value)][1]
        if value.layout != torch.strided:
            raise NotImplementedError(f"{value.layout} results can't be had on the virtual NPU; compute on the CPU.")
        pointer = value.untyped_storage().data_ptr()
        for inside, outside in self._aliases.values():  # views
            if pointer and inside.untyped_storage().data_ptr() == pointer:
                return _over(outside.untyped_storage(), value)
        result = torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device="npu")
        if value.is_conj():
            result = torch.conj(result)
        if value.is_neg():
            result = torch._neg_view(result)
        if value.numel():
            alias(result).copy_(value)
        return result

    def settle(self) -> None:
        """Carries over what an operator did to its arguments' shapes: transpose_, squeeze_, a resized out=."""
        for inside, outside in self._aliases.values():
            theirs, ours = inside.untyped_storage(), outside.untyped_storage()
            moved = (theirs.data_ptr(), theirs.nbytes()) != (ours.data_ptr(), ours.nbytes())
            shape = (inside.size(), inside.stride(), inside.storage_offset())
            if not moved and shape == (outside.size(), outside.stride(), outside.storage_offset()):
                continue
            if moved and theirs.nbytes() != ours.nbytes():
                ours.resize_(theirs.nbytes())
            outside.set_(ours, inside.storage_offset(), inside.size(), inside.stride())
            if moved and inside.numel():
                alias(outside).copy_(inside)


def _over(storage: Any, like: torch.Tensor) -> torch.Tensor:
    """An npu tensor over ``storage`` with the form of a CPU tensor over the same bytes."""
    result = torch.empty(0, dtype=like.dtype, device="npu")
    result.set_(storage, like.storage_offset(), like.size(), like.stride())
    if like.is_conj():
        result = torch.conj(result)
    if like.is_neg():
        result = torch._neg_view(result)
    return result


# -- random numbers ---------------------------------------------------------------------------------------------------


def _cpu_generator(generator: torch.Generator | None) -> torch.Generator:
    """The generator of one call: a function of the npu generator's seed and offset, which goes on by a step.

    So seeds, saved states and offsets of npu generators mean what they do on hardware, though the numbers are others.
    The first call after a seed draws what the CPU draws after it.
    """
    if generator is not None and generator.device.type == "cpu":
        return generator
    if generator is None:
        generator = torch.npu.default_generators[torch.npu.current_device()]  # type: ignore[attr-defined]
    seed, offset = generator.initial_seed(), generator.get_offset()
    generator.set_offset(offset + 4)  # the unit of a counter-based generator's offset
    # The CPU's generator is seeded by the low 32 bits: an odd factor keeps all offsets apart there.
    return torch.Generator(device=_CPU).manual_seed((seed ^ offset * 0x9E3779B1) & 0x7FFFFFFFFFFFFFFF)


@contextlib.contextmanager
def _seeded(generator: torch.Generator) -> Iterator[None]:
    """The CPU's default generator draws from ``generator``, for operators that can't be told of one."""
    with _default_generator_lock:
        before = torch.default_generator.get_state()
        torch.default_generator.set_state(generator.get_state())
        try:
            yield
        finally:
            torch.default_generator.set_state(before)


def _forked() -> None:
    """A fork has none of its parent's threads: a CPU kernel that waits for them would wait for ever, so kernels get
    along with one, as in a data loader's workers. Of a process that ran no operator here nothing is changed."""
    global _default_generator_lock
    _default_generator_lock = threading.RLock()
    if calls:
        torch.set_num_threads(1)


os.register_at_fork(after_in_child=_forked)
