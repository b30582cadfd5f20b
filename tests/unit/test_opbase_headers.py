"""What host programs of CANN's open repositories include of opbase: its answers, worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from ask_host import ask

from ascendopt_tune.build.headers import forwarding_headers
from ascendopt_tune.paths import vnpu

_FIELDS = """#pragma once
#include "register/tilingdata_base.h"
{includes}
namespace optiling {{
BEGIN_TILING_DATA_DEF(AskTilingData)
{fields}
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Ask, AskTilingData)
}}
"""


def answers(folder: Path, includes: tuple[str, ...], *expressions: str, before: str = "") -> list[int]:
    """What host code makes of these expressions, as whole numbers."""
    fields = "\n".join(f"TILING_DATA_FIELD_DEF(int32_t, a{i});" for i in range(len(expressions)))
    head = "\n".join(f'#include "{name}"' for name in includes)
    body = "\n".join(f"data.set_a{i}(static_cast<int32_t>({e}));" for i, e in enumerate(expressions))
    words = ask(folder, _FIELDS.format(includes=head, fields=fields), f"using namespace Ops::Base;\n{before}\n{body}")[
        1
    ]
    return [word - (word >> 31 << 32) for word in words[: len(expressions)]]


def test_whole_numbers_are_divided_as_opbase_divides_them(tmp_path: Path) -> None:
    found = answers(
        tmp_path,
        ("op_common/op_host/util/math_util.h",),
        *("CeilDiv(7, 2)", "CeilDiv(8, 2)", "CeilDiv(-7, 2)", "CeilDiv(-7, -2)", "CeilDiv(7, 0)", "CeilDiv(7U, 2U)"),
        *("FloorDiv(7, 2)", "FloorDiv(7, 0)", "CeilAlign(7, 4)", "CeilAlign(7, 0)", "FloorAlign(7, 4)"),
        *("FloorAlign(7, 0)", "CeilAlign<uint8_t>(250, 100)", "LastPow2(0)", "LastPow2(96)"),
        *("IsFloatEqual(0.5F, 0.5F)", "IsFloatEqual(0.5F, 0.6F)"),
    )
    assert found == [4, 4, -3, 4, 7, 4, 3, 7, 8, 0, 4, 0, 255, 1, 64, 1, 0]


def test_scalars_are_shapes_of_one_element_and_axes_count_from_either_end(tmp_path: Path) -> None:
    found = answers(
        tmp_path,
        ("op_host/tiling_base_util.h", "util/shape_util.h"),
        *("EnsureNotScalar(gert::Shape()).GetDim(0)", "EnsureNotScalar(gert::Shape({5, 6})).GetDimNum()"),
        *("IsRegbaseSocVersion(context)", "CheckAxisBounds(2, -2)", "CheckAxisBounds(2, 2)", "CheckAxisBounds(0, 0)"),
    )
    assert found == [1, 2, 0, 1, 0, 1]


def test_error_macros_do_what_they_are_given(tmp_path: Path) -> None:
    """Headers that operators name and their repository may lack; a repository's own come first."""
    found = answers(
        tmp_path,
        ("error/ops_error.h",),
        *("x", "y"),
        before="""int x = 0, y = 0;
OPS_ERR_IF(x == 0, OPS_REPORT_VECTOR_INNER_ERR("Ask", "x is %d", x), x = 2);
OPS_ERR_IF(x == 0, OPS_LOG_E("Ask", "never"), x = 9);
OPS_LOG_E_IF_NULL("Ask", static_cast<int*>(nullptr), y = 3)
OPS_LOG_E_IF_NULL("Ask", &x, y = 9)
OPS_LOG_D("Ask", "done");""",
    )
    assert found == [2, 3]


def test_the_platform_is_the_chips(tmp_path: Path) -> None:
    found = answers(
        tmp_path,
        ("op_common/op_host/util/platform_util.h",),
        *("GetAivCoreNum(context)", "GetAicCoreNum(context)", "GetUbSize(context)", "GetUbBlockSize(context)"),
    )
    assert found == [48, 24, 192 * 1024 - 256, 32]


def test_half_on_the_host_is_16_bits(tmp_path: Path) -> None:
    before = "const fp16_t half = 1.5F; const bfloat16 brain = 1.0F;"
    includes = ("op_host/util/fp16.h", "op_host/util/bfloat16.h", "graph/c_types.h")
    assert answers(tmp_path, includes, "half.val", "brain.value", "C_DT_DOUBLE", before=before) == [0x3E00, 0x3F80, 11]


def test_an_input_of_another_type_has_no_whole_number(tmp_path: Path) -> None:
    before = "int64_t value = 7; gert::Shape shape({8});"
    asked = ("GetConstInt(context, 0, value)", "value", "GetConstIntToShape(context, 0, shape)", "shape.GetDim(0)")
    assert answers(tmp_path, ("op_host/util/const_util.h",), *asked, before=before) == [0, 7, 0, 8]


def test_formats_have_names(tmp_path: Path) -> None:
    assert answers(tmp_path, ("util/shape_util.h",), "ge::GetFormatName(ge::FORMAT_NHWC)[1]") == [ord("H")]


_CLASS = """
struct Parts : Ops::Base::TilingBaseClass {
  using TilingBaseClass::TilingBaseClass;
  int64_t asked = 0;
  ge::graphStatus told(int part) {
    asked = 10 * asked + part;
    return ge::GRAPH_SUCCESS;
  }
  bool IsCapable() override { return told(3) == ge::GRAPH_SUCCESS && context_->GetInputShape(0) != nullptr; }
  ge::graphStatus GetShapeAttrsInfo() override { return told(1); }
  ge::graphStatus GetPlatformInfo() override { return told(2); }
  ge::graphStatus DoOpTiling() override { return told(4); }
  ge::graphStatus DoLibApiTiling() override { return told(5); }
  ge::graphStatus GetWorkspaceSize() override { return told(6); }
  ge::graphStatus PostTiling() override { return told(7); }
  uint64_t GetTilingKey() const override { return 77; }
} parts(context);
const auto status = parts.DoTiling();
"""


def test_a_tiling_class_is_asked_for_its_parts_in_order(tmp_path: Path) -> None:
    includes = ("op_host/tiling_base_class.h",)
    asked = ("status", "parts.asked", "context->GetTilingKey()")
    assert answers(tmp_path, includes, *asked, before=_CLASS) == [0, 1234567, 77]


def test_a_name_alone_is_a_log_record(tmp_path: Path) -> None:
    logs = 'OP_LOGD("begins"); OP_LOGE(context); OP_LOGW(context, "%d", 3); OP_CHECK_IF(false, OP_LOGE("no"), throw 1);'
    assert answers(tmp_path, ("op_common/log/log.h",), "1", before=logs) == [1]


@pytest.mark.parametrize(
    ("name", "leads"),
    [
        ("adv_api/math/asinh.h", "kernel_operator.h"),
        ("lib/math/sin.h", "kernel_operator.h"),
        ("pad/broadcast.h", "kernel_operator.h"),
        ("lib/math/sin_tiling.h", "tiling/tiling_api.h"),
        ("op_host/infershape_reduce_util.h", "util/infer_shape_util.h"),
        ("infershape_reduce_util.h", "util/infer_shape_util.h"),
    ],
)
def test_headers_have_their_names_in_each_folder(name: str, leads: str) -> None:
    assert f'#include "{leads}"' in forwarding_headers(vnpu() / "forwarding.toml")[name]
