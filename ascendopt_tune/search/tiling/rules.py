"""Stage I's rule proposer: mutations of tiling programs, best expected worth first.

0. Choose a parent: mostly the incumbent, sometimes another elite of the population (population.py).
1. Mark the evolvable region (slice.py) of the parent's tiling program.
2. Collect the mutations of all rules; drop those that break the syntax or repeat a text that was tried.
3. Drop those that only ever failed, weigh the others with what the outcomes taught (learning.py), and with what bounds
   the parent (leaning.py).
4. Offer recombinations of the incumbent with other good trials first, then mutations: mostly the best, sometimes a draw
   by weight; when single mutations run out, two at once.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from ...nouns.operator import Pair
from ...nouns.trial import Move, Proposal, Trial
from ...sources.cpp import apply_edits, breaks_syntax
from ..learning import FASTER, Boundaries, verdict
from ..mutation import Mutation
from ..proposer import SearchState
from . import cube_rules, list_rules, logic_rules, parameter_rules, split_rules
from .context import Context
from .leaning import Leaning
from .marked import on_template
from .merge import merge
from .slice import Template, synthesize

RULES = (
    parameter_rules.single,
    parameter_rules.coordinated,
    logic_rules.core_count,
    logic_rules.ub_size,
    logic_rules.quantities,
    logic_rules.tiles,
    logic_rules.used_cores,
    logic_rules.branches,
    split_rules.even_shares,
    split_rules.whole_tiles,
    split_rules.aligned_shares,
    split_rules.swapped_axes,
    split_rules.tiling_keys,
    split_rules.workspace,
    list_rules.shorter_lists,
    cube_rules.base_blocks,
    cube_rules.tiling_class,
)
Files = Mapping[str, str]

_EARLY = 8  # evaluations, the baseline's included
_MATES = 4  # recombinations looked at in one call
_EXPLORE = 0.25  # share of proposals drawn by weight instead of taken from the top
_OTHERS = 0.2  # share of proposals whose parent is another elite than the incumbent


@lru_cache(maxsize=128)
def mutations(template: Template, context: Context) -> tuple[Mutation, ...]:
    """Every mutation the rules know for the program, in a fixed order; none that asks too much of L1 or L0, or for
    another number of cores than the tiling data's lists have entries for."""
    found = (m for rule in RULES for m in rule(template, context))
    refused = (cube_rules.overfull(template, context), list_rules.beyond_lists(template))
    return tuple(m for m in found if not any(r(m) for r in refused))


class TilingRules:
    """The rule proposer of Stage I; see the module's docstring. Holds no state.

    ``explore``: share of proposals that are drawn, once outcomes have taught something: the first ``_EARLY``
    evaluations go to the best.
    """

    name = "tiling-rules"
    stage = 1

    def __init__(self, explore: float = _EXPLORE, others: float = _OTHERS) -> None:
        self._explore, self._others = explore, others

    def propose(self, state: SearchState, n: int) -> list[Proposal]:
        rng = state.rng(self.name)
        population, incumbent = state.population, state.incumbent
        seen = set(state.seen) | {incumbent.candidate.pair.hash}
        sources: dict[int, Iterator[Proposal]] = {}
        out: list[Proposal] = []

        def take(parent: Trial) -> bool:
            number = parent.candidate.id
            for proposal in sources.setdefault(number, self._candidates(state, parent, rng)):
                if proposal.pair.hash not in seen:
                    seen.add(proposal.pair.hash)
                    out.append(proposal)
                    return True
            return False

        while len(out) < n:
            parent = population.parent(incumbent, rng, self._others)
            if not any(take(p) for p in (parent, incumbent, *population.parents(incumbent))):
                break
        return out

    def _candidates(self, state: SearchState, parent: Trial, rng: random.Random) -> Iterator[Proposal]:
        if parent is state.incumbent:
            yield from self._recombinations(state)
        files = on_template(state, parent.candidate.pair.tiling)
        context, boundaries = Context.of(state, parent), Boundaries(state.history)
        leaning = Leaning.of(state, parent)
        best = max(0, _EARLY - len(state.history.evaluated))
        order = list(self._order(mutations(synthesize(files), context), boundaries, rng, leaning, best))
        used: set[str] = set()
        for m in order:  # one proposal a site and batch first: a batch of one idea teaches little
            if used.isdisjoint(move.site for move in m.moves):
                used.update(move.site for move in m.moves)
                yield from self._apply(state, parent, files, m)
        for m in order:
            yield from self._apply(state, parent, files, m)
        yield from self._doubles(parent, files, order, context, boundaries, rng, leaning)

    def _order(
        self,
        found: Iterable[Mutation],
        boundaries: Boundaries,
        rng: random.Random,
        leaning: Leaning,
        best: int = 0,
    ) -> Iterator[Mutation]:
        """By falling weight, except that each place behind the first ``best`` goes to a draw by weight with probability
        ``explore``. Hopeless ones are left out.
        """
        weighed = ((boundaries.weight(m) * leaning.factor(m), m) for m in found if not boundaries.is_hopeless(m))
        rest = sorted(weighed, key=lambda pair: (-pair[0], pair[1].change))
        while rest:
            index = 0
            best -= 1
            if best < 0 and rng.random() < self._explore:
                index = rng.choices(range(len(rest)), weights=[w for w, _ in rest])[0]
            yield rest.pop(index)[1]

    def _apply(self, state: SearchState, parent: Trial, files: Files, m: Mutation) -> Iterator[Proposal]:
        """``files``: the parent's tiling program, with the marks of a template."""
        changed = apply_edits(files, m.edits)
        pair = replace(parent.candidate.pair, tiling=changed)
        if changed != files and pair.hash not in state.seen and not breaks_syntax(files, changed):
            yield Proposal(pair, m.change, parent.candidate.id, m.moves)

    def _doubles(
        self, parent: Trial, files: Files, order: list[Mutation], context: Context, boundaries: Boundaries,
        rng: random.Random, leaning: Leaning,
    ) -> Iterator[Proposal]:  # fmt: skip
        """Two mutations in a row, from the better half of what is known."""
        pool = order[: max(8, len(order) // 2)]
        for _ in range(32 if pool else 0):
            first = rng.choice(pool)
            halfway = apply_edits(files, first.edits)
            if breaks_syntax(files, halfway):
                continue
            found = mutations(synthesize(halfway), context)
            second = list(self._order(found, boundaries, rng, leaning))[:8]
            choices = [m for m in second if {x.site for x in m.moves}.isdisjoint(x.site for x in first.moves)]
            if not choices:
                continue
            then = rng.choice(choices)
            changed = apply_edits(halfway, then.edits)
            if not breaks_syntax(files, changed):
                pair = replace(parent.candidate.pair, tiling=changed)
                yield Proposal(pair, f"{first.change}; {then.change}", parent.candidate.id, first.moves + then.moves)

    def _recombinations(self, state: SearchState) -> Iterator[Proposal]:
        """The incumbent with the disjoint edits of other trials that beat the baseline, the fastest first."""
        base, best = state.baseline.candidate.pair.tiling, state.incumbent
        for t in _mates(state)[:_MATES]:
            merged = merge(base, best.candidate.pair.tiling, t.candidate.pair.tiling)
            if merged is None or merged == best.candidate.pair.tiling or breaks_syntax(base, merged):
                continue
            pair = Pair(merged, best.candidate.pair.kernel)
            moves = (Move(_mating(t), "recombination", "set", t.candidate.id),)
            yield Proposal(pair, f"recombined with #{t.candidate.id} ({t.candidate.change})", best.candidate.id, moves)


def _mating(trial: Trial) -> str:
    return f"recombine:{trial.candidate.id}"


def _mates(state: SearchState) -> list[Trial]:
    """Trials that beat the baseline and their own parent, fastest first.

    Ancestors of the incumbent and trials that were merged with it already are left out.
    """
    history, limit = state.history, state.baseline.time_us or 0.0
    excluded = {t.candidate.id for t in history.lineage(state.incumbent)}
    merged = {m.site for t in history.children(state.incumbent) for m in t.moves}
    return [
        t
        for t in history.fastest_first
        if t.candidate.id not in excluded
        and _mating(t) not in merged
        and (t.time_us or 0.0) < limit
        and history.parent(t) is not None
        and verdict(t, history.parent(t)) == FASTER
    ]
