"""The parametric space of a tiling program: the numbers that its template marks, with the values the rules would try.

Optuna and kernel_tuner get this space, the same one. kernel_tuner enumerates a space before it begins, so knobs are
taken by falling rank of their sites until a space would have more than ``MOST`` points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..nouns.operator import Pair
from ..search.mutation import Mutation
from ..search.tiling.context import Context
from ..search.tiling.parameter_rules import single
from ..search.tiling.slice import synthesize
from ..sources.cpp import apply_edits

MOST = 20_000


@dataclass(frozen=True)
class SpaceKnob:
    """``name`` and ``written``, the number in the text; ``options``: the mutations that write another one."""

    name: str
    written: int
    options: tuple[Mutation, ...]

    @property
    def values(self) -> tuple[int, ...]:
        """The number as written first."""
        return (self.written, *(int(m.moves[0].value) for m in self.options))


def knobs(pair: Pair, context: Context, most: int = MOST) -> tuple[SpaceKnob, ...]:
    """The knobs of the pair's tiling program, best rank first; none if it has no number that may be changed."""
    template = synthesize(pair.tiling)
    options: dict[str, dict[int, Mutation]] = {}
    for m in single(template, context):
        options.setdefault(m.moves[0].site, {}).setdefault(int(m.moves[0].value), m)
    found: list[SpaceKnob] = []
    points = 1
    taken: list[tuple[str, int, int]] = []
    for site in template.sites:
        places = [(e.path, e.start, e.end) for m in options.get(site.id, {}).values() for e in m.edits]
        if not places or site.value is None:
            continue
        if any(p == q and a < d and c < b for p, a, b in places for q, c, d in taken):
            continue  # a number inside another one's place
        knob = SpaceKnob(site.id, site.value, tuple(options.pop(site.id).values()))
        if points * len(knob.values) <= most:
            points *= len(knob.values)
            found.append(knob)
            taken += places
    return tuple(found)


def pair_of(pair: Pair, space: Sequence[SpaceKnob], values: Sequence[int]) -> tuple[Pair, str]:
    """The pair with these values, and what differs from the text in one line."""
    chosen = [m for knob, v in zip(space, values, strict=True) for m in knob.options if int(m.moves[0].value) == v]
    changed = apply_edits(pair.tiling, [e for m in chosen for e in m.edits])
    return replace(pair, tiling=changed), "; ".join(m.change for m in chosen) or "as written"
