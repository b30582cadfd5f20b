"""The seam between the search loop and whoever has ideas: rules today, an LLM behind the same protocol.

A proposer is a function of the state: it keeps nothing between calls, so a run is reproduced, or resumed, by giving it
the same history again. Randomness comes from ``SearchState.rng``.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from ..nouns.case import Case
from ..nouns.chip import Chip
from ..nouns.history import History
from ..nouns.operator import Candidate, Operator, Signature
from ..nouns.trial import Proposal, Trial
from .population import Population

JOINT = 3  # the stage of proposers that change tiling program and kernel in one candidate


@dataclass(frozen=True)
class SearchState:
    """Everything a proposer may know.

    ``history`` is in order of candidate ids, failures with their reasons included; ``seen`` are the hashes of all pairs
    proposed so far. ``launch`` names the launch a candidate leads to, None if it leads to none; it is None itself where
    nobody can tell.
    """

    operator: Operator
    case: Case
    chip: Chip
    signature: Signature | None
    baseline: Trial
    incumbent: Trial
    history: History
    seed: int
    seen: frozenset[str] = field(default_factory=frozenset)
    stage: int = 1
    launch: Callable[[Candidate], str | None] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "history", History.of(self.history))  # whatever sequence it was given as

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
        return Population.of(self.history, self.cores)

    def rng(self, name: str) -> random.Random:
        """A generator that depends on the seed, who asks, and how far the search is; on nothing else."""
        return random.Random(f"{self.seed}/{name}/{self.stage}/{len(self.seen)}")


class Proposer(Protocol):
    """Proposes changed pairs. ``stage`` 1 may change the tiling program only, 2 the kernel, ``JOINT`` both at once."""

    name: str
    stage: int

    def propose(self, state: SearchState, n: int) -> list[Proposal]:
        """Up to ``n`` proposals whose pairs are not in ``state.seen``; an empty list means it has no idea left."""
        ...
