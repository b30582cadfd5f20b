"""Runs scenarios on the virtual NPU: what a profiler would have shown, modelled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..build import toolkit as toolkits
from ..build.kernel import TILING_MACROS
from ..device.acl import Acl
from ..device.options import LaunchOptions
from ..errors import DeviceError
from ..nouns.chip import Chip, load_chip
from ..nouns.clocks import Clock
from ..nouns.profile import Profile
from .table import FOLDER, Scenario

#: Which metrics a replay tells, in the order of its columns (Acl.replay_times).
REPLAYED = (
    *("task_duration_us", "aiv_time_us", "aiv_vec_time_us", "aiv_scalar_time_us", "aiv_mte2_time_us"),
    "aiv_mte3_time_us",
)
_COUNTER_MHZ = 50  # of GetSystemCycle on architecture 2201 (asc-devkit, GetSystemCycle)
_LINE_BYTES = 128  # one miss of the published L2 counters
_READ_CHANNELS = 2  # r0 and r1 of the published L2 counters


@dataclass(frozen=True)
class Modelled:
    """The modelled profile of a scenario on ``chip``, whose vector clock is ``clock_mhz``.

    ``ticks``: what the kernel itself counted with ``GetSystemCycle()``, None where it doesn't. ``hazards``: how many
    accesses were found unordered. ``replayed``: its times (us) under other clocks, [clocks, REPLAYED].
    """

    scenario: Scenario
    chip: str
    clock_mhz: float
    profile: Profile
    ticks: int | None = None
    hazards: int = 0
    replayed: npt.NDArray[np.float64] | None = None

    def under_other_clocks(self, metric: str) -> npt.NDArray[np.float64] | None:
        """The times (us) of a published metric, [clocks]; None for one that a replay doesn't tell, or without any."""
        column = metric.replace("aic_mte2", "aiv_mte2")  # a replay tells of the cores that lead the task
        return None if self.replayed is None or column not in REPLAYED else self.replayed[:, REPLAYED.index(column)]

    def value(self, metric: str) -> float | None:
        """The modelled value of a published metric, in its unit; None for one that isn't modelled."""
        p, counters = self.profile, self.profile.counters
        # Cube cores have no MTE3, and both kinds together counters by kind.
        read, written = counters.get("mte2_bytes", 0), counters.get("mte3_bytes", 0)
        if metric.startswith("aiv_") and metric.endswith("_ratio"):
            return float(p.to_json()[metric])  # type: ignore[arg-type]
        if metric.endswith("_time_us") or metric == "task_duration_us":
            return float(getattr(p, metric))
        if metric == "aiv_total_cycles":
            return p.aiv_time_us * p.block_dim * self.clock_mhz
        if metric == "read_bandwidth_TBps":
            return read / p.aiv_mte2_time_us / 1e6
        if metric == "read_write_bandwidth_TBps":  # the source divides by the time of MTE2
            return (read + written) / p.aiv_mte2_time_us / 1e6
        if metric.endswith("_read_cache_hit"):
            return counters["l2_hit_bytes"] / _LINE_BYTES / _READ_CHANNELS
        if metric.endswith("_read_cache_miss_allocate"):
            return counters["l2_miss_bytes"] / _LINE_BYTES / _READ_CHANNELS
        if metric == "l2cache_hit_rate":
            return 100 * counters["l2_hit_bytes"] / (counters["l2_hit_bytes"] + counters["l2_miss_bytes"])
        if metric.startswith("system_counter_ticks"):
            return self.ticks
        if metric == "time_us_per_100_loops":
            return None if self.ticks is None else self.ticks / _COUNTER_MHZ
        return None


def run(
    chosen: Sequence[Scenario], chip: str | None = None, clocks: Callable[[Chip], Sequence[Clock]] | None = None
) -> Iterator[Modelled]:
    """Runs the scenarios one after another, each on its own chip file or all on ``chip``.

    Everything is as ``run`` and ``tune`` have it: synchronization as the scenario is built, hazard checks on, the
    steady state of repeated launches; scenarios that were measured in another state run in that one. With ``clocks``
    each is also timed under those of its chip.

    Raises:
        CaseError: no such chip.
        DeviceError: a kernel of ours failed.
    """
    for scenario in chosen:
        load_chip(chip or scenario.chip)
    acl = Acl(toolkits.virtual())
    binaries: dict[tuple[object, ...], bytes] = {}
    for scenario in chosen:
        build = (scenario.kernel, scenario.define, scenario.auto_sync)
        if build not in binaries:
            binaries[build] = compiled(acl, scenario)
        one = _one(acl, scenario, chip or scenario.chip, binaries[build])
        if clocks is not None:
            one = replace(one, replayed=acl.replay_times(clocks(load_chip(one.chip))))
        yield one


def compiled(acl: Acl, scenario: Scenario) -> bytes:
    """The scenario's kernel. Raises KernelCompileError."""
    name = f"{scenario.kernel}.cpp"
    options = [*(f"-D{d}" for d in scenario.define), *([] if scenario.auto_sync else ["--cce-auto-sync=off"])]
    return acl.compile(
        (FOLDER / "kernels" / name).read_text(encoding="utf-8"), name, options, {"tiling.h": TILING_MACROS}
    )


@contextmanager
def arguments(acl: Acl, scenario: Scenario) -> Iterator[list[int]]:
    """The kernel's arguments: device memory with what the scenario says of its content."""
    inputs = {int(index): np.array(words, np.uint32) for index, words in scenario.inputs.items()}
    sizes = list(scenario.buffers)
    if scenario.tiling is not None:
        words = np.zeros(max(len(scenario.tiling), scenario.tiling_bytes // 4), np.uint32)
        words[: len(scenario.tiling)] = scenario.tiling
        inputs[len(sizes)] = words
        sizes.append(words.nbytes)
    buffers = [acl.malloc(n) for n in sizes]
    try:
        for index, words in inputs.items():
            acl.memcpy_h2d(buffers[index], words)
        yield buffers
    finally:
        for buffer in buffers:
            acl.free(buffer)


def _one(acl: Acl, scenario: Scenario, chip: str, binary: bytes) -> Modelled:
    options = LaunchOptions(chip=load_chip(chip).option, state=scenario.state)
    with arguments(acl, scenario) as buffers, acl.load(binary) as loaded:
        acl.launch(loaded.function(scenario.kernel), scenario.blocks, buffers, options=options)
        acl.synchronize()
        report = acl.report()
        ticks = None
        if scenario.ticks is not None:
            counted = np.empty(2, np.int64)
            acl.memcpy_d2h(counted, buffers[scenario.ticks])
            ticks = int(counted[1] - counted[0])
    if report["errors"]:
        raise DeviceError(f"scenario {scenario.name}: {report['errors'][0]['message']}", "This is a bug; report it.")
    clock = float(load_chip(chip).values["core.clock_mhz"])
    profile = Profile.from_json(report["profile"])
    return Modelled(scenario, chip, clock, profile, ticks, len(report["hazards"]))
