"""A mutation: edits of a tiling program, told in one line, with the moves it makes."""

from __future__ import annotations

from dataclasses import dataclass

from ..nouns.trial import Move
from ..sources.cpp import Edit


@dataclass(frozen=True)
class Mutation:
    """``weight`` is the prior worth: the site's rank times how promising this value is among the site's values."""

    edits: tuple[Edit, ...]
    change: str
    moves: tuple[Move, ...]
    weight: float
