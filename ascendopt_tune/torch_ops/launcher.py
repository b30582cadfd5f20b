"""A cached pair made ready for torch tensors: binary loaded, tiling data on the device, nothing left but the launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch

from ..build.toolkit import Toolkit
from ..cache import Entry
from ..case import DTYPES, Argument, TensorSpec, flatten
from ..device.acl import Acl
from ..device.launch import SYSTEM_WORKSPACE, list_descriptor
from ..errors import CaseError

#: Gets one input (a tensor, a list of tensors, or None) out of a call's arguments.
Pick = Callable[[tuple[Any, ...], Mapping[str, Any]], Any]

ALIGNMENT = 32  # bytes; results were verified on tensors that begin at a multiple of this
TORCH_DTYPES = {name: getattr(torch, name) for name in DTYPES}
DTYPE_NAMES = {dtype: name for name, dtype in TORCH_DTYPES.items()}


@cache
def device_of(toolkit: Toolkit, index: int) -> Acl:
    """The binding for device ``index`` of this process, whose runtime torch_npu has set up."""
    return Acl(toolkit, index)


def upload(data: bytes, device: torch.device) -> torch.Tensor:
    """``data`` in device memory; never null."""
    return torch.frombuffer(bytearray(data or bytes(ALIGNMENT)), dtype=torch.uint8).to(device)


class Launcher:
    """Called with a call's arguments, launches on torch's current stream of ``device`` and returns the outputs flat.

    ``returned`` are positions in the entry's outputs; a list output is opened. Building one raises DeviceError if the
    binary can't be loaded. Calling one raises CaseError for a tensor that is not where results were verified to be
    right, DeviceError or torch's errors if the launch fails; a failing kernel shows at the next synchronization.
    """

    def __init__(
        self,
        acl: Acl,
        entry: Entry,
        outputs: Sequence[Argument],
        picks: Sequence[Pick],
        returned: Sequence[int],
        device: torch.device,
    ) -> None:
        import torch_npu

        self.entry = entry
        #: Calls that failed. Kept here by the dispatcher.
        self.failures = 0
        #: What several outputs are returned in; None: one tensor. Set by the dispatcher.
        self.container: Callable[[list[torch.Tensor]], Any] | None = None
        self._acl, self._device = acl, device
        self._picks = tuple(picks)
        self._outputs = [(isinstance(a, tuple), [_shape_and_dtype(s) for s in flatten([a])]) for a in outputs]
        self._returned = tuple(returned)
        # The form that waits for torch_npu's task queue: what was called before is on the stream when we launch.
        self._stream: Callable[[int], int] = torch_npu._C._npu_getCurrentRawStream
        self._function = acl.load(entry.binary).function(entry.kernel_name)
        self._tiling = upload(entry.tiling.data, device)
        self._workspace = SYSTEM_WORKSPACE + entry.tiling.workspace_bytes

    def __call__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
        # Memory that is dropped when this returns is reused in the stream's order, so after the launch.
        device, blocks = self._device, list[torch.Tensor]()
        words = [self._address(pick(args, kwargs), blocks) for pick in self._picks]
        made = [
            [torch.empty(shape, dtype=dtype, device=device) for shape, dtype in specs] for _, specs in self._outputs
        ]
        for tensors, value in zip(made, self.entry.tiling.initial_values, strict=False):
            if value is not None:
                for tensor in tensors:
                    tensor.fill_(value)
        for (is_list, _), tensors in zip(self._outputs, made, strict=True):
            words.append(self._address(tensors if is_list else tensors[0] if tensors else None, blocks))
        workspace = torch.empty(self._workspace, dtype=torch.uint8, device=device)
        words += [workspace.data_ptr() + SYSTEM_WORKSPACE, self._tiling.data_ptr()]
        self._acl.launch(self._function, self.entry.tiling.block_dim, words, self._stream(device.index))
        return [tensor for i in self._returned for tensor in made[i]]

    def _address(self, value: Any, blocks: list[torch.Tensor]) -> int:
        """What the kernel gets for one parameter: a tensor's address, that of a list's descriptor block, or null."""
        if value is None:
            return 0
        if isinstance(value, torch.Tensor):
            pointer = value.data_ptr()
            if pointer % ALIGNMENT:
                raise CaseError(f"a tensor begins at an address that is not a multiple of {ALIGNMENT} bytes.")
            return pointer
        descriptor = list_descriptor([tuple(t.shape) for t in value], [self._address(t, blocks) for t in value])
        blocks.append(upload(descriptor, self._device))
        return blocks[-1].data_ptr()


def _shape_and_dtype(spec: TensorSpec) -> tuple[tuple[int, ...], torch.dtype]:
    return spec.shape, TORCH_DTYPES[spec.dtype]
