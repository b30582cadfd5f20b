"""A candidate pair as it is proposed, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass

from .operator import Candidate, Pair
from .outcome import Outcome, Timed


@dataclass(frozen=True)
class Move:
    """What a proposal did at one site, in numbers, so that its outcome can teach something.

    ``direction`` is ``up``, ``down``, ``set`` or ``flip``; ``value`` the number written (or the ratio applied).
    ``pressure``: +1 if the edit makes the kernel use more of the Unified Buffer, -1 less, 0 unknown.
    """

    site: str
    family: str
    direction: str
    value: float
    pressure: int = 0

    def to_json(self) -> list[object]:
        return [self.site, self.family, self.direction, self.value, self.pressure]


@dataclass(frozen=True)
class Proposal:
    """A pair to try: ``change`` says in one line what differs from trial ``parent``."""

    pair: Pair
    change: str
    parent: int
    moves: tuple[Move, ...] = ()


@dataclass(frozen=True)
class Trial:
    """One candidate and what became of it.

    ``launch`` names the launch the pair leads to, where that was asked for. ``duplicate_of``: the trial whose launch
    it repeats; such a trial has that trial's outcome and cost no evaluation. ``stage`` is 0 for the baseline, 1 or 2
    for the stage that proposed it, 3 for a change of both programs.
    """

    candidate: Candidate
    outcome: Outcome
    moves: tuple[Move, ...] = ()
    round: int = 0
    stage: int = 0
    duplicate_of: int | None = None
    launch: str | None = None

    @property
    def time_us(self) -> float | None:
        """Task duration on the target's clock, or None if the candidate did not pass the gate."""
        return self.outcome.profile.task_duration_us if isinstance(self.outcome, Timed) else None

    @property
    def tiling_key(self) -> int | None:
        """The tiling key in the name of the launch (Gate.fingerprint: kernel hash, block dim, key, ...)."""
        return key_in(self.launch)


def key_in(launch: str | None) -> int | None:
    """The tiling key in the name of a launch, None where the name is unknown or tells none."""
    words = (launch or "").split()
    return int(words[2]) if len(words) >= 5 and words[2].isdigit() else None
