"""The roofline of a launch: how many vector units are at work, by how much work there is for a byte that is moved.

Work is counted as the time that vector units are busy with it, so a unit at work all the time is 1, and the roof is the
number of cores; left of the roof, data come too slowly from L2 or from HBM. All of it is modelled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..evaluate.cores import cores_used
from ..evaluate.diagnosis import bandwidths
from ..nouns.chip import Chip
from ..nouns.profile import Profile
from .plot import COLOURS, GREY, Plot, Scale


@dataclass(frozen=True)
class RooflinePoint:
    """``work_us``: of all vector units together; ``bytes``: to and from global memory; ``active_us``: the cores' time.

    ``bound``: what would take longest were everything else free: ``L2``, ``HBM`` or ``vector``, with that least time.
    """

    work_us: float
    bytes: float
    active_us: float
    bound: str
    least_us: float

    @property
    def intensity(self) -> float:
        """Microseconds of vector work for a megabyte."""
        return self.work_us / (self.bytes / 1e6)

    @property
    def at_work(self) -> float:
        """Vector units at work, on average over the cores' time."""
        return self.work_us / self.active_us


def roofline_point(profile: Profile, chip: Chip) -> RooflinePoint | None:
    """None where the profile doesn't tell bytes, vector work and time."""
    profile = profile.detail
    memories = bandwidths(profile, chip)
    counters = profile.counters
    moved = counters.get("mte2_bytes", 0.0) + counters.get("mte3_bytes", 0.0)
    work = profile.aiv_vec_time_us * cores_used(profile, chip)
    active = counters.get("cores_active_us", 0.0)
    if not memories or moved <= 0 or work <= 0 or active <= 0:
        return None
    least = {m.name: active * m.share for m in memories} | {"vector": work / int(chip.values["core.aiv"])}
    bound = max(least, key=lambda name: least[name])
    return RooflinePoint(work, moved, active, bound, least[bound])


def roofline_svg(points: Mapping[str, RooflinePoint], chip: Chip) -> str:
    """The roof of ``chip`` and the points under it, both axes logarithmic."""
    units = int(chip.values["core.aiv"])
    peaks = {"L2": float(chip.values["memory.l2_gb_per_s"]), "HBM": float(chip.values["memory.hbm_gb_per_s"])}
    ridge = {name: units / (peak / 1e3) for name, peak in peaks.items()}  # us of work for a MB; GB/s are 1e-3 MB/us
    left = min([*ridge.values(), *(p.intensity for p in points.values())]) / 4
    right = max([*ridge.values(), *(p.intensity for p in points.values())]) * 4
    low = min([units / 100, *(p.at_work for p in points.values())]) / 2
    plot = Plot(
        "roofline, modelled",
        Scale("vector work for a megabyte moved (us), modelled", left, right, log=True),
        Scale("vector units at work", low, units * 2, log=True),
        right=110,
    )
    names = {}
    for (name, peak), dash in zip(peaks.items(), ("", "5 4"), strict=True):
        start = max(left, low / (peak / 1e3))
        plot.line([(start, start * peak / 1e3), (ridge[name], units), (right, units)], GREY, width=2, dash=dash)
        plot.text(start * 1.25, start * peak / 1e3, f"{name}, {peak:.0f} GB/s")
    for (name, point), colour in zip(points.items(), (GREY, COLOURS[2]), strict=False):
        about = f"{name}: {point.at_work:.2f} units at work, {point.intensity:.3g} us a MB, bound by {point.bound}"
        plot.dots([(point.intensity, point.at_work, about)], colour, radius=7)
        names[name] = colour
    plot.legend(names)
    return plot.svg()
