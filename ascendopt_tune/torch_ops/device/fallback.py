"""ATen operators on npu tensors of the virtual NPU: the CPU's results, for what has no kernel there.

No operator library ships with the virtual NPU, so torch_npu alone moves tensors and launches kernels but can't add.
Here the kernels registered for the ``PrivateUse1`` key are overridden by ones that run the CPU's over the same bytes
(``cpu_call.py``). Results are the CPU's, and take no modelled time (``ascendopt_tune.not_modelled()``). Operators of
torch_npu's own (``npu_*``), which torch has no kernel for, raise an error that names them. Never install this beside a
real CANN.

The rules below were each needed to make a class of operators right; the comment beside a rule names its class.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import torch

from ...errors import DeviceError
from . import faults
from .cpu_call import Kernel, run_on_cpu
from .runtime import is_virtual, loaded_runtime

# Structure, not arithmetic: torch_npu's own kernels work, and the ones here are built from them.
_KEEP = frozenset({
    "_efficientzerotensor", "_lazy_clone", "_pin_memory", "_reshape_alias", "as_strided", "detach",
    "empty.memory_format", "empty_strided", "is_pinned", "is_set_to", "lift", "lift_fresh", "npu_format_cast",
    "record_stream", "resize_", "set_", "set_.source_Storage", "set_.source_Storage_storage_offset",
    "set_.source_Tensor", "unfold", "view", "view_as_complex", "view_as_real",
})  # fmt: skip


def _decomposed(op: Any, key: str = "CompositeImplicitAutograd") -> Kernel:
    """The kernel that runs a composite operator's own decomposition, instead of torch_npu's fused form."""
    composite = getattr(torch._C.DispatchKey, key)
    return lambda *args, **kwargs: op._op_dk(composite, *args, **kwargs)


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


def _fused_lstm_cell(
    input_gates: torch.Tensor,
    hidden_gates: torch.Tensor,
    cell: torch.Tensor,
    input_bias: torch.Tensor | None = None,
    hidden_bias: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """aten::_thnn_fused_lstm_cell, which torch has for accelerators alone: hidden state, cell state, workspace."""
    gates = input_gates + hidden_gates
    for bias in (input_bias, hidden_bias):
        gates = gates if bias is None else gates + bias
    enter, forget, candidate, leave = gates.chunk(4, 1)
    cell = forget.sigmoid() * cell + enter.sigmoid() * candidate.tanh()
    return leave.sigmoid() * cell.tanh(), cell, gates


# Operators without a CPU kernel that torch's own composites call for tensors that are not the CPU's.
_COMPOSED: dict[str, Kernel] = {"aten::_thnn_fused_lstm_cell": _fused_lstm_cell}

# Composites that put some of their results on the CPU, whatever the device: the batch sizes of a packed sequence.
_GENERIC = frozenset({"aten::_pack_padded_sequence"})


def _has(name: str, *keys: str) -> bool:
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in keys)


def _writes(op: Any) -> bool:
    return bool(op._schema.is_mutable) and torch.Tag.inplace_view not in op.tags


def _kernels() -> Iterator[tuple[str, str, Kernel, dict[str, bool]]]:
    """What is overridden: operator, dispatch key, kernel, options of ``Library.impl``."""
    npu, autograd, explicit = (
        _registered(k) for k in ("PrivateUse1", "AutogradPrivateUse1", "CompositeExplicitAutograd")
    )
    for name in sorted(npu | _registered("CPU") | autograd | explicit):
        op = _operator(name)
        if op is None:
            continue
        cpu = _has(name, "CPU")
        if name in _COMPOSED:
            yield name, "PrivateUse1", _COMPOSED[name], {}
            yield name, "AutogradPrivateUse1", _COMPOSED[name], {}
        elif _has(name, "CompositeImplicitAutograd") and not (cpu and _has(name, "Autograd")):
            # Only where torch_npu replaced it. A composite that merely has a CPU kernel (true_divide) must stay
            # composite, or it loses its gradient.
            for key, registered in (("PrivateUse1", npu), ("AutogradPrivateUse1", npu | autograd)):
                if name in registered:
                    yield name, key, _decomposed(op), {}
        elif cpu or _has(name, "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional"):
            # Composites that work for every device need no kernel, but some that write ask for the CPU (mode's out=
            # form, conj_physical_).
            if name in _GENERIC:
                yield name, "PrivateUse1", _decomposed(op, "CompositeExplicitAutograd"), {}
            elif cpu or name in npu or _writes(op):
                yield name, "PrivateUse1", run_on_cpu(op), {}
            if name in autograd and _has(name, "CPU", "CompositeExplicitAutograd"):
                yield name, "AutogradPrivateUse1", _core_autograd(name), {"with_keyset": True}


class Fallback:
    """The overrides. They take over once per process; removing them brings torch_npu's own kernels back."""

    def __init__(self) -> None:
        self._library: Any = None  # a torch.library.Library

    def take_over(self) -> int:
        """Overrides the ATen kernels of npu tensors; returns how many. Harmless when repeated (returns 0).

        Raises:
            DeviceError: the runtime of this process is not the virtual NPU.
        """
        if not is_virtual():
            raise DeviceError("The CPU fallback is for the virtual NPU only; this process runs on something else.")
        if self._library is not None:
            return 0
        faults.watch(loaded_runtime())
        make_library: Any = torch.library.Library
        self._library = make_library("aten", "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns about every override
            kernels = list(_kernels())
            for name, key, kernel, options in kernels:
                self._library.impl(name.partition("::")[2], kernel, key, allow_override=True, **options)
        return len(kernels)

    def remove(self) -> None:
        """Takes the overrides back. Harmless when there are none."""
        if self._library is not None:
            self._library._destroy()
            self._library = None


_fallback = Fallback()
take_over = _fallback.take_over
remove = _fallback.remove
