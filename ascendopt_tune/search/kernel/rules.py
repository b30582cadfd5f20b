"""Stage II's rule proposer: motifs applied to the incumbent's kernel, the likeliest to pay first.

1. Diagnose the incumbent's profile: motifs are ranked by the bottlenecks they name, and, with a bank, by how near the
   experiences are that it finds for what the kernel shows.
2. Collect the rewrites of all motifs (cached by kernel), and group them: a motif at all its places, in one function, at
   one place. Most kernels have more places than a budget has evaluations.
3. Weigh groups with the history. What failed on this kernel isn't tried again, nor a part of what did nothing, nor more
   of what failed; what helped on another parent comes first; motifs that win are worth more.
4. Offer everything that can be applied at once; where that fails, without the motifs that such a failure is mostly
   of; then one group a motif, then the rest, then two groups together, then what a change that was no faster made
   possible (population.py: neutral trials). What is hardly worth an evaluation isn't offered: the other stage has use
   for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Protocol

from ...evaluate.diagnosis import diagnose
from ...nouns.case import flatten
from ...nouns.history import History
from ...nouns.operator import Pair
from ...nouns.outcome import Timed
from ...nouns.trial import Move, Proposal, Trial
from ...sources.cpp import Edit, apply_edits, breaks_syntax
from ..learning import FAILED, FASTER, SAME, SLOWER, verdict
from ..proposer import SearchState
from ..tried import prior
from .motifs import MOTIFS, Motif, Rewrite, find
from .reading.kernel_program import KernelProgram

_NEIGHBOURS = 8  # motifs asked of the bank
_OTHER = 0.2  # worth of a motif that no finding and no experience speaks for
_RANKS = (1.0, 0.7, 0.5)  # worth of a motif by the rank of the finding it helps against
_FLOOR = 0.06  # groups worth less are not offered
_IDLE = 0.4  # worth of a motif for each trial of it that did nothing
_PAIRS = 64  # pairs of groups looked at in one call
_NAMED = 3  # places a proposal's line names
_BLOCK = 32  # bytes: what a copy without padding moves
_OF_L2 = 0.5  # of L2 that the case's tensors have to exceed for what L2 can't hold to matter. Chosen by judgement

#: Outcome of several motifs together -> the kinds of motifs (folders) that it is mostly of. Chosen by judgement.
_BLAMED = {
    "Hazard": frozenset(["waiting"]),
    "Deadlock": frozenset(["waiting"]),
    "WrongResult": frozenset(["copies", "vectors", "repeated"]),
    "OutOfBounds": frozenset(["copies", "vectors", "buffers"]),
    "LaunchFailed": frozenset(["buffers"]),
}


class Named(Protocol):
    """An experience, as far as it is asked here: the motif it is of."""

    @property
    def motif(self) -> str: ...


@dataclass(frozen=True)
class _Group:
    """Rewrites to be applied at once, and what speaks for them."""

    rewrites: tuple[Rewrite, ...]
    weight: float = 1.0
    parent: Trial | None = None  # None: the incumbent
    behind: tuple[tuple[Rewrite, ...], ...] = ()  # more, each of the kernel that those in front of it leave

    @property
    def every(self) -> tuple[Rewrite, ...]:
        return (*self.rewrites, *chain.from_iterable(self.behind))

    @property
    def moves(self) -> tuple[Move, ...]:
        return tuple(Move(site_of(r), r.motif, "flip", 1.0) for r in self.every)

    @property
    def change(self) -> str:
        """One line: each motif with its places."""
        parts = []
        for motif in dict.fromkeys(r.motif for r in self.every):
            mine = [r for r in self.every if r.motif == motif]
            places = dict.fromkeys(_function(r) for r in mine)
            at = ", ".join(list(places)[:_NAMED]) + (", ..." if len(places) > _NAMED else "")
            parts.append(f"{motif}: {mine[0].change if len(mine) == 1 else f'at {len(mine)} places ({at})'}")
        return "; ".join(parts)


def site_of(rewrite: Rewrite) -> str:
    """The name of motif and place, as moves of Stage II carry it."""
    return f"{rewrite.motif}@{rewrite.site}"


def _function(rewrite: Rewrite) -> str:
    return rewrite.site.partition("/")[0]


class KernelRules:
    """The rule proposer of Stage II; see the module's docstring.

    ``retrieve(state, k)`` gives up to ``k`` experiences, one a motif, the nearest to what the incumbent shows first.
    """

    name = "kernel-rules"
    stage = 2

    def __init__(self, retrieve: Callable[[SearchState, int], Sequence[Named]] | None = None) -> None:
        self._retrieve = retrieve

    def propose(self, state: SearchState, n: int) -> list[Proposal]:
        seen = set(state.seen)
        out: list[Proposal] = []
        for group in self._groups(state):
            proposal = _apply(state, group)
            if proposal is not None and proposal.pair.hash not in seen:
                seen.add(proposal.pair.hash)
                out.append(proposal)
            if len(out) == n:
                break
        return out

    def _groups(self, state: SearchState) -> Iterator[_Group]:
        worth, record = self._worth(state), _Record(state.history)
        by_motif = _rewrites(*_kernel(state))
        broad: list[Rewrite] = []
        groups: list[_Group] = []
        for motif in MOTIFS:
            if not _is_of_use(motif, state):
                continue
            mine = grouped(by_motif.get(motif.name, ()))
            if mine and _goes_together(motif, state):
                broad += mine[0]
            for position, rewrites in enumerate(mine):
                weight = worth.get(motif.name, _OTHER) * record.factor(rewrites) / (1.0 + 0.15 * position)
                groups.append(_Group(rewrites, weight))
        everything = _joined(state, _compatible(r for r in broad if not record.refused(r)), record)
        if len({r.motif for r in everything.every}) > 1 and record.factor(everything.every) > 0:
            yield everything
        usable = sorted((g for g in groups if g.weight >= _FLOOR), key=lambda g: -g.weight)  # stable
        first: dict[str, _Group] = {}
        for group in usable:
            first.setdefault(group.rewrites[0].motif, group)
        yield from first.values()
        yield from usable
        yield from _pairs([g for g in groups if not any(map(record.refused, g.rewrites))], record)
        yield from self._enabled(state, by_motif, worth, record)

    def _enabled(
        self, state: SearchState, known: Mapping[str, Sequence[Rewrite]], worth: Mapping[str, float], record: _Record
    ) -> Iterator[_Group]:
        """What a neutral change made possible: rewrites of its kernel that the incumbent's has no place for."""
        mine = {site_of(r) for rewrites in known.values() for r in rewrites}
        for parent in state.population.enabling(state.incumbent):
            for name, rewrites in _rewrites(*_kernel(state, parent)).items():
                for group in grouped([r for r in rewrites if site_of(r) not in mine])[:1]:
                    weight = worth.get(name, _OTHER) * record.factor(group)
                    if weight >= _FLOOR:
                        yield _Group(group, weight, parent)

    def _worth(self, state: SearchState) -> dict[str, float]:
        """Motif -> how much speaks for it on this kernel, before anything was tried."""
        if not isinstance(state.incumbent.outcome, Timed):
            return {}
        profile = state.incumbent.outcome.profile
        findings = diagnose(profile, state.chip).findings
        worth: dict[str, float] = {}
        for motif in MOTIFS:
            ranks = [i for i, f in enumerate(findings) if f.bound in motif.bottlenecks]
            if ranks:
                worth[motif.name] = _RANKS[min(ranks[0], len(_RANKS) - 1)]
        if self._retrieve is not None:
            for rank, experience in enumerate(self._retrieve(state, _NEIGHBOURS)):
                worth[experience.motif] = worth.get(experience.motif, _OTHER) + 0.6 / (1.0 + rank)
        return worth


def _goes_together(motif: Motif, state: SearchState) -> bool:
    """Whether its rewrites are tried together with other motifs'."""
    if motif.together == "whole-blocks":
        return not any(t.nbytes % _BLOCK for t in flatten((*state.case.inputs, *state.case.outputs)))
    return motif.together == "yes" or (motif.together == "auto-sync" and state.operator.auto_sync)


def _is_of_use(motif: Motif, state: SearchState) -> bool:
    """Whether the case is one that the motif can help."""
    if motif.beyond_l2:
        moved = sum(t.nbytes for t in flatten((*state.case.inputs, *state.case.outputs)))
        return moved > _OF_L2 * float(state.chip.values["memory.l2_bytes"])
    return True


def _joined(state: SearchState, rewrites: tuple[Rewrite, ...], record: _Record) -> _Group:
    """The rewrites, and behind them the motifs that change the whole kernel; without what is blamed for a failure."""
    with_more = True
    while True:
        group = _Group(rewrites, behind=_behind(state, rewrites, record) if with_more else ())
        blamed = record.blamed(group.every)
        left = tuple(r for r in rewrites if find(r.motif).kind not in blamed)
        if len(left) < len(rewrites):
            rewrites = left
        elif blamed and with_more and not {find(r.motif).kind for r in group.every}.isdisjoint(blamed):
            with_more = False
        else:
            return group


def _behind(state: SearchState, rewrites: tuple[Rewrite, ...], record: _Record) -> tuple[tuple[Rewrite, ...], ...]:
    """What the motifs that go behind others do to the incumbent's kernel with these rewrites, one after the other."""
    pair: Pair | None = applied(state.incumbent.candidate.pair, rewrites)
    out: list[tuple[Rewrite, ...]] = []
    for motif in MOTIFS:
        if motif.together != "behind" or pair is None:
            continue
        files = tuple(sorted(pair.kernel.items())), tuple(sorted(pair.tiling.items()))
        program = _program(*files, state.operator.auto_sync, state.incumbent.tiling_key)
        found = grouped([r for r in motif.optimize(program) if not record.refused(r)])[:1]
        after = applied(pair, found[0]) if found else None
        if after is not None:
            out.append(found[0])
            pair = after
    return tuple(out)


# -- the kernel's rewrites ---------------------------------------------------------------------------------------------


_Files = tuple[tuple[str, str], ...]


def rewrites_of(
    pair: Pair, auto_sync: bool, key: int | None = None, motifs: Iterable[str] | None = None
) -> dict[str, tuple[Rewrite, ...]]:
    """Motif -> all it can do to the pair's kernel, as it runs with tiling key ``key`` (None: with any).

    ``motifs``: these only, in the order of MOTIFS (None: all).
    """
    kernel, tiling = tuple(sorted(pair.kernel.items())), tuple(sorted(pair.tiling.items()))
    names = {m.name for m in MOTIFS} if motifs is None else set(motifs)
    return _rewrites(kernel, tiling, auto_sync, key, [m for m in MOTIFS if m.name in names])


def _kernel(state: SearchState, of: Trial | None = None) -> tuple[_Files, _Files, bool, int | None]:
    """What the rewrites of a trial's kernel, the incumbent's by default, depend on."""
    trial = of or state.incumbent
    pair = trial.candidate.pair
    kernel, tiling = tuple(sorted(pair.kernel.items())), tuple(sorted(pair.tiling.items()))
    return kernel, tiling, state.operator.auto_sync, trial.tiling_key


@lru_cache(maxsize=64)
def _program(kernel: _Files, tiling: _Files, auto_sync: bool, key: int | None) -> KernelProgram:
    return KernelProgram(dict(kernel), dict(tiling), None, auto_sync, key)


def _rewrites(
    kernel: _Files, tiling: _Files, auto_sync: bool, key: int | None, motifs: Iterable[Motif] = MOTIFS
) -> dict[str, tuple[Rewrite, ...]]:
    return {motif.name: _found(kernel, tiling, auto_sync, key, motif) for motif in motifs}


@lru_cache(maxsize=64 * len(MOTIFS))
def _found(kernel: _Files, tiling: _Files, auto_sync: bool, key: int | None, motif: Motif) -> tuple[Rewrite, ...]:
    return tuple(motif.optimize(_program(kernel, tiling, auto_sync, key)))


def grouped(rewrites: Sequence[Rewrite]) -> list[tuple[Rewrite, ...]]:
    """The motif at all places, by function, and at each place; what the motif itself puts together comes first."""
    own = [r for r in rewrites if "/" not in r.site]
    singles = [r for r in rewrites if "/" in r.site]
    out: list[tuple[Rewrite, ...]] = [(r,) for r in own]
    functions = list(dict.fromkeys(map(_function, singles)))
    if not own:
        out.append(_compatible(singles))
    if len(functions) > 1:
        out += [_compatible(r for r in singles if _function(r) == f) for f in functions]
    out += [(r,) for r in singles]
    return list(dict.fromkeys(g for g in out if g))


def _compatible(rewrites: Iterable[Rewrite]) -> tuple[Rewrite, ...]:
    """The rewrites in order without those that touch what an earlier one changes."""
    taken: list[Edit] = []
    out = []
    for r in rewrites:
        edits = [*r.edits, *r.tiling_edits]
        if not any(_overlap(e, t) for e in edits for t in taken):
            taken += edits
            out.append(r)
    return tuple(out)


def _overlap(a: Edit, b: Edit) -> bool:
    return a.path == b.path and a.start < max(b.end, b.start + 1) and b.start < max(a.end, a.start + 1)


# -- what the history says ---------------------------------------------------------------------------------------------


class _Record:
    """What earlier trials made of motifs and places, on whatever parent."""

    def __init__(self, history: Sequence[Trial]) -> None:
        history = History.of(history)
        self._wins: dict[str, float] = {}
        self._trials: dict[str, float] = {}
        self._idle: dict[str, int] = {}  # trials of a motif alone that changed nothing
        self._results: dict[frozenset[str], str] = {}
        self._failures: dict[frozenset[str], str] = {}  # names of outcomes
        for trial in history:
            if trial.stage != KernelRules.stage or not trial.moves:
                continue
            parent = history.parent(trial)
            result = verdict(trial, parent)
            sites = frozenset(m.site for m in trial.moves)
            self._results[sites] = result
            if result == FAILED:
                self._failures[sites] = type(trial.outcome).__name__
            families = {m.family for m in trial.moves}
            if result == SAME and len(families) == 1:
                self._idle.update({f: self._idle.get(f, 0) + 1 for f in families})
            for family in families:
                self._trials[family] = self._trials.get(family, 0.0) + 1.0
                self._wins[family] = self._wins.get(family, 0.0) + (result == FASTER)

    def refused(self, rewrite: Rewrite) -> bool:
        """Did this rewrite, alone, fail or slow the kernel down?"""
        return self._results.get(frozenset([site_of(rewrite)])) in (FAILED, SLOWER)

    def _may_be_blamed(self, kinds: set[str], tried: frozenset[str]) -> bool:
        """Whether the failure of what was tried together may be that of motifs of these kinds."""
        blamed = _BLAMED.get(self._failures.get(tried, ""))
        return blamed is None or not kinds.isdisjoint(blamed)

    def blamed(self, rewrites: Iterable[Rewrite]) -> frozenset[str]:
        """The kinds of motifs that are blamed, where just these rewrites together have failed."""
        return _BLAMED.get(self._failures.get(frozenset(map(site_of, rewrites)), ""), frozenset())

    def factor(self, rewrites: Sequence[Rewrite]) -> float:
        """0: not again. Else the motif's share of wins here (Beta mean, with what tried.py knows and two in four as
        prior), more for what helped, less for a motif that has only ever done nothing."""
        sites = frozenset(map(site_of, rewrites))
        motifs = {r.motif for r in rewrites}
        kinds = {find(m).kind for m in motifs}
        wins = sum(self._wins.get(m, 0.0) for m in motifs)
        before = [prior(m) for m in motifs]
        trials = sum(self._trials.get(m, 0.0) for m in motifs) + sum(n for _, n in before)
        out = 2.0 * (wins + sum(w for w, _ in before) + 2.0) / (trials + 4.0)
        if wins == 0:
            out *= _IDLE ** max(self._idle.get(m, 0) for m in motifs)
        for tried, result in self._results.items():
            if tried == sites:
                out *= 4.0 if result == FASTER else 0.0
            elif sites < tried and (result != FAILED or self._may_be_blamed(kinds, tried)):
                out *= {SAME: 0.0, SLOWER: 0.5, FAILED: 0.7}.get(result, 1.0)
            elif tried < sites:
                out *= {FAILED: 0.0, SLOWER: 0.3}.get(result, 1.0)
        return out


def _pairs(groups: Sequence[_Group], record: _Record) -> Iterator[_Group]:
    """Two groups together that were not tried together."""
    looked_at = 0
    for j, second in enumerate(groups):
        for first in groups[:j]:
            if looked_at == _PAIRS:
                return
            looked_at += 1
            both = _compatible((*first.rewrites, *second.rewrites))
            worth = first.weight * second.weight * record.factor(both)
            if both not in (first.rewrites, second.rewrites) and worth >= _FLOOR:
                yield _Group(both)


# -- from a group to a pair --------------------------------------------------------------------------------------------


def _apply(state: SearchState, group: _Group) -> Proposal | None:
    """The proposal; None if the edits overlap or together break the syntax."""
    parent = (group.parent or state.incumbent).candidate
    pair: Pair | None = parent.pair
    for rewrites in (group.rewrites, *group.behind):
        pair = applied(pair, rewrites) if pair is not None else None
    return Proposal(pair, group.change, parent.id, group.moves) if pair is not None else None


def applied(pair: Pair, rewrites: Sequence[Rewrite]) -> Pair | None:
    """The pair with all the rewrites; None if their edits overlap or together break the syntax."""
    try:
        kernel = apply_edits(pair.kernel, [e for r in rewrites for e in r.edits])
        tiling = apply_edits(pair.tiling, [e for r in rewrites for e in r.tiling_edits])
    except ValueError:
        return None
    if len(rewrites) > 1 and (breaks_syntax(pair.kernel, kernel) or breaks_syntax(pair.tiling, tiling)):
        return None
    return replace(pair, kernel=kernel, tiling=tiling)
