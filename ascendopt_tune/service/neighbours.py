"""Which shapes are alike, and how one's tiling program comes to serve another.

Shapes of one bucket share a tiling program. Per input a rule for each axis, the last axis' rule last; axes in front of
the listed ones follow the first rule:

* ``exact``: the same count;
* ``pow2``: the same when rounded up to a power of two;
* ``any``;
* a list of numbers: between the same two of them.

Declared in op.toml (``[bucket]``, ``x = ["pow2", "exact"]``) or by the argument ``buckets``; an input without rules has
``["pow2", "exact"]``: what varies from call to call is mostly the number of rows.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from ..errors import OperatorError
from ..nouns.case import Argument, Case, TensorSpec, flatten
from ..nouns.operator import Operator, Signature
from ..store.cache import EntrySummary
from ..store.entry import Key

Rule = str | tuple[int, ...]
Rules = Mapping[str, tuple[Rule, ...]]

DEFAULT: tuple[Rule, ...] = ("pow2", "exact")


def rules_of(operator: Operator, given: Mapping[str, Sequence[Any]] | None = None) -> Rules:
    """The operator's bucket rules: those ``given``, else its op.toml's. Raises OperatorError for a rule of no kind."""
    out: dict[str, tuple[Rule, ...]] = {}
    for name, rules in (given or operator.settings.get("bucket", {})).items():
        parsed: list[Rule] = []
        for rule in rules:
            if isinstance(rule, (list, tuple)) and all(isinstance(n, int) for n in rule):
                parsed.append(tuple(sorted(rule)))
            elif rule in ("exact", "pow2", "any"):
                parsed.append(str(rule))
            else:
                raise OperatorError(
                    f"bucket rule {rule!r} of {operator.name}, input {name}, is unknown.",
                    "Give exact, pow2, any, or a list of whole numbers.",
                )
        out[name] = tuple(parsed) or DEFAULT
    return out


def bucket(case: Case, signature: Signature, rules: Rules) -> Hashable:
    """Equal for cases that share a tiling program: dtypes, attributes, ranks, and each axis by its rule."""

    def tensor(spec: TensorSpec, rule: tuple[Rule, ...]) -> Hashable:
        axes = [
            _axis(n, rule[max(len(rule) - len(spec.shape) + i, 0)] if rule else "exact")
            for i, n in enumerate(spec.shape)
        ]
        return spec.dtype, spec.format, tuple(axes)

    def argument(value: Argument, rule: tuple[Rule, ...]) -> Hashable:
        if value is None:
            return None
        if isinstance(value, TensorSpec):
            return tensor(value, rule)
        return tuple(tensor(spec, rule) for spec in value)

    inputs = tuple(
        argument(value, rules.get(param.name, DEFAULT))
        for param, value in zip(signature.inputs, case.inputs, strict=True)
    )
    return inputs, case.attrs


def _axis(n: int, rule: Rule) -> Hashable:
    if isinstance(rule, tuple):
        return bisect.bisect_left(rule, n)
    return {"exact": n, "pow2": max(n - 1, 0).bit_length(), "any": None}[rule]


def distance(one: Case, other: Case) -> float:
    """How far apart two cases of a bucket are: the sum of the axes' ratios, as powers of two."""
    pairs = zip(flatten(one.inputs), flatten(other.inputs), strict=True)
    return sum(abs(math.log2(max(a, 1) / max(b, 1))) for x, y in pairs for a, b in zip(x.shape, y.shape, strict=True))


def closest(
    items: Iterable[EntrySummary], key: Key, case: Case, signature: Signature, rules: Rules
) -> EntrySummary | None:
    """The cached result whose tiling program ``case`` may use: of the same operator, chip, target and toolkit, in the
    same bucket, nearest in shape; ties by the key, so that every process chooses alike. None if there is none."""
    wanted = bucket(case, signature, rules)
    found: list[tuple[float, str, EntrySummary]] = []
    for item in items:
        same = (item.key.baseline, item.key.build, item.key.chip, item.key.target, item.key.toolkit)
        if same != (key.baseline, key.build, key.chip, key.target, key.toolkit) or item.key.operator != key.operator:
            continue
        other = Case.from_json(item.key.to_json()["case"])
        if bucket(other, signature, rules) == wanted:
            found.append((distance(other, case), item.key.hash, item))
    return min(found)[2] if found else None
