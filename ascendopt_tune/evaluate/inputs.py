"""Seeded inputs: random ones, and patterns (patterns.py) that make every element count, inside the operator's domain.

``operator.settings["domain"][input]`` (op.toml) may say ``low`` and ``high`` (values stay in [low, high]), or
``index = "x", axis = 0`` (whole numbers in [0, length of that axis of input x)), or ``values = [...]`` (these in every
trial, in row-major order: paddings, offsets, and what else decides about shapes), and ``whole = true`` of a float input
(its values are whole numbers, because it was an integer or a mask once). ``specials = true`` in the settings adds a
trial with infinities and NaN.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..device.launch import Arrays
from ..errors import CaseError
from ..nouns.case import Argument, Case, TensorSpec, flatten
from ..sources.arguments import Array, numpy_dtype
from .patterns import LARGE, PATTERNS, balanced, pattern
from .shares import may_share, shares
from .together import SMALL, take_turns

#: Values at which results lie on halves, exactly: the largest inputs are multiples of a half, the others powers of two.
HALVES = "halves"
#: Values whose sums and products lie halfway between two numbers of 16 bits, exactly.
TIES = "ties"
#: How near to 1 a number is that a shortcut may take for 1, in whose results it shows all the same.
NEAR = 2.0**-11

#: Plain distributions: what every operator has to get right. The first is the one that is measured.
PLAIN = ("normal", "uniform", "zeros")
#: Of whole tensors; ``lines`` and ``columns`` have a pattern for every slice along the last and the first axis. They
#: may be outside of what an operator is defined for.
STRESS = (
    "lines", "columns", "large", *PATTERNS, *(f"{p} others" for p in ("sparse", "ones", "far", "lines", "columns")),
    HALVES, TIES, "tiny all", "sparse all", "balanced all", "specials", "beyond",
)  # fmt: skip

#: Every line of every float input is small: an epsilon beside a sum of several decides only where all of them are.
ALL_TINY = "tiny all"
_TINY_ALIKE = "tiny alike"  # what a gain is beside them: who takes all of it for 0
#: Every input is 0 but for a few elements, and 1 in its second half: who looks at a sample of each takes them for that.
ALL_SPARSE = "sparse all"
#: Sums of lines, and of tiles, are 0 in the first half; in the second the largest or the smallest is, and few aren't:
#: who takes them for nothing by that is wrong.
ALL_BALANCED = "balanced all"
_FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})
_WHOLE = frozenset({"int8", "uint8", "int16", "int32", "int64"})
_SMALL_INT = 100  # magnitude of integers but in "large"
_BALANCED = 100  # magnitude of numbers whose sums are 0, times 16 of floats, so that these have few bits
_RUN = 16  # elements of a lone line that are small alike
_FAR = 64  # times the elements: an input that is no partner of the largest any more


def schedule(case: Case, names: Sequence[str], settings: Mapping[str, Any], most: int) -> tuple[str, ...]:
    """Distributions of the trials of a case, in the order they are tried; the first trials find most.

    Args:
        most: trials of large tensors may be no more than this; ``specials`` and ``beyond``, where they apply, on top.
    """
    rows = max((math.prod(t.shape[:-1]) for t in flatten(case.inputs) if t.shape), default=1)
    again = max(0, min(_LINES, -(-_LINES * _ENOUGH_ROWS // max(rows, 1))) - 1)  # few lines: more trials of them
    order = ["normal", "lines", "large", "columns", "outlier", "uniform", "zeros", "negative"]
    several = len([a for a in case.inputs if a is not None]) > 1
    order += ["sparse others", "ones others"] * several + ["lines"] * again + [p for p in PATTERNS if p not in order]
    order += ["lines others", "columns others"] * bool(_beside(case))
    order += [ALL_TINY] * (sum(_is_float(a) for a in case.inputs) > 1)
    order += [ALL_SPARSE] * (sum(_is_number(a) for a in case.inputs) > 1)
    order += [ALL_BALANCED] * any(_is_number(a) for a in case.inputs) + ["far others"] * several
    if _whole_from_floats(case):
        order.insert(min(5, len(order)), HALVES)
    if _may_tie(case):
        order.insert(min(8, len(order)), TIES)
    chosen = order[:most]
    if any("index" in settings.get("domain", {}).get(n, {}) for n in names):
        chosen.append("beyond")
    if settings.get("specials"):  # twice, where all is multiplied by a number: once it is 0
        chosen += ["specials"] * (1 + any(_lone(a, case) for a in case.inputs))
    return tuple(chosen)


def _whole_from_floats(case: Case) -> bool:
    """Whether floats become whole numbers: where one lies on a half, the rule of rounding decides."""
    kinds = [{numpy_dtype(t.dtype).kind for t in flatten(arguments)} for arguments in (case.inputs, case.outputs)]
    return bool(kinds[0] - set("iubc")) and bool(kinds[1] & set("iu"))


def _may_tie(case: Case) -> bool:
    """Whether a result of 16 bits may lie halfway between two of them: it is rounded, added up, or made of several."""
    floats = [t for t in flatten(case.inputs) if t.dtype in _FLOATS]
    narrow = [t for t in flatten(case.outputs) if t.dtype in ("float16", "bfloat16")]
    fewer = sum(t.numel for t in narrow) < sum(t.numel for t in floats)
    return bool(narrow) and (len(floats) > 1 or fewer or any(t.dtype not in ("float16", "bfloat16") for t in floats))


def _lone(argument: Argument, case: Case) -> bool:
    """Whether it is one number, which other inputs are scaled by, shifted, compared with."""
    if not isinstance(argument, TensorSpec) or numpy_dtype(argument.dtype).kind in "iubc":
        return False
    return argument.numel == 1 and any(t.numel > 1 for t in flatten(case.inputs))


# What such a number is in some trials: what a shortcut waits for, and what a narrower type can't hold.
_NUMBERS = {
    "negative": -1.0, "equal": 1.0, "ascending": 1.0 + 2.0**-7, "descending": 0.0, "positive": 2051.0,
    "offset": 2.0**-9, "edges": 0.25, "sparse": 2.0, "outlier": -0.5,
}  # fmt: skip


_SPACING = {"float16": 2.0**-10, "bfloat16": 2.0**-7}  # of numbers from 1 on


def _number(distribution: str, seed: int, spec: TensorSpec) -> float | None:
    """What such a number is in a trial; None: what the distribution makes of it."""
    if distribution == "lines" and seed % 2:  # the first of them, which large cases have as well
        return 1.0 + max(NEAR, _SPACING.get(spec.dtype, NEAR))
    if distribution == TIES:
        return 1.5 if seed % 2 else 0.75
    if distribution == "levels":  # nearer, of float32
        return 1.0 - 2.0**-15
    return 0.0 if distribution == "specials" and seed % 2 else _NUMBERS.get(distribution)


_LINES, _ENOUGH_ROWS = 6, 8  # trials of lines at most; so many rows get along with one (of 6) as well as with six


def make_inputs(
    case: Case,
    names: tuple[str, ...],
    settings: Mapping[str, Any],
    distribution: str,
    seed: int,
    steps: Sequence[int] = (),
) -> tuple[Arrays, ...]:
    """One entry per input of ``case``; the same arguments give the same arrays on every machine.

    Args:
        names: the inputs' names, for their domains.
        distribution: of ``PLAIN`` or ``STRESS``.
        steps: lengths (in elements) at whose multiples outliers are put: of tiles, rows, cores' shares.
    """
    main, largest = _main(case, distribution, seed), _main(case, HALVES, seed)
    group = _in_turn(case, names, settings) if distribution in ("lines", "columns") else []
    main |= set(group)
    shapes = {n: a for n, a in zip(names, case.inputs, strict=True) if isinstance(a, TensorSpec)}
    domains = settings.get("domain", {})
    out: list[Arrays] = []
    for i, (name, argument) in enumerate(zip(names, case.inputs, strict=True)):
        given = domains.get(name, {}).get("values")
        domain = _bounds(name, domains.get(name, {}), shapes)
        streams = np.random.SeedSequence([seed, i])
        if argument is None:
            out.append(None)
        elif given is not None and isinstance(argument, TensorSpec):
            out.append(_given(name, given, argument))
        else:
            chosen = _chosen(name, distribution, i in main, i in largest, domains, domain)
            chosen = _of_one_sign(chosen, distribution, argument, domain, i - min(main, default=0))
            make = _whole if domains.get(name, {}).get("whole") else _tensor
            number = None
            if isinstance(argument, TensorSpec):
                number = _number(distribution, seed, argument) if _lone(argument, case) else None
                lengths = may_share(argument, domain, list(shapes.values())) if chosen == "normal" and seed % 2 else []
                if lengths and "index" not in domains.get(name, {}):
                    out.append(shares(argument, domain, lengths, seed, np.random.default_rng(streams)))
                    continue
            one = functools.partial(make, domain=domain, distribution=chosen, steps=steps, number=number)
            if isinstance(argument, TensorSpec):
                out.append(one(argument, rng=np.random.default_rng(streams)))
            else:
                rngs = [np.random.default_rng(s) for s in streams.spawn(len(argument))]
                out.append(tuple(one(t, rng=r) for t, r in zip(argument, rngs, strict=True)))
    _meet_specials(case, names, domains, out, seed, distribution)
    if group:
        plain = make_inputs(case, names, settings, PLAIN[0], seed, steps)
        free = not any(names[i] in domains for i in group)
        alike = len({(_dtype(case.inputs[i]), str(domains.get(names[i]))) for i in group}) == 1
        patterned, random = ([np.asarray(arrays[i]) for i in group] for arrays in (out, plain))
        turns = take_turns(
            patterned, random, distribution == "columns", alike, free, seed, free and _all_floats(case, group)
        )
        for i, array in zip(group, turns, strict=True):
            out[i] = array
    return tuple(out)


def _meet_specials(
    case: Case, names: Sequence[str], domains: Mapping[str, Any], arrays: Sequence[Arrays], seed: int, distribution: str
) -> None:
    """Of ``specials``: lets every two of infinities, NaN, 0 and 1 meet in inputs of one shape, which chance does in
    large ones only."""
    if distribution != "specials":
        return
    found = [i for i in _in_turn(case, names, {}) if _is_float(case.inputs[i]) and names[i] not in domains]
    if len(found) < 2:
        return
    rng = np.random.default_rng([seed, 0x5BEC])
    flat = [np.asarray(arrays[i]).reshape(-1) for i in found]
    pairs = rng.permutation(np.stack(np.meshgrid(_SPECIALS, _SPECIALS), -1).reshape(-1, 2))[: flat[0].size // 4]
    places = rng.permutation(flat[0].size)[: len(pairs)]
    first, second = rng.permutation(len(found))[:2]
    flat[first][places], flat[second][places] = pairs[:, 0].astype(flat[0].dtype), pairs[:, 1].astype(flat[0].dtype)


def _chosen(
    name: str,
    distribution: str,
    main: bool,
    largest: bool,
    domains: Mapping[str, Any],
    bounds: tuple[float | None, float | None],
) -> str:
    """What one input has in a trial; ``main``: the pattern is for it."""
    index = "index" in domains.get(name, {})
    if distribution == ALL_TINY and not largest:
        return _TINY_ALIKE
    if distribution in (HALVES, TIES) and not largest:
        return "powers" if distribution == HALVES else "few bits"
    if distribution == "lines" and index:
        return "levels"  # runs of neighbours
    if distribution == "positive" and not main and None not in bounds and not index:
        return "most"
    if distribution == "beyond":
        return distribution if main and index else "normal"
    if distribution in (ALL_SPARSE, ALL_BALANCED) and (index or bounds != (None, None)):
        return "normal"
    return distribution if main else "normal"


def _of_one_sign(
    chosen: str, distribution: str, argument: Argument, domain: tuple[float | None, float | None], apart: int
) -> str:
    """Of an input beside the one that is positive: neighbours have the other sign, so that products have one, too."""
    if distribution != "positive" or chosen != "normal" or domain != (None, None) or not _is_float(argument):
        return chosen
    return ("positive", "negative")[apart % 2]


def _in_turn(case: Case, names: Sequence[str], settings: Mapping[str, Any]) -> list[int]:
    """The largest inputs, where several of one shape may have a pattern, each in lines of its own (together.py)."""
    given = {n for n, d in settings.get("domain", {}).items() if "values" in d or "index" in d}
    sizes = {i: sum(t.numel for t in flatten([a])) for i, a in enumerate(case.inputs) if a is not None}
    largest = [(i, case.inputs[i]) for i, n in sizes.items() if n and n == max(sizes.values())]
    found = [(i, a) for i, a in largest if isinstance(a, TensorSpec) and names[i] not in given]
    several = len(found) > 1 and len(found) == len(largest) and len({a.shape for _, a in found}) == 1
    return [i for i, a in found if a.shape] if several else []


def _beside(case: Case) -> list[int]:
    """Inputs of several lines that are smaller than the largest, but not by far: the other factor of a product."""
    sizes = {i: a.numel for i, a in enumerate(case.inputs) if isinstance(a, TensorSpec)}
    most = max(sizes.values(), default=0)
    shapes = {i: a.shape for i, a in enumerate(case.inputs) if isinstance(a, TensorSpec)}
    return [i for i, n in sizes.items() if most // _FAR <= n < most and sum(k > 1 for k in shapes[i]) > 1]


def _is_float(argument: Argument) -> bool:
    """Whether it is one tensor of floating-point numbers."""
    return isinstance(argument, TensorSpec) and argument.dtype in _FLOATS


def _is_number(argument: Argument) -> bool:
    """Whether it is one tensor of numbers, whole or not."""
    return isinstance(argument, TensorSpec) and argument.dtype in _FLOATS | _WHOLE


def _numbers(case: Case, which: Iterable[int], wanted: Callable[[Argument], bool]) -> set[int]:
    """Those of the inputs that are wanted, lone numbers left out."""
    return {i for i in which if wanted(case.inputs[i]) and not _lone(case.inputs[i], case)}


def _all_floats(case: Case, which: Sequence[int]) -> bool:
    return all(_is_float(case.inputs[i]) for i in which)


def _dtype(argument: Argument) -> str | None:
    return argument.dtype if isinstance(argument, TensorSpec) else None


def _main(case: Case, distribution: str, seed: int) -> set[int]:
    """Inputs that a pattern is for: one of the largest, in turn, because two patterns would hide each other.

    Where every line has its own pattern, most of them for all inputs of that size.
    """
    sizes = {i: sum(t.numel for t in flatten([a])) for i, a in enumerate(case.inputs) if a is not None}
    if distribution in (HALVES, TIES):
        return {i for i, n in sizes.items() if n == max(sizes.values())}
    if distribution in (ALL_TINY, ALL_SPARSE, ALL_BALANCED):
        return _numbers(case, sizes, _is_float if distribution == ALL_TINY else _is_number)
    if distribution in ("lines others", "columns others"):
        beside = _beside(case)
        return {beside[seed % len(beside)]} if beside else set()
    others = distribution.endswith(" others")
    patterned = others or distribution in PATTERNS or distribution in ("lines", "columns")
    if not patterned or not sizes:
        return set(sizes)
    largest = [i for i, n in sizes.items() if n == max(sizes.values())]
    if others:
        return set(sizes) - {largest[seed % len(largest)]}
    if distribution in PATTERNS and seed % 4 == 3:  # a gain, a bias
        return {sorted(sizes)[seed // 4 % len(sizes)]}
    return {largest[seed % len(largest)]}


def _bounds(
    name: str, domain: Mapping[str, Any], shapes: Mapping[str, TensorSpec]
) -> tuple[float | None, float | None]:
    """(lowest, highest) value, both allowed; None where there is no bound. Raises CaseError: the domain has none."""
    if "index" in domain:
        into, axis = str(domain["index"]), domain.get("axis", 0)
        shape = shapes[into].shape if into in shapes else ()
        if not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
            known = ", ".join(f"{n}[{','.join(map(str, s.shape))}]" for n, s in shapes.items())
            raise CaseError(f"the domain of {name} is an index into axis {axis} of {into}.", f"There are {known}.")
        return 0, shape[axis] - 1
    low, high = domain.get("low"), domain.get("high")
    for bound in (low, high):
        if bound is not None and (not isinstance(bound, (int, float)) or not math.isfinite(bound)):
            raise CaseError(f"the domain of {name} has the bound {bound!r}.", "A bound is a finite number.")
    if low is not None and high is not None and low > high:
        raise CaseError(f"the domain of {name} is empty: its lowest value {low:g} is above its highest, {high:g}.")
    return low, high


def _given(name: str, values: Any, spec: TensorSpec) -> Array:
    try:
        array = np.asarray(values)
    except ValueError:  # lists of several lengths
        array = np.asarray("")
    if array.dtype.kind not in "biuf":
        raise CaseError(
            f"the domain of input {name} gives values that are no numbers: {values!r:.80}.",
            "Give a list of numbers, in row-major order.",
        )
    if array.size != spec.numel:
        raise CaseError(
            f"the domain of input {name} gives {array.size} values; the case has {spec}.",
            "Give as many values as the input has elements, or no values.",
        )
    return array.astype(numpy_dtype(spec.dtype)).reshape(spec.shape)


def _tensor(
    spec: TensorSpec,
    domain: tuple[float | None, float | None],
    distribution: str,
    steps: Sequence[int],
    rng: np.random.Generator,
    number: float | None = None,
) -> Array:
    """``number``: what all elements are."""
    dtype = numpy_dtype(spec.dtype)
    if number is not None and dtype.kind not in "iub":
        return _folded(np.full(spec.shape, number, np.float32), *domain).astype(dtype)
    distribution = distribution.removesuffix(" others")
    values: Array
    if distribution in (HALVES, TIES, "powers", "few bits") and spec.dtype in _FLOATS:
        made = _ties(spec, distribution, rng) if distribution in (TIES, "few bits") else None
        return _folded(_halves(spec.shape, distribution, rng) if made is None else made, *domain).astype(dtype)
    if distribution in (ALL_SPARSE, ALL_BALANCED, ALL_TINY, _TINY_ALIKE):
        everywhere = _everywhere(spec, domain, distribution, rng)
        if everywhere is not None:
            return everywhere
    if distribution in PATTERNS or distribution in ("lines", "columns", "ones", "far"):
        values = pattern(spec.shape, spec.dtype, distribution, domain, steps, rng)
        if dtype.kind in "iub" or spec.dtype == "int4":
            return values.astype(dtype)
        folded = _folded(values, *domain)
        return (_with_bounds(folded, domain, rng) if distribution == "edges" else folded).astype(dtype)
    if spec.dtype == "bool":
        values = np.zeros(spec.shape) if distribution == "zeros" else rng.integers(0, 2, spec.shape)
    elif dtype.kind in "iu" or spec.dtype == "int4":
        return _integers(spec, dtype, domain, distribution, rng)
    elif dtype.kind == "c":
        values = np.empty(spec.shape, dtype)
        values.real = _floats(spec.shape, spec.dtype, domain, distribution, rng)
        values.imag = _floats(spec.shape, spec.dtype, domain, distribution, rng)
    else:
        values = _floats(spec.shape, spec.dtype, domain, distribution, rng)
    return values.astype(dtype)


def _with_bounds(values: Array, domain: tuple[float | None, float | None], rng: np.random.Generator) -> Array:
    """Some of them exactly at the ends of the domain, where they would be by chance only."""
    for bound in domain:
        values = values if bound is None else np.where(rng.random(values.shape) < 1 / 32, bound, values)
    return values


def _everywhere(
    spec: TensorSpec, domain: tuple[float | None, float | None], distribution: str, rng: np.random.Generator
) -> Array | None:
    """A pattern that all inputs have at once; None: it says nothing of this dtype."""
    dtype = numpy_dtype(spec.dtype)
    if distribution == ALL_SPARSE and spec.dtype in _FLOATS | _WHOLE:
        values = _tensor(spec, domain, "normal", (), rng)
        most = (np.arange(values.size) >= values.size // 2).reshape(spec.shape).astype(dtype)
        if spec.dtype in _FLOATS:  # zeros of both signs, which are equal
            most = np.where(most == 0, most * rng.choice((-1.0, 1.0), spec.shape).astype(dtype), most)
        return np.where(rng.random(spec.shape) < 1 / 32, values, most)
    if distribution == ALL_BALANCED and spec.dtype in _FLOATS | _WHOLE and dtype.kind != "u" and spec.shape:
        return _balanced(spec, rng).astype(dtype)
    if distribution == _TINY_ALIKE and spec.dtype in _FLOATS:
        return _folded(rng.standard_normal(spec.shape) * np.exp2(rng.uniform(SMALL[0], -10)), *domain).astype(dtype)
    if distribution == ALL_TINY and dtype.kind not in "iubc" and spec.dtype != "int4":
        lines = (*spec.shape[:-1], 1) if len(spec.shape) > 1 else (spec.numel,)
        scales = np.exp2(rng.uniform(*SMALL, lines if spec.shape else ()))
        scales = scales.reshape(-1)[np.arange(spec.numel) // _RUN * _RUN] if len(spec.shape) == 1 else scales
        return _folded(rng.standard_normal(spec.shape) * scales, *domain).astype(dtype)
    return None


def _balanced(spec: TensorSpec, rng: np.random.Generator) -> Array:
    """See ``ALL_BALANCED``; of a lone line all elements are of the first kind, or all of the second."""
    values = balanced(spec.shape, _BALANCED, rng) / (1 if spec.dtype in _WHOLE else 16)
    lines, sign = values.reshape(-1, spec.shape[-1]), rng.choice((-1, 1))
    part = slice(len(lines) // 2, None) if len(lines) > 1 else slice(0, int(rng.integers(0, 3) == 0))
    few = rng.random(lines[part].shape) < 1 / 16
    lines[part] = np.where(few, np.abs(lines[part]) * sign, 0)
    return np.asarray(values)


_SPECIALS = np.array([np.inf, -np.inf, np.nan, 0.0, 1.0])
# Of whole numbers of 8 and of 4 bits the largest: who scales a line to them scales it by 1, and halves stay halves.
_TOPS = (99.5, 127.0, 7.0)


def _halves(shape: tuple[int, ...], distribution: str, rng: np.random.Generator) -> Array:
    """Multiples of a half, the largest of every line one of ``_TOPS``; or powers of two."""
    if distribution == "powers":
        return np.exp2(rng.integers(-1, 2, shape))
    if not shape or shape[-1] < 4:
        return np.asarray(rng.integers(-198, 199, shape) / 2)
    top = rng.choice(_TOPS, (*shape[:-1], 1))
    values = np.rint((rng.random(shape) * 4 - 2) * top) / 2
    values[..., -2] = (top * rng.choice((-1.0, 1.0), top.shape))[..., 0]
    return np.asarray(values)


def _ties(spec: TensorSpec, distribution: str, rng: np.random.Generator) -> Array:
    """Whole numbers that fill the significand of 16 bits, beside odd numbers of halves: sums, and products by few bits,
    need one bit more. Of inputs that have this bit some have it set."""
    if distribution == "few bits":
        return rng.choice((0.5, 0.75, 1.0, 1.5, 2.0), spec.shape)
    bits = {"float16": 10, "bfloat16": 7}.get(spec.dtype) or rng.choice((10, 7), spec.shape)
    full = np.floor((1 + rng.random(spec.shape)) * np.exp2(bits))
    odd = rng.integers(0, 4, spec.shape) + 0.5
    kind = rng.integers(0, 2 if spec.dtype in ("float16", "bfloat16") else 3, spec.shape)
    return np.asarray(rng.choice((-1.0, 1.0), spec.shape) * np.choose(kind, (full, odd, full + 0.5)))


def _whole(spec: TensorSpec, **how: Any) -> Array:
    """An input of float type whose values are whole numbers."""
    return _tensor(replace(spec, dtype="int32"), **how).astype(numpy_dtype(spec.dtype))


def _floats(
    shape: tuple[int, ...],
    dtype: str,
    domain: tuple[float | None, float | None],
    distribution: str,
    rng: np.random.Generator,
) -> Array:
    low, high = domain
    if distribution == "zeros":
        values = np.zeros(shape, np.float32)
    elif distribution == "uniform":
        a, b = -2.0 if low is None else low, 2.0 if high is None else high
        values = rng.random(shape, np.float32) * np.float32(b - a) + np.float32(a)
    else:
        values = rng.standard_normal(shape, np.float32)
        if distribution == "tails":  # magnitudes from 2**-14 to 2**6, both signs
            values = np.sign(values) * np.exp2(rng.random(shape, np.float32) * 20 - 14)
        elif distribution == "large":
            values = np.sign(values) * np.float32(LARGE[dtype]) * (1 - rng.random(shape, np.float32) * 0.9)
            _end_rows(values, 2 * LARGE[dtype], -2 * LARGE[dtype])
        elif distribution == "specials":
            values = values.copy() if values.shape else np.asarray(values)
            where = rng.random(shape)
            for share, special in ((0.02, np.inf), (0.04, -np.inf), (0.06, np.nan)):
                values = np.where((where >= share - 0.02) & (where < share), np.float32(special), values)
    return _folded(values, low, high)


def _folded(values: Array, low: float | None, high: float | None) -> Array:
    if low is None and high is None:
        return np.asarray(values)
    # Into the domain by folding, not by clipping: the values stay spread out. Specials stay what they are.
    keep = ~np.isfinite(values)
    with np.errstate(invalid="ignore"):
        if low is not None and high is not None:
            if low == high:
                return np.where(keep, values, np.float32(low))
            width = np.float32(high - low)
            keep |= (values >= low) & (values <= high)
            return np.where(keep, values, np.float32(low) + np.mod(np.abs(values), width))
        bound = np.float32(low if low is not None else high)
        keep |= values >= bound if low is not None else values <= bound
        sign = 1 if low is not None else -1
        return np.where(keep, values, bound + sign * np.abs(values - bound))


def _integers(
    spec: TensorSpec,
    dtype: np.dtype[Any],
    domain: tuple[float | None, float | None],
    distribution: str,
    rng: np.random.Generator,
) -> Array:
    drawn = np.dtype(np.int8) if spec.dtype == "int4" else dtype
    smallest, largest = (-8, 7) if spec.dtype == "int4" else (int(np.iinfo(drawn).min), int(np.iinfo(drawn).max))
    lowest = max(smallest, -_SMALL_INT) if domain[0] is None else int(domain[0])
    highest = min(largest, _SMALL_INT) if domain[1] is None else int(domain[1])
    if distribution == "zeros":
        return np.full(spec.shape, min(max(0, lowest), highest)).astype(dtype)
    if distribution == "most":
        return np.full(spec.shape, highest).astype(dtype)
    if distribution == "beyond":
        values = rng.integers(lowest, max(lowest, highest), spec.shape, np.int64, endpoint=True)
        outside = [lowest - 1, highest + 1, highest + 2, lowest - 1 - highest, 2 * highest + 3, smallest, largest]
        where = rng.random(spec.shape)
        values = np.where(where < 0.25, np.clip(rng.choice(outside, spec.shape), smallest, largest), values)
        # Others anywhere: who multiplies before it limits them goes beyond its own dtype only there.
        anywhere = rng.integers(smallest, largest, spec.shape, drawn, endpoint=True).astype(np.int64)
        return np.where((where >= 0.25) & (where < 0.375), anywhere, values).astype(dtype)
    if distribution == "large" and domain == (None, None):
        values = rng.integers(smallest, largest, spec.shape, drawn, endpoint=True)
        _end_rows(values, largest, smallest)
        return values.astype(dtype)
    return rng.integers(lowest, max(lowest, highest), spec.shape, drawn, endpoint=True).astype(dtype)


def _end_rows(values: Array, last: float, second_last: float) -> None:
    """Sets the last two elements of rows that have some before them."""
    if values.ndim and values.shape[-1] >= 4:
        values[..., -1], values[..., -2] = last, second_last
