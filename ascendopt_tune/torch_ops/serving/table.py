"""The dispatch table of one tuned operator: what serves each key, and who has served so far."""

from __future__ import annotations

from collections.abc import Hashable

from ...store.cache import Key
from .calls import Served
from .cases import CaseCount, CaseStatus
from .fast_path import FastTable
from .guard import Probation
from .launcher import Launcher
from .resolve import Original

MAX_KEYS = 10_000  # of one table; beyond, what the original serves is forgotten, and resolved again when it comes

Choice = Launcher | Probation | Original


class DispatchTable:
    """``choices``: by key, what serves; read without a lock by every call, changed by :meth:`replace` alone, under the
    operator's lock. ``counts``: of each case, what no launcher counts. ``counted``: what no launcher that still serves
    counts. ``fast``: what C++ serves, once there is such a library.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.choices: dict[Hashable, Choice] = {}
        self.counts: dict[Hashable, CaseCount] = {}
        self.counted = Served(name)
        self.fast: FastTable | None = None

    def launchers(self) -> list[Launcher]:
        """Those that serve alone now."""
        return [choice for choice in list(self.choices.values()) if isinstance(choice, Launcher)]

    def replace(self, key: Hashable, choice: Choice | None) -> None:
        """Has ``choice`` serve the key from now on; None: it is resolved anew. A launcher's counts are kept."""
        before = self.choices.get(key)
        if choice is None:
            self.choices.pop(key, None)
        else:
            if len(self.choices) >= MAX_KEYS:
                for old in [k for k, c in self.choices.items() if isinstance(c, Original)]:
                    del self.choices[old]
                    self.counts.pop(old, None)
            self.choices[key] = choice
        if isinstance(before, Launcher) and before is not choice:
            self._retire(before, self.counts.get(key))

    def _retire(self, launcher: Launcher, count: CaseCount | None) -> None:
        """Takes over what a launcher that no longer serves has counted."""
        launcher.serving = False
        if self.fast is not None:
            self.fast.remove(launcher)
        hits = self._add(self.counted, launcher)
        if count is not None:
            count.hits += hits
        launcher.calls, launcher.fast = 0, None

    def count(self, choice: Original) -> None:
        """A call that the original served. Threads count at the same time, without a lock: an addition to an attribute
        or an item is whole under the interpreter's, as long as it calls nothing."""
        counted = self.counted
        if choice.kind == "fallbacks":
            counted.fallbacks.setdefault(choice.reason, 0)
            counted.fallbacks[choice.reason] += 1
        elif choice.kind == "kept":
            counted.kept += 1
        elif choice.kind == "misses":
            counted.misses += 1

    def served(self, tuned: int) -> Served:
        """The counts so far. ``tuned``: cases that this process tuned."""
        counts = Served(self.name, tuned=tuned, speedups=self.speedups())
        counts.add(self.counted)
        for launcher in self.launchers():
            self._add(counts, launcher)
        return counts

    @staticmethod
    def _add(counts: Served, launcher: Launcher) -> int:
        """Adds the launcher's counts; the calls it served. They are taken before the addition (:meth:`count`)."""
        entry, hits, fast = launcher.entry, launcher.served(), launcher.served_fast()
        counts.hits += hits
        counts.fast += fast
        counts.saved_us += hits * (entry.baseline.task_duration_us - entry.best.task_duration_us)
        return hits

    def speedups(self) -> dict[str, str]:
        """By case, what the tuned pairs that serve now were found to gain."""
        return {str(launcher.entry.case): launcher.entry.speedup_text for launcher in self.launchers()}

    def cases(self) -> list[tuple[CaseStatus, Key | None]]:
        """Every case that was met, and, of those that are missing, what was looked up."""
        choices, counts = dict(self.choices), dict(self.counts)
        return [self._case(choices.get(key), counts.get(key)) for key in {**choices, **counts}]

    def _case(self, choice: Choice | None, count: CaseCount | None) -> tuple[CaseStatus, Key | None]:
        count = count or CaseCount("", 0.0)
        text, hits, us, looked_up = count.case, count.hits, count.us, None
        source, why = "original", ""
        if isinstance(choice, (Launcher, Probation)):
            launcher = choice if isinstance(choice, Launcher) else choice.launcher
            source = "tuned" if choice is launcher else "probation"
            entry = launcher.entry
            hits += launcher.served() if choice is launcher else 0
            text, us = text or str(entry.case), entry.baseline.task_duration_us
            why = f"{entry.speedup_text}, {entry.provenance.search_text}"
        elif isinstance(choice, Original):
            source = {"kept": "kept", "misses": "missing"}.get(choice.kind, "original")
            why, looked_up = choice.reason, choice.key
            if choice.wanted is not None and choice.wanted.job is not None:
                why, looked_up = f"{why}; in the background: {choice.wanted.job.state}", None
        return CaseStatus(self.name, text, source, hits, count.misses, why, us), looked_up
