"""The story of a tuning run, top to bottom.

operator -> case -> cache? -> inputs and expected outputs -> candidates -> build -> check -> measure -> keep -> confirm
the winner on inputs the search never saw -> cache.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .bank.experience import Experience
from .bank.refinement import LearningRun, learned
from .build.toolkit import Toolkit, find
from .errors import CacheError, NoWorkingCandidate, OutOfTime
from .evaluate.bound import bound_of
from .evaluate.cores import waves_json
from .evaluate.evaluator import Evaluator
from .evaluate.gate import Gate
from .evaluate.joint import JointGate, WeightedCase, baseline_profiles, heaviest
from .evaluate.screen import Say, open_evaluator
from .llm.choice import choose
from .llm.endpoint import Endpoint
from .nouns.case import Case
from .nouns.chip import load_chip
from .nouns.history import History
from .nouns.operator import Candidate, Operator, Pair, Signature
from .nouns.outcome import Outcome, outcome_to_json
from .nouns.profile import Profile
from .nouns.run_options import RunOptions
from .nouns.trial import Trial
from .search.acceptance import MIN_EFFECT, Decision
from .search.budget import Budget, Limits
from .search.engine import Progress, Search, SearchOptions, SearchResult, run_header
from .search.journal import Journal
from .search.keep import Confirmed, Made, better, cached, confirm, entry_of, package_version, what_to_keep
from .search.tiling.warm_start import Neighbour, WarmStart, neighbours
from .settings import settings
from .sources.arguments import Array
from .sources.registry import operator_of
from .sources.specification import specification
from .store.cache import Cache, Entry, Key
from .store.entry import FINISHED, canonical, sha256

_PARALLEL = 2  # candidates proposed and evaluated together; fixed, because it is part of what makes a run reproducible

_STAGES = ("compile", "tiling", "execute", "check")

ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True)
class TuneRecord:
    """What one call of :func:`tune_case` came to. Times in us of the target's clock (modelled for ``virtual``)."""

    key: Key
    case: Case
    entry: Entry
    cached: bool
    history: History = field(default_factory=History)
    stop: str = "cached"
    seconds: float = 0.0
    timings_s: Mapping[str, float] = field(default_factory=dict)  # wall clock by stage, of all evaluations of the call
    llm: Mapping[str, object] = field(default_factory=dict)  # what a language model was asked, and what that cost
    decision: Decision | None = None  # None when the cache answered
    experience: Mapping[str, Sequence[Experience]] = field(
        default_factory=dict
    )  # found in the bank, by the pair's hash

    def __post_init__(self) -> None:
        object.__setattr__(self, "history", History.of(self.history))  # whatever sequence it was given as

    @property
    def baseline(self) -> Profile:
        return self.entry.baseline

    @property
    def best(self) -> Profile:
        return self.entry.best

    def to_json(self) -> dict[str, Any]:
        """The JSON record: what ``ascendopt-tune tune --json`` prints."""
        return {
            "operator": self.key.operator,
            "case": self.case.to_json(),
            "chip": self.key.chip,
            "target": self.key.target,
            "outcome": "Timed",
            "reference": self.entry.provenance.reference,
            "checks": self.entry.provenance.checks,
            "hazards": [],  # a pair with a hazard is never kept
            "profile": self.best.to_json(),
            "block_dim": self.entry.tiling.block_dim,
            "tiling_key": self.entry.tiling.tiling_key,
            "timings_s": {name: round(self.timings_s.get(name, 0.0), 3) for name in _STAGES},
            "baseline": self.baseline.to_json(),
            "best": self.best.to_json(),
            "speedup": self.entry.speedup,
            **(self.entry.interval.to_json() if self.entry.interval is not None else {}),
            **waves_json(self.best, load_chip(self.key.chip)),
            "bound_us": bound_of(self.case, [self.baseline, self.best], load_chip(self.key.chip)),
            "changes": list(self.entry.provenance.changes),
            "evaluations": self.entry.provenance.evaluations,
            "budget": self.entry.provenance.budget,
            "finished": self.entry.provenance.finished(self.entry.provenance.budget),
            "ended": self.entry.provenance.ended,
            "outcomes": dict(self.entry.provenance.outcomes),
            "cached": self.cached,
            "cache_key": self.key.hash,
            "stop": self.stop,
            "decision": self.entry.provenance.decision,
            "acceptance": self.decision.to_json() if self.decision is not None else None,
            "seconds": round(self.seconds, 3),
            "llm": dict(self.llm),
            "history": [_trial_json(t) for t in self.history],
        }


def _trial_json(trial: Trial) -> dict[str, Any]:
    c = trial.candidate
    return {
        "id": c.id,
        "parent": c.parent,
        "stage": trial.stage,
        "proposer": c.proposer,
        "change": c.change,
        "duplicate_of": trial.duplicate_of,
        **outcome_to_json(trial.outcome),
    }


def tune_case(
    operator: Operator | str | Path, case: Case, options: RunOptions | None = None, **given: Any
) -> TuneRecord:
    """The best pair for ``case``: from the cache, or found by a search and then cached.

    A run that was killed goes on where it was when it is started again in the same way, and so does one that Ctrl-C or
    a limit ended.

    Args:
        operator: an Operator, or what ``ascendopt-tune tune`` takes for one: a name of the registry, or a folder.
        options: how it is tuned (docs/options.md); default: what the environment says.
        given: what :func:`tune_cases` takes, and single options by name: ``tune_case(operator, case, budget=20)``.

    Raises:
        NoWorkingCandidate: not even the baseline pair passes the gate; the text says why.
        CacheError: another process is in the same run.
        AscendOptError: the operator doesn't build, the case doesn't fit it, the cache can't be written, ...
    """
    (record,) = tune_cases(operator, (WeightedCase(case),), options, **given)
    return record


def tune_cases(
    operator: Operator | str | Path,
    cases: Sequence[WeightedCase],
    options: RunOptions | None = None,
    *,
    cache: Cache | None = None,
    evaluator: Evaluator | None = None,
    signature: Signature | None = None,
    arrays: Mapping[str, Array] | None = None,
    progress: ProgressCallback | None = None,
    say: Say = lambda text: None,
    limits: Limits | None = None,
    endpoint: Endpoint | None = None,
    journal: Path | None = None,
    **changes: Any,
) -> list[TuneRecord]:
    """One pair for all ``cases``, tuned together; a record of each, all with the same history.

    A candidate's time is the weighted mean of the cases' relative times (evaluate/joint.py), and one evaluation is the
    candidate on every case. A case in which the common pair is no faster keeps its baseline, so the entries of the
    cache are a portfolio of at most two pairs with the case as the rule.

    Args:
        options: how they are tuned (docs/options.md); default: what the environment says.
        cache: default: that of the settings.
        evaluator: what compiles, runs and checks candidates, made for the target and chip of the options; whoever made
            it closes it. Default: one for this run.
        signature: names the parameters of a kernel for direct launch; other operators define it themselves.
        arrays: the caller's own inputs by name (lists as ``x.0``, ``x.1``) for a single case, which candidates are
            timed with.
        progress: told of every trial.
        say: told which long step begins.
        limits: those of this part of a run that is done in parts; they go before those of the options.
        endpoint: the language model; default: that of the options.
        journal: where every trial is recorded as it ends; default: below the cache folder.
        changes: single options by name, in place of those in ``options``.

    Raises as :func:`tune_case`.
    """
    options = replace(options or RunOptions(), **changes)
    operator = operator_of(operator)
    operator = operator.invariantly() if options.invariant else operator
    toolkit = evaluator.toolkit if evaluator is not None else find(options.target)
    run = _Run(operator, tuple(cases), options, toolkit, cache or Cache(), limits, endpoint, journal, say)
    known = run.cached()
    if known and run.is_enough(known):
        return [TuneRecord(k, c.case, e, cached=True) for k, c, e in zip(run.keys, cases, known, strict=True)]
    run.begin(known)
    with contextlib.ExitStack() as stack:
        stack.callback(run.chosen.close)
        if evaluator is None:
            evaluator = stack.enter_context(open_evaluator(toolkit, options.chip, workers=options.workers, say=say))
        found = run.search(evaluator, signature, arrays, progress)
        if found.result.stop == "interrupted":
            say("interrupted: keeping the best pair found so far (Ctrl-C again: end at once)")
        say("checking the best pair once more, on inputs the search never saw")
        confirmed = confirm(found.gate, found.result, toolkit.target)
        entries = run.keep(found, confirmed, known)
    try:
        run.learn(found.result)
    except KeyboardInterrupt:
        say("interrupted: the result is in the cache; what the run has learned is in no bank")
    seen, stop, elapsed = found.result.history, found.result.stop, found.result.elapsed_s
    spent, given = run.chosen.counts(), run.chosen.retrieval.found
    return [
        TuneRecord(k, c.case, e, False, seen, stop, elapsed, found.timings_s, spent, confirmed.decision, given)
        for k, c, e in zip(run.keys, cases, entries, strict=True)
    ]


@dataclass(frozen=True)
class _Found:
    """What a search came to, and the gate that judged it. ``timings_s``: by stage, of all evaluations."""

    gate: Gate | JointGate
    result: SearchResult
    signature: Signature | None  # as the operator defines it
    timings_s: Mapping[str, float]


class _Run:
    """One run: what identifies it, where it is recorded, who proposes, and its chapters in the order of the story."""

    def __init__(
        self,
        operator: Operator,
        cases: tuple[WeightedCase, ...],
        options: RunOptions,
        toolkit: Toolkit,
        cache: Cache,
        limits: Limits | None,
        endpoint: Endpoint | None,
        journal: Path | None,
        say: Say,
    ) -> None:
        self.operator, self.cases, self.options, self.toolkit, self.cache = operator, cases, options, toolkit, cache
        self._say = say
        chip = options.chip
        self.keys = [Key.of(operator, c.case, chip=chip, target=toolkit.target, toolkit=toolkit.version) for c in cases]
        self._weights = [c.weight for c in cases]
        self._specification = specification(operator)
        self._main = heaviest(self._weights)
        self.name = self.keys[0].hash
        if len(cases) > 1:
            together = [[key.hash, weight] for key, weight in zip(self.keys, self._weights, strict=True)]
            self.name = sha256(canonical(together).encode())
        endpoint, limits = _asking(options, endpoint, limits)
        self._spending = Budget(limits)
        self.chosen = choose(
            options.proposer, endpoint, limits=limits, usage=self._spending.usage, seed=options.seed, say=say,
            run=self.name,
        )  # fmt: skip
        self._search_options = SearchOptions.of(options, _PARALLEL, MIN_EFFECT[toolkit.target])
        header = run_header(self.name, self._search_options, self.chosen.proposers)
        self._header = header | {"warm_start": options.warm_start, "specification": self._specification}
        file = f"{self.name[:16]}-{sha256(canonical(self._header).encode())[:16]}.jsonl"
        self._journal = journal or cache.root / "journals" / file
        self._goes_on = options.resume and self._journal.exists()

    def cached(self) -> list[Entry] | None:
        """What the cache has for these cases, unless it is to be made anew, or was judged by something else."""
        known = None if self.options.retune else cached(self.cache, self.keys)
        if known and not all(entry.provenance.answers(self._specification) for entry in known):
            self._say("the operator's input domains, tolerances or reference have changed since: tuning anew")
            return None
        return known

    def is_enough(self, known: Sequence[Entry]) -> bool:
        """Whether the cache's answer is the answer."""
        finished = all(entry.provenance.finished(self.options.budget) for entry in known)
        return not self._goes_on and (self.options.accept_unfinished or finished)

    def begin(self, known: Sequence[Entry] | None) -> None:
        """Says what is gone on with, and forgets what isn't."""
        if known and not self._goes_on:
            search = known[0].provenance.search_text
            self._say(f"the cached result's search was not finished ({search}): going on with it")
        if self.options.resume and not self._goes_on:
            self._say("nothing to resume: starting at the beginning")
        if self.options.retune and not self.options.resume:
            try:
                self._journal.unlink(missing_ok=True)
            except OSError as error:
                raise CacheError(
                    f"the journal {self._journal} can't be removed: {error.strerror}.",
                    "Make its folder writable, or point ASCENDOPT_CACHE_DIR at another one.",
                ) from error

    def search(
        self,
        evaluator: Evaluator,
        signature: Signature | None,
        arrays: Mapping[str, Array] | None,
        progress: ProgressCallback | None,
    ) -> _Found:
        """Raises OutOfTime when a part of a run ended before anything faster was found."""
        operator, seed = self.operator, self.options.seed
        defined = evaluator.describe(operator).signature if not operator.direct else None
        gates = [
            Gate(operator, c.case, evaluator, seed=seed, signature=defined or signature, arrays=arrays)
            for c in self.cases
        ]
        self._say("building, running and checking the baseline pair")
        timings = dict.fromkeys(_STAGES, 0.0)
        try:
            with Journal(self._journal, self._header) as log:
                if log.recorded.outcomes:
                    self._say(
                        f"going on after {len(log.recorded.outcomes)} evaluations of the same run ({self._journal})"
                    )
                self.chosen.retrieval.fact = log.fact
                gate = self._joint(gates, log)
                result = Search(
                    operator=operator,
                    case=self.cases[self._main].case,
                    chip=load_chip(evaluator.modelled_chip),
                    proposers=self.chosen.proposers,
                    evaluate_many=_evaluate_many(gate, timings),
                    options=self._search_options,
                    signature=defined,
                    journal=log,
                    progress=progress,
                    fingerprint=lambda candidate: gate.fingerprint(candidate.pair),
                    prepare=gate.prepare,
                    limits=self._spending,
                    starters=[WarmStart(self._neighbours(log))],
                ).run()
        except NoWorkingCandidate:  # told to the user, who mends it; the next run measures anew
            self._has_served()
            raise
        for note in dict.fromkeys(note for g in gates for note in g.unwritten_notes):
            self._say(f"{note}; no candidate has to do better")
        if self._spending.limits.until is not None and result.stop == "seconds" and result.best is result.baseline:
            raise OutOfTime(f"the time was over after {result.evaluations} evaluations; nothing faster was found.")
        return _Found(gate, result, defined, timings)

    def _joint(self, gates: Sequence[Gate], log: Journal) -> Gate | JointGate:
        if len(gates) == 1:
            return gates[0]
        alone = log.fact("baselines", lambda: [p.to_json() for p in baseline_profiles(gates)])
        return JointGate(gates, self._weights, [Profile.from_json(p) for p in alone])

    def _neighbours(self, log: Journal) -> list[Neighbour]:
        def ask() -> list[dict[str, Any]]:
            if not self.options.warm_start:
                return []
            return [n.to_json() for n in neighbours(self.cache, self.operator, self.keys[self._main])]

        return [Neighbour.from_json(n) for n in log.fact("neighbours", ask)]

    def keep(self, found: _Found, confirmed: Confirmed, known: Sequence[Entry] | None) -> list[Entry]:
        """Writes every case's result to the cache, and returns it: the better one where there was one before."""
        together = tuple(key.hash for key in self.keys) if len(self.keys) > 1 else ()
        made = Made(
            self.operator, found.result, found.signature, self.options.seed, self.options.budget, self.toolkit.version,
            together, confirmed.trial.candidate.pair.hash if together else "",
        )  # fmt: skip
        kept = what_to_keep(found.gate, found.result, confirmed)
        entries = [entry_of(key, one, made) for key, one in zip(self.keys, kept, strict=True)]
        if known:
            entries = [better(one, other) for one, other in zip(known, entries, strict=True)]
        try:
            for entry in entries:
                self.cache.put(entry)
        except CacheError as error:
            there = f"The trials are in the journal {self._journal}: the same command with --resume goes on there."
            raise CacheError(error.message, f"{error.hint} {there}") from error
        return entries

    def learn(self, result: SearchResult) -> None:
        """Leaves to the experience bank what the run has learned; a journal that can't go on has served."""
        if self.options.warm_start and len(self.cases) == 1:
            run = LearningRun(
                self.name, self.operator, self.cases[0].case, load_chip(self.options.chip), self.toolkit.target,
                result.history, self.chosen.retrieval.found, self.options.seed, package_version(), self.toolkit.version,
            )  # fmt: skip
            self.chosen.retrieval.give(lambda bank: learned(run, bank))
        if result.stop in FINISHED:
            self._has_served()

    def _has_served(self) -> None:
        """The journal goes; where it can't, what it led to is none the worse."""
        with contextlib.suppress(OSError):
            self._journal.unlink(missing_ok=True)


def _asking(options: RunOptions, endpoint: Endpoint | None, limits: Limits | None) -> tuple[Endpoint | None, Limits]:
    """The language model, and the limits of the run: those given, a given model's own, then the options'."""
    limits = limits or Limits()
    if endpoint is None:
        endpoint = Endpoint.of(settings(), model=options.llm_model, base_url=options.llm_base_url)
    else:
        limits = limits.or_else(Limits(tokens=endpoint.max_tokens, money=endpoint.max_money))
    return endpoint, limits.or_else(Limits(options.max_seconds, options.max_tokens, options.max_money))


def _evaluate_many(
    gate: Gate | JointGate, timings: dict[str, float]
) -> Callable[[Sequence[Candidate]], Iterator[tuple[int, Outcome]]]:
    def run(candidates: Sequence[Candidate]) -> Iterator[tuple[int, Outcome]]:
        by_pair: dict[int, Pair] = {c.id: c.pair for c in candidates}
        for number, result in gate.evaluate_many(by_pair):
            for stage in timings:
                timings[stage] += result.timings_s.get(stage, 0.0)
            yield number, result.outcome

    return run
