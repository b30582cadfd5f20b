"""Align of lib/matmul_intf.h, which CANN's inner headers make visible; a kernel's own is preferred."""

from __future__ import annotations

import pytest
from test_cube import device

HEAD = """
#define ASCENDC_CUBE_ONLY
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
"""
OWN = """
template <typename T> constexpr T Align(T num, T step) { return num + 1000 * step; }
"""
KERNEL = """
static_assert(Align<uint32_t>(17, 16) == WANTED && Align(17, 16) == WANTED);
extern "C" __global__ __cube__ void nothing() {}
"""


@pytest.mark.parametrize(("own", "wanted"), [("", 32), (OWN, 16017)])
def test_numbers_are_rounded_up(own: str, wanted: int) -> None:
    assert device().compile(HEAD + own + KERNEL.replace("WANTED", str(wanted)), "align.cpp", [])
