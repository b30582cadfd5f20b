"""Runs scenarios on the virtual NPU: what a profiler would have shown, modelled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..build import toolkit as toolkits
from ..chip import load_chip
from ..device.acl import Acl
from ..errors import DeviceError
from ..profile import Profile
from .table import FOLDER, Scenario

_COUNTER_MHZ = 50  # of GetSystemCycle on architecture 2201 (asc-devkit, GetSystemCycle)
_LINE_BYTES = 128  # one miss of the published L2 counters
_READ_CHANNELS = 2  # r0 and r1 of the published L2 counters


@dataclass(frozen=True)
class Modelled:
    """The modelled profile of a scenario on ``chip``, whose vector clock is ``clock_mhz``."""

    scenario: Scenario
    chip: str
    clock_mhz: float
    profile: Profile

    def value(self, metric: str) -> float | None:
        """The modelled value of a published metric, in its unit; None for one that isn't modelled."""
        p, counters = self.profile, self.profile.counters
        read, written = counters["mte2_bytes"], counters["mte3_bytes"]
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
            return p.aiv_vec_time_us * _COUNTER_MHZ
        if metric == "time_us_per_100_loops":  # of vector instructions and the barriers between them
            return p.aiv_vec_time_us + counters.get("stall_vec_on_vec_us", 0)
        if metric.startswith("head_overhead_us"):
            return p.task_duration_us
        return None


def run(chosen: Sequence[Scenario], chip: str | None = None) -> Iterator[Modelled]:
    """Runs the scenarios one after another, each on its own chip file or all on ``chip``.

    L2 is empty before each, as profilers leave it when they replay a kernel; hazards are not looked for.

    Raises:
        CaseError: no such chip.
        DeviceError: a kernel of ours failed.
    """
    for scenario in chosen:
        load_chip(chip or scenario.chip)
    acl = Acl(toolkits.virtual())
    acl.option("hazards", "0")
    acl.option("warm", "0")
    try:
        for scenario in chosen:
            yield _one(acl, scenario, chip or scenario.chip)
    finally:
        acl.option("hazards", "1")
        acl.option("warm", "1")


def _one(acl: Acl, scenario: Scenario, chip: str) -> Modelled:
    acl.option("chip", chip)
    name = scenario.kernel
    source = (FOLDER / "kernels" / f"{name}.cpp").read_text()
    binary = acl.compile(source, f"{name}.cpp", [*(f"-D{d}" for d in scenario.define), "--cce-auto-sync=off"])
    buffers = [acl.malloc(n) for n in scenario.buffers]
    try:
        with acl.load(binary) as loaded:
            acl.launch(loaded.function(name), scenario.blocks, buffers)
            acl.synchronize()
            report = acl.report()
    finally:
        for buffer in buffers:
            acl.free(buffer)
    if report["errors"]:
        raise DeviceError(f"scenario {scenario.name}: {report['errors'][0]['message']}", "This is a bug; report it.")
    clock = float(load_chip(chip).values["core.clock_mhz"])
    return Modelled(scenario, chip, clock, Profile.from_json(report["profile"]))
