"""What a search leaves in the cache: for every case the accepted pair, confirmed, or the baseline.

The accepted candidate (acceptance.py) passes the gate once more, in a fresh process and on inputs the search never saw.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from ..errors import NoWorkingCandidate
from ..evaluate.gate import Checked, Gate
from ..evaluate.joint import JointGate
from ..nouns.clocks import Interval, interval
from ..nouns.operator import Operator, Signature
from ..nouns.outcome import Timed
from ..nouns.profile import Profile
from ..nouns.trial import Trial
from ..sources.specification import specification
from ..store.cache import Cache, Entry, Key, Provenance
from ..store.entry import FRAGILE, NO_WIN
from .acceptance import Comparison, Decision, accept
from .engine import SearchResult


@dataclass(frozen=True)
class Confirmed:
    """The trial that is kept, what its confirmation found, and why it is this one."""

    trial: Trial
    checked: Checked
    decision: Decision


def confirm(gate: Gate | JointGate, result: SearchResult, target: str) -> Confirmed:
    """The accepted candidate (acceptance.py), confirmed in a fresh process and on unseen inputs; else the baseline.

    Raises:
        NoWorkingCandidate: not even the baseline passes.
    """
    accepted = accept(result.history, result.baseline, gate, target, _comparing(gate, result.baseline, target))
    if accepted.winner is not None:
        return Confirmed(*accepted.winner, accepted.decision)
    confirmed = gate.confirm(result.baseline.candidate.pair)
    if isinstance(confirmed.outcome, Timed):
        return Confirmed(result.baseline, confirmed, accepted.decision)
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
class Kept:
    """What a case keeps: a trial, what its confirmation in this case found, the case's baseline, and why the trial.

    ``interval``: of the speedup over plausible clocks, where times are modelled and the trial is not the baseline.
    """

    trial: Trial
    confirmed: Checked
    baseline: Profile
    decision: str
    interval: Interval | None = None


def what_to_keep(gate: Gate | JointGate, result: SearchResult, confirmed: Confirmed) -> list[Kept]:
    """The best pair for every case, except that a case in which it is no faster keeps the baseline."""
    written, best, decision = result.baseline, confirmed.trial, confirmed.decision
    if isinstance(gate, Gate):
        assert isinstance(written.outcome, Timed)
        cases = [(gate, confirmed.checked, written.outcome.profile)]
    else:
        cases = list(zip(gate.gates, gate.confirmed, gate.baselines, strict=True))
    if best is written:
        return [Kept(best, checked, baseline, decision.outcome) for _, checked, baseline in cases]
    out = []
    for one, checked, baseline in cases:
        assert checked.profile is not None
        found = interval(one.speedups(best.candidate.pair))
        faster = checked.profile.task_duration_us < baseline.task_duration_us
        if len(cases) == 1 or (faster and (found is None or found.survives)):
            out.append(Kept(best, checked, baseline, decision.outcome, found))
        else:
            reason = FRAGILE if faster else NO_WIN
            out.append(Kept(written, one.confirm(written.candidate.pair), baseline, reason))
    return out


@dataclass(frozen=True)
class Made:
    """How the entries of one run were made. ``together``: the keys of all cases, where several were tuned together, and
    ``common_pair`` the pair they were tuned to."""

    operator: Operator
    result: SearchResult
    signature: Signature | None
    seed: int
    budget: int
    toolkit: str
    together: tuple[str, ...]
    common_pair: str


def entry_of(key: Key, kept: Kept, made: Made) -> Entry:
    """What the cache keeps of a case."""
    confirmed, result = kept.confirmed, made.result
    assert isinstance(confirmed.outcome, Timed)
    assert confirmed.tiling is not None
    steps = result.history.lineage(kept.trial)[1:]
    return Entry(
        key=key,
        pair=kept.trial.candidate.pair,
        binary=confirmed.binary,
        kernel_name=confirmed.kernel_name,
        tiling=confirmed.tiling,
        baseline=kept.baseline,
        best=confirmed.outcome.profile,
        provenance=Provenance(
            seed=made.seed,
            budget=made.budget,
            evaluations=result.evaluations,
            outcomes=result.outcomes,
            tools=tools(made.toolkit),
            created=now(),
            changes=tuple(t.candidate.change for t in steps),
            moves=tuple(tuple(m.to_json()) for t in steps for m in t.moves if m.family != "recombination"),
            baseline_tiling=made.operator.baseline.tiling_hash,
            reference="baseline" if made.operator.reference is None else "reference.py",
            checks=confirmed.checks,
            decision=kept.decision,
            cases=made.together,
            common_pair=made.common_pair,
            ended=result.stop,
            specification=specification(made.operator),
        ),
        signature=made.signature,
        interval=kept.interval,
    )


def cached(cache: Cache, keys: Sequence[Key]) -> list[Entry] | None:
    """The entries of all cases, if the cache has them and, of several, one was tuned for these cases together."""
    entries = [cache.get(key) for key in keys]
    found = [e for e in entries if e is not None]
    if len(found) < len(keys):
        return None
    wanted = {key.hash for key in keys}
    together = len(keys) == 1 or any(set(e.provenance.cases) == wanted for e in found)
    return found if together else None


def better(known: Entry, found: Entry) -> Entry:
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


def tools(toolkit: str) -> dict[str, str]:
    """The versions that a result was made with."""
    return {"ascendopt_tune": package_version(), "toolkit": toolkit, "python": platform.python_version()}


def now() -> str:
    """The time now (UTC), as results are dated."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def package_version() -> str:
    try:
        return version("ascendopt_tune")
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "checkout"
