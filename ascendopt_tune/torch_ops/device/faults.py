"""What a kernel that failed leaves behind: whoever reads a tensor it was given is told, in every way to read.

A device finds out at the next synchronization, and torch_npu raises there, once. On the virtual NPU reading needs no
synchronization, so it is asked for here before anything is computed on npu tensors (cpu_call.py) or launched
(launcher.py): the first who asks gets torch_npu's own exception, and from then on everyone who reads a tensor that the
kernel was given, for as long as it lives. Other tensors are as they were.
"""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.multiprocessing import reductions

from ...errors import DeviceError


class LostError(RuntimeError):
    """A tensor is read that a failed kernel was given, or the stream's failure has not been reported yet."""


class KernelFault(DeviceError, RuntimeError):
    """A kernel failed, and its launch says so: on the virtual NPU a launch is over when it returns."""


@dataclass(frozen=True)
class Loss:
    """Bytes [begin, end), and why nobody may read them."""

    begin: int
    end: int
    reason: str


#: What nobody may read any more, by the storage it is of: once that is gone, its memory is another tensor's. Empty as
#: long as no kernel failed.
lost: dict[Any, Loss] = {}
#: Called when tensors are lost: who takes ways past these checks has to leave them.
on_loss: list[Callable[[], None]] = []

_reference: Any = reductions.StorageWeakRef
_lock = threading.RLock()
_seen = 0
_failures: Callable[[], int] | None = None
_failure: Callable[[int], bytes | None]


def watch(runtime: ctypes.CDLL | None) -> None:
    """Failures are asked for from now on. ``runtime``: the virtual NPU's libascendcl."""
    if runtime is None:
        return
    global _failures, _failure, _seen
    runtime.vnpu_failures.restype = ctypes.c_uint64
    runtime.vnpu_failure.argtypes, runtime.vnpu_failure.restype = [ctypes.c_uint64], ctypes.c_char_p
    _failures, _failure = runtime.vnpu_failures, runtime.vnpu_failure
    _seen = _failures()


def look() -> None:
    """Raises LostError, with torch_npu's text, for a failure that nobody was told of. Half a microsecond otherwise."""
    global _seen
    if _failures is None or (count := _failures()) == _seen:
        return
    with _lock:
        texts = [text for text in map(_failure, range(_seen, count)) if text is not None]
        _seen = count
        for text in texts:
            addresses, _, message = text.decode(errors="replace").partition("\n")
            lose(_over({int(address) for address in addresses.split()}), message)
        try:
            torch.npu.synchronize()  # type: ignore[attr-defined]
        except RuntimeError as error:
            raise LostError(str(error)) from None


def check(tensors: Iterable[torch.Tensor]) -> None:
    """Raises LostError if one of these is lost."""
    look()
    if lost:
        for tensor in tensors:
            refuse(tensor)


def is_any_lost() -> bool:
    """Forgets storages that are gone; whether there are others."""
    with _lock:
        for gone in [reference for reference in lost if reference.expired()]:
            del lost[gone]
    return bool(lost)


def refuse(tensor: torch.Tensor) -> None:
    """Raises LostError if the tensor is lost."""
    if _storage(tensor) is None:
        return
    at = tensor.data_ptr()  # not by the storage: DLPack and torch.save make others over the same bytes
    for storage, loss in list(lost.items()):
        if loss.begin <= at < loss.end and not storage.expired():
            raise LostError(
                f"this tensor was given to a kernel that failed on its stream (NPU function error): {loss.reason}"
            )


def lose(storages: Iterable[torch.UntypedStorage], reason: str) -> None:
    """Nobody may read these any more."""
    with _lock:
        is_any_lost()
        for storage in storages:
            begin = storage.data_ptr()
            lost[_reference(storage)] = Loss(begin, begin + storage.nbytes(), reason)
        if lost:
            for leave in on_loss:
                leave()


def _over(addresses: set[int]) -> Iterator[torch.UntypedStorage]:
    """The storages of live npu tensors that one of the addresses lies in."""
    for value in gc.get_objects():
        if issubclass(type(value), torch.Tensor) and (storage := _storage(value)) is not None:
            begin = storage.data_ptr()
            if any(begin <= address < begin + storage.nbytes() for address in addresses):
                yield storage


def _storage(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    """None for tensors that have no memory on a device: other devices', sparse and fake ones."""
    try:
        return tensor.untyped_storage() if tensor.device.type == "npu" and tensor.data_ptr() else None
    except (RuntimeError, NotImplementedError):
        return None
