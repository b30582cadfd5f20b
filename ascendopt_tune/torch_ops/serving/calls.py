"""Calls of a tuned operator: how they are counted, and who may take all of them over for a while."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol


class CallObserver(Protocol):
    """Who wants to serve, and note, all calls while it is active (recording.py)."""

    def call(
        self,
        op: Any,  # the TunedOp that was called
        key: Hashable,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any: ...


active: ContextVar[CallObserver | None] = ContextVar("ascendopt_recorder", default=None)


@dataclass
class Served:
    """Calls of one tuned operator, or of several with the same source, by who served them.

    ``kept``: cached, and the user's own pair is the best, so the original served. ``misses``: not cached.
    ``fallbacks``: the original served, by reason. ``compared``: of the hits, those that the original served, too (its
    results were returned). ``captured``: cases that were met untuned during graph capture. ``fast``: of the hits, those
    that were served in C++. ``saved_us`` is an estimate: calls served by tuned pairs times what the tuner measured them
    to save (modelled, on the virtual NPU). ``speedups``: by case, of the tuned pairs that serve now, as people read
    them. Calls without npu tensors, or with tuning switched off, don't count.
    """

    name: str = ""
    hits: int = 0
    kept: int = 0
    misses: int = 0
    tuned: int = 0
    compared: int = 0
    saved_us: float = 0.0
    fallbacks: dict[str, int] = field(default_factory=dict)
    captured: dict[str, int] = field(default_factory=dict)
    fast: int = 0
    speedups: dict[str, str] = field(default_factory=dict)

    def add(self, other: Served) -> None:
        """Counts what ``other`` has counted, too."""
        for count in ("hits", "kept", "misses", "tuned", "compared", "saved_us", "fast"):
            setattr(self, count, getattr(self, count) + getattr(other, count))
        self.speedups.update(other.speedups)
        for mine, theirs in ((self.fallbacks, other.fallbacks), (self.captured, other.captured)):
            for text, number in theirs.items():
                mine[text] = mine.get(text, 0) + number
