"""Tensors of one call are on one device, or the call is refused as torch refuses it.

Device memory of the virtual NPU is host memory, so nothing would keep a kernel from reading a tensor that was left on
the CPU: on a device it reads garbage or faults. What torch takes from the host beside a device's tensors stays allowed:
tensors without axes, which stand for numbers, and the few arguments of :data:`_HOST_ARGUMENTS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

#: Arguments that may be the CPU's where others are the device's, by operator; overloads share a row. Copies are between
#: devices, indices are moved, lengths are read by the host, and of a template only the shape is looked at.
_HOST_ARGUMENTS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("copy", "copy_", "_foreach_copy_", "_copy_from", "_copy_from_and_resize"), frozenset({"*"})),
    **dict.fromkeys(("set_", "set_data", "is_same_size", "_to_copy"), frozenset({"*"})),
    **dict.fromkeys(("index", "_unsafe_index", "index_put", "index_put_"), frozenset({"indices"})),
    **dict.fromkeys(("_index_put_impl", "_index_put_impl_", "_unsafe_index_put"), frozenset({"indices"})),
    **dict.fromkeys(("_pack_padded_sequence", "_pad_packed_sequence"), frozenset({"lengths", "batch_sizes"})),
    **dict.fromkeys(("_ctc_loss", "_ctc_loss_backward"), frozenset({"targets", "input_lengths", "target_lengths"})),
    "_pack_padded_sequence_backward": frozenset({"batch_sizes"}),
    "resize_as_": frozenset({"the_template"}),
}


@dataclass(frozen=True)
class Hosts:
    """Which arguments of an operator may be on the host: their positions and names."""

    places: frozenset[int] = frozenset()
    names: frozenset[str] = frozenset()

    @classmethod
    def of(cls, schema: Any) -> Hosts:
        allowed = _HOST_ARGUMENTS.get(schema.name.partition("::")[2])
        if allowed is None:
            return cls()
        named = [argument.name for argument in schema.arguments]
        fit = [i for i, name in enumerate(named) if "*" in allowed or name in allowed]
        return cls(frozenset(fit), frozenset(named[i] for i in fit))


def same_device(
    operator: str, args: Sequence[Any], kwargs: Mapping[str, Any], hosts: Hosts = Hosts(), numbers: bool = True
) -> None:
    """Raises RuntimeError, in torch's words, if the tensors of a call are on more than one device.

    Args:
        numbers: CPU tensors without axes stand for numbers, as in torch's own operators.
    """
    device: torch.device | None = None
    for tensor in _looked_at(args, kwargs, hosts):
        at = tensor.device
        if at == device or (numbers and at.type == "cpu" and tensor.dim() == 0):
            continue
        if device is not None:
            first, second = (at, device) if device.type == "cpu" else (device, at)
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{first} and {second}! (when checking the arguments of {operator})"
            )
        device = at
    if device is None or device.type != "cpu" or "indices" not in hosts.names:
        return
    for tensor in _tensors((*args, *kwargs.values())):
        if tensor.device != device:
            raise RuntimeError(
                "indices should be either on cpu or on the same device as the indexed tensor (cpu), "
                f"but there are tensors on {tensor.device}! (when checking the arguments of {operator})"
            )


def _looked_at(args: Sequence[Any], kwargs: Mapping[str, Any], hosts: Hosts) -> Iterable[torch.Tensor]:
    values = [value for i, value in enumerate(args) if i not in hosts.places]
    values += [value for name, value in kwargs.items() if name not in hosts.names]
    return _tensors(values)


def _tensors(values: Iterable[Any]) -> Iterable[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from (item for item in value if isinstance(item, torch.Tensor))
