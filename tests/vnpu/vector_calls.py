"""Vector calls as the API tests describe them: which lanes a call has, random operands, comparison of results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from api_kernel import DTYPES
from hypothesis import settings
from hypothesis import strategies as st

Array = npt.NDArray[Any]

COUNT, MASK, BITS, REGISTER, COUNTER_REGISTER, COUNTER_INSIDE = range(6)
FORMS = (COUNT, MASK, BITS, REGISTER, COUNTER_REGISTER, COUNTER_INSIDE)
SECOND_SOURCE, SELECTION = 32768, 61440  # bytes, as kernels/elementwise.cpp has them
OUTPUT = 16384
FEW = settings(max_examples=25, deadline=None)
FLOATS, NUMBERS = ("float32", "float16"), ("float32", "float16", "int32", "int16")


@dataclass(frozen=True)
class Call:
    """One call of a vector API: where its lanes are."""

    form: int
    n: int  # elements (count forms and counter mode) or enabled lanes of a repeat
    repeat: int
    blk: tuple[int, int, int]  # block strides of destination and sources
    rep: tuple[int, int, int]  # repeat strides
    bits: int  # mask bits of BITS and REGISTER

    def lanes(self, operand: int, itemsize: int, lanes: int | None = None) -> Array:
        """Element indices that operand 0 (destination), 1 or 2 has at the enabled lanes, in order of execution."""
        per_repeat, per_block = lanes or 256 // itemsize, 32 // itemsize
        if self.form == COUNT:
            return np.arange(self.n)
        if self.form in (COUNTER_REGISTER, COUNTER_INSIDE):
            k = np.arange(self.n)
            repeat, lane = k // per_repeat, k % per_repeat
        else:
            on = [self.bits >> i & 1 if self.form != MASK else i < self.n for i in range(per_repeat)]
            enabled = np.flatnonzero(on)
            repeat = np.repeat(np.arange(self.repeat), enabled.size)
            lane = np.tile(enabled, self.repeat)
        start = repeat * self.rep[operand] + lane // per_block * self.blk[operand]
        return np.asarray(start * per_block + lane % per_block)

    def params(self, call: int, dtype: str, *, mode: int = 0, scalar: int = 0, offset: int = 0, second: int = 0,
               shifted: int = 0) -> list[int]:  # fmt: skip
        words = [self.bits >> 32 * i & 0xFFFFFFFF for i in range(4)]
        signed = [w - (1 << 32) if w >= 1 << 31 else w for w in words]
        return [call, DTYPES[dtype], self.form, self.n, self.repeat, *self.blk, *self.rep, mode, scalar, *signed,
                offset, second, shifted]  # fmt: skip


def whole(n: int) -> Call:
    """The count form."""
    return Call(COUNT, n, 0, (1, 1, 1), (8, 8, 8), 0)


@st.composite
def calls(
    draw: st.DrawFn, lanes: int = 64, forms: tuple[int, ...] = FORMS, natural: tuple[int, int, int] = (8, 8, 8)
) -> Call:
    """Calls whose destination blocks are disjoint; sources may read blocks again. `natural`: gapless repeat strides."""
    form = draw(st.sampled_from(forms))
    if form == COUNT:
        return Call(COUNT, draw(st.integers(1, 2000)), 0, (1, 1, 1), natural, 0)
    gapless = draw(st.booleans())
    blk = (1, 1, 1) if gapless else (draw(st.integers(1, 2)), draw(st.integers(0, 2)), draw(st.integers(0, 2)))
    rep = (
        natural
        if gapless
        else (8 * blk[0] + draw(st.integers(0, 2)), draw(st.integers(0, 17)), draw(st.integers(0, 17)))
    )
    if form in (COUNTER_REGISTER, COUNTER_INSIDE):
        return Call(form, draw(st.integers(1, lanes * 6)), 1, blk, rep, 0)
    full = (1 << lanes) - 1
    bits = draw(st.sampled_from([full, full >> 5]) | st.integers(1, full))
    return Call(form, draw(st.integers(1, lanes)), draw(st.integers(1, 7)), blk, rep, bits)


def values(dtype: str, n: int, seed: int, positive: bool = False) -> Array:
    """Numbers of every size, with zeros, ties and (for floats) infinities and NaN."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        x = np.where(rng.random(n) < 0.5, rng.integers(info.min, info.max, n, endpoint=True), rng.integers(-9, 9, n))
        return x.astype(dtype)
    x = rng.standard_normal(n) * np.exp(rng.uniform(-4, 4, n))
    special = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan, 65504.0, 1e-6])
    x = np.where(rng.random(n) < 0.1, rng.choice(special, n), x)
    return np.abs(x).astype(dtype) if positive else x.astype(dtype)


def two_sources(first: Array, second: Array) -> Array:
    raw = np.zeros(65536, np.uint8)
    raw[: first.nbytes] = first.view(np.uint8)
    raw[SECOND_SOURCE : SECOND_SOURCE + second.nbytes] = second.view(np.uint8)
    return raw


def bits_of(value: float, dtype: str) -> int:
    """A scalar as the kernel's parameter: an integer, or the bits of a float."""
    if np.dtype(dtype).kind in "iu":
        return int(value)
    return int(np.float32(value).view(np.int32))


def working(x: Array) -> Array:
    """What a lane computes in: half in float."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


def same(actual: Array, expected: Array, ulps: int = 0) -> None:
    """Equal bit for bit (any NaN equals any NaN), or within some units in the last place."""
    kind = np.dtype(actual.dtype).kind
    nan = (actual != actual) & (expected != expected) if kind not in "iu" else np.zeros(actual.shape, bool)
    good = nan | (actual == expected)
    if ulps:
        with np.errstate(all="ignore"):
            near = np.abs(working(actual) - working(expected)) <= ulps * np.spacing(np.abs(expected)).astype(np.float32)
        good |= near
    wrong = np.flatnonzero(~good)
    assert wrong.size == 0, (wrong[:5], actual[wrong[:5]], expected[wrong[:5]])
