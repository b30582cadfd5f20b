"""What host programs and folders of CANN's open repositories need beside what single operators do: names, kinds of
files, and messages that say the next step."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from ask_host import ask
from test_opbase_headers import answers

from ascendopt_tune.build.missing import where_it_is
from ascendopt_tune.sources.kernels import template_parameters
from ascendopt_tune.sources.project import load_project
from ascendopt_tune.sources.texts import tilings_of

_FIELD = """#pragma once
#include "register/tilingdata_base.h"
#include "tiling/tiling_api.h"
#include "op_common/atvoss/broadcast/broadcast_tiling.h"
#include "op_common/atvoss/elewise/elewise_tiling.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(AskTilingData)
TILING_DATA_FIELD_DEF(uint32_t, before);
TILING_DATA_FIELD_DEF_STRUCT(LayerNormSeparateTiling, norm);
TILING_DATA_FIELD_DEF(uint32_t, behind);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Ask, AskTilingData)
}
"""


def test_a_structure_of_layer_norm_among_tiling_data(tmp_path: Path) -> None:
    words = ask(tmp_path, _FIELD, "data.set_before(1); data.norm.set_rLength(5); data.set_behind(2);")[1]
    assert words[0] == 1
    assert 5 in words[1:]
    assert 2 in words[26:]


def test_headers_that_shape_functions_and_definitions_name(tmp_path: Path) -> None:
    found = answers(
        tmp_path,
        ("runtime/rt_external_base.h", "op_host/tiling_base_util.h"),
        "asked",
        "context->InputIsView(0)",
        before="ops::OpAICoreDef core; const int asked = 3;\n"
        'optiling::OpCheckFuncHelper(FUNC_CHECK_SUPPORTED, "Ask", core.GetCheckSupport());',
    )
    assert found == [3, 0]


def test_a_kernels_inl_files_belong_to_it(tmp_path: Path) -> None:
    folder = tmp_path / "add"
    shutil.copytree(Path(__file__).resolve().parents[2] / "registry" / "add", folder)
    (folder / "op_kernel" / "part.inl").write_text("// the bodies\n")
    assert load_project(folder).baseline.kernel["op_kernel/part.inl"] == "// the bodies\n"


def test_a_stand_in_for_unit_tests_is_not_the_kernel() -> None:
    text = """template <bool sorted> __global__ __aicore__ void top(GM_ADDR x) {}
#ifdef __CCE_UT_TEST__
extern "C" __global__ __aicore__ void top(GM_ADDR x) { top<true>(x); }
#endif
"""
    assert template_parameters(text, "top") == [("bool", "sorted")]
    assert template_parameters(text.replace("__CCE_UT_TEST__", "OTHER"), "top") == []


@pytest.mark.parametrize(("own", "there"), [("p_a_m_tiling.h", True), ("pam_tiling.h", False), ("other.h", False)])
def test_a_header_that_is_called_much_the_same(tmp_path: Path, own: str, there: bool) -> None:
    root = tmp_path / "pam"
    (root / "op_host").mkdir(parents=True)
    (root / "op_host" / own).touch()
    wanted = "gone/pam_tiling.h" if own == "pam_tiling.h" else "pam_tiling.h"
    step = where_it_is(root, wanted)
    assert (f"{root / 'op_host' / own}: should that be included?" in step) == there


def test_the_operators_that_a_tiling_function_is_registered_for() -> None:
    text = "// IMPL_OP(None)\nIMPL_OP_OPTILING(Col2ImCustom).Tiling(f);\nIMPL_OP(Add)\n.Tiling(g);"
    assert tilings_of([text, text]) == ["Add", "Col2ImCustom"]
