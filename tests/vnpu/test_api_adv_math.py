"""Mathematics and activations of the advanced API against double precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from api_kernel import DTYPES, ApiKernel
from vector_calls import bits_of, same, two_sources, values

Array = npt.NDArray[Any]


def each(f: Callable[[float], float]) -> Callable[[Array], Array]:
    """A function of the math module over an array."""
    return np.vectorize(f, otypes=[np.float64])


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


#: Number in kernels/adv_math.cpp, reference in double, range of arguments.
UNARY: dict[str, tuple[int, Callable[[Array], Array], tuple[float, float]]] = {
    "Acos": (10, np.arccos, (-1, 1)),
    "Acosh": (11, np.arccosh, (1, 50)),
    "Asin": (12, np.arcsin, (-1, 1)),
    "Asinh": (13, np.arcsinh, (-50, 50)),
    "Atan": (14, np.arctan, (-20, 20)),
    "Atanh": (15, np.arctanh, (-0.99, 0.99)),
    "Cos": (16, np.cos, (-30, 30)),
    "Cosh": (17, np.cosh, (-8, 8)),
    "Erf": (18, each(math.erf), (-4, 4)),
    "Erfc": (19, each(math.erfc), (-4, 4)),
    "Frac": (20, lambda x: x - np.trunc(x), (-300, 300)),
    "Log2": (21, np.log2, (0.01, 900)),
    "Sigmoid": (22, sigmoid, (-9, 9)),
    "Sign": (23, np.sign, (-1, 1)),
    "Sin": (24, np.sin, (-30, 30)),
    "Sinh": (25, np.sinh, (-8, 8)),
    "Tan": (26, np.tan, (-1.5, 1.5)),
    "Tanh": (27, np.tanh, (-6, 6)),
    "Trunc": (28, np.trunc, (-300, 300)),
    "Ceil": (30, np.ceil, (-300, 300)),
    "Floor": (31, np.floor, (-300, 300)),
    "Lgamma": (32, each(math.lgamma), (0.1, 40)),
    "Round": (33, np.round, (-300, 300)),
    "Gelu": (34, gelu, (-6, 6)),
    "FasterGelu": (35, lambda x: x * sigmoid(1.702 * x), (-6, 6)),
    "FasterGeluV2": (
        36,
        lambda x: x * (np.sign(x) * (-0.1444 * (np.minimum(abs(0.7071 * x), 1.769) - 1.769) ** 2 + 0.5) + 0.5),
        (-6, 6),
    ),
    "Silu": (44, lambda x: x * sigmoid(x), (-9, 9)),
    "Swish": (45, lambda x: x * sigmoid(0.75 * x), (-9, 9)),
    "ClampMax": (46, lambda x: np.minimum(x, 0.75), (-3, 3)),
    "ClampMin": (47, lambda x: np.maximum(x, 0.75), (-3, 3)),
    "Log": (48, np.log, (0.01, 900)),
    "Log10": (49, np.log10, (0.01, 900)),
    "Exp": (50, np.exp, (-8, 8)),
}
BINARY: dict[str, tuple[int, Callable[[Array, Array], Array], tuple[float, float]]] = {
    "Power": (0, np.power, (0.1, 5)),
    "Power scalar exponent": (1, lambda x, y: x**0.75, (0.1, 5)),
    "Power scalar base": (2, lambda x, y: 0.75**y, (0.1, 5)),
    "Fmod": (40, np.fmod, (-9, 9)),
    "GeGLU": (41, lambda x, y: x * gelu(y), (-5, 5)),
    "ReGlu": (42, lambda x, y: x * np.maximum(y, 0), (-5, 5)),
    "SwiGLU": (43, lambda x, y: x * y * sigmoid(0.75 * y), (-5, 5)),
}
TOLERANCE = {"float32": 4e-6, "float16": 1.5e-3}


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("adv_math")


def arguments(dtype: str, n: int, limits: tuple[float, float], seed: int) -> Array:
    return np.random.default_rng(seed).uniform(*limits, n).astype(dtype)


def run(kernel: ApiKernel, number: int, dtype: str, form: int, sources: list[Array], scalar: float = 0.75) -> Array:
    n = sources[0].size
    params = [number, DTYPES[dtype], form, n, *([0] * 8), bits_of(scalar, dtype)]
    before = np.concatenate([np.zeros(n, dtype), np.full(64, 9, dtype)])
    after = kernel.run(params, two_sources(sources[0], sources[-1]), before)
    assert (after[n:] == 9).all()
    return after[:n]


def close(actual: Array, expected: Array) -> None:
    np.testing.assert_allclose(
        actual.astype(np.float64), expected, rtol=TOLERANCE[str(actual.dtype)], atol=TOLERANCE[str(actual.dtype)]
    )


def wide(x: Array) -> Array:
    return x.astype(np.float64)


@pytest.mark.parametrize("form", [0, 1, 2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", UNARY)
def test_unary(kernel: ApiKernel, name: str, dtype: str, form: int) -> None:
    number, f, limits = UNARY[name]
    x = arguments(dtype, 96 * (form + 1), limits, form)
    close(run(kernel, number, dtype, form, [x]), f(wide(x)))


@pytest.mark.parametrize("form", [0, 1, 2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", BINARY)
def test_binary(kernel: ApiKernel, name: str, dtype: str, form: int) -> None:
    number, f, limits = BINARY[name]
    x, y = (arguments(dtype, 96 * (form + 1), limits, seed) for seed in (1, 2))
    close(run(kernel, number, dtype, form, [x, y]), f(wide(x), wide(y)))


def test_integers(kernel: ApiKernel) -> None:
    base, exponent = values("int32", 96, 1) % 50 - 20, values("int32", 96, 2) % 9 - 2
    expected = [
        int(b) ** int(e) if e >= 0 else (1 if b == 1 else (-1) ** int(e) if b == -1 else 0)
        for b, e in zip(base, exponent, strict=True)
    ]
    wrapped = (np.array(expected, np.int64) & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
    same(run(kernel, 0, "int32", 0, [base, exponent]), wrapped)
    x, y = values("int16", 96, 3), values("int16", 96, 4)
    same(run(kernel, 3, "int16", 0, [x, y]), x ^ y)


def test_a_small_temporary_buffer_costs_time(kernel: ApiKernel) -> None:
    """More passes over the same elements; of a function without bank conflicts, as those vary."""
    x = arguments("float16", 4096, (1, 3), 1)
    run(kernel, UNARY["Log2"][0], "float16", 1, [x])
    free = kernel.report["profile"]["aiv_vec_time_us"]
    run(kernel, UNARY["Log2"][0], "float16", 0, [x])
    assert kernel.report["profile"]["aiv_vec_time_us"] >= free
