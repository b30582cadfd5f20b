"""One pair for several cases: a gate of gates, whose time is the weighted mean of the cases' relative times.

A candidate counts only if it passes the gate of every case. Its time is told on the scale of the heaviest case: that
case's baseline time multiplied with the mean, over all cases, of time over baseline time. So halving every case halves
it, whatever the cases' own times are. One evaluation is the candidate on all cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import NoWorkingCandidate
from ..nouns.case import Case
from ..nouns.clocks import mean
from ..nouns.operator import Pair
from ..nouns.outcome import Timed
from ..nouns.profile import Profile
from .gate import Checked, Gate
from .protocol import EvaluationResult


@dataclass(frozen=True)
class WeightedCase:
    """``weight``: how much the case counts, for example how often it is called times how long it takes; > 0."""

    case: Case
    weight: float = 1.0


class JointGate:
    """What the tuner asks of a gate, for several cases at once.

    Args:
        gates: one per case.
        weights: one per case, any scale.
        baselines: the baseline pair's profile in each case (:meth:`baseline_profiles`).
    """

    def __init__(self, gates: Sequence[Gate], weights: Sequence[float], baselines: Sequence[Profile]) -> None:
        self.gates, self.baselines = tuple(gates), tuple(baselines)
        self._weights = [w / sum(weights) for w in weights]
        self._heaviest = heaviest(weights)
        #: What the last :meth:`confirm` found, case by case.
        self.confirmed: tuple[Checked, ...] = ()

    def evaluate_many(self, pairs: Mapping[int, Pair]) -> Iterator[tuple[int, Checked]]:
        """(number, result) of each pair; one that fails a case is not tried on the next."""
        left, seen = dict(pairs), {number: list[Checked]() for number in pairs}
        for gate in self.gates:
            for number, checked in gate.evaluate_many(left):
                seen[number].append(checked)
            for number in [n for n in left if not isinstance(seen[n][-1].outcome, Timed)]:
                del left[number]
                yield number, self._joined(seen[number])
        for number in left:
            yield number, self._joined(seen[number])

    def evaluate(self, pair: Pair) -> Checked:
        return self._joined([gate.evaluate(pair) for gate in self.gates])

    def confirm(self, pair: Pair) -> Checked:
        """As :meth:`Gate.confirm`, in every case; up to the first that fails."""
        found: list[Checked] = []
        for gate in self.gates:
            found.append(gate.confirm(pair))
            if not isinstance(found[-1].outcome, Timed):
                break
        self.confirmed = tuple(found)
        return self._joined(found)

    def speedups(self, pair: Pair) -> tuple[float, ...]:
        """As :meth:`Gate.speedups`: the weighted geometric mean of the cases' under each clock."""
        return mean([gate.speedups(pair) for gate in self.gates], self._weights)

    def prepare(self, pairs: Sequence[Pair]) -> None:
        """Starts what :meth:`fingerprint` will be asked for."""
        for gate in self.gates:
            gate.prepare(pairs)

    def fingerprint(self, pair: Pair) -> str | None:
        """The launches of all cases; None if one can't be told."""
        names = [gate.fingerprint(pair) for gate in self.gates]
        return None if None in names else " | ".join(n for n in names if n is not None)

    def set_incumbent(self, result: Checked) -> None:
        """From now on each case's candidates are timed in turn with the baseline; ``result`` is not needed."""
        for gate in self.gates:
            gate.set_incumbent(gate.evaluate(gate.operator.baseline))

    def _joined(self, found: Sequence[Checked]) -> Checked:
        timings: dict[str, float] = {}
        for checked in found:
            for stage, seconds in checked.timings_s.items():
                timings[stage] = timings.get(stage, 0.0) + seconds
        last = found[-1].outcome
        if not isinstance(last, Timed):
            where = f"case {len(found)} of {len(self.gates)} ({self.gates[len(found) - 1].case}): "
            return Checked(EvaluationResult(replace(last, reason=where + last.reason), timings_s=timings), {})
        profiles = [c.profile for c in found if c.profile is not None]
        checks = sum(c.checks for c in found)
        outcome = Timed(self._profile(profiles), checks)
        return Checked(EvaluationResult(outcome, timings_s=timings, checks=checks), {})

    def _profile(self, profiles: Sequence[Profile]) -> Profile:
        scale = self.baselines[self._heaviest].task_duration_us
        own = profiles[self._heaviest]
        counters = dict(own.counters)
        for name in ("candidate_spread_us", "incumbent_us", "incumbent_spread_us"):
            if all(name in p.counters for p in profiles):
                counters[name] = scale * self._mean([p.counters[name] for p in profiles])
        time = scale * self._mean([p.task_duration_us for p in profiles])
        return replace(own, task_duration_us=time, counters=counters)

    def _mean(self, times: Sequence[float]) -> float:
        """The weighted mean of times relative to the baselines'."""
        rows = zip(self._weights, times, self.baselines, strict=True)
        return sum(weight * time / base.task_duration_us for weight, time, base in rows)


def heaviest(weights: Sequence[float]) -> int:
    """Position of the case that counts most; the first of equals."""
    return max(range(len(weights)), key=lambda i: (weights[i], -i))


def baseline_profiles(gates: Sequence[Gate]) -> list[Profile]:
    """The baseline pair's profile in each case. Raises NoWorkingCandidate, which names the case, where it fails."""
    out = []
    for gate in gates:
        checked = gate.evaluate(gate.operator.baseline)
        if not isinstance(checked.outcome, Timed):
            reason = f"{type(checked.outcome).__name__}: {checked.outcome.reason}"
            raise NoWorkingCandidate(
                f"the baseline pair did not pass the gate in the case {gate.case} ({reason}).",
                "Fix the operator, or leave the case out.",
            )
        out.append(checked.outcome.profile)
    return out
