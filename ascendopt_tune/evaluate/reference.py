"""Expected outputs from an operator's reference: a function of CPU torch tensors, run in the tuner's process.

What is expected is the reference's formula in float64, rounded once to the output's dtype, whatever precision the
reference itself chose; and how much each element moves when the inputs do by what float32 arithmetic loses tells how
exact it can be asked to be.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from ..device.launch import Arrays
from ..errors import AscendOptError, OperatorError
from ..nouns.case import Argument, Case, TensorSpec, flatten
from ..nouns.operator import Operator
from ..sources.arguments import Array, dtype_name, numpy_dtype
from .accuracy import either_side, unit
from .inputs import TIES
from .wide import in_float64

if TYPE_CHECKING:
    import torch

# Relative: 8 times what one float32 operation loses. Applied to inputs, it stands for what the arithmetic behind them
# loses; two right programs differ by about as much.
_ARITHMETIC = 2.0**-21
# No float16, and no sum or square on the way to it that float32 doesn't hold.
_SURELY_OVER, _SURELY_HELD = 65504.0 * 1.01, 2.0**60
#: Elements of inputs and outputs; with more of them there is no formula in float64, for lack of memory.
HUGE = 1 << 26
# Of float32 results inputs are moved twice more, in other directions: where several inputs' moves cancel they do so in
# both of the first two, which are each other's opposites. Those of 16 bits have :func:`_as_usual`.
_ONCE_MORE = 0x3D
# How far apart the indices of numbers may be that float32 can't tell apart: so often what was seen.
_AT_MOST = 16.0
_SAMPLE, _ENOUGH = 1 << 16, 16  # results that are looked at, and of one magnitude at least
_EXPONENTS = 256  # more than float32 has on either side of 1
_LARGE = 1 << 20  # elements; of larger inputs one change is tried, of others a second in the other direction
_PART = 1 << 15  # elements that are worked on at once


Close = Callable[[Array, Array, Array], Array]


@dataclass(frozen=True)
class Formula:
    """``expected``: one entry per output of the case, in its dtype and shape. ``leeway``: of the same structure, how
    far each element may be off because its value depends on more than float32 arithmetic keeps (float32; 1 for an
    integer that lies on a half, infinite where nothing finite is near, NaN where the precision decides that the
    reference itself chose)."""

    expected: tuple[Arrays, ...]
    leeway: tuple[Arrays, ...]
    exact: bool = True  # the formula, not the reference as it is written


def formula(
    operator: Operator, case: Case, inputs: Sequence[Arrays], seed: int, close: Close, halves: str = ""
) -> Formula:
    """The reference's outputs with every float in it a float64, and their leeway.

    Elements where that is not what the reference gives as it is written are taken from there: it then means something
    by its precision.

    Args:
        seed: of the small changes to the inputs.
        close: (the reference's array, the formula's, leeway) -> whether each element is the same but for precision.
        halves: ``HALVES`` or ``TIES`` (inputs.py), the trial for results on a half. Where float32 holds every step on
            the way to one, it lies there in any arithmetic, and the rule of rounding says which way it goes: whole ones
            have no leeway; of those halfway between two numbers of 16 bits it is minus infinity, so that nothing else
            will do.

    Raises:
        OperatorError: as :func:`expected_outputs`.
    """
    plain = expected_outputs(operator, case, inputs)
    as_written = Formula(plain, tuple(mapped(lambda a: np.zeros(a.shape, np.float32), e) for e in plain), exact=False)
    if sum(t.numel for t in flatten((*case.inputs, *case.outputs))) > HUGE:
        return as_written
    try:
        large = max((t.numel for t in flatten(case.inputs)), default=0) > _LARGE
        first, *second, exact = _exactly(operator, case, inputs, seed, (-1, 0) if large else (1, -1, 0))
        moved = [first, *second]
        if not large and any(t.dtype == "float32" for t in flatten(case.outputs)):
            moved += _exactly(operator, case, inputs, seed + _ONCE_MORE, (1, -1))
        chosen = _exactly_as_in_float32(operator, case, inputs, seed)
    except Exception:  # a reference needs no formula for float64: it is then its own
        return as_written
    expected, leeway = [], []
    for i, (one, wide, *others) in enumerate(zip(plain, exact, *moved, strict=True)):
        pairs = [_one(a, b, c, close) for a, b, *c in zip(*map(_listed, (one, wide, *others)), strict=True)]
        if chosen:
            runs = zip(*(_listed(run[i]) for run in chosen), strict=True)
            pairs = [(a, _chosen(a, b, c)) for (a, b), c in zip(pairs, runs, strict=True)]
        values, leeways = tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
        expected.append(None if one is None else values if isinstance(one, tuple) else values[0])
        leeway.append(None if one is None else leeways if isinstance(one, tuple) else leeways[0])
    found = Formula(tuple(expected), tuple(leeway))
    return _firm_where_exact(operator, case, inputs, seed, found, exact, halves == TIES) if halves else found


def _exactly_as_in_float32(
    operator: Operator, case: Case, inputs: Sequence[Arrays], seed: int
) -> list[tuple[tuple[Array, ...] | Array | None, ...]]:
    """Where whole numbers come of floats: results of which every step is off by what float32 doesn't hold of it."""
    whole = any(numpy_dtype(t.dtype).kind in "iu" for t in flatten(case.outputs))
    if not whole or not any(_floating(a) for one in inputs for a in _listed(one)):
        return []
    return [results for i in (1, 2, 3) for results in _exactly(operator, case, inputs, seed + i, (0,), i, float32=True)]


def _chosen(expected: Array, leeway: Array, others: Sequence[Array]) -> Array:
    """The leeway of whole numbers, larger where ``others``, of another arithmetic, aren't the same: which of several
    numbers is the largest, when float32 can't tell them apart, isn't determined, nor that its index is beside the
    expected one. Of a line, all that aren't determined may be as far off as any of them."""
    if expected.dtype.kind not in "iu":
        return leeway
    with np.errstate(invalid="ignore"):
        wide = expected.astype(np.float64)
        apart = np.max([np.abs(o.astype(np.float64).reshape(wide.shape) - wide) for o in others], axis=0)
    most = np.where(apart > 1, _AT_MOST * apart, apart)
    line = most.max(-1, keepdims=True) if most.ndim > 1 and most.size else most
    return np.asarray(np.maximum(leeway, np.where(apart >= 1, line, 0.0)), np.float32)


def _firm_where_exact(
    operator: Operator,
    case: Case,
    inputs: Sequence[Arrays],
    seed: int,
    found: Formula,
    exact: Sequence[Any],
    ties: bool,
) -> Formula:
    """Results on a half that don't change when every step that float32 doesn't hold is well off are firm.

    Args:
        exact: the formula's results, before they are rounded.
        ties: of 16 bits; those of functions that others approximate are well off, too.
    """
    try:
        runs = [results for (results,) in (_exactly(operator, case, inputs, seed + i, (0,), i, ties) for i in (1, 2))]
    except Exception:  # a reference that changes what overlaps itself, for instance
        return found
    firm = []
    for want, free, *unrounded in zip(found.expected, found.leeway, exact, *runs, strict=True):
        arrays = zip(_listed(want), _listed(free), *map(_listed, unrounded), strict=True)
        made = tuple(_firm(a, b, c, moved) for a, b, c, *moved in arrays)
        firm.append(None if free is None else made if isinstance(free, tuple) else made[0])
    return Formula(found.expected, tuple(firm), found.exact)


def _firm(expected: Array, leeway: Array, exact: Array, moved: Sequence[Array]) -> Array:
    with np.errstate(invalid="ignore"):
        if dtype_name(expected.dtype) in ("float16", "bfloat16"):
            tie = (2 * np.abs(exact - expected.astype(np.float64)) == unit(expected)) & np.isfinite(leeway)
            return np.where(tie & np.all([m == exact for m in moved], axis=0), np.float32(-np.inf), leeway)
        if expected.dtype.kind not in "iu":
            return leeway
        same = np.all([m.astype(expected.dtype) == expected for m in moved], axis=0)
    return np.where(same & (leeway == 1), np.float32(0), leeway)


def _exactly(
    operator: Operator,
    case: Case,
    inputs: Sequence[Arrays],
    seed: int,
    signs: Sequence[int],
    noise: int = 0,
    approximate: bool = False,
    float32: bool = False,
) -> Iterator[tuple[tuple[Array, ...] | Array | None, ...]]:
    """The outputs of the reference in float64, before they are rounded, for each sign by which inputs are a bit off.

    ``noise``, ``approximate``, ``float32``: as of :func:`in_float64`.
    """
    import torch

    assert operator.reference is not None
    _one_thread_first()
    # The same memory for every sign: getting pages from the system takes longer than the arithmetic.
    wide = [_map_any(lambda a: np.empty(a.shape, np.float64 if _floating(a) else _held(a)), a) for a in inputs]
    for sign in signs:
        rng = np.random.default_rng([seed, 0xF64])
        for made, array in zip(wide, inputs, strict=True):
            for one, other in zip(_listed(made), _listed(array), strict=True):
                _fill(one, other, rng, sign if _floating(other) else 0)
        with in_float64(noise, sign, approximate, float32):
            results = operator.reference(*(_map_any(torch.from_numpy, a) for a in wide), **dict(case.attrs))
        results = _by_output(operator, case, results)
        found = (_unrounded(operator, i, r, a) for i, (r, a) in enumerate(zip(results, case.outputs, strict=True)))
        yield tuple(mapped(lambda a: _apart(a, wide), f) for f in found)


def _held(array: Array) -> np.dtype[Any]:
    """The dtype in which torch has the array's values: int8 for int4, which it doesn't know."""
    return np.dtype(np.int8) if array.dtype == ml_dtypes.int4 else array.dtype


def _floating(array: Array) -> bool:
    return bool(array.dtype.kind == "f" or array.dtype == ml_dtypes.bfloat16)


def _fill(out: Array, array: Array, rng: np.random.Generator, sign: int) -> None:
    """The array's values, in the dtype of ``out``, a little off in the direction of ``sign``."""
    out, array = out.reshape(-1), array.reshape(-1)
    for begin in range(0, out.size, _PART):
        part = out[begin : begin + _PART]
        part[:] = array[begin : begin + _PART]
        if sign:
            noise = rng.random(part.size, np.float32) - np.float32(0.5)
            # By half of it at least, so that nothing is held by chance; the other way by another amount, which is more
            # than what sums move by (wide.py): what cancels once, by chance, or beside a mean, doesn't twice. Of large
            # inputs that is the only one.
            amount = np.abs(noise) if sign > 0 else (rng.random(part.size, np.float32) + 1) * np.float32(0.25)
            noise = np.copysign((amount + np.float32(0.5)) * np.float32(0.5), noise)
            with np.errstate(invalid="ignore", over="ignore"):
                part += part * (noise * np.float32(2 * sign * _ARITHMETIC))


def _apart(result: Array, inputs: Sequence[Any]) -> Array:
    """The result, copied where it is an input or a part of one."""
    shared = any(np.may_share_memory(result, one) for made in inputs for one in _listed(made))
    return result.copy() if shared else result


def _unrounded(operator: Operator, i: int, result: Any, argument: Argument) -> Any:
    def one(value: Any, spec: TensorSpec) -> Array:
        array = to_array(value)
        if array.size != spec.numel:
            raise OperatorError(f"output {i} of the reference of {operator.name} has another shape in float64.")
        return array.reshape(spec.shape)

    if argument is None:
        return None
    if isinstance(argument, tuple):
        return tuple(map(one, result, argument))
    return one(result, argument)


def _one(plain: Array, wide: Array, moved: Sequence[Array], close: Close) -> tuple[Array, Array]:
    """Expected values and leeway of one output; ``moved``: what it is when inputs are a bit off."""
    if plain.dtype.kind == "b":
        return plain, np.zeros(plain.shape, np.float32)
    expected, leeway = plain.reshape(-1).copy(), np.empty(plain.size, np.float32)
    other = [a.reshape(-1) for a in (wide, *moved)]
    for begin in range(0, plain.size, _PART):  # what is made on the way stays in the processor's cache
        part = slice(begin, begin + _PART)
        _one_part(expected[part], leeway[part], *(a[part] for a in other), close=close)
    if dtype_name(expected.dtype) in ("float16", "bfloat16"):
        _as_usual(expected, leeway)
    return expected.reshape(plain.shape), leeway.reshape(plain.shape)


def _one_part(expected: Array, leeway: Array, wide: Array, *moved: Array, close: Close) -> None:
    """Changes ``expected``, what the reference gives, to the formula's where that is close; fills ``leeway``."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = _rounded(wide, expected.dtype)
        if expected.dtype.kind in "iu":
            leeway[:] = np.any([m.astype(expected.dtype) != rounded for m in moved], axis=0)
        else:
            leeway[:] = np.abs(moved[0] - wide)
            for more in moved[1:]:
                np.fmax(leeway, np.abs(more - wide).astype(np.float32), out=leeway)
            np.nan_to_num(leeway, copy=False, nan=0.0, posinf=np.inf)
            if dtype_name(expected.dtype) in ("float16", "bfloat16"):
                either_side(leeway, wide, rounded)
            if expected.dtype == np.float16:
                _overflow(leeway, rounded, wide)
        other = np.flatnonzero(expected != rounded)
        one, two = expected[other], rounded[other]
        same = close(one, two, leeway[other])
        expected[other] = np.where(same, two, one)
        leeway[other[~same]] = np.nan


def _as_usual(expected: Array, leeway: Array) -> None:
    """Raises leeways that are small by chance to the median of those of results of the same magnitude.

    Of a million sums that cancel to about the same, a few stay where they were however the inputs are changed.
    """
    with np.errstate(invalid="ignore"):
        magnitude = np.frexp(expected.astype(np.float32))[1]
    known = np.isfinite(leeway) & np.isfinite(expected) & (expected != 0)
    sample = slice(None, None, max(1, expected.size // _SAMPLE))
    found, kinds = leeway[sample][known[sample]], magnitude[sample][known[sample]]
    order = np.argsort(kinds, kind="stable")
    first = np.flatnonzero(np.diff(kinds[order], prepend=kinds.min(initial=0) - 1))
    least = np.zeros(2 * _EXPONENTS, np.float32)  # by magnitude
    for same in np.split(order, first[1:]):
        if same.size >= _ENOUGH:
            least[kinds[same[0]] + _EXPONENTS] = np.median(found[same])
    np.maximum(leeway, least[np.where(known, magnitude, 0) + _EXPONENTS], out=leeway, where=known)


def _overflow(leeway: Array, rounded: Array, wide: Array) -> None:
    """Leeway of infinities that only the rounding to float16 makes: above 0.

    Of all others it is 0, and of those so near to the largest float16 or so large that other arithmetic may stay below,
    or go beyond what float32 holds.
    """
    size = np.abs(wide)
    over = np.flatnonzero(np.isinf(rounded))
    sure = (size[over] > _SURELY_OVER) & (size[over] < _SURELY_HELD)
    leeway[over] = np.where(sure, np.float32(2.0**-100), np.float32(0))


def _rounded(wide: Array, dtype: np.dtype[Any]) -> Array:
    """``wide`` in another dtype, rounded once; to float16 with the vector instructions that numpy doesn't use."""
    if dtype != np.float16 or wide.dtype != np.float64:
        return np.asarray(wide.astype(dtype))
    import torch

    near = wide.astype(np.float32)
    found = np.asarray(torch.from_numpy(near).half().numpy())
    # What became a tie of two float16 on the way, all of whose last bits are 0, is rounded again.
    ties = np.flatnonzero(near.view(np.uint32) & 0xFFF == 0)
    found[ties] = wide[ties].astype(dtype)
    return found


def mapped(function: Callable[[Array], Array], arrays: Arrays) -> Arrays:
    """The function of every tensor of one input or output."""
    if arrays is None:
        return None
    return tuple(map(function, arrays)) if isinstance(arrays, tuple) else function(arrays)


def _map_any(function: Callable[[Any], Any], arrays: Any) -> Any:
    if arrays is None:
        return None
    return list(map(function, arrays)) if isinstance(arrays, (tuple, list)) else function(arrays)


def _listed(arrays: Any) -> tuple[Array, ...]:
    if arrays is None:
        return ()
    return tuple(arrays) if isinstance(arrays, (tuple, list)) else (arrays,)


@functools.cache
def _one_thread_first() -> None:
    """Calls a vector function of MKL with one thread, before a reference does with several.

    The first call in a process looks for the processor's kind, and a second thread that calls meanwhile may get code of
    a lower accuracy: in 1 process of 1500 (torch 2.13.0, MKL 2024.2, two threads) one half of exp's results was up to
    1.5e-4 off, relatively.
    """
    import torch

    torch.ones(1).exp()


def expected_outputs(operator: Operator, case: Case, inputs: Sequence[Arrays]) -> tuple[Arrays, ...]:
    """One entry per output of ``case``, in its dtype and shape.

    The reference is called with one argument per input (a tensor, a list of tensors, or None) and the attributes by
    name; it returns a tensor, a list, or a tuple with one of these per output.

    Raises:
        OperatorError: the reference fails, or gives other outputs than the case has; the text says which.
    """
    assert operator.reference is not None
    _one_thread_first()
    attrs = dict(case.attrs)
    try:
        results = operator.reference(*(_map_any(to_tensor, a) for a in inputs), **attrs)
    except Exception as error:
        raise OperatorError(
            f"the reference of {operator.name} fails on {case}: {_said(error)}.",
            "Correct reference.py; it gets one tensor (or list) per input and the attributes by name.",
        ) from error
    results = _by_output(operator, case, results)
    return tuple(_arrays(operator, i, r, a) for i, (r, a) in enumerate(zip(results, case.outputs, strict=True)))


def _said(error: Exception) -> str:
    """What a reference raised, with the line of it where that is known; without the full stop at its end."""
    if isinstance(error, AscendOptError):
        return str(error).rstrip(".")
    places = traceback.extract_tb(error.__traceback__)
    own = [f.lineno for f in places if f.filename != __file__ and Path(f.filename).name == "reference.py"]
    place = f"reference.py, line {own[-1]}: " if own else ""
    return f"{place}{type(error).__name__}: {error}".rstrip(".")


def _by_output(operator: Operator, case: Case, results: Any) -> Any:
    """What a reference returned, one entry per output."""
    if len(case.outputs) == 1 and not (isinstance(results, tuple) and len(results) == 1):
        results = (results,)
    if len(results) != len(case.outputs):
        raise OperatorError(f"the reference of {operator.name} gives {len(results)} outputs, not {len(case.outputs)}.")
    return results


def to_tensor(array: Array) -> torch.Tensor:
    """A torch tensor with a copy of the array; bfloat16 included, int4 as int8."""
    import torch

    copied = np.array(array, dtype=_held(array))
    if copied.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(copied.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(copied)


def to_array(tensor: torch.Tensor) -> Array:
    """The array of a torch tensor's values; bfloat16 as ml_dtypes'."""
    import torch

    plain = tensor.detach().cpu().contiguous()
    if plain.dtype == torch.bfloat16:
        return plain.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return np.asarray(plain.numpy())


def _arrays(operator: Operator, i: int, result: Any, argument: Argument) -> Arrays:
    if argument is None:
        return None
    if isinstance(argument, tuple):
        result = result if isinstance(result, (list, tuple)) else [result]
        if len(result) != len(argument):
            raise OperatorError(
                f"output {i} of the reference of {operator.name} has {len(result)} tensors, not {len(argument)}."
            )
        return tuple(_array(operator, i, r, spec) for r, spec in zip(result, argument, strict=True))
    return _array(operator, i, result, argument)


def _array(operator: Operator, i: int, result: Any, spec: TensorSpec) -> Array:
    array = to_array(result)
    if array.size != spec.numel:
        raise OperatorError(
            f"output {i} of the reference of {operator.name} has shape {list(array.shape)}; the case says {spec}.",
            "Correct reference.py; or, where the operator's shape function is what is wrong (many give the input's "
            f"shape), name the output: --output NAME={spec.dtype}[{','.join(map(str, array.shape))}].",
        )
    with np.errstate(over="ignore"):  # what the dtype can't hold is infinity
        return array.astype(numpy_dtype(spec.dtype)).reshape(spec.shape)
