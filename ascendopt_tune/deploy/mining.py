"""Filling the bank: for every operator, case and chip, rewind a strong pair and add what each removal was worth.

strong pair (as written, or tuned first) -> gate -> rewind -> distill -> bank. Every evaluation is journaled, every
experience is in the bank as soon as it is measured; an interrupted build goes on where it was.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain

from .. import paths
from ..bank.bank import Bank
from ..bank.distill import Distiller, Evidence, by_rules, distill
from ..bank.experience import Experience, ExperienceProvenance
from ..bank.rewind import Removal, Remover, RewindOptions, RewindStep, ahead, replay, rewind
from ..build.toolkit import Toolkit
from ..errors import NoWorkingCandidate
from ..evaluate.evaluator import Evaluator
from ..evaluate.gate import Gate
from ..files import write_whole
from ..nouns.case import Case
from ..nouns.chip import load_chip
from ..nouns.operator import Candidate, Operator, Pair, Signature
from ..nouns.outcome import Outcome, Timed
from ..nouns.run_options import RunOptions
from ..nouns.trial import Trial
from ..search.budget import Budget
from ..search.journal import Journal
from ..search.keep import package_version
from ..search.kernel.motifs import MOTIFS, Motif, Rewrite
from ..search.kernel.reading.kernel_program import KernelProgram
from ..store.entry import canonical, sha256
from ..tuner import tune_case


@dataclass(frozen=True)
class Unit:
    """One rewind: an operator on one case. ``words`` are the arguments that name it on the command line.

    ``path``: only this path of (motif, site) is followed, instead of a whole trajectory. ``tune``: evaluations spent on
    the pair before it is rewound; 0: it is taken as it is written. ``forward``: optimizations the pair lacks are put
    in, too (rewind.ahead). ``motifs``: only these; () for all.
    """

    operator: Operator
    case: Case
    chip: str
    words: tuple[str, ...]
    seed: int = 0
    tune: int = 0
    options: RewindOptions = field(default_factory=RewindOptions)
    path: tuple[tuple[str, str], ...] = ()
    forward: bool = False
    signature: Signature | None = None
    motifs: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.operator.name} {self.case} on {self.chip}"

    @property
    def tried(self) -> tuple[Motif, ...]:
        """The motifs that are taken out and put in."""
        return tuple(m for m in MOTIFS if m.name in self.motifs or not self.motifs)

    def command(self, path: Sequence[tuple[str, str]], target: str) -> str:
        """The command line that measures the last removal of ``path`` again."""
        words = ["ascendopt-tune", "bank", "build", *self.words, "--chip", self.chip, "--target", target]
        words += ["--seed", str(self.seed)]
        words += ["--tune", str(self.tune)] if self.tune else []
        for motif, site in path:
            words += ["--step", f"{motif}:{site}"]
        return shlex.join(words)


@dataclass(frozen=True)
class Found:
    """One step of a build and what it added. ``experience`` is None where the gate refused the slower pair."""

    unit: Unit
    step: RewindStep
    experience: Experience | None
    new: bool


def motif_remover(operator: Operator, tiling_key: int | None, motifs: Sequence[Motif] = MOTIFS) -> Remover:
    """What the motifs can take out of a pair of ``operator``."""
    return _changer(operator, tiling_key, motifs, lambda motif, kernel: motif.rewind(kernel))


def motif_applier(operator: Operator, tiling_key: int | None, motifs: Sequence[Motif] = MOTIFS) -> Remover:
    """What the motifs can put into a pair of ``operator``."""
    return _changer(operator, tiling_key, motifs, lambda motif, kernel: motif.optimize(kernel))


def _changer(
    operator: Operator,
    tiling_key: int | None,
    motifs: Sequence[Motif],
    rewrites: Callable[[Motif, KernelProgram], Iterator[Rewrite]],
) -> Remover:
    def change(pair: Pair) -> Iterator[Removal]:
        kernel = KernelProgram(pair.kernel, tiling=pair.tiling, auto_sync=operator.auto_sync, tiling_key=tiling_key)
        for motif in motifs:
            for r in rewrites(motif, kernel):
                yield Removal(motif.name, r.site, r.change, Pair(r.tiling(kernel), r.kernel(kernel)))

    return change


def build(
    unit: Unit,
    bank: Bank,
    toolkit: Toolkit,
    *,
    evaluator: Evaluator,
    remover: Remover | None = None,
    distiller: Distiller = by_rules,
    resume: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[Found]:
    """The steps of one unit as they are measured; what they teach is in ``bank`` before they are yielded.

    With ``resume``, outcomes an earlier build journaled are taken from there, and a unit it finished, with the motifs
    there are now, yields nothing.

    Raises:
        NoWorkingCandidate: the pair that is to be rewound doesn't pass the gate itself.
    """
    log = paths.cache_dir() / "journals" / f"bank-{_name(unit, toolkit)}.jsonl"
    done, tried = log.with_suffix(".done"), canonical([unit.forward, *sorted(m.name for m in unit.tried)])
    if resume and done.exists() and done.read_text(encoding="utf-8") == tried:
        return
    if not resume:
        log.unlink(missing_ok=True)
    done.unlink(missing_ok=True)
    chip = load_chip(unit.chip)
    gate = Gate(unit.operator, unit.case, evaluator, seed=unit.seed, signature=unit.signature)
    say(f"measuring {unit}")
    first = gate.evaluate(unit.operator.baseline)
    strong, outcome = unit.operator.baseline, first.outcome
    if unit.tune and isinstance(outcome, Timed):
        strong, outcome = _tuned(unit, gate, toolkit, say)
    if not isinstance(outcome, Timed):
        raise NoWorkingCandidate(f"{unit} does not pass the gate: {outcome.reason}.", "Choose another case.")
    key = first.tiling.tiling_key if first.tiling is not None and unit.operator.direct is None else None
    remover = remover or motif_remover(unit.operator, key, unit.tried)
    applier = motif_applier(unit.operator, key, unit.tried)
    with Journal(log, {"unit": _name(unit, toolkit)}) as journal:
        measure = _journaled(gate, journal, unit.operator.baseline)
        if unit.path:
            steps = replay(strong, outcome.profile, remover, applier, measure, unit.path, unit.options)
        else:
            steps = rewind(strong, outcome.profile, remover, measure, unit.options)
            if unit.forward:
                steps = chain(steps, ahead(strong, outcome.profile, applier, measure, unit.options))
        for step in steps:
            slow = step.slow
            kernel = KernelProgram(slow.kernel, tiling=slow.tiling, auto_sync=unit.operator.auto_sync, tiling_key=key)
            evidence = Evidence(step, unit.operator, unit.case, chip, toolkit.target, kernel)
            command = unit.command(step.path, toolkit.target)
            provenance = ExperienceProvenance("rewind", command, unit.seed, package_version(), toolkit.version)
            made = distill(evidence, provenance, distiller)
            yield Found(unit, step, made, bank.add([made]) > 0 if made is not None else False)
    write_whole(done, tried)


def _tuned(unit: Unit, gate: Gate, toolkit: Toolkit, say: Callable[[str], None]) -> tuple[Pair, Outcome]:
    say(f"tuning {unit} first")
    record = tune_case(
        unit.operator,
        unit.case,
        # warm_start: the same command has to find the same, whatever else is cached
        RunOptions(unit.chip, toolkit.target, unit.seed, unit.tune, warm_start=False),
        signature=unit.signature,
        say=say,
    )
    pair = record.entry.pair
    return pair, gate.evaluate(pair).outcome


def _journaled(
    gate: Gate, journal: Journal, baseline: Pair
) -> Callable[[Mapping[int, Pair]], Iterator[tuple[int, Outcome]]]:
    budget = Budget()

    def measure(pairs: Mapping[int, Pair]) -> Iterator[tuple[int, Outcome]]:
        recorded = journal.recorded.outcomes
        for number, pair in pairs.items():
            if pair.hash in recorded:
                yield number, recorded[pair.hash]
        clock = time.monotonic()
        for number, checked in gate.evaluate_many({n: p for n, p in pairs.items() if p.hash not in recorded}):
            trial = Trial(Candidate(number, pairs[number], None, "rewind", ""), checked.outcome)
            journal.write(trial, baseline, time.monotonic() - clock, budget.spent())
            clock = time.monotonic()
            yield number, checked.outcome

    return measure


def _name(unit: Unit, toolkit: Toolkit) -> str:
    """What makes two builds the same build."""
    operator = unit.operator
    what: list[object] = [operator.name, operator.baseline.hash, unit.case.to_json(), unit.chip]
    what += [toolkit.target, toolkit.version, package_version(), unit.seed, unit.tune, asdict(unit.options)]
    return sha256(canonical([*what, [list(step) for step in unit.path]]).encode())[:24]
