"""Where a speedup comes from: the launch, the tiling program, the kernel, or changes of both programs at once.

The way from the baseline to the best pair is a chain of steps, each a change to the tiling program (Stage I) or to the
kernel (Stage II), each with its modelled time T. T is the launch L (what is no core's work: dispatch and the start of
cores) and the work C of the cores. What a step saves of L is the launch's, what it saves of C its stage's. Saved time
becomes a share of the logarithm of the speedup by the logarithmic mean, with which differences add up to it exactly:
ln(T0 / T1) = (T0 - T1) / M(T0, T1) (the logarithmic mean Divisia decomposition).
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

from ..nouns.profile import Profile
from ..search.proposer import JOINT
from .record import RunRecord, Step

LAUNCH, TILING, KERNEL, BOTH = "launch", "tiling", "kernel", "both"
PARTS = (LAUNCH, TILING, KERNEL, BOTH)
_PART = {2: KERNEL, JOINT: BOTH}  # by stage; the tiling's otherwise


def launch_us(profile: Profile) -> float:
    """What of the task is no core's work, in us: its duration without the time that a core works.

    That is the mean over the cores without their prologue (``core_start_us``), or the longest block, whichever is more:
    what an even split would save is no launch.
    """
    counters = profile.counters
    work = max(profile.core_time_us - counters.get("core_start_us", 0.0), counters.get("block_time_max_us", 0.0))
    return profile.task_duration_us - work


def parts(steps: Sequence[Step]) -> dict[str, float]:
    """Part -> its share of ln(speedup); the shares add up to it. Negative where a part became slower."""
    out = dict.fromkeys(PARTS, 0.0)
    for before, after in itertools.pairwise(steps):
        mean = _logarithmic_mean(before.task_us, after.task_us)
        launch = (before.launch_us - after.launch_us) / mean
        out[LAUNCH] += launch
        out[_PART.get(after.stage, TILING)] += (before.task_us - after.task_us) / mean - launch
    return out


def mean_parts(runs: Sequence[RunRecord]) -> dict[str, float]:
    """Part -> the factor it has in the geometric mean of the runs' speedups; their product is that mean."""
    each = [parts(r.steps) for r in runs]
    return {part: math.exp(statistics.fmean(one[part] for one in each)) for part in PARTS}


def _logarithmic_mean(a: float, b: float) -> float:
    return a if math.isclose(a, b, rel_tol=1e-12) else (a - b) / math.log(a / b)
