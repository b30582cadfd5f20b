"""The rule proposer of joint moves: tiling program and kernel changed in one candidate.

1. Collect what every rule has for the incumbent; drop what doesn't parse or was proposed before.
2. Weigh it: of a kind of move that failed, or did nothing, the next is worth less; of one that helped, more.
3. Offer the best first. What is hardly worth an evaluation isn't offered: the stages have use for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ...nouns.trial import Proposal
from ...sources.cpp import apply_edits, breaks_syntax
from ..proposer import JOINT, SearchState
from .blocks import blocks
from .buffers import double_buffers, shared_constants
from .move import JointMove, Material

RULES: tuple[Callable[[Material], Iterator[JointMove]], ...] = (blocks, double_buffers, shared_constants)
_FLOOR = 0.3  # moves worth less are not offered
_WORTH = 0.02  # share of the time that a move has to save, so that another of its kind is worth more


class JointRules:
    """Proposes changes of both programs at once; see the module's docstring. Holds no state."""

    name = "joint-rules"
    stage = JOINT

    def propose(self, state: SearchState, n: int) -> list[Proposal]:
        seen = set(state.seen)
        out: list[Proposal] = []
        for move in self._order(state):
            proposal = _proposal(state, move)
            if proposal is not None and proposal.pair.hash not in seen:
                seen.add(proposal.pair.hash)
                out.append(proposal)
            if len(out) == n:
                break
        return out

    def _order(self, state: SearchState) -> list[JointMove]:
        material, factors = Material(state), _factors(state)
        found = [m for rule in RULES for m in rule(material)]
        weighed = [(m.weight * factors.get(m.moves[0].family, 1.0), m) for m in found]
        return [m for w, m in sorted(weighed, key=lambda pair: (-pair[0], pair[1].change)) if w >= _FLOOR]


def _factors(state: SearchState) -> dict[str, float]:
    """By kind of move: what its trials say of the next one."""
    out: dict[str, float] = {}
    for trial in state.history:
        if trial.stage != JOINT or not trial.moves or trial.candidate.parent is None:
            continue
        kind = trial.moves[0].family
        parent = state.history.parent(trial)
        before, now = parent.time_us if parent else None, trial.time_us
        helped = before is not None and now is not None and now < before * (1 - _WORTH)
        out[kind] = out.get(kind, 1.0) * (1.2 if helped else 0.6)
    return out


def _proposal(state: SearchState, move: JointMove) -> Proposal | None:
    parent = state.incumbent.candidate
    pair = parent.pair
    try:
        kernel, tiling = apply_edits(pair.kernel, move.kernel), apply_edits(pair.tiling, move.tiling)
    except ValueError:  # edits overlap
        return None
    if kernel == pair.kernel or tiling == pair.tiling:
        return None
    if breaks_syntax(pair.kernel, kernel) or breaks_syntax(pair.tiling, tiling):
        return None
    return Proposal(replace(pair, kernel=kernel, tiling=tiling), move.change, parent.id, move.moves)
