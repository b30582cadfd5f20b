"""Which case of a warm-up is tuned next, and for how long: each a little, then those that gain most for their time.

A search is done in parts (``Limits.evaluations``): 8 evaluations of each case, in order of its time in the model; then
24, then the whole budget, each time of the case whose last part saved most device time for its seconds. Every part
leaves a result in the cache and a journal that the next part goes on from, so Ctrl-C and a limit keep what is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ...errors import AscendOptError, OutOfTime
from ...search.budget import Limits
from ...store.cache import Entry
from .recording import RecordedCall

FIRST, NEXT = 8, 24  # evaluations after the first and the second part
_FLOOR = 0.02  # of a case's time: what another part is expected to save at least
_LEAST_S = 1.0  # a part is not begun when less than this is left, or than its evaluations took

SPENT = "not tuned: the budget was spent"
STOPPED = "not tuned: the warm-up was interrupted"


@dataclass(eq=False)
class Work:
    """A case to be tuned. ``weight_us``: device time of all its calls in a run, modelled or estimated from its bytes.

    ``promise``: us that the next part is expected to save for a second of its own. ``evaluation_s``: of its last part.
    """

    item: RecordedCall
    weight_us: float
    entry: Entry | None = None
    tuned: bool = False
    reason: str = ""
    parts: int = 0
    promise: float = 0.0
    evaluation_s: float = 0.0

    def target(self, budget: int) -> int:
        """Evaluations after the next part."""
        return min(budget, (FIRST, NEXT, budget)[min(self.parts, 2)])

    @property
    def saved(self) -> float:
        """The share of its time that the result found so far saves."""
        return 0.0 if self.entry is None else 1 - 1 / self.entry.speedup


class Interrupted(Exception):
    """Ctrl-C came, and the part that was under way is kept."""


def tune_breadth_first(
    works: list[Work],
    budget: int,
    end: float | None,
    say: Callable[[int, Work, int], None],
    run: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Tunes until every case has its budget, or until ``end`` (time.monotonic()).

    Args:
        run: options of a run, for what an operator's own don't say.
        say: told of each part before it begins: how many parts there were, whose it is, how many evaluations it goes
            up to.

    Raises:
        Interrupted: by Ctrl-C.
    """
    waiting = list(works)  # in order of weight
    number = 0
    while waiting:
        fresh = [w for w in waiting if not w.parts]
        work = fresh[0] if fresh else max(waiting, key=lambda w: w.promise)
        left = float("inf") if end is None else end - time.monotonic()
        if left < (max(_LEAST_S, 2 * work.evaluation_s) if work.parts else 0.0) or left <= 0:
            waiting.remove(work)  # others may be quicker
            continue
        # While every case has a little to come, none takes more than twice its share of what is left.
        until = None if end is None else time.monotonic() + min(left, 2 * left / len(fresh) if fresh else left)
        say(number, work, work.target(budget))
        number += 1
        if _part(work, budget, until, run):
            waiting.remove(work)


def _part(work: Work, budget: int, until: float | None, run: Mapping[str, Any]) -> bool:
    """One part of a case's search; whether it was the last one."""
    target = work.target(budget)
    before, spent = work.saved, work.entry.provenance.evaluations if work.entry is not None else 0
    began = time.monotonic()
    limits = Limits(evaluations=target if target < budget else None, until=until)
    item = work.item
    tuned = item.op.served.tuned
    try:
        work.entry = item.op.tune_ahead(item.args, item.kwargs, item.original, limits, run)
    except OutOfTime:
        work.reason = SPENT
    except AscendOptError as error:
        work.reason = str(error)
        return True
    seconds = max(time.monotonic() - began, 1e-3)
    work.parts += 1
    work.tuned |= item.op.served.tuned > tuned
    if work.entry is not None:
        made = work.entry.provenance
        if item.op.served.tuned == tuned or made.finished(budget):  # found, or at its end
            return True
        if made.ended == "interrupted":
            raise Interrupted
        work.evaluation_s = seconds / max(made.evaluations - spent, 1)
    work.promise = work.weight_us * max(work.saved - before, _FLOOR) / seconds
    return False
