"""What a kernel costs on so many cores: by its profile, and by what it took on other numbers of them.

A profile tells what surely grows with the data. A row's heads and scalar work do, too, and what starts a core doesn't:
which is which shows when the same kernel has run on two numbers of cores.
"""

from __future__ import annotations

from ...evaluate.bound import costs_of_cores
from ...evaluate.cores import turn_us, turns
from ...nouns.history import History
from ...nouns.outcome import Timed
from ...nouns.trial import Trial
from ..proposer import SearchState

_FAMILIES = frozenset(["core_count"])


def core_costs(trial: Trial, state: SearchState) -> tuple[float, ...]:
    """Microseconds on 1, 2, ... cores, beside what is the same on any number; empty where nobody can tell."""
    if not isinstance(trial.outcome, Timed):
        return ()
    profile = trial.outcome.profile.detail
    costs = costs_of_cores(profile, state.chip)
    turn = turn_us(profile, state.chip) if costs else 0.0
    split = _split({n: us - turn * turns(n, state.chip) for n, us in _seen(trial, state.history).items()})
    if split is not None:
        costs = {n: turn * turns(n, state.chip) + split / n for n in costs}
    return tuple(costs.values())


def _seen(trial: Trial, history: History) -> dict[int, float]:
    """Cores -> us of launches of the trial's kernel that differ from it in the number of cores alone."""
    found = [trial, *_only_cores(history.children(trial))]
    parent = history.parent(trial)
    if parent is not None and _only_cores((trial,)):
        found += [parent, *_only_cores(history.children(parent))]
    out: dict[int, float] = {}
    for t in found:
        if isinstance(t.outcome, Timed) and t.outcome.profile.block_dim > 0:
            n, us = t.outcome.profile.block_dim, t.outcome.profile.task_duration_us
            out[n] = min(us, out.get(n, us))
    return out


def _only_cores(trials: tuple[Trial, ...]) -> list[Trial]:
    return [t for t in trials if t.moves and {m.family for m in t.moves} <= _FAMILIES]


def _split(seen: dict[int, float]) -> float | None:
    """The w of a + w / n that fits best (least squares); None for fewer than two numbers of cores."""
    if len(seen) < 2:
        return None
    x = [1.0 / n for n in seen]
    mean_x, mean_y = sum(x) / len(x), sum(seen.values()) / len(x)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, seen.values(), strict=True))
    return max(0.0, slope / sum((a - mean_x) ** 2 for a in x))
