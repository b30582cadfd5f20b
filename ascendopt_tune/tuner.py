"""The story of a tuning run, top to bottom.

operator -> case -> cache? -> inputs and expected outputs -> candidates -> build -> check -> measure -> keep -> confirm
the winner on inputs the search never saw -> cache.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from .bank.refinement import LearningRun, learned
from .build.toolkit import Toolkit, find
from .errors import NoWorkingCandidate, OutOfTime
from .evaluate.diagnosis import waves_json
from .evaluate.gate import Checked, Gate
from .evaluate.joint import JointGate, WeightedCase, baseline_profiles, heaviest
from .evaluate.screen import open_evaluator
from .llm.choice import choose
from .llm.endpoint import Endpoint
from .nouns.case import Case
from .nouns.chip import load_chip
from .nouns.clocks import Interval, interval
from .nouns.operator import Candidate, Operator, Pair, Signature
from .nouns.outcome import Outcome, Timed, outcome_to_json
from .nouns.profile import Profile
from .nouns.trial import Trial
from .search.acceptance import FRAGILE, MIN_EFFECT, NO_WIN, Comparison, Decision, accept
from .search.budget import Budget, Limits
from .search.engine import Progress, Search, SearchOptions, SearchResult, run_header
from .search.journal import Journal
from .search.schedule import SCHEDULES
from .search.tiling.warm_start import Neighbour, WarmStart, neighbours
from .settings import settings
from .sources.arguments import Array
from .store.cache import Cache, Entry, Key, Provenance
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
    history: tuple[Trial, ...] = ()
    stop: str = "cached"
    seconds: float = 0.0
    timings_s: Mapping[str, float] = field(default_factory=dict)  # wall clock by stage, of all evaluations of the call
    llm: Mapping[str, object] = field(default_factory=dict)  # what a language model was asked, and what that cost
    decision: Decision | None = None  # None when the cache answered

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
    operator: Operator,
    case: Case,
    *,
    chip: str = "ascend910b2",
    target: str = "auto",
    budget: int = 40,
    seed: int = 0,
    cache: Cache | None = None,
    signature: Signature | None = None,
    arrays: Mapping[str, Array] | None = None,
    progress: ProgressCallback | None = None,
    say: Callable[[str], None] = lambda text: None,
    workers: int | None = None,
    retune: bool = False,
    resume: bool = False,
    accept_unfinished: bool | None = None,
    limits: Limits | None = None,
    schedule: str = SCHEDULES[0],
    proposer: str | None = None,
    endpoint: Endpoint | None = None,
    steps: tuple[int, int] = (10, 10),
    warm_start: bool = True,
    journal: Path | None = None,
) -> TuneRecord:
    """The best pair for ``case``: from the cache, or found by ``budget`` evaluations and then cached.

    A run that was killed goes on where it was when it is started again in the same way, and so does one that Ctrl-C or
    a limit ended.

    Args:
        target: ``auto`` (a real NPU where there is one), ``virtual`` (modelled times) or ``npu``.
        budget: evaluations (compile + check + measure of one candidate), the baseline's included.
        signature: names the parameters of a kernel for direct launch; other operators define it themselves.
        arrays: the caller's own inputs by name (lists as ``x.0``, ``x.1``), which candidates are timed with.
        progress: told of every trial.
        say: told which long step begins.
        retune: search anew although the cache has an answer.
        resume: go on with the run that was killed, or that Ctrl-C or a limit ended, although the cache has an answer.
        accept_unfinished: answer from a cached result whose search was not finished, too; else it goes on. Default:
            ASCENDOPT_ACCEPT_UNFINISHED.
        limits: on seconds, tokens and money; whichever ends first keeps the best pair so far.
        schedule: of the two stages, ``paper`` or ``adaptive``.
        steps: of Stage I and of Stage II in a round (U and S of Algorithm 1); 0 leaves a stage out.
        proposer: ``rules``, ``llm`` or ``both``; default: the setting, else both if a language model is configured.
        endpoint: the language model; default: that of the settings, with its limits where ``limits`` has none.
        warm_start: first try what the cache has of neighbours (other shapes, chips, operators), and leave to the
            experience bank what the run has learned; False: a run that others neither change nor are changed by.
        journal: where every trial is recorded as it ends; default: below the cache folder.

    Raises:
        NoWorkingCandidate: not even the baseline pair passes the gate; the text says why.
        CacheError: another process is in the same run.
        AscendOptError: the operator doesn't build, the case doesn't fit it, the cache can't be written, ...
    """
    (record,) = tune_cases(
        operator,
        (WeightedCase(case),),
        chip=chip,
        target=target,
        budget=budget,
        seed=seed,
        cache=cache,
        signature=signature,
        arrays=arrays,
        progress=progress,
        say=say,
        workers=workers,
        retune=retune,
        resume=resume,
        accept_unfinished=accept_unfinished,
        limits=limits,
        schedule=schedule,
        proposer=proposer,
        endpoint=endpoint,
        steps=steps,
        warm_start=warm_start,
        journal=journal,
    )
    return record


def tune_cases(
    operator: Operator,
    cases: Sequence[WeightedCase],
    *,
    chip: str = "ascend910b2",
    target: str = "auto",
    budget: int = 40,
    seed: int = 0,
    cache: Cache | None = None,
    signature: Signature | None = None,
    arrays: Mapping[str, Array] | None = None,
    progress: ProgressCallback | None = None,
    say: Callable[[str], None] = lambda text: None,
    workers: int | None = None,
    retune: bool = False,
    resume: bool = False,
    accept_unfinished: bool | None = None,
    limits: Limits | None = None,
    schedule: str = SCHEDULES[0],
    proposer: str | None = None,
    endpoint: Endpoint | None = None,
    steps: tuple[int, int] = (10, 10),
    warm_start: bool = True,
    journal: Path | None = None,
) -> list[TuneRecord]:
    """One pair for all ``cases``, tuned together; a record of each, all with the same history.

    A candidate's time is the weighted mean of the cases' relative times (evaluate/joint.py), and one evaluation is the
    candidate on every case. A case in which the common pair is no faster keeps its baseline, so the entries of the
    cache are a portfolio of at most two pairs with the case as the rule. Arguments and errors as of :func:`tune_case`;
    ``arrays`` are for a single case.
    """
    if accept_unfinished is None:
        accept_unfinished = settings().accept_unfinished
    endpoint = endpoint or Endpoint.of(settings())
    if endpoint is not None:
        limits = (limits or Limits()).or_else(Limits(tokens=endpoint.max_tokens, money=endpoint.max_money))
    spending = Budget(limits or Limits())
    toolkit = find(target)
    cache = cache or Cache()
    keys = [Key.of(operator, c.case, chip=chip, target=toolkit.target, toolkit=toolkit.version) for c in cases]
    weights = [c.weight for c in cases]
    main = heaviest(weights)
    options = SearchOptions(
        budget=budget,
        stage1_steps=steps[0],
        stage2_steps=steps[1],
        parallel=_PARALLEL,
        seed=seed,
        min_gain=MIN_EFFECT[toolkit.target],
        schedule=schedule,
    )
    name = keys[0].hash
    if len(keys) > 1:
        name = sha256(canonical([[k.hash, w] for k, w in zip(keys, weights, strict=True)]).encode())
    chosen = choose(proposer, endpoint, limits=spending.limits, usage=spending.usage, seed=seed, say=say, run=name)
    header = run_header(name, options, chosen.proposers) | {"warm_start": warm_start}
    path = journal or cache.root / "journals" / f"{name[:16]}-{sha256(canonical(header).encode())[:16]}.jsonl"
    goes_on = resume and path.exists()
    known = None if retune else _cached(cache, keys)
    if known and not goes_on:
        if accept_unfinished or all(entry.provenance.finished(budget) for entry in known):
            return [TuneRecord(k, c.case, e, cached=True) for k, c, e in zip(keys, cases, known, strict=True)]
        say(f"the cached result's search was not finished ({known[0].provenance.search_text}): going on with it")
    if resume and not goes_on:
        say("nothing to resume: starting at the beginning")
    if retune and not resume:
        path.unlink(missing_ok=True)

    with open_evaluator(toolkit, chip, workers=workers, say=say) as evaluator:
        defined = evaluator.describe(operator).signature if not operator.direct else None
        gates = [
            Gate(operator, c.case, evaluator, seed=seed, signature=defined or signature, arrays=arrays) for c in cases
        ]
        timings = dict.fromkeys(_STAGES, 0.0)
        say("building, running and checking the baseline pair")
        with Journal(path, header) as log:
            if log.recorded.outcomes:
                say(f"going on after {len(log.recorded.outcomes)} evaluations of the same run ({path})")
            chosen.retrieval.fact = log.fact
            found = log.fact("neighbours", lambda: _neighbours(cache, operator, keys[main]) if warm_start else [])
            gate: Gate | JointGate = gates[0]
            if len(gates) > 1:
                alone = log.fact("baselines", lambda: [p.to_json() for p in baseline_profiles(gates)])
                gate = JointGate(gates, weights, [Profile.from_json(p) for p in alone])
            search = Search(
                operator=operator,
                case=cases[main].case,
                chip=load_chip(evaluator.modelled_chip),
                proposers=chosen.proposers,
                evaluate_many=_evaluate_many(gate, timings),
                options=options,
                signature=defined,
                journal=log,
                progress=progress,
                fingerprint=lambda candidate: gate.fingerprint(candidate.pair),
                limits=spending,
                starters=[WarmStart([Neighbour.from_json(n) for n in found])],
            )
            try:
                result = search.run()
            except NoWorkingCandidate:  # told to the user, who mends it; the next run measures anew
                path.unlink(missing_ok=True)
                raise
        best_so_far = result.best is not result.baseline
        if spending.limits.until is not None and result.stop == "seconds" and not best_so_far:
            raise OutOfTime(f"the time was over after {result.evaluations} evaluations; nothing faster was found.")
        if result.stop == "interrupted":
            say("interrupted: keeping the best pair found so far (Ctrl-C again: end at once)")
        say("checking the best pair once more, on inputs the search never saw")
        best, confirmed, decision = _confirm(gate, result, toolkit.target)
        together = tuple(k.hash for k in keys) if len(keys) > 1 else ()
        entries = [
            _entry(
                k,
                operator,
                result,
                one,
                toolkit=toolkit,
                seed=seed,
                budget=budget,
                signature=defined,
                cases=together,
                common_pair=best.candidate.pair.hash if together else "",
            )
            for k, one in zip(keys, _kept(gate, result, best, confirmed, decision), strict=True)
        ]
        chosen.close()
    if known:
        entries = [_better(one, other) for one, other in zip(known, entries, strict=True)]
    for entry in entries:
        cache.put(entry)
    if warm_start and len(cases) == 1:
        run = LearningRun(
            name, operator, cases[0].case, load_chip(chip), toolkit.target, result.history, chosen.retrieval.found,
            seed, package_version(), toolkit.version,
        )  # fmt: skip
        chosen.retrieval.give(lambda bank: learned(run, bank))
    if result.stop in FINISHED:  # else its journal is kept, and it can go on
        path.unlink(missing_ok=True)
    seen, stop, elapsed = result.history, result.stop, result.elapsed_s
    return [
        TuneRecord(k, c.case, e, False, seen, stop, elapsed, timings, chosen.counts(), decision)
        for k, c, e in zip(keys, cases, entries, strict=True)
    ]


def _neighbours(cache: Cache, operator: Operator, key: Key) -> list[dict[str, Any]]:
    return [n.to_json() for n in neighbours(cache, operator, key)]


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


def _confirm(gate: Gate | JointGate, result: SearchResult, target: str) -> tuple[Trial, Checked, Decision]:
    """The accepted candidate (search/acceptance.py), confirmed in a fresh process and on unseen inputs; else the
    baseline.

    Raises:
        NoWorkingCandidate: not even the baseline passes.
    """
    accepted = accept(result.history, result.baseline, gate, target, _comparing(gate, result.baseline, target))
    if accepted.winner is not None:
        return *accepted.winner, accepted.decision
    confirmed = gate.confirm(result.baseline.candidate.pair)
    if isinstance(confirmed.outcome, Timed):
        return result.baseline, confirmed, accepted.decision
    failures = [*accepted.refused, f"as written: {confirmed.outcome.reason}"]
    raise NoWorkingCandidate(
        f"nothing passed the final check on unseen inputs ({'; '.join(failures[:3])}).",
        "The operator's result seems to depend on its inputs' values; check its reference and tolerances.",
    )


def _comparing(gate: Gate | JointGate, baseline: Trial, target: str) -> Callable[[Trial], Comparison | None] | None:
    """Compares a trial with the baseline, measured in turn; None where times don't vary."""
    if target == "virtual":
        return None
    gate.set_incumbent(gate.evaluate(baseline.candidate.pair))

    def measure(trial: Trial) -> Comparison | None:
        outcome = gate.evaluate(trial.candidate.pair).outcome
        if not isinstance(outcome, Timed):
            return None
        seen = outcome.profile.counters
        spreads = seen.get("candidate_spread_us", 0.0), seen.get("incumbent_spread_us", 0.0)
        return Comparison(outcome.profile.task_duration_us, seen["incumbent_us"], *spreads)

    return measure


@dataclass(frozen=True)
class _Kept:
    """What a case keeps: a trial, what its confirmation in this case found, the case's baseline, and why the trial.

    ``interval``: of the speedup over plausible clocks, where times are modelled and the trial is not the baseline.
    """

    trial: Trial
    confirmed: Checked
    baseline: Profile
    decision: str
    interval: Interval | None = None


def _kept(
    gate: Gate | JointGate, result: SearchResult, best: Trial, confirmed: Checked, decision: Decision
) -> list[_Kept]:
    """The best pair for every case, except that a case in which it is no faster keeps the baseline."""
    written, pair = result.baseline, best.candidate.pair
    if isinstance(gate, Gate):
        assert isinstance(written.outcome, Timed)
        cases = [(gate, confirmed, written.outcome.profile)]
    else:
        cases = list(zip(gate.gates, gate.confirmed, gate.baselines, strict=True))
    if best is written:
        return [_Kept(best, checked, baseline, decision.outcome) for _, checked, baseline in cases]
    out = []
    for one, checked, baseline in cases:
        assert checked.profile is not None
        found = interval(one.speedups(pair))
        faster = checked.profile.task_duration_us < baseline.task_duration_us
        if len(cases) == 1 or (faster and (found is None or found.survives)):
            out.append(_Kept(best, checked, baseline, decision.outcome, found))
        else:
            reason = FRAGILE if faster else NO_WIN
            out.append(_Kept(written, one.confirm(written.candidate.pair), baseline, reason))
    return out


def _cached(cache: Cache, keys: Sequence[Key]) -> list[Entry] | None:
    """The entries of all cases, if the cache has them and, of several, one was tuned for these cases together."""
    entries = [cache.get(key) for key in keys]
    found = [e for e in entries if e is not None]
    if len(found) < len(keys):
        return None
    wanted = {key.hash for key in keys}
    together = len(keys) == 1 or any(set(e.provenance.cases) == wanted for e in found)
    return found if together else None


def _better(known: Entry, found: Entry) -> Entry:
    """What to keep of a result whose search was not finished and what came of going on."""
    if found.best.task_duration_us <= known.best.task_duration_us:
        return found
    made = found.provenance
    return replace(
        known,
        provenance=replace(
            known.provenance,
            budget=made.budget,
            evaluations=made.evaluations,
            outcomes=made.outcomes,
            ended=made.ended,
        ),
    )


def _entry(
    key: Key,
    operator: Operator,
    result: SearchResult,
    kept: _Kept,
    *,
    toolkit: Toolkit,
    seed: int,
    budget: int,
    signature: Any,
    cases: tuple[str, ...],
    common_pair: str,
) -> Entry:
    best, confirmed = kept.trial, kept.confirmed
    assert isinstance(confirmed.outcome, Timed)
    assert confirmed.tiling is not None
    by_id = {t.candidate.id: t for t in result.history}
    steps = []
    trial = best
    while trial.candidate.parent is not None:
        steps.append(trial)
        trial = by_id[trial.candidate.parent]
    steps.reverse()
    return Entry(
        key=key,
        pair=best.candidate.pair,
        binary=confirmed.binary,
        kernel_name=confirmed.kernel_name,
        tiling=confirmed.tiling,
        baseline=kept.baseline,
        best=confirmed.outcome.profile,
        provenance=Provenance(
            seed=seed,
            budget=budget,
            evaluations=result.evaluations,
            outcomes=result.outcomes,
            tools={
                "ascendopt_tune": package_version(),
                "toolkit": toolkit.version,
                "python": platform.python_version(),
            },
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            changes=tuple(t.candidate.change for t in steps),
            moves=tuple(tuple(m.to_json()) for t in steps for m in t.moves if m.family != "recombination"),
            baseline_tiling=operator.baseline.tiling_hash,
            reference="baseline" if operator.reference is None else "reference.py",
            checks=confirmed.checks,
            decision=kept.decision,
            cases=cases,
            common_pair=common_pair,
            ended=result.stop,
        ),
        signature=signature,
        interval=kept.interval,
    )


def package_version() -> str:
    try:
        return version("ascendopt_tune")
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "checkout"
