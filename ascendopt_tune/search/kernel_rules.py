"""Stage II's rule proposer: motifs applied to the incumbent's kernel, the likeliest to pay first.

1. Diagnose the incumbent's profile. With a bank, the diagnosis looks up experiences, and their motifs are ranked by how
   near they are and how often they helped; without one, motifs are ranked by the bottlenecks they name.
2. Collect the rewrites of all motifs (cached by kernel); a motif's first rewrite is its broadest.
3. Weigh them with the history: what failed or slowed this kernel down isn't tried again, what did nothing neither; what
   helped on another parent comes first; motifs that win are worth more.
4. Offer one rewrite a motif first, then the rest, then two together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ..diagnosis import Diagnosis, diagnose
from ..motifs import MOTIFS, KernelProgram, Rewrite
from ..outcome import Timed
from ..source import apply_edits, breaks_syntax
from .learning import FAILED, FASTER, SAME, SLOWER, verdict
from .proposer import Move, Proposal, SearchState, Trial

if TYPE_CHECKING:
    from ..bank.bank import Bank

_NEIGHBOURS = 8  # motifs asked of the bank
_OTHER = 0.2  # worth of a motif that no finding and no experience speaks for
_RANKS = (1.0, 0.7, 0.5)  # worth of a motif by the rank of the finding it helps against
_PAIRS = 64  # pairs of rewrites looked at in one call


@dataclass(frozen=True)
class _Idea:
    weight: float
    rewrites: tuple[Rewrite, ...]

    @property
    def moves(self) -> tuple[Move, ...]:
        return tuple(Move(site_of(r), r.motif, "flip", 1.0) for r in self.rewrites)

    @property
    def change(self) -> str:
        return "; ".join(f"{r.motif}: {r.change}" for r in self.rewrites)


def site_of(rewrite: Rewrite) -> str:
    """The name of motif and place, as moves of Stage II carry it."""
    return f"{rewrite.motif}@{rewrite.site}"


class KernelRules:
    """The rule proposer of Stage II; see the module's docstring. ``bank`` is only read."""

    name = "kernel-rules"
    stage = 2

    def __init__(self, bank: Bank | None = None) -> None:
        self._bank = bank

    def propose(self, state: SearchState, n: int) -> list[Proposal]:
        seen = set(state.seen)
        out: list[Proposal] = []
        for proposal in self._proposals(state):
            if proposal.pair.hash not in seen:
                seen.add(proposal.pair.hash)
                out.append(proposal)
            if len(out) == n:
                break
        return out

    def _proposals(self, state: SearchState) -> Iterator[Proposal]:
        worth = self._worth(state)
        record = _Record(state.history)
        ideas = []
        for position, rewrite in _positions(_rewrites(state)):
            weight = worth.get(rewrite.motif, _OTHER) * record.weight(rewrite) / (1.0 + 0.15 * position)
            ideas.append(_Idea(weight, (rewrite,)))
        ideas.sort(key=lambda idea: -idea.weight)  # stable: motifs' and places' own order where weights are equal
        fresh = [idea for idea in ideas if idea.weight > 0]
        first: dict[str, _Idea] = {}
        for idea in fresh:
            first.setdefault(idea.rewrites[0].motif, idea)
        for idea in (*first.values(), *fresh, *_pairs(ideas, record)):
            yield from _apply(state, idea)

    def _worth(self, state: SearchState) -> dict[str, float]:
        """Motif -> how much speaks for it on this kernel, before anything was tried."""
        outcome = state.incumbent.outcome
        diagnosis = diagnose(outcome.profile, state.chip) if isinstance(outcome, Timed) else Diagnosis((), "")
        worth: dict[str, float] = {}
        for motif in MOTIFS:
            ranks = [i for i, f in enumerate(diagnosis.findings) if f.bound in motif.bottlenecks]
            if ranks:
                worth[motif.name] = _RANKS[min(ranks[0], len(_RANKS) - 1)]
        if self._bank is not None and diagnosis.paragraph:
            for experience, score in self._bank.search(diagnosis.paragraph, _NEIGHBOURS, one_per_motif=True):
                worth[experience.motif] = worth.get(experience.motif, _OTHER) + 0.5 * max(0.0, score)
        return worth


# -- the kernel's rewrites ---------------------------------------------------------------------------------------------


_Files = tuple[tuple[str, str], ...]


def _rewrites(state: SearchState) -> tuple[Rewrite, ...]:
    pair = state.incumbent.candidate.pair
    kernel, tiling = tuple(sorted(pair.kernel.items())), tuple(sorted(pair.tiling.items()))
    return _collected(kernel, tiling, state.operator.auto_sync, _tiling_key(state.incumbent))


def _tiling_key(trial: Trial) -> int | None:
    """The tiling key in the name of the trial's launch (Gate.fingerprint: kernel hash, block dim, key, ...)."""
    words = (trial.launch or "").split()
    return int(words[2]) if len(words) >= 5 and words[2].isdigit() else None


@lru_cache(maxsize=8)
def _collected(kernel: _Files, tiling: _Files, auto_sync: bool, key: int | None) -> tuple[Rewrite, ...]:
    program = KernelProgram(dict(kernel), dict(tiling), None, auto_sync, key)
    return tuple(r for motif in MOTIFS for r in motif.optimize(program))


def _positions(rewrites: Sequence[Rewrite]) -> Iterator[tuple[int, Rewrite]]:
    """Each rewrite with its place among those of its motif."""
    count: dict[str, int] = {}
    for rewrite in rewrites:
        position = count.get(rewrite.motif, 0)
        count[rewrite.motif] = position + 1
        yield position, rewrite


# -- what the history says ---------------------------------------------------------------------------------------------


class _Record:
    """What earlier trials made of motifs and places, on whatever parent."""

    def __init__(self, history: Sequence[Trial]) -> None:
        by_id = {t.candidate.id: t for t in history}
        self._wins: dict[str, float] = {}
        self._trials: dict[str, float] = {}
        self._verdicts: dict[str, str] = {}
        self._pairs: set[frozenset[str]] = set()
        for trial in history:
            if trial.stage != KernelRules.stage:
                continue
            parent = by_id.get(trial.candidate.parent) if trial.candidate.parent is not None else None
            result = verdict(trial, parent)
            self._pairs.add(frozenset(m.site for m in trial.moves))
            for move in trial.moves:
                self._trials[move.family] = self._trials.get(move.family, 0.0) + 1.0
                self._wins[move.family] = self._wins.get(move.family, 0.0) + (result == FASTER)
            if len(trial.moves) == 1:
                self._verdicts[trial.moves[0].site] = result

    def verdict(self, rewrite: Rewrite) -> str | None:
        return self._verdicts.get(site_of(rewrite))

    def tried(self, rewrites: Sequence[Rewrite]) -> bool:
        return frozenset(map(site_of, rewrites)) in self._pairs

    def weight(self, rewrite: Rewrite) -> float:
        """0: not again. Else the motif's share of wins here (Beta mean, two in four as prior), more for what helped."""
        result = self.verdict(rewrite)
        if result in (FAILED, SLOWER, SAME):
            return 0.0
        wins, trials = self._wins.get(rewrite.motif, 0.0), self._trials.get(rewrite.motif, 0.0)
        return (4.0 if result == FASTER else 1.0) * 2.0 * (wins + 2.0) / (trials + 4.0)


def _pairs(ideas: Sequence[_Idea], record: _Record) -> Iterator[_Idea]:
    """Two rewrites together that were not tried together: neither failed alone, they touch different places."""
    usable = [i for i in ideas if record.verdict(i.rewrites[0]) not in (FAILED, SLOWER)]
    looked_at = 0
    for j, second in enumerate(usable):
        for first in usable[:j]:
            if looked_at == _PAIRS:
                return
            looked_at += 1
            both = (*first.rewrites, *second.rewrites)
            if not record.tried(both):
                yield _Idea(first.weight * second.weight, both)


# -- from an idea to a pair --------------------------------------------------------------------------------------------


def _apply(state: SearchState, idea: _Idea) -> Iterator[Proposal]:
    """The proposal of an idea; nothing if its edits overlap or together break the syntax."""
    parent = state.incumbent.candidate
    try:
        kernel = apply_edits(parent.pair.kernel, [e for r in idea.rewrites for e in r.edits])
        tiling = apply_edits(parent.pair.tiling, [e for r in idea.rewrites for e in r.tiling_edits])
    except ValueError:
        return
    if len(idea.rewrites) > 1 and _broken(parent.pair.kernel, kernel, parent.pair.tiling, tiling):
        return
    yield Proposal(replace(parent.pair, kernel=kernel, tiling=tiling), idea.change, parent.id, idea.moves)


def _broken(
    kernel: Mapping[str, str], new_kernel: Mapping[str, str], tiling: Mapping[str, str], new_tiling: Mapping[str, str]
) -> bool:
    return breaks_syntax(kernel, new_kernel) or breaks_syntax(tiling, new_tiling)
