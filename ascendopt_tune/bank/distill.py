"""From one measured removal to an experience: what it was, what the slow kernel shows, what it was worth."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..nouns.case import Case, flatten
from ..nouns.chip import Chip
from ..nouns.operator import Operator, Pair
from ..nouns.outcome import Timed
from ..nouns.profile import Profile
from ..search.kernel.motifs import find
from ..search.kernel.reading.kernel_program import KernelProgram
from .experience import Experience, ExperienceProvenance
from .rewind import RewindStep
from .symptoms import symptoms

_PIPES = {
    "aiv_vec_time_us": "vector pipe",
    "aiv_scalar_time_us": "scalar unit",
    "aiv_mte2_time_us": "MTE2",
    "aiv_mte3_time_us": "MTE3",
}
_BLOCK = 32  # bytes: what UB and copies are made of


@dataclass(frozen=True)
class Texts:
    """What a person, or a model, is told. ``bottleneck`` is the retrieval key and never names the motif."""

    title: str
    description: str
    bottleneck: str
    preconditions: str


@dataclass(frozen=True)
class Evidence:
    """A step and all it was measured on; ``slow`` is the parsed slower kernel."""

    step: RewindStep
    operator: Operator
    case: Case
    chip: Chip
    target: str
    slow: KernelProgram


Distiller = Callable[[Evidence], Texts]


def by_rules(evidence: Evidence) -> Texts:
    """Texts of the motif, and what the profiles say.

    Raises:
        KeyError: no motif has the removal's name (a language model's removals come with texts of their own).
    """
    step = evidence.step
    assert step.before is not None
    motif = find(step.removal.motif)
    told = effect(step.before, step.after, evidence.target) if step.after is not None else ""
    return Texts(
        title=motif.title,
        description=f"{motif.description} {told}".strip(),
        bottleneck=symptoms(step.before, evidence.chip, evidence.slow),
        preconditions=motif.preconditions,
    )


def distill(evidence: Evidence, provenance: ExperienceProvenance, distiller: Distiller = by_rules) -> Experience | None:
    """The experience of a step: negative where the optimization made no difference, or the gate refused the kernel it
    was put into. None where the gate refused a kernel without it: that says nothing about speed."""
    step = evidence.step
    if step.before is None:
        return None
    reasons = {"harmless": "with it the task is no faster, beyond noise", "hurts": ""}
    failed = "" if isinstance(step.outcome, Timed) else f"{type(step.outcome).__name__}: {step.outcome.reason}"
    texts = distiller(evidence)
    tensors = flatten((*evidence.case.inputs, *evidence.case.outputs))
    return Experience(
        motif=step.removal.motif,
        title=texts.title,
        description=texts.description,
        bottleneck=texts.bottleneck,
        diff=diff(step.slow, step.fast),
        before=step.before,
        after=step.after,
        preconditions=texts.preconditions,
        site=step.removal.site,
        operator=evidence.operator.name,
        case=str(evidence.case),
        dtype=tensors[0].dtype if tensors else "",
        regime=regime(evidence.case, evidence.chip),
        chip=evidence.chip.name,
        target=evidence.target,
        kind="positive" if step.verdict == "hurts" else "negative",
        reason=reasons.get(step.verdict, failed),
        provenance=provenance,
    )


def effect(slow: Profile, fast: Profile, target: str) -> str:
    """One sentence: what the change did to the task's time, and to the pipe whose time it changed most."""
    word = "modelled" if target == "virtual" else "measured"
    ratio = slow.task_duration_us / fast.task_duration_us if fast.task_duration_us else math.inf
    parts = [f"{slow.task_duration_us:.2f} us became {fast.task_duration_us:.2f} us ({word}, {ratio:.2f}x)"]
    changes = {name: getattr(slow.detail, name) - getattr(fast.detail, name) for name in _PIPES}
    most = max(changes, key=lambda name: (abs(changes[name]), name))
    if changes[most]:
        whose = "" if slow.modelled is None else " by the virtual NPU's model"
        us = f"{getattr(slow.detail, most):.2f} to {getattr(fast.detail, most):.2f} us"
        parts.append(f"{_PIPES[most]} {us} of a core's time{whose}")
    if slow.block_dim != fast.block_dim:
        parts.append(f"blocks {slow.block_dim} to {fast.block_dim}")
    return f"Here {', '.join(parts)}."


def diff(slow: Pair, fast: Pair) -> str:
    """Unified diff slow -> fast of every file that differs, tiling program first."""
    out: list[str] = []
    for old, new in ((slow.tiling, fast.tiling), (slow.kernel, fast.kernel)):
        for path in sorted({*old, *new}):
            a, b = (files.get(path, "").splitlines(keepends=True) for files in (old, new))
            out += difflib.unified_diff(a, b, f"slow/{path}", f"fast/{path}")
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in out)


def regime(case: Case, chip: Chip) -> str:
    """How large a case is for the chip, and whether its rows are whole blocks.

    Sizes compare the bytes of all tensors with the Unified Buffers of all cores: ``tiny`` below 1/64 (launching
    dominates), ``small`` below 1 (a tile or two for each core), ``large`` from there.
    """
    tensors = flatten((*case.inputs, *case.outputs))
    room = float(chip.values["core.aiv"]) * float(chip.values["memory.ub_bytes"])
    share = sum(t.nbytes for t in tensors) / room
    size = "tiny" if share < 1 / 64 else "small" if share < 1 else "large"
    row = tensors[0].shape[-1] * tensors[0].nbytes // max(1, tensors[0].numel) if tensors and tensors[0].shape else 0
    return f"{size}, {'whole blocks' if row and row % _BLOCK == 0 else 'rows of odd length'}"


def changed(slow: Mapping[str, str], fast: Mapping[str, str]) -> list[str]:
    """Paths whose texts differ."""
    return sorted(p for p in {*slow, *fast} if slow.get(p) != fast.get(p))
