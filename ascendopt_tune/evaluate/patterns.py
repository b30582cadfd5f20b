"""Inputs that make every element count.

Random values forgive: who leaves one out of four thousand out of a sum, starts a maximum at 0 or forgets epsilon is
off by less than a tolerance. Here one element stands out of a line, all are negative, equal, sorted, so small that
epsilon and rounding decide, or at the edges of their dtype; and in ``lines`` and ``columns`` every slice along the last
or the first axis has a pattern of its own, so that one launch tries them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..sources.arguments import Array, numpy_dtype

#: Of a whole tensor, or of a line.
PATTERNS = (
    "outlier", "negative", "equal", "tiny", "sparse", "tails", "ascending", "descending", "positive", "offset",
    "levels", "edges",
)  # fmt: skip

# Magnitude of the distribution "large", per dtype: leaves room to add a few, not to square (float16: 65504). Rows end
# with twice as much, of either sign: who leaves a tail out of a maximum or minimum is wrong by more than a little.
LARGE = {"float16": 1.0e4, "bfloat16": 1.0e30, "float32": 1.0e30, "float64": 1.0e30, "complex64": 1.0e15}

# Of lines: half have a lone outlier, the others one of these.
_LINES = (*PATTERNS[1:], "zeros", "large", "normal", "balanced")
_RUNS = 1 << 14  # elements of runs that are made; longer ones repeat
_MANY_LINES, _JOINED = 32, ("sparse", "sparse", "levels", "ascending", "tiny", "equal", "balanced")
_ALIKE = 4  # of _MANY_LINES parts of the lines: those in which lines are alike but for a few elements
_LEAST_HIGH = 8  # lines of a tile of whose first, middle and last one something may be told
_BORDERS = (8, 16, 32)  # at multiples of these an element of each of its lines may be told by
_OFFSET = {"float16": 9.0, "bfloat16": 10.0}  # binary magnitude of offsets and outliers at most; others: 12
_FLOAT = {"float16": (65504.0, 2.0**-14, 2.0**-24), "bfloat16": (3.3895313892515355e38, 2.0**-126, 2.0**-133)}
_FLOAT32 = (3.4028234663852886e38, 2.0**-126, 2.0**-149)  # largest, smallest normal, smallest


def pattern(
    shape: tuple[int, ...],
    dtype: str,
    name: str,
    domain: tuple[float | None, float | None],
    steps: Sequence[int],
    rng: np.random.Generator,
) -> Array:
    """An array of ``shape`` with the pattern: float64 for floats (to be folded into the domain), else the dtype's.

    Args:
        name: of ``PATTERNS``, ``lines`` or ``columns``.
        steps: see inputs.make_inputs.
    """
    if name == "columns" and len(shape) > 1:
        turned = pattern((*shape[1:], shape[0]), dtype, "lines", domain, steps, rng)
        return np.ascontiguousarray(np.moveaxis(turned, -1, 0))
    make = _Floats(dtype) if numpy_dtype(dtype).kind not in "iub" and dtype != "int4" else _Integers(dtype, domain)
    length = shape[-1] if name in ("lines", "columns", "levels") and shape else int(np.prod(shape))
    rows = int(np.prod(shape)) // max(length, 1)
    if rows * length == 0:
        return np.zeros(shape)
    if name not in ("lines", "columns"):
        return make(name, rows, length, steps, rng).reshape(shape)
    out = np.empty((rows, length), np.float64 if isinstance(make, _Floats) else np.int64)
    frames, bordered = _frames(rows, steps, np.random.default_rng(int(rng.integers(1 << 32))))
    kinds = np.full(rows, "zeros", dtype=object)
    kinds[np.setdiff1d(np.arange(rows), frames)] = _line_kinds(rows - len(frames), rng)
    for kind in dict.fromkeys(kinds):
        chosen = np.flatnonzero(kinds == kind)
        out[chosen] = make(kind, len(chosen), length, steps, rng)
    for begin, end, kind in _joined_lines(rows, rng):
        out[begin:end] = make(kind, 1, (end - begin) * length, steps, rng).reshape(-1, length)
    out[frames] = make.nothing
    for begin, end, step in bordered:
        out[begin:end, ::step] = make.nothing
    _make_alike(out, kinds, steps, rng)
    return out.reshape(shape)


def _make_alike(lines: Array, kinds: Array, steps: Sequence[int], rng: np.random.Generator) -> None:
    """Lets neighbours begin alike, or be alike but for a few elements: who tells by a part of a line, or of a tile,
    that it is the one before takes the results of that for its own.

    Of many lines some that follow each other; of few lines one, in parts as long as a tile may be.
    """
    rows, length = lines.shape
    if rows >= _MANY_LINES:
        usual = np.flatnonzero(kinds == "normal")  # of which no element decides alone
        for i, part in enumerate(rng.permutation(_MANY_LINES)[:_ALIKE]):
            high = max(2, min(8, rows // 16), rows // _MANY_LINES)
            begin = min(int(part) * (rows // _MANY_LINES), rows - high)
            if usual.size and i:
                lines[begin] = lines[rng.choice(usual)]
            lines[begin : begin + high] = _alike(lines[begin : begin + high], rng)
        return
    fitting = [s for s in steps if 3 < s <= length // 2] or [1 << k for k in range(3, 9) if 2 << k <= length]
    if fitting and rng.random() < 0.5:
        row, step = int(rng.integers(0, rows)), int(rng.choice(fitting))
        parts = lines[row, : length // step * step].reshape(-1, step)
        parts[:] = _alike(parts, rng)


def _alike(parts: Array, rng: np.random.Generator) -> Array:
    """The first part once more in the place of each other one, but for its last element, an end of any length up to a
    half, or one element anywhere."""
    count, length = parts.shape
    ends = np.rint(np.exp2(rng.uniform(0, np.log2(max(2, length // 2)), (count, 1))))
    how, places = rng.integers(0, 3, (count, 1)), np.arange(length)
    end = places >= length - np.where(how == 0, 1, ends)
    own = np.where(how == 2, places == rng.integers(0, length, (count, 1)), end)
    return np.where(own, parts, parts[0])


def _joined_lines(rows: int, rng: np.random.Generator) -> list[tuple[int, int, str]]:
    """Of many lines a quarter, in parts that have one pattern as if they were one line: (begin, end, pattern).

    A tile holds several short lines; only so one sees all of a tile zero but for a few elements.
    """
    if rows < _MANY_LINES:
        return []
    step = rows // _MANY_LINES
    places = rng.permutation(_MANY_LINES)[: _MANY_LINES // 4]
    kinds = rng.choice(_JOINED, len(places))
    return [(int(p) * step, int(p + 1) * step, str(k)) for p, k in zip(places, kinds, strict=True)]


def _frames(rows: int, steps: Sequence[int], rng: np.random.Generator) -> tuple[list[int], list[tuple[int, int, int]]]:
    """Of many lines the first, the middle and the last one of some parts as high as a tile: who looks at these, or at
    the corners of a tile, takes all of it for nothing. And of half of these parts where an element is nothing in every
    line, too: (begin, end, at multiples of)."""
    if rows < 2 * _LEAST_HIGH:
        return [], []
    own = [s for s in steps if _LEAST_HIGH <= s < rows]
    usual = [1 << k for k in range(3, 9) if 1 << k < rows]
    high = int(rng.choice(own if own and rng.random() < 0.75 else usual))
    chosen = np.flatnonzero(rng.random(-(-rows // high)) < 0.5)
    found = {min(int(part) * high + line, rows - 1) for part in chosen for line in (0, high // 2, high - 1)}
    bordered = [(int(p) * high, (int(p) + 1) * high, int(rng.choice(_BORDERS))) for p in chosen if rng.random() < 0.5]
    return sorted(found), bordered


def _line_kinds(rows: int, rng: np.random.Generator) -> list[str]:
    """A pattern per line; with few lines other ones for every seed."""
    others = [str(k) for k in rng.permutation(_LINES)]
    kinds = [("outlier", others[i // 2 % len(others)])[i % 2] for i in range(rows)]
    if rows == 1:
        kinds = [str(rng.choice(("outlier", *others)))]
    return [kinds[i] for i in rng.permutation(rows)]


def boundaries(length: int, steps: Sequence[int]) -> list[int]:
    """Positions in a line at which tiles, blocks and repeats may begin and end: the ends first."""
    known = sorted({s for s in steps if 1 < s < length}, reverse=True) + [1 << k for k in range(13, 2, -1)]
    found = [length - 1, 0, length - 2, 1]
    for step in known:
        last = (length - 1) // step * step
        found += [step - 1, step, 2 * step - 1, last - 1, last]
    return [p for p in dict.fromkeys(found) if 0 <= p < length]


def _places(rows: int, length: int, steps: Sequence[int], rng: np.random.Generator) -> Array:
    """One position per line: two of three at boundaries, the others anywhere."""
    places = rng.integers(0, length, rows)
    bounds = np.asarray(boundaries(length, steps))
    chosen = np.flatnonzero(np.arange(rows) % 3 != 2)
    first = int(rng.integers(0, len(bounds))) if rows < len(bounds) else 0
    places[chosen] = bounds[(np.arange(len(chosen)) * (7 if len(bounds) % 7 else 1) + first) % len(bounds)]
    if rows > 1:  # the end is where most goes wrong
        places[0] = length - 1
    return places


def _few(shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """Some elements of each line; of one line in four only such as have an odd, or an even, place in it, of a lone line
    rather odd ones: who looks at every other element begins with the first."""
    rows = shape[0]
    found = rng.random(shape) < np.exp2(rng.uniform(-6, -1, (rows, 1)))
    every = rng.integers(0, 8, (rows, 1)) if rows > 1 else rng.choice((1, 1, 2), (1, 1))
    return np.asarray(found & ((every > 1) | (np.arange(shape[1]) % 2 == every)))


def balanced(shape: tuple[int, ...], most: int, rng: np.random.Generator, inward: float = 0.0) -> Array:
    """Whole numbers up to ``most``, each beside its negative: a sum of them is 0 in any order, though few of them are;
    and so are sums of a line's halves, thirds and quarters.

    Args:
        inward: of so many lines (a share) the first and the last are such a pair instead, and so on inwards.
    """
    rows, length = int(np.prod(shape[:-1])), shape[-1]
    half = rng.integers(1, most, (rows, length // 2), endpoint=True) * rng.choice((-1, 1), (rows, length // 2))
    values = np.zeros((rows, length), np.int64)
    values[:, 0 : length // 2 * 2 : 2], values[:, 1::2] = half, -half
    # A part of a line is what others call a line: the gates of a gated unit, queries beside keys and values.
    for end in [length * k // parts for parts in (2, 3, 4) if length % parts == 0 for k in range(1, parts)]:
        if end % 2:
            values[:, end - 1 : end + 1] = 0
    inwards = rng.random(rows) < inward
    values[inwards, : length // 2], values[inwards, length - length // 2 :] = half[inwards], -half[inwards, ::-1]
    return values.reshape(shape)


class _Floats:
    nothing = 0

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.top = _OFFSET.get(dtype, 12.0)
        self.most, self.least = (14.5, -24.0) if dtype == "float16" else (40.0, -110.0)
        # What a number may be and its products with some others are held by float32.
        self.end = _FLOAT["float16"][0] if dtype == "float16" else 2.0**self.most

    def __call__(self, name: str, rows: int, length: int, steps: Sequence[int], rng: np.random.Generator) -> Array:
        shape = (rows, length)
        normal = rng.standard_normal(shape)

        def scale(low: float, high: float) -> Array:
            return np.exp2(rng.uniform(low, high, (rows, 1)))

        # In one of several lines, and in one of eight, magnitudes as only the dtype limits them.
        extreme = (rng.random((rows, 1)) < 0.125) | ((np.arange(rows) == 0) & (rows > 1))[:, None]

        def usual(low: float) -> Array:
            return np.where(extreme, scale(self.top, self.most), scale(low, self.top))

        sign = rng.choice((-1.0, 1.0), (rows, 1))
        if name == "outlier":
            # Some of the others are so small that a limit near 0 tells.
            small = np.where(rng.random(shape) < 1 / 16, np.exp2(rng.uniform(-24, -4, shape)), 1.0)
            values = normal * scale(-10, 0) * small
            values[np.arange(rows), _places(rows, length, steps, rng)] = (sign * usual(3))[:, 0]
            return np.asarray(values)
        if name in ("negative", "positive"):
            values = self._far(normal, usual(0), scale(-3, 3), rng)
            return np.asarray(values if name == "positive" else -values)
        if name == "offset":  # much alike, far from 0
            # Of half of several lines not so far: there most functions bend, and a wrong constant shows.
            near, part = scale(-3, 0), rng.random((rows, 1))
            bent = (np.arange(rows) % 2 == 1)[:, None]
            far = np.exp2(np.where(bent, 3 * part, 3 + (self.top - 5) * part))
            return np.asarray(normal * near + sign * far)
        if name == "equal":
            # Few bits, so that sums and squares of it are exact in any order.
            some = rng.choice((1.0, 1.25, 1.5, 1.75), (rows, 1)) * np.exp2(rng.integers(-8, int(self.top), (rows, 1)))
            return np.broadcast_to(sign * some, shape).copy()
        if name == "tiny":
            least = extreme | (rng.random((rows, 1)) < 0.25)
            lowest = np.where(rng.random((rows, 1)) < 0.5, scale(self.least, -24), scale(self.least, self.least + 8))
            return np.asarray(normal * np.where(least, lowest, scale(-24, -4)))
        if name == "tails":  # magnitudes from 2**-14 to 2**6, both signs
            return np.sign(normal) * np.exp2(rng.random(shape) * 20 - 14)
        if name in ("ones", "far"):
            return self._ones(shape, scale, rng) if name == "ones" else self._with_ends(normal, rng)
        if name in ("levels", "sparse"):
            return self._levels(normal, steps, rng) if name == "levels" else self._sparse(normal, scale, rng)
        if name == "balanced":
            return balanced(shape, 64, rng, 0.5) * np.exp2(rng.integers(-10, 3, (rows, 1)))
        if name in ("ascending", "descending"):
            values = np.sort(normal, -1) * scale(-3, 5)
            return values if name == "ascending" else values[:, ::-1]
        if name == "large":
            return np.asarray(np.sign(normal) * LARGE.get(self.dtype, 1e30) * (1 - rng.random(shape) * 0.9))
        if name == "edges":
            largest, normal_most, least = _FLOAT.get(self.dtype, _FLOAT32)
            ends = [largest, largest * 0.9375, normal_most, least, 3 * least]
            some = np.array([*ends, 1.0, 0.5, 0.0, 1.0 + 2.0**-10, 88.0, 2.0**-11])
            return np.asarray(rng.choice(some, shape) * rng.choice((-1.0, 1.0), shape))
        return np.zeros(shape) if name == "zeros" else normal

    def _with_ends(self, normal: Array, rng: np.random.Generator) -> Array:
        """Numbers of which some are as far out as their products with some others allow, of either sign."""
        far = rng.choice((-self.end, self.end), normal.shape) * (1 - rng.random(normal.shape) / 16)
        return np.where(rng.random(normal.shape) < 1 / 8, far, normal)

    def _far(self, normal: Array, far: Array, near: Array, rng: np.random.Generator) -> Array:
        """Positive numbers; those of the first of several lines are further out than what somebody may take for the end
        of the dtype."""
        if len(normal) > 1:
            far[0] = np.exp2(rng.uniform(self.most - 1, self.most))
        # What float32 doesn't hold beside them would leave equal numbers of many bits, of which any order of a sum but
        # one is off by as much as they differ.
        near = np.where(near < far * 2.0**-20, far / 4, near)
        values = np.abs(normal) * np.where(rng.random((len(normal), 1)) < 0.5, near, far / 4) + far
        if len(normal) > 2 and self.dtype == "float16":  # others, at the very end of it
            values[1] = self.end * (1 - np.abs(normal[1]) % 1 / 16)
        return np.asarray(values)

    def _ones(self, shape: tuple[int, int], scale: Callable[[float, float], Array], rng: np.random.Generator) -> Array:
        """1 but for a few: a gain that looks like none. What a number has more its neighbour has less, in whole
        eighths, so that the sum is that of ones, too; the first number is 1."""
        rows, length = shape
        pairs = (length - 1) // 2
        more = rng.integers(1, 16, (rows, pairs)) * np.exp2(rng.integers(-3, 1, (rows, 1)))
        more *= (rng.random((rows, pairs)) < scale(-6, -1)) * rng.choice((-1.0, 1.0), (rows, pairs))
        values = np.ones(shape)
        values[:, 1 : 2 * pairs + 1 : 2] += more
        values[:, 2 : 2 * pairs + 1 : 2] -= more
        return values

    def _sparse(self, normal: Array, scale: Callable[[float, float], Array], rng: np.random.Generator) -> Array:
        """Mostly 0, or 1, or the same number: samples of it look like all of it. Of one sign in half of the lines: the
        largest, or the smallest, is 0, and not all are."""
        rows = len(normal)
        sign, one_sided = rng.choice((-1.0, 1.0), (2, rows, 1))
        most = np.where((rng.random((rows, 1)) < 0.5) & (rows > 1), sign * scale(-3, 3), 0.0)
        some = normal * scale(-3, 5)
        some = np.where(one_sided > 0, np.abs(some) * sign, some)
        few = _few((rows, normal.shape[1]), rng)
        if rows == 1:  # a whole tensor, or a tile of it: 1 instead in its second half
            most = (np.arange(normal.shape[1]) >= normal.shape[1] // 2).astype(np.float64)[None]
        return np.where(few, some + most, most)

    def _levels(self, normal: Array, steps: Sequence[int], rng: np.random.Generator) -> Array:
        """Parts of a line, as long as a tile may be, each somewhere else or of another magnitude: who lets one part
        stand for all, or leaves out those that seem small, is wrong."""
        rows, length = normal.shape
        own, usual = [s for s in steps if 1 < s < length], [1 << k for k in range(3, 14) if 1 << k < length]
        values = normal.copy()
        for row in range(rows):
            step = int(rng.choice(own if own and rng.random() < 0.5 else usual or [1]))
            part = np.arange(length) // step
            count = int(part[-1]) + 1
            if rng.random() < 0.5:
                values[row] = values[row] / 4 + rng.uniform(-16, 0, count)[part]
            else:
                values[row] *= np.exp2(rng.uniform(-10, 4, count))[part]
        return values


class _Integers:
    """Integers and booleans; those with a domain stay inside it."""

    def __init__(self, dtype: str, domain: tuple[float | None, float | None]) -> None:
        least, most = (-8, 7) if dtype == "int4" else (0, 1) if dtype == "bool" else _range(dtype)
        self.least = least if domain[0] is None else int(domain[0])
        self.most = most if domain[1] is None else int(domain[1])
        self.bounded = domain != (None, None) or dtype == "bool"
        self.nothing = min(max(0, self.least), self.most)
        small = 100 if not self.bounded else max(abs(self.least), abs(self.most))
        self.low, self.high = max(self.least, -small), min(self.most, small)

    def __call__(self, name: str, rows: int, length: int, steps: Sequence[int], rng: np.random.Generator) -> Array:
        shape = (rows, length)
        values = rng.integers(self.low, self.high, shape, np.int64, endpoint=True)
        ends = rng.integers(0, 2, (rows, 1), bool)
        if name == "outlier":
            near, far = (self.low, self.high) if self.bounded else (0, 1000)
            values = np.where(ends, near, far) if self.bounded else values // 10
            values = np.broadcast_to(values, shape).copy()
            there = np.where(ends, far, near if self.bounded else -far)[:, 0]
            values[np.arange(rows), _places(rows, length, steps, rng)] = np.clip(there, self.least, self.most)
        elif name in ("negative", "positive"):
            values = np.clip(np.abs(values) * (1 if name == "positive" else -1), self.least, self.most)
        elif name in ("ascending", "descending"):
            values = np.sort(values, -1)[:, :: 1 if name == "ascending" else -1]
        elif name == "sparse":
            values = np.where(_few(shape, rng), values, self.nothing)
        elif name == "ones":
            values = np.where(_few(shape, rng), values, self.high)
        elif name == "balanced" and -self.low == self.high > 0:
            values = balanced(shape, self.high, rng, 0.5)
        elif name == "tails" and not self.bounded:  # of every magnitude there is
            most = np.exp2(rng.uniform(0, np.log2(float(self.most)), shape))
            values = np.clip((np.sign(values) * most).astype(np.int64), self.least, self.most)
        elif name == "equal":
            values = np.broadcast_to(rng.integers(self.low, self.high, (rows, 1), endpoint=True), shape)
        elif name in ("edges", "large"):
            values = np.where(rng.integers(0, 2, shape, bool), self.least, self.most)
        elif name == "levels":
            part = min(length, _RUNS)
            some = np.stack([self._runs(part, steps, rng) for _ in range(min(rows, _RUNS // part))])
            values = np.ascontiguousarray(np.resize(np.resize(some, (rows, part)).T, (length, rows)).T)
        elif name in ("zeros", "tiny"):
            values = np.full(shape, self.nothing)
        return np.asarray(values)

    def _runs(self, length: int, steps: Sequence[int], rng: np.random.Generator) -> Array:
        """A line of numbers that follow each other in parts: some as they are, others with something else between.

        Who looks at the ends of a part, or at every other step, takes it for a run, or for one number. Up to the middle
        parts are as long as a tile may be and begin where tiles do, behind it they have any length.
        """
        values = np.empty(length, np.int64)
        own = [s for s in steps if 1 < s <= max(2, length // 8)]
        regular = int(rng.choice(own)) if own else int(2 ** rng.integers(1, 6))
        begin = 0
        while begin < length:
            size = min(regular if begin < length // 2 else int(2 ** rng.integers(1, 8)), length - begin)
            values[begin : begin + size] = self._run(size, int(rng.integers(0, 7)), rng)
            begin += size
        return values

    def _run(self, size: int, how: int, rng: np.random.Generator) -> Array:
        span = self.high - self.low + 1
        part = int(rng.integers(0, max(span - size, 0) + 1)) + np.arange(size) % span
        inner, few = part[1:-1], rng.random(size) < 0.125
        if how == 1:
            inner[:] = rng.permutation(inner)
        elif how == 2:
            inner[:] = inner[::-1]
        elif how == 3:  # pairs that follow each other, in another order
            pairs = part[: size // 2 * 2].reshape(-1, 2)
            pairs[:] = rng.permutation(pairs)
        elif how == 4:  # all but a few
            inner[:] = np.where(few[1:-1], rng.integers(0, span, inner.size), inner)
        elif how >= 5:  # one number, or all but a few
            part = np.where(few & (how == 6), rng.integers(0, span, size), part[0])
            part[-1] = part[0]
        return part + self.low


def _range(dtype: str) -> tuple[int, int]:
    info = np.iinfo(numpy_dtype(dtype))
    return int(info.min), min(int(info.max), np.iinfo(np.int64).max)
