"""The vector operations of the language: operands, numpy's meaning, and whether results are exact.

How one becomes AscendC is in lower/instructions.py; a test holds the two tables together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class OpRule:
    """``operands``: a letter each, ``t`` a tile, ``s`` a scalar, ``b`` either (one of them has to be a tile).

    ``exact``: interpreter and device agree bit for bit. ``in_place``: the destination may be an operand. ``dtypes``:
    names of dtypes of the tiles.
    """

    operands: str
    numpy: Callable[..., Array]
    exact: bool = True
    in_place: bool = True  # the destination may be an operand
    dtypes: tuple[str, ...] = ("float32", "float16")


def _erf(x: Array) -> Array:
    import torch

    found: Array = torch.special.erf(torch.from_numpy(np.ascontiguousarray(x, np.float64))).numpy()
    return found.astype(x.dtype)


def _where(compare: Callable[[Any, Any], Any]) -> Callable[..., Array]:
    def chosen(a: Any, b: Any, yes: Any, no: Any) -> Array:
        found: Any = np.where(compare(a, b), yes, no)
        return np.asarray(found)

    return chosen


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip
_ARITHMETIC = ("float32", "float16", "int32")
_MINMAX = ("float32", "float16", "int32")

OPS: dict[str, OpRule] = {
    "add": OpRule("bb", np.add, dtypes=_ARITHMETIC),
    "sub": OpRule("bb", np.subtract, dtypes=_ARITHMETIC),
    "mul": OpRule("bb", np.multiply, dtypes=_ARITHMETIC),
    "div": OpRule("bb", np.divide),
    "maximum": OpRule("bb", np.maximum, dtypes=_MINMAX),
    "minimum": OpRule("bb", np.minimum, dtypes=_MINMAX),
    "abs": OpRule("t", np.abs),
    "neg": OpRule("t", np.negative),
    "relu": OpRule("t", lambda x: np.maximum(x, x.dtype.type(0))),
    "exp": OpRule("t", np.exp, exact=False),
    "log": OpRule("t", np.log, exact=False),
    "sqrt": OpRule("t", np.sqrt, exact=False),
    "rsqrt": OpRule("t", lambda x: 1 / np.sqrt(x), exact=False),
    "reciprocal": OpRule("t", lambda x: 1 / x, exact=False),
    "tanh": OpRule("t", np.tanh, exact=False, dtypes=("float32",)),
    "sigmoid": OpRule("t", lambda x: 1 / (1 + np.exp(-x)), exact=False, dtypes=("float32",)),
    "erf": OpRule("t", _erf, exact=False, in_place=False, dtypes=("float32",)),
    "cumsum": OpRule("t", np.cumsum, exact=False, in_place=False, dtypes=("float32",)),
    "cumprod": OpRule("t", np.cumprod, exact=False, in_place=False, dtypes=("float32",)),
    "cumsum_back": OpRule("t", lambda x: np.cumsum(x[::-1])[::-1], exact=False, in_place=False, dtypes=("float32",)),
    "cumprod_back": OpRule("t", lambda x: np.cumprod(x[::-1])[::-1], exact=False, in_place=False, dtypes=("float32",)),
    "take": OpRule(
        "tsss", lambda x, start, step, n: x[start + step * np.arange(n)], in_place=False, dtypes=("float32",)
    ),
    "take_rows": OpRule(
        "tssss",
        lambda x, start, step, n, other: np.stack(
            [x[r] if 0 <= r < len(x) else np.full_like(x[0], other) for r in start + step * np.arange(n)]
        ),
        in_place=False,
        dtypes=("float32",),
    ),
    "gather": OpRule("tt", lambda x, index: x[index], in_place=False, dtypes=("float32",)),
    "iota": OpRule("s", lambda n: np.arange(n, dtype=np.int32), dtypes=("int32",)),
    "copy": OpRule("t", lambda x: x.copy(), dtypes=("float32", "float16", "int32")),
    "fill": OpRule("s", lambda s: s, dtypes=("float32", "float16", "int32")),
    "cast": OpRule("t", lambda x: x, dtypes=("float32", "float16", "int32")),
    **{f"where_{name}": OpRule("tbbb", _where(compare)) for name, compare in COMPARISONS.items()},
}

#: Pairs of dtypes (from, to) that a load, a store or tl.cast converts between, beside none: the device's Cast has them.
CONVERSIONS = {
    ("float16", "float32"), ("float32", "float16"), ("bfloat16", "float32"), ("float32", "bfloat16"),
    ("int32", "float32"), ("float32", "int32"), ("int64", "int32"), ("int32", "int64"), ("float16", "int32"),
    ("uint8", "float16"), ("float16", "uint8"), ("bool", "float16"), ("float16", "bool"),
}  # fmt: skip

#: Other names that programs use, as AscendC or Triton have them.
ALIASES = {
    "adds": "add", "subs": "sub", "muls": "mul", "divs": "div", "maxs": "maximum", "mins": "minimum", "ln": "log",
    "duplicate": "fill",
}  # fmt: skip

REDUCTIONS: dict[str, Callable[..., Any]] = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}
