"""ATen operators on npu tensors of the virtual NPU, computed by torch's own CPU kernels.

No operator library ships with the virtual NPU, so torch_npu alone moves tensors and launches kernels but can't add.
Here the kernels registered for the ``PrivateUse1`` key are overridden by ones that run the CPU's over the same bytes:
device memory is host memory, so an npu tensor and its CPU alias share storage and nothing is copied in. Results are the
CPU's, and take no modelled time. Never install this beside a real CANN.

The rules below were each needed to make a class of operators right; the comment beside a rule names its class.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

from ..errors import DeviceError
from .activate import is_virtual

# Structure, not arithmetic: torch_npu's own kernels work, and the ones below are built from them.
_KEEP = frozenset({
    "_lazy_clone", "_pin_memory", "_reshape_alias", "as_strided", "detach", "empty.memory_format", "empty_strided",
    "is_pinned", "is_set_to", "lift", "lift_fresh", "npu_format_cast", "record_stream", "resize_", "set_",
    "set_.source_Storage", "set_.source_Storage_storage_offset", "set_.source_Tensor", "unfold", "view",
    "view_as_complex", "view_as_real",
})  # fmt: skip
_CPU = torch.device("cpu")

Kernel = Callable[..., Any]


def alias(tensor: torch.Tensor) -> torch.Tensor:
    """A CPU tensor over the bytes of an npu tensor: same dtype, size, strides, offset. Valid while its storage is."""
    storage = tensor.untyped_storage()
    if storage.nbytes() == 0:
        return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)
    view = torch._C._construct_storage_from_data_pointer(storage.data_ptr(), _CPU, storage.nbytes())
    result = torch.empty(0, dtype=tensor.dtype)
    result.set_(view, tensor.storage_offset(), tensor.size(), tensor.stride())
    if tensor.is_conj():
        result = torch.conj(result)
    if tensor.is_neg():
        result = torch._neg_view(result)
    return result


class _Call:
    """One operator call: npu tensors become aliases on the way in, results find their way back."""

    def __init__(self) -> None:
        self._aliases: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # id(alias) -> alias, npu tensor

    def enter(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if value.device.type != "npu":
                return value
            inside = alias(value)
            self._aliases[id(inside)] = (inside, value)
            return inside
        if isinstance(value, (list, tuple)):
            return [self.enter(item) for item in value]
        if isinstance(value, torch.device):
            return _CPU
        if isinstance(value, torch.Generator):
            return value if value.device.type == "cpu" else None
        return value

    def leave(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            items = [self.leave(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if not isinstance(value, torch.Tensor) or value.device.type != "cpu":
            return value
        if id(value) in self._aliases:  # in-place and out= variants
            return self._aliases[id(value)][1]
        pointer = value.untyped_storage().data_ptr()
        for inside, outside in self._aliases.values():  # views
            if pointer and inside.untyped_storage().data_ptr() == pointer and inside.dtype == value.dtype:
                return torch.as_strided(outside, value.size(), value.stride(), value.storage_offset())
        result = torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device="npu")
        if value.numel():
            alias(result).copy_(value)
        return result

    def settle(self) -> None:
        """Carries over what an operator did to its arguments' shapes: transpose_, squeeze_, a resized out=."""
        for inside, outside in self._aliases.values():
            shape = (inside.size(), inside.stride(), inside.storage_offset())
            if shape == (outside.size(), outside.stride(), outside.storage_offset()):
                continue
            theirs, ours = inside.untyped_storage(), outside.untyped_storage()
            if (theirs.data_ptr(), theirs.nbytes()) == (ours.data_ptr(), ours.nbytes()):
                outside.set_(ours, inside.storage_offset(), inside.size(), inside.stride())
            else:
                outside.resize_(inside.size())
                alias(outside).copy_(inside)


def _on_cpu(op: Any) -> Kernel:
    """The kernel that runs ``op`` over aliases."""
    names_device = any(argument.name == "device" for argument in op._schema.arguments)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        call = _Call()
        device = kwargs.get("device")
        stays = device is not None and torch.device(device).type != "npu"  # _to_copy to the CPU, empty_like on it
        inputs = [call.enter(argument) for argument in args]
        named = {name: call.enter(argument) for name, argument in kwargs.items()}
        if names_device:
            if not call._aliases or device is not None:
                named["device"] = _CPU
            if named.get("pin_memory"):
                named["pin_memory"] = False
        result = op(*inputs, **named)
        if not stays:
            result = call.leave(result)
        call.settle()
        return result

    return kernel


def _decomposed(op: Any) -> Kernel:
    """The kernel that runs a composite operator's own decomposition, instead of torch_npu's fused form."""
    return lambda *args, **kwargs: op._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)


def _core_autograd(name: str) -> Kernel:
    """The kernel with torch's own derivative of an operator, where torch_npu has one for its own kernels."""
    core = torch.library.get_kernel(name, "AutogradCPU")
    return lambda keys, *args, **kwargs: core.call_boxed(keys, *args, **kwargs)


def _operator(name: str) -> Any | None:
    """``torch.ops`` entry of ``aten::name.overload``, or None when Python has none."""
    base, _, overload = name.partition("::")[2].partition(".")
    return getattr(getattr(torch.ops.aten, base, None), overload or "default", None)


def _registered(key: str) -> set[str]:
    names = torch._C._dispatch_get_registrations_for_dispatch_key(key)
    return {name for name in names if name.startswith("aten::") and name.partition("::")[2] not in _KEEP}


class Fallback:
    """The overrides. Install once per process; removing them brings torch_npu's own kernels back."""

    def __init__(self) -> None:
        self._library: Any = None  # a torch.library.Library

    def install(self) -> int:
        """Overrides the ATen kernels of npu tensors; returns how many. Harmless when repeated (returns 0).

        Raises:
            DeviceError: the runtime of this process is not the virtual NPU.
        """
        if not is_virtual():
            raise DeviceError("The CPU fallback is for the virtual NPU only; this process runs on something else.")
        if self._library is not None:
            return 0
        make_library: Any = torch.library.Library
        self._library = library = make_library("aten", "IMPL")
        count = 0

        def override(name: str, kernel: Kernel, key: str, **options: Any) -> None:
            nonlocal count
            library.impl(name.partition("::")[2], kernel, key, allow_override=True, **options)
            count += 1

        def has(name: str, *keys: str) -> bool:
            return any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in keys)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns about every override
            npu, autograd = _registered("PrivateUse1"), _registered("AutogradPrivateUse1")
            for name in sorted(npu | _registered("CPU") | autograd):
                op = _operator(name)
                if op is None:
                    continue
                if has(name, "CompositeImplicitAutograd"):
                    # Only where torch_npu replaced it. A composite that merely has a CPU kernel (true_divide) must
                    # stay composite, or it loses its gradient.
                    for key, registered in (("PrivateUse1", npu), ("AutogradPrivateUse1", npu | autograd)):
                        if name in registered:
                            override(name, _decomposed(op), key)
                    continue
                if not has(name, "CPU", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional"):
                    continue
                if name in npu or has(name, "CPU"):
                    override(name, _on_cpu(op), "PrivateUse1")
                if name in autograd and has(name, "CPU", "CompositeExplicitAutograd"):
                    override(name, _core_autograd(name), "AutogradPrivateUse1", with_keyset=True)
        return count

    def remove(self) -> None:
        """Takes the overrides back. Harmless when nothing is installed."""
        if self._library is not None:
            self._library._destroy()
            self._library = None


_fallback = Fallback()
install = _fallback.install
remove = _fallback.remove
