"""One run of one method on one operator: what counts, and the record that is kept of it.

The rules are the same for everybody: the baseline is evaluation 1; a pair, or a launch, that this run has seen already
is answered from memory and costs no evaluation (at most four such answers for an evaluation of the budget); whatever
fails the gate costs one; what is accepted in the end is what the tuner would accept (search/acceptance.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..errors import NoWorkingCandidate
from ..evaluate.bound import bound_of
from ..evaluate.gate import Checked
from ..nouns.clocks import Interval, interval
from ..nouns.history import History
from ..nouns.operator import Candidate, Pair
from ..nouns.outcome import Outcome, Timed, reason_of
from ..nouns.trial import Move, Proposal, Trial
from ..search.acceptance import accept
from ..search.engine import SearchOptions
from ..search.proposer import SearchState
from .gain import launch_us
from .record import RunRecord, Step


class RunSubject(Protocol):
    """What a run needs of :class:`~.subject.Subject`; tests give their own."""

    operator: Any
    case: Any
    chip: Any
    signature: Any
    seconds: float

    def outcome(self, pair: Pair) -> Outcome: ...

    def launch(self, pair: Pair) -> str | None: ...

    def speedups(self, pair: Pair) -> Sequence[float]: ...

    def confirm(self, pair: Pair) -> Checked: ...

    def keep(self, pair: Pair) -> None: ...


class Spent(Exception):
    """The budget is spent: the method ends here."""


class Run:
    """The budget and the history of a method that proposes one pair after the other."""

    def __init__(self, subject: RunSubject, seed: int, budget: int) -> None:
        self.subject, self.seed, self.budget = subject, seed, budget
        self.history: list[Trial] = []
        self._by_pair: dict[str, Trial] = {}
        self._by_launch: dict[str, Trial] = {}
        self.evaluations = 0
        self._most_repeats = SearchOptions(budget).duplicates_per_evaluation * budget
        self._repeats = 0
        self.asked = 0  # proposals given out that need not have come back
        self._promised: dict[str, tuple[str, int, tuple[Move, ...], int]] = {}
        self.baseline = self.attempt(subject.operator.baseline, "as written", parent=None)

    @property
    def incumbent(self) -> Trial:
        """The fastest trial so far; the older of equals."""
        return next(iter(History(self.history).fastest_first), self.baseline)

    @property
    def valid(self) -> list[Trial]:
        """Evaluated trials that passed the gate."""
        return list(History(self.history).timed)

    def attempt(
        self, pair: Pair, change: str, parent: int | None = 0, moves: tuple[Move, ...] = (), stage: int = 0
    ) -> Trial:
        """What becomes of ``pair``. Raises Spent when that takes an evaluation that the budget hasn't."""
        known = self._by_pair.get(pair.hash)
        if known is not None:
            self._repeated()
            return known
        launch = self.subject.launch(pair)
        twin = self._by_launch.get(launch) if launch is not None else None
        change, parent, moves, stage = self._promised.get(pair.hash, (change, parent, moves, stage))
        candidate = Candidate(len(self.history), pair, parent, "", change)
        if twin is not None:
            self._repeated()
            trial = Trial(candidate, twin.outcome, moves, 1, stage, twin.candidate.id, launch)
        else:
            if self.evaluations >= self.budget:
                raise Spent
            self.evaluations += 1
            trial = Trial(candidate, self.subject.outcome(pair), moves, 1, stage, None, launch)
            if launch is not None:
                self._by_launch[launch] = trial
        self.history.append(trial)
        self._by_pair[pair.hash] = trial
        return trial

    def promise(self, proposal: Proposal, stage: int) -> None:
        """Remembers what a proposal does, for when its pair is attempted by somebody who knows its text only."""
        self.asked += 1
        self._promised[proposal.pair.hash] = (proposal.change, proposal.parent, proposal.moves, stage)

    def _repeated(self) -> None:
        self._repeats += 1
        if self._repeats > self._most_repeats:
            raise Spent

    def state(self, stage: int, incumbent: Trial | None = None, history: Sequence[Trial] | None = None) -> SearchState:
        """What a rule proposer is told, with this trial as the pair to change."""
        s = self.subject
        seen = frozenset(self._by_pair) | frozenset(self._promised)
        shown = History(self.history if history is None else history)
        best = incumbent or self.incumbent
        return SearchState(s.operator, s.case, s.chip, s.signature, self.baseline, best, shown, self.seed, seen, stage)


Method = Callable[[RunSubject, int, int], Sequence[Trial]]


def record(subject: RunSubject, method: Method, seed: int, budget: int, /, **about: Any) -> RunRecord:
    """Runs ``method`` and judges what it found. ``about``: the fields that say which run this is.

    Raises:
        NoWorkingCandidate: the baseline pair does not pass the gate.
    """
    started, answering = time.monotonic(), subject.seconds
    history = History(method(subject, seed, budget))
    evaluate_s = subject.seconds - answering
    proposer_s = time.monotonic() - started - evaluate_s
    evaluated = history.evaluated
    baseline = evaluated[0].time_us
    if baseline is None:
        outcome = evaluated[0].outcome
        reason = reason_of(outcome)
        raise NoWorkingCandidate(f"the baseline pair did not pass the gate ({type(outcome).__name__}: {reason}).")
    accepted = accept(evaluated[1:], evaluated[0], subject, "virtual")
    best = accepted.winner[0] if accepted.winner is not None else evaluated[0]
    # As written is as fast as written, whatever the clock.
    found = interval(accepted.speedups) if accepted.winner is not None else Interval(1.0, 1.0, 0.0)
    fragile = (f"trial {number}: {one}" for number, one in accepted.decision.fragile.items())
    subject.keep(best.candidate.pair)
    ends = evaluated[0], best
    return RunRecord(
        seed=seed,
        budget=budget,
        baseline_us=baseline,
        best_us=best.time_us or baseline,
        best_at=evaluated.index(best) + 1,
        trace=tuple(t.time_us for t in evaluated),
        outcomes=dict(history.outcomes.most_common()),
        repeats=len(history) - len(evaluated),
        refused=(*accepted.refused, *fragile),
        best_pair=best.candidate.pair.hash,
        steps=_steps(history, best),
        speedup_low=found.low if found is not None else None,
        speedup_high=found.high if found is not None else None,
        wins=found.wins if found is not None else None,
        over_clocks=accepted.speedups,
        bound_us=bound_of(
            subject.case, [t.outcome.profile for t in ends if isinstance(t.outcome, Timed)], subject.chip
        ),
        proposer_s=round(proposer_s, 4),
        evaluate_s=round(evaluate_s, 4),
        **about,
    )


def _steps(history: History, best: Trial) -> tuple[Step, ...]:
    """From the baseline to the best pair, in order. Parents that failed the gate have no time and are left out."""
    return tuple(
        Step(t.stage, t.candidate.change, t.outcome.profile.task_duration_us, launch_us(t.outcome.profile))
        for t in history.lineage(best)
        if isinstance(t.outcome, Timed)
    )
