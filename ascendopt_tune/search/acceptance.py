"""Acceptance: is the fastest candidate really faster, or was it lucky?

The few fastest are measured again, several rounds, each time in turn with the baseline; what counts is the share of the
baseline's time that is saved. A finalist is accepted when the median of its rounds exceeds both the minimum effect and
the noise. Where times don't vary (the virtual NPU) the search's own measurement is the one round there is, and what has
to exceed is the clock's uncertainty: the pair must be faster under nearly all plausible clocks (clocks.py).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from ..errors import DeviceError
from ..evaluate.gate import Checked
from ..nouns.clocks import Interval, interval
from ..nouns.operator import Pair
from ..nouns.outcome import Timed
from ..nouns.trial import Trial
from ..store.entry import FRAGILE, NO_WIN, WIN

FINALISTS = 3
MOST_FRAGILE = 5  # finalists that may fail under plausible clocks before the baseline is kept
# Share of the time a win must save, by target. Modelled times don't vary; less is noise of the model's rounding.
MIN_EFFECT = {"virtual": 0.001, "npu": 0.01}
_ROUNDS = {"virtual": 1, "npu": 5}  # measurements of a finalist
_SPREADS = 2.0  # a gain must exceed so many half interquartile ranges


@dataclass(frozen=True)
class Comparison:
    """One interleaved measurement: medians and spreads (half the interquartile range) in us of the target's clock."""

    candidate_us: float
    baseline_us: float
    candidate_spread_us: float = 0.0
    baseline_spread_us: float = 0.0

    @property
    def gain(self) -> float:
        """Share of the baseline's time that is saved; negative if the candidate is slower."""
        return 1.0 - self.candidate_us / self.baseline_us

    @property
    def noise(self) -> float:
        """Spread of the gain: both spreads, as shares of the baseline's time."""
        return (self.candidate_spread_us + self.baseline_spread_us) / self.baseline_us


@dataclass(frozen=True)
class Finalist:
    """``gains``: of each round; ``noise``: the larger of the spread within the rounds and that between them."""

    id: int
    gains: tuple[float, ...]
    gain: float
    noise: float
    accepted: bool


@dataclass(frozen=True)
class Decision:
    """``order``: ids of the accepted finalists, the winner first. ``fragile``: by id, those that did not survive.

    ``outcome``: ``win``, ``no significant win``, or ``no win that survives the clock's uncertainty``.
    """

    finalists: tuple[Finalist, ...]
    order: tuple[int, ...]
    min_effect: float
    fragile: Mapping[int, Interval] = field(default_factory=dict)

    @property
    def outcome(self) -> str:
        return WIN if self.order else FRAGILE if self.fragile else NO_WIN

    def to_json(self) -> dict[str, Any]:
        return {
            "outcome": self.outcome,
            "min_effect": self.min_effect,
            "finalists": [asdict(f) for f in self.finalists],
            "order": list(self.order),
            "fragile": [{"id": number, **found.to_json()} for number, found in self.fragile.items()],
        }


@dataclass(frozen=True)
class Accepted:
    """What :func:`accept` came to. ``winner``: a trial with its confirmation. ``speedups``: its, under each of the
    plausible clocks, where times are modelled. ``refused``: who failed the confirmation, and why."""

    winner: tuple[Trial, Checked] | None
    speedups: tuple[float, ...]
    decision: Decision
    refused: tuple[str, ...]


class Judge(Protocol):
    """What is asked of a gate (evaluate/gate.py) for a finalist."""

    def speedups(self, pair: Pair) -> Sequence[float]: ...

    def confirm(self, pair: Pair) -> Checked: ...


def accept(
    trials: Iterable[Trial],
    baseline: Trial,
    gate: Judge,
    target: str,
    measure: Callable[[Trial], Comparison | None] | None = None,
) -> Accepted:
    """The best trial that is faster than ``baseline`` beyond noise, is so under nearly all plausible clocks where times
    are modelled, and passes the gate once more, on unseen inputs.

    One that fails makes room for the next; after ``MOST_FRAGILE`` that don't survive other clocks nobody wins.

    Args:
        measure: as for :func:`decide`; None: by the trials' own times, where these don't vary.
    """
    min_effect, baseline_us = MIN_EFFECT[target], baseline.time_us or 0.0
    floor = baseline_us * (1.0 - min_effect)
    timed = [t for t in trials if t.time_us is not None and t.time_us < floor and t.duplicate_of is None]
    waiting = sorted(timed, key=lambda t: (t.time_us or 0.0, t.candidate.id))
    measure = measure or (lambda trial: Comparison(trial.time_us or 0.0, baseline_us))
    refused: list[str] = []
    fragile: dict[int, Interval] = {}
    decision = Decision((), (), min_effect)
    while waiting:
        finalists, waiting = {t.candidate.id: t for t in waiting[:FINALISTS]}, waiting[FINALISTS:]
        decision = decide(list(finalists.values()), measure, rounds=_ROUNDS[target], min_effect=min_effect)
        for number in decision.order:
            pair = finalists[number].candidate.pair
            try:
                speedups = tuple(gate.speedups(pair))
            except DeviceError as error:
                refused.append(f"trial {number}: {error.message}")
                continue
            found = interval(speedups)
            if found is not None and not found.survives:
                fragile[number] = found
                if len(fragile) < MOST_FRAGILE:
                    continue
                waiting = []
                break
            checked = gate.confirm(pair)
            if isinstance(checked.outcome, Timed):
                winner = finalists[number], checked
                return Accepted(winner, speedups, replace(decision, fragile=fragile), tuple(refused))
            refused.append(f"trial {number}: {checked.outcome.reason}")
        if len(decision.order) < len(finalists):
            break  # those left are slower than one that is not significantly faster
    return Accepted(None, (), replace(decision, order=(), fragile=fragile), tuple(refused))


def decide(
    finalists: Sequence[Trial], measure: Callable[[Trial], Comparison | None], *, rounds: int, min_effect: float
) -> Decision:
    """Which finalists are faster than the baseline beyond the noise, the best first.

    ``measure`` compares one finalist with the baseline once, or returns None when it failed this time, which excludes
    it. Rounds are interleaved: every finalist is measured once before any is measured again. Finalists whose gains
    differ by less than the minimum effect tie, and the one that was found first (the smaller id) wins.
    """
    seen: dict[int, list[Comparison]] = {t.candidate.id: [] for t in finalists}
    out: set[int] = set()
    for _ in range(rounds):
        for trial in finalists:
            number = trial.candidate.id
            if number in out:
                continue
            one = measure(trial)
            if one is None:
                out.add(number)
            else:
                seen[number].append(one)
    judged = tuple(_judge(n, s, min_effect) for n, s in seen.items() if s and n not in out)
    return Decision(judged, _ranked([f for f in judged if f.accepted], min_effect), min_effect)


def _judge(number: int, seen: Sequence[Comparison], min_effect: float) -> Finalist:
    gains = [c.gain for c in seen]
    gain = statistics.median(gains)
    between = 0.0
    if len(gains) > 1:
        quarters = statistics.quantiles(gains, n=4, method="inclusive")
        between = (quarters[2] - quarters[0]) / 2
    noise = max(between, statistics.median(c.noise for c in seen))
    return Finalist(number, tuple(gains), gain, noise, gain > max(min_effect, _SPREADS * noise))


def _ranked(accepted: Sequence[Finalist], min_effect: float) -> tuple[int, ...]:
    """Best first; again and again the smallest id among those within the minimum effect of the best that is left."""
    left, out = list(accepted), list[int]()
    while left:
        best = max(f.gain for f in left)
        first = min((f for f in left if f.gain > best - min_effect), key=lambda f: f.id)
        left.remove(first)
        out.append(first.id)
    return tuple(out)
