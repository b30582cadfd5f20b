"""A device to try calibration on: the virtual NPU plays it, and only its events tell the time, with an instrument's
noise and stray outliers.

The virtual NPU takes the same time for the same launch, so each is executed once and remembered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..build.toolkit import Toolkit
from ..device.acl import Acl, Argument, Binary
from ..device.options import LaunchOptions
from ..nouns.chip import Chip

#: Noise of every time that events give, the share of them that are outliers, and how much longer those are at most.
NOISE, STRAY, FURTHER = 0.02, 0.03, 4.0
_EVENT_US = 1.3  # between two events with nothing in between


class PlayedAcl(Acl):
    """A device whose constants stand in a chip file, with noise of ``seed``."""

    def __init__(self, toolkit: Toolkit, chip_file: Path, seed: int) -> None:
        super().__init__(toolkit)
        self._chip_file = str(chip_file)
        self._random = np.random.default_rng(seed)
        self._known: dict[tuple[object, ...], float] = {}
        self._contents: dict[int, str] = {}  # of the binary that a function is from, by its handle
        self._now = 0.0
        self._stamps: dict[int, float] = {}

    def load(self, binary: bytes) -> Binary:
        return _Watched(super().load(binary), hashlib.sha256(binary).hexdigest(), self._contents)

    def launch(
        self,
        function: int,
        block_dim: int,
        args: Sequence[Argument],
        stream: int = 0,
        options: LaunchOptions | None = None,
    ) -> None:
        values = tuple(a if isinstance(a, int) else bytes(a) for a in args)
        state = (options or self.options).state
        key = (self._contents[function], block_dim, values, state)
        if key not in self._known:
            played = LaunchOptions(chip=self._chip_file, hazards=False, state=state)
            begin, end = self.create_event(), self.create_event()
            super().record(begin, stream)
            super().launch(function, block_dim, args, stream, played)
            super().record(end, stream)
            self._known[key] = super().elapsed_us(begin, end)
            self.destroy_event(begin)
            self.destroy_event(end)
        self._now += self._known[key]

    def record(self, event: int, stream: int = 0) -> None:
        self._stamps[event] = self._now
        self._now += _EVENT_US

    def elapsed_us(self, start: int, end: int) -> float:
        noise = 1 + NOISE * self._random.standard_normal()
        if self._random.random() < STRAY:
            noise *= self._random.uniform(1.2, FURTHER)
        return (self._stamps[end] - self._stamps[start]) * noise

    def replay(self, *_: Any, **__: Any) -> list[float]:
        raise AssertionError("a device has no replay")

    def report(self) -> dict[str, Any]:
        raise AssertionError("a device has no report")


class _Watched(Binary):
    """A binary of the played device, which has to know what its functions are."""

    def __init__(self, binary: Binary, content: str, contents: dict[int, str]) -> None:
        self._binary, self._content, self._contents = binary, content, contents

    def function(self, name: str) -> int:
        handle = self._binary.function(name)
        self._contents[handle] = self._content + name
        return handle

    def unload(self) -> None:
        self._binary.unload()


def drawn(chip: Chip, seed: int, wider: float = 1.3) -> dict[str, float]:
    """Constants of a device that could be: log-uniform in the chip's intervals, each bound ``wider`` by that factor."""
    random = np.random.default_rng(seed)
    out = {}
    for key, c in chip.vector_constants.items():
        if c.low > 0:
            out[key] = float(np.exp(random.uniform(np.log(c.low / wider), np.log(c.high * wider))))
        else:
            middle, half = (c.low + c.high) / 2, (c.high - c.low) / 2 * wider
            out[key] = float(random.uniform(max(middle - half, 0.0 if c.low >= 0 else -np.inf), middle + half))
    return out
