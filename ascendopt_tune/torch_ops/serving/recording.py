"""What a model calls: every call of a tuned operator while a recorder is active, with the device time it took."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ...errors import AscendOptError, CacheError
from ...files import write_whole
from ...nouns.case import TensorSpec
from ...service.described import CallDescription
from ...service.policy import policy
from .calls import active
from .dispatch import TunedOp


@dataclass
class RecordedCall:
    """Calls of one operator with the same key. ``args`` and ``kwargs``: copies of the first one's.

    ``bytes`` of its tensors, and ``us``: device time of the original over all calls, modelled on the virtual NPU (0
    where it has none: torch's own operators are computed on the CPU there).
    """

    op: TunedOp
    original: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    count: int = 0
    us: float = 0.0
    bytes: int = 0
    events: list[tuple[Any, Any]] = field(default_factory=list, repr=False)

    def __str__(self) -> str:
        """The call by the operator's names: ``x=float16[64,4096] epsilon=1e-06``."""
        return " ".join(f"{name}={_text(value)}" for name, value in self.description().values.items())

    def description(self) -> CallDescription:
        """The call in the operator's terms. Raises CaseError for one that no operator can have."""
        return self.op.describe(self.args, self.kwargs)

    def to_json(self) -> dict[str, Any]:
        """A recorded call as a prebuild manifest takes it (deploy/manifest.py)."""
        inputs: dict[str, str] = {}
        written: dict[str, str] = {}
        attrs: dict[str, Any] = {}
        call = self.description()
        for name, value in call.values.items():
            tensors = written if name in call.written else inputs
            if isinstance(value, TensorSpec):
                tensors[name] = str(value)
            elif isinstance(value, tuple) and any(isinstance(v, TensorSpec) for v in value):
                tensors |= {f"{name}.{i}": str(v) for i, v in enumerate(value)}
            elif value is not None:
                attrs[name] = list(value) if isinstance(value, tuple) else value
        return {
            "operator": self.op.source,
            "inputs": inputs,
            "written": written,
            "attrs": attrs,
            "count": self.count,
        }


def _text(value: Any) -> str:
    return f"({' '.join(map(str, value))})" if isinstance(value, tuple) else str(value)


@dataclass
class Recorder:
    """Collects calls; the original serves them. ``total_us``: device time of everything while it was active.
    ``untimed``: on the virtual NPU, calls and bytes of torch's own operators outside of these calls, which have no
    modelled time. ``seconds``: of the wall clock."""

    calls: dict[tuple[int, Hashable], RecordedCall] = field(default_factory=dict)
    total_us: float = 0.0
    untimed: dict[str, tuple[int, int]] = field(default_factory=dict)
    seconds: float = 0.0
    _inside: int = 0

    def heard(self, operator: str, nbytes: int) -> None:
        """A call of one of torch's own operators."""
        if not self._inside:
            calls, size = self.untimed.get(operator, (0, 0))
            self.untimed[operator] = calls + 1, size + nbytes

    def call(
        self,
        op: TunedOp,
        key: Hashable,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Serves one call by the original, and notes it."""
        item = self.calls.get((id(op), key))
        if item is None:
            self._inside += 1
            copies, named = pytree.tree_map_only(torch.Tensor, _copy, (args, dict(kwargs)))
            size = sum(t.nbytes for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor))
            item = self.calls[id(op), key] = RecordedCall(op, original, copies, named, bytes=size)
            self._inside -= 1
        start, end = timer(), timer()
        start.record()
        self._inside += 1
        try:
            result = original(*args, **kwargs)
        finally:
            self._inside -= 1
        end.record()
        item.count += 1
        item.events.append((start, end))
        return result


def timer() -> Any:
    return torch.npu.Event(enable_timing=True)  # type: ignore[attr-defined]


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    """Asks for a gradient where the call does: parameters of a module that serves don't."""
    return tensor.detach().clone().requires_grad_(tensor.requires_grad and torch.is_grad_enabled())


@contextlib.contextmanager
def recording() -> Iterator[Recorder]:
    """Inside the block every call of a tuned operator, in this thread, is noted and served by its original."""
    recorder = Recorder()
    token = active.set(recorder)
    start, end = timer(), timer()
    began = time.monotonic()
    start.record()
    cpu_call = sys.modules.get("ascendopt_tune.torch_ops.device.cpu_call")  # loaded with the virtual NPU's torch_npu
    if cpu_call is not None:
        cpu_call.listener = recorder.heard  # type: ignore[attr-defined]
    try:
        with policy("off"):  # every call leaves the fast path
            yield recorder
    finally:
        active.reset(token)
        if cpu_call is not None:
            cpu_call.listener = None  # type: ignore[attr-defined]
        recorder.seconds = time.monotonic() - began
        end.record()
        torch.npu.synchronize()  # type: ignore[attr-defined]
        recorder.total_us = start.elapsed_time(end) * 1e3
        for item in recorder.calls.values():
            item.us = sum(a.elapsed_time(b) for a, b in item.events) * 1e3
            item.events.clear()


def write_calls(recorder: Recorder, path: Path) -> int:
    """Writes the calls as JSON for a prebuild manifest's ``recorded``; returns how many.

    A call that no operator can have is left out. Raises CacheError if the file can't be written.
    """
    calls = []
    for item in recorder.calls.values():
        with contextlib.suppress(AscendOptError):
            calls.append(item.to_json())
    try:
        write_whole(path, json.dumps({"calls": calls}, indent=1) + "\n")
    except OSError as error:
        raise CacheError(f"{path} can't be written: {error.strerror or error}.", "Name another file.") from error
    return len(calls)
