"""AscendC::Std: names under which kernels use the standard library, by CANN's headers."""

from __future__ import annotations

import pytest
from test_cube import device

KERNEL = """
#include "kernel_operator.h"
#include "lib/std/tuple.h"
#include "std/type_traits.h"
#include "utils/std/algorithm.h"
using namespace AscendC;
struct Base {};
struct Own : Base {};
static_assert(Std::is_base_of_v<Base, Own> && !Std::is_base_of_v<Own, Base>);
static_assert(Std::is_same_v<Std::remove_cvref_t<const int&>, int> && Std::bool_constant<true>::value);
static_assert(Std::is_tuple_v<const Std::tuple<int, half>> && !Std::is_tuple_v<int>);
static_assert(Std::is_one_of_v<float, half, float> && !Std::is_one_of_v<int, half, float>);
static_assert(Std::is_integral_v<int8_t> && Std::is_floating_point_v<float>);
static_assert(Std::is_same_v<Std::tuple_element_t<1, Std::tuple<int, half>>, half>);
static_assert(Std::min(3, 2) == 2 && Std::max(3u, 2u) == 3u);
extern "C" __global__ __aicore__ void nothing() {}
"""


@pytest.mark.parametrize("more", ["", "using namespace AscendC::Std;"])
def test_names_of_the_standard_library(more: str) -> None:
    assert device().compile(KERNEL + more, "std_names.cpp", [])
