"""Control registers, SetPadValue, atomic configurations, and what operators call of AscendC's interface for C."""

from __future__ import annotations

import numpy as np
import pytest
from api_kernel import ApiKernel

from ascendopt_tune.errors import DeviceError

CTRL, FLOAT, CAST, PAD, ATOMIC, OTHERS = range(6)


@pytest.fixture(scope="module")
def kernel() -> ApiKernel:
    return ApiKernel("control")


def words(kernel: ApiKernel, *params: int) -> list[int]:
    return [int(n) for n in kernel.run(params, np.zeros(8, np.float32), np.full(8, -1, np.int32))[:2]]


def test_infinities_stay_what_they_are(kernel: ApiKernel) -> None:
    assert words(kernel, CTRL, 1) == [1, 1]
    with pytest.raises(DeviceError, match="SetCtrlSpr: the virtual NPU doesn't cover floating point that saturates"):
        words(kernel, CTRL, 0)
    assert words(kernel, FLOAT, 0)[0] == 0
    with pytest.raises(DeviceError, match="SetSaturationFlag: the virtual NPU doesn't cover floating point"):
        words(kernel, FLOAT, 1)


def test_conversions_saturate(kernel: ApiKernel) -> None:
    assert words(kernel, CAST, 1)[0] == 1
    with pytest.raises(DeviceError, match="SetSaturationFlag: the virtual NPU doesn't cover conversions"):
        words(kernel, CAST, 0)


@pytest.mark.parametrize(("left", "right"), [(0, 4), (3, 0), (2, 5)])
def test_padding_has_the_value_of_the_register(kernel: ApiKernel, left: int, right: int) -> None:
    x = np.arange(1, 13).astype(np.float16)
    got = kernel.run([PAD, left, right, 7, 1, 12 - left], x, np.zeros(32, np.float16))
    want = np.full(-(-(12 + right) // 16) * 16, 7, np.float16)
    want[left:12] = x[: 12 - left]
    np.testing.assert_array_equal(got[: len(want)], want)
    assert not kernel.report["unwritten"]


@pytest.mark.parametrize("said", [0, 2])
def test_padding_that_nobody_has_said_is_unknown(kernel: ApiKernel, said: int) -> None:
    x = np.arange(1, 13).astype(np.float16)
    kernel.run([PAD, 0, 4, 7, said, 12], x, np.zeros(16, np.float16))
    assert kernel.report["unwritten"]


def test_atomic_configurations(kernel: ApiKernel) -> None:
    x = np.arange(8, dtype=np.float32)
    for on, before, want in ((0, [0, 0], x), (1, [1, 0], x + 2)):
        out = np.full(24, 2, np.float32)
        got = kernel.run([ATOMIC, on], x, out)
        assert got[:2].view(np.int32).tolist() == before
        np.testing.assert_array_equal(got[16:24], want)
    with pytest.raises(DeviceError, match="GetStoreAtomicConfig: an atomic maximum or minimum has no number here"):
        kernel.run([ATOMIC, 2], x, np.full(24, 2, np.float32))


def test_the_interface_for_c_and_base_addresses(kernel: ApiKernel) -> None:
    assert words(kernel, OTHERS) == [1, 1]
