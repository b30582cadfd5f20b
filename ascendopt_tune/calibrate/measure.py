"""Times microbenchmarks by events, as the first owner of an NPU can: CANN's interface and nothing else.

One sample is a pair of events around a batch of launches in a stream, less the time of a pair around nothing, divided
by the launches. What a task costs between two others in a stream (the gap that a profiler's task duration leaves out)
is part of it and ends up in ``launch.base_us``. A launch that is short is over before the host has issued the next, so
a kernel that takes longer than the host needs for a batch holds the stream meanwhile. Samples of different
microbenchmarks take turns, so that a clock that drifts meets them all; a sample is described by its median.
"""

from __future__ import annotations

import ctypes
import json
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from ..build.kernel import TILING_MACROS
from ..device.acl import Acl, Argument, Binary
from ..errors import CaseError
from ..files import MALFORMED, parse_json
from ..nouns.chip import Chip
from ..store.lines import LineLog, append_lines
from .microbenchmarks import BUFFER_BYTES, Data, Microbenchmark, Value, Wide, flush, hold, source

_TURNS = 200  # of the holding kernel, to see how long one takes
_LEAST_US = 1.0  # a time that is no less than this can be divided by


@dataclass(frozen=True)
class Effort:
    """``samples`` of each microbenchmark, of as many launches as take ``batch_us``, at most ``most``."""

    samples: int = 100
    batch_us: float = 200.0
    most: int = 50


@dataclass(frozen=True)
class Measured:
    """The time of one launch (us), the relative standard error of it, and of how many samples."""

    name: str
    digest: str
    us: float
    error: float
    samples: int


class Loaded:
    """Microbenchmarks on one device: compiled once per source and options, loaded, with the buffers they need.

    A context manager; raises what ``Acl`` raises.
    """

    def __init__(self, acl: Acl) -> None:
        self.acl = acl
        self._stack = ExitStack()
        self._texts: dict[tuple[str, tuple[str, ...]], bytes] = {}
        self._binaries: dict[tuple[str, tuple[str, ...]], Binary] = {}
        self._buffers: list[int] = []

    def __enter__(self) -> Loaded:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._binaries.clear()
        for buffer in self._buffers:
            self.acl.free(buffer)
        self._buffers.clear()

    def binary(self, one: Microbenchmark) -> bytes:
        """Its kernel, compiled."""
        key = one.kernel, one.options
        if key not in self._texts:
            self._texts[key] = self.acl.compile(
                source(one.kernel), f"{one.kernel}.cpp", one.options, {"tiling.h": TILING_MACROS}
            )
        return self._texts[key]

    def function(self, one: Microbenchmark) -> int:
        """Its kernel, loaded until the end."""
        key = one.kernel, one.options
        if key not in self._binaries:
            self._binaries[key] = self._stack.enter_context(self.acl.load(self.binary(one)))
        return self._binaries[key].function(one.entry)

    def launch(self, one: Microbenchmark, function: int, stream: int = 0) -> None:
        """Launches it."""
        self.acl.launch(function, one.blocks, [self._argument(value) for value in one.args], stream)

    def _argument(self, value: Value) -> Argument:
        if isinstance(value, Wide):
            return ctypes.c_uint64(value.value)
        if not isinstance(value, Data):
            return ctypes.c_uint32(value)
        while len(self._buffers) <= value.number:
            self._buffers.append(self.acl.malloc(BUFFER_BYTES))
        return self._buffers[value.number]


class Stopwatch:
    """Samples of launches of one device, by events in a stream of its own."""

    def __init__(self, loaded: Loaded, chip: Chip) -> None:
        self._loaded, self._acl, self._flush = loaded, loaded.acl, flush(chip)
        self._stream = self._acl.stream()
        self._begin, self._end = self._acl.create_event(), self._acl.create_event()
        self.nothing_us = 0.0
        self._held_launches = 0.0  # how many launches the host issues while one turn of the holding kernel runs
        self._prepare()

    def close(self) -> None:
        """Frees the events and the stream."""
        self._acl.destroy_event(self._begin)
        self._acl.destroy_event(self._end)
        self._acl.destroy_stream(self._stream)

    def sample(self, one: Microbenchmark, launches: int) -> float:
        """Microseconds of one launch of a batch; what doesn't stay as it was after a launch is a batch of one."""
        with self._acl.with_options(state=one.state):  # the virtual NPU models the state it is told of
            if one.state == "cold":
                with self._acl.load(self._loaded.binary(one)) as binary:
                    return self._sample(one, binary.function(one.entry), 1)
            return self._sample(one, self._loaded.function(one), 1 if one.state == "flushed" else launches)

    def _sample(self, one: Microbenchmark, function: int, launches: int) -> float:
        return self.timed(lambda stream: self._loaded.launch(one, function, stream), launches, one.state == "flushed")

    def timed(self, launch: Callable[[int], None], launches: int, flushed: bool = False) -> float:
        """Microseconds of one launch of a batch; ``launch`` gets the stream. ``flushed``: behind a flushing kernel."""
        one = hold(1 if self._acl.virtual else math.ceil(1 + 1.5 * launches / self._held_launches))
        self._loaded.launch(one, self._loaded.function(one), self._stream)
        if flushed:
            self._loaded.launch(self._flush, self._loaded.function(self._flush), self._stream)
        self._acl.record(self._begin, self._stream)
        for _ in range(launches):
            launch(self._stream)
        self._acl.record(self._end, self._stream)
        return (self._acl.elapsed_us(self._begin, self._end) - self.nothing_us) / max(1, launches)

    def _prepare(self) -> None:
        """How long the kernel that holds the stream takes, what the host needs for a launch, and an empty pair."""
        self._held_launches = math.inf
        one = hold(_TURNS)
        function = self._loaded.function(one)
        turn_us = max(_LEAST_US, self.timed(lambda stream: self._loaded.launch(one, function, stream), 1)) / _TURNS
        started = time.perf_counter()
        for _ in range(8):
            self._loaded.launch(one, function, self._stream)
        launch_us = (time.perf_counter() - started) / 8 * 1e6
        self._acl.synchronize(self._stream)
        self._held_launches = turn_us / launch_us
        self.nothing_us = statistics.median(self.timed(lambda _: None, 0) for _ in range(31))


def measure(
    acl: Acl,
    chip: Chip,
    benchmarks: Sequence[Microbenchmark],
    effort: Effort,
) -> Iterator[Measured]:
    """Times the microbenchmarks of ``chip``, kernel by kernel; those of one kernel take turns.

    Raises:
        DeviceError, KernelCompileError: the device or its compiler refuses.
    """
    with Loaded(acl) as loaded:
        watch = Stopwatch(loaded, chip)
        try:
            for kernel in dict.fromkeys(b.kernel for b in benchmarks):
                yield from _in_turn(watch, [b for b in benchmarks if b.kernel == kernel], effort)
        finally:
            watch.close()


def _in_turn(watch: Stopwatch, group: Sequence[Microbenchmark], effort: Effort) -> Iterator[Measured]:
    launches = {}
    for one in group:  # once to warm up, once to see how long it takes
        watch.sample(one, 1)
        launches[one] = max(1, min(effort.most, math.ceil(effort.batch_us / max(0.1, watch.sample(one, 1)))))
    samples: dict[Microbenchmark, list[float]] = {one: [] for one in group}
    for _ in range(effort.samples):
        for one, found in samples.items():
            found.append(watch.sample(one, launches[one]))
    for one, found in samples.items():
        yield summary(one.name, one.digest, found)


def summary(name: str, digest: str, samples: Sequence[float]) -> Measured:
    """Median, and its standard error from the median absolute deviation: stray samples count as one each."""
    middle = statistics.median(samples)
    scatter = 1.4826 * statistics.median(abs(s - middle) for s in samples)
    error = 1.2533 * scatter / math.sqrt(len(samples)) / middle if middle > 0 else math.inf
    return Measured(name, digest, middle, error, len(samples))


class Measurements:
    """What has been measured, a JSON line each, so that an interrupted run goes on where it was.

    The first line says what was measured on; a file of another device or toolkit is refused.

    Raises:
        CaseError: the file is no such file, or is of another device.
    """

    def __init__(self, path: Path, device: Mapping[str, str]) -> None:
        self._path, self._device = path, dict(device)
        self.done: dict[str, Measured] = {}
        try:
            with LineLog(path, wait=True) as log:  # one of several processes writes the first line
                if not log.lines:
                    log.append(json.dumps({"device": self._device}))
                lines = log.lines
        except OSError as error:
            raise _unusable(path, error) from error
        if lines:
            self._read(lines)

    def missing(self, benchmarks: Sequence[Microbenchmark]) -> list[Microbenchmark]:
        """Those of them that have not been measured as they are now."""
        return [b for b in benchmarks if b.name not in self.done or self.done[b.name].digest != b.digest]

    def add(self, measured: Measured) -> None:
        """Keeps it, in the file first. Raises CaseError where that can't be written."""
        try:
            append_lines(self._path, [json.dumps(asdict(measured))])
        except OSError as error:
            raise _unusable(self._path, error) from error
        self.done[measured.name] = measured

    def _read(self, lines: Sequence[bytes]) -> None:
        try:
            first, *rest = map(parse_json, lines)
            device = first["device"]
            self.done = {row["name"]: Measured(**row) for row in rest}
        except MALFORMED as error:
            raise CaseError(f"{self._path} holds no measurements: {error}.", "Remove it to measure anew.") from None
        if device != self._device:
            raise CaseError(
                f"{self._path} was measured on {device}, and this is {self._device}.", "Remove it, or name another."
            )


def _unusable(path: Path, error: OSError) -> CaseError:
    return CaseError(
        f"the measurements {path} can't be read or written: {error.strerror or error}.",
        "Free some space, or name another file: what had been measured is gone on from.",
    )
