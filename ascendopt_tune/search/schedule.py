"""Which stage gets the next steps.

``paper``: every round has U Stage-I steps, then S Stage-II steps (Algorithm 1; 10 and 10, 40 evaluations in all).
``opening``: as many, but the first round begins with a few of each stage, when the likeliest of each are still to come,
and goes on in short turns.
``adaptive``: short rounds; each stage's share follows from what it earned for an evaluation of the round before. A
stage never falls below one step a round, so it can come back when the other one has changed the pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain, cycle

from ..nouns.run_options import Schedule
from ..nouns.trial import Trial
from .proposer import JOINT

SCHEDULES = tuple(s.value for s in Schedule)
# (stage, steps): joint moves first, some of which are worth most of all; then everything the kernel's motifs can do at
# once, as fewer cores pay when they start faster; then their number, and what shorter lists make possible.
_OPENING = ((JOINT, 2), (2, 1), (1, 1), (2, 1), (1, 3))
_TURN = 3  # steps of a stage behind the opening: each builds on what the other has just found
_ROUND = 8  # steps of an adaptive round: five rounds of a budget of 40


def plan(schedule: str, wanted: dict[int, int], history: Sequence[Trial], joint: int = 0) -> list[tuple[int, int]]:
    """(stage, steps) of the next round, in order. ``wanted``: steps of each stage that has proposers, as in the paper;
    ``joint``: steps of joint moves, in front but for the opening.

    A function of the history, so that a resumed run plans as the uninterrupted one.
    """
    if joint == 0:
        return _planned(schedule, wanted, history)
    if schedule == Schedule.OPENING and len(wanted) > 1 and all(t.round == 0 for t in history):
        return _opened({JOINT: joint, **wanted})
    return [(JOINT, joint), *_planned(schedule, wanted, history)]


def _planned(schedule: str, wanted: dict[int, int], history: Sequence[Trial]) -> list[tuple[int, int]]:
    if schedule == Schedule.ADAPTIVE and len(wanted) > 1:
        return _by_earnings(wanted, history)
    if schedule == Schedule.OPENING and len(wanted) > 1 and all(t.round == 0 for t in history):
        return _opened(wanted)
    return list(wanted.items())


def _opened(wanted: dict[int, int]) -> list[tuple[int, int]]:
    """The first round: ``_OPENING``, and what is left of everybody's steps behind it, in short turns."""
    left, out = dict(wanted), []
    turns = chain(_OPENING, cycle((stage, _TURN) for stage in dict(_OPENING)))
    while any(left.values()):
        stage, steps = next(turns)
        now = min(steps, left.get(stage, 0))
        if now > 0:
            left[stage] -= now
            out.append((stage, now))
    return out


def _by_earnings(wanted: dict[int, int], history: Sequence[Trial]) -> list[tuple[int, int]]:
    earned = earnings(history)
    total = sum(earned.get(stage, 0.0) for stage in wanted)
    if total <= 0:
        return [(stage, _ROUND // len(wanted)) for stage in wanted]
    first, second = sorted(wanted, key=lambda stage: (-earned.get(stage, 0.0), stage))
    steps = min(_ROUND - 1, max(_ROUND // 2, round(_ROUND * earned[first] / total)))
    return [(first, steps), (second, _ROUND - steps)]


def earnings(history: Sequence[Trial]) -> dict[int, float]:
    """By stage: the logarithm of the speedup per evaluation that its steps of the last round brought."""
    last = max((t.round for t in history), default=0)
    best = next((t.time_us for t in history if t.time_us is not None), None)
    gains: dict[int, float] = {}
    steps: dict[int, int] = {}
    for t in history:
        now = t.time_us
        better = best is not None and now is not None and 0 < now < best
        if t.round == last and t.duplicate_of is None:
            steps[t.stage] = steps.get(t.stage, 0) + 1
            if better:
                assert best is not None
                assert now is not None
                gains[t.stage] = gains.get(t.stage, 0.0) + math.log(best / now)
        if better:
            best = now
    return {stage: gains.get(stage, 0.0) / n for stage, n in steps.items()}
