"""The cases that a tuned operator met: who serves each, how often, and why the original does where it does."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import torch

from ...store.cache import Cache, Key
from ...store.explanation import Difference


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


def text_of(args: Iterable[Any], kwargs: Mapping[str, Any], names: Iterable[str] = ()) -> str:
    """A call's arguments, as people read them: ``float16[64,512] float16[512] epsilon=1e-05``.

    ``names``: of the parameters, in order.
    """
    out = []
    for name, value in (*zip(chain(names, repeat("")), args, strict=False), *kwargs.items()):
        tensors = [v for v in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(v, torch.Tensor)]
        for tensor in tensors:
            out.append(f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}".replace(" ", ""))
        if not tensors and value is not None:
            said = reprlib.repr(value).replace(" ", "")
            out.append(f"{name}={said}" if name else said)
    return " ".join(out)


def _where(difference: Difference) -> str:
    """What the closest result has instead, in a word."""
    name = difference.field.removeprefix("case.attrs.")
    return str(difference.found) if name == difference.field else f"{name} = {difference.found}"


def why_missing(cache: Cache, key: Key) -> str:
    """Why the cache has nothing for the key, in half a sentence."""
    found = cache.explain(key)
    if found.hit:
        return "cached meanwhile"
    if found.closest is None:
        return "nothing is cached for this operator"
    fields = list(dict.fromkeys(d.field.split("[")[0].split(".")[0] for d in found.differences))
    if fields == ["case"]:  # a case that is looked up has no outputs yet
        others = [d for d in found.differences if not d.field.startswith("case.outputs")]
        tuned = [_where(d) for d in others if d.field.endswith(".shape") or d.field.startswith("case.attrs.")]
        return f"this case was not tuned{'' if not tuned else f'; {tuned[0]} is'}"
    return f"the closest result has another {', '.join(fields)}"
