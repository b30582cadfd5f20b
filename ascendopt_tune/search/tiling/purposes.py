"""Purposes of sites: what a number is for, told from its uses, and how much an evaluation spent on it is worth."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

# Prior of a purpose: how often its change is worth an evaluation. Chosen by judgement; outcomes correct it
# (learning.py).
PURPOSE_RANK: dict[str, float] = {
    "core_count": 3.0,
    "block_dim": 3.0,
    "ub_size": 3.0,
    "tile_length": 3.0,
    "buffer_num": 2.5,
    "ub_share": 2.0,
    "split": 1.5,
    "quantity": 1.2,
    "alignment": 1.2,
    "branch": 1.2,
    "threshold": 0.8,
    "ub_reserve": 0.8,
    "tiling_key": 0.6,
    "constant": 0.3,
    "workspace": 0.05,
}
_HINTS = (
    (re.compile(r"core|block_?dim|blk_?dim|num_?blocks|block_?num", re.IGNORECASE), ("block_dim", "core_count")),
    (
        re.compile(r"tile|per_?loop|per_?time|factor|row|len|chunk|batch", re.IGNORECASE),
        ("tile_length", "split", "quantity"),
    ),
    (re.compile(r"buf|double|depth|pingpong|queue", re.IGNORECASE), ("buffer_num",)),
    (re.compile(r"align|block_?size|cache_?line|pack", re.IGNORECASE), ("alignment",)),
    (re.compile(r"ub|reserv|share|divid", re.IGNORECASE), ("ub_share", "ub_reserve", "ub_size")),
)
_FACT_NAMES = re.compile(
    r"d?type|(^|_)key(_|$)|ind(e)?x|(^|_)idx|axis|dim_?num|attr", re.IGNORECASE
)  # more often facts
_PARTS = re.compile(r"(tile|loop|split|part)_?(num|cnt|count)", re.IGNORECASE)  # one is a number of them, too
BUFFER_COUNT = re.compile(r"buf(fer)?s?_?(num|cnt|count)|double|depth", re.IGNORECASE)
# A capped or scaled expression as the rules write it (logic_rules.py); one site, not three numbers.
CAP = re.compile(r"\((?P<what>.+) < (?P<n>\d+) \? (?P=what) : (?P=n)\)", re.DOTALL)
SCALE = re.compile(r"\((?P<what>.+) / (?P<d>\d+) \* (?P<m>\d+)\)", re.DOTALL)
_ELEMENT_SIZE = re.compile(
    r"(d?type|byte|elem|half|float|int\d+|b16|b32|fp\d+).*(size|len|bytes)|sizeof|size_?of", re.IGNORECASE
)


def rank_of(purpose: str, name: str, kind: str) -> float:
    """Prior worth of a site; its name may raise or lower it, nothing more."""
    rank = PURPOSE_RANK[purpose]
    for pattern, purposes in _HINTS:
        if purpose in purposes and pattern.search(name):
            rank *= 1.3
    return rank * (0.2 if kind == "number" and _FACT_NAMES.search(name) else 1.0)


@dataclass(frozen=True)
class NumberUse:
    """A number and what is known of its uses. ``labels``: usage.py's; ``reach``: the sinks it leads to."""

    name: str
    value: int
    labels: frozenset[str]
    reach: frozenset[str]
    sets_block_dim: bool

    @property
    def bare(self) -> set[str]:
        """The labels without what the other operand is."""
        return {label.split(":")[0] for label in self.labels}

    @property
    def rounds(self) -> bool:
        bare = self.bare
        return "align" in bare or "modulus" in bare or {"divides", "multiplies"} <= bare

    @property
    def is_power_of_two(self) -> bool:
        return self.value & (self.value - 1) == 0

    @property
    def counts_buffers(self) -> bool:
        return self.value <= 4 and BUFFER_COUNT.search(self.name) is not None


#: What a number is for, the first that holds; None: it is no decision (an index, an element size, a dtype key).
_RULES: tuple[tuple[str | None, Callable[[NumberUse], object]], ...] = (
    (None, lambda u: u.value == 0 or not u.bare - {"index", "fact", "equality"}),
    ("block_dim", lambda u: "direct:block_dim" in u.labels or (u.sets_block_dim and "direct" in u.labels)),
    ("tiling_key", lambda u: "direct:tiling_key" in u.labels),
    ("tiling_key", lambda u: u.reach == {"tiling_key"} and not u.bare & {"threshold", "bound"}),
    (None, lambda u: u.value in (1, 2, 4, 8) and _ELEMENT_SIZE.search(u.name)),
    # A key that is compared, not a quantity.
    (None, lambda u: "equality" in u.bare and not u.bare - {"equality", "direct", "index", "argument", "fact"}),
    ("ub_reserve", lambda u: "subtracts:ub" in u.labels and u.value > 1),
    ("alignment", lambda u: 8 <= u.value <= 1024 and u.is_power_of_two and u.rounds),
    ("alignment", lambda u: 32 <= u.value <= 1024 and u.is_power_of_two and u.bare == {"numerator"}),
    ("buffer_num", lambda u: "divides:ub" in u.labels and (u.value <= 2 or u.counts_buffers)),
    ("ub_share", lambda u: "divides:ub" in u.labels),
    ("buffer_num", lambda u: u.counts_buffers),
    ("block_dim", lambda u: u.labels & {"bound:core", "threshold:core"}),
    ("tile_length", lambda u: "bound" in u.bare and u.value >= 16),  # min(what fits, so much a loop)
    ("threshold", lambda u: u.bare & {"threshold", "bound"} and u.value > 1),
    (None, lambda u: u.bare & {"threshold", "bound"}),
    ("tile_length", lambda u: "direct" in u.bare and u.value >= 16),
    ("split", lambda u: "direct" in u.bare and (u.value > 1 or _PARTS.search(u.name))),
    ("tile_length", lambda u: "numerator" in u.bare and u.value > 1024),  # bytes of a tile over bytes of an element
    (None, lambda u: u.bare <= {"adds", "subtracts"} and u.value <= 1),
    ("tile_length", lambda u: u.bare & {"divides", "divisor", "multiplies"} and u.value >= 64),
    ("constant", lambda u: u.value > 1),
)


def number_purpose(use: NumberUse) -> str | None:
    """The purpose of a number from its uses; None when it is no decision."""
    return next((purpose for purpose, holds in _RULES if holds(use)), None)
