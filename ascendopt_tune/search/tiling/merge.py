"""Recombination of two parents: a three-way merge of their texts over the common ancestor."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import takewhile


@lru_cache(maxsize=256)
def _hunks(base: str, other: str) -> list[tuple[int, int, list[str]]]:
    """What ``other`` has instead of lines [i, j) of ``base``."""
    old, new = base.splitlines(keepends=True), other.splitlines(keepends=True)
    # Most of two texts is the same at both ends, and the matcher takes its time over it.
    head = _equal(zip(old, new, strict=False))
    tail = _equal(zip(reversed(old[head:]), reversed(new[head:]), strict=False))
    middle, others = old[head : len(old) - tail], new[head : len(new) - tail]
    matcher = difflib.SequenceMatcher(None, middle, others, autojunk=False)
    return [(head + i, head + j, others[k:m]) for tag, i, j, k, m in matcher.get_opcodes() if tag != "equal"]


def _equal(pairs: Iterable[tuple[str, str]]) -> int:
    """How many pairs of equals come first."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def merge_text(base: str, one: str, two: str) -> str | None:
    """``base`` with the line changes of both, or None where they touch the same or neighbouring lines."""
    lines = base.splitlines(keepends=True)
    first, second = _hunks(base, one), _hunks(base, two)
    extra = [h for h in second if h not in first]
    if any(a1 <= b2 and b1 <= a2 for a1, a2, _ in first for b1, b2, _ in extra):
        return None
    for start, end, new in sorted(first + extra, key=lambda h: h[0], reverse=True):
        lines[start:end] = new
    return "".join(lines)


def merge(base: Mapping[str, str], one: Mapping[str, str], two: Mapping[str, str]) -> dict[str, str] | None:
    """All files merged, or None on the first conflict. The three have the same paths."""
    out: dict[str, str] = {}
    for path in base:
        text = merge_text(base[path], one[path], two[path])
        if text is None:
            return None
        out[path] = text
    return out
