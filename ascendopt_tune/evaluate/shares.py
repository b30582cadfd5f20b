"""Whole numbers that share out what there is: how many rows each group has, so that they add up to a length.

Random numbers of a domain do that by chance only: either the first few of them take all rows and the others are never
looked at, or many rows are left over. Here they add up to the length of an axis of another input, or to one more or
less, or the last but one do; some are 0, some 1, some as many as the domain has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..nouns.case import TensorSpec
from ..sources.arguments import Array, numpy_dtype


def may_share(spec: TensorSpec, domain: tuple[float | None, float | None], others: Sequence[TensorSpec]) -> list[int]:
    """Lengths of other inputs' axes that numbers of this domain may add up to, the longest first."""
    low, high = domain
    if numpy_dtype(spec.dtype).kind not in "iu" or low is None or high is None or low < 0 or spec.numel < 2:
        return []
    lengths = {n for o in others if o.numel > spec.numel for n in o.shape}
    return sorted((n for n in lengths if low * spec.numel < n - 1 and n + 1 < high * (spec.numel - 1)), reverse=True)


def shares(
    spec: TensorSpec,
    domain: tuple[float | None, float | None],
    lengths: Sequence[int],
    seed: int,
    rng: np.random.Generator,
) -> Array:
    """Numbers of ``domain`` that add up to one of ``lengths``, or to about as much."""
    assert domain[0] is not None
    assert domain[1] is not None
    low, high = int(domain[0]), int(domain[1])
    number = seed // 2
    length = lengths[number % len(lengths)]
    values = np.full(spec.numel, low, np.int64)
    # How many of them, and in all or all but the last: what is left over is then the last one's.
    count = spec.numel - int(rng.integers(0, 2))
    total = length + int(rng.choice((0, -1, 1)))
    # A few have none beyond the least, however many there are; and one may have as much as the domain allows.
    some = rng.permutation(count)[: max(1, -(-(total - low * count) // max(high - low, 1)), count - count // 3)]
    rest = total - low * count
    if rng.random() < 0.5 and rest >= high - low and len(some) > 1:
        values[some[0]], rest, some = high, rest - (high - low), some[1:]
    if rng.random() < 0.5 and rest > 1 and (len(some) - 1) * (high - low) >= rest - 1:
        values[some[0]], rest, some = low + 1, rest - 1, some[1:]
    for k, place in enumerate(some):
        others = len(some) - k - 1
        least, most = max(0, rest - others * (high - low)), min(high - low, rest)
        fair = rest if others == 0 else int(rng.integers(0, 2 * rest // (others + 1) + 1))
        taken = min(max(fair, least), max(most, least))
        values[place] = low + min(taken, high - low)
        rest -= taken
    return values.reshape(spec.shape).astype(numpy_dtype(spec.dtype))
