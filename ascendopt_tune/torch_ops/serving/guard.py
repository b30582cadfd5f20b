"""Before a tuned pair serves alone: its first calls run the original, too, whose results are the caller's.

What has to hold: the same structure, shapes, dtypes and strides; the same values within the operator's tolerances,
with the pair's outputs poisoned before the launch, so that stale memory can't pass for a result; no argument changed
that the original leaves alone; and no more device time than the original takes.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import ml_dtypes
import torch

from ...errors import CaseError
from ...evaluate.compare import Tolerance, mismatch, tolerance
from ...files import MALFORMED, TEXT_BYTES, parse_json, read_plain, write_whole
from ...store.cache import Entry
from .binding import DTYPE_NAMES
from .launcher import Args, Kwargs, Launcher

MARGIN = 0.05  # of the original's time: a pair that takes longer than this beyond it is slower
PAIRS = 3  # timed pairs of calls whose median decides, when the first one says slower
_SLACK = 2.0  # both may be off the reference by the tolerance, in opposite directions


class SlowerError(CaseError):
    """The tuned pair takes longer than the original."""


class DiffersError(CaseError):
    """The tuned pair doesn't return what the original does."""


@dataclass
class Probation:
    """A launcher whose first calls the original answers. ``left``: comparisons to come; ``ratios``: its device time
    over the original's, where both are known."""

    launcher: Launcher
    settings: Mapping[str, Any]  # op.toml, for the tolerances
    left: int = 1
    ratios: list[float] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return self.left <= 0 and not self._suspicious

    @property
    def _suspicious(self) -> bool:
        return 0 < len(self.ratios) < PAIRS and statistics.median(self.ratios) > 1 + MARGIN

    def call(self, original: Callable[..., Any], args: Args, kwargs: Kwargs) -> tuple[Any, Exception | None]:
        """One call by both. Returns what the original returned, and what is wrong with the launcher, if anything.

        Raises what the original raises.
        """
        own_args, own_kwargs, copies = _with_copies(self.launcher, args, kwargs)
        versions = _versions(args, kwargs)
        served: list[torch.Tensor] = []
        failure: Exception | None = None
        start, end = _events()
        try:

            def before(made: list[torch.Tensor]) -> None:
                poison(made)
                start.record()

            served = self.launcher.run(own_args, own_kwargs, before)
            end.record()
            torch.npu.synchronize()  # type: ignore[attr-defined]
        except Exception as error:
            failure = error
        on_cpu = _calls_on_cpu()
        theirs = _events()
        theirs[0].record()
        expected = original(*args, **kwargs)
        theirs[1].record()
        modelled = on_cpu == _calls_on_cpu()  # else a part of the original takes no modelled time
        if failure is not None:
            return expected, failure
        try:
            torch.npu.synchronize()  # type: ignore[attr-defined]
            if not copies and versions != _versions(args, kwargs):
                raise CaseError("the original changes its arguments.")
            self._adopt(served, expected)
            changed = self.launcher.changed(args, kwargs)
            compare(served, flat(expected)[: len(served)], self.settings)
            compare(copies, changed, self.settings)
            if modelled:
                self._compare_times(start.elapsed_time(end), theirs[0].elapsed_time(theirs[1]))
        except Exception as error:
            return expected, error
        self.left -= 1
        return expected, None

    def _adopt(self, served: list[torch.Tensor], expected: Any) -> None:
        """Makes the launcher return what the original does. Raises CaseError if the two don't agree."""
        if expected is None and not served:
            return
        container = None if isinstance(expected, torch.Tensor) else type(expected)
        if container not in (None, tuple, list):
            raise CaseError(f"the original returns a {type(expected).__name__}, not tensors.")
        wanted = flat(expected)
        if not all(isinstance(t, torch.Tensor) for t in wanted) or _forms(wanted) != _forms(served):
            raise CaseError(
                f"the original returns {_forms(wanted)}, the operator {_forms(served)}.",
                "Name the outputs the function returns with returns=(...).",
            )
        self.launcher.container = container

    def _compare_times(self, ours_ms: float, theirs_ms: float) -> None:
        if theirs_ms <= 0:
            return
        self.ratios.append(ours_ms / theirs_ms)
        if len(self.ratios) >= PAIRS and statistics.median(self.ratios) > 1 + MARGIN:
            raise SlowerError(
                f"the tuned pair takes {statistics.median(self.ratios):.2f} times the original's device time "
                f"({ours_ms * 1e3:.1f} us, the original {theirs_ms * 1e3:.1f} us)."
            )


def compare(served: list[torch.Tensor], expected: list[torch.Tensor], settings: Mapping[str, Any]) -> None:
    """Raises DiffersError if two lists of tensors differ by more than the operator's tolerances (op.toml) allow."""
    for i, (got, want) in enumerate(zip(served, expected, strict=True)):
        dtype = DTYPE_NAMES.get(want.dtype, "")
        given = tolerance(dtype, settings)
        allowed = Tolerance(given.rtol * _SLACK, given.atol * _SLACK, given.ratio * _SLACK)
        if text := mismatch(str(i), _array(got), _array(want), allowed, poison=0xFF):
            raise DiffersError(f"the tuned pair and the original differ: {text}")


# -- what is remembered ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Remarks:
    """What serving found out against cached pairs, a small file each in ``<cache>/remarks``; other processes heed it.

    A remark is about one binary and one original: what is tuned anew, or serves another original, starts without.
    """

    folder: Path

    def of(self, entry: Entry, original: str) -> str | None:
        """The reason why the pair is not to serve, or None. Never raises."""
        try:
            return str(parse_json(read_plain(self._file(entry, original), TEXT_BYTES))["reason"])
        except (OSError, *MALFORMED):
            return None

    def add(self, entry: Entry, original: str, reason: str) -> None:
        """Remembers; where the folder can't be written, this process alone knows."""
        document = {
            "entry": entry.key.hash,
            "operator": entry.key.operator,
            "original": original,
            "reason": reason,
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        file = self._file(entry, original)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(file, json.dumps(document, indent=1) + "\n")
        except OSError:
            pass

    def _file(self, entry: Entry, original: str) -> Path:
        name = hashlib.sha256(f"{entry.key.hash} {original} ".encode() + entry.binary).hexdigest()
        return self.folder / f"{name}.json"


# -- tensors --------------------------------------------------------------------------------------------------------


def tensors_in(values: Any) -> list[torch.Tensor]:
    """The tensors among values and lists of them, in order."""
    out: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            out.append(value)
        elif isinstance(value, (list, tuple)):
            out += tensors_in(value)
    return out


def _versions(args: Args, kwargs: Kwargs) -> list[int]:
    return [0 if t.is_inference() else t._version for t in tensors_in((*args, *kwargs.values()))]


def _with_copies(launcher: Launcher, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs, list[torch.Tensor]]:
    """The arguments with copies of those that the call changes, and the copies."""
    own_args, own_kwargs = list(args), dict(kwargs)
    copies: list[torch.Tensor] = []
    for pick in launcher.plan.changed:
        value = args[pick] if isinstance(pick, int) else kwargs[pick]
        with torch.no_grad():
            copied = [t.detach().clone() for t in value] if isinstance(value, (list, tuple)) else value.detach().clone()
        copies += copied if isinstance(copied, list) else [copied]
        if isinstance(pick, int):
            own_args[pick] = copied
        else:
            own_kwargs[pick] = copied
    return tuple(own_args), own_kwargs, copies


def poison(tensors: list[torch.Tensor]) -> None:
    """Fills new outputs before a launch, so that stale memory can't pass for a result."""
    for tensor in tensors:
        if tensor.numel():
            tensor.view(-1).view(torch.uint8).fill_(0xFF)


def _array(tensor: torch.Tensor) -> Any:
    host = tensor.detach().cpu()
    if host.dtype == torch.bfloat16:
        return host.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return host.numpy()


def flat(value: Any) -> list[Any]:
    """What a call returned, as a list."""
    if value is None:
        return []
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _forms(tensors: list[Any]) -> list[str]:
    return [
        f"{t.dtype}{list(t.shape)}" + ("" if t.is_contiguous() else f" strides {t.stride()}")
        if isinstance(t, torch.Tensor)
        else type(t).__name__
        for t in tensors
    ]


def _events() -> tuple[Any, Any]:
    make: Any = torch.npu.Event  # type: ignore[attr-defined]
    return make(enable_timing=True), make(enable_timing=True)


def _calls_on_cpu() -> int:
    served = sys.modules.get("ascendopt_tune.torch_ops.device.cpu_call")
    return sum(served.calls.values()) if served is not None else 0
