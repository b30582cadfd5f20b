"""Cast and the calls that convert as they compute, against an independent rounding in numpy."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from api_kernel import ApiKernel
from hypothesis import given
from hypothesis import strategies as st
from vector_calls import COUNT, FEW, MASK, Call, bits_of, calls, same, two_sources, values, whole

from ascendopt_tune.errors import DeviceError

Array = npt.NDArray[Any]

NONE, RINT, FLOOR, CEIL, ROUND, TRUNC, ODD = range(7)
FIVE = (RINT, FLOOR, CEIL, ROUND, TRUNC)
CAST, FUSED = 60, 61
#: Number in kernels/elementwise.cpp, source, destination, rounding modes of the AscendC reference.
PAIRS = [
    (0, "int8", "float16", (NONE,)),
    (1, "uint8", "float16", (NONE,)),
    (2, "int16", "float16", (NONE, *FIVE)),
    (3, "int16", "float32", (NONE,)),
    (4, "float16", "int8", (NONE, *FIVE)),
    (5, "float16", "uint8", (NONE, *FIVE)),
    (6, "float16", "int16", FIVE),
    (7, "float16", "int32", FIVE),
    (8, "float16", "float32", (NONE,)),
    (9, "bfloat16", "int32", FIVE),
    (10, "bfloat16", "float32", (NONE,)),
    (11, "int32", "int16", (NONE,)),
    (13, "int32", "float32", (NONE, *FIVE)),
    (14, "int32", "int64", (NONE,)),
    (15, "float32", "int16", FIVE),
    (16, "float32", "float16", (NONE, *FIVE, ODD)),
    (17, "float32", "bfloat16", FIVE),
    (18, "float32", "int32", FIVE),
    (19, "float32", "float32", FIVE),
    (20, "float32", "int64", FIVE),
    (21, "int64", "int32", (NONE,)),
    (22, "int64", "float32", FIVE),
]


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("elementwise")


def dtype_of(name: str) -> npt.DTypeLike:
    return ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name)


def operands(name: str, n: int, seed: int) -> Array:
    """Numbers around the ties and limits of every destination."""
    if name.startswith(("int", "uint")):
        x = values(name, n, seed)
        rng = np.random.default_rng(seed)
        near_powers = (1 << rng.integers(0, np.dtype(name).itemsize * 8 - 2, n).astype(np.int64)) + rng.integers(
            -3, 4, n
        )
        return np.where(rng.random(n) < 0.5, x, near_powers).astype(name)
    rng = np.random.default_rng(seed)
    x = values("float32", n, seed)
    ties = rng.integers(-300, 300, n) / 2
    half_ties = (1 + rng.integers(0, 2048, n) / 2048 + rng.integers(-1, 2, n) * 2.0**-24) * 2.0 ** rng.integers(
        -20, 16, n
    )
    limits = rng.choice(
        np.array([127.5, -128.5, 255.5, 32767.5, 65519.0, 65520.0, 2.0**31, -(2.0**31), 2.0**63, 3.4e38]), n
    )
    kind = rng.integers(0, 4, n)
    with np.errstate(all="ignore"):
        return np.choose(kind, [x, ties, half_ties, limits]).astype(np.float32).astype(dtype_of(name))


def round_integer(x: Fraction, mode: int) -> int:
    if mode == FLOOR:
        return x.__floor__()
    if mode == CEIL:
        return x.__ceil__()
    if mode == TRUNC:
        return x.__trunc__()
    if mode == ROUND:
        return (abs(x) + Fraction(1, 2)).__floor__() * (1 if x >= 0 else -1)
    return round(x)


def round_float(x: Fraction, name: str, mode: int) -> float:
    """x in a floating type: on the grid of its size, to nearest, or in a direction."""
    bits, low, top = {"float16": (11, -24, 16), "bfloat16": (8, -133, 128), "float32": (24, -149, 128)}[name]
    exponent = low
    if x:
        power = abs(x).numerator.bit_length() - abs(x).denominator.bit_length()
        power -= Fraction(2) ** power > abs(x)
        exponent = max(low, power - bits + 1)
    step = Fraction(2) ** exponent
    if mode == ODD:
        down = (x / step).__trunc__()
        grid = down + (0 if down % 2 or x / step == down else (1 if x > 0 else -1))
    else:
        grid = round_integer(x / step, mode)
    largest = (2 - Fraction(2) ** (1 - bits)) * Fraction(2) ** (top - 1)
    if abs(grid * step) > largest:
        inward = mode in (TRUNC, ODD) or (mode == FLOOR and x > 0) or (mode == CEIL and x < 0)
        return float(largest if x > 0 else -largest) if inward else np.inf * (1 if x > 0 else -1)
    return float(grid * step)


def reference(x: Array, source: str, destination: str, mode: int) -> Array:
    out = []
    integral = destination.startswith(("int", "uint")) or source == destination
    for value in x.tolist():
        if isinstance(value, float) and not np.isfinite(value):
            if not destination.startswith(("int", "uint")):
                out.append(value)
                continue
            info = np.iinfo(destination)
            out.append(0 if value != value else info.max if value > 0 else info.min)
            continue
        exact = Fraction(value)
        if integral:
            n: Any = round_integer(exact, mode)
            if source != destination:
                info = np.iinfo(destination)
                n = min(max(n, info.min), info.max)
            out.append(n)
        else:
            out.append(round_float(exact, destination, mode))
    with np.errstate(all="ignore"):
        return np.array(out).astype(dtype_of(destination)) if not integral else np.array(out, dtype_of(destination))


@pytest.mark.parametrize(("number", "source", "destination", "modes"), PAIRS, ids=lambda v: str(v))
@given(st.data())
@FEW
def test_cast(
    kernel: ApiKernel, number: int, source: str, destination: str, modes: tuple[int, ...], data: st.DataObject
) -> None:
    sizes = np.dtype(dtype_of(source)).itemsize, np.dtype(dtype_of(destination)).itemsize
    lanes = 256 // max(sizes)
    natural = (8 * sizes[1] // max(sizes), 8 * sizes[0] // max(sizes), 8)
    call = data.draw(calls(lanes, natural=natural))
    if call.form == COUNT:
        call = Call(COUNT, min(call.n, 600), 0, (1, 1, 1), natural, 0)
    mode = data.draw(st.sampled_from(modes))
    x = operands(source, 32768 // sizes[0], data.draw(st.integers(0, 999)))
    before = np.full(32768 // sizes[1], 3).astype(dtype_of(destination))
    after = kernel.run(call.params(CAST, "float32", mode=mode, second=number), x, before)
    expected = before.copy()
    lane = call.lanes(1, sizes[0], lanes)
    expected[call.lanes(0, sizes[1], lanes)] = reference(x[lane], source, destination, mode)
    same(after, expected)


@pytest.mark.parametrize("n", [1, 64, 300])
def test_narrowing_in_place(kernel: ApiKernel, n: int) -> None:
    """float to half over its own source: every repeat is read before it is written."""
    x = operands("float32", 512, 1)
    call = Call(COUNT, n, 0, (1, 1, 1), (4, 8, 8), 0)
    after = kernel.run(call.params(CAST, "float32", mode=RINT, second=16, shifted=1), x[:8], x).view(np.float16)
    same(after[:n], reference(x[:n], "float32", "float16", RINT))


@pytest.mark.parametrize("scale", [1.0, 0.25, 3.0])
def test_int32_to_half_takes_the_dequantization_scale(kernel: ApiKernel, scale: float) -> None:
    x = values("int32", 500, 1)
    call = Call(COUNT, 500, 0, (1, 1, 1), (4, 8, 8), 0)
    params = call.params(CAST, "float32", scalar=bits_of(scale, "float32"), second=12)
    after = kernel.run(params, x, np.zeros(500, np.float16))
    with np.errstate(over="ignore"):
        same(after, (x * scale).astype(np.float16))


@pytest.mark.parametrize("form", [COUNT, MASK])
@pytest.mark.parametrize("mode", [NONE, *FIVE])
def test_int4(kernel: ApiKernel, form: int, mode: int) -> None:
    """Two int4 a byte, the first in the low half; saturates."""
    rng = np.random.default_rng(0)
    x = (rng.integers(-24, 24, 256) / 2).astype(np.float16)
    call = Call(form, 256 if form == COUNT else 128, 2, (1, 1, 1), (2, 8, 8), 0)
    packed = kernel.run(call.params(CAST, "float32", mode=mode, second=24), x, np.zeros(128, np.uint8))
    expected = np.array([min(max(round_integer(Fraction(v), mode), -8), 7) for v in x.tolist()])
    same(packed, (expected[0::2] & 15 | (expected[1::2] & 15) << 4).astype(np.uint8))
    back = Call(form, call.n, 2, (1, 1, 1), (8, 2, 8), 0)
    same(
        kernel.run(back.params(CAST, "float32", second=23), packed, np.zeros(256, np.float16)),
        expected.astype(np.float16),
    )


def test_fused_conversions(kernel: ApiKernel) -> None:
    n = 300
    half = [(np.random.default_rng(i).standard_normal(n) * 12).astype(np.float16) for i in range(2)]
    wide = [values("float32", n, i) for i in range(2)]
    integers = [values("int16", n, i) // 3 for i in range(2)]

    def run(mode: int, sources: list[Array], before: Array, scalar: float = 0, repeat: int = 0) -> Array:
        call = Call(COUNT, n, repeat, (1, 1, 1), (8, 8, 8), 0)
        params = call.params(FUSED, "float32", mode=mode, scalar=bits_of(scalar, "float32"))
        return kernel.run(params, two_sources(sources[0], sources[-1]), before)

    def byte(x: Array, low: int = -128, high: int = 127) -> Array:
        return np.clip(np.rint(x.astype(np.float32)), low, high)

    zero = np.zeros(n, np.int8)
    same(run(0, half, zero), byte(np.maximum(half[0] + half[1], 0)).astype(np.int8))
    difference = integers[0].astype(np.int32) - integers[1]
    same(run(1, integers, zero), byte(np.maximum(difference, 0)).astype(np.int8))
    with np.errstate(all="ignore"):
        total = (wide[0] + wide[1]).astype(np.float32)
        same(run(2, wide, np.zeros(n, np.float16)), np.where(total < 0, 0, total).astype(np.float16))
    same(run(3, half, zero), byte(half[0] * half[1]).astype(np.int8))
    same(run(4, half, zero.view(np.uint8)), byte(half[0] * half[1], 0, 255).astype(np.uint8))
    mixed = run(7, half, wide[0], 0.75)
    with np.errstate(all="ignore"):
        same(mixed, half[0].astype(np.float32) * np.float32(0.75) + wide[0])
        same(run(8, half, wide[0]), half[0].astype(np.float32) * half[1].astype(np.float32) + wide[0])


def test_dequantization_to_bytes(kernel: ApiKernel) -> None:
    """Results of a source block fill one half of the destination block of the same number."""
    n, scale, offset = 320, 0.03125, -5
    x = values("int16", n, 4)
    for mode, upper in ((5, False), (6, True)):
        before = np.full(2 * n, 99, np.uint8)
        call = Call(COUNT, n, offset, (1, 1, 1), (8, 8, 8), 0)
        params = call.params(FUSED, "float32", mode=mode, scalar=bits_of(scale, "float32"))
        after = kernel.run(params, x, before).reshape(-1, 32)
        k = np.arange(16)
        scales, offsets = (scale * (k + 1), offset - k) if upper else (scale, offset)
        v = np.rint((x.reshape(-1, 16) * np.asarray(scales, np.float32)).astype(np.float32)) + offsets
        low, high = (0, 255) if upper else (-128, 127)
        expected = np.full((n // 16, 32), 99, np.uint8)
        expected[:, 16 * upper : 16 + 16 * upper] = np.clip(v, low, high).astype(np.int64).astype(np.uint8)
        same(after, expected)


@pytest.mark.parametrize(
    ("number", "mode", "message"),
    [
        (6, ODD, "float16|half to int16_t does not take CAST_ODD"),
        (8, FLOOR, "half to float does not take CAST_FLOOR"),
        (14, TRUNC, "int32_t to int64_t does not take CAST_TRUNC"),
        (25, RINT, "float to uint16_t does not exist"),
    ],
)
def test_pairs_that_do_not_exist_are_refused(kernel: ApiKernel, number: int, mode: int, message: str) -> None:
    x = np.zeros(64, np.float32)
    with pytest.raises(DeviceError, match=message):
        kernel.run(whole(64).params(CAST, "float32", mode=mode, second=number), x, x)


def test_int4_takes_pairs(kernel: ApiKernel) -> None:
    x = np.zeros(64, np.float16)
    with pytest.raises(DeviceError, match="even number"):
        kernel.run(whole(63).params(CAST, "float32", mode=RINT, second=24), x, x)
