"""What the outcomes so far say about the next mutation: a small boundary model.

Weight of a mutation = its prior times, for each of its moves,
1. *boundary*: the same site and direction failed at this value or before it: nearly never again; was slower: seldom;
   did nothing: seldom; helped: go on, the next steps in that direction come first;
2. *family*: the share of wins of the rule family so far (Beta posterior mean, one win in four as prior);
3. *pressure*: after the Unified Buffer overflowed, whatever uses more of it is held back;
4. *crowding*: each further try at a site that has not helped yet is worth less;
5. *silence*: where changes of a function led to their parent's launch, and none to another, this case probably doesn't
   run it; the next one there is worth a third.

A move that failed several times, alone and with others, and never led to a launch that passed, is hopeless: it is not
offered again. One that needs more of the Unified Buffer than there is isn't: something else may make room for it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from ..nouns.history import History
from ..nouns.outcome import LaunchFailed, OutOfBounds, Timed
from ..nouns.trial import Move, Trial
from .mutation import Mutation

_OVERFLOW = re.compile(r"\bUB\b|unified buffer|overflow|exceed|InitBuffer|no space|too large", re.IGNORECASE)

_SILENT, _MOST_SILENT = 0.3, 5  # worth of a change for each that changed nothing in its function; so many count

_HOPELESS = 3  # failures of a move that never passed

_EFFECT = 0.001  # share of the time below which a difference teaches nothing
FAILED, SLOWER, SAME, FASTER = "failed", "slower", "same", "faster"


def verdict(trial: Trial, parent: Trial | None) -> str:
    """How the trial compares with its parent, differences below ``_EFFECT`` aside."""
    before, now = parent.time_us if parent else None, trial.time_us
    if now is None or before is None:
        return FAILED if now is None else SAME
    return FASTER if now < before * (1 - _EFFECT) else SLOWER if now > before * (1 + _EFFECT) else SAME


def overflowed(trial: Trial) -> bool:
    """Did the candidate need more on-chip memory than there is?"""
    return isinstance(trial.outcome, LaunchFailed | OutOfBounds) and bool(_OVERFLOW.search(trial.outcome.reason))


def _function(site: str) -> str:
    """The file and function in a site's name."""
    return ":".join(site.split(":")[:2])


def _same_launch(trial: Trial, parent: Trial) -> bool:
    return trial.duplicate_of is not None and trial.duplicate_of in (parent.candidate.id, parent.duplicate_of)


def _reaches(move: Move, value: float) -> bool:
    """Is ``move`` at or beyond ``value`` in its direction?"""
    if move.direction == "up":
        return move.value >= value
    return move.value <= value if move.direction == "down" else move.value == value


class Boundaries:
    """The model, built from a history; reading it changes nothing."""

    def __init__(self, history: Sequence[Trial]) -> None:
        history = History.of(history)
        self._site: dict[tuple[str, str], list[tuple[str, float]]] = defaultdict(list)
        self._tries: Counter[str] = Counter()
        self._helped: set[str] = set()
        self._family: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])  # wins, trials
        self._silent: Counter[str] = Counter()  # by function
        self._heard: set[str] = set()
        self._failed: Counter[Move] = Counter()
        self._passed: set[Move] = set()
        self.overflows = 0
        for trial in history:
            parent = history.parent(trial)
            result = verdict(trial, parent)
            if overflowed(trial) and isinstance(parent.outcome if parent else None, Timed):
                self.overflows += any(m.pressure > 0 for m in trial.moves)
            functions = {_function(m.site) for m in trial.moves}
            if parent is not None and trial.launch is not None and len(functions) == 1:
                if _same_launch(trial, parent):
                    self._silent.update(functions)
                else:
                    self._heard |= functions
            if result == FAILED:
                self._failed.update(m for m in trial.moves if not (m.pressure > 0 and overflowed(trial)))
            else:
                self._passed.update(trial.moves)
            for move in trial.moves:
                if len(trial.moves) == 1:
                    self._site[move.site, move.direction].append((result, move.value))
                self._tries[move.site] += 1
                if result == FASTER:
                    self._helped.add(move.site)
                wins_trials = self._family[move.family]
                wins_trials[0] += result == FASTER
                wins_trials[1] += 0.5 if trial.duplicate_of is not None else 1.0

    def is_hopeless(self, mutation: Mutation) -> bool:
        """Has one of its moves only ever failed?"""
        return any(self._failed[m] >= _HOPELESS and m not in self._passed for m in mutation.moves)

    def weight(self, mutation: Mutation) -> float:
        """The mutation's prior corrected by what was seen; always positive."""
        out = mutation.weight
        for function in {_function(m.site) for m in mutation.moves} - self._heard:
            out *= _SILENT ** min(self._silent[function], _MOST_SILENT)
        for move in mutation.moves:
            wins, trials = self._family[move.family]
            out *= 4.0 * (wins + 1.0) / (trials + 4.0)
            if move.pressure > 0:
                out *= max(0.1, 0.5**self.overflows)
            if move.site not in self._helped:
                out /= 1.0 + 0.5 * self._tries[move.site]
            if len(mutation.moves) == 1:
                out *= self._boundary(move)
        return max(out, 1e-9)

    def _boundary(self, move: Move) -> float:
        seen = self._site.get((move.site, move.direction), [])
        if any(result == FAILED and _reaches(move, value) for result, value in seen):
            return 0.02
        if any(result == SLOWER and _reaches(move, value) for result, value in seen):
            return 0.15
        opposite = {"up": "down", "down": "up"}.get(move.direction, "")
        backwards = any(result == FASTER for result, _ in self._site.get((move.site, opposite), []))
        if any(result == FASTER for result, _ in seen):
            if move.direction == "set" and any(result == SAME for result, _ in seen):
                return 0.3  # it helps once
            if any(result == FAILED for result, _ in seen):
                return 0.7  # between what helped and what failed: little room
            return 1.5 if backwards or any(result == SLOWER for result, _ in seen) else 4.0
        if any(result == SAME for result, _ in seen):
            return 0.2
        slower_other_way = any(result == SLOWER for result, _ in self._site.get((move.site, opposite), []))
        return 0.4 if backwards else 1.5 if slower_other_way else 1.0
