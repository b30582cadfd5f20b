"""The seam between the search loop and whoever has ideas: rules today, an LLM behind the same protocol.

A proposer is a function of the state: it keeps nothing between calls, so a run is reproduced, or resumed, by giving it
the same history again. Randomness comes from ``SearchState.rng``.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ..nouns.case import Case
from ..nouns.chip import Chip
from ..nouns.operator import Candidate, Operator, Pair, Signature
from ..nouns.outcome import Outcome, Timed

if TYPE_CHECKING:
    from .population import Population


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
    for the stage that proposed it.
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
        words = (self.launch or "").split()
        return int(words[2]) if len(words) >= 5 and words[2].isdigit() else None


@dataclass(frozen=True)
class SearchState:
    """Everything a proposer may know.

    ``history`` is in order of
    candidate ids, failures with their reasons included; ``seen`` are the hashes of all pairs proposed so far.
    """

    operator: Operator
    case: Case
    chip: Chip
    signature: Signature | None
    baseline: Trial
    incumbent: Trial
    history: Sequence[Trial]
    seed: int
    seen: frozenset[str] = field(default_factory=frozenset)
    stage: int = 1

    @property
    def cores(self) -> int:
        """Vector cores of the chip."""
        return int(self.chip.values["core.aiv"])

    @property
    def ub_bytes(self) -> int:
        """Bytes of the Unified Buffer of one vector core."""
        return int(self.chip.values["memory.ub_bytes"])

    @property
    def population(self) -> Population:
        """The archive of fast and different trials, to choose other parents than the incumbent from."""
        from .population import Population

        return Population.of(self.history, self.cores)

    def rng(self, name: str) -> random.Random:
        """A generator that depends on the seed, who asks, and how far the search is; on nothing else."""
        return random.Random(f"{self.seed}/{name}/{self.stage}/{len(self.seen)}")


class Proposer(Protocol):
    """Proposes changed pairs. ``stage`` 1 may change the tiling program only, 2 the kernel program only."""

    name: str
    stage: int

    def propose(self, state: SearchState, n: int) -> list[Proposal]:
        """Up to ``n`` proposals whose pairs are not in ``state.seen``; an empty list means it has no idea left."""
        ...
