"""What a tuning run teaches: whether the experience it was given helped, and how motifs did on its kernels.

A *use* is recorded for every trial of Stage II that one experience led to: that of the one motif it applied, or the
one a language model was asked to apply. An *experience* is made of the first trial of its kind: motif, operator, dtype,
size, chip, and whether it helped. So a bank grows with what is new in a run, not with the number of runs. What the gate
refused and what was no faster is kept as well, as negative experience.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..nouns.case import Case, flatten
from ..nouns.chip import Chip
from ..nouns.history import History
from ..nouns.operator import Operator
from ..nouns.outcome import Timed
from ..nouns.trial import Trial
from ..search.kernel.motifs import MOTIFS
from ..search.kernel.reading.kernel_program import KernelProgram
from .bank import Bank, Records
from .distill import Evidence, distill, regime
from .experience import Experience, ExperienceProvenance, Use
from .rewind import Removal, RewindStep, step_of

_EXPERIENCE = "experience:"  # llm/proposers.py: the site of a move that applies one
_NAMES = frozenset(m.name for m in MOTIFS)


@dataclass(frozen=True)
class LearningRun:
    """A finished tuning run, named by its key's hash.

    ``found``: by pair hash, the experiences that were retrieved while the pair was the incumbent.
    """

    name: str
    operator: Operator
    case: Case
    chip: Chip
    target: str
    history: Sequence[Trial]
    found: Mapping[str, Sequence[Experience]]
    seed: int
    version: str  # of ascendopt_tune
    toolkit: str


def learned(run: LearningRun, bank: Bank) -> Records:
    """Uses and experiences of ``run``; experiences only of a kind that ``bank`` doesn't have."""
    experiences: dict[str, Experience] = {}
    uses: set[Use] = set()
    known = {_kind(e) for e in bank}
    for trial, step in _steps(run):
        name = f"{run.name}/{trial.candidate.pair.hash}"
        uses |= {Use(e, name, step.verdict == "hurts") for e in _applied(run, step, trial)}
        motif = step.removal.motif
        if motif in _NAMES and (kind := _kind_of(run, step)) not in known:
            kernel = KernelProgram(
                step.slow.kernel, step.slow.tiling, run.chip, run.operator.auto_sync, trial.tiling_key
            )
            evidence = Evidence(step, run.operator, run.case, run.chip, run.target, kernel)
            made = distill(
                evidence, ExperienceProvenance("refinement", "", run.seed, run.version, run.toolkit, run.name)
            )
            if made is not None:
                experiences[made.id] = made
                known.add(kind)
    return Records(experiences, frozenset(uses))


def led_to(found: Mapping[str, Sequence[Experience]], parent: Trial, trial: Trial) -> list[Experience]:
    """The experiences that ``trial`` came from: those that were found for its parent's pair, of a motif it applied, or
    the one a language model says it used. ``found`` as in :class:`LearningRun`."""
    names = {name for move in trial.moves for name in (move.family, move.site.removeprefix(_EXPERIENCE))}
    return [e for e in found.get(parent.candidate.pair.hash, ()) if names & {e.motif, e.id}]


def _steps(run: LearningRun) -> Iterator[tuple[Trial, RewindStep]]:
    """Trials of Stage II that applied one motif (at one or more places), or one experience."""
    history = History.of(run.history)
    for trial in history:
        parent = history.parent(trial)
        if trial.stage != 2 or trial.duplicate_of is not None or parent is None:
            continue
        names = {m.family if m.family in _NAMES else m.site for m in trial.moves if _is_named(m.family)}
        if len(names) != 1 or not isinstance(parent.outcome, Timed):
            continue
        sites = [m.site.partition("@")[2] for m in trial.moves if m.family in _NAMES]
        removal = Removal(names.pop(), ", ".join(sites), trial.candidate.change, trial.candidate.pair)
        yield trial, step_of(removal, (), parent.candidate.pair, parent.outcome.profile, trial.outcome, forward=True)


def _is_named(family: str) -> bool:
    return family in _NAMES or family == "experience"


def _applied(run: LearningRun, step: RewindStep, trial: Trial) -> list[str]:
    """Ids of the experience the trial is a use of."""
    name = step.removal.motif
    if name.startswith(_EXPERIENCE):
        return [name.removeprefix(_EXPERIENCE)]
    return [e.id for e in run.found.get(step.slow.hash, ()) if e.motif == name]


def _kind(e: Experience) -> tuple[str, ...]:
    return e.motif, e.operator, e.dtype, e.regime, e.chip, e.target, e.kind


def _kind_of(run: LearningRun, step: RewindStep) -> tuple[str, ...]:
    tensors = flatten((*run.case.inputs, *run.case.outputs))
    dtype = tensors[0].dtype if tensors else ""
    kind = "positive" if step.verdict == "hurts" else "negative"
    size = regime(run.case, run.chip)
    return step.removal.motif, run.operator.name, dtype, size, run.chip.name, run.target, kind
