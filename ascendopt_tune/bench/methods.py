"""The methods that need nothing but this project: the search, its stages alone, and the plain ways to use its rules."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ..llm.choice import choose
from ..nouns.operator import Candidate
from ..nouns.outcome import Outcome
from ..nouns.trial import Proposal, Trial
from ..search.acceptance import MIN_EFFECT
from ..search.budget import Limits, Usage
from ..search.engine import Search, SearchOptions, one_by_one
from ..search.kernel.rules import rewrites_of
from ..search.proposer import JOINT, Proposer
from ..search.schedule import SCHEDULES
from ..search.tiling.context import Context
from ..search.tiling.rules import mutations
from ..search.tiling.slice import synthesize
from ..sources.cpp import Edit, apply_edits, breaks_syntax
from .run import Method, Run, RunSubject, Spent


def rule_proposers(stages: Sequence[int] = (1, 2)) -> list[Proposer]:
    """What the tuner proposes with when no language model is configured."""
    chosen = choose("rules", None, limits=Limits(), usage=Usage(), seed=0, say=lambda text: None)
    return [p for p in chosen.proposers if p.stage in stages]


def ours(stages: Sequence[int] = (1, 2, JOINT), schedule: str = SCHEDULES[0]) -> Method:
    """The search of the tuner as it is by default, without a warm start; with one stage only for comparison."""

    def method(subject: RunSubject, seed: int, budget: int) -> Sequence[Trial]:
        def evaluate(candidate: Candidate) -> Outcome:
            return subject.outcome(candidate.pair)

        search = Search(
            operator=subject.operator,
            case=subject.case,
            chip=subject.chip,
            proposers=rule_proposers(stages),
            evaluate_many=one_by_one(evaluate),
            options=SearchOptions(budget=budget, seed=seed, min_gain=MIN_EFFECT["virtual"], schedule=schedule),
            signature=subject.signature,
            fingerprint=lambda candidate: subject.launch(candidate.pair),
        )
        return search.run().history

    return method


def as_written(subject: RunSubject, seed: int, budget: int) -> Sequence[Trial]:
    """The baseline and nothing else: whether a case runs, and how long that takes."""
    return Run(subject, seed, budget).history


def best_of_n(subject: RunSubject, seed: int, budget: int) -> Sequence[Trial]:
    """Independent proposals from the baseline, the rules' own order, both stages in turn; nothing is learned."""
    run = Run(subject, seed, budget)
    most = budget * (1 + SearchOptions().duplicates_per_evaluation)
    lists = [p.propose(run.state(p.stage, run.baseline, [run.baseline]), most) for p in rule_proposers()]
    try:
        for place in range(most):
            for stage, proposals in enumerate(lists, start=1):
                if place < len(proposals):
                    p = proposals[place]
                    run.attempt(p.pair, p.change, 0, p.moves, stage)
    except Spent:
        pass
    return run.history


def uniform(parent_of: Callable[[Run, random.Random], Trial]) -> Method:
    """Any mutation that the rules of both stages know, each as likely as the other, of the parent chosen."""

    def method(subject: RunSubject, seed: int, budget: int) -> Sequence[Trial]:
        run = Run(subject, seed, budget)
        rng = random.Random(f"{seed}/uniform")
        pools: dict[int, Iterator[Proposal]] = {}
        idle = 0
        try:
            while idle < budget:
                parent = parent_of(run, rng)
                number = parent.candidate.id
                proposal = next(pools.setdefault(number, _drawn(run, parent, rng)), None)
                idle = idle + 1 if proposal is None else 0
                if proposal is not None:
                    run.attempt(proposal.pair, proposal.change, number, proposal.moves)
        except Spent:
            pass
        return run.history

    return method


def _drawn(run: Run, parent: Trial, rng: random.Random) -> Iterator[Proposal]:
    """The parent's mutations in random order."""
    pair = parent.candidate.pair
    operator = run.subject.operator
    ideas: list[Callable[[], Proposal | None]] = []

    def tiling(edits: Sequence[Edit], change: str) -> Callable[[], Proposal | None]:
        def make() -> Proposal | None:
            changed = apply_edits(pair.tiling, edits)
            if breaks_syntax(pair.tiling, changed):
                return None
            return Proposal(replace(pair, tiling=changed), change, parent.candidate.id)

        return make

    def kernel(edits: Sequence[Edit], host: Sequence[Edit], change: str) -> Callable[[], Proposal | None]:
        def make() -> Proposal | None:
            changed = replace(
                pair,
                kernel=apply_edits(pair.kernel, edits),
                tiling=apply_edits(pair.tiling, host),
            )
            return Proposal(changed, change, parent.candidate.id)

        return make

    context = Context.of(run.state(1, parent))
    ideas += [tiling(m.edits, m.change) for m in mutations(synthesize(pair.tiling), context)]
    for rewrites in rewrites_of(pair, operator.auto_sync).values():
        ideas += [kernel(r.edits, r.tiling_edits, f"{r.motif}: {r.change}") for r in rewrites]
    rng.shuffle(ideas)
    for make in ideas:
        proposal = make()
        if proposal is not None and proposal.pair.hash != pair.hash:
            yield proposal


def any_valid(run: Run, rng: random.Random) -> Trial:
    """Every trial that passed the gate is as likely to be the parent."""
    return rng.choice(run.valid)


def the_best(run: Run, rng: random.Random) -> Trial:
    return run.incumbent


#: Methods by name, in the order of the report.
OWN: dict[str, Method] = {
    "full": ours(),
    "stage-1": ours((1,)),
    "stage-2": ours((2,)),
    "best-of-n": best_of_n,
    "random": uniform(any_valid),
    "hill-climb": uniform(the_best),
}
