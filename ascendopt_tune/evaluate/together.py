"""Inputs of one shape that take turns: which of them has a pattern changes from block of lines to block of lines.

One launch so tries a pattern in each of them, beside random numbers in the others, because two patterns would hide each
other. In blocks of their own they are alike but for a few elements, or one is the other's negative: who compares a
sample of two inputs takes them for equal there, or for cancelling; and in a part of such lines they are neighbours: who
compares them in fewer bits takes them for equal. And in blocks of their own one of them is 1 or 0 but
for a few elements: who looks at a sample of it takes a product for the other factor. In others all of them are 0, or 1,
but for a few elements: who looks at a sample of each takes a sum for nothing. And in others all of them are small, by
the same power of two: what is added to their sum before a root (an epsilon) decides only there.
"""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from ..sources.arguments import Array

_ROUNDS = 4  # blocks of lines that an input has in one trial, where there are as many lines
_FAR_BITS = {32: 26, 64: 55}  # by bits of whole numbers: so large that float32, or float64, takes neighbours for equal
SMALL = (-24.0, -4.0)  # binary magnitudes of lines in which all inputs are small


def take_turns(
    patterned: Sequence[Array],
    plain: Sequence[Array],
    first_axis: bool,
    alike: bool,
    anything: bool,
    seed: int,
    small: bool = False,
) -> list[Array]:
    """The inputs, line by line from one of two versions of each.

    Args:
        patterned: every input with patterns; all have one shape.
        plain: every input with random numbers.
        first_axis: lines run along the first axis, not the last.
        alike: inputs may have each other's values.
        anything: any value, each other's negatives among them.
        small: any float, however small.
    """
    rng = np.random.default_rng([seed, 0x707])
    lined = [[_lines(a, first_axis) for a in arrays] for arrays in (patterned, plain)]
    rows, count = lined[0][0].shape[0], len(patterned)
    turns = count + alike + 2 * anything + small
    block = max(1, rows // (_ROUNDS * turns))
    number = np.arange(rows) // block + seed
    turn, lap = number % turns, number // turns
    shared, constant = np.flatnonzero((turn == count) & alike), np.flatnonzero((turn == count + alike) & anything)
    all_of_them = np.flatnonzero((turn == count + alike + 1) & anything)
    tiny = np.flatnonzero((turn == turns - 1) & small)
    scales = np.exp2(np.random.default_rng([seed, 0x5111]).uniform(*SMALL, (len(tiny), 1)))
    length = lined[0][0].shape[-1]
    begin = int(np.random.default_rng([seed, 0x1EA8]).integers(0, length))
    part = slice(begin, min(begin + length // 8, length))
    out = []
    for k, (with_pattern, without) in enumerate(zip(*lined, strict=True)):
        made = np.where((turn == k)[:, None], with_pattern, without)
        if k and len(shared):
            signs = np.where(lap[shared] % 2 & (anything and made.dtype.kind not in "ub"), -1, 1)[:, None]
            _fill(made, shared, (lined[1][0][shared] * signs).astype(made.dtype), rng)
        if len(shared) and part.stop > part.start:
            made[shared, part] = _neighbours(lined[1][0][shared, part], anything, k, rng)
        mine = constant[lap[constant] % count == k]
        _fill(made, mine, (lap[mine] // count % 2 == 0)[:, None].astype(made.dtype), rng)
        if len(all_of_them):
            _fill(made, all_of_them, (lap[all_of_them] % 2 == 1)[:, None].astype(made.dtype), rng)
        if len(tiny):
            made[tiny] = (lined[1][k][tiny] * scales).astype(made.dtype)
        out.append(_shaped(made, patterned[k].shape, first_axis))
    return out


def _fill(lines: Array, where: Array, values: Array, rng: np.random.Generator) -> None:
    """Writes values to lines, but for a few elements of each."""
    own = lines[where]
    few = rng.random(own.shape) < np.exp2(rng.uniform(-6, -1, (len(where), 1)))
    lines[where] = np.where(few, own, values)


def _neighbours(values: Array, anything: bool, which: int, rng: np.random.Generator) -> Array:
    """Of input number ``which``: the values, and of all but the first one up or down from about half of them; whole
    numbers of many bits, where they may be any, so large that a float of as many doesn't hold the difference, and some
    with the same low half."""
    whole = values.dtype.kind in "iu"
    if values.dtype.kind not in "iuf" and values.dtype != ml_dtypes.bfloat16:
        return values
    bits = 8 * values.dtype.itemsize
    if whole and anything and bits >= 32:
        values = values + values.dtype.type(1 << _FAR_BITS[bits])
    if which == 0 or (whole and not anything):
        return values
    step = rng.choice((-1, 0, 1, 1 << bits // 2 if whole and bits >= 32 else 1), values.shape)
    if whole:
        return np.asarray(values + step.astype(values.dtype))
    words = np.ascontiguousarray(values).view(f"i{bits // 8}")
    # Away from 0 and towards it; 0 itself, and what isn't finite, stay what they are.
    moved = (words + np.where((values == 0) | ~np.isfinite(values), 0, step).astype(words.dtype)).view(values.dtype)
    if not anything:  # no further out than what is there: an input's domain may end at it
        least, most = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
        moved = np.where((moved < least) | (moved > most), values, moved)
    return np.asarray(np.where(np.isfinite(moved), moved, values))


def _lines(array: Array, first_axis: bool) -> Array:
    turned = np.moveaxis(array, 0, -1) if first_axis and array.ndim > 1 else array
    return turned.reshape(-1, turned.shape[-1])


def _shaped(lines: Array, shape: tuple[int, ...], first_axis: bool) -> Array:
    if not first_axis or len(shape) < 2:
        return lines.reshape(shape)
    return np.ascontiguousarray(np.moveaxis(lines.reshape(*shape[1:], shape[0]), -1, 0))
