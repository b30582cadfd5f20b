"""What a slow kernel shows: the retrieval key of an experience, and the query Stage II asks the bank with.

Both are the same text, made the same way: the diagnosis of the profile, sizes of copies and instructions, then what the
syntax trees show (code_facts.py). Nothing in it knows of motifs; it says what is there, not what to do.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..evaluate.cores import cores_used
from ..evaluate.diagnosis import diagnose
from ..nouns.chip import Chip
from ..nouns.profile import Profile
from ..search.kernel.reading.kernel_program import KernelProgram
from .code_facts import code_facts
from .embedding import PART


def symptoms(profile: Profile, chip: Chip, kernel: KernelProgram) -> str:
    """The text. ``profile`` is the kernel's own, taken on ``chip``; of a device's time the modelled one counts."""
    profile = profile.detail
    told = diagnose(profile, chip)
    also = [f"{f.text}." for f in told.findings[2:]]  # the paragraph has the first two
    facts = "; ".join([*_sizes(profile, chip), *code_facts(kernel)])
    return " ".join([told.paragraph, *also, f"{PART} {facts}." if facts else ""]).strip()


def _sizes(profile: Profile, chip: Chip) -> Iterator[str]:
    """Bytes of a copy and cycles of a vector instruction, in the mean, by their size."""
    counters = profile.counters
    for pipe, name in (("mte2", "copies_in"), ("mte3", "copies_out")):
        if count := counters.get(f"{pipe}_copies", 0.0):
            yield f"{name}_of_{_class(counters[f'{pipe}_bytes'] / count, (256, 2048, 8192))}_size"
    if count := counters.get("vec_instructions", 0.0):
        cycles = profile.aiv_vec_time_us * float(chip.values["core.clock_mhz"]) * cores_used(profile, chip)
        yield f"instructions_of_{_class(cycles / count, (20, 40, 100))}_length"


def _class(value: float, borders: tuple[float, float, float]) -> str:
    return ("tiny", "small", "medium", "large")[sum(value >= b for b in borders)]
