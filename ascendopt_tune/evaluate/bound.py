"""The hardware's bound: a time that no kernel for the same work gets below on this chip, and how near to it one comes.

The bound of n cores is the start of a launch without tiling data on n cores, which begin in turns, and then the longer
of

* *bytes*: every byte of the inputs and of the outputs once (fewer where a pair is known that moves fewer), at L2's
  bandwidth, what L2 can't hold at HBM's, and no core faster than its copies in and out, which overlap;
* *instructions*: the fewest cycles of the vector and of the matrix unit that a known pair needs, without their heads
  and without conflicts of banks, spread over the n cores evenly.

The least of all n counts. Nothing in it waits, so that it can't be reached; a pair that needs fewer instructions than
all that were known lies below. How near one comes is cann-bench's figure, HAP (hicann/cann-bench, README: hardware-
anchored performance), whose own bound is a roofline of bytes and operations without the launch, 1 us at least.

Its paces are the chip file's nominal ones, so that it is no bound beyond their intervals; heads are taken for
``vector.head_cycles`` each, where the table of instructions has half as much to two thirds more.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..nouns.case import Case, flatten
from ..nouns.chip import Chip
from ..nouns.profile import Profile
from .cores import cores_there, cores_used, turn_us, turns


@dataclass(frozen=True)
class NeededWork:
    """What has to be done, however it is done: bytes in and out of global memory, cycles of all cores' units."""

    bytes_in: float
    bytes_out: float
    vector_cycles: float = 0.0
    matrix_cycles: float = 0.0


def work(profile: Profile, chip: Chip) -> NeededWork:
    """What a pair did: all of its bytes, and what its units took without heads and conflicts."""
    clock = float(chip.values["core.clock_mhz"])
    bytes_in = bytes_out = vector = matrix = 0.0
    for kind, part in profile.parts.items():
        counters, cores = part.counters, cores_used(part, chip)
        bytes_in += counters.get("mte2_bytes", 0.0)
        bytes_out += counters.get("mte3_bytes", 0.0) + counters.get("fixpipe_bytes", 0.0)
        if kind == "aiv":
            heads = counters.get("vec_instructions", 0.0) * float(chip.values["vector.head_cycles"])
            idle = heads + counters.get("bank_conflict_cycles", 0.0)
            vector += max(0.0, part.aiv_vec_time_us * clock * cores - idle)
        else:
            matrix += part.aic_mac_time_us * clock * cores
    return NeededWork(bytes_in, bytes_out, vector, matrix)


def least(known: Sequence[NeededWork], bytes_in: int, bytes_out: int) -> NeededWork:
    """The least of everything: of a case that has so many bytes, and of what pairs for it did (one at least)."""
    return NeededWork(
        min(bytes_in, *(w.bytes_in for w in known)),
        min(bytes_out, *(w.bytes_out for w in known)),
        min(w.vector_cycles for w in known),
        min(w.matrix_cycles for w in known),
    )


def bound_us(needed: NeededWork, chip: Chip) -> float:
    """The hardware's bound for this work, in us of the chip's clock (modelled: its constants are the chip file's)."""
    most = int(chip.values["core.aiv" if needed.vector_cycles or not needed.matrix_cycles else "core.aic"])
    value = {key: float(v) for key, v in chip.values.items() if isinstance(v, int | float)}
    return min(_bound_on(cores, needed, value) for cores in range(1, most + 1))


def _bound_on(cores: int, needed: NeededWork, value: Mapping[str, float]) -> float:
    clock = value["core.clock_mhz"]
    total = needed.bytes_in + needed.bytes_out
    of_all = max(
        total / (1e3 * value["memory.l2_gb_per_s"]),
        max(0.0, total - value["memory.l2_bytes"]) / (1e3 * value["memory.hbm_gb_per_s"]),
    )
    # Chip files of one's own may be older than cube cores.
    out = max(value["mte3.bytes_per_cycle"], value.get("fixpipe.bytes_per_cycle", 0.0))
    of_each = max(
        needed.bytes_in / (cores * clock * value["mte2.l2_bytes_per_cycle"]),
        needed.bytes_out / (cores * clock * out),
        needed.vector_cycles / (cores * clock),
        needed.matrix_cycles / (min(cores, value["core.aic"]) * clock),
    )
    # Cores get their first instructions in turns: memory is there from the first turn on, a core from its own.
    at_once = value.get("launch.at_once", 1.0)
    turn, in_turns = value["launch.fetch_us"] * at_once, -(-cores // int(at_once))
    begun = value["launch.base_us"] + value["launch.core_head_us"]
    return begun + max(turn + of_all, turn * (in_turns + 1) / 2 + of_each)


def costs_of_cores(profile: Profile, chip: Chip) -> dict[int, float]:
    """Cores -> us in which what a pair does would end on so many, if what grows with the data were split evenly.

    That is its bytes at the pace of a core's copies and its instructions without their heads; what a core takes besides
    stays, however many there are, and isn't in it. Each turn of cores starts later than the one before, as in this
    profile. Empty for mixed kernels, and where the profile doesn't tell.
    """
    if profile.kind == "mix" or "mte2_bytes" not in profile.counters:
        return {}
    done, clock = work(profile, chip), float(chip.values["core.clock_mhz"])
    moved = done.bytes_in / float(chip.values["mte2.l2_bytes_per_cycle"])
    moved += done.bytes_out / float(chip.values["mte3.bytes_per_cycle"])
    split = (moved + done.vector_cycles + done.matrix_cycles) / clock
    turn = turn_us(profile, chip)
    return {n: turn * turns(n, chip) + split / n for n in range(1, cores_there(profile, chip) + 1)}


def paying_cores(profile: Profile, chip: Chip) -> int | None:
    """The number of cores that costs least (:func:`costs_of_cores`); None where the profile doesn't tell."""
    costs = costs_of_cores(profile, chip)
    return min(costs, key=lambda n: costs[n]) if costs else None


def bound_of(case: Case, pairs: Sequence[Profile], chip: Chip) -> float | None:
    """The hardware's bound for a case, in us, as far as these pairs show what it needs.

    None where a profile doesn't tell what was moved, as that of a device's events alone.
    """
    told = [p.detail for p in pairs]
    if not told or any("mte2_bytes" not in part.counters for p in told for part in p.parts.values()):
        return None
    sizes = [sum(t.nbytes for t in flatten(of)) for of in (case.inputs, case.outputs)]
    return bound_us(least([work(p, chip) for p in told], sizes[0], sizes[1]), chip)


def bound_text(case: Case, pairs: Sequence[Profile], chip: Chip) -> str:
    """A line on the last of these pairs for people; nothing where the bound is not known."""
    found = bound_of(case, pairs, chip)
    if found is None:
        return ""
    share = 100 * found / pairs[-1].task_duration_us
    return f"the hardware's bound: {found:.2f} us (modelled), {share:.0f} % of what it takes"


def hap(baseline_us: float, best_us: float, hardware_us: float) -> float | None:
    """cann-bench's score: 0.5 as fast as the baseline, 1 at the hardware's bound, above it where that is undercut.

    None where it says nothing: the baseline is at the bound, or below it.
    """
    before, after = baseline_us - hardware_us, best_us - hardware_us
    return before / (after + before) if before > 0 and after + before > 0 else None


def mean_hap(times: Iterable[tuple[float, float, float]]) -> float | None:
    """Arithmetic mean over (baseline, best, bound), as cann-bench has it; of those that it says something of."""
    found = [score for one in times if (score := hap(*one)) is not None]
    return statistics.fmean(found) if found else None
