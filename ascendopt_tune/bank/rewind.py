"""Optimization rewind: from a strong pair, take optimizations out one at a time, measure what each was worth.

1. A remover names the optimizations it can take out of a kernel, each at one place, with the pair that is left: the
   motifs' own ``rewind`` (:func:`motif_remover`), or a language model behind the same callable.
2. Every such pair goes through the gate (results, hazards, memory) and is measured.
3. A removal that makes the task slower beyond noise is kept: slow and fast kernel, with both profiles.
4. The trajectory goes on from a slower kernel, as the paper's does, until nothing more can be taken out.

A kernel need not be as strong as it could be: :func:`ahead` puts optimizations in that it lacks. Where one makes it
faster beyond noise, the faster kernel is the strong one, and the kernel as it was is what is left without it.

Beyond noise: by more than ``min_effect`` of the task's time, and on a device whose times vary by three times the spread
that was measured. The threshold is 2 %: repeated measurements of one published kernel differ by as much (fidelity/
compare.py), so a smaller effect couldn't be told on a chip, even where the model, which has no noise, tells it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..nouns.operator import Pair
from ..nouns.outcome import Outcome, Timed
from ..nouns.profile import Profile

MIN_EFFECT = 0.02
PUT_IN = "+"  # in front of a motif's name in a path: the optimization was put in
_SPREADS = 3.0


@dataclass(frozen=True)
class Removal:
    """An optimization taken out: ``motif`` at ``site``, one line on the change, and the pair without it.

    Where optimizations are put in (:func:`ahead`), ``pair`` is the one with it.
    """

    motif: str
    site: str
    change: str
    pair: Pair


Remover = Callable[[Pair], Iterable[Removal]]
#: Numbered pairs through the gate; yields (number, outcome) as they end.
MeasureMany = Callable[[Mapping[int, Pair]], Iterable[tuple[int, Outcome]]]


@dataclass(frozen=True)
class RewindStep:
    """One removal and what it came to.

    ``path``: (motif, site) of what was taken out before, this one last; ``+motif`` where it was put in. ``slow`` and
    ``fast``: the pairs without and with the optimization, ``before`` and ``after`` their profiles, None for a pair the
    gate refused. ``outcome``: the changed pair's. ``verdict``: ``hurts`` (an experience), ``harmless`` (no
    difference beyond noise) or ``refused`` (the gate didn't let the changed pair pass; ``outcome`` says why).
    """

    removal: Removal
    path: tuple[tuple[str, str], ...]
    slow: Pair
    fast: Pair
    before: Profile | None
    after: Profile | None
    outcome: Outcome
    verdict: str

    @property
    def forward(self) -> bool:
        """Was the optimization put in, not taken out?"""
        return self.path[-1][0].startswith(PUT_IN)


@dataclass(frozen=True)
class RewindOptions:
    """``depth``: removals behind one another. ``min_effect``: share of the fast task's time a removal must cost.

    ``per_motif``: of the places where one motif can be taken out of one kernel, so many are tried, in source order.
    """

    depth: int = 2
    min_effect: float = MIN_EFFECT
    per_motif: int = 2


def hurts(slow: Profile, fast: Profile, min_effect: float = MIN_EFFECT) -> bool:
    """Is ``slow`` slower than ``fast`` beyond noise?"""
    spread = max(p.counters.get("candidate_spread_us", 0.0) for p in (slow, fast))
    margin = max(min_effect * fast.task_duration_us, _SPREADS * spread)
    return slow.task_duration_us - fast.task_duration_us > margin


def rewind(
    strong: Pair,
    profile: Profile,
    remover: Remover,
    measure_many: MeasureMany,
    options: RewindOptions | None = None,
) -> Iterator[RewindStep]:
    """The steps, as their measurements end.

    At each depth all removals from the current kernel are measured. The next kernel is the one that lost least of
    those that hurt: behind a small loss the others still show, behind a large one they don't.
    ``profile`` is the strong pair's.
    """
    options = options or RewindOptions()
    fast, after = strong, profile
    path: tuple[tuple[str, str], ...] = ()
    seen = {strong.hash}
    for _ in range(options.depth):
        removals = _chosen(remover(fast), seen, options.per_motif)
        seen |= {r.pair.hash for r in removals}
        steps = []
        for step in _measured(removals, path, fast, after, measure_many, options):
            steps.append(step)
            yield step
        slower = [s for s in steps if s.verdict == "hurts"]
        if not slower:
            return
        following = min(slower, key=lambda s: (_time(s), s.path))
        assert following.before is not None
        fast, after, path = following.slow, following.before, following.path


def ahead(
    pair: Pair,
    profile: Profile,
    applier: Remover,
    measure_many: MeasureMany,
    options: RewindOptions | None = None,
) -> Iterator[RewindStep]:
    """One step for each optimization that ``applier`` can put into ``pair``, as their measurements end."""
    options = options or RewindOptions()
    chosen = _chosen(applier(pair), {pair.hash}, options.per_motif)
    yield from _measured(chosen, (), pair, profile, measure_many, options, forward=True)


def replay(
    strong: Pair,
    profile: Profile,
    remover: Remover,
    applier: Remover,
    measure_many: MeasureMany,
    path: Sequence[tuple[str, str]],
    options: RewindOptions | None = None,
) -> Iterator[RewindStep]:
    """The steps of one path of a trajectory: measures again what an experience says, and nothing else.

    Ends early where the path can't be followed: nothing to take out there, or the gate refuses it.
    """
    options = options or RewindOptions()
    now, measured = strong, profile
    for length, (name, site) in enumerate(path):
        forward, motif = name.startswith(PUT_IN), name.removeprefix(PUT_IN)
        source = applier if forward else remover
        removals = [r for r in source(now) if (r.motif, r.site) == (motif, site)][:1]
        for step in _measured(removals, tuple(path[:length]), now, measured, measure_many, options, forward=forward):
            yield step
            if not isinstance(step.outcome, Timed):
                return
            now, measured = step.removal.pair, step.outcome.profile
        if not removals:
            return


def _chosen(removals: Iterable[Removal], seen: set[str], per_motif: int) -> list[Removal]:
    """New pairs, each once, ``per_motif`` of each motif."""
    chosen: dict[str, Removal] = {}
    counts: dict[str, int] = {}
    for r in removals:
        if r.pair.hash not in seen and r.pair.hash not in chosen and counts.get(r.motif, 0) < per_motif:
            chosen[r.pair.hash] = r
            counts[r.motif] = counts.get(r.motif, 0) + 1
    return list(chosen.values())


def _measured(
    removals: Sequence[Removal],
    path: tuple[tuple[str, str], ...],
    pair: Pair,
    profile: Profile,
    measure_many: MeasureMany,
    options: RewindOptions,
    *,
    forward: bool = False,
) -> Iterator[RewindStep]:
    """``pair`` and its profile are what each removal starts from."""
    for number, outcome in measure_many({i: r.pair for i, r in enumerate(removals)}):
        yield step_of(removals[number], path, pair, profile, outcome, options.min_effect, forward=forward)


def step_of(
    removal: Removal,
    path: tuple[tuple[str, str], ...],
    pair: Pair,
    profile: Profile,
    outcome: Outcome,
    min_effect: float = MIN_EFFECT,
    *,
    forward: bool = False,
) -> RewindStep:
    """What became of ``removal`` (``outcome``), which started from ``pair`` and its profile, ``path`` behind it."""
    changed = outcome.profile if isinstance(outcome, Timed) else None
    slow, fast = (pair, removal.pair) if forward else (removal.pair, pair)
    before, after = (profile, changed) if forward else (changed, profile)
    verdict = "refused"
    if before is not None and after is not None:
        verdict = "hurts" if hurts(before, after, min_effect) else "harmless"
    name = f"{PUT_IN if forward else ''}{removal.motif}"
    return RewindStep(removal, (*path, (name, removal.site)), slow, fast, before, after, outcome, verdict)


def _time(step: RewindStep) -> float:
    assert step.before is not None
    return step.before.task_duration_us
