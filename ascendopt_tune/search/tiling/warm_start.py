"""Warm start: what the cache knows of neighbours is tried before the rules begin.

1. ``neighbours`` collects the nearest improved entries: the same pair for another shape, chip or toolkit; then other
   operators (those with the same tiling program among them) tuned for a case of like size, nearest in dtype and size.
2. ``WarmStart`` proposes them: the same baseline's pair as it is, the same tiling program with this kernel, and else
   the moves that helped there, each replayed by the mutation of this program of the same family and direction.

Which neighbours there are depends on the store alone; a run's journal keeps what it was told, so a resumed run is told
the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ...nouns.operator import Operator, Pair
from ...nouns.trial import Move, Proposal
from ...sources.cpp import apply_edits, breaks_syntax
from ...store.cache import Cache, Entry, EntrySummary, Key
from ..mutation import Mutation
from ..proposer import SearchState
from .context import Context
from .rules import mutations
from .slice import synthesize

_MOST = 4  # evaluations: a tenth of the default budget
_READ = 12  # entries that are opened
_REGIME = 2.0  # powers of two in size within which another operator's moves mean the same here


@dataclass(frozen=True)
class Neighbour:
    """A tuned entry nearby. ``relation``: ``pair`` (same baseline pair), ``tiling`` (same tiling program) or ``other``.

    ``tiling`` and ``kernel`` are the files its best pair changed (``kernel`` for ``pair`` alone, both empty for
    ``other``); ``moves`` what its winner did, step by step.
    """

    source: str  # hash of the entry's key
    relation: str
    title: str
    tiling: Mapping[str, str]
    kernel: Mapping[str, str]
    moves: tuple[Move, ...]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "moves": [m.to_json() for m in self.moves]}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Neighbour:
        return Neighbour(**{**document, "moves": tuple(Move(*m) for m in document["moves"])})


def neighbours(cache: Cache, operator: Operator, key: Key) -> list[Neighbour]:
    """The nearest improved entries of the store, nearest first; equally near ones in order of their hashes.

    ``key`` is that of the run; its own entry is no neighbour.
    """
    store = Cache(root=cache.root, layers=cache.layers)  # lookups of its own are no hits and misses of the caller's
    near = sorted(
        ((_distance(summary, key), summary.key.hash, summary) for summary in store.items()),
        key=lambda row: row[:2],
    )
    out: list[Neighbour] = []
    for distance, source, summary in near[:_READ]:
        relation, *_, size = distance
        if source == key.hash or summary.best_us >= summary.baseline_us or (relation == 2 and size > _REGIME):
            continue
        entry = store.get(summary.key)
        neighbour = _neighbour(entry, operator, key) if entry is not None and entry.improved else None
        if neighbour is not None:
            out.append(neighbour)
    return out


def _distance(summary: EntrySummary, key: Key) -> tuple[float, ...]:
    """By relation first, then chip and target, then dtypes, then the size of the case on a logarithmic scale."""
    other = summary.key
    same_pair = (other.baseline, other.build) == (key.baseline, key.build)
    relation = 0 if same_pair else 1 if other.operator == key.operator else 2
    elsewhere = (other.chip != key.chip) + (other.target != key.target)
    ours, theirs = _case_of(key), _case_of(other)
    return relation, elsewhere, float(ours[0] != theirs[0]), abs(math.log2(ours[1] / theirs[1]))


def _case_of(key: Key) -> tuple[list[str], float]:
    """(dtypes of the inputs, elements of all inputs and outputs) of a key's case."""
    document = key.to_json()["case"]
    tensors: list[str] = []
    for argument in (*document["inputs"], *document["outputs"]):
        tensors += argument if isinstance(argument, list) else [argument] if argument is not None else []
    dtypes = [t.partition("[")[0] for t in tensors]
    sizes = [t.partition("[")[2].partition("]")[0] for t in tensors]
    return dtypes, float(max(1, sum(math.prod(int(n) for n in size.split(",") if n) for size in sizes)))


def _neighbour(entry: Entry, operator: Operator, key: Key) -> Neighbour | None:
    base = operator.baseline
    inputs = entry.key.to_json()["case"]["inputs"]
    tensors = [t for a in inputs if a is not None for t in (a if isinstance(a, list) else [a])]
    title = f"{entry.key.operator} {', '.join(tensors[:3])} on {entry.key.chip}"
    tiling = {p: text for p, text in entry.pair.tiling.items() if base.tiling.get(p) != text}
    kernel = {p: text for p, text in entry.pair.kernel.items() if base.kernel.get(p) != text}
    moves = tuple(Move(*m) for m in entry.provenance.moves)
    source = entry.key.hash
    if (entry.key.baseline, entry.key.build) == (key.baseline, key.build):
        return Neighbour(source, "pair", title, tiling, kernel, moves)
    if entry.provenance.baseline_tiling == base.tiling_hash and tiling:
        return Neighbour(source, "tiling", title, tiling, {}, moves)
    return Neighbour(source, "other", title, {}, {}, moves) if moves else None


class WarmStart:
    """Proposes what neighbours found, nearest first, for at most ``_MOST`` evaluations; a starter of the search."""

    name = "warm-start"
    stage = 1

    def __init__(self, found: Sequence[Neighbour]) -> None:
        self._found = tuple(found)

    def propose(self, state: SearchState, n: int) -> list[Proposal]:
        tried = sum(t.candidate.proposer == self.name and t.duplicate_of is None for t in state.history)
        out: list[Proposal] = []
        seen = set(state.seen)
        for proposal in self._proposals(state):
            if len(out) >= min(n, _MOST - tried):
                break
            if proposal.pair.hash not in seen:
                seen.add(proposal.pair.hash)
                out.append(proposal)
        return out

    def _proposals(self, state: SearchState) -> Iterator[Proposal]:
        base = state.baseline.candidate
        for one in self._found:
            if one.relation == "other":
                tiling, moves = replay(base.pair.tiling, Context.of(state), one.moves)
            else:
                tiling, moves = {**base.pair.tiling, **one.tiling}, one.moves
            pair = Pair(tiling, {**base.pair.kernel, **one.kernel})
            if pair.hash != base.pair.hash and not breaks_syntax(base.pair.tiling, tiling):
                how = {"pair": "pair", "tiling": "tiling program", "other": "moves"}[one.relation]
                yield Proposal(pair, f"warm start: {how} of {one.title}", base.id, moves)


def replay(
    files: Mapping[str, str], context: Context, moves: Sequence[Move]
) -> tuple[dict[str, str], tuple[Move, ...]]:
    """``files`` after the mutation that comes nearest to each of ``moves``, and the moves that were found."""
    now, done = dict(files), list[Move]()
    for move in moves:
        found = nearest(mutations(synthesize(now), context), move)
        if found is None:
            continue
        changed = dict(apply_edits(now, found.edits))
        if not breaks_syntax(files, changed):
            now = changed
            done += found.moves
    return now, tuple(done)


def nearest(known: Sequence[Mutation], move: Move) -> Mutation | None:
    """The mutation that does one move of the same family and direction, with the nearest value; then the worthiest."""
    same = [m for m in known if len(m.moves) == 1 and m.moves[0].family == move.family]
    same = [m for m in same if m.moves[0].direction == move.direction]

    def far(m: Mutation) -> tuple[float, float, str]:
        value = m.moves[0].value
        ratio = abs(math.log2(value / move.value)) if value > 0 and move.value > 0 else abs(value - move.value)
        return ratio, -m.weight, m.change

    return min(same, key=far, default=None)
