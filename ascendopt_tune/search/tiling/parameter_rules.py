"""Parameter mutations: another number where the template has one.

Each purpose has its ladder of values. Literature: the vendor's tuning guides name them (use all vector cores; fill the
Unified Buffer; double buffering; 512-byte aligned transfers); which way is right for a case is for the evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...nouns.trial import Move
from ..mutation import Mutation
from .context import Context, number
from .marked import marked_values
from .slice import EvolvableSite, Template

_MARKED = 2.0  # promise of a value that a mark proposes
# How an edit of a purpose that makes the number larger changes the use of the Unified Buffer.
_PAYING = 2.0  # promise of the core count that a launch's profile speaks for
_PRESSURE = {"tile_length": 1, "buffer_num": -1, "ub_share": -1, "ub_reserve": -1}


def core_counts(context: Context, current: int | None) -> list[tuple[int, float]]:
    """(cores, promise): as many as the work is worth, all cores, even splits of the case's rows, then fractions and the
    neighbours of ``current``."""
    n = context.cores
    ladder = [(n, 1.0), *((e, 0.9) for e in context.even_cores[-2:]), (n // 2, 0.8), (3 * n // 4, 0.6), (n // 4, 0.6)]
    ladder += [(n // 8, 0.4), (1, 0.2)]
    paying = context.paying_cores
    if paying is not None:
        ladder += [(paying, _PAYING), (3 * paying // 2, 0.8), (2 * paying // 3, 0.8)]
    if current is not None:
        ladder += [(current * 2, 0.8), (current // 2, 0.7), (current - 1, 0.05), (current * 4, 0.4)]
        ladder += [(3 * current // 4, 0.5), (5 * current // 4, 0.4)] if current < n else []
    out: dict[int, float] = {}
    for value, promise in ladder:
        if 1 <= value <= n and value != current:
            out[value] = max(promise * context.worth_of_cores(value), out.get(value, 0.0))
    return list(out.items())


def _ladder(site: EvolvableSite, context: Context) -> list[tuple[int, float]]:
    v = site.value or 0
    if site.purpose == "block_dim":
        return core_counts(context, v)
    if site.purpose == "tile_length":
        # The largest tile when every tensor of the case has two buffers of it, in elements, whole 32-byte blocks.
        block = max(1, 32 // context.element_bytes)
        fit = context.ub_bytes // (2 * context.tensors * context.element_bytes) // block * block
        parts = [-(-context.elements_per_core // (n * block)) * block for n in (1, 2, 4)]
        ladder = [(v * 2, 1.0), (v // 2, 0.8), (v * 4, 0.6), (v // 4, 0.4), (fit, 0.6), (v * 3 // 2, 0.3), (v * 8, 0.3)]
        return ladder + [(n, 0.7) for n in parts if n <= 2 * fit]
    if site.purpose == "buffer_num":
        return [(n, 0.5 if n > 2 else 1.0) for n in (1, 2, 3, 4)]
    if site.purpose == "ub_share":
        return [(v - 1, 0.9), (v + 1, 0.7), (v // 2, 0.6), (v * 2, 0.8), (v * 4, 0.4)]
    if site.purpose == "ub_reserve":
        return [(v // 2, 0.7), (v * 2, 0.5), (v // 4, 0.4), (0, 0.3)]
    if site.purpose == "alignment":
        factors = (16, 2, 4, 8) if v < 64 else (1,)
        return [(v * f, 1.0 if f == 16 else 0.5) for f in factors] + [(v // 16, 0.8), (v // 2, 0.4), (v // 4, 0.3)]
    if site.purpose == "split":
        return [(v * 2, 0.9), (v // 2, 0.9), (v + 1, 0.4), (v - 1, 0.4), (1, 0.5), (v * 4, 0.5)]
    if site.purpose == "threshold":
        return [(v * 2, 0.7), (v // 2, 0.7), (v * 8, 0.5), (v // 8, 0.5), (1, 0.3)]
    if site.purpose == "tiling_key":
        return [(k, 1.0) for k in context.tiling_keys]
    return [(v * 2, 0.6), (v // 2, 0.6)]


def _smallest(site: EvolvableSite) -> int:
    return 0 if site.purpose in ("ub_reserve", "tiling_key") else 8 if site.purpose == "alignment" else 1


def _numbers(site: EvolvableSite, context: Context) -> dict[int, float]:
    out: dict[int, float] = {}
    for value, promise in _ladder(site, context):
        if value != site.value and _smallest(site) <= value < 1 << 31:
            out[value] = max(promise, out.get(value, 0.0))
    return out


def move_of(site: EvolvableSite, value: int) -> Move:
    up = value > (site.value or 0)
    pressure = _PRESSURE.get(site.purpose, 0) * (1 if up else -1)
    direction = "set" if site.purpose == "tiling_key" else "up" if up else "down"
    return Move(site.id, site.purpose, direction, value, pressure)


def single(template: Template, context: Context) -> Iterator[Mutation]:
    """One number changed."""
    for site in template.sites:
        if site.kind != "number":
            continue
        values = _numbers(site, context) | dict.fromkeys(marked_values(template, site), _MARKED)
        for value, promise in values.items():
            if value == site.value:
                continue
            change = f"{site.purpose.replace('_', ' ')}: {site.name} {site.value} -> {value}"
            yield Mutation((number(site, value),), change, (move_of(site, value),), site.rank * promise)


def coordinated(template: Template, context: Context) -> Iterator[Mutation]:
    """Two numbers that share the Unified Buffer, changed against each other: fewer buffers of longer tiles and back."""
    lengths = template.of_purpose("tile_length")[:3]
    for count in template.of_purpose("buffer_num", "ub_share")[:3]:
        for length in lengths:
            for value in (
                (1, 2, 3, 4)
                if count.purpose == "buffer_num"
                else (max(1, (count.value or 2) // 2), (count.value or 1) * 2)
            ):
                old, tile = count.value or 1, (length.value or 0)
                scaled = tile * old // value // 8 * 8
                if value == old or scaled < 8 or scaled == tile:
                    continue
                yield Mutation(
                    (number(count, value), number(length, scaled)),
                    f"{count.name} {old} -> {value} with {length.name} {tile} -> {scaled}",
                    (move_of(count, value), move_of(length, scaled)),
                    0.5 * (count.rank + length.rank) * 0.5,
                )
