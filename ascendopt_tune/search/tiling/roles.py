"""Roles of sites: what a number is for, told from its uses, and how much an evaluation spent on it is worth."""

from __future__ import annotations

import re

# Prior of a role: how often its change is worth an evaluation. Chosen by judgement; outcomes correct it (learning.py).
ROLE_RANK: dict[str, float] = {
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
_BUFFER_COUNT = re.compile(r"buf(fer)?s?_?(num|cnt|count)|double|depth", re.IGNORECASE)
# A capped or scaled expression as the rules write it (logic_rules.py); one site, not three numbers.
CAP = re.compile(r"\((?P<what>.+) < (?P<n>\d+) \? (?P=what) : (?P=n)\)", re.DOTALL)
SCALE = re.compile(r"\((?P<what>.+) / (?P<d>\d+) \* (?P<m>\d+)\)", re.DOTALL)
_ELEMENT_SIZE = re.compile(
    r"(d?type|byte|elem|half|float|int\d+|b16|b32|fp\d+).*(size|len|bytes)|sizeof|size_?of", re.IGNORECASE
)


def rank_of(role: str, name: str, kind: str) -> float:
    """Prior worth of a site; its name may raise or lower it, nothing more."""
    rank = ROLE_RANK[role]
    for pattern, roles in _HINTS:
        if role in roles and pattern.search(name):
            rank *= 1.3
    return rank * (0.2 if kind == "number" and _FACT_NAMES.search(name) else 1.0)


def number_role(name: str, value: int, labels: set[str], reach: set[str], sets_block_dim: bool) -> str | None:
    """The role of a number from its uses; None when it is no decision (an index, an element size, a dtype key)."""
    bare = {label.split(":")[0] for label in labels}
    power_of_two = value & (value - 1) == 0
    if value == 0 or not bare - {"index", "fact", "equality"}:
        return None
    if "direct:block_dim" in labels or (sets_block_dim and "direct" in labels):
        return "block_dim"
    if "direct:tiling_key" in labels or (reach == {"tiling_key"} and not bare & {"threshold", "bound"}):
        return "tiling_key"
    if value in (1, 2, 4, 8) and _ELEMENT_SIZE.search(name):
        return None
    if "equality" in bare and not bare - {"equality", "direct", "index", "argument", "fact"}:
        return None  # a key that is compared, not a quantity
    if "subtracts:ub" in labels and value > 1:
        return "ub_reserve"
    rounds = "align" in bare or "modulus" in bare or {"divides", "multiplies"} <= bare
    if 8 <= value <= 1024 and power_of_two and (rounds or (bare == {"numerator"} and value >= 32)):
        return "alignment"
    if "divides:ub" in labels:
        return "buffer_num" if value <= 2 or (value <= 4 and _BUFFER_COUNT.search(name)) else "ub_share"
    if value <= 4 and _BUFFER_COUNT.search(name):
        return "buffer_num"
    if "bound:core" in labels or "threshold:core" in labels:
        return "block_dim"
    if "bound" in bare and value >= 16:
        return "tile_length"  # min(what fits, so much a loop)
    if bare & {"threshold", "bound"}:
        return "threshold" if value > 1 else None
    if bare & {"direct", "direct:field"} and (value > 1 or _PARTS.search(name)):
        return "tile_length" if value >= 16 else "split"
    if "numerator" in bare and value > 1024:
        return "tile_length"  # bytes of a tile over bytes of an element
    if bare <= {"adds", "subtracts"} and value <= 1:
        return None
    if bare & {"divides", "divisor", "multiplies"} and value >= 64:
        return "tile_length"
    return "constant" if value > 1 else None
