"""Reading programs: what is blanked out before they are parsed, and what counts as broken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendopt_tune.search.tiling.slice import synthesize
from ascendopt_tune.sources.cpp import breaks_syntax, parse, program_of, syntax_errors

TILING = """
// OP_LOGE(a comment, 1);
#define TWICE(x) ((x) * 2)
static constexpr uint32_t UB_BYTES = 196608;
static int Tiling(gert::TilingContext *context) {
  OP_CHECK(context == nullptr, OP_LOGE("no (context"), return 1);
  auto line = "/* OP_LOGE(text) */";
  VECTOR_LOG(context)
  context->SetBlockDim(TWICE(24));
  return 0;
}
IMPL_OP_OPTILING(Add).Tiling(Tiling);
"""


def test_statement_macros_and_comments_are_blanked_in_place() -> None:
    source = parse("add.cpp", TILING)
    assert syntax_errors(source) == 0
    assert source.data.decode() == TILING
    (function,) = program_of({"add.cpp": TILING}).functions
    body = source.text(function.body)
    assert function.name == "Tiling"
    assert body.startswith("{\n  OP_CHECK(")
    assert body.endswith("return 0;\n}")
    kinds = [n.type for n in function.body.named_children]
    empty, *rest = kinds  # the macro's own semicolon
    assert empty == "expression_statement"
    assert rest == ["declaration", "expression_statement", "return_statement"]


@pytest.mark.parametrize(
    "line",
    [
        "IMPL_OP_OPTILING(Add)\n    .TilingInputsDataDependency({1, 2})\n    .Tiling(Tiling);",
        "static void Init(GM_ADDR x, __tiling_data_ptr__ AddTiling* tiling) {}",
    ],
)
def test_what_todays_sources_say_more_is_read_as_well(line: str) -> None:
    assert syntax_errors(parse("add.cpp", f"{TILING}\n{line}\nint after = 0;\n")) == 0


@pytest.mark.parametrize(
    ("old", "new", "broken"),
    [
        ("196608", "4", False),
        ("TWICE(24)", "TWICE(8)", False),
        ("= 196608;", "= ;", True),
        ("TWICE(24)", "TWICE(24", True),
        ("return 0;", "return 0 0;", True),
        ("return 0;", "return context == nullptr ? 1 : 0;", False),
    ],
)
def test_broken_syntax(old: str, new: str, broken: bool) -> None:
    assert old in TILING
    assert breaks_syntax({"add.cpp": TILING}, {"add.cpp": TILING.replace(old, new)}) is broken


@given(st.integers(1, 1 << 40), st.integers(0, 1 << 40))
def test_other_numbers_break_nothing(first: int, second: int) -> None:
    changed = TILING.replace("24", str(second)).replace("196608", str(first))
    assert not breaks_syntax({"add.cpp": TILING}, {"add.cpp": changed})
    assert syntax_errors(parse("add.cpp", changed)) == 0


CHECKED = """
static bool Platform(gert::TilingContext* context, int64_t& cores) { cores = context->Cores(); return cores > 0; }
static void Tiling(gert::TilingContext* context) {
  int64_t cores = 0;
  OP_CHECK_IF(Platform(context, cores) != true, OP_LOGE(context, "none, (at all"), return);
  OP_CHECK_IF(cores == 0, OP_LOGE(context, "none"), return);
  OP_LOGI(Platform(context, cores), 3);
}
"""


def test_what_a_check_asks_of_the_files_own_functions_is_done() -> None:
    source = parse("add.cpp", CHECKED)
    assert syntax_errors(source) == 0
    tiling = program_of({"add.cpp": CHECKED}).functions[1]
    statements = [source.text(n) for n in tiling.body.named_children if n.named_children]
    assert statements == ["int64_t cores = 0;", "Platform(context, cores) != true,"]  # the check's comma ends it


def test_flow_goes_through_checks() -> None:
    host = CHECKED.replace("OP_LOGI(Platform(context, cores), 3);", "context->SetBlockDim(cores);")
    host = host.replace("context->Cores()", "PlatformAscendC(context->GetPlatformInfo()).GetCoreNumAiv()")
    assert [site.name for site in synthesize({"add.cpp": host}).of_purpose("core_count")] == ["cores"]
