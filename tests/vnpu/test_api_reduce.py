"""Reductions against numpy: values in the documented order of summation, indices, masks, strides, rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from api_kernel import DTYPES, ApiKernel
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendopt_tune.errors import DeviceError

Array = npt.NDArray[Any]

WHOLE = {"Sum": 0, "Max": 1, "Min": 2}
BLOCK = {"Sum": 3, "Max": 4, "Min": 5}
PAIR, REPEAT_SUM, SUM_COUNT, MAX_COUNT, MIN_COUNT, SUM_MASK, MAX_MASK, MIN_MASK, REGISTERS, COUNTER = range(6, 16)
VALUE_INDEX, INDEX_VALUE, ONLY_VALUE, ONLY_INDEX = range(4)
FLOATS = st.sampled_from(["float32", "float16"])
FEW = settings(max_examples=40, deadline=None)
POISON = 77.0


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("reduce")


def values(rng: np.random.Generator, n: int, dtype: str) -> Array:
    """Values with ties (maxima that occur twice) whose sum rounds."""
    return (rng.integers(-50, 50, n) * np.float32(0.37)).astype(dtype)


def tree(row: Array) -> Any:
    """Sum of a power of two elements as a binary tree over neighbours, rounded to the dtype at every step."""
    while row.size > 1:
        row = row[0::2] + row[1::2]
    return row[0]


def params(call: int, dtype: str, *, bits: int | None = None, repeat: int = 1, dst: int = 1, blk: int = 1, rep: int = 8,
           order: int = 0, n: int = 0) -> list[int]:  # fmt: skip
    words = [0, 0, 0, 0] if bits is None else [bits >> 32 * i & 0xFFFFFFFF for i in range(4)]
    signed = [w - (1 << 32) if w >= 1 << 31 else w for w in words]
    return [call, DTYPES[dtype], int(bits is not None), repeat, dst, blk, rep, order, n, *signed]


def gather_repeat(x: Array, repeat: int, blk: int, rep: int) -> Array:
    """The lanes of one repeat."""
    per_block = 32 // x.itemsize
    starts = [(repeat * rep + b * blk) * per_block for b in range(8)]
    return np.concatenate([x[s : s + per_block] for s in starts])


@st.composite
def masked_calls(draw: st.DrawFn) -> tuple[str, int, int | None, int, int, int, int, int]:
    """dtype, mask as a count, or as bits, repeat, strides (dst, block, repeat), seed."""
    dtype = draw(FLOATS)
    lanes = 64 if dtype == "float32" else 128
    bits = draw(st.none() | st.integers(1, (1 << lanes) - 1))
    return (dtype, draw(st.integers(1, lanes)), bits, draw(st.integers(1, 9)), draw(st.integers(1, 3)),
            draw(st.integers(0, 3)), draw(st.integers(0, 20)), draw(st.integers(0, 999)))  # fmt: skip


def enabled(dtype: str, n: int, bits: int | None) -> Array:
    lanes = 64 if dtype == "float32" else 128
    mask = (1 << n) - 1 if bits is None else bits
    return np.array([mask >> i & 1 for i in range(lanes)], bool)


def extreme(name: str, row: Array, on: Array) -> int:
    """Lane of the first largest (smallest) enabled value."""
    worst = -np.inf if name == "Max" else np.inf
    row = np.where(on, row.astype(np.float32), worst)
    return int(np.argmax(row) if name == "Max" else np.argmin(row))


@FEW
@given(call=masked_calls(), name=st.sampled_from(["Sum", "Max", "Min"]), order=st.integers(0, 3))
def test_whole_reduce(kernel: ApiKernel, call: Any, name: str, order: int) -> None:
    dtype, n, bits, repeat, dst, blk, rep, seed = call
    x = values(np.random.default_rng(seed), 16384 // np.dtype(dtype).itemsize, dtype)
    on = enabled(dtype, n, bits)
    out = np.full(1024, POISON, dtype)
    got = kernel.run(
        params(WHOLE[name], dtype, bits=bits, repeat=repeat, dst=dst, blk=blk, rep=rep, order=order, n=n), x, out
    )
    want = out.copy()
    integer = np.uint16 if dtype == "float16" else np.uint32
    for r in range(repeat):
        row = gather_repeat(x, r, blk, rep)
        if name == "Sum":
            want[r * dst] = tree(np.where(on, row, 0).astype(dtype))
            continue
        i = extreme(name, row, on)
        if order == VALUE_INDEX:
            want[2 * r * dst] = row[i]
            want.view(integer)[2 * r * dst + 1] = i
        elif order == INDEX_VALUE:
            want.view(integer)[2 * r * dst] = i
            want[2 * r * dst + 1] = row[i]
        elif order == ONLY_VALUE:
            want[r * dst] = row[i]
        else:
            want.view(np.uint32)[r * dst] = i
    np.testing.assert_array_equal(got.view(integer), want.view(integer))


@FEW
@given(call=masked_calls(), name=st.sampled_from(["Sum", "Max", "Min"]))
def test_block_reduce(kernel: ApiKernel, call: Any, name: str) -> None:
    dtype, n, bits, repeat, dst, blk, rep, seed = call
    x = values(np.random.default_rng(seed), 16384 // np.dtype(dtype).itemsize, dtype)
    on = enabled(dtype, n, bits)
    per_block = 32 // x.itemsize
    out = np.full(1024, POISON, dtype)
    got = kernel.run(params(BLOCK[name], dtype, bits=bits, repeat=repeat, dst=dst, blk=blk, rep=rep, n=n), x, out)
    want = out.copy()
    for r in range(repeat):
        row = gather_repeat(x, r, blk, rep)
        for b in range(8):
            part, keep = row[b * per_block : (b + 1) * per_block], on[b * per_block : (b + 1) * per_block]
            if keep.any():
                total = tree(np.where(keep, part, 0).astype(dtype))
                want[r * dst * 8 + b] = total if name == "Sum" else part[extreme(name, part, keep)]
    np.testing.assert_array_equal(got, want)


@FEW
@given(call=masked_calls())
def test_pair_reduce_sum(kernel: ApiKernel, call: Any) -> None:
    dtype, n, bits, repeat, dst, blk, rep, seed = call
    x = values(np.random.default_rng(seed), 16384 // np.dtype(dtype).itemsize, dtype)
    on = enabled(dtype, n, bits)
    half = on.size // 2
    out = np.full(half * 32, POISON, dtype)
    got = kernel.run(params(PAIR, dtype, bits=bits, repeat=repeat, dst=dst, blk=blk, rep=rep, n=n), x, out)
    want = out.copy()
    for r in range(repeat):
        row = np.where(on, gather_repeat(x, r, blk, rep), 0).astype(dtype)
        sums = row[0::2] + row[1::2]
        some = on[0::2] | on[1::2]
        want[r * dst * half : (r * dst + 1) * half][some] = sums[some]
    np.testing.assert_array_equal(got, want)


@FEW
@given(dtype=FLOATS, n=st.integers(1, 64), repeat=st.integers(1, 255), seed=st.integers(0, 999))
def test_repeat_reduce_sum(kernel: ApiKernel, dtype: str, n: int, repeat: int, seed: int) -> None:
    lanes = 64 if dtype == "float32" else 128
    x = values(np.random.default_rng(seed), repeat * lanes, dtype)
    got = kernel.run(params(REPEAT_SUM, dtype, repeat=repeat, n=n), x, np.zeros(256, dtype))
    rows = np.where(np.arange(lanes) < n, x.reshape(repeat, lanes), 0).astype(dtype)
    np.testing.assert_array_equal(got[:repeat], [tree(row) for row in rows])


@FEW
@given(dtype=FLOATS, n=st.integers(1, 16000), seed=st.integers(0, 999))
def test_reduce_sum_count(kernel: ApiKernel, dtype: str, n: int, seed: int) -> None:
    """A tree inside each repeat, the repeats one after the other."""
    lanes = 64 if dtype == "float32" else 128
    x = values(np.random.default_rng(seed), n, dtype)
    got = kernel.run(params(SUM_COUNT, dtype, n=n), x, np.full(16, POISON, dtype))
    padded = np.zeros(-(-n // lanes) * lanes, dtype)
    padded[:n] = x
    total = None
    for row in padded.reshape(-1, lanes):
        total = tree(row) if total is None else total + tree(row)
    assert got[0] == total
    assert (got[1:] == POISON).all()


@FEW
@given(
    dtype=FLOATS,
    repeat=st.integers(1, 250),
    rep=st.sampled_from([8, 4, 1]),
    n=st.integers(1, 64),
    seed=st.integers(0, 999),
)
def test_reduce_sum_mask(kernel: ApiKernel, dtype: str, repeat: int, rep: int, n: int, seed: int) -> None:
    """Trees inside the repeats, and trees over their results."""
    lanes = 64 if dtype == "float32" else 128
    x = values(np.random.default_rng(seed), 65536 // np.dtype(dtype).itemsize, dtype)
    got = kernel.run(params(SUM_MASK, dtype, repeat=repeat, rep=rep, n=n), x, np.full(16, POISON, dtype))
    on = np.arange(lanes) < n
    level = np.array([tree(np.where(on, gather_repeat(x, r, 1, rep), 0).astype(dtype)) for r in range(repeat)], dtype)
    while level.size > 1:
        padded = np.zeros(-(-level.size // lanes) * lanes, dtype)
        padded[: level.size] = level
        level = np.array([tree(row) for row in padded.reshape(-1, lanes)], dtype)
    assert got[0] == level[0]


@FEW
@given(
    dtype=FLOATS,
    n=st.integers(1, 16000),
    name=st.sampled_from(["max", "min"]),
    index=st.booleans(),
    seed=st.integers(0, 999),
)
def test_reduce_extreme_count(kernel: ApiKernel, dtype: str, n: int, name: str, index: bool, seed: int) -> None:
    x = values(np.random.default_rng(seed), n, dtype)
    call = MAX_COUNT if name == "max" else MIN_COUNT
    got = kernel.run(params(call, dtype, n=n, order=int(index)), x, np.full(16, POISON, dtype))
    i = int(np.argmax(x) if name == "max" else np.argmin(x))
    assert got[0] == x[i]
    if index:
        assert got.view(np.uint16 if dtype == "float16" else np.uint32)[1] == i
    else:
        assert got[1] == POISON


@FEW
@given(call=masked_calls(), name=st.sampled_from(["Max", "Min"]), index=st.booleans(), many=st.sampled_from([1, 30]))
def test_reduce_extreme_mask(kernel: ApiKernel, call: Any, name: str, index: bool, many: int) -> None:
    dtype, n, bits, repeat, _, _, rep, seed = call
    repeat, rep = (repeat * many, 1 + rep % 7) if many > 1 else (repeat, rep)
    x = values(np.random.default_rng(seed), 65536 // np.dtype(dtype).itemsize, dtype)
    on = enabled(dtype, n, bits)
    call_id = MAX_MASK if name == "Max" else MIN_MASK
    got = kernel.run(
        params(call_id, dtype, bits=bits, repeat=repeat, rep=rep, n=n, order=int(index)), x, np.full(16, POISON, dtype)
    )
    rows = [gather_repeat(x, r, 1, rep) for r in range(repeat)]
    lanes = [extreme(name, row, on) for row in rows]
    found = np.array([row[i] for row, i in zip(rows, lanes, strict=True)], np.float32)
    r = int(np.argmax(found) if name == "Max" else np.argmin(found))
    assert got[0] == rows[r][lanes[r]]
    if index:
        assert got.view(np.uint16 if dtype == "float16" else np.uint32)[1] == r * rep * (32 // x.itemsize) + lanes[r]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_registers(kernel: ApiKernel, dtype: str) -> None:
    lanes = 64 if dtype == "float32" else 128
    x = values(np.random.default_rng(5), 3 * lanes, dtype)
    got = kernel.run(params(REGISTERS, dtype, repeat=3, n=lanes), x, np.zeros(16, dtype))
    assert got[0] == x.max()
    assert got.view(np.uint16 if dtype == "float16" else np.uint32)[1] == np.argmax(x)
    assert got[2] == tree(x[:lanes])


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_counter_mode(kernel: ApiKernel, n: int) -> None:
    """In counter mode the mask register holds a number of lanes; strides still hold."""
    x = values(np.random.default_rng(n), 4096, "float32")
    got = kernel.run(params(COUNTER, "float32", n=n, dst=2, blk=1, rep=16), x, np.full(16, POISON, np.float32))
    for r in range(-(-n // 64)):
        row = x[r * 128 : r * 128 + 64].copy()
        row[max(0, n - r * 64) :] = 0
        assert got[2 * r] == tree(row)


def test_lanes_of_a_repeat_are_no_number_of_elements(kernel: ApiKernel) -> None:
    """A number of lanes becomes bits (kernel_utils_struct_param.h), which counter mode takes as a number."""
    with pytest.raises(DeviceError, match="becomes bits"):
        kernel.run(params(19, "float32", n=30), np.zeros(64, np.float32), np.zeros(8, np.float32))


def test_inf_and_overflow(kernel: ApiKernel) -> None:
    x = np.full(128, 60000, np.float16)
    with np.errstate(over="ignore"):
        assert kernel.run(params(WHOLE["Sum"], "float16", n=128), x, np.zeros(16, np.float16))[0] == np.inf
    y = np.array([1, -np.inf, np.inf, 2] * 16, np.float32)
    got = kernel.run(params(WHOLE["Max"], "float32", n=64, order=VALUE_INDEX), y, np.zeros(8, np.float32))
    assert got[0] == np.inf
    assert got.view(np.uint32)[1] == 2


def test_newer_names(kernel: ApiKernel) -> None:
    x = values(np.random.default_rng(1), 128, "float32")
    got = kernel.run(params(16, "float32", repeat=2, n=64, order=ONLY_VALUE), x, np.zeros(8, np.float32))
    np.testing.assert_array_equal(got[:2], x.reshape(2, 64).max(1))
    got = kernel.run(params(17, "float32", repeat=2, n=64), x, np.zeros(16, np.float32))
    np.testing.assert_array_equal(got, x.reshape(16, 8).min(1))
    got = kernel.run(params(18, "float32", repeat=2, n=64), x, np.zeros(64, np.float32))
    np.testing.assert_array_equal(got, x[0::2] + x[1::2])


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (params(WHOLE["Sum"], "float32", repeat=256, n=64), "repeatTime 256 is above 255"),
        (params(WHOLE["Sum"], "float32", repeat=1, n=64, blk=70000), "0..65535"),
        (params(WHOLE["Sum"], "float32", repeat=200, n=64, rep=4000), "past"),
    ],
)
def test_rules(kernel: ApiKernel, call: list[int], rule: str) -> None:
    with pytest.raises(DeviceError, match=rule):
        kernel.run(call, np.zeros(64, np.float32), np.zeros(8, np.float32))


def test_zero_repeats_do_nothing(kernel: ApiKernel) -> None:
    x, out = np.ones(64, np.float32), np.full(8, POISON, np.float32)
    for call in (params(0, "float32", repeat=0, n=64), params(0, "float32", n=0), params(SUM_COUNT, "float32", n=0)):
        np.testing.assert_array_equal(kernel.run(call, x, out), out)
