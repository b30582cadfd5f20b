"""AscendDequant against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from api_kernel import ApiKernel
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendopt_tune.errors import DeviceError

Array = npt.NDArray[Any]
SCALES = 49152  # bytes into the input
# Of the forms of kernels/quant.cpp: dtype of the result and of the scales; one scale for all from 5 on.
FORMS = [("float32", "float32"), ("float32", "bfloat16"), ("bfloat16", "float32"), ("bfloat16", "bfloat16"),
         ("float16", "uint64"), ("float32", "float32"), ("bfloat16", "float32")]  # fmt: skip


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("quant")


def narrow(x: Array) -> Array:
    """float32 as the bits of bfloat16, to the nearest, ties to even."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> np.uint64(16) & np.uint64(1))) >> np.uint64(16)).astype(np.uint16)


def widen(bits: Array) -> Array:
    wide: Array = (bits.astype(np.uint32) << 16).view(np.float32)
    return wide


def operands(form: int, m: int, n: int, seed: int) -> tuple[Array, Array, Array]:
    """(x, scales as the product takes them, what the kernel gets)."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-(2**27), 2**27, (m, n)).astype(np.int32)
    scales = rng.uniform(-1, 1, n).astype(np.float32)
    stored: Array = scales
    if FORMS[form][1] == "bfloat16":
        stored = narrow(scales)
        scales = widen(stored)
    elif FORMS[form][1] == "uint64":
        scales *= np.float32(1e-4)
        stored = scales.view(np.uint32).astype(np.uint64) | np.uint64(0xABCD << 32)
    elif form >= 5:
        scales = np.full(n, scales[0])
    given = np.zeros(SCALES + stored.nbytes, np.uint8)
    given[: x.nbytes] = x.reshape(-1).view(np.uint8)
    given[SCALES:] = stored.view(np.uint8)
    return x, scales, given


def results(form: int, product: Array) -> Array:
    dtype = FORMS[form][0]
    return narrow(product) if dtype == "bfloat16" else product.astype(dtype)


@settings(max_examples=60, deadline=None)
@given(form=st.integers(0, 6), m=st.integers(1, 9), blocks=st.integers(1, 20), part=st.integers(0, 7),
       work=st.booleans(), several=st.booleans(), seed=st.integers(0, 99))  # fmt: skip
def test_dequant(
    kernel: ApiKernel, form: int, m: int, blocks: int, part: int, work: bool, several: bool, seed: int
) -> None:
    n = 8 * blocks
    count = n - part
    x, scales, given = operands(form, m, n, seed)
    size = 4 if FORMS[form][0] == "float32" else 2
    pitch = -(-n * size // 32) * 32 // size
    before = np.full((m, pitch), 7, results(form, np.zeros(1, np.float32)).dtype)
    got = kernel.run([form, m, n, count, 65536 if work else 0, int(several)], given, before)
    want = results(form, x[:, :count].astype(np.float32) * scales[:count])
    np.testing.assert_array_equal(got[:, :count], want)
    assert (got[:, count:] == 7).all()


def test_one_row_is_several_where_the_mode_says_so(kernel: ApiKernel) -> None:
    x, scales, given = operands(0, 1, 32, 3)
    got = kernel.run([0, 1, 32, 8, 0, 0], given, np.zeros(32, np.float32))
    np.testing.assert_array_equal(got.reshape(4, 8), x.reshape(4, 8).astype(np.float32) * scales[:8])
    got = kernel.run([0, 1, 32, 8, 0, 1], given, np.zeros(32, np.float32))
    np.testing.assert_array_equal(got[:8], x[0, :8].astype(np.float32) * scales[:8])
    assert not got[8:].any()


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        ([0, 2, 12, 8, 0, 0], "n = 12 elements of int32_t have to be a multiple of 32 B"),
        ([0, 2, 8, 9, 0, 0], r"calCount = 9 has to be in 1..n = 8"),
        ([0, 2, 8, 8, 320, 0], "sharedTmpBuffer has 320 B, the least that GetAscendDequantMaxMinTmpSize says is 352"),
    ],
)
def test_rules(kernel: ApiKernel, call: list[int], rule: str) -> None:
    _, _, given = operands(0, 2, 16, 1)
    with pytest.raises(DeviceError, match=rule):
        kernel.run(call, given, np.zeros((2, 16), np.float32))
