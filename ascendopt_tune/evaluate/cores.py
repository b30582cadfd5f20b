"""Cores of a launch: how many there are and work, in how many waves, and how they begin one after the other."""

from __future__ import annotations

import math

from ..nouns.chip import Chip
from ..nouns.profile import Profile


def cores_there(profile: Profile, chip: Chip) -> int:
    """Cores that the chip has of the kind the profile is of; of a mixed kernel groups that it runs at once."""
    if profile.kind == "mix":
        return min(int(chip.values["core.aic"]), int(chip.values["core.aiv"]) // max(profile.vectors_per_block, 1))
    return int(chip.values[f"core.{profile.kind}"])


def cores_used(profile: Profile, chip: Chip) -> int:
    """Cores, of a mixed kernel groups, that had a block to run."""
    return min(profile.block_dim, cores_there(profile, chip))


def waves(profile: Profile, chip: Chip) -> int:
    """How often a core takes a block until all blocks have run; 1 where every block has a core of its own."""
    return max(1, math.ceil(profile.block_dim / cores_there(profile, chip)))


def waves_note(profile: Profile, chip: Chip) -> str:
    """What has to be said of a launch with more blocks than the chip has cores; else nothing."""
    number = waves(profile, chip)
    if number == 1:
        return ""
    return f"{profile.block_dim} blocks on {cores_there(profile, chip)} cores: they run in {number} waves"


def waves_json(profile: Profile, chip: Chip) -> dict[str, int | str]:
    """The fields of a JSON record: ``waves``, and a ``note`` where there are several."""
    note = waves_note(profile, chip)
    return {"waves": waves(profile, chip), **({"note": note} if note else {})}


def turns(cores: int, chip: Chip) -> int:
    """Cores wait for their first instructions in turns of some at a time (``launch.at_once``): in how many."""
    return -(-cores // int(chip.values.get("launch.at_once", 1)))


def turn_us(profile: Profile, chip: Chip) -> float:
    """Microseconds that each turn of cores starts later than the one before.

    What the mean core waited says it: (1 + ... + turns) / turns of them, less what it was handed out later.
    """
    at_once, fetch, head, operator_head, dispatch = (
        float(chip.values.get(f"launch.{key}", 0))
        for key in ("at_once", "fetch_us", "core_head_us", "operator_head_us", "dispatch_us")
    )
    used = cores_used(profile, chip)
    mean = (turns(used, chip) + 1) / 2
    waited = profile.counters.get("core_start_us", 0.0) - head + dispatch * (used - 1) / 2
    # Kernels with tiling data, which take more to fetch, begin later on every core as well.
    if waited > operator_head + at_once * fetch * mean:
        waited -= operator_head
    return max(0.0, waited) / mean
