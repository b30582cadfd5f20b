"""What a run may spend besides evaluations: seconds, which end the search, tokens and money, which end the asking.

The LLM part counts what it uses in a :class:`Usage`, and asks nothing beyond a limit; who needs no model goes on. An
answer that is replayed from a store of earlier answers costs nothing and is not counted, so a resumed run pays for
nothing twice. What is spent is journaled with every trial, and a resumed run goes on counting from there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass
class Usage:
    """What a run's requests to LLMs have cost so far: ``tokens`` in and out, ``money`` in US dollars. Thread-safe."""

    tokens: int = 0
    money: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, tokens: int, money: float = 0.0) -> None:
        with self._lock:
            self.tokens += tokens
            self.money += money


@dataclass(frozen=True)
class Limits:
    """Upper limits of a run; None: no limit. ``seconds`` are of the wall clock, ``money`` US dollars.

    For a run in parts: this part ends with the batch that reaches ``evaluations`` of the run, and at ``until``
    (time.monotonic()).
    """

    seconds: float | None = None
    tokens: int | None = None
    money: float | None = None
    evaluations: int | None = None
    until: float | None = None

    def or_else(self, other: Limits) -> Limits:
        """These limits; where there is none, that of ``other``."""
        return Limits(
            self.seconds if self.seconds is not None else other.seconds,
            self.tokens if self.tokens is not None else other.tokens,
            self.money if self.money is not None else other.money,
            self.evaluations if self.evaluations is not None else other.evaluations,
            self.until if self.until is not None else other.until,
        )


@dataclass
class Budget:
    """``exceeded()`` is what :class:`~.engine.Search` asks before each batch.

    The clock starts when the object is made.
    """

    limits: Limits = field(default_factory=Limits)
    usage: Usage = field(default_factory=Usage)
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._started = self.clock()
        self._before = 0.0  # seconds that the run had spent when it was killed

    @property
    def seconds(self) -> float:
        """Of the wall clock, those before a resumed run was killed included."""
        return self._before + self.clock() - self._started

    def spent(self) -> dict[str, float]:
        """Seconds, tokens and money so far, as the journal keeps them."""
        return {"seconds": round(self.seconds, 3), "tokens": self.usage.tokens, "money": self.usage.money}

    def resume(self, spent: Mapping[str, float]) -> None:
        """Counts what an earlier part of the same run has spent (:meth:`spent` of it)."""
        self._before += spent.get("seconds", 0.0)
        self.usage.add(int(spent.get("tokens", 0)), spent.get("money", 0.0))

    def exceeded(self, evaluations: int = 0) -> str | None:
        """``seconds`` or ``paused``, whichever is spent first; else None.

        Args:
            evaluations: those of the run so far.
        """
        if self.limits.until is not None and self.clock() >= self.limits.until:
            return "seconds"
        if self.limits.evaluations is not None and evaluations >= self.limits.evaluations:
            return "paused"
        return "seconds" if self.limits.seconds is not None and self.seconds >= self.limits.seconds else None

    def unasked(self) -> str | None:
        """``tokens`` or ``money``, where the limit on them keeps a model from being asked for more; else None."""
        for name in ("tokens", "money"):
            limit = getattr(self.limits, name)
            if limit is not None and getattr(self.usage, name) >= limit:
                return name
        return None
