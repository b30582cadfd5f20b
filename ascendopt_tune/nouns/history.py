"""What a search has tried, in order, and the questions that everybody has about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cached_property

from .trial import Trial


class History(tuple[Trial, ...]):
    """Trials in order of candidate ids, failures and repeated launches included. The first one is the baseline."""

    @staticmethod
    def of(trials: Iterable[Trial]) -> History:
        return trials if isinstance(trials, History) else History(trials)

    @cached_property
    def by_id(self) -> dict[int, Trial]:
        """By the candidate's id."""
        return {t.candidate.id: t for t in self}

    @cached_property
    def evaluated(self) -> tuple[Trial, ...]:
        """Those that cost an evaluation: no repeated launches."""
        return tuple(t for t in self if t.duplicate_of is None)

    @property
    def timed(self) -> tuple[Trial, ...]:
        """Those of :attr:`evaluated` that passed the gate."""
        return tuple(t for t in self.evaluated if t.time_us is not None)

    @property
    def fastest_first(self) -> list[Trial]:
        """:attr:`timed` by time; the older of equals first."""
        return sorted(self.timed, key=lambda t: (t.time_us or 0.0, t.candidate.id))

    @property
    def outcomes(self) -> Counter[str]:
        """Evaluations by kind of outcome."""
        return Counter(type(t.outcome).__name__ for t in self.evaluated)

    def parent(self, trial: Trial) -> Trial | None:
        """The trial it was made from; None for the baseline, or where that is no part of this history."""
        number = trial.candidate.parent
        return self.by_id.get(number) if number is not None else None

    def lineage(self, trial: Trial) -> tuple[Trial, ...]:
        """From the baseline to ``trial``, each the parent of the next: the changes that led there."""
        out = [trial]
        while (parent := self.parent(out[-1])) is not None:
            out.append(parent)
        return tuple(reversed(out))

    def children(self, trial: Trial) -> tuple[Trial, ...]:
        """What was made from it."""
        return tuple(t for t in self if t.candidate.parent == trial.candidate.id)
