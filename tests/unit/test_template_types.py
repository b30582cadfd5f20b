"""Which cores run a kernel, where that is a template argument that the tiling key is made of."""

from __future__ import annotations

import pytest

from ascendopt_tune.build.template_types import kernel_type_of

DECLARED = """
#define MODE_BITS 6
// ASCENDC_TPL_ARGS_DECL(Of, another, ASCENDC_TPL_KERNEL_TYPE_DECL(NONE, ASCENDC_TPL_AIV_ONLY));
ASCENDC_TPL_ARGS_DECL(
    Mixed,  // the operator
    ASCENDC_TPL_UINT_DECL(MODE, MODE_BITS, ASCENDC_TPL_UI_LIST, 0, 1, (2 + 1)),
    ASCENDC_TPL_BOOL_DECL(EMPTY, 0, 1),
    ASCENDC_TPL_UINT_DECL(LAYOUT, ASCENDC_TPL_2_BW, ASCENDC_TPL_UI_RANGE, 1, 0, 2),
    ASCENDC_TPL_UINT_DECL(SPLIT, 1, ASCENDC_TPL_UI_LIST, 0, 1),
    ASCENDC_TPL_DTYPE_DECL(TYPE, C_DT_FLOAT),
    ASCENDC_TPL_KERNEL_TYPE_DECL(CORES, ASCENDC_TPL_MIX_AIC_1_1, ASCENDC_TPL_MIX_AIC_1_2));
"""
SHIFT = 6 + 1 + 2 + 1 + 8


@pytest.mark.parametrize(
    ("code", "cores"),
    [(0, "KERNEL_TYPE_MIX_AIC_1_1"), (1, "KERNEL_TYPE_MIX_AIC_1_2"), (2, "")],
)
def test_the_key_says_which_cores(code: int, cores: str) -> None:
    for others in (0, (1 << SHIFT) - 1):
        assert kernel_type_of(["#pragma once\n", DECLARED], others | code << SHIFT) == cores


def test_where_no_argument_says_it_nothing_is_said() -> None:
    assert kernel_type_of([DECLARED.replace("_KERNEL_TYPE_DECL(CORES", "_UINT_DECL(CORES, 8")], 0) == ""
    assert kernel_type_of(["void f();\n"], 7) == ""
    unknown = DECLARED.replace("#define MODE_BITS 6", "")
    assert kernel_type_of([unknown], 1 << SHIFT) == ""
