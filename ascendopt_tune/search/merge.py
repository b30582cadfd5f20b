"""Recombination of two parents: a three-way merge of their texts over the common ancestor."""

from __future__ import annotations

import difflib
from collections.abc import Mapping


def _hunks(base: list[str], other: list[str]) -> list[tuple[int, int, list[str]]]:
    matcher = difflib.SequenceMatcher(None, base, other, autojunk=False)
    return [(i1, i2, other[j1:j2]) for tag, i1, i2, j1, j2 in matcher.get_opcodes() if tag != "equal"]


def merge_text(base: str, one: str, two: str) -> str | None:
    """``base`` with the line changes of both, or None where they touch the same or neighbouring lines."""
    lines = base.splitlines(keepends=True)
    first, second = (_hunks(lines, t.splitlines(keepends=True)) for t in (one, two))
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
