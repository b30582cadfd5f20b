"""Why a lookup misses: the key that was asked for against the closest one there is, field by field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .entry import Key

_TENSOR = re.compile(r"(?P<dtype>\w+)(?P<shape>\[[\d,]*\].*)")  # as TensorSpec spells itself


@dataclass(frozen=True)
class Difference:
    """One field in which the closest entry's key differs; ``None`` where one side lacks it."""

    field: str
    wanted: object
    found: object


@dataclass(frozen=True)
class Explanation:
    """Why a key hits or misses. ``closest`` is that entry's folder, None when nothing is cached for the operator."""

    hit: bool
    key: Key
    closest: Path | None = None
    differences: tuple[Difference, ...] = ()

    def __str__(self) -> str:
        if self.hit:
            return f"{self.key.operator}: cached as {self.key.hash[:12]}."
        if self.closest is None:
            return f"{self.key.operator}: nothing is cached for this operator."
        head = f"{self.key.operator}: not cached; the closest entry {self.closest} differs in"
        return "\n".join([head, *(f"  {d.field}: wanted {d.wanted!r}, cached {d.found!r}" for d in self.differences)])


def differences(wanted: Key, found: Key) -> tuple[Difference, ...]:
    """The fields in which two keys differ, those of ``wanted`` first."""
    one, other = dict(_leaves(wanted.to_json())), dict(_leaves(found.to_json()))
    return tuple(
        Difference(name, one.get(name), other.get(name))
        for name in dict.fromkeys([*one, *other])
        if one.get(name) != other.get(name)
    )


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """``attrs.dim`` -> value, for every leaf of a JSON document; a tensor counts as dtype and shape."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{i}]")
    elif isinstance(value, str) and (tensor := _TENSOR.fullmatch(value)):
        yield f"{path}.dtype", tensor["dtype"]
        yield f"{path}.shape", tensor["shape"]
    else:
        yield path, value
