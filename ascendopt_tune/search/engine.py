"""Algorithm 1 of the paper: outer rounds of U Stage-I and S Stage-II steps under one budget of evaluations.

1. Evaluate the baseline pair; it is the first incumbent and costs one evaluation.
2. Each round inherits the best pair. Joint moves, which change both programs at once, come first where there are any
   (at most ``joint_steps``). Stage I asks its proposers for tiling programs with the kernel fixed, then Stage II for
   kernel programs with the best tiling program fixed; a stage without proposers gives its steps to the other one.
3. A proposal that repeats a text, or a launch (``fingerprint``), costs no evaluation.
4. A candidate becomes the incumbent only if it passed the gate and is strictly faster; ties keep the older one, and
   within a batch the smaller id wins.
5. Every trial is journaled as it ends. Interrupting keeps what was found; so does a limit on seconds. A limit on tokens
   or money ends the search where only a model had ideas left.

With the same seed, options and outcomes the run is the same, whatever order a batch finishes in.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from ..errors import CaseError, NoWorkingCandidate
from ..nouns.case import Case
from ..nouns.chip import Chip
from ..nouns.history import History
from ..nouns.operator import Candidate, Operator, Pair, Signature
from ..nouns.outcome import LaunchFailed, Outcome
from ..nouns.run_options import RunOptions
from ..nouns.trial import Proposal, Trial
from .budget import Budget
from .journal import Journal, Recorded
from .proposer import JOINT, Proposer, SearchState
from .schedule import SCHEDULES, plan

EvaluateMany = Callable[[Sequence[Candidate]], Iterable[tuple[int, Outcome]]]


@dataclass(frozen=True)
class SearchOptions:
    """``budget`` counts evaluations, the baseline's included (the paper: 40, switching stages every 10). A stage with 0
    steps is left out.

    ``parallel`` candidates are proposed and evaluated together; it is part of what makes a run reproducible.
    ``min_gain``: a candidate must be faster by more than this share of the incumbent's time (0 where times don't vary).
    ``duplicates_per_evaluation`` bounds how many repeated launches may be screened for one evaluation.
    ``schedule``: one of ``SCHEDULES`` (schedule.py). ``joint_steps``: of a round, at its start but for the opening,
    where both stages have steps.

    Raises:
        CaseError: an unknown schedule.
    """

    budget: int = 40
    stage1_steps: int = 10
    stage2_steps: int = 10
    parallel: int = 1
    seed: int = 0
    min_gain: float = 0.0
    duplicates_per_evaluation: int = 4
    schedule: str = SCHEDULES[0]
    joint_steps: int = 4

    @staticmethod
    def of(options: RunOptions, parallel: int, min_gain: float) -> SearchOptions:
        """What the search needs to know of a run's options."""
        first, second = options.steps
        return SearchOptions(options.budget, first, second, parallel, options.seed, min_gain, schedule=options.schedule)

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise CaseError(f"unknown schedule {self.schedule!r}.", f"Known ones: {', '.join(SCHEDULES)}.")


@dataclass(frozen=True)
class Progress:
    """Sent after every trial. Times in microseconds of the target's clock, ``eta_s`` in seconds of the wall clock."""

    n: int  # evaluations spent
    budget: int
    round: int
    stage: int
    baseline_us: float
    incumbent_us: float
    outcomes: Mapping[str, int]
    duplicates: int
    eta_s: float
    trial: Trial
    improved: bool


@dataclass(frozen=True)
class SearchResult:
    """``stop``: ``budget``, ``exhausted`` (no proposal left), ``interrupted``, or what Budget.exceeded says.

    ``history`` is in order of candidate ids, which are consecutive, except when a parallel batch was interrupted.
    """

    baseline: Trial
    best: Trial
    history: History
    stop: str
    elapsed_s: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "history", History.of(self.history))  # whatever sequence it was given as

    @property
    def evaluations(self) -> int:
        return len(self.history.evaluated)

    @property
    def outcomes(self) -> dict[str, int]:
        """Evaluations by kind of outcome, most frequent first."""
        return dict(self.history.outcomes.most_common())

    @property
    def lineage(self) -> tuple[Trial, ...]:
        """From the baseline to the best trial, each the parent of the next: the changes that led there."""
        return self.history.lineage(self.best)

    @property
    def speedup(self) -> float:
        """Baseline time over best time; 1.0 when nothing faster was found."""
        assert self.baseline.time_us is not None
        assert self.best.time_us is not None
        return self.baseline.time_us / self.best.time_us if self.best.time_us > 0 else 1.0


def run_header(key: str, options: SearchOptions, proposers: Sequence[Proposer]) -> dict[str, object]:
    """What makes two runs the same run, for the journal; budget and limits may grow when a run is resumed.

    ``key`` names operator, case, chip, target and toolkit (``Key.hash``).
    """
    fixed = {name: value for name, value in asdict(options).items() if name != "budget"}
    return {"key": key, "options": fixed, "proposers": [f"{p.stage} {p.name}" for p in proposers]}


def one_by_one(evaluate: Callable[[Candidate], Outcome]) -> EvaluateMany:
    """An ``EvaluateMany`` that evaluates the batch in order."""

    def run(candidates: Sequence[Candidate]) -> Iterator[tuple[int, Outcome]]:
        for c in candidates:
            yield c.id, evaluate(c)

    return run


@dataclass
class Search:
    """One run. ``evaluate_many`` yields (candidate id, outcome) as evaluations end, in any order, each id once.

    ``fingerprint(candidate)`` names the launch a candidate leads to (its tiling result and kernel), or None if that is
    unknown or fails; equal names mean equal results. ``prepare(pairs)`` hears which of them will be named next, so that
    what names them may run at the same time. ``limits`` is asked before each batch, except while a resumed run repeats
    what its journal has. ``starters`` propose before the rounds begin, until they have no more ideas.
    """

    operator: Operator
    case: Case
    chip: Chip
    proposers: Sequence[Proposer]
    evaluate_many: EvaluateMany
    options: SearchOptions = field(default_factory=SearchOptions)
    signature: Signature | None = None
    journal: Journal | None = None
    progress: Callable[[Progress], None] | None = None
    fingerprint: Callable[[Candidate], str | None] | None = None
    prepare: Callable[[Sequence[Pair]], None] | None = None
    limits: Budget = field(default_factory=Budget)
    starters: Sequence[Proposer] = ()

    def __post_init__(self) -> None:
        self._history: list[Trial] = []
        self._seen: set[str] = set()
        self._launches: dict[str, int] = {}
        self._duplicates = 0
        self._round = 0
        self._started = time.monotonic()
        self._first_s = 0.0
        self._to_replay = 0  # trials of the journal that the run has not come to yet

    # -- the story ---------------------------------------------------------------------------------------------

    def run(self) -> SearchResult:
        """Search until the budget is spent or nothing is left to try.

        Raises:
            NoWorkingCandidate: the baseline pair itself did not pass the gate.
            KeyboardInterrupt: interrupted before the baseline was evaluated.
        """
        self._started = time.monotonic()
        if self.journal is not None:
            self._to_replay = len(self.journal.recorded.pairs)
            self.limits.resume(self.journal.recorded.spent)
        first = Candidate(0, self.operator.baseline, None, "baseline", "as written")
        self._seen.add(first.pair.hash)
        self._evaluate([Trial(first, LaunchFailed("not evaluated"), launch=self._launch(first))])
        if self._baseline.time_us is None:
            raise NoWorkingCandidate(_failures(self._history), "Fix the operator, or the case, and try again.")
        try:
            reason = self._rounds()
        except KeyboardInterrupt:
            reason = "interrupted"
        elapsed = time.monotonic() - self._started
        return SearchResult(self._baseline, self._incumbent, History(self._history), reason, elapsed)

    def _rounds(self) -> str:
        for starter in self.starters:
            reason = self._steps([starter], starter.stage, self.options.budget)
            if reason:
                return reason
        while True:
            self._round += 1
            spent = self._spent
            for stage, steps in self._schedule():
                reason = self._steps([p for p in self.proposers if p.stage == stage], stage, steps)
                if reason:
                    return reason
            if self._spent == spent:
                return self.limits.unasked() or "exhausted"

    def _schedule(self) -> list[tuple[int, int]]:
        """(stage, steps) of one round; the steps of a stage that has no proposer go to the other.

        Joint moves have theirs where both programs may change.
        """
        wanted = {s: n for s, n in ((1, self.options.stage1_steps), (2, self.options.stage2_steps)) if n > 0}
        present = [s for s in wanted if any(p.stage == s for p in self.proposers)]
        steps = {s: wanted[s] for s in present} if len(present) != 1 else {present[0]: sum(wanted.values())}
        joint = len(wanted) == 2 and any(p.stage == JOINT for p in self.proposers)
        return plan(self.options.schedule, steps, self._history, self.options.joint_steps if joint else 0)

    def _steps(self, proposers: Sequence[Proposer], stage: int, steps: int) -> str | None:
        """Up to ``steps`` evaluations, the proposers in turn; returns why the whole search ends, or None."""
        idle = 0
        turn = 0
        while steps > 0 and idle < len(proposers):
            if self._spent >= self.options.budget:
                return "budget"
            if self._to_replay <= 0 and (reason := self.limits.exceeded(self._spent)):
                return reason
            if self._duplicates > self.options.duplicates_per_evaluation * self.options.budget:
                return "exhausted"
            proposer = proposers[turn % len(proposers)]
            turn += 1
            n = min(self.options.parallel, steps, self.options.budget - self._spent)
            proposals = proposer.propose(self._state(stage), n)[:n]
            idle = 0 if proposals else idle + 1
            batch = self._fresh(proposals, proposer.name, stage)
            self._evaluate(batch)
            steps -= len(batch)
        return "budget" if self._spent >= self.options.budget else None

    # -- parts -------------------------------------------------------------------------------------------------

    @property
    def _spent(self) -> int:
        return sum(t.duplicate_of is None for t in self._history)

    def _launch(self, candidate: Candidate) -> str | None:
        if self.fingerprint is None:
            return None
        pair = candidate.pair.hash
        return self._recorded.launches.get(pair) if pair in self._recorded.pairs else self.fingerprint(candidate)

    @property
    def _recorded(self) -> Recorded:
        return self.journal.recorded if self.journal is not None else Recorded()

    def _fresh(self, proposals: Sequence[Proposal], proposer: str, stage: int) -> list[Trial]:
        """The proposals worth an evaluation, as trials to be filled; repeated launches are recorded at once."""
        if self.prepare is not None:
            known = self._seen | self._recorded.pairs
            self.prepare([p.pair for p in proposals if p.pair.hash not in known])
        fresh: list[Trial] = []
        launches: set[str] = set()
        for p in proposals:
            if p.pair.hash in self._seen:
                continue
            self._seen.add(p.pair.hash)
            candidate = Candidate(len(self._history), p.pair, p.parent, proposer, p.change)
            launch = self._launch(candidate)
            twin = self._launches.get(launch) if launch is not None else None
            if twin is not None:
                self._duplicates += 1
                outcome = self._history[twin].outcome
                self._keep(Trial(candidate, outcome, p.moves, self._round, stage, twin, launch), 0.0)
            elif launch is None or launch not in launches:  # a repeat inside the batch is just dropped
                launches |= {launch} if launch is not None else set()
                pending = LaunchFailed("not evaluated")
                fresh.append(Trial(candidate, pending, p.moves, self._round, stage, launch=launch))
        first = len(self._history)
        return [replace(t, candidate=replace(t.candidate, id=first + i)) for i, t in enumerate(fresh)]

    def _evaluate(self, batch: Sequence[Trial]) -> None:
        """Evaluate the batch, journal each trial as it ends, keep them in order of ids.

        When it is interrupted, the trials that ended are kept.
        """
        waiting = {t.candidate.id: t for t in batch}
        ended: dict[int, Trial] = {}
        clock = time.monotonic()
        try:
            for number, outcome in self._outcomes([t.candidate for t in batch]):
                trial = replace(waiting[number], outcome=outcome)
                if self.journal is not None:
                    self.journal.write(trial, self.operator.baseline, time.monotonic() - clock, self.limits.spent())
                ended[number] = trial  # not before it is on the disk: what is told is found again
                clock = time.monotonic()
        finally:
            for number in sorted(ended):
                self._keep(ended[number], None)

    def _outcomes(self, candidates: Sequence[Candidate]) -> Iterator[tuple[int, Outcome]]:
        """Outcomes of the candidates, from the journal where it has them."""
        recorded = self.journal.recorded.outcomes if self.journal is not None else {}
        left = [c for c in candidates if c.pair.hash not in recorded]
        for c in candidates:
            if c.pair.hash in recorded:
                yield c.id, recorded[c.pair.hash]
        if left:
            self._to_replay = 0  # the rest of the journal, if any, is of proposals that were not made again
            yield from self.evaluate_many(left)

    def _keep(self, trial: Trial, seconds: float | None) -> None:
        """Append the trial, move the incumbent if it is strictly faster, tell the listener.

        ``seconds``: journal it with this duration; None: it is in the journal already.
        """
        if self.journal is not None and seconds is not None:
            self.journal.write(trial, self.operator.baseline, seconds, self.limits.spent())
        self._history.append(trial)
        self._to_replay -= 1
        if trial.launch is not None and trial.duplicate_of is None:
            self._launches.setdefault(trial.launch, trial.candidate.id)
        first = len(self._history) == 1
        if first:
            self._baseline = self._incumbent = trial
            self._first_s = time.monotonic() - self._started
        now, best = trial.time_us, self._incumbent.time_us
        improved = not first and now is not None and best is not None and now < best * (1.0 - self.options.min_gain)
        if improved:
            self._incumbent = trial
        if self.progress is not None and self._incumbent.time_us is not None:
            self.progress(self._event(trial, improved))

    def _event(self, trial: Trial, improved: bool) -> Progress:
        assert self._baseline.time_us is not None
        assert self._incumbent.time_us is not None
        spent = self._spent
        searched = time.monotonic() - self._started - self._first_s  # the first one has what is made once
        return Progress(
            n=spent,
            budget=self.options.budget,
            round=trial.round,
            stage=trial.stage,
            baseline_us=self._baseline.time_us,
            incumbent_us=self._incumbent.time_us,
            outcomes=dict(History(self._history).outcomes),
            duplicates=self._duplicates,
            eta_s=searched / max(1, spent - 1) * (self.options.budget - spent),
            trial=trial,
            improved=improved,
        )

    def _state(self, stage: int) -> SearchState:
        return SearchState(
            self.operator, self.case, self.chip, self.signature, self._baseline, self._incumbent,
            History(self._history), self.options.seed, frozenset(self._seen), stage, self.fingerprint,
        )  # fmt: skip


def _failures(history: Sequence[Trial]) -> str:
    """Counts by outcome and the first reason of each kind, as one paragraph."""
    first: dict[str, str] = {}
    for t in history:
        first.setdefault(type(t.outcome).__name__, getattr(t.outcome, "reason", ""))
    counts = History.of(history).outcomes
    parts = [f"{counts[kind]} x {kind}: {reason}" for kind, reason in first.items()]
    return f"the baseline pair did not pass the gate ({'; '.join(parts)})."
