"""Calls of a tuned operator: how they are counted, and who may take all of them over for a while."""

from __future__ import annotations

from collections import Counter
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
    """Calls of one tuned operator by who served them.

    ``kept``: cached, and the user's own pair is the best, so the original served. ``misses``: not cached.
    ``fallbacks``: the original served, by reason. ``compared``: of the hits, those that the original served, too (its
    results were returned). Calls without npu tensors, or with tuning switched off, don't count. ``saved_us``: by
    operators that serve no more.
    """

    hits: int = 0
    kept: int = 0
    misses: int = 0
    tuned: int = 0
    compared: int = 0
    saved_us: float = 0.0
    fallbacks: Counter[str] = field(default_factory=Counter)
    captured: Counter[str] = field(default_factory=Counter)  # cases that were met untuned during graph capture
    fast: int = 0  # hits served in C++
