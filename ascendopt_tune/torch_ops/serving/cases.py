"""The cases that a tuned operator met: who serves each, how often, and why the original does where it does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from ...store.cache import Cache, Key


@dataclass
class CaseCount:
    """Calls of one case that no launcher counts: hits by launchers that are gone, misses, and what a call takes, from
    its bytes."""

    case: str
    us: float
    hits: int = 0
    misses: int = 0


@dataclass(frozen=True)
class CaseStatus:
    """One case of an operator.

    ``source``: who serves now: ``tuned``, ``probation`` (tuned, and still compared with the original), ``kept`` (the
    pair as written is the best), ``missing``, or ``original``. ``misses``: calls that the original served, and ``why``
    it does. ``call_us``: of a call by the original: the result's, or estimated from its bytes.
    """

    operator: str
    case: str
    source: str
    hits: int
    misses: int
    why: str
    call_us: float

    @property
    def weight_us(self) -> float:
        """What the calls so far would take by the original."""
        return (self.hits + self.misses) * self.call_us

    def __str__(self) -> str:
        why = f": {self.why}" if self.why else ""
        return f"{self.source:9}  {self.hits:6d} hits {self.misses:6d} misses  {self.operator} {self.case}{why}"


def text_of(args: Iterable[Any], kwargs: Mapping[str, Any]) -> str:
    """A call's tensors, as people read them: ``float16[64,512] float16[512]``."""
    out = []
    for value in (*args, *kwargs.values()):
        for tensor in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(tensor, torch.Tensor):
                out.append(f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}".replace(" ", ""))
    return " ".join(out)


def why_missing(cache: Cache, key: Key) -> str:
    """Why the cache has nothing for the key, in half a sentence."""
    found = cache.explain(key)
    if found.hit:
        return "cached meanwhile"
    if found.closest is None:
        return "nothing is cached for this operator"
    fields = list(dict.fromkeys(d.field.split("[")[0].split(".")[0] for d in found.differences))
    if fields == ["case"]:
        shapes = [f"{d.found} is" for d in found.differences if d.field.endswith("shape")]
        return f"this case was not tuned{'' if not shapes else f'; {shapes[0]}'}"
    return f"the closest result has another {', '.join(fields)}"
